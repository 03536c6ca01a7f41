/* A closer look at the object of a mark: by HEAD, and by its bytes. verify.c and verify_tasks.c ask
 * for it. What is the same is decided in src/marks/judge.c; here are the requests, and the
 * sentences about what differs. Nothing is written. */
#include "audit/inspect.h"
#include "base/text.h"
#include "marks/judge.h"
#include "s3/s3.h"
#include "scan/key/family.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How often a mark may change under our eyes before it counts as unfinished. */
#define TRIES_MAX 5

struct audit_place inspect_place(const struct verify *verify)
{
	return (struct audit_place){.store = verify->store,
		.space = verify->space,
		.s3 = verify->s3,
		.limits = {.abandon = verify->visitor.is_stopped,
			.abandon_arg = verify->visitor.arg,
			.patience_ms = verify->patience_ms}};
}

enum outcome inspect_read(struct inspection *look, const char *key, struct packed_mark **ret,
	struct problem *ret_problem)
{
	const struct mark_ref ref = {.conn = look->hand->marks,
		.space = look->place.space,
		.key = key,
		.session = "",
		.source = "",
		.limits = look->place.limits};
	struct mark mark = {0};
	enum outcome o = mark_get(&ref, &mark, ret_problem);
	if (o != OUTCOME_OK) {
		problem_prefix(ret_problem, "its mark cannot be read");
		return o;
	}
	*ret = mark_pack(key, &mark);
	mark_clear(&mark);
	if (*ret)
		return OUTCOME_OK;
	problem_set(ret_problem, "out of memory");
	return OUTCOME_LOCAL;
}

enum finding inspect_state(enum mark_state state, struct problem *ret_problem)
{
	switch (state) {
	case MARK_ABSENT:
	case MARK_FORGOTTEN:
		return FINDING_NOTHING;
	case MARK_UNREADABLE:
		problem_set(ret_problem,
			"its mark is damaged, or was written by a later version of s3once, so that "
			"its object cannot be compared: s3once status shows the mark");
		return FINDING_ERROR;
	case MARK_CLAIMED:
	case MARK_FAILED:
	case MARK_DONE:
		break;
	}
	return FINDING_UNFINISHED;
}

/* What says this of the object, for sentences. */
static const char *teller(const struct inspection *look)
{
	return look->verify->store ? "its mark" : "the manifest";
}

bool inspect_listed(const struct mark *mark, uint64_t size, const char *etag)
{
	const struct kept kept = kept_of_object(&mark->done);
	struct s3_object listed = {.size = size};
	snprintf(listed.etag, sizeof listed.etag, "%s", etag);
	return judge_kept(&kept, &listed) == LIKE_SAME;
}

static void tell_other_sum(const struct inspection *look, const struct s3_sum *told,
	const struct s3_sum *kept, struct problem *ret_problem)
{
	problem_set(ret_problem, "its content differs: S3 has the %s %s, and %s %s",
		checksum_kinds[told->kind].name, told->text, teller(look), kept->text);
}

/* Compares with what HEAD shows; with a sentence unless it is the same. */
static enum likeness compare_shown(const struct inspection *look, const struct kept *kept,
	const struct s3_object *object, struct problem *ret_problem)
{
	const struct s3_sum sum = kept_sum_like(kept, &object->sum);
	const enum likeness like = judge_kept(kept, object);
	if (like == LIKE_OTHER && object->size != kept->bytes)
		problem_set(ret_problem,
			"its size differs: %" PRIu64 " bytes in S3, and %" PRIu64
			" bytes when it was uploaded",
			object->size, kept->bytes);
	else if (like == LIKE_OTHER)
		tell_other_sum(look, &object->sum, &sum, ret_problem);
	else if (like == LIKE_OTHER_ETAG)
		problem_set(ret_problem,
			"its etag differs: %s in S3, and %s when it was uploaded; --download "
			"shows whether its content differs, too",
			object->etag, kept->etag);
	else if (like == LIKE_UNTOLD)
		problem_set(ret_problem,
			"its size is right, but S3 returns no checksum, and %s has no etag: "
			"--download compares the content",
			teller(look));
	return like;
}

