/* The consequence of each outcome for a file: it is retried after a pause, it fails, it is put
 * aside until it is clear whether S3 refuses all files, or it ends the run. */
#include "base/clock.h"
#include "steps.h"
#include "upload/file/refusals.h"

#define THERE  STEPS_REPLY("200", "", "")
#define GONE   STEPS_REPLY("404", "", "")
#define HIDDEN STEPS_REPLY("403", "", "")

/* The settings of the object. */
static const struct s3once_setting settings[] = {{"storage-class", "STANDARD_IA"}, {"tag", "a=b"},
	{"sse", "aws:kms"}, {"sse-kms-key-id", "k"}};

static const struct row {
	const char *name;
	enum outcome outcome;
	const char *code;
	int status;
	size_t settings;
	bool has_stored, is_over, of_marks;
	unsigned failures;
	const char *bucket; /* the answer to a HEAD of the bucket; NULL: none is sent */
	enum step step;
	const char *said; /* a part of the sentence */
} rows[] = {
	/* These pass. */
	{"no reply", OUTCOME_LOST, .step = STEP_LATER, .said = "will be retried later"},
	{"a strange reply", OUTCOME_LOST, .status = 200, .step = STEP_SETTLED, .said = "as told"},
	{"a strange reply, after good ones", OUTCOME_LOST, .status = 200, .has_stored = true,
		.step = STEP_LATER, .said = "will be retried later"},
	{"errors", OUTCOME_TRANSIENT, .status = 500, .step = STEP_LATER, .said = "retried later"},
	{"conflicts", OUTCOME_CONFLICT, .status = 409, .step = STEP_LATER, .said = "retried later"},
	{"throttled", OUTCOME_THROTTLED, .status = 503, .step = STEP_LATER,
		.said = "retried later"},
	{"errors of the marks", OUTCOME_TRANSIENT, .of_marks = true, .step = STEP_LATER,
		.said = "retried later"},
	{"the lease is late", OUTCOME_ABANDONED, .step = STEP_LATER},
	/* It is unknown whether all files are refused. */
	{"denied", OUTCOME_DENIED, .status = 403, .step = STEP_ASIDE},
	{"denied, and others were not", OUTCOME_DENIED, .status = 403, .has_stored = true,
		.step = STEP_SETTLED, .said = "as told"},
	{"a setting", OUTCOME_SETTING, "InvalidStorageClass", 400, .settings = 2,
		.step = STEP_ASIDE},
	{"a setting of this file", OUTCOME_SETTING, "InvalidStorageClass", 400, .settings = 2,
		.has_stored = true, .step = STEP_SETTLED,
		.said = "--storage-class STANDARD_IA: as"},
	{"another setting of this file", OUTCOME_SETTING, "InvalidTag", 400, .settings = 2,
		.has_stored = true, .step = STEP_SETTLED, .said = "--tag: as told"},
	{"a kind of codes", OUTCOME_SETTING, "KMS.NotFoundException", 400, .settings = 4,
		.has_stored = true, .step = STEP_SETTLED, .said = "--sse-kms-key-id k: as told"},
	{"a setting that it does not have", OUTCOME_SETTING, "InvalidTag", 400, .settings = 1,
		.has_stored = true, .step = STEP_SETTLED, .said = "as told"},
	{"a code that only begins like one", OUTCOME_SETTING, "InvalidTagging", 400, .settings = 2,
		.has_stored = true, .step = STEP_SETTLED, .said = "as told"},
	{"vague, of several settings", OUTCOME_INVALID, "InvalidArgument", 400, .settings = 2,
		.step = STEP_ASIDE},
	{"vague, of several settings of this file", OUTCOME_INVALID, "InvalidRequest", 400,
		.settings = 2, .has_stored = true, .step = STEP_SETTLED,
		.said = "the reason may be one of --storage-class STANDARD_IA, --tag: as"},
	{"vague, of one setting of this file", OUTCOME_UNSUPPORTED, "NotImplemented", 501,
		.settings = 1, .has_stored = true, .step = STEP_SETTLED,
		.said = "the reason may be --storage-class STANDARD_IA: as told"},
	{"vague, without settings", OUTCOME_INVALID, "InvalidArgument", 400, .step = STEP_SETTLED,
		.said = "as told"},
	{"unsupported, without settings", OUTCOME_UNSUPPORTED, "NotImplemented", 501,
		.step = STEP_SETTLED, .said = "as told"},
	{"a clear reason", OUTCOME_INVALID, "KeyTooLongError", 400, .settings = 2,
		.step = STEP_SETTLED, .said = "as told"},
	/* The bucket is looked for. */
	{"not found", OUTCOME_ABSENT, .status = 404, .bucket = THERE, .step = STEP_LATER,
		.said = "S3 answers 404 for this key, although bucket b is there"},
	{"not found again", OUTCOME_ABSENT, .status = 404, .failures = 1, .bucket = THERE,
		.step = STEP_LATER, .said = "retried later"},
	{"not found at last", OUTCOME_ABSENT, .status = 404, .failures = 2, .bucket = THERE,
		.step = STEP_ASIDE},
	{"not found at last, unlike others", OUTCOME_ABSENT, .status = 404, .failures = 2,
		.has_stored = true, .bucket = THERE, .step = STEP_SETTLED,
		.said = "is there: the server may not take such keys"},
	{"a grantee is not found", OUTCOME_ABSENT, "NoSuchKey", 404, .settings = 1, .failures = 2,
		.has_stored = true, .bucket = THERE, .step = STEP_SETTLED,
		.said = "S3 answers 404 for this file"},
	{"there is no bucket", OUTCOME_ABSENT, .status = 404, .bucket = GONE, .step = STEP_OVER,
		.said = "the bucket b does not exist"},
	{"the bucket is not shown", OUTCOME_ABSENT, .status = 404, .bucket = HIDDEN,
		.step = STEP_ASIDE},
	{"there is no bucket, it says", OUTCOME_SETUP, "NoSuchBucket", 404, .bucket = GONE,
		.step = STEP_OVER, .said = "the bucket b does not exist"},
	{"there is one, though", OUTCOME_SETUP, "NoSuchBucket", 404, .bucket = THERE,
		.step = STEP_LATER, .said = "S3 answers 404"},
	/* Nothing will succeed. */
	{"a wrong setup", OUTCOME_SETUP, "InvalidAccessKeyId", 403, .step = STEP_OVER,
		.said = "as told"},
	{"the marks are denied", OUTCOME_DENIED, .status = 400, .of_marks = true, .step = STEP_OVER,
		.said = "as told"},
	{"there is no table", OUTCOME_ABSENT, .status = 400, .of_marks = true, .step = STEP_OVER,
		.said = "as told"},
	/* The file itself. */
	{"of this host", OUTCOME_LOCAL, .step = STEP_SETTLED, .said = "as told"},
	{"damaged on its way", OUTCOME_BAD_DIGEST, .status = 400, .step = STEP_SETTLED,
		.said = "as told"},
	{"a row that cannot be", OUTCOME_INVALID, .of_marks = true, .step = STEP_SETTLED,
		.said = "as told"},
	/* The end of the run comes first. */
	{"denied, and it is over", OUTCOME_DENIED, .is_over = true, .step = STEP_OVER},
	{"not found, and it is over", OUTCOME_ABSENT, .is_over = true, .step = STEP_OVER},
	{"errors, and it is over", OUTCOME_TRANSIENT, .is_over = true, .step = STEP_OVER},
	{"given up, and it is over", OUTCOME_ABANDONED, .is_over = true, .step = STEP_OVER},
};

