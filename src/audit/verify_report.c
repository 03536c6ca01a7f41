#include "audit/verify_report.h"
#include "audit/expected.h"
#include "audit/inspect.h"
#include "base/clock.h"
#include "base/csv.h"
#include "base/json_text.h"
#include "base/quote.h"
#include "scan/key/family.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_BETWEEN_PROGRESS NS_PER_S
/* Marks that stand for one object: with and without each suffix. */
#define MARKS_MAX (FAMILY_SUFFIXES + 1)

/* A mark whose object is at its turn, and what the rows so far say about it. */
struct reported_mark {
	struct mark_row *mark; /* owned */
	enum finding finding;
	struct problem problem;
};

struct comparing {
	const struct verify *verify;
	struct batch_report *report;
	struct inspection look;
	struct expected *expected;
	struct mark_row *mark; /* the next one, owned; NULL: none any more */
	struct batch_row row;  /* the next one */
	bool has_row;
	struct reported_mark waiting[MARKS_MAX];
	size_t n;
	struct verify_counts counts;
	uint64_t told_ns;
};

/* A sum of the report and the one that the mark has of the same kind, or "", in the same form. */
struct sums_told {
	char report[S3_SUM_MAX + 1], mark[S3_SUM_MAX + 1];
};

static void find_sums(const struct mark_row *mark, enum checksum kind, bool is_of_parts,
	const char *told, struct sums_told *ret)
{
	const struct s3_sum sum = mark_sum_told(is_of_parts ? mark->parts_sum : mark->sum);
	unsigned char md5[CHECKSUM_BYTES_MAX];
	snprintf(ret->report, sizeof ret->report, "%s", told);
	*ret->mark = '\0';
	if (*sum.text && sum.kind == kind) {
		snprintf(ret->mark, sizeof ret->mark, "%s", sum.text);
	} else if (kind == CHECKSUM_MD5 && !is_of_parts && mark->etag_is_md5 &&
		   strlen(mark->etag) == 32 &&
		   checksum_from_base64(kind, told, strlen(told), md5) == 0) {
		snprintf(ret->mark, sizeof ret->mark, "%s", mark->etag);
		hex_encode(md5, checksum_kinds[kind].bytes, ret->report);
	}
}

/* Of the checksum of parts one side may name their number, "-N". */
static bool is_same_sum(const struct sums_told *sums)
{
	const char *a = sums->report, *b = sums->mark;
	const size_t n = strcspn(a, "-");
	return n == strcspn(b, "-") && memcmp(a, b, n) == 0 &&
	       (!a[n] || !b[n] || strcmp(a + n, b + n) == 0);
}

static enum finding compare_result(
	const struct mark_row *mark, const json_t *result, struct problem *ret_problem)
{
	const char *sum = json_text(result, "checksum_base64"), *etag = json_text(result, "etag");
	const char *algorithm = json_text(result, "checksumAlgorithm");
	const bool is_of_parts = strcmp(json_text(result, "checksumType"), "COMPOSITE") == 0;
	const enum checksum kind = checksum_named(algorithm, strlen(algorithm));
	struct sums_told sums = {0};
	if (!*sum || !*algorithm) {
		problem_set(ret_problem, "the report has no checksum of it");
		return FINDING_ERROR;
	}
	if (kind != CHECKSUMS)
		find_sums(mark, kind, is_of_parts, sum, &sums);
	if (*sums.mark && is_same_sum(&sums))
		return FINDING_SAME;
	if (*sums.mark) {
		problem_set(ret_problem,
			"its content differs: the report has the %s %s, and its mark %s",
			quote(algorithm).text, quote(sums.report).text, sums.mark);
		return FINDING_DIFFERS;
	}
	if (*mark->etag && *etag && strcmp(mark->etag, etag) != 0) {
		problem_set(ret_problem,
			"its etag differs: %s in the report, and %s when it was uploaded",
			quote(etag).text, mark->etag);
		return FINDING_DIFFERS;
	}
	problem_set(ret_problem,
		"the report has its %s%s, and its mark has none to compare it with (%s): run a job "
		"that computes another checksum, or verify --download",
		quote(algorithm).text, is_of_parts ? " of the parts" : "",
		*mark->sum ? quote_bytes(mark->sum, strcspn(mark->sum, ":")).text : "no checksum");
	return FINDING_ERROR;
}

