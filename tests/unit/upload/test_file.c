/* Values derived from a file under way, and the end of its turn, each as a table of all cases. */
#include "base/clock.h"
#include "steps.h"

/* Begins a file that is claimed. */
static bool begin(struct steps *steps)
{
	return steps_make(steps, "123456789", 9) && steps_begin(steps, NULL, 0) &&
	       CHECK_INT(steps_claim(steps), STEP_NEXT);
}

/* The event and the step by which a turn ends for which nothing is left to do. */
static void test_settled(void)
{
	static const enum s3once_event_type others[] = {S3ONCE_EVENT_OUTDATED, S3ONCE_EVENT_PLANNED,
		S3ONCE_EVENT_WAITING, S3ONCE_EVENT_OVERSIZED, S3ONCE_EVENT_UNDERSIZED};
	struct steps steps;
	if (!begin(&steps))
		return;
	struct file *file = steps.file;
	steps.run->report.reports_skipped = true;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		memset(steps.events, 0, sizeof steps.events);
		CHECK_INT(file_settle(steps.worker, file, others[i]), STEP_LEFT_OUT);
		CHECK_INT(steps.events[others[i]], 1);
	}
	for (unsigned k = 0; k < 16; k++) {
		const bool was_marked_done = k & 1, is_done = k & 2, is_ours = k & 4,
			   was_sent = k & 8;
		const bool was_done_here = was_marked_done && is_done && is_ours;
		const enum s3once_event_type event = !was_done_here ? S3ONCE_EVENT_SKIPPED
						     : was_sent     ? S3ONCE_EVENT_UPLOADED
								    : S3ONCE_EVENT_ADOPTED;
		file->candidate->was_marked_done = was_marked_done;
		file->candidate->was_sent = was_sent;
		file->seen_mark.state = is_done ? MARK_DONE : MARK_CLAIMED;
		snprintf(file->seen_mark.session, sizeof file->seen_mark.session, "%s",
			is_ours ? session_id(steps.run->session) : "another");
		memset(steps.events, 0, sizeof steps.events);
		bool good = CHECK_INT(file_was_done_here(steps.worker, file), was_done_here);
		good &= CHECK_INT(
			file_settle(steps.worker, file, S3ONCE_EVENT_SKIPPED), STEP_IN_S3);
		good &= CHECK_INT(steps.events[event], 1);
		/* Its content was read for a mark that was refreshed, whoever wrote the mark. */
		good &= CHECK_INT(
			file_settle(steps.worker, file, S3ONCE_EVENT_REFRESHED), STEP_PROVEN);
		good &= CHECK_INT(steps.events[S3ONCE_EVENT_REFRESHED], 1);
		if (!good)
			fprintf(stderr, "\tcase %u\n", k);
	}
	steps_end(&steps);
}

/* A file is one that is not in S3 if its turn ends before it is settled there or left out. What was
 * put back is decided by its next turn. */
static void test_not_in_s3(void)
{
	static const struct {
		enum step step;
		bool is_shipped;
	} ends[] = {
		{STEP_OPEN, false},
		{STEP_CLAIM, false},
		{STEP_ELSEWHERE, false},
		{STEP_LOOK, false},
		{STEP_SEND, false},
		{STEP_SETTLED, false},
		{STEP_STRANDED, false},
		{STEP_LEFT_OUT, true},
		{STEP_IN_S3, true},
		{STEP_PROVEN, true},
	};
	for (size_t i = 0; i < 2 * sizeof ends / sizeof *ends; i++) {
		const bool is_put_back = i % 2 != 0;
		struct steps steps;
		if (!begin(&steps))
			return;
		steps.file->step = ends[i / 2].step;
		if (is_put_back) {
			CHECK_INT(file_put_back(steps.worker, steps.file, 0), STEP_LATER);
			CHECK(!steps.file->candidate);
		}
		file_progress_add_stored(&steps.file->progress, 5);
		file_free(steps.file);
		steps.file = NULL;
		bool good = CHECK_INT(atomic_load(&steps.run->report.oldest_unshipped_ns),
			is_put_back || ends[i / 2].is_shipped ? INT64_MAX : INT64_C(1000000000000));
		good &= CHECK_INT(atomic_load(&steps.run->report.under_way), 0);
		if (!good)
			fprintf(stderr, "\tend %zu\n", i);
		steps_end(&steps);
	}
}

