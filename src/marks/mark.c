/* Marks, apart from their rows: the table of their fields, their verdict about a file, and the
 * partition that a key's mark is in. Pure: no store, no file and no S3. */
#include "marks/mark.h"
#include "base/checksum.h"
#include "marks/mark_fields.h"
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
	NULL,
};

/* The fields of a mark, in the order in which a row mostly has their attributes. A FIELD_SET is
 * written even if it is 0 or "". */
#define FIELD(member, attribute, how, group)                                                       \
	ROW_FIELD(struct mark, member, attribute, how, .groups = (group))
#define FIELD_SET(member, attribute, how, group)                                                   \
	ROW_FIELD(struct mark, member, attribute, how, .groups = (group), .is_always = true)
static const struct row_field fields[] = {
	ROW_FIELD(struct mark, state, "state", FIELD_WORD, .groups = GROUP_STATE, .is_always = true,
		.words = state_names),
	FIELD(session, "session", FIELD_ID, GROUP_OWNER),
	FIELD(claim, "claim", FIELD_ID, GROUP_OWNER),
	FIELD(source, "source", FIELD_COPY, GROUP_SOURCE),
	FIELD(claim_source, "claim_source", FIELD_COPY, GROUP_CLAIM_SOURCE),
	FIELD(claim_suffix, "claim_suffix", FIELD_TEXT, GROUP_CLAIM_SUFFIX),
	FIELD_SET(tries, "tries", FIELD_NUMBER, GROUP_TRIES),
	FIELD_SET(at_s, "at", FIELD_NUMBER, GROUP_AT),
	FIELD(expires_s, "expires", FIELD_NUMBER, GROUP_EXPIRES),
	FIELD_SET(done.size, "size", FIELD_SIZE, GROUP_VERSION | GROUP_SIZE),
	FIELD_SET(done.mtime_ns, "mtime", FIELD_NUMBER, GROUP_VERSION | GROUP_MTIME),
	FIELD_SET(done.sum, "sum", FIELD_TEXT, GROUP_VERSION),
	FIELD_SET(done.etag, "etag", FIELD_TEXT, GROUP_VERSION),
	FIELD(done.suffix, "suffix", FIELD_TEXT, GROUP_VERSION | GROUP_SUFFIX),
	FIELD(done.mtime_is_shared, "mtime_shared", FIELD_FLAG, GROUP_VERSION | GROUP_SHARED),
	FIELD(done.etag_is_md5, "md5", FIELD_FLAG, GROUP_VERSION),
	FIELD(done.part_bytes, "parts", FIELD_SIZE, GROUP_VERSION),
	FIELD(done.parts_sum, "parts_sum", FIELD_TEXT, GROUP_VERSION),
	FIELD(done.content_id, "content", FIELD_TEXT, GROUP_VERSION),
	FIELD(done.object_bytes, "object_size", FIELD_SIZE, GROUP_VERSION),
	FIELD(done.object_sum, "object_sum", FIELD_TEXT, GROUP_VERSION),
	FIELD(done.version_id, "version_id", FIELD_TEXT, GROUP_VERSION),
	FIELD(done.producer_id, "producer", FIELD_TEXT, GROUP_VERSION),
	FIELD_SET(newer_size, "newer_size", FIELD_SIZE, GROUP_NEWER),
	FIELD_SET(newer_mtime_ns, "newer_mtime", FIELD_NUMBER, GROUP_NEWER | GROUP_NEWER_MTIME),
	FIELD(upload.id, "upload", FIELD_COPY, GROUP_UPLOAD | GROUP_UPLOAD_ID),
	FIELD_SET(upload.part_bytes, "part", FIELD_SIZE, GROUP_UPLOAD),
	FIELD_SET(upload.checksum, "upload_sum", FIELD_CHECKSUM, GROUP_UPLOAD),
	FIELD(upload.encryption, "upload_key", FIELD_TEXT, GROUP_UPLOAD),
	FIELD(upload.suffix, "upload_suffix", FIELD_TEXT, GROUP_UPLOAD),
	FIELD(upload.encoding, "upload_encoding", FIELD_TEXT, GROUP_UPLOAD),
	FIELD(upload.content_id, "upload_content", FIELD_TEXT, GROUP_UPLOAD),
	FIELD(upload.table_id, "upload_table", FIELD_TEXT, GROUP_UPLOAD),
	FIELD_SET(upload.size, "upload_size", FIELD_SIZE, GROUP_UPLOAD),
	FIELD_SET(upload.mtime_ns, "upload_mtime", FIELD_NUMBER, GROUP_UPLOAD),
	FIELD_SET(error, "error", FIELD_COPY, GROUP_ERROR),
};
_Static_assert(sizeof fields / sizeof *fields <=
		       sizeof((struct row_write *)0)->changes / sizeof(struct change),
	"a write has room for all fields of a mark");
