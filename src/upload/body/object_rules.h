/* The settings of each object. The settings for all files come first. Those of the last rule whose
 * pattern matches the file replace them, and those of the command line replace both. The rules do
 * not change once they are made, so any number of threads may use them. */
#pragma once
#include "s3/s3.h"
#include "s3once/push.h"

struct object_rules;
/* Reads options->settings and ->rules_file. Returns 0, -ENOMEM, or -EINVAL with a sentence. */
int object_rules_new(const struct s3once_options *options, struct object_rules **ret,
	struct problem *ret_problem);
/* Frees the rules, and wipes the keys in them. NULL is fine. */
void object_rules_free(struct object_rules *rules);
/* Returns the target of a file at this path relative to its source. Borrows `key` and the rules. */
struct s3_target object_rules_target(
	const struct object_rules *rules, const char *key, const char *relative);
/* Whether compressed objects get a Content-Encoding instead of a suffix of their keys. */
bool object_rules_name_encoding(const struct object_rules *rules);
/* Whether the requester pays for all requests, according to the header x-amz-request-payer. */
bool object_rules_requester_pays(const struct object_rules *rules);
/* The account that the bucket has to belong to, from the header x-amz-expected-bucket-owner, or
 * NULL. Borrowed. */
const char *object_rules_owner(const struct object_rules *rules);
/* Returns the headers of those settings that have a key of the caller's own (SSE-C), and then NULL.
 * Borrowed. */
const struct s3_headers *const *object_rules_keys(const struct object_rules *rules);