/* Begins a run whose file is claimed and about to be sent. */
static bool begin(struct steps *steps, size_t n_settings)
{
	if (!steps_make(steps, "123456789", 9))
		return false;
	steps->options.settings = settings;
	steps->options.n_settings = n_settings;
	if (!steps_begin(steps, NULL, 0) || !CHECK_INT(steps_claim(steps), STEP_NEXT))
		return false;
	steps->file->step = STEP_SEND;
	return true;
}

static void test_row(const struct row *row)
{
	struct steps steps;
	if (!begin(&steps, row->settings))
		return;
	struct file *file = steps.file;
	struct run *run = steps.run;
	struct problem problem = {.text = "as told", .status = row->status};
	struct mark_ref ref = file_mark_ref(steps.worker, file);
	ref.limits = (struct call_limits){0}; /* the run may be over */
	snprintf(problem.code, sizeof problem.code, "%s", row->code ? row->code : "");
	atomic_store(&run->refusals.has_stored, row->has_stored);
	file->candidate->failures = row->failures;
	steps_answer(&steps, row->bucket);
	steps_answer(&steps, row->bucket);
	if (row->is_over)
		run_fail(run, PROBLEM("another reason"));
	const enum step step = (row->of_marks ? file_handle_marks_outcome : file_handle_outcome)(
		steps.worker, file, row->outcome, &problem);
	const bool has_failed = step == STEP_SETTLED;
	const bool is_retried = step == STEP_LATER && row->outcome != OUTCOME_ABANDONED;
	const bool ends = step == STEP_OVER && !row->is_over;
	struct mark mark;
	bool good = CHECK_INT(step, row->step);
	good &= CHECK_INT(steps.events[S3ONCE_EVENT_FAILED], has_failed);
	good &= CHECK_INT(steps.events[S3ONCE_EVENT_RETRY], is_retried);
	good &= CHECK_INT(steps.events[S3ONCE_EVENT_FATAL], ends || row->is_over);
	good &= CHECK_INT(atomic_load(&run->end.failed_setup), ends || row->is_over);
	good &= CHECK_INT(mark_get(&ref, &mark, &steps.problem), OUTCOME_OK);
	good &= CHECK_INT(mark.state, has_failed ? MARK_FAILED : MARK_CLAIMED);
	good &= CHECK_INT(atomic_load(&run->refusals.n_refused), step == STEP_ASIDE);
	mark_clear(&mark);
	if (row->said && strcmp(row->said, "as told") == 0)
		good &= CHECK_STRING(steps.said, row->said); /* nothing is added */
	else if (row->said)
		good &= steps_say(&steps, row->said);
	if (step == STEP_ASIDE) { /* it is the refusals' file by now, and has no descriptor */
		good &= CHECK_INT(file->fd, -1);
		steps.file = NULL;
	}
	script_stop(&steps.server);
	good &= CHECK_INT(steps.server.n_requests > 0, row->bucket != NULL);
	if (row->bucket)
		good &= CHECK(strncmp(steps.server.requests[0].head, "HEAD /b", 7) == 0);
	if (!good)
		fprintf(stderr, "\t%s: %s\n", row->name, steps.said);
	steps_end(&steps);
}