/* Compares a mark with a task of the job for its object. SAME, MISSING, or DIFFERS or ERROR with a
 * sentence. NOTHING: the task was about another version. */
static enum finding compare_row(
	const struct mark_row *mark, const struct batch_row *row, struct problem *ret_problem)
{
	if (*row->version_id && *mark->version_id && strcmp(row->version_id, mark->version_id) != 0)
		return FINDING_NOTHING;
	if (row->has_failed && row->is_absent)
		return FINDING_MISSING;
	if (row->has_failed) {
		problem_set(ret_problem, "S3 Batch Operations has not computed its checksum: %s %s",
			quote(row->code).text, quote(row->message).text);
		return FINDING_ERROR;
	}
	json_t *result = json_loads(row->message, 0, NULL);
	const enum finding finding = compare_result(mark, result, ret_problem);
	json_decref(result);
	return finding;
}

/* One row that is right is enough: the others are about other versions. */
static void add_row(struct reported_mark *reported, const struct batch_row *row)
{
	struct problem problem = {0};
	if (reported->finding == FINDING_SAME)
		return;
	const enum finding finding = compare_row(reported->mark, row, &problem);
	if (finding != FINDING_NOTHING) {
		reported->finding = finding;
		reported->problem = problem;
	}
}

static void tell(struct comparing *comparing, enum finding finding, const char *key,
	const struct problem *problem)
{
	const struct verify_visitor *visitor = &comparing->verify->visitor;
	const bool has_sentence = finding == FINDING_DIFFERS || finding == FINDING_ERROR;
	comparing->counts.of[finding]++;
	if (finding != FINDING_UNFINISHED && finding != FINDING_NOTHING)
		visitor->found(visitor->arg, finding, key, has_sentence ? problem : NULL);
}

static enum outcome next_mark(struct comparing *comparing, struct problem *ret_problem)
{
	enum outcome o;
	do {
		free(comparing->mark);
		comparing->mark = NULL;
		o = expected_next(comparing->expected, &comparing->mark, ret_problem);
	} while (o == OUTCOME_OK && comparing->mark && comparing->mark->state == MARK_FORGOTTEN);
	if (o != OUTCOME_OK)
		problem_prefix(ret_problem, "the marks cannot be read");
	return o;
}

static enum outcome next_row(struct comparing *comparing, struct problem *ret_problem)
{
	const int r = batch_report_next(comparing->report, &comparing->row, ret_problem);
	comparing->has_row = r > 0;
	comparing->counts.listed += comparing->has_row;
	return r < 0 ? OUTCOME_LOCAL : OUTCOME_OK;
}

/* A mark that does not agree is read again: somebody may be at work on its file. */
static enum outcome conclude_mark(
	struct comparing *comparing, struct reported_mark *reported, struct problem *ret_problem)
{
	const struct mark_row *mark = reported->mark;
	const int64_t made_s = batch_report_made_s(comparing->report);
	struct mark_row *now;
	if (mark->state == MARK_DONE && reported->finding == FINDING_NOTHING) {
		problem_set(&reported->problem, "the report does not have it");
		reported->finding = FINDING_ERROR;
	}
	if (mark->state != MARK_DONE) {
		reported->finding = inspect_state(mark->state, &reported->problem);
	} else if (reported->finding != FINDING_SAME) {
		const enum outcome o = inspect_read(&comparing->look, mark->key, &now, ret_problem);
		if (o != OUTCOME_OK)
			return o;
		if (!mark_row_is_same(mark, now) || (made_s && now->at_s > made_s))
			reported->finding = FINDING_UNFINISHED;
		free(now);
	}
	tell(comparing, reported->finding, mark->object_key, &reported->problem);
	return OUTCOME_OK;
}

/* Rows of an object for which the marks that were read have no entry. */
static enum outcome conclude_unknown(
	struct comparing *comparing, const char *key, struct problem *ret_problem)
{
	struct mark_row *now;
	if (verify_is_own(comparing->verify, key))
		return OUTCOME_OK;
	const enum outcome o = inspect_find(&comparing->look, key, &now, ret_problem);
	if (o == OUTCOME_OK)
		tell(comparing, now ? FINDING_UNFINISHED : FINDING_UNKNOWN, key, NULL);
	free(now);
	return o;
}

