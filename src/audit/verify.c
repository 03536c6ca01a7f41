/* Two of the three ways to verify. verify_run() merges the bucket's listing with the marks, both
 * sorted by the objects' keys, and verify_manifest() goes through the entries of a manifest. The
 * third, one mark alone, is verify_one() in verify_tasks.c.
 *
 * A finding that follows from the listing alone is reported at once. Anything else, such as an
 * object that is not in the listing, becomes a task for verify_tasks.c. Only such a task can find
 * that an object is missing. Nothing is written. */
#include "audit/verify.h"
#include "aws/retry.h"
#include "base/checksum.h"
#include "base/clock.h"
#include "manifest/manifest_file.h"
#include "manifest/manifest_name.h"
#include "marks/judge_object.h"
#include "s3/object_stream.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The clock is read only once in this many keys, to see whether progress() is due. */
#define KEYS_PER_CLOCK_READ 100
/* If a subset is given in bytes, its share of all keys is counted in thousand-millionths. This is
 * the `of` of such a subset. */
#define SHARES 1000000000U

bool verify_subset_has(const struct verify_subset *subset, const char *key)
{
	if (!subset->of)
		return true;
	uint64_t hash = fnv_add(FNV_EMPTY, key, strlen(key));
	/* Mixes the high bits in, since the low bits of FNV depend too little on the first
	 * characters of the key. The multiplier has to stay as it is, so that a subset has the same
	 * keys each time. */
	hash ^= hash >> 32;
	hash *= 0xD6E8FEB86659FD93ULL;
	hash ^= hash >> 32;
	hash %= subset->of;
	return hash >= subset->from && hash < subset->to;
}

/* Sets a subset that is given in bytes to its share of the keys, which is subset->bytes divided by
 * the `total` bytes of all objects. The share is rounded up to at least one of SHARES. */
static void set_subset_share(struct verify_subset *subset, uint64_t total)
{
	const bool is_all = subset->bytes >= total;
	const double share = is_all ? 1 : (double)subset->bytes / (double)total;
	subset->from = 0;
	subset->to = is_all ? SHARES : (uint64_t)(share * SHARES) + 1;
	subset->of = SHARES;
}

/* If the subset is given in bytes, turns it into a share: of the sizes of the objects of all done
 * marks below the prefix. */
static enum outcome resolve_subset_bytes(
	struct verify *verify, struct store_conn *conn, struct problem *ret_problem)
{
	const struct mark_range range = {.prefix = verify->range.prefix};
	struct mark_stream *stream;
	struct packed_mark *row = NULL;
	enum outcome o;
	uint64_t total = 0;
	if (!verify->subset.bytes) /* the subset is not given in bytes */
		return OUTCOME_OK;
	if (mark_stream_new(conn, verify->place.space, &range, &verify->place.limits, &stream) < 0)
		return outcome_no_memory(ret_problem);
	while ((o = mark_stream_next(stream, &row, ret_problem)) == OUTCOME_OK && row) {
		const struct mark mark = mark_unpack(row);
		if (mark.state == MARK_DONE)
			total += version_object_bytes(&mark.done);
		free(row);
	}
	mark_stream_free(stream);
	set_subset_share(&verify->subset, total);
	return o;
}

/* The merge of both streams. */
struct merging {
	const struct verify *verify; /* points to `sized` in verify_run() */
	struct mark_stream *marks;
	struct object_stream *objects;
	struct packed_mark *row;        /* the next mark, owned; NULL: there are no more marks */
	struct mark mark;               /* the same mark, unpacked; borrowed from `row` */
	const struct s3_listed *object; /* the next object, borrowed; NULL: no more objects */
	bool object_has_mark;           /* a mark of the next object was met */
	struct verify_tasks tasks;
	char after[KEY_BYTES_MAX + SUFFIX_MAX + 1]; /* all keys up to this one were merged */
	uint64_t progress_ns;                       /* time of the last call of progress() */
};

/* Reads the next mark, and skips those that say forgotten. */
static enum outcome next_mark(struct merging *merging, struct problem *ret_problem)
{
	do {
		free(merging->row);
		merging->row = NULL;
		const enum outcome o = mark_stream_next(merging->marks, &merging->row, ret_problem);
		if (o != OUTCOME_OK) {
			problem_prefix(ret_problem, "the marks cannot be read");
			return o;
		}
		merging->mark = mark_unpack(merging->row); /* mark_unpack(NULL) is an absent mark */
	} while (merging->mark.state == MARK_FORGOTTEN);
	return OUTCOME_OK;
}