/* The time at which the file that was put back is due: it comes out of the queue behind the first
 * of two files, and before the second one. */
static bool check_due(struct steps *steps, uint64_t after_ns, uint64_t before_ns)
{
	char order[8] = "";
	size_t n = 0;
	const uint64_t due_ns[] = {after_ns, before_ns};
	for (size_t i = 0; i < 2; i++) {
		struct candidate *c = feed_new_candidate(&(struct scan_entry){
			.key = i ? "2" : "1", .path = "", .relative = "", .suffix = "", .size = 9});
		queue_put_back_later(steps->run->queue, &c, 1, due_ns[i]);
	}
	for (struct candidate *c; (c = queue_pop_file(steps->run->queue)) && n < 7; free(c))
		order[n++] = *c->key;
	order[n] = 0;
	return CHECK_STRING(order, "1k2");
}

/* How often a file is retried, and when: the pause doubles from a second to thirty, and the time in
 * which it failed ends it, with all pauses, but without the time that it waited for its turn. */
static void test_retries(void)
{
	static const uint64_t pauses_s[] = {1, 2, 4, 8, 16, 30, 30, 30};
	for (unsigned failures = 0; failures < 8; failures++) {
		for (unsigned over = 0; over < 2; over++) {
			struct steps steps;
			if (!begin(&steps, 0))
				return;
			struct candidate *c = steps.file->candidate;
			const uint64_t limit_ns = steps.run->options.give_up_after_ms * NS_PER_MS;
			/* In its first turn only the time of the service counts. */
			const uint64_t turn_ns = failures ? 50 * NS_PER_S : 40 * NS_PER_S;
			struct problem problem = {
				.text = "as told", .status = 500, .failing_ms = 40 * 1000};
			c->failures = failures;
			steps.file->begun_ns = clock_boot_ns() - 50 * NS_PER_S;
			c->failing_ns = limit_ns - turn_ns - (over ? 0 : NS_PER_S);
			const uint64_t failing_ns = c->failing_ns, begun_ns = clock_boot_ns();
			const enum step step = file_handle_outcome(
				steps.worker, steps.file, OUTCOME_TRANSIENT, &problem);
			const uint64_t spent_ns = clock_boot_ns() - begun_ns;
			const uint64_t pause_ns = pauses_s[failures] * NS_PER_S;
			bool good = CHECK_INT(step, over ? STEP_SETTLED : STEP_LATER);
			if (over) {
				good &= CHECK(steps.file->has_given_up);
				char said[60] = "as told";
				if (failures)
					snprintf(said, sizeof said,
						"failed after %u attempts: as told", failures + 1);
				good &= CHECK_STRING(steps.said, said);
			} else {
				good &= CHECK_INT(c->failures, failures + 1);
				const uint64_t more_ns = c->failing_ns - failing_ns;
				good &= CHECK(more_ns >= turn_ns + pause_ns);
				good &= CHECK(more_ns <= turn_ns + pause_ns + spent_ns);
				good &= check_due(&steps, begun_ns + pause_ns - 1,
					begun_ns + spent_ns + pause_ns + 1);
			}
			if (!good)
				fprintf(stderr, "\t%u failures, over %u: %s\n", failures, over,
					steps.said);
			steps_end(&steps);
		}
	}
}

