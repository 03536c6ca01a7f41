/* The settings of objects: their names, headers and valid values. This is a part of s3_headers.h,
 * which collects the values. */
#pragma once
#include "base/text.h"
#include "s3/s3_headers.h"

#define S3_KEY_BYTES 32 /* a customer-provided key (SSE-C) has 256 bits */
#define S3_CUSTOMER  "x-amz-server-side-encryption-customer-"
#define S3_LOCK      "x-amz-object-lock-"

/* Into which header a value goes. */
enum setting_kind {
	SETTING_ONE,          /* `header` = the value */
	SETTING_METADATA,     /* x-amz-meta-KEY = the value */
	SETTING_TAG,          /* all tags go into one header */
	SETTING_CUSTOMER_KEY, /* three headers, which s3_headers_prepare() makes */
	SETTING_OBJECT_LOCK,  /* two headers, of the mode and of the time */
	SETTING_OF_REQUESTS,  /* `header` = the value, in all requests; s3_set_terms() adds it */
};

struct setting_reading;
struct setting {
	/* The name of its option, or "header NAME" if it has none, and --header sets it. */
	const char *name;
	enum setting_kind kind;
	/* Whether the reply to HEAD has a header for the setting, and whether the value there is
	 * the one that was sent. Servers write some values in another way. Of tags the reply shows
	 * only the number, in another header. */
	enum { NOT_SHOWN, SHOWN, SHOWN_AS_SENT } shown;
	const char *header;
	/* Checks reading->value, and writes the header's value into `result`. If `result` stays
	 * empty, the header has the value as the user wrote it. METADATA also writes the
	 * header's name into `name`, TAG the encoded key, and OBJECT_LOCK the mode. Returns 0, or
	 * -EINVAL with a sentence. Want of memory shows only in the error of the texts. */
	int (*read)(struct setting_reading *reading);
	const char *const
		*choices; /* all valid values, NULL-terminated; NULL: there are many more */
};

/* A value that a user gave, and the result of reading it. */
struct setting_reading {
	const struct setting *setting;
	const char *value;
	struct text name, result;
	struct problem *problem;
};

extern const struct setting s3_settings[S3_SETTINGS];

/* Whether --header sets the setting. */
bool s3_setting_is_header(const struct setting *setting);
/* Returns the setting of this name, or for "header" that of the header which *value names. *value
 * then becomes the value of the header. NULL with a sentence: there is none. */
const struct setting *s3_setting_find(
	const char *name, const char **value, struct problem *ret_problem);
