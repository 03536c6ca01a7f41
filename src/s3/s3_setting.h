/* The settings of an object, their names and the values that they take. For s3_headers.c only. */
#pragma once
#include "base/problem.h"
#include "base/text.h"

/* In which header a value ends. */
enum s3_setting_kind {
	S3_SETTING_ONE,      /* `header` = the value */
	S3_SETTING_METADATA, /* x-amz-meta-KEY = the value */
	S3_SETTING_TAG,      /* all of them in `header` */
	S3_SETTING_GRANT,    /* those of one permission in one header */
	S3_SETTING_CUSTOMER_KEY,
};

/* A value that a user gave, and what is made of it. */
struct s3_reading {
	const struct s3_setting *setting;
	const char *value;
	struct text name, result;
	struct problem *problem;
};

struct s3_setting {
	const char *name;
	enum s3_setting_kind kind;
	const char *header;
	/* Writes the header's value. METADATA and GRANT also write its name, and TAG the encoded
	 * key. 0, or -EINVAL with a sentence. Want of memory is kept in the texts. */
	int (*read)(struct s3_reading *reading);
	const char *const
		*choices; /* all valid values, NULL-terminated; NULL: there are many more */
};

/* The setting of this name, or NULL. Static. */
const struct s3_setting *s3_setting_find(const char *name);

/* A key of the caller's own (SSE-C): 256 bits in a file, never in an argument. */
#define S3_CUSTOMER_KEY_BASE64 45 /* with its NUL */

/* The base64 of the key's MD5, as S3 wants it beside the key. 0, -EINVAL if it is none, or as
 * digest_init. */
int s3_customer_key_md5(const char *base64, char ret[static 25]);