/* Reads the next object of the listing, and counts it. A listing that is not in byte order ends
 * there, as if there were no more objects. */
static enum outcome next_object(struct merging *merging, struct problem *ret_problem)
{
	const struct verify_visitor *visitor = &merging->verify->visitor;
	merging->object_has_mark = false;
	const enum outcome o = object_stream_next(merging->objects, &merging->object, ret_problem);
	if (o == OUTCOME_OK && merging->object)
		verify_tasks_count_listed(&merging->tasks);
	if (o == OUTCOME_UNSUPPORTED) {
		/* The findings so far are right all the same: an object that the listing lacked at
		 * its place was reported as missing only after a HEAD. */
		merging->object = NULL;
		visitor->warned(visitor->arg,
			PROBLEM("%s, and calls itself '%s'; from there on each file is compared by a "
				"HEAD, as with --head, and objects that have no mark are not looked for",
				ret_problem->text,
				quote(s3_server(merging->verify->place.s3)).text));
		return OUTCOME_OK;
	}
	if (o == OUTCOME_DENIED)
		problem_prefix(ret_problem,
			"the bucket's listing is refused; allow s3:ListBucket of the bucket");
	else if (o != OUTCOME_OK)
		problem_prefix(ret_problem, "the bucket cannot be listed");
	return o;
}

/* Whether the listing shows the object of a done mark with the size and the etag that the mark has.
 * `listed` is NULL if the listing does not have the object. */
static bool is_as_listed(const struct version *done, const struct s3_listed *listed)
{
	if (!listed)
		return false;
	const struct recorded recorded = recorded_object(done);
	struct s3_object object = {.size = listed->size};
	snprintf(object.etag, sizeof object.etag, "%s", listed->etag);
	return recorded_matches(&recorded, &object) == PROOF_YES;
}

/* Compares the next mark with its object in the listing. If that is enough, the finding is
 * reported. Otherwise a task is added for a closer look. `object` is NULL if the listing does not
 * have the object. False: the run has ended. */
static bool merge_mark(
	struct merging *merging, const struct s3_listed *object, const char *object_key)
{
	const struct verify *verify = merging->verify;
	const struct mark *mark = &merging->mark;
	struct packed_mark *row = merging->row;
	const bool wants_more =
		verify->by != VERIFY_BY_LISTING && verify_subset_has(&verify->subset, row->key);
	const bool is_same =
		mark->state == MARK_DONE && !wants_more && is_as_listed(&mark->done, object);
	if (is_same || mark->state == MARK_FORGOTTEN) {
		verify_tasks_report(&merging->tasks, is_same ? FINDING_SAME : FINDING_NOTHING,
			object_key, NULL);
		return true;
	}
	merging->row = NULL; /* the task owns the row, and frees it */
	return verify_tasks_add(&merging->tasks, row, object_key, merging->after);
}

/* Whether the key is one that the job makes on another host. */
static bool is_elsewhere(const struct verify *verify, const char *key)
{
	if (!verify->template)
		return false;
	const size_t n = strlen(verify->job_prefix);
	return strncmp(key, verify->job_prefix, n) == 0 &&
	       key_template_is_elsewhere(verify->template, key + n);
}

/* Skips the next object of the listing, whose key is less than that of the next mark's object. If
 * no mark of it was met, a task looks for its mark. False: the run has ended. */
static bool merge_object(struct merging *merging, const char *key)
{
	const struct verify *verify = merging->verify;
	const int64_t modified_s = merging->object->modified_s;
	const int64_t age_s = store_time_s(verify->place.store) - modified_s;
	/* Objects that s3once writes without a mark. */
	const bool is_own = manifest_is_key_or_signature(key) ||
			    (verify->id_object && strcmp(verify->id_object, key) == 0);
	if (merging->object_has_mark || is_own)
		return true;
	/* `gc --keep-marks` may have removed the mark of this object: the object was stored before
	 * its mark said done, so it is at least as old as the mark. */
	const bool is_aged = verify->keep_marks_s && modified_s >= 0 && age_s > 0 &&
			     (uint64_t)age_s >= verify->keep_marks_s;
	const enum finding finding = is_elsewhere(verify, key) ? FINDING_ELSEWHERE
				     : is_aged                 ? FINDING_AGED
							       : FINDING_UNKNOWN;
	if (finding == FINDING_UNKNOWN)
		return verify_tasks_add(&merging->tasks, NULL, key, merging->after);
	verify_tasks_report(&merging->tasks, finding, key, NULL);
	return true;
}

