/* Reads marks, and says what they mean for a file. */
#include "base/fnv.h"
#include "marks/mark.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[] = {
	[MARK_ABSENT] = "absent",
	[MARK_CLAIMED] = "claimed",
	[MARK_DONE] = "done",
	[MARK_FAILED] = "failed",
	[MARK_FORGOTTEN] = "forgotten",
	[MARK_UNREADABLE] = "unreadable",
};

const char *mark_state_name(enum mark_state state)
{
	return state_names[state];
}

void mark_clear(struct mark *mark)
{
	open_upload_clear(&mark->upload);
	free(mark->source);
	free(mark->error);
	*mark = (struct mark){0};
}

void claim_clear(struct claim *claim)
{
	mark_clear(&claim->before);
	open_upload_clear(&claim->upload);
	*claim = (struct claim){0};
}

void mark_sum_of(const struct sums *sums, enum checksum wanted, char ret[static SUM_MAX + 1])
{
	unsigned kind = wanted;
	char base64[CHECKSUM_BASE64_MAX + 1];
	if (!(sums->kinds & DIGEST_OF(kind)))
		kind = 0;
	while (kind < CHECKSUMS && !(sums->kinds & DIGEST_OF(kind)))
		kind++;
	*ret = '\0';
	if (kind == CHECKSUMS)
		return;
	checksum_to_base64((enum checksum)kind, sums_bytes(sums, (enum checksum)kind), base64);
	snprintf(ret, SUM_MAX + 1, "%s:%s", checksum_kinds[kind].name, base64);
}

void mark_parts_sum_of(
	const struct sums *parts, size_t n, enum checksum kind, char ret[static PARTS_SUM_MAX + 1])
{
	unsigned char bytes[CHECKSUM_BYTES_MAX];
	char base64[CHECKSUM_BASE64_MAX + 1];
	*ret = '\0';
	if (checksum_kinds[kind].combines || kind == CHECKSUM_MD5 ||
		sums_compose(parts, n, kind, bytes))
		return;
	checksum_to_base64(kind, bytes, base64);
	snprintf(ret, PARTS_SUM_MAX + 1, "%s:%s-%zu", checksum_kinds[kind].name, base64, n);
}

struct s3_sum mark_sum_told(const char *sum)
{
	const size_t n = strcspn(sum, ":");
	struct s3_sum told = {.kind = checksum_named(sum, n)};
	if (told.kind == CHECKSUMS || !sum[n] ||
		snprintf(told.text, sizeof told.text, "%s", sum + n + 1) >= (int)sizeof told.text)
		told = (struct s3_sum){0};
	return told;
}

uint64_t version_object_bytes(const struct version *version)
{
	return version->object_bytes ? version->object_bytes : version->size;
}

const char *version_object_sum(const struct version *version)
{
	return version->object_bytes ? version->object_sum : version->sum;
}

unsigned mark_shard(const char *key, unsigned shards)
{
	return (unsigned)(fnv_add(FNV_EMPTY, key, strlen(key)) % shards);
}

void mark_partition(const struct mark_space *space, unsigned shard, char ret[static PARTITION_MAX])
{
	char generation[16] = "";
	if (space->generation)
		snprintf(generation, sizeof generation, "~%u", space->generation);
	snprintf(
		ret, PARTITION_MAX, "%s/%s%s#%u", space->service, space->bucket, generation, shard);
}

/* Copies a string attribute into a fixed field; false if it does not fit. An absent one is "". */
static bool take_text(const struct item *item, const char *name, char *ret, size_t size)
{
	const char *value = item_string(item, name);
	size_t n = value ? strlen(value) : 0;
	if (n >= size)
		return false;
	memcpy(ret, value ? value : "", n + 1);
	return true;
}

/* Absent or a string that is not empty: what conditions are made of. */
static bool is_absent_or_text(const struct item *item, const char *name)
{
	const char *value = item_string(item, name);
	return value ? *value : !item_find(item, name);
}

static int take_copy(const struct item *item, const char *name, char **ret)
{
	const char *value = item_string(item, name);
	if (!value)
		return 0;
	*ret = strdup(value);
	return *ret ? 0 : -ENOMEM;
}

/* A number that is absent leaves *ret as it is; one that is not a size makes the row
 * unreadable. */
static bool take_size(const struct item *item, const char *name, uint64_t *ret)
{
	int64_t n = 0;
	int error = item_number(item, name, &n);
	if (error == -ENOENT)
		return true;
	*ret = (uint64_t)n;
	return !error && n >= 0;
}

static bool take_number(const struct item *item, const char *name, int64_t *ret)
{
	int error = item_number(item, name, ret);
	return !error || error == -ENOENT;
}

static bool take_flag(const struct item *item, const char *name, bool *ret)
{
	int64_t number = 0;
	const bool is_number = take_number(item, name, &number);
	*ret = number == 1;
	return is_number;
}

