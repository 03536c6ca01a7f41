/* One worker and the files that it takes one after the other: what one of them leaves behind is
 * nothing to the next one, and all is counted that was begun. */
#include "base/clock.h"
#include "base/text.h"
#include "steps.h"

#define FILES 3 /* a, b and k */

#define STORED STEPS_REPLY("200", "ETag: \"e\"\r\nx-amz-checksum-crc32c: 4waSgw==\r\n", "")
#define SHOWN                                                                                      \
	STEPS_REPLY("200",                                                                         \
		"Content-Length: 9\r\nETag: \"e\"\r\nx-amz-checksum-crc32c: 4waSgw==\r\n", "")
#define ABSENT   STEPS_REPLY("404", "", "")
#define DENIED   STEPS_REPLY("403", "", "<Error><Code>AccessDenied</Code></Error>")
#define TOO_LONG STEPS_REPLY("400", "", "<Error><Code>KeyTooLongError</Code></Error>")
#define CREATED                                                                                    \
	STEPS_REPLY("200", "",                                                                     \
		"<InitiateMultipartUploadResult><UploadId>up</UploadId>"                           \
		"</InitiateMultipartUploadResult>")
#define PUT(key)  "PUT /b/" key "\n"
#define HEAD(key) "HEAD /b/" key "\n"
#define ALL_PUT   PUT("a") PUT("b") PUT("k")

static const struct row {
	const char *name;
	const char *replies[7];
	const char *asked;
	unsigned n_files;
	bool removes, is_dry, stops_before, final, may_grow;
	uint64_t most_bytes;
	/* afterwards */
	unsigned uploaded, failed, planned, removed, left;
	bool ends_run, reaches_limit;
	unsigned turns; /* that have ended otherwise than by the end of the run */
} rows[] = {
	{"all are stored", {STORED, STORED, STORED}, ALL_PUT, 3, .uploaded = 3, .turns = 3},
	{"one has failed", {STORED, TOO_LONG, STORED}, ALL_PUT, 3, .uploaded = 2, .failed = 1,
		.turns = 3},
	/* The first request is refused, and sent again without its checksum. */
	{"the first has failed", {TOO_LONG, TOO_LONG, STORED, STORED}, PUT("a") ALL_PUT, 3,
		.uploaded = 2, .failed = 1, .turns = 3},
	{"one is denied, after others", {STORED, DENIED, STORED}, ALL_PUT, 3, .uploaded = 2,
		.failed = 1, .turns = 3},
	/* Files put aside fail as soon as an object is stored. */
	{"one is denied, before others", {DENIED, STORED, STORED}, ALL_PUT, 3, .uploaded = 2,
		.failed = 1, .turns = 2},
	{"all are denied", {DENIED, DENIED, DENIED}, ALL_PUT, 3, .ends_run = true},
	{"the only one is denied", {DENIED}, PUT("k"), 1, .failed = 1},
	{"what has failed is not removed", {STORED, SHOWN, TOO_LONG, STORED, SHOWN},
		PUT("a") HEAD("a") PUT("b") PUT("k") HEAD("k"), 3, .removes = true, .uploaded = 2,
		.failed = 1, .removed = 2, .turns = 3},
	{"logs that may grow are not removed", {STORED, STORED, STORED}, ALL_PUT, 3,
		.removes = true, .may_grow = true, .uploaded = 3, .turns = 3},
	{"a dry run", {ABSENT, ABSENT, ABSENT}, HEAD("a") HEAD("b") HEAD("k"), 3, .is_dry = true,
		.removes = true, .planned = 3, .turns = 3},
	{"a limit", {STORED}, PUT("a"), 3, .most_bytes = 9, .uploaded = 1, .reaches_limit = true,
		.turns = 1},
	{"a limit within the second file", {STORED, STORED}, PUT("a") PUT("b"), 3, .most_bytes = 10,
		.uploaded = 2, .reaches_limit = true, .turns = 2},
	{"a limit before the host ends", {STORED}, PUT("a"), 3, .most_bytes = 9, .final = true,
		.uploaded = 1, .left = 1, .reaches_limit = true, .turns = 1},
	{"it was stopped before", {NULL}, "", 3, .stops_before = true},
};

static void add_file(struct steps *steps, const char *name)
{
	char path[120];
	snprintf(path, sizeof path, "%s/%s", steps->tree, name);
	const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK_INT(write(fd, "123456789", 9), 9);
	CHECK_INT(futimens(fd, (struct timespec[]){{.tv_sec = 2000}, {.tv_sec = 2000}}), 0);
	close(fd);
}

