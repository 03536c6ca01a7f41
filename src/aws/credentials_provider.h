/* The providers of the chain, in its order. Each makes itself: 0 or -ENOMEM. */
#pragma once
#include "aws/credentials.h"

/* AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN. */
int credentials_env_new(
	const struct credentials_options *options, struct credentials_provider *ret);
/* aws_access_key_id, aws_secret_access_key, aws_session_token of the profile; the files are read
 * again at each load. */
int credentials_profile_new(
	const struct credentials_options *options, struct credentials_provider *ret);

/* What all providers do with what they found: *ret gets copies. access_key and secret must be
 * there, session_token may be NULL. 0; -ENOMEM; -EINVAL with a sentence that says what is wrong
 * with those of `where`. */
int credentials_set(struct credentials *ret, const char *access_key, const char *secret,
	const char *session_token, const char *where, struct problem *ret_problem);