static void drop_waiting(struct comparing *comparing)
{
	while (comparing->n)
		free(comparing->waiting[--comparing->n].mark);
}

/* The next object: all of its marks against all of its rows. */
static enum outcome compare_object(
	struct comparing *comparing, const char *key, struct problem *ret_problem)
{
	enum outcome o = OUTCOME_OK;
	while (o == OUTCOME_OK && comparing->mark && comparing->n < MARKS_MAX &&
		strcmp(comparing->mark->object_key, key) == 0) {
		comparing->waiting[comparing->n++] =
			(struct reported_mark){.mark = comparing->mark, .finding = FINDING_NOTHING};
		comparing->mark = NULL;
		o = next_mark(comparing, ret_problem);
	}
	while (o == OUTCOME_OK && comparing->has_row && strcmp(comparing->row.key, key) == 0) {
		for (size_t i = 0; i < comparing->n; i++)
			add_row(&comparing->waiting[i], &comparing->row);
		o = next_row(comparing, ret_problem);
	}
	if (o == OUTCOME_OK && !comparing->n)
		o = conclude_unknown(comparing, key, ret_problem);
	for (size_t i = 0; i < comparing->n && o == OUTCOME_OK; i++)
		o = conclude_mark(comparing, &comparing->waiting[i], ret_problem);
	drop_waiting(comparing);
	return o;
}

static void tell_progress(struct comparing *comparing)
{
	const struct verify_visitor *visitor = &comparing->verify->visitor;
	const uint64_t now = clock_boot_ns();
	if (now - comparing->told_ns < NS_BETWEEN_PROGRESS)
		return;
	comparing->told_ns = now;
	visitor->progress(visitor->arg, &comparing->counts);
}

/* OK with *ret_all false: it was stopped. */
static enum outcome compare_all(
	struct comparing *comparing, bool *ret_all, struct problem *ret_problem)
{
	const struct verify *verify = comparing->verify;
	struct text key = TEXT(CSV_RECORD_BYTES);
	enum outcome o = expected_new(comparing->look.store, verify->space, &verify->range,
		&comparing->look.limits, &comparing->expected, ret_problem);
	if (o == OUTCOME_OK)
		o = next_row(comparing, ret_problem);
	if (o == OUTCOME_OK)
		o = next_mark(comparing, ret_problem);
	while (o == OUTCOME_OK && (comparing->mark || comparing->has_row) &&
		!verify->visitor.is_stopped(verify->visitor.arg)) {
		const bool is_row =
			!comparing->mark ||
			(comparing->has_row &&
				strcmp(comparing->row.key, comparing->mark->object_key) < 0);
		text_reset(&key);
		text_add(&key, is_row ? comparing->row.key : comparing->mark->object_key);
		o = compare_object(comparing, text_string(&key), ret_problem);
		tell_progress(comparing);
	}
	text_clear(&key);
	*ret_all = o == OUTCOME_OK && !comparing->mark && !comparing->has_row;
	return o == OUTCOME_ABANDONED ? OUTCOME_OK : o;
}

enum outcome verify_report(const struct verify *verify, struct batch_report *report,
	struct verify_end *ret, struct problem *ret_problem)
{
	struct comparing *comparing = calloc(1, sizeof *comparing);
	*ret = (struct verify_end){0};
	if (!comparing) {
		problem_set(ret_problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	comparing->verify = verify;
	comparing->report = report;
	comparing->told_ns = clock_boot_ns();
	enum outcome o = OUTCOME_LOCAL;
	if (inspect_init(&comparing->look, verify))
		problem_set(ret_problem, PROBLEM_NO_DESCRIPTORS);
	else
		o = compare_all(comparing, &ret->is_complete, ret_problem);
	ret->counts = comparing->counts;
	drop_waiting(comparing);
	expected_free(comparing->expected);
	free(comparing->mark);
	inspect_clear(&comparing->look);
	free(comparing);
	return o;
}
