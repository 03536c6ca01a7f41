#include "base/clock.h"
#include "base/text.h"
#include "upload/file/worker.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct file *file_new(struct run *run, struct candidate *candidate)
{
	struct file *file = calloc(1, sizeof *file);
	if (!file)
		return NULL;
	file->candidate = candidate;
	file->target =
		object_rules_target(run->bodies.rules, candidate->object, candidate->relative);
	file->fd = -1;
	file->begun_ns = clock_boot_ns();
	file->share = (struct share){.report = &run->report,
		.queue = run->queue,
		.bandwidth = run->bodies.bandwidth,
		.user = {run_ask_is_over, run}};
	return file;
}

void file_free(struct file *file)
{
	if (!file)
		return;
	share_end(&file->share);
	if (file->candidate && !file->is_in_s3 && !file->is_left_out)
		report_unshipped(file->share.report, file->candidate->mtime_ns);
	if (file->fd >= 0)
		close(file->fd);
	free(file->candidate);
	mark_clear(&file->seen);
	claim_clear(&file->claim);
	free(file);
}

struct mark_ref file_mark_ref(struct worker *worker, const struct file *file)
{
	return (struct mark_ref){
		.conn = worker->marks,
		.space = &worker->run->space,
		.key = file->candidate->key,
		.session = session_id(worker->run->session),
		.source = worker->run->files.sources_of_marks[file->candidate->source],
		.suffix = candidate_suffix(file->candidate),
		.limits = run_limits(worker->run),
	};
}

struct report_file file_about(const struct file *file)
{
	const struct candidate *c = file->candidate;
	return (struct report_file){c->path, c->object, file->fd >= 0 ? file->state.size : c->size};
}

struct s3_meta file_meta(const struct worker *worker, const struct file *file)
{
	struct s3_meta meta = {
		.mtime_ns = file->state.mtime_ns,
		.ctime_ns = file->state.ctime_ns,
		.part_bytes = file->plan.n_parts ? file->plan.part_bytes : 0,
		.log_offset = file->candidate->offset,
	};
	snprintf(meta.table, sizeof meta.table, "%s", worker->run->space.settings.table_id);
	snprintf(meta.claim, sizeof meta.claim, "%s", file->claim.id);
	snprintf(meta.content, sizeof meta.content, "%s", file->candidate->content);
	if (!file->encoding)
		return meta;
	snprintf(meta.encoding, sizeof meta.encoding, "%s", file->encoding->name);
	snprintf(meta.suffix, sizeof meta.suffix, "%s", candidate_suffix(file->candidate));
	meta.content_bytes = file->state.size;
	if (!*meta.content && file->summed && file->sums.kinds & DIGEST_SHA256)
		hex_encode(file->sums.sha256, sizeof file->sums.sha256, meta.content);
	return meta;
}

struct s3_condition file_condition(
	const struct worker *worker, const struct file *file, enum s3_ability ability)
{
	struct s3_condition condition = {0};
	const bool replaces = *file->replaces.etag != 0;
	if (file->unconditional ||
		s3_knows(worker->run->s3, replaces ? S3_IF_MATCH : ability) == S3_NO)
		return condition;
	condition.if_none_match = !replaces;
	condition.if_match = replaces ? file->replaces.etag : NULL;
	return condition;
}

void file_explain_denial(
	enum outcome outcome, const struct s3_condition *condition, struct problem *problem)
{
	if (outcome == OUTCOME_DENIED && condition->if_match)
		problem_prefix(problem,
			"the object is not replaced: S3 wants s3:GetObject beside s3:PutObject to "
			"compare its etag (If-Match), and a policy may let objects only be made");
}

bool file_etag_is_md5(const struct worker *worker, const struct s3_object *object)
{
	return !object->etag_is_opaque && proof_etag_is_md5(object->etag) &&
	       s3_knows(worker->run->s3, S3_ETAG_IS_MD5) == S3_YES;
}

bool file_needs_look(const struct worker *worker, const struct file *file, enum s3_ability ability)
{
	if (file->must_look || file->unconditional)
		return true;
	if (*file->replaces.etag)
		ability = S3_IF_MATCH;
	else if (worker->run->options.trust_conditions)
		return false;
	return s3_knows(worker->run->s3, ability) != S3_YES;
}

void file_note_whole(struct file *file)
{
	file->sent_part_bytes = 0;
	file->parts_sum[0] = '\0';
}

void file_note_parts(
	struct file *file, const struct sums *sums, const struct plan *plan, enum checksum kind)
{
	file->sent_part_bytes = plan->part_bytes;
	mark_parts_sum_of(sums, plan->n_parts, kind, file->parts_sum);
}

struct judged file_judged(const struct worker *worker, const struct file *file,
	const struct s3_object *object, enum proof proof)
{
	return (struct judged){.object = object,
		.proof = proof,
		.file = {file->state.size, file->state.mtime_ns, file->candidate->content},
		.suffix = file->encoding ? candidate_suffix(file->candidate) : "",
		.table = worker->run->space.settings.table_id,
		.claim = &file->claim,
		.replaces = file->replaces.etag};
}
