#include "audit/verify_manifest.h"
#include "audit/verify_tasks.h"
#include "base/quote.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* HEAD shows the one that S3 keeps, which the run has sent; what else is known of an object was
 * computed besides, and is one of the later ones. Of content the strongest says the most. */
static const enum checksum by_head[] = {CHECKSUM_CRC32C, CHECKSUM_CRC32, CHECKSUM_CRC64NVME,
	CHECKSUM_SHA1, CHECKSUM_SHA256, CHECKSUM_MD5};
static const enum checksum by_content[] = {CHECKSUM_SHA256, CHECKSUM_SHA1, CHECKSUM_CRC64NVME,
	CHECKSUM_CRC32C, CHECKSUM_CRC32, CHECKSUM_MD5};

static void choose_sums(
	const struct manifest_entry *entry, const enum checksum *order, struct version *ret)
{
	for (size_t i = 0; i < CHECKSUMS; i++) {
		const char *sum = entry->sums[order[i]], *name = checksum_kinds[order[i]].name;
		const bool is_of_parts = strchr(sum, '-') != NULL;
		if (*sum && is_of_parts && !*ret->parts_sum)
			snprintf(ret->parts_sum, sizeof ret->parts_sum, "%s:%s", name, sum);
		else if (*sum && !is_of_parts && !*ret->sum)
			snprintf(ret->sum, sizeof ret->sum, "%s:%s", name, sum);
	}
}

/* The entry as if it were a mark. NULL: out of memory. */
static struct mark_row *row_of(const struct verify *verify, const struct manifest_entry *entry)
{
	struct mark mark = {.state = MARK_DONE,
		.has_done = true,
		.done = {.size = entry->size, .etag_is_md5 = entry->etag_is_md5}};
	snprintf(mark.done.etag, sizeof mark.done.etag, "%s", entry->etag);
	snprintf(mark.done.version_id, sizeof mark.done.version_id, "%s", entry->version_id);
	choose_sums(entry, verify->by == VERIFY_BY_DOWNLOAD ? by_content : by_head, &mark.done);
	struct mark_row *row = mark_row_new(entry->key, &mark);
	if (row)
		row->is_of_manifest = true;
	return row;
}

/* False: the run has ended. */
static bool add_entry(
	struct verify_tasks *tasks, const char *bucket, const struct manifest_entry *entry)
{
	struct problem problem;
	if (strcmp(entry->bucket, bucket) != 0) {
		problem_set(&problem, "it is an object of bucket %s", quote(entry->bucket).text);
		verify_tasks_tell(tasks, FINDING_ERROR, entry->key, &problem);
		return true;
	}
	if (!verify_subset_has(&tasks->verify->subset, entry->key))
		return true;
	struct mark_row *row = row_of(tasks->verify, entry);
	return row && verify_tasks_add(tasks, row, entry->key, "");
}

static bool is_stopped(const struct verify *verify)
{
	return verify->visitor.is_stopped(verify->visitor.arg);
}

/* 0 at the end, 1 if it was stopped or has ended, or the error of the reader. */
static int add_all(struct verify_tasks *tasks, const char *bucket, struct manifest_reader *reader,
	struct problem *ret_problem)
{
	struct manifest_entry entry;
	int r;
	while ((r = manifest_reader_next(reader, &entry, ret_problem)) > 0) {
		verify_tasks_count_listed(tasks);
		if (is_stopped(tasks->verify) || !add_entry(tasks, bucket, &entry))
			return 1;
	}
	return r;
}

enum outcome verify_manifest(const struct verify *verify, const char *bucket,
	struct manifest_reader *reader, struct verify_end *ret, bool *ret_is_damaged,
	struct problem *ret_problem)
{
	struct verify_tasks *tasks = malloc(sizeof *tasks);
	*ret = (struct verify_end){0};
	*ret_is_damaged = false;
	if (!tasks) {
		problem_set(ret_problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	enum outcome o = OUTCOME_LOCAL;
	int r = -ENOMEM;
	if (verify_tasks_init(tasks, verify, ret_problem) == 0)
		r = add_all(tasks, bucket, reader, ret_problem);
	verify_tasks_finish(tasks);
	*ret_is_damaged = r == -EBADMSG;
	if (r >= 0)
		o = tasks->locked.outcome;
	if (r >= 0 && o != OUTCOME_OK)
		*ret_problem = tasks->locked.problem;
	ret->counts = tasks->locked.counts;
	ret->is_complete = r == 0 && o == OUTCOME_OK && !tasks->locked.left_after;
	verify_tasks_clear(tasks);
	free(tasks);
	return o;
}