/* One step of the merge. Takes the next mark or the next object, whichever key is less, and reads
 * another one in its place. If both keys are equal, it takes the mark. A later step skips the
 * object, since several marks may belong to it. False: the run has ended. The reason is in
 * *ret_outcome and *ret_problem or, if both are untouched, in the pool. */
static bool merge_next_key(
	struct merging *merging, enum outcome *ret_outcome, struct problem *ret_problem)
{
	const struct s3_listed *object = merging->object;
	/* As strcmp(): greater than 0 if the object is first, 0 if the mark belongs to this
	 * object. */
	const int order = !merging->row ? 1
			  : !object     ? -1
					: strcmp(merging->row->object_key, object->key);
	const bool takes_object = order > 0;
	char key[KEY_BYTES_MAX + SUFFIX_MAX + 1];
	snprintf(key, sizeof key, "%s", takes_object ? object->key : merging->row->object_key);
	merging->object_has_mark |= (order == 0);
	const bool goes_on = takes_object ? merge_object(merging, key)
					  : merge_mark(merging, order == 0 ? object : NULL, key);
	if (!goes_on)
		return false;
	*ret_outcome =
		takes_object ? next_object(merging, ret_problem) : next_mark(merging, ret_problem);
	snprintf(merging->after, sizeof merging->after, "%s", key);
	return *ret_outcome == OUTCOME_OK;
}

/* Merges both streams to their end. Returns false if it had to stop before that: because the limits
 * are over, for which it sets nothing, or because merge_next_key() returned false, with the reason
 * where that function says. */
static bool merge_all(
	struct merging *merging, enum outcome *ret_outcome, struct problem *ret_problem)
{
	const struct call_limits *limits = &merging->verify->place.limits;
	for (unsigned n = 1; merging->row || merging->object; n++) {
		if (limits_are_over(limits) || !merge_next_key(merging, ret_outcome, ret_problem))
			return false;
		/* 0: the clock is not read after this key */
		const uint64_t now_ns = n % KEYS_PER_CLOCK_READ ? 0 : clock_boot_ns();
		if (now_ns >= merging->progress_ns + NS_PER_S) {
			merging->progress_ns = now_ns;
			verify_tasks_progress(&merging->tasks);
		}
	}
	return true;
}

/* Opens both streams, and reads the first object and the first mark. */
static enum outcome open_streams(
	struct merging *merging, const struct mark_range *range, struct problem *ret_problem)
{
	const struct audit_place *place = &merging->verify->place;
	merging->objects =
		object_stream_new(place->own.s3, range->prefix, range->after, &place->limits);
	if (!merging->objects || mark_stream_new(place->own.marks, place->space, range,
					 &place->limits, &merging->marks) < 0)
		return outcome_no_memory(ret_problem);
	const enum outcome o = next_object(merging, ret_problem);
	return o == OUTCOME_OK ? next_mark(merging, ret_problem) : o;
}

enum outcome verify_run(
	const struct verify *verify, struct verify_end *ret, struct problem *ret_problem)
{
	struct verify sized =
		*verify; /* a copy, since resolve_subset_bytes() sets the subset in it */
	struct merging *merging = calloc(1, sizeof *merging);
	struct mark_range range = verify->range;
	enum outcome o = OUTCOME_LOCAL; /* stays if verify_tasks_init() fails */
	*ret = (struct verify_end){0};
	if (!merging)
		return outcome_no_memory(ret_problem);
	merging->verify = &sized;
	merging->progress_ns = clock_boot_ns();
	range.by_object = true;
	if (range.after)
		snprintf(merging->after, sizeof merging->after, "%s", range.after);
	if (verify_tasks_init(&merging->tasks, &sized, ret_problem))
		o = resolve_subset_bytes(&sized, verify->place.own.marks, ret_problem);
	if (o == OUTCOME_OK)
		o = open_streams(merging, &range, ret_problem);
	const bool is_all = o == OUTCOME_OK && merge_all(merging, &o, ret_problem);
	snprintf(ret->after, sizeof ret->after, "%s", merging->after);
	o = verify_tasks_end(&merging->tasks, o, is_all, ret, ret_problem);
	mark_stream_free(merging->marks);
	object_stream_free(merging->objects);
	free(merging->row);
	free(merging);
	return o;
}

/* The order in which row_of_entry() looks for a checksum to compare by --download. Without
 * --download, the order is that of enum checksum: HEAD shows only the checksum that the run has
 * sent to S3, and those that the run has computed besides come later in the enum. */
