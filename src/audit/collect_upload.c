#include "audit/collect_upload.h"
#include "audit/bucket_known.h"
#include "aws/wait.h"
#include "base/clock.h"
#include "base/text.h"
#include "marks/judge.h"
#include <stdlib.h>
#include <string.h>

#define ABORTS_MAX 5 /* of one upload: parts that were under way may come after each */

/* One upload while its mark is ours. */
struct abortion {
	const struct leftover *leftover;
	struct claim claim;
	const char *object; /* its key */
	struct call_limits limits;
	struct problem problem;
};

struct mark_ref leftover_ref(const struct leftover *leftover)
{
	const struct collect_options *options = leftover->options;
	return (struct mark_ref){.conn = leftover->hand->marks,
		.space = options->place.space,
		.key = leftover->key,
		.session = session_id(options->session),
		.source = options->source,
		/* The version that is done keeps its object. */
		.suffix = leftover->mark->suffix,
		.limits = options->place.limits};
}

void leftover_tell(const struct leftover *leftover, enum mark_fate fate, const char *why,
	const struct problem *problem)
{
	const struct mark *mark = leftover->mark;
	struct text object = TEXT(2048);
	text_add(&object, leftover->key);
	text_add(&object, mark->upload.suffix);
	const struct mark_told told = {
		.fate = fate,
		.key = leftover->key,
		.object = object.error ? leftover->key : text_string(&object),
		.upload_id = mark->upload.id ? mark->upload.id : "",
		.state = mark->state,
		.why = why,
		.problem = problem,
	};
	leftover->options->teller.tell(leftover->options->teller.arg, &told);
	text_clear(&object);
}

/* For call_limits. A request that is sent while another uploader may hold the mark could end that
 * uploader's upload. */
static bool is_not_ours(void *arg)
{
	const struct collect_options *options = arg;
	const struct call_limits *limits = &options->place.limits;
	return (limits->abandon && limits->abandon(limits->abandon_arg)) ||
	       session_is_fenced(options->session) ||
	       clock_boot_ns() >= session_lease_ends_ns(options->session);
}

/* Whether the upload is to be aborted, or else why not. */
enum abort_choice { GO_ON, LEAVE, ERROR };

/* An object that is not the version which the mark knows may be what became of the upload: on some
 * servers an abort then damages the object. It has the size of the file, unless it was compressed.
 */
static enum abort_choice look_at_result(struct abortion *a)
{
	const struct s3_target target = {.key = a->object};
	struct s3_object now = {0};
	const enum outcome o =
		s3_head_object(a->leftover->hand->s3, &target, &a->limits, &now, &a->problem);
	if (o == OUTCOME_ABSENT)
		return GO_ON;
	if (o != OUTCOME_OK)
		return ERROR;
	const bool may_be_it = *a->claim.upload.encoding || now.size == a->claim.upload.size;
	return may_be_it && !judge_is_done_version(&a->claim, &now) ? LEAVE : GO_ON;
}

static int count_part(void *arg, const struct s3_part *part)
{
	++*(unsigned *)arg;
	return 0;
}

/* OK: S3 has it; NO_UPLOAD: it is gone. */
static enum outcome list_uploaded_parts(struct abortion *a, unsigned *ret_parts)
{
	const struct s3_target target = {.key = a->object};
	*ret_parts = 0;
	return s3_list_parts(a->leftover->hand->s3, &target, a->claim.upload.id, &a->limits,
		count_part, ret_parts, &a->problem);
}

/* The upload's id is not known there: it is gone, if this is the bucket. */
static enum abort_choice is_gone(struct abortion *a)
{
	const struct leftover *leftover = a->leftover;
	const enum outcome o =
		bucket_is_known(&leftover->options->place, leftover->hand, &a->problem);
	return o == OUTCOME_OK || o == OUTCOME_ABSENT ? GO_ON : ERROR;
}