/* The same with its bytes, which have other sums than the mark has kept. */
static void tell_other_bytes(const struct inspection *look, const struct kept *kept,
	const struct sums *sums, struct problem *ret_problem)
{
	const struct s3_sum sum = mark_sum_told(kept->sum);
	struct s3_sum told = {.kind = sum.kind};
	char md5[33];
	if (*sum.text)
		checksum_to_base64(sum.kind, sums_bytes(sums, sum.kind), told.text);
	if (strcmp(told.text, sum.text) != 0) {
		tell_other_sum(look, &told, &sum, ret_problem);
		return;
	}
	hex_encode(sums->md5, sizeof sums->md5, md5);
	problem_set(ret_problem,
		"its content differs: its MD5 is %s, and was %s when it was uploaded", md5,
		kept->etag);
}

static enum outcome read_pieces(struct inspection *look, const struct s3_target *target,
	const struct s3_object *object, struct digest *digest, bool *ret_replaced,
	struct problem *ret_problem)
{
	char etag[S3_ETAG_MAX + 1];
	enum outcome o = OUTCOME_OK;
	for (uint64_t at = 0; at < object->size; at += VERIFY_PIECE_BYTES) {
		const uint64_t left = object->size - at;
		const size_t n = left < VERIFY_PIECE_BYTES ? (size_t)left : VERIFY_PIECE_BYTES;
		o = s3_get_range(look->hand->s3, target, at, n, &look->place.limits, &look->piece,
			etag, ret_problem);
		*ret_replaced = o == OUTCOME_OK && strcmp(etag, object->etag) != 0;
		if (o != OUTCOME_OK || *ret_replaced)
			return o;
		digest_update(digest, look->piece.body.data, n);
		look->bytes_read += n;
	}
	return o;
}

/* Reads the object and compares it. SAME or DIFFERS, or ERROR with a sentence. */
static enum outcome download(struct inspection *look, const struct kept *kept,
	const struct s3_target *target, const struct s3_object *object, enum finding *ret,
	struct problem *ret_problem)
{
	struct digest digest;
	struct sums sums;
	bool is_replaced = false;
	const unsigned kinds = judge_digests(kept);
	*ret = FINDING_ERROR;
	if (!kinds) {
		problem_set(ret_problem, "%s has no checksum that its content can be compared with",
			teller(look));
		return OUTCOME_OK;
	}
	const int error = digest_init(&digest, kinds);
	if (error) {
		problem_set(ret_problem, "its checksum cannot be computed: %s", strerror(-error));
		return OUTCOME_OK;
	}
	const enum outcome o =
		read_pieces(look, target, object, &digest, &is_replaced, ret_problem);
	if (is_replaced) {
		problem_set(ret_problem, "it was replaced while it was read");
		*ret = FINDING_DIFFERS;
	} else if (o == OUTCOME_OK) {
		digest_finish(&digest, &sums);
		*ret = judge_bytes(kept, &sums) == PROOF_YES ? FINDING_SAME : FINDING_DIFFERS;
		if (*ret == FINDING_DIFFERS)
			tell_other_bytes(look, kept, &sums, ret_problem);
	}
	digest_clear(&digest);
	return o;
}

static enum outcome not_shown(const struct s3_target *target, enum outcome o, enum finding *ret,
	struct problem *ret_problem)
{
	if (o == OUTCOME_ABSENT) {
		*ret = FINDING_MISSING;
		return OUTCOME_OK;
	}
	const bool is_denied = o == OUTCOME_DENIED;
	problem_prefix(ret_problem, "S3 does not show it%s",
		is_denied && *target->version_id ? "; allow s3:GetObjectVersion and s3:ListBucket"
		: is_denied                      ? "; allow s3:GetObject and s3:ListBucket"
						 : "");
	return o;
}