static const enum checksum strongest_first[] = {CHECKSUM_SHA256, CHECKSUM_SHA1, CHECKSUM_CRC64NVME,
	CHECKSUM_CRC32C, CHECKSUM_CRC32, CHECKSUM_MD5};

/* Returns an entry of a manifest as a done mark, so that verify_tasks.c compares it as it compares
 * marks. Of the entry's checksums, the mark has the first one of the whole object, and the first
 * one of the parts, which ends in "-" and their number. NULL: out of memory. */
static struct packed_mark *row_of_entry(
	const struct verify *verify, const struct manifest_entry *entry)
{
	struct version version = {.size = entry->size, .etag_is_md5 = entry->etag_is_md5};
	struct version *done = &version;
	snprintf(done->etag, sizeof done->etag, "%s", entry->etag);
	snprintf(done->version_id, sizeof done->version_id, "%s", entry->version_id);
	for (unsigned i = 0; i < CHECKSUMS; i++) {
		const unsigned kind = verify->by == VERIFY_BY_DOWNLOAD ? strongest_first[i] : i;
		const char *sum = entry->sums[kind], *name = checksum_kinds[kind].name;
		const bool is_of_parts = strchr(sum, '-') != NULL;
		if (*sum && is_of_parts && !*done->parts_sum)
			snprintf(done->parts_sum, sizeof done->parts_sum, "%s:%s", name, sum);
		else if (*sum && !is_of_parts && !*done->sum)
			snprintf(done->sum, sizeof done->sum, "%s:%s", name, sum);
	}
	return mark_pack_done(entry->key, done);
}

/* Returns the sum of the sizes of all entries. An error in the manifest ends it: the caller reads
 * the entries again, and meets the error then. */
static uint64_t sum_entries(struct manifest_reader *reader)
{
	struct manifest_entry entry;
	struct problem ignored;
	uint64_t total = 0;
	while (manifest_reader_next(reader, &entry, &ignored) > 0)
		total += entry.size;
	return total;
}

/* Compares an entry of a manifest of this bucket: adds a task for it, or reports that it is in
 * another bucket, or skips it if it is not in the subset. False: the run has ended. */
static bool check_entry(
	struct verify_tasks *tasks, const struct manifest_entry *entry, const char *bucket)
{
	const struct verify *verify = tasks->verify;
	if (strcmp(entry->bucket, bucket) != 0) {
		verify_tasks_report(tasks, FINDING_ERROR, entry->key,
			PROBLEM("it is an object of bucket %s", quote(entry->bucket).text));
		return true;
	}
	if (!verify_subset_has(&verify->subset, entry->key))
		return true;
	struct packed_mark *row = row_of_entry(verify, entry);
	if (row)
		return verify_tasks_add(tasks, row, entry->key, "");
	audit_pool_stop(&tasks->pool, OUTCOME_LOCAL, PROBLEM("out of memory"));
	return false;
}

enum outcome verify_manifest(const struct verify *verify, const char *bucket, int fd,
	struct verify_end *ret, bool *ret_is_damaged, struct problem *ret_problem)
{
	struct verify sized = *verify; /* a copy, since set_subset_share() sets the subset in it */
	struct verify_tasks tasks;
	struct manifest_reader *reader = NULL;
	struct manifest_entry entry;
	*ret = (struct verify_end){0};
	*ret_is_damaged = false;
	int r = manifest_reader_new(fd, &reader, ret_problem);
	if (r == 0 && sized.subset.bytes) {
		set_subset_share(&sized.subset, sum_entries(reader));
		manifest_reader_free(reader);
		r = manifest_reader_new(fd, &reader, ret_problem);
	}
	if (r < 0)
		return OUTCOME_LOCAL;
	bool goes_on = verify_tasks_init(&tasks, &sized, ret_problem);
	/* From here on, r is as manifest_reader_next() returns it: 1 after an entry, 0 at the end,
	 * or -errno. */
	r = goes_on ? 0 : -ENOMEM;
	while (goes_on && (r = manifest_reader_next(reader, &entry, ret_problem)) > 0) {
		verify_tasks_count_listed(&tasks);
		goes_on = !limits_are_over(&verify->place.limits) &&
			  check_entry(&tasks, &entry, bucket);
	}
	manifest_reader_free(reader);
	*ret_is_damaged = r == -EBADMSG;
	/* Here r is 0 only if all entries were read, and 1 if the run has ended before. */
	return verify_tasks_end(
		&tasks, r < 0 ? OUTCOME_LOCAL : OUTCOME_OK, r == 0, ret, ret_problem);
}