/* Uploads that were begun before there was a choice have no name of it. */
static enum checksum take_checksum(const struct item *item)
{
	const char *name = item_string(item, "upload_sum");
	return name ? checksum_named(name, strlen(name)) : CHECKSUM_CRC32C;
}

static enum mark_state take_state(const struct item *item)
{
	const char *name = item_string(item, "state");
	for (size_t s = MARK_CLAIMED; name && s <= MARK_FORGOTTEN; s++)
		if (strcmp(name, state_names[s]) == 0)
			return (enum mark_state)s;
	return MARK_UNREADABLE;
}

/* All but its id. */
static bool take_upload(const struct item *item, struct open_upload *ret)
{
	ret->checksum = take_checksum(item);
	return is_absent_or_text(item, "upload") && take_size(item, "part", &ret->part_bytes) &&
	       take_text(item, "upload_key", ret->key_md5, sizeof ret->key_md5) &&
	       take_text(item, "upload_suffix", ret->suffix, sizeof ret->suffix) &&
	       take_text(item, "upload_encoding", ret->encoding, sizeof ret->encoding) &&
	       take_text(item, "upload_content", ret->content, sizeof ret->content) &&
	       take_size(item, "upload_size", &ret->size) &&
	       take_number(item, "upload_mtime", &ret->mtime_ns);
}

static bool take_fields(const struct item *item, struct mark *mark)
{
	mark->has_done = item_find(item, "size") && item_find(item, "mtime");
	mark->has_newer = item_find(item, "newer_mtime");
	return take_flag(item, "md5", &mark->done.etag_is_md5) &&
	       take_flag(item, "mtime_shared", &mark->done.mtime_is_shared) &&
	       is_absent_or_text(item, "session") && is_absent_or_text(item, "claim") &&
	       take_text(item, "session", mark->session, sizeof mark->session) &&
	       take_text(item, "claim", mark->claim, sizeof mark->claim) &&
	       take_text(item, "sum", mark->done.sum, sizeof mark->done.sum) &&
	       take_text(item, "etag", mark->done.etag, sizeof mark->done.etag) &&
	       take_text(item, "parts_sum", mark->done.parts_sum, sizeof mark->done.parts_sum) &&
	       take_text(item, "content", mark->done.content, sizeof mark->done.content) &&
	       take_text(item, "suffix", mark->suffix, sizeof mark->suffix) &&
	       take_text(item, "suffix", mark->done.suffix, sizeof mark->done.suffix) &&
	       take_text(item, "version_id", mark->done.version_id, sizeof mark->done.version_id) &&
	       take_size(item, "object_size", &mark->done.object_bytes) &&
	       take_text(item, "object_sum", mark->done.object_sum, sizeof mark->done.object_sum) &&
	       take_size(item, "parts", &mark->done.part_bytes) &&
	       take_size(item, "size", &mark->done.size) &&
	       take_number(item, "mtime", &mark->done.mtime_ns) &&
	       take_size(item, "newer_size", &mark->newer_size) &&
	       take_number(item, "newer_mtime", &mark->newer_mtime_ns) &&
	       take_upload(item, &mark->upload) && take_number(item, "tries", &mark->tries) &&
	       take_number(item, "at", &mark->at_s);
}

int mark_from_item(const struct item *item, struct mark *ret)
{
	*ret = (struct mark){0};
	if (item_is_empty(item))
		return 0;
	struct mark mark = {.state = take_state(item)};
	if (!take_fields(item, &mark) || (mark.state == MARK_DONE && !mark.has_done))
		mark.state = MARK_UNREADABLE;
	int error = take_copy(item, "upload", &mark.upload.id);
	mark.upload.is_open = mark.upload.id != NULL;
	if (!error)
		error = take_copy(item, "source", &mark.source);
	if (!error)
		error = take_copy(item, "error", &mark.error);
	if (error) {
		mark_clear(&mark);
		return error;
	}
	*ret = mark;
	return 0;
}

enum mark_says mark_says(const struct mark *mark, const struct asked *file)
{
	switch (mark->state) {
	case MARK_ABSENT:
	case MARK_FAILED:
	case MARK_FORGOTTEN:
		return SAYS_FREE;
	case MARK_CLAIMED:
	case MARK_UNREADABLE:
		return SAYS_CLAIMED;
	case MARK_DONE:
		break;
	}
	if (*file->content && *mark->done.content)
		return strcmp(file->content, mark->done.content) != 0 ? SAYS_CHANGED : SAYS_DONE;
	if (mark->done.size != file->size)
		return SAYS_CHANGED;
	if (mark->done.mtime_ns == file->mtime_ns && !mark->done.mtime_is_shared)
		return SAYS_DONE;
	return SAYS_COMPARE;
}
