/* The marks of one bucket, and the bucket itself, opened for the commands that compare or remove
 * marks. */
#pragma once
#include "audit/crew.h"
#include "cli/open_marks.h"
#include "cli/options/url.h"

struct audit_setup {
	struct text marks_name; /* "dynamodb:TABLE" or "sqlite:PATH", as messages show it */
	struct services services;
	struct open_marks marks;
	struct s3 *s3;
	struct mark_space space;
	struct audit_place place; /* of the above; its hands are the caller's to open */
};
struct audit_wanted {
	const struct access *access;
	const struct marks_place *marks; /* what is there already: nothing is made */
	const char *bucket;
	bool needs_s3;
};
/* 0, or -errno with a sentence. Close it in any case. */
int audit_setup_open(
	const struct audit_wanted *wanted, struct audit_setup *ret, struct problem *ret_problem);
void audit_setup_close(struct audit_setup *setup);
