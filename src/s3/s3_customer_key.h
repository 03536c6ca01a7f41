/* A key of the caller's own (SSE-C): 256 bits in a file, never in an argument. */
#pragma once
#include "base/problem.h"
#include "base/text.h"

#define S3_CUSTOMER_KEY_BASE64 45 /* with its NUL */

/* Adds the key in base64 to ret. The file holds its 32 bytes, or their base64 and perhaps a
 * newline. 0, -ENOMEM, or -EINVAL with a sentence that names the file. Wipe ret in any case. */
int s3_customer_key_read(const char *path, struct text *ret, struct problem *ret_problem);
/* The base64 of the key's MD5, as S3 wants it beside the key. 0, -EINVAL if it is none, or as
 * digest_init. */
int s3_customer_key_md5(const char *base64, char ret[static 25]);
