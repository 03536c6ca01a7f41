/* How long a table that leaves keys unprocessed is asked again, by a clock that the test moves with
 * each question whether to give up. */
#include "../moved_clock.h"
#include "../script_aws.h"
#include "base/clock.h"
#include "store/dynamodb_request.h"
#include <stdlib.h>

#define KEYS    4
#define LONG_MS (1000 * 24 * 3600 * 1000ULL)

/* More than any wait takes. */
static bool let_time_pass(void *arg)
{
	(void)arg;
	shift_ns += 30 * (int64_t)NS_PER_S;
	return false;
}

static int ignore(void *arg, const struct found_item *found)
{
	(void)arg, (void)found;
	return 0;
}

/* The numbers of keys that the replies leave, one after the other, until nothing more is asked.
 * After eight replies in a row that answer no key, the ninth is the last one, unless there is
 * patience. */
static const struct row {
	const char *left;
	uint64_t patience_ms;
	enum outcome outcome;
	size_t n_requests;
} rows[] = {
	{"0", 0, OUTCOME_OK, 1},
	{"444444440", 0, OUTCOME_OK, 9},
	{"4444444440", 0, OUTCOME_THROTTLED, 9},
	/* A reply for a key restarts the count, and a growing number of keys does not. */
	{"4444333322210", 0, OUTCOME_OK, 13},
	{"44444443333330", 0, OUTCOME_OK, 14},
	{"3333333334444444", 0, OUTCOME_THROTTLED, 10},
	{"2343434343434", 0, OUTCOME_THROTTLED, 10},
	/* With patience, it counts from the last answer. */
	{"4444444444444440", 1000000000, OUTCOME_OK, 16},
	{"4444444444444440", 1, OUTCOME_THROTTLED, 9},
};

static void test_rows(void)
{
	static const struct table table = {"t", "pk", "sk"};
	static const struct item_key keys[KEYS] = {{"p", "0"}, {"p", "1"}, {"p", "2"}, {"p", "3"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *row = &rows[i];
		struct script_step steps[SCRIPT_STEPS_MAX];
		char replies[SCRIPT_STEPS_MAX][600];
		const size_t n = strlen(row->left);
		struct script_aws aws;
		struct store *store = NULL;
		struct store_conn *conn = NULL;
		for (size_t j = 0; j < n; j++) {
			struct text reply = TEXT(sizeof replies[j]);
			text_addf(&reply, SCRIPT_REPLY("200", "", "%s"),
				"{\"Responses\":{\"t\":[]},\"UnprocessedKeys\":{");
			for (int k = 0; k < row->left[j] - '0'; k++)
				text_addf(&reply, "%s{\"pk\":{\"S\":\"p\"},\"sk\":{\"S\":\"%d\"}}",
					k ? "," : "\"t\":{\"Keys\":[", k);
			text_add(&reply, row->left[j] == '0' ? "}}" : "]}}}");
			snprintf(replies[j], sizeof replies[j], "%s", text_string(&reply));
			text_clear(&reply);
			steps[j] = (struct script_step){replies[j], .close = true};
		}
		if (!script_aws_start(&aws, steps, n))
			return;
		/* The time passes during requests, too. */
		const struct http_options http = {.stall_timeout_ms = LONG_MS};
		http_shared_free(aws.http);
		CHECK_INT(http_shared_new(&http, &aws.http), 0);
		aws.settings.request_timeout_ms = LONG_MS;
		CHECK_INT(store_dynamodb_open_table(
				  &aws.settings, aws.http, &table, &store, &aws.problem),
			0);
		CHECK_INT(store_conn_new(store, &conn), 0);
		const struct call_limits limits = {
			.patience_ms = row->patience_ms, .abandon = let_time_pass};
		bool good = CHECK_INT(conn->store->ops->get_many(conn, keys, KEYS, &limits, ignore,
					      NULL, &aws.problem),
			row->outcome);
		script_stop(&aws.server);
		good &= CHECK_INT(aws.server.n_requests, row->n_requests);
		if (!good)
			fprintf(stderr, "\trow %zu: %s\n", i, aws.problem.text);
		store_conn_free(conn);
		store_close(store);
		script_aws_end(&aws);
	}
}

int main(void)
{
	static const char *const unwanted[] = {"http_proxy", "all_proxy", "ALL_PROXY",
		"AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"};
	for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++)
		unsetenv(unwanted[i]);
	CHECK_INT(http_global_init(), 0);
	test_rows();
	return check_result();
}
