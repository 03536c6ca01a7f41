#include "cli/audit/manifest_setup.h"

#define PATIENCE_MS 60000

static bool prepare_headers(
	const char *key_file, struct s3_headers **ret, struct problem *ret_problem)
{
	return !key_file ||
	       (s3_headers_new(ret) == 0 &&
		       s3_headers_set(*ret, "sse-c-key-file", key_file, ret_problem) == 0 &&
		       s3_headers_prepare(*ret, ret_problem) == 0);
}

static bool read_public_key(const char *path, struct signing_key **ret, struct problem *ret_problem)
{
	return !path || signing_key_read(path, false, ret, ret_problem) == 0;
}

bool manifest_setup_open(const struct manifest_wanted *wanted, struct manifest_setup *ret,
	struct problem *ret_problem)
{
	*ret = (struct manifest_setup){0};
	if (!read_public_key(wanted->public_key_file, &ret->public_key, ret_problem) ||
		!prepare_headers(wanted->sse_c_key_file, &ret->headers, ret_problem) ||
		services_open(wanted->access, &ret->services, ret_problem) < 0 ||
		s3_open(ret->services.aws, ret->services.http, wanted->url->bucket, &ret->s3,
			ret_problem) < 0)
		return false;
	if (s3_conn_new(ret->s3, &ret->conn) < 0) {
		problem_set(ret_problem, PROBLEM_NO_DESCRIPTORS);
		return false;
	}
	ret->place = (struct manifest_place){.s3 = ret->conn,
		.headers = ret->headers,
		.bucket = wanted->url->bucket,
		.prefix = wanted->url->key,
		.limits = {.patience_ms = PATIENCE_MS}};
	return true;
}

void manifest_setup_close(struct manifest_setup *setup)
{
	if (setup->conn)
		s3_conn_free(setup->conn);
	s3_close(setup->s3);
	s3_headers_free(setup->headers);
	services_close(&setup->services);
	signing_key_free(setup->public_key);
}