/* Puts all files of the folder into the queue, as one block. The first one has failed for 7 ms. */
static void feed_all_files(struct steps *steps, bool may_grow)
{
	struct candidate *files[FILES];
	struct scan_entry entry;
	size_t n = 0;
	while (scan_next(steps->run->files.scan, &entry, &steps->problem) > 0 && n < FILES)
		if (entry.kind == SCAN_FILE)
			files[n++] = feed_new_candidate(&entry);
	for (size_t i = 0; i < n; i++)
		files[i]->may_grow = may_grow;
	files[0]->failing_ns = 7 * NS_PER_MS;
	CHECK(queue_add(steps->run->queue, files, n));
	queue_enter_phase(steps->run->queue, QUEUE_COMPLETE);
}

static void test_row(const struct row *row)
{
	struct script_step script[7];
	struct steps steps;
	size_t n = 0;
	for (; n < 7 && row->replies[n]; n++)
		script[n] = (struct script_step){row->replies[n], .close = true};
	if (!steps_make(&steps, "123456789", 9))
		return;
	if (row->n_files > 1) {
		add_file(&steps, "a");
		add_file(&steps, "b");
	}
	steps.options.removes = row->removes;
	steps.options.remove_even = S3ONCE_REMOVE_FOREIGN;
	steps.options.final = row->final;
	steps.options.max_transfer_bytes = row->most_bytes;
	if (!steps_begin_run(&steps, script, n))
		return;
	struct run *run = steps.run;
	run->dry = row->is_dry;
	s3_set_support(run->s3, S3_PUT_CONDITION, S3_YES);
	feed_all_files(&steps, row->may_grow);
	if (row->stops_before)
		run_ask_to_stop(run);
	steps.worker = worker_new(run);
	const uint64_t steps_before = atomic_load(&run->progress.steps);
	worker_run(steps.worker);
	const struct s3once_counts counts = report_get_counts(&run->report);
	bool good = CHECK_INT(counts.uploaded, row->uploaded);
	good &= CHECK_INT(counts.failed, row->failed);
	good &= CHECK_INT(counts.planned, row->planned);
	good &= CHECK_INT(counts.removed, row->removed);
	good &= CHECK_INT(counts.not_removed, 0);
	good &= CHECK_INT(counts.left, row->left);
	good &= CHECK_INT(counts.in_flight, 0);
	good &= CHECK_INT(counts.bytes_under_way, 0);
	good &= CHECK_INT(atomic_load(&run->liveness.tasks), 0);
	good &= CHECK_INT(atomic_load(&run->refusals.n_refused), 0);
	good &= CHECK_INT(atomic_load(&run->end.failed_setup), row->ends_run);
	good &= CHECK_INT(atomic_load(&run->end.limit) != NULL, row->reaches_limit);
	/* The end of each turn is progress. So are bytes that move. */
	good &= CHECK(atomic_load(&run->progress.steps) - steps_before >= row->turns);
	good &= row->turns || CHECK_INT(steps.events[S3ONCE_EVENT_UPLOADED], 0);
	const bool all_in_s3 = row->uploaded == row->n_files || row->planned;
	if (!row->stops_before && !row->ends_run)
		good &= CHECK_INT(counts.oldest_unshipped_ns != INT64_MAX, !all_in_s3);
	/* Each buffer that was lent is back. */
	good &= CHECK_INT(steps.worker->reader.buffer_bytes, READER_OWN_BYTES);
	for (struct candidate *c; (c = queue_pop_file(run->queue)); free(c))
		good &= CHECK(row->reaches_limit || row->stops_before || row->ends_run);
	if (!good)
		fprintf(stderr, "\t%s\n", steps.said);
	if (!steps_asked(&steps, row->asked) || !good)
		fprintf(stderr, "\t%s\n", row->name);
	steps_end(&steps);
}

/* The writes to the marks of files: C claims, D says done, B begins a claim and E ends it. */
static struct {
	struct store_ops ops; /* of the store, with those that are seen here */
	const struct store_ops *real;
	struct run *ends; /* this run ends as soon as one file is done, or claimed */
	bool ends_at_claim;
	struct call_limits visible; /* those of the worker for what becomes visible */
	struct text said;
} seen;

static bool is_of_file(struct item_key key)
{
	return key.sk && strlen(key.sk) == 1 && key.sk[0] != '-';
}

static enum outcome see_write(struct store_conn *conn, struct item_key key,
	const struct item_write *write, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	const enum outcome o = seen.real->write(conn, key, write, limits, ret, ret_problem);
	if (is_of_file(key))
		text_addf(&seen.said, "%c%s ", write->item ? 'C' : 'D', key.sk);
	if (is_of_file(key) && (!write->item || seen.ends_at_claim) && seen.ends)
		run_fail(seen.ends, PROBLEM("as the test wants"));
	return o;
}