/* The time for which a file has failed counts for all requests of its turn. */
static void test_time_of_failing(void)
{
	struct steps steps;
	if (!begin(&steps))
		return;
	steps.file->candidate->failing_ns = 7 * NS_PER_MS;
	file_limit_requests(steps.worker, steps.file->candidate);
	CHECK_INT(steps.worker->limits.failed_ms, 7);
	CHECK_INT(steps.worker->visible_limits.failed_ms, 7);
	steps_end(&steps);
}

/* A file that is put back is judged by its mark as it will be then. */
static void test_put_back(void)
{
	struct steps steps;
	if (!begin(&steps))
		return;
	steps.file->candidate->mark_state = MARK_ABSENT;
	CHECK_INT(file_put_back(steps.worker, steps.file, 0), STEP_LATER);
	struct candidate *c = queue_pop_file(steps.run->queue);
	CHECK(c && c->mark_state == MARK_CLAIMED);
	free(c);
	steps_end(&steps);
}

/* The mark of a failure is written only after the claim, and not by a dry run. */
static void test_failed(void)
{
	for (unsigned k = 0; k < 4; k++) {
		const bool is_claimed = k & 1, is_dry = k & 2;
		struct steps steps;
		if (!begin(&steps))
			return;
		steps.file->step = is_claimed ? STEP_ELSEWHERE : STEP_CLAIM;
		steps.run->dry = is_dry;
		CHECK_INT(file_fail(steps.worker, steps.file, PROBLEM("why")), STEP_SETTLED);
		steps.run->dry = false;
		CHECK_INT(steps.events[S3ONCE_EVENT_FAILED], 1);
		struct mark mark = steps_mark(&steps);
		CHECK_INT(mark.state, is_claimed && !is_dry ? MARK_FAILED : MARK_CLAIMED);
		CHECK(mark.state != MARK_FAILED || strcmp(mark.error, "why") == 0);
		mark_clear(&mark);
		steps_end(&steps);
	}
}

/* A file that an earlier turn has claimed may end before it is claimed again: it is missing, or is
 * not to be sent any more. Its mark ends with it, but never the claim of another run. */
static void test_earlier_claim(void)
{
	for (unsigned k = 0; k < 8; k++) {
		const bool is_ours = k & 1, is_left_out = k & 2, is_dry = k & 4;
		struct steps steps;
		if (!begin(&steps))
			return;
		struct file *file = steps.file;
		mark_clear(&file->seen_mark);
		file->seen_mark = steps_mark(&steps);
		if (!is_ours)
			memset(file->seen_mark.session, 'e', ID_CHARS);
		claim_clear(&file->claim);
		file->step = STEP_OPEN;
		steps.run->dry = is_dry;
		if (is_left_out)
			CHECK_INT(file_settle(steps.worker, file, S3ONCE_EVENT_WAITING),
				STEP_LEFT_OUT);
		else
			CHECK_INT(file_fail(steps.worker, file, PROBLEM("gone")), STEP_SETTLED);
		steps.run->dry = false;
		struct mark mark = steps_mark(&steps);
		if (!CHECK_INT(mark.state, is_ours && !is_dry ? MARK_FAILED : MARK_CLAIMED))
			fprintf(stderr, "\tcase %u\n", k);
		mark_clear(&mark);
		steps_end(&steps);
	}
}

/* The condition of a write, and whether a HEAD has to come before it: by what is known of the very
 * condition that the write has. */
