#include "marks/setup.h"
#include "store/dynamodb.h"
#include <string.h>

static enum outcome write_settings(const struct aws_settings *aws, struct http_shared *http,
	const struct table_setup *setup, struct store_settings *ret, struct problem *ret_problem)
{
	struct store *store = NULL;
	struct store_conn *conn = NULL;
	enum outcome outcome = OUTCOME_LOCAL;

	if (store_dynamodb_open(aws, http, setup->table, &store, ret_problem) == 0) {
		int r = store_conn_new(store, &conn);
		if (r)
			problem_set(ret_problem, "table %s: %s", setup->table, strerror(-r));
		else
			outcome = settings_load(conn, true, setup->shards, NULL, ret, ret_problem);
	}
	store_conn_free(conn);
	store_close(store);
	return outcome;
}

enum outcome table_create(const struct aws_settings *aws, struct http_shared *http,
	const struct table_setup *setup, struct store_settings *ret, bool *ret_created,
	bool *ret_ttl, struct problem *ret_problem)
{
	const struct table_making making = {
		.table = store_dynamodb_table(setup->table),
		.what = "marks",
		.ttl_name = "expires",
		.timeout_ms = setup->timeout_ms,
	};
	enum outcome outcome = table_make(aws, http, &making, ret_created, ret_ttl, ret_problem);

	return outcome == OUTCOME_OK ? write_settings(aws, http, setup, ret, ret_problem) : outcome;
}