static void see_begin(struct store_conn *conn, struct item_key key, const struct item_write *write,
	const struct call_limits *limits)
{
	/* The file has not failed before, and its claim ends with the lease. A power failure may
	 * undo it. */
	CHECK_INT(limits->failed_ms, 0);
	CHECK(limits->abandon == seen.visible.abandon);
	CHECK(write->may_sync_later);
	seen.real->begin_write(conn, key, write, limits);
	text_addf(&seen.said, "B%s ", key.sk);
}

static enum outcome see_end(struct store_conn *conn, struct item *ret, struct problem *ret_problem)
{
	text_add(&seen.said, "E ");
	return seen.real->end_write(conn, ret, ret_problem);
}

/* The claim of the next file is handed in before a file is marked done. A run that ends meanwhile
 * waits for it, too. */
static void test_claims_ahead(void)
{
	static const struct {
		const char *name;
		bool removes, ends;
		unsigned uploaded;
		const char *said;
	} cases[] = {
		{"all are stored", .uploaded = 3, .said = "Ca Bb Da E Bk Db E Dk "},
		{"files that are removed", .removes = true, .uploaded = 3,
			.said = "Ca Da Cb Db Ck Dk "},
		{"the run ends", .ends = true, .uploaded = 1, .said = "Ca Bb Da E "},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct script_step script[6];
		struct steps steps;
		const bool removes = cases[i].removes;
		for (size_t n = 0; n < 6; n++)
			script[n] = (struct script_step){
				removes && n % 2 ? SHOWN : STORED, .close = true};
		if (!steps_make(&steps, "123456789", 9))
			return;
		add_file(&steps, "a");
		add_file(&steps, "b");
		steps.options.removes = removes;
		steps.options.remove_even = S3ONCE_REMOVE_FOREIGN;
		if (!steps_begin_run(&steps, script, 6))
			return;
		struct run *run = steps.run;
		s3_set_support(run->s3, S3_PUT_CONDITION, S3_YES);
		feed_all_files(&steps, false);
		seen.real = run->store->ops;
		seen.ops = *seen.real;
		seen.ops.write = see_write;
		seen.ops.begin_write = see_begin;
		seen.ops.end_write = see_end;
		seen.ends = cases[i].ends ? run : NULL;
		seen.said = TEXT(200);
		run->store->ops = &seen.ops;
		steps.worker = worker_new(run);
		seen.visible = steps.worker->visible_limits;
		worker_run(steps.worker);
		run->store->ops = seen.real;
		const struct s3once_counts counts = report_get_counts(&run->report);
		bool good = CHECK_STRING(text_string(&seen.said), cases[i].said);
		good &= CHECK_INT(counts.uploaded, cases[i].uploaded);
		/* The last file has not failed. */
		if (!cases[i].ends)
			good &= CHECK_INT(steps.worker->limits.failed_ms, 0);
		good &= CHECK_INT(counts.in_flight, 0);
		good &= CHECK_INT(atomic_load(&run->liveness.tasks), 0);
		text_clear(&seen.said);
		for (struct candidate *c; (c = queue_pop_file(run->queue)); free(c))
			good &= CHECK(cases[i].ends);
		if (!good)
			fprintf(stderr, "\t%s\n", cases[i].name);
		steps_end(&steps);
	}
}

/* Begins a run with a worker, and returns its only file, which is not in the queue yet. */
static struct candidate *begin_with_one(
	struct steps *steps, const struct script_step *script, size_t n)
{
	struct scan_entry entry;
	if (!steps_begin_run(steps, script, n))
		return NULL;
	while (scan_next(steps->run->files.scan, &entry, &steps->problem) > 0 &&
		entry.kind != SCAN_FILE)
		;
	struct candidate *c = feed_new_candidate(&entry);
	s3_set_support(steps->run->s3, S3_PUT_CONDITION, S3_YES);
	s3_set_support(steps->run->s3, S3_COMPLETE_CONDITION, S3_YES);
	s3_set_support(steps->run->s3, S3_ECHOES_CHECKSUM, S3_YES);
	steps->worker = worker_new(steps->run);
	return c;
}

/* Puts the file into the queue, and brings it to the end of its turn. */
static void work_on(struct steps *steps, struct candidate *c)
{
	CHECK(queue_add(steps->run->queue, &c, 1));
	queue_enter_phase(steps->run->queue, QUEUE_COMPLETE);
	worker_run(steps->worker);
}

