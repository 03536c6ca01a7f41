#include "cli/marks_place.h"
#include "aws/global.h"
#include "aws/http.h"
#include "base/quote.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *after(const char *spec, const char *word)
{
	size_t n = strlen(word);
	return strncmp(spec, word, n) == 0 ? spec + n : NULL;
}

/* What is wrong with a table's name, or NULL (CreateTable, Amazon DynamoDB API Reference). */
static const char *table_fault(const char *name)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
	size_t n = strlen(name);
	if (n < 3 || n > 255)
		return "a table's name has 3 to 255 characters";
	return strspn(name, allowed) < n
		       ? "a table's name has only letters, digits, '_', '.' and '-'"
		       : NULL;
}

int marks_place_parse(const char *spec, struct marks_place *ret, struct problem *ret_problem)
{
	const char *table = after(spec, "dynamodb:"), *path = after(spec, "sqlite:");
	const char *fault = table ? table_fault(table) : NULL;
	*ret = (struct marks_place){.is_dynamodb = table != NULL, .table = table};
	if (strcmp(spec, "local") == 0) {
		int r = store_sqlite_default_path(&ret->path);
		if (r < 0)
			problem_set(ret_problem,
				"there is no place for local marks: set HOME, XDG_STATE_HOME or "
				"STATE_DIRECTORY, or name a file with --marks sqlite:PATH");
		return r;
	}
	if (!table && (!path || !*path))
		fault = "marks are in dynamodb:TABLE, sqlite:PATH or local";
	if (fault) {
		problem_set(ret_problem, "'%s': %s", quote(spec).text, fault);
		return -EINVAL;
	}
	if (path && !(ret->path = strdup(path))) {
		problem_set(ret_problem, "out of memory");
		return -ENOMEM;
	}
	return 0;
}

void marks_place_clear(struct marks_place *place)
{
	free(place->path);
	*place = (struct marks_place){0};
}

int services_open(const struct access *access, struct services *ret, struct problem *ret_problem)
{
	const struct aws_options options = {
		.profile = access->profile,
		.region = access->region,
		.endpoint_url = access->endpoint_url,
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
	r = http_shared_new(&(struct http_options){.ca_bundle = ret->aws->ca_bundle}, &ret->http);
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

int marks_open(const struct marks_place *place, const struct services *services,
	struct open_marks *ret, struct problem *ret_problem)
{
	*ret = (struct open_marks){0};
	int r = place->is_dynamodb ? store_dynamodb_open(services->aws, services->http,
					     place->table, &ret->store, ret_problem)
				   : store_sqlite_open(place->path, &ret->store, ret_problem);
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