/* The lease was late: half a second later the claim is judged again, and no failure counts. */
static void test_late_lease(void)
{
	struct steps steps;
	if (!begin(&steps, 0))
		return;
	struct candidate *c = steps.file->candidate;
	const uint64_t begun_ns = clock_boot_ns();
	CHECK_INT(file_handle_outcome(steps.worker, steps.file, OUTCOME_ABANDONED, &steps.problem),
		STEP_LATER);
	CHECK_INT(c->failures, 0);
	CHECK_INT(c->failing_ns, 0);
	check_due(&steps, begun_ns + NS_PER_S / 2 - 1, clock_boot_ns() + NS_PER_S / 2 + 1);
	steps_end(&steps);
}

/* Long enough for a file to give up, and not yet for the clock of the run, which would end the
 * request for the bucket. */
#define STILL_S 200

/* Nothing has moved for this time. */
static void stand_still(struct progress_clock *clock, uint64_t still_s)
{
	/* The progress so far was counted, so that it does not begin the time once more. */
	clock->locked.steps = atomic_load(&clock->steps);
	clock->locked.still_ns = still_s * NS_PER_S;
}

/* When every file fails, it is the run that gives up, and not the files that happened to be under
 * way. */
static void test_all_fail(void)
{
	static const struct {
		int status;
		bool of_marks;
		uint64_t still_s;
		const char *bucket; /* the answer to a HEAD of the bucket; NULL: none is sent */
		enum step step;
	} rows_of_all[] = {
		{0, false, STILL_S, NULL, STEP_OVER},
		{503, false, STILL_S, STEPS_REPLY("502", "", ""), STEP_OVER},
		{503, false, STILL_S, STEPS_REPLY("503", "", ""), STEP_OVER},
		{0, true, STILL_S, NULL, STEP_OVER},
		{500, true, STILL_S, NULL, STEP_OVER},
		/* S3 answers for the bucket. */
		{503, false, STILL_S, THERE, STEP_SETTLED},
		{503, false, STILL_S, HIDDEN, STEP_SETTLED},
		/* Other files move. */
		{0, false, 1, NULL, STEP_SETTLED},
		{503, false, 1, NULL, STEP_SETTLED},
		{500, true, 1, NULL, STEP_SETTLED},
	};
	for (size_t i = 0; i < sizeof rows_of_all / sizeof *rows_of_all; i++) {
		struct steps steps;
		if (!begin(&steps, 0))
			return;
		struct run *run = steps.run;
		struct problem problem = {.text = "as told", .status = rows_of_all[i].status};
		stand_still(&run->progress, rows_of_all[i].still_s);
		steps.file->candidate->failing_ns = run->options.give_up_after_ms * NS_PER_MS;
		steps_answer(&steps, rows_of_all[i].bucket);
		steps_answer(&steps, rows_of_all[i].bucket);
		const enum step step =
			(rows_of_all[i].of_marks ? file_handle_marks_outcome : file_handle_outcome)(
				steps.worker, steps.file, OUTCOME_TRANSIENT, &problem);
		bool good = CHECK_INT(step, rows_of_all[i].step);
		good &= CHECK_INT(run_is_over(run), step == STEP_OVER);
		good &= CHECK_INT(steps.events[S3ONCE_EVENT_FAILED], step == STEP_SETTLED);
		script_stop(&steps.server);
		good &= CHECK_INT(steps.server.n_requests > 0, rows_of_all[i].bucket != NULL);
		if (!good)
			fprintf(stderr, "\trow %zu of all\n", i);
		steps_end(&steps);
	}
}

