/* The end of a run says what the disk has: the marks are synced before, and if that fails, the run
 * has failed. After that come the manifest, the row of the job and the summary. */
#include "../script_server.h"
#include "marks/job_row.h"
#include "upload/push_struct.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
	struct s3once_push *push;
	struct store_ops ops; /* of the marks, with the sync that is seen here */
	const struct store_ops *real;
	enum outcome outcome; /* of each sync; OK: it is done */
	unsigned n;
	char said[400];                /* the last sentence of FATAL */
	unsigned summaries, manifests; /* events: a manifest may be stored or not */
	enum s3once_event_type last;
	const char *removes; /* a file that is removed when the run has begun; NULL: none */
	bool stops;          /* the run is asked to stop then */
	const char *spool; /* the folder in which there is output of an earlier run then; or NULL */
	char kept[128];    /* its path */
} syncs;

/* Makes the output that an earlier run has kept (spool.c). */
static void keep_output(void)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	char about[400], hex[2 * sizeof hash + 1];
	snprintf(about, sizeof about, "%s/bucket/k", syncs.push->run.space.service);
	SHA256((const unsigned char *)about, strlen(about), hash);
	hex_encode(hash, sizeof hash, hex);
	snprintf(syncs.kept, sizeof syncs.kept, "%s/s3once-%.32s", syncs.spool, hex);
	close(open(syncs.kept, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

/* The producer of the pipe: it fails at once. */
static long produce(void *arg, void *buffer, size_t n, char *ret_text, size_t size)
{
	(void)arg;
	(void)buffer;
	snprintf(ret_text, size, "it broke");
	return n ? -EIO : 0;
}

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
	syncs.last = event->type;
	syncs.summaries += event->type == S3ONCE_EVENT_SUMMARY;
	syncs.manifests +=
		event->type == S3ONCE_EVENT_MANIFEST || event->type == S3ONCE_EVENT_MANIFEST_FAILED;
	if (event->type != S3ONCE_EVENT_START)
		return;
	if (syncs.removes)
		unlink(syncs.removes);
	if (syncs.stops)
		s3once_push_stop(syncs.push);
	if (syncs.spool)
		keep_output();
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
	bool wants_manifest, removes_marks, stops, has_link, has_spool;
	unsigned manifests;
} rows[] = {
	{OUTCOME_OK, false, S3ONCE_EXIT_OK, 1, ""},
	{OUTCOME_SETUP, false, S3ONCE_EXIT_SETUP, 1, "as the test wants"},
	{OUTCOME_ABANDONED, false, S3ONCE_EXIT_SETUP, 1, "as the test wants"},
	{OUTCOME_OK, true, S3ONCE_EXIT_OK, 0, ""},
	/* The server's answers do not prove a manifest. */
	{OUTCOME_OK, false, S3ONCE_EXIT_FILES, 1, "", .wants_manifest = true, .manifests = 1},
	{OUTCOME_OK, false, S3ONCE_EXIT_FILES, 1, "", .wants_manifest = true, .manifests = 1,
		.has_link = true},
	{OUTCOME_SETUP, false, S3ONCE_EXIT_SETUP, 1, "as the test wants", .wants_manifest = true},
	{OUTCOME_OK, false, S3ONCE_EXIT_STOPPED, 1, "", .wants_manifest = true, .stops = true},
	{OUTCOME_OK, true, S3ONCE_EXIT_OK, 0, "", .wants_manifest = true},
	{OUTCOME_OK, false, S3ONCE_EXIT_FILES, 1, "", .has_link = true},
	{OUTCOME_OK, false, S3ONCE_EXIT_SETUP, 1, "was removed or replaced while this run had it",
		.removes_marks = true},
	/* The output of a pipe is kept until a run has sent it. */
	{OUTCOME_OK, false, S3ONCE_EXIT_STOPPED, 1, "", .stops = true, .has_spool = true},
};

/* Whether the end of the run is in the row of its job, with this exit status. */
static bool job_has_ended(struct s3once_push *push, enum s3once_exit exit)
{
	struct job_row jobs[2] = {{.exit = -1}};
	struct problem problem;
	size_t n = 0;
	CHECK_INT(job_rows_read(push->conn, NULL, 2, &(struct call_limits){0}, jobs, &n, &problem),
		OUTCOME_OK);
	return n == 1 && jobs[0].exit == (int)exit;
}

int main(void)
{
	char folder[] = "/tmp/push_end.XXXXXX", marks[64], database[64], tree[64], link[80],
	     text[256];
	setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "example", 1);
	CHECK(mkdtemp(folder) != NULL);
	snprintf(marks, sizeof marks, "sqlite:%s/db", folder);
	snprintf(database, sizeof database, "%s/db", folder);
	snprintf(tree, sizeof tree, "%s/tree", folder);
	snprintf(link, sizeof link, "%s/link", tree);
	CHECK_INT(mkdir(tree, 0700), 0);
	const char *const sources[] = {tree}, *const piped[] = {"input"};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct script_step steps[SCRIPT_STEPS_MAX];
		struct script_server server;
		for (size_t k = 0; k < SCRIPT_STEPS_MAX; k++)
			steps[k] = (struct script_step){EMPTY, .close = true};
		if (!script_start(&server, steps, SCRIPT_STEPS_MAX))
			break;
		const struct s3once_options options = {
			.sources = rows[i].has_spool ? piped : sources,
			.n_sources = 1,
			.bucket = "bucket",
			.endpoint_url = server.url,
			.region = "us-east-1",
			.concurrency = 2,
			.give_up_after_ms = 10000,
			.marks = marks,
			.dry_run = rows[i].is_dry,
			.manifest = rows[i].wants_manifest,
			.as = rows[i].has_spool ? "k" : NULL,
			.read = rows[i].has_spool ? produce : NULL,
			.spool = rows[i].has_spool ? folder : NULL,
			.callback = on_event};
		memset(&syncs, 0, sizeof syncs);
		syncs.outcome = rows[i].sync;
		syncs.removes = rows[i].removes_marks ? database : NULL;
		syncs.stops = rows[i].stops;
		syncs.spool = options.spool;
		unlink(database);
		if (rows[i].is_dry) /* which has marks, and leaves them as they are */
			close(open(database, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		if (rows[i].has_link)
			CHECK_INT(symlink("x", link), 0);
		if (!CHECK_INT(s3once_push_new(&options, &syncs.push, text, sizeof text), 0))
			break;
		bool good = CHECK_INT(s3once_push_run(syncs.push), rows[i].exit);
		unlink(link);
		good &= CHECK_INT(syncs.n, rows[i].n);
		good &= CHECK_INT(syncs.manifests, rows[i].manifests);
		/* The summary is the last word, and has the counts that the caller gets. */
		good &= CHECK_INT(syncs.summaries, 1);
		good &= CHECK_INT(syncs.last, S3ONCE_EVENT_SUMMARY);
		good &= CHECK_INT(s3once_push_counts(syncs.push)->found, rows[i].has_link);
		good &= CHECK_INT(s3once_push_counts(syncs.push)->links, rows[i].has_link);
		if (!rows[i].removes_marks)
			good &= CHECK_INT(job_has_ended(syncs.push, rows[i].exit), !rows[i].is_dry);
		good &= CHECK(strstr(syncs.said, rows[i].says) != NULL);
		if (rows[i].has_spool)
			good &= CHECK_INT(unlink(syncs.kept), 0);
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