static enum abort_choice abort_and_await(struct abortion *a)
{
	unsigned parts;
	enum outcome o = list_uploaded_parts(a, &parts);
	if (o == OUTCOME_NO_UPLOAD)
		return is_gone(a);
	for (unsigned n = 0; n < ABORTS_MAX && o == OUTCOME_OK; n++) {
		o = s3_abort_upload(a->leftover->hand->s3, a->object, a->claim.upload.id,
			&a->limits, &a->problem);
		if (o == OUTCOME_OK)
			o = list_uploaded_parts(a, &parts);
		if (o == OUTCOME_NO_UPLOAD || (o == OUTCOME_OK && !parts))
			return GO_ON;
		if (o == OUTCOME_OK)
			o = wait_within(&a->limits, 200U << n, &a->problem);
	}
	if (o == OUTCOME_OK)
		problem_set(&a->problem, "S3 still lists parts of its upload after it was aborted: "
					 "run gc again");
	return ERROR;
}

/* Ends our claim: without the upload if it is gone, else as it was. */
static enum outcome end_claim(
	struct abortion *a, enum abort_choice verdict, struct problem *ret_problem)
{
	struct mark_ref ref = leftover_ref(a->leftover);
	const char *reason = a->claim.before.error;
	if (!reason)
		reason = "its uploader ended before it was done";
	if (verdict == GO_ON)
		return mark_release(&ref, &a->claim, reason, ret_problem);
	ref.at_s = a->claim.before.at_s;
	return mark_fail(&ref, &a->claim, reason, ret_problem);
}

static enum outcome abort_claimed(struct abortion *a, struct problem *ret_problem)
{
	struct text object = TEXT(2048);
	text_add(&object, a->leftover->key);
	text_add(&object, a->claim.upload.suffix);
	a->object = text_string(&object);
	problem_set(&a->problem, "out of memory");
	enum abort_choice verdict = object.error ? ERROR : look_at_result(a);
	if (verdict == GO_ON)
		verdict = abort_and_await(a);
	const enum outcome o = end_claim(a, verdict, ret_problem);
	/* The mark's upload is with the claim now, for whoever is told. */
	open_upload_move(&a->leftover->mark->upload, &a->claim.upload);
	a->leftover->mark->state = a->claim.before.state;
	if (o == OUTCOME_OK && verdict == GO_ON)
		leftover_tell(a->leftover, FATE_ABORTED, "", NULL);
	else if (o == OUTCOME_OK && verdict == LEAVE)
		leftover_tell(a->leftover, FATE_KEPT,
			"an object is there that its upload may have become: the next run that finds "
			"the file compares them",
			NULL);
	else if (o == OUTCOME_OK)
		leftover_tell(a->leftover, FATE_FAILED, "", &a->problem);
	text_clear(&object);
	return o;
}

static enum outcome take_over(struct abortion *a, struct problem *ret_problem)
{
	const struct leftover *leftover = a->leftover;
	struct mark_ref ref = leftover_ref(leftover);
	struct mark seen = {0};
	/* Nobody goes on with the upload by that: if gc is killed, the next one finds it as old. */
	ref.at_s = leftover->mark->at_s;
	const enum outcome o = mark_take(&ref, leftover->mark, &a->claim, &seen, ret_problem);
	mark_clear(&seen);
	if (o == OUTCOME_REFUSED)
		leftover_tell(
			leftover, FATE_KEPT, "another uploader has changed it meanwhile", NULL);
	return o;
}

enum outcome collect_upload(const struct leftover *leftover, struct problem *ret_problem)
{
	const struct collect_options *options = leftover->options;
	struct abortion a = {.leftover = leftover,
		.limits = {.abandon = is_not_ours, .abandon_arg = (void *)(uintptr_t)options}};
	const struct call_limits *limits = &options->place.limits;
	if (options->only_show) {
		leftover_tell(leftover, FATE_ABORTABLE, "", NULL);
		return OUTCOME_OK;
	}
	enum outcome o = session_begin(options->session, leftover->hand->marks, ret_problem);
	if (o == OUTCOME_OK &&
		!session_may_begin(options->session, limits->abandon, limits->abandon_arg)) {
		problem_set(ret_problem, "gc was stopped, or has lost its lease: run it again");
		o = OUTCOME_ABANDONED;
	}
	if (o == OUTCOME_OK)
		o = take_over(&a, ret_problem);
	if (o == OUTCOME_OK)
		o = abort_claimed(&a, ret_problem);
	claim_clear(&a.claim);
	return o == OUTCOME_REFUSED ? OUTCOME_OK : o;
}