/* The file does not hide that the bucket was removed meanwhile. */
static void test_the_bucket_goes(void)
{
	struct steps steps;
	if (!begin(&steps, 0))
		return;
	struct problem problem = {.text = "as told", .status = 503};
	stand_still(&steps.run->progress, STILL_S);
	steps.file->candidate->failing_ns = steps.run->options.give_up_after_ms * NS_PER_MS;
	steps_answer(&steps, GONE);
	steps_answer(&steps, GONE);
	CHECK_INT(file_handle_outcome(steps.worker, steps.file, OUTCOME_TRANSIENT, &problem),
		STEP_OVER);
	CHECK_INT(steps.events[S3ONCE_EVENT_FATAL], 1);
	steps_say(&steps, "the bucket b does not exist");
	steps_end(&steps);
}

/* Several files were refused, and nothing was stored: the run is set up wrongly. Until that is
 * clear, and if something is stored after all, none of them decides for the others. */
static void test_refusals(void)
{
	static const struct {
		unsigned n;
		bool at_end, is_at_work, has_stored, is_others, is_stopped, has_block, is_over;
		unsigned failed, fatal, left; /* left in the list */
	} settles[] = {
		{1, .left = 1},
		{1, .at_end = true, .failed = 1},
		{1, .at_end = true, .is_at_work = true, .left = 1},
		{1, .has_stored = true, .failed = 1},
		{2, .left = 2},
		{2, .at_end = true, .fatal = 1},
		{2, .at_end = true, .is_at_work = true, .left = 2},
		{2, .has_stored = true, .is_at_work = true, .failed = 2},
		{2, .at_end = true, .has_stored = true, .failed = 2},
		{9, .left = 9},
		{10, .fatal = 1},
		{10, .has_block = true, .left = 10},
		{10, .is_at_work = true, .is_others = true, .left = 10},
		{10, .at_end = true, .is_at_work = true, .is_others = true, .left = 10},
		{10, .is_at_work = true, .has_stored = true, .failed = 10},
		{10, .is_at_work = true, .is_stopped = true, .left = 10},
		{1, .at_end = true, .is_over = true},
		{2, .at_end = true, .is_over = true, .has_stored = true},
	};
	for (size_t i = 0; i < sizeof settles / sizeof *settles; i++) {
		struct steps steps;
		if (!begin(&steps, 0))
			return;
		struct run *run = steps.run;
		struct problem problem = {.text = "as told", .status = 403};
		run->options.final = 1;
		for (unsigned k = 0; k < settles[i].n; k++) {
			struct file *file = file_new(run,
				feed_new_candidate(&(struct scan_entry){
					.key = "f", .path = "f", .relative = "f", .suffix = ""}));
			CHECK_INT(file_handle_outcome(steps.worker, file, OUTCOME_DENIED, &problem),
				STEP_ASIDE);
		}
		atomic_store(&run->refusals.has_stored, settles[i].has_stored);
		atomic_store(&run->liveness.tasks, settles[i].is_at_work);
		steps.worker->has_put_aside = !settles[i].is_others;
		if (settles[i].is_stopped)
			run_ask_to_stop(run);
		if (settles[i].has_block)
			queue_add(run->queue,
				(struct candidate *[]){feed_new_candidate(&(struct scan_entry){
					.key = "g", .path = "g", .relative = "g", .suffix = ""})},
				1);
		atomic_store(&run->end.fenced, settles[i].is_over);
		refusals_settle(steps.worker, settles[i].at_end ? AT_END : AFTER_A_TASK);
		/* If the run ends before it is clear, each of them is not finished. */
		const bool are_unfinished = settles[i].fatal || settles[i].is_over;
		bool good = CHECK_INT(steps.events[S3ONCE_EVENT_FAILED], settles[i].failed);
		good &= CHECK_INT(steps.events[S3ONCE_EVENT_FATAL], settles[i].fatal);
		good &= CHECK_INT(atomic_load(&run->refusals.n_refused), settles[i].left);
		good &= CHECK_INT(
			steps.events[S3ONCE_EVENT_LEFT], are_unfinished ? settles[i].n : 0);
		good &= CHECK(!steps.worker->has_put_aside);
		if (settles[i].fatal)
			good &= steps_say(&steps, "files that were tried are refused, such as s3:");
		if (!good)
			fprintf(stderr, "\tsettling %zu: %s\n", i, steps.said);
		atomic_store(&run->liveness.tasks, 0);
		steps_end(&steps);
	}
}

int main(void)
{
	test_all_fail();
	test_the_bucket_goes();
	test_refusals();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		test_row(&rows[i]);
	test_retries();
	test_late_lease();
	return check_result();
}