const struct row_table mark_table = ROW_TABLE(fields);

void open_upload_clear(struct open_upload *upload)
{
	free(upload->id);
	memset(upload, 0, sizeof *upload);
}

void open_upload_move(struct open_upload *to, struct open_upload *from)
{
	open_upload_clear(to);
	*to = *from;
	*from = (struct open_upload){0};
}

const char *mark_state_name(enum mark_state state)
{
	return state_names[state];
}

void mark_clear(struct mark *mark)
{
	open_upload_clear(&mark->upload);
	free(mark->source);
	free(mark->claim_source);
	free(mark->error);
	memset(mark, 0, sizeof *mark);
}

void mark_sum_of(const struct sums *sums, enum checksum wanted, char ret[static SUM_MAX + 1])
{
	const bool has_wanted = (sums->kinds & DIGEST_OF(wanted)) != 0;
	unsigned kind = has_wanted ? wanted : 0U;
	while (kind < CHECKSUMS && !(sums->kinds & DIGEST_OF(kind)))
		kind++;
	char base64[CHECKSUM_BASE64_MAX + 1];
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

struct s3_sum mark_sum_parse(const char *sum)
{
	const size_t n = strcspn(sum, ":");
	struct s3_sum parsed = {.kind = checksum_named(sum, n)};
	if (parsed.kind == CHECKSUMS || !sum[n] ||
		snprintf(parsed.text, sizeof parsed.text, "%s", sum + n + 1) >=
			(int)sizeof parsed.text)
		parsed = (struct s3_sum){0};
	return parsed;
}

uint64_t version_object_bytes(const struct version *version)
{
	return version->object_bytes ? version->object_bytes : version->size;
}

const char *version_object_sum(const struct version *version)
{
	return version->object_bytes ? version->object_sum : version->sum;
}

bool version_is_same(const struct version *a, const struct version *b)
{
	return a->size == b->size && a->mtime_ns == b->mtime_ns &&
	       a->mtime_is_shared == b->mtime_is_shared && strcmp(a->sum, b->sum) == 0;
}

unsigned mark_shard(const char *key, unsigned shards)
{
	return (unsigned)(fnv_add(FNV_EMPTY, key, strlen(key)) % shards);
}

void mark_partition(const struct mark_space *space, unsigned shard, char ret[static PARTITION_MAX])
{
	char generation[16] = "";
	if (space->generation)
		snprintf(generation, sizeof generation, "~%d", space->generation);
	snprintf(
		ret, PARTITION_MAX, "%s/%s%s#%u", space->service, space->bucket, generation, shard);
}

struct item_key mark_key(
	const struct mark_space *space, const char *key, char partition[static PARTITION_MAX])
{
	mark_partition(space, mark_shard(key, space->settings.shards), partition);
	return (struct item_key){partition, key};
}

/* Whether the mark is about the object of a claim, not about that of the done version. */
static bool is_of_claim(const struct mark *mark)
{
	return mark->state == MARK_CLAIMED || mark->state == MARK_FAILED;
}

const char *mark_suffix(const struct mark *mark)
{
	return is_of_claim(mark) ? mark->claim_suffix : mark->done.suffix;
}

const char *mark_source(const struct mark *mark)
{
	return is_of_claim(mark) && mark->claim_source ? mark->claim_source : mark->source;
}

/* Whether another producer has made the version that is done. Standard input has no id. */
static bool has_other_producer(const struct mark *mark, const struct file_version *file)
{
	return file->producer_id && *mark->done.producer_id &&
	       strcmp(file->producer_id, mark->done.producer_id) != 0;
}

enum mark_says mark_says(const struct mark *mark, const struct file_version *file)
{
	if (mark->state == MARK_ABSENT || mark->state == MARK_FAILED ||
		mark->state == MARK_FORGOTTEN)
		return SAYS_FREE;
	if (mark->state != MARK_DONE)
		return SAYS_CLAIMED;
	if (file->is_piped)
		return has_other_producer(mark, file) ? SAYS_CHANGED : SAYS_DONE;
	if (*file->content_id && *mark->done.content_id)
		return strcmp(file->content_id, mark->done.content_id) != 0 ? SAYS_CHANGED
									    : SAYS_DONE;
	if (mark->done.size != file->size)
		return SAYS_CHANGED;
	if (mark->done.mtime_ns == file->mtime_ns && !mark->done.mtime_is_shared)
		return SAYS_DONE;
	return SAYS_COMPARE;
}
