/* Credentials as JSON, in the shape in which programs, containers and instances hand them out. */
#pragma once
#include "aws/credentials/credentials.h"
#include <jansson.h>

/* The object that the bytes are, or NULL. Free it with json_free_secret, which overwrites its
 * strings. */
json_t *json_load_secret(const char *bytes, size_t n);
void json_free_secret(json_t *object);
/* The string of this name; NULL if there is none or it is empty. Borrowed. */
const char *json_word(const json_t *object, const char *name);

/* AccessKeyId, SecretAccessKey, the session token under token_name, and Expiration, which may be
 * missing. 0; -EBADMSG with a sentence about those of `where`; -EINVAL, -ENOMEM as credentials_set.
 */
int credentials_from_json(const json_t *object, const char *token_name, const char *where,
	struct credentials *ret, struct problem *ret_problem);
