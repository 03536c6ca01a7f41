/* Opens a store by its name in the options, and has the functions that both stores share. The
 * command line and the run open their marks here. */
#include "store/store.h"
#include "base/clock.h"
#include "store/state_folder.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int store_conn_new(struct store *store, struct store_conn **ret)
{
	return store->ops->conn_new(store, ret);
}

void store_conn_free(struct store_conn *conn)
{
	if (conn)
		conn->store->ops->conn_free(conn);
}

void store_close(struct store *store)
{
	if (store)
		store->ops->close(store);
}

enum outcome store_sync(
	struct store_conn *conn, const struct call_limits *limits, struct problem *ret_problem)
{
	const struct store_ops *ops = conn->store->ops;
	return ops->sync ? ops->sync(conn, limits, ret_problem) : OUTCOME_OK;
}

int64_t store_time_s(const struct store *store)
{
	return store->ops->time_s ? store->ops->time_s(store) : clock_wall_s();
}

/* clock_wall_s() drops the fraction of the second. So the time may be almost 1 s later. */
int64_t store_latest_time_s(const struct store *store)
{
	return store->service ? service_latest_time_s(store->service) : clock_wall_s() + 1;
}

int store_sqlite_default_path(char **ret)
{
	char path[4096];
	int error = state_path(STATE_MARKS, FOLDER_NOT_MADE, path, sizeof path);
	if (error)
		return error;
	*ret = strdup(path);
	return *ret ? 0 : -ENOMEM;
}

/* If `spec` begins with this word, returns the rest of it, and otherwise NULL. */
static const char *rest_after_prefix(const char *spec, const char *word)
{
	size_t n = strlen(word);
	return strncmp(spec, word, n) == 0 ? spec + n : NULL;
}

/* Returns the fault of a table's name, or NULL (CreateTable, Amazon DynamoDB API Reference). */
static const char *table_name_fault(const char *name)
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

/* Sets *ret to the path of the local marks, which the caller frees. Returns 0, or -errno with a
 * sentence. */
static int find_local_path(char **ret, struct problem *ret_problem)
{
	const int r = store_sqlite_default_path(ret);
	if (r == -ENOENT)
		problem_set(ret_problem,
			"there is no place for local marks: set HOME, XDG_STATE_HOME or "
			"STATE_DIRECTORY to an absolute path, or name a file with --marks "
			"sqlite:PATH");
	else if (r < 0)
		problem_set(ret_problem,
			"the folder for local marks cannot be made (%s): look at HOME, "
			"XDG_STATE_HOME and STATE_DIRECTORY, or name a file with --marks "
			"sqlite:PATH",
			strerror(-r));
	return r;
}

int marks_place_parse(const char *spec, struct marks_place *ret, struct problem *ret_problem)
{
	const char *table = rest_after_prefix(spec, "dynamodb:"),
		   *path = rest_after_prefix(spec, "sqlite:");
	const char *fault = NULL;
	*ret = (struct marks_place){.is_dynamodb = table != NULL, .table = table};
	if (strcmp(spec, "local") == 0)
		return find_local_path(&ret->path, ret_problem);
	if (table)
		fault = table_name_fault(table);
	else if (!path || !*path)
		fault = "marks are in dynamodb:TABLE, sqlite:PATH or local";
	else if (strcmp(path, STORE_SQLITE_NOWHERE) == 0)
		fault = "marks in memory are lost at once: name a file";
	if (fault)
		return problem_error(ret_problem, -EINVAL, "'%s': %s", quote(spec).text, fault);
	ret->path = path ? strdup(path) : NULL;
	if (path && !ret->path)
		return problem_error(ret_problem, -ENOMEM, "out of memory");
	return 0;
}

void marks_place_clear(struct marks_place *place)
{
	free(place->path);
	*place = (struct marks_place){0};
}

void marks_place_explain_unset(const struct marks_place *place, const struct aws_settings *aws,
	struct problem *ret_problem)
{
	const struct quoted table = quote(place->table);
	problem_set(ret_problem,
		"dynamodb:%s is not set up at %s: check its name and the region (%s); before the first "
		"upload, run: s3once init --marks dynamodb:%s",
		table.text, aws->dynamodb_endpoint, aws->region, table.text);
}

int marks_place_open(const struct marks_place *place, const struct aws_settings *aws,
	struct http_shared *http, struct store **ret, struct problem *ret_problem)
{
	if (place->is_dynamodb)
		return store_dynamodb_open(aws, http, place->table, ret, ret_problem);
	return store_sqlite_open(
		place->path, place->only_read ? STORE_ONLY_READ : STORE_WRITTEN, ret, ret_problem);
}