/* With options.final, a file whose turn is cut off between two steps is named as left. */
static void test_cut_off(void)
{
	struct steps steps;
	if (!steps_make(&steps, "123456789", 9))
		return;
	steps.options.final = 1;
	struct candidate *c = begin_with_one(&steps, NULL, 0);
	struct run *run = steps.run;
	seen.real = run->store->ops;
	seen.ops = *seen.real;
	seen.ops.write = see_write;
	seen.ends = run;
	seen.ends_at_claim = true;
	seen.said = TEXT(200);
	run->store->ops = &seen.ops;
	work_on(&steps, c);
	run->store->ops = seen.real;
	CHECK_STRING(text_string(&seen.said), "Ck ");
	CHECK_INT(steps.events[S3ONCE_EVENT_LEFT], 1);
	seen.ends_at_claim = false;
	text_clear(&seen.said);
	steps_asked(&steps, "");
	steps_end(&steps);
}

static enum outcome see_get(struct store_conn *conn, struct item_key key,
	enum consistency consistency, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	if (is_of_file(key))
		text_addf(&seen.said, "G%s ", key.sk);
	return seen.real->get(conn, key, consistency, limits, ret, ret_problem);
}

/* A claim of this very run is no reason to leave the block to another uploader, after which the
 * marks would be read again. */
static void test_own_claim(void)
{
	const struct script_step script[] = {{ABSENT, .close = true}, {STORED, .close = true}};
	struct steps steps;
	struct mark present = {0}, unused = {0};
	struct claim claim = {0};
	if (!steps_make(&steps, "123456789", 9))
		return;
	struct candidate *c = begin_with_one(&steps, script, 2);
	struct run *run = steps.run;
	struct file *file = file_new(run, c);
	const struct mark_ref ref = file_mark_ref(steps.worker, file);
	CHECK_INT(mark_claim(&ref, &present, &claim, &unused, &steps.problem), OUTCOME_OK);
	claim_clear(&claim);
	file->candidate = NULL;
	file_free(file);
	c->mark_state = MARK_FAILED; /* as the scan's thread has seen it */
	seen.real = run->store->ops;
	seen.ops = *seen.real;
	seen.ops.get = see_get;
	seen.said = TEXT(200);
	run->store->ops = &seen.ops;
	work_on(&steps, c);
	run->store->ops = seen.real;
	CHECK_STRING(text_string(&seen.said), "Gk ");
	CHECK_INT(report_get_counts(&run->report).uploaded, 1);
	text_clear(&seen.said);
	steps_asked(&steps, HEAD("k") PUT("k"));
	steps_end(&steps);
}

/* A file that fails for too long has made no progress. */
static void test_giving_up(void)
{
	const struct script_step script[] = {{STEPS_REPLY("500", "", ""), .close = true},
		{STEPS_REPLY("200", "", ""), .close = true}};
	struct steps steps;
	if (!steps_make(&steps, "123456789", 9))
		return;
	struct candidate *c = begin_with_one(&steps, script, 2);
	steps.run->options.give_up_after_ms = 1;
	c->failing_ns = 3600 * NS_PER_S;
	const uint64_t before = atomic_load(&steps.run->progress.steps);
	work_on(&steps, c);
	CHECK_INT(report_get_counts(&steps.run->report).failed, 1);
	/* The end of its turn would be a third step. */
	CHECK_INT(atomic_load(&steps.run->progress.steps) - before, 2);
	steps_asked(&steps, PUT("k"));
	steps_end(&steps);
}

/* The upload of a file is aborted if no later run will use its key. */
static void test_stranded(void)
{
	struct script_step script[8];
	static char id[] = "c0ffee";
	struct steps steps;
	if (!steps_make(&steps, "123456789", 9))
		return;
	for (size_t i = 0; i < 6; i++)
		script[i] = (struct script_step){ABSENT, .close = true};
	script[6] = (struct script_step){
		CREATED, .close = true, .meanwhile = steps_append, .arg = steps.path};
	script[7] = (struct script_step){STEPS_REPLY("204", "", ""), .close = true};
	struct candidate *c = begin_with_one(&steps, script, 8);
	steps.run->options.part_bytes = 5;
	c->content_id = id;
	work_on(&steps, c);
	CHECK_INT(report_get_counts(&steps.run->report).failed, 1);
	steps_asked(&steps, HEAD("k.gz") HEAD("k.bz2") HEAD("k.xz") HEAD("k.zst") HEAD("k.lz4")
				    HEAD("k") "POST /b/k?uploads=\nDELETE /b/k?uploadId=up\n");
	steps_end(&steps);
}

int main(void)
{
	test_claims_ahead();
	test_cut_off();
	test_own_claim();
	test_giving_up();
	test_stranded();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		test_row(&rows[i]);
	return check_result();
}
