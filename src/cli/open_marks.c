#include "cli/open_marks.h"
#include "aws/global.h"
#include "base/quote.h"
#include "http/http.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

int services_open(const struct access *access, struct services *ret, struct problem *ret_problem)
{
	const struct aws_options options = {
		.profile = access->profile,
		.region = access->region,
		.endpoint_url = access->endpoint_url,
		.checksum = access->checksum,
		.dynamodb_endpoint_url = access->dynamodb_endpoint_url,
		.ca_bundle = access->ca_bundle,
		.request_timeout_ms = access->request_timeout_ms,
	};
	*ret = (struct services){0};
	int r = aws_global_init();
	if (r < 0) {
		problem_set(ret_problem, "the libraries cannot be set up: %s", strerror(-r));
		return r;
	}
	r = aws_settings_resolve(&options, &ret->aws, ret_problem);
	if (r < 0)
		return r;
	const struct http_options http = {
		.ca_bundle = ret->aws->ca_bundle, .stall_timeout_ms = ret->aws->stall_timeout_ms};
	r = http_shared_new(&http, &ret->http);
	if (r < 0)
		problem_set(ret_problem, "HTTP cannot be set up: %s", strerror(-r));
	return r;
}

void services_close(struct services *services)
{
	http_shared_free(services->http);
	aws_settings_free(services->aws);
	*services = (struct services){0};
}

void marks_place_name(const struct marks_place *place, struct text *ret)
{
	const char *where = place->is_dynamodb ? place->table : place->path;
	text_add(ret, place->is_dynamodb ? "dynamodb:" : "sqlite:");
	text_add_escaped_string(ret, where);
}

bool marks_are_there(const struct marks_place *place, struct problem *ret_problem)
{
	if (place->is_dynamodb || access(place->path, F_OK) == 0 || errno != ENOENT)
		return true;
	problem_set(ret_problem,
		"there are no marks at %s yet: push makes them, or name others with --marks",
		quote(place->path).text);
	return false;
}

int marks_place_chosen(const struct access *access, bool only_read, struct marks_place *ret,
	struct problem *ret_problem)
{
	const char *spec = access_marks(access);
	const int error = marks_place_parse(spec ? spec : "local", ret, ret_problem);
	ret->only_read = only_read;
	return !error ? 0 : error == -EINVAL ? S3ONCE_EXIT_USAGE : S3ONCE_EXIT_SETUP;
}

bool marks_load_settings(struct open_marks *marks, const char *name, struct store_settings *ret,
	struct problem *ret_problem)
{
	enum outcome o = settings_load(marks->conn, false, 0, NULL, ret, ret_problem);
	if (o == OUTCOME_ABSENT)
		problem_set(
			ret_problem, "%s was never set up: run s3once init --marks %s", name, name);
	else if (o != OUTCOME_OK && !strstr(ret_problem->text, strchr(name, ':') + 1))
		problem_prefix(ret_problem, "%s", name);
	return o == OUTCOME_OK;
}

int marks_open(const struct marks_place *place, const struct services *services,
	struct open_marks *ret, struct problem *ret_problem)
{
	*ret = (struct open_marks){0};
	int r = marks_place_open(place, services->aws, services->http, &ret->store, ret_problem);
	if (r < 0)
		return r;
	r = store_conn_new(ret->store, &ret->conn);
	if (r < 0)
		problem_set(ret_problem, "the marks cannot be opened: %s", strerror(-r));
	return r;
}

void marks_close(struct open_marks *marks)
{
	store_conn_free(marks->conn);
	store_close(marks->store);
	*marks = (struct open_marks){0};
}
