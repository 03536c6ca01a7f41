/* The end of a run says what the disk has: the marks are synced before, and if that fails, the run
 * has failed. */
#include "../script_server.h"
#include "upload/push_struct.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
	struct s3once_push *push;
	struct store_ops ops; /* of the marks, with the sync that is seen here */
	const struct store_ops *real;
	enum outcome outcome; /* of each sync; OK: it is done */
	unsigned n;
	char said[400]; /* the last sentence of FATAL */
} syncs;

static enum outcome note_sync(
	struct store_conn *conn, const struct call_limits *limits, struct problem *ret_problem)
{
	syncs.n++;
	CHECK(!syncs.push->run.session); /* the end of the session is synced as well */
	return syncs.outcome == OUTCOME_OK
		       ? syncs.real->sync(conn, limits, ret_problem)
		       : outcome_error(ret_problem, syncs.outcome, "as the test wants");
}

/* The bucket is empty, whatever is asked. */
#define EMPTY                                                                                      \
	"HTTP/1.1 200 X\r\nx-amz-request-id: 1\r\nConnection: close\r\n\r\n"                       \
	"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"

static void on_event(void *arg, const struct s3once_event *event)
{
	if (event->type == S3ONCE_EVENT_FATAL)
		snprintf(syncs.said, sizeof syncs.said, "%s", event->text);
	if (event->type != S3ONCE_EVENT_START)
		return;
	struct store *store = syncs.push->run.store;
	syncs.real = store->ops;
	syncs.ops = *store->ops;
	syncs.ops.sync = note_sync;
	store->ops = &syncs.ops;
}

static const struct {
	enum outcome sync;
	bool is_dry;
	enum s3once_exit exit;
	unsigned n;
	const char *says;
} rows[] = {
	{OUTCOME_OK, false, S3ONCE_EXIT_OK, 1, ""},
	{OUTCOME_SETUP, false, S3ONCE_EXIT_SETUP, 1, "as the test wants"},
	{OUTCOME_ABANDONED, false, S3ONCE_EXIT_SETUP, 1, "as the test wants"},
	{OUTCOME_OK, true, S3ONCE_EXIT_OK, 0, ""},
};

int main(void)
{
	char folder[] = "/tmp/push_end.XXXXXX", marks[64], database[64], tree[64], text[256];
	setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "example", 1);
	CHECK(mkdtemp(folder) != NULL);
	snprintf(marks, sizeof marks, "sqlite:%s/db", folder);
	snprintf(database, sizeof database, "%s/db", folder);
	snprintf(tree, sizeof tree, "%s/tree", folder);
	CHECK_INT(mkdir(tree, 0700), 0);
	const char *const sources[] = {tree};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct script_step steps[SCRIPT_STEPS_MAX];
		struct script_server server;
		for (size_t k = 0; k < SCRIPT_STEPS_MAX; k++)
			steps[k] = (struct script_step){EMPTY, .close = true};
		if (!script_start(&server, steps, SCRIPT_STEPS_MAX))
			break;
		const struct s3once_options options = {.sources = sources,
			.n_sources = 1,
			.bucket = "bucket",
			.endpoint_url = server.url,
			.region = "us-east-1",
			.concurrency = 2,
			.give_up_after_ms = 10000,
			.marks = marks,
			.dry_run = rows[i].is_dry,
			.callback = on_event};
		memset(&syncs, 0, sizeof syncs);
		syncs.outcome = rows[i].sync;
		if (!CHECK_INT(s3once_push_new(&options, &syncs.push, text, sizeof text), 0))
			break;
		bool good = CHECK_INT(s3once_push_run(syncs.push), rows[i].exit);
		good &= CHECK_INT(syncs.n, rows[i].n);
		good &= CHECK(strstr(syncs.said, rows[i].says) != NULL);
		if (!good)
			fprintf(stderr, "\trow %zu: %s\n", i, syncs.said);
		syncs.push->run.store->ops = syncs.real;
		s3once_push_free(syncs.push);
		script_stop(&server);
		script_clear(&server);
	}
	unlink(database);
	rmdir(tree);
	rmdir(folder);
	return check_result();
}