static enum outcome compare_with_head(struct inspection *look, const struct packed_mark *row,
	const struct version *done, enum finding *ret, struct problem *ret_problem)
{
	const struct kept kept = kept_of_object(done);
	const struct s3_target target = {.key = row->object_key,
		.headers = look->verify->headers,
		.version_id = look->verify->store ? "" : done->version_id};
	struct s3_object object;
	enum outcome o =
		s3_head_object(look->hand->s3, &target, &look->place.limits, &object, ret_problem);
	if (o != OUTCOME_OK)
		return not_shown(&target, o, ret, ret_problem);
	const enum likeness like = compare_shown(look, &kept, &object, ret_problem);
	if (like == LIKE_OTHER || look->verify->by != VERIFY_BY_DOWNLOAD) {
		*ret = like == LIKE_SAME     ? FINDING_SAME
		       : like == LIKE_UNTOLD ? FINDING_ERROR
					     : FINDING_DIFFERS;
		return OUTCOME_OK;
	}
	o = download(look, &kept, &target, &object, ret, ret_problem);
	return o == OUTCOME_OK ? o : not_shown(&target, o, ret, ret_problem);
}

/* Unless all is right the mark is read again, until it was the same before and after. */
enum outcome inspect_mark(struct inspection *look, struct packed_mark *row, enum finding *ret,
	struct problem *ret_problem)
{
	enum outcome o = OUTCOME_OK;
	*ret = FINDING_UNFINISHED;
	for (unsigned tries = 0; o == OUTCOME_OK && tries < TRIES_MAX; tries++) {
		const struct mark mark = mark_unpack(row);
		struct packed_mark *now = NULL;
		*ret = inspect_state(mark.state, ret_problem);
		if (mark.state == MARK_DONE)
			o = compare_with_head(look, row, &mark.done, ret, ret_problem);
		if (o != OUTCOME_OK || mark.state != MARK_DONE || *ret == FINDING_SAME ||
			!look->hand->marks)
			break;
		struct problem problem = {0};
		o = inspect_read(look, row->key, &now, &problem);
		if (o != OUTCOME_OK) {
			*ret_problem = problem;
			break;
		}
		const bool is_same =
			now->bytes == row->bytes && memcmp(now->row, row->row, now->bytes) == 0;
		free(row);
		row = now;
		if (is_same)
			break;
		*ret = FINDING_UNFINISHED;
	}
	free(row);
	return o;
}

enum outcome inspect_key(
	struct inspection *look, const char *key, enum finding *ret, struct problem *ret_problem)
{
	struct packed_mark *row = NULL;
	const enum outcome o = inspect_read(look, key, &row, ret_problem);
	return o == OUTCOME_OK ? inspect_mark(look, row, ret, ret_problem) : o;
}

/* Whether the object is that of the mark, or may be by the time that it is done. */
static bool is_its_object(const struct packed_mark *row, const char *object_key)
{
	const struct mark mark = mark_unpack(row);
	const bool is_none = mark.state == MARK_ABSENT || mark.state == MARK_FORGOTTEN;
	return !is_none && (mark.state != MARK_DONE || strcmp(row->object_key, object_key) == 0);
}

enum outcome inspect_find(struct inspection *look, const char *object_key, struct packed_mark **ret,
	struct problem *ret_problem)
{
	const size_t n = strlen(object_key);
	char base[KEY_BYTES_MAX + SUFFIX_MAX + 1];
	*ret = NULL;
	if (n >= sizeof base)
		return OUTCOME_OK;
	for (size_t i = 0; i <= FAMILY_SUFFIXES && !*ret; i++) {
		const char *suffix = i ? family_suffixes[i - 1] : "";
		const size_t bytes = strlen(suffix);
		struct packed_mark *row;
		if (n <= bytes || strcmp(object_key + n - bytes, suffix) != 0)
			continue;
		memcpy(base, object_key, n - bytes);
		base[n - bytes] = '\0';
		const enum outcome o = inspect_read(look, base, &row, ret_problem);
		if (o != OUTCOME_OK)
			return o;
		if (is_its_object(row, object_key))
			*ret = row;
		else
			free(row);
	}
	return OUTCOME_OK;
}

enum outcome inspect_object(
	struct inspection *look, const char *key, enum finding *ret, struct problem *ret_problem)
{
	struct packed_mark *row;
	*ret = FINDING_UNKNOWN;
	const enum outcome o = inspect_find(look, key, &row, ret_problem);
	return o == OUTCOME_OK && row ? inspect_mark(look, row, ret, ret_problem) : o;
}
