/* A bucket opened for the commands that read manifests, which need no marks. */
#pragma once
#include "audit/manifest_fetch.h"
#include "cli/open_marks.h"
#include "cli/options/url.h"

struct manifest_setup {
	struct services services;
	struct s3 *s3;
	struct s3_conn *conn;
	struct s3_headers *headers;
	struct signing_key *public_key; /* NULL: none was given */
	struct manifest_place place;    /* of the above; its limits may be set */
};
struct manifest_wanted {
	const struct access *access;
	const struct s3_url *url;                     /* the bucket, and the prefix of the runs */
	const char *sse_c_key_file, *public_key_file; /* or NULL */
};
/* False with a sentence. Close it in any case. */
bool manifest_setup_open(const struct manifest_wanted *wanted, struct manifest_setup *ret,
	struct problem *ret_problem);
void manifest_setup_close(struct manifest_setup *setup);