static void test_conditions(void)
{
	static const enum s3_support known[] = {S3_UNKNOWN, S3_YES, S3_NO};
	struct steps steps;
	if (!begin(&steps))
		return;
	struct file *file = steps.file;
	for (unsigned k = 0; k < 3 * 3 * 3 * 8; k++) {
		const enum s3_support put = known[k % 3], complete = known[k / 3 % 3],
				      if_match = known[k / 9 % 3];
		const bool replaces = k / 27 & 1, is_unconditional = k / 27 & 2,
			   is_large = k / 27 & 4;
		const enum s3_support of_this = replaces ? if_match : is_large ? complete : put;
		const enum s3_feature feature = is_large ? S3_COMPLETE_CONDITION : S3_PUT_CONDITION;
		s3_set_support(steps.run->s3, S3_PUT_CONDITION, put);
		s3_set_support(steps.run->s3, S3_COMPLETE_CONDITION, complete);
		s3_set_support(steps.run->s3, S3_IF_MATCH, if_match);
		snprintf(
			file->replaced_etag, sizeof file->replaced_etag, "%s", replaces ? "e" : "");
		file->is_unconditional = is_unconditional;
		const struct s3_condition got = file_condition(steps.worker, file, feature);
		const bool has_one = !is_unconditional && of_this != S3_NO;
		bool good = CHECK_INT(got.if_none_match, has_one && !replaces);
		good &= CHECK_STRING(got.if_match, has_one && replaces ? "e" : NULL);
		good &= CHECK_INT(file_needs_look(steps.worker, file, feature),
			is_unconditional || of_this != S3_YES);
		if (!good)
			fprintf(stderr, "\tcase %u\n", k);
	}
	steps_end(&steps);
}

/* The metadata by which a later run knows an object again. */
static void test_metadata(void)
{
	struct steps steps;
	if (!begin(&steps))
		return;
	struct file *file = steps.file;
	const char *table = steps.run->space.settings.table_id;
	struct s3_meta meta = file_meta(steps.worker, file);
	CHECK_STRING(meta.table_id, table);
	CHECK_STRING(meta.claim_id, file->claim.id);
	CHECK(*meta.table_id && *meta.claim_id);
	CHECK_STRING(meta.content_id, "");
	CHECK_STRING(meta.encoding, "");
	CHECK_INT(meta.mtime_ns, file->mtime_ns);
	CHECK_INT(meta.ctime_ns, file->state.ctime_ns);
	CHECK_INT(meta.part_bytes, 0);
	CHECK_INT(meta.log_offset, 0);
	CHECK_INT(meta.content_bytes, 0);
	file->plan.part_bytes = 7; /* without parts, it is no size of parts */
	CHECK_INT(file_meta(steps.worker, file).part_bytes, 0);
	file->plan.n_parts = 2;
	CHECK_INT(file_meta(steps.worker, file).part_bytes, 7);
	file->candidate->offset = 11;
	CHECK_INT(file_meta(steps.worker, file).log_offset, 11);
	/* The SHA-256 is the id of a content that is compressed, where it has no other one. */
	struct encoding encoding = {.name = "zstd"};
	file->encoding = &encoding;
	strcpy(file->candidate->suffix, ".zst");
	meta = file_meta(steps.worker, file);
	CHECK_STRING(meta.encoding, "zstd");
	CHECK_STRING(meta.suffix, ".zst");
	CHECK_INT(meta.content_bytes, 9);
	CHECK_STRING(meta.content_id, "");
	file->content_sums.kinds = DIGEST_SHA256;
	memset(file->content_sums.sha256, 0xab, sizeof file->content_sums.sha256);
	meta = file_meta(steps.worker, file);
	CHECK_INT(strlen(meta.content_id), 64);
	CHECK(strncmp(meta.content_id, "abab", 4) == 0);
	char id[] = "id", *none = file->candidate->content_id;
	file->candidate->content_id = id;
	CHECK_STRING(file_meta(steps.worker, file).content_id, "id");
	CHECK_STRING(file_opened_version(steps.worker, file).content_id, "id");
	file->candidate->content_id = none;
	file->candidate->is_piped = true;
	const struct file_version asked = file_opened_version(steps.worker, file);
	CHECK(asked.is_piped && asked.size == 9 && asked.mtime_ns == file->mtime_ns);
	file->candidate->is_piped = false;
	/* The size that is told is that of the open file. */
	file->candidate->size = 77;
	CHECK_INT(file_about(file).bytes, 9);
	close(file->fd);
	file->fd = -1;
	CHECK_INT(file_about(file).bytes, 77);
	steps_end(&steps);
}

int main(void)
{
	test_settled();
	test_not_in_s3();
	test_time_of_failing();
	test_put_back();
	test_failed();
	test_earlier_claim();
	test_conditions();
	test_metadata();
	return check_result();
}
