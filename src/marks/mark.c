/* The fields of a mark, and each way in which a mark is written (docs/protocol.md, "One file"). One
 * table of fields is used to read and to write. Every write has the condition that fences it. After
 * a refusal, the mark may already be the result of this very write, since a request may be sent
 * twice. So the mark is compared with the write. Runs, audits and gc call it. Nothing here touches
 * a file or S3. */
#include "marks/mark.h"
#include "base/checksum.h"
#include "marks/row.h"
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
	NULL,
};

/* The groups of fields that are written, removed or compared together. */
enum {
	STATE = 1 << 0,
	OWNER = 1 << 1, /* session, claim */
	SOURCE = 1 << 2,
	CLAIM_SOURCE = 1 << 3,
	CLAIM_SUFFIX = 1 << 4,
	TRIES = 1 << 5,
	AT = 1 << 6,
	EXPIRES = 1 << 7,
	ERROR = 1 << 8,
	VERSION = 1 << 9,
	MTIME = 1 << 10,
	SHARED = 1 << 11,
	UPLOAD_ID = 1 << 12,
	UPLOAD = 1 << 13, /* the upload with its id */
	NEWER = 1 << 14,
	NEWER_MTIME = 1 << 15,
	SIZE = 1 << 16,
	SUFFIX = 1 << 17,
};
#define PACKED_MOSTLY 512 /* bytes of a packed mark, but for few that are longer */

/* The fields of a mark, in the order in which a row mostly has their attributes. A FIELD_SET is
 * written also if it is 0 or "". */
#define FIELD(member, attribute, how, group)                                                       \
	ROW_FIELD(struct mark, member, attribute, how, .groups = (group))
#define FIELD_SET(member, attribute, how, group)                                                   \
	ROW_FIELD(struct mark, member, attribute, how, .groups = (group), .is_always = true)
static const struct row_field fields[] = {
	ROW_FIELD(struct mark, state, "state", FIELD_WORD, .groups = STATE, .is_always = true,
		.words = state_names),
	FIELD(session, "session", FIELD_ID, OWNER),
	FIELD(claim, "claim", FIELD_ID, OWNER),
	FIELD(source, "source", FIELD_COPY, SOURCE),
	FIELD(claim_source, "claim_source", FIELD_COPY, CLAIM_SOURCE),
	FIELD(claim_suffix, "claim_suffix", FIELD_TEXT, CLAIM_SUFFIX),
	FIELD_SET(tries, "tries", FIELD_NUMBER, TRIES),
	FIELD_SET(at_s, "at", FIELD_NUMBER, AT),
	FIELD(expires_s, "expires", FIELD_NUMBER, EXPIRES),
	FIELD_SET(done.size, "size", FIELD_SIZE, VERSION | SIZE),
	FIELD_SET(done.mtime_ns, "mtime", FIELD_NUMBER, VERSION | MTIME),
	FIELD_SET(done.sum, "sum", FIELD_TEXT, VERSION),
	FIELD_SET(done.etag, "etag", FIELD_TEXT, VERSION),
	FIELD(done.suffix, "suffix", FIELD_TEXT, VERSION | SUFFIX),
	FIELD(done.mtime_is_shared, "mtime_shared", FIELD_FLAG, VERSION | SHARED),
	FIELD(done.etag_is_md5, "md5", FIELD_FLAG, VERSION),
	FIELD(done.part_bytes, "parts", FIELD_SIZE, VERSION),
	FIELD(done.parts_sum, "parts_sum", FIELD_TEXT, VERSION),
	FIELD(done.content_id, "content", FIELD_TEXT, VERSION),
	FIELD(done.object_bytes, "object_size", FIELD_SIZE, VERSION),
	FIELD(done.object_sum, "object_sum", FIELD_TEXT, VERSION),
	FIELD(done.version_id, "version_id", FIELD_TEXT, VERSION),
	FIELD(done.producer_id, "producer", FIELD_TEXT, VERSION),
	FIELD_SET(newer_size, "newer_size", FIELD_SIZE, NEWER),
	FIELD_SET(newer_mtime_ns, "newer_mtime", FIELD_NUMBER, NEWER | NEWER_MTIME),
	FIELD(upload.id, "upload", FIELD_COPY, UPLOAD | UPLOAD_ID),
	FIELD_SET(upload.part_bytes, "part", FIELD_SIZE, UPLOAD),
	FIELD_SET(upload.checksum, "upload_sum", FIELD_CHECKSUM, UPLOAD),
	FIELD(upload.encryption, "upload_key", FIELD_TEXT, UPLOAD),
	FIELD(upload.suffix, "upload_suffix", FIELD_TEXT, UPLOAD),
	FIELD(upload.encoding, "upload_encoding", FIELD_TEXT, UPLOAD),
	FIELD(upload.content_id, "upload_content", FIELD_TEXT, UPLOAD),
	FIELD(upload.table_id, "upload_table", FIELD_TEXT, UPLOAD),
	FIELD_SET(upload.size, "upload_size", FIELD_SIZE, UPLOAD),
	FIELD_SET(upload.mtime_ns, "upload_mtime", FIELD_NUMBER, UPLOAD),
	FIELD_SET(error, "error", FIELD_COPY, ERROR),
};
_Static_assert(sizeof fields / sizeof *fields <=
		       sizeof((struct row_write *)0)->changes / sizeof(struct change),
	"a write has room for all fields of a mark");
static const struct row_table mark_table = ROW_TABLE(fields);

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

void claim_clear(struct claim *claim)
{
	mark_clear(&claim->before);
	open_upload_clear(&claim->upload);
	*claim = (struct claim){0};
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

struct packed_mark *mark_pack(const char *key, const struct item *item)
{
	char row[PACKED_MOSTLY];
	const struct row_packed size = row_pack(&mark_table, item, row, sizeof row);
	const size_t key_bytes = strlen(key) + 1;
	const bool has_suffix = (size.groups & (SUFFIX | CLAIM_SUFFIX)) != 0;
	/* The keys follow the row. */
	struct packed_mark *packed = malloc(sizeof *packed + size.bytes + key_bytes +
					    (has_suffix ? key_bytes + SUFFIX_MAX : 0));
	if (!packed)
		return NULL;
	char *copy = packed->row + size.bytes;
	*packed = (struct packed_mark){.is_absent = item_is_empty(item), .size = size};
	if (size.bytes <= sizeof row)
		memcpy(packed->row, row, size.bytes);
	else
		row_pack(&mark_table, item, packed->row, size.bytes);
	packed->key = packed->object_key = memcpy(copy, key, key_bytes);
	if (!has_suffix)
		return packed;
	const struct mark mark = mark_unpack(packed);
	if (*mark_suffix(&mark)) {
		packed->object_key = copy + key_bytes;
		stpcpy(stpcpy(copy + key_bytes, key), mark_suffix(&mark));
	}
	return packed;
}

struct packed_mark *mark_pack_done(const char *key, const struct version *version)
{
	const struct mark mark = {.state = MARK_DONE, .done = *version};
	struct row_write write = {.removes_nothing = true};
	struct item item = {0};
	row_set(&write, &mark_table, STATE | VERSION, &mark);
	const int error = item_apply(&item, write.changes, write.n_changes);
	struct packed_mark *packed = error ? NULL : mark_pack(key, &item);
	item_clear(&item);
	return packed;
}

struct mark mark_unpack(const struct packed_mark *packed)
{
	struct mark mark = {0};
	if (!packed || packed->is_absent)
		return mark;
	const unsigned groups = packed->size.groups;
	/* If the row does not name the checksum of an upload, it is CRC-32C: the upload was begun
	 * before there was a choice. */
	mark.upload.checksum = CHECKSUM_CRC32C;
	row_unpack(&mark_table, packed->row, &mark);
	mark.has_done = (groups & SIZE) && (groups & MTIME);
	mark.has_newer = (groups & NEWER_MTIME) != 0;
	mark.upload.is_open = mark.upload.id != NULL;
	/* A row that cannot be read, or that contradicts itself, is not understood: a later version
	 * of this program may have written it. */
	const bool is_row_of_none = mark.state == MARK_ABSENT;
	const bool lacks_version = mark.state == MARK_DONE && !mark.has_done;
	const bool has_empty_id = mark.upload.id && !*mark.upload.id;
	if (packed->size.is_damaged || is_row_of_none || lacks_version || has_empty_id)
		mark.state = MARK_UNREADABLE;
	return mark;
}

/* Replaces a borrowed string, or NULL, by a copy. Returns whether there was memory. */
static bool own_string(char **string)
{
	const char *borrowed = *string;
	*string = borrowed ? strdup(borrowed) : NULL;
	return *string || !borrowed;
}

int mark_from_item(const struct item *item, struct mark *ret)
{
	struct packed_mark *packed = mark_pack("", item);
	struct mark mark = mark_unpack(packed);
	bool is_whole = packed != NULL;
	is_whole &= own_string(&mark.source);
	is_whole &= own_string(&mark.claim_source);
	is_whole &= own_string(&mark.upload.id);
	is_whole &= own_string(&mark.error);
	free(packed);
	if (!is_whole)
		mark_clear(&mark);
	*ret = mark;
	return is_whole ? 0 : -ENOMEM;
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

static int64_t now_s(const struct mark_ref *ref)
{
	return store_time_s(ref->conn->store);
}

/* The time of the last change that mark_claim() and mark_fail() write. */
static int64_t changed_at_s(const struct mark_ref *ref)
{
	return ref->at_s ? ref->at_s : now_s(ref);
}

/* Makes the mark that this session has under this claim. A claim writes it, and every later write
 * has the condition that it is still there. */
static struct mark own_mark(const struct mark_ref *ref, const char *claim)
{
	struct mark mark = {.state = MARK_CLAIMED};
	snprintf(mark.session, sizeof mark.session, "%s", ref->session);
	snprintf(mark.claim, sizeof mark.claim, "%s", claim);
	snprintf(mark.claim_suffix, sizeof mark.claim_suffix, "%s", ref->suffix ? ref->suffix : "");
	return mark;
}

/* After a write with the outcome `o`: if it was refused, reads the present mark from the item.
 * Otherwise *ret_seen is an absent mark. ret_seen may be NULL. Clears the item. Returns `o`, or the
 * outcome of a failure. */
static enum outcome read_refused(
	enum outcome o, struct item *present, struct mark *ret_seen, struct problem *ret_problem)
{
	if (ret_seen)
		*ret_seen = (struct mark){0};
	if (o == OUTCOME_REFUSED && ret_seen && mark_from_item(present, ret_seen))
		o = outcome_no_memory(ret_problem);
	item_clear(present);
	return o;
}

/* Performs a write of a mark. If it is refused, *ret_seen is the present mark, the caller's to
 * clear. Otherwise *ret_seen is an absent mark. ret_seen may be NULL. */
static enum outcome write_mark(const struct mark_ref *ref, const struct row_write *write,
	struct mark *ret_seen, struct problem *ret_problem)
{
	char partition[PARTITION_MAX];
	struct item present = {0};
	const enum outcome o = row_perform(ref->conn, mark_key(ref->space, ref->key, partition),
		write, &ref->limits, &present, ret_problem);
	return read_refused(o, &present, ret_seen, ret_problem);
}

/* Whether a mark is the one that this claim has written. It is checked after a refusal, since any
 * refusal may be due to our own write. This holds even for a first try: if a reused connection
 * drops, curl resends. */
static bool is_our_mark(const struct mark_ref *ref, const char *claim, const struct mark *mark)
{
	return mark->state == MARK_CLAIMED && strcmp(mark->session, ref->session) == 0 &&
	       strcmp(mark->claim, claim) == 0;
}

/* Moves the mark that was seen into the claim that takes it over. */
static void move_seen(struct claim *claim, struct mark *seen)
{
	open_upload_move(&claim->upload, &seen->upload);
	claim->before = *seen;
	*seen = (struct mark){0};
}

/* Makes a new claim of the mark `seen`, the mark as the claim sets it, and the write that does so,
 * which borrows that mark. */
static void make_claim(const struct mark_ref *ref, const struct mark *seen, struct claim *claim,
	struct mark *mark, struct row_write *write)
{
	/* The claim of a forgotten mark is a take-over, too, since the mark is there. */
	*claim = (struct claim){.taken_over = seen->state != MARK_ABSENT};
	random_id(claim->id);
	*mark = own_mark(ref, claim->id);
	mark->tries = seen->tries + 1;
	mark->at_s = changed_at_s(ref);
	mark->source = mark->claim_source = (char *)(uintptr_t)ref->source; /* borrowed */
	memcpy(claim->suffix, mark->claim_suffix, sizeof claim->suffix);
	*write = (struct row_write){.kind = claim->taken_over ? ROW_UPDATES : ROW_PUTS,
		.may_sync_later = ref->may_sync_later};
	/* If the mark has a source, that stays, since an object under the key may have come from
	 * there. The source of this claim is then written beside it. */
	const unsigned source_columns = seen->source ? CLAIM_SOURCE : SOURCE;
	/* If neither mark has a suffix, there is nothing to set and nothing to remove. */
	const unsigned suffix_columns =
		*mark->claim_suffix || *seen->claim_suffix ? CLAIM_SUFFIX : 0;
	row_set(write, &mark_table, STATE | OWNER | source_columns | suffix_columns | TRIES | AT,
		mark);
	if (claim->taken_over) {
		/* Otherwise time to live would remove the claim by the expiry of a forgotten
		 * mark. */
		row_unset(write, &mark_table,
			seen->state == MARK_FORGOTTEN ? ERROR | EXPIRES : ERROR);
		/* Session and claim alone do not show all that may have happened since *seen was
		 * read. The mark may have become done, so the state is compared, too. Its session
		 * may have recorded an upload, so the upload id is compared: without the id, this
		 * run would neither resume nor abort that upload. */
		row_expect(write, &mark_table, STATE | OWNER | UPLOAD_ID, seen);
	} else {
		row_expect_test(write, "pk", CONDITION_ABSENT);
	}
}

/* Returns the outcome of a claim, given the outcome of its write. A write that was retried may be
 * refused because its first attempt did succeed. Then *ret_seen is our own mark: the outcome is OK,
 * and *ret_seen is cleared. */
static enum outcome claim_outcome(const struct mark_ref *ref, const struct claim *claim,
	enum outcome o, struct mark *ret_seen)
{
	if (o != OUTCOME_REFUSED || !is_our_mark(ref, claim->id, ret_seen))
		return o;
	mark_clear(ret_seen);
	return OUTCOME_OK;
}

enum outcome mark_claim(const struct mark_ref *ref, struct mark *seen, struct claim *ret,
	struct mark *ret_seen, struct problem *ret_problem)
{
	struct claim claim;
	struct mark mark;
	struct row_write write;
	make_claim(ref, seen, &claim, &mark, &write);
	const enum outcome o = claim_outcome(
		ref, &claim, write_mark(ref, &write, ret_seen, ret_problem), ret_seen);
	if (o == OUTCOME_OK) {
		move_seen(&claim, seen);
		*ret = claim;
	}
	return o;
}

void mark_begin_claim(const struct mark_ref *ref, struct mark_claiming *ret)
{
	const struct mark absent = {0};
	ret->ref = *ref;
	make_claim(&ret->ref, &absent, &ret->claim, &ret->mark, &ret->write);
	row_begin(ref->conn, mark_key(ref->space, ref->key, ret->partition), &ret->write,
		&ret->ref.limits, &ret->request);
}

enum outcome mark_end_claim(struct mark_claiming *claiming, struct claim *ret,
	struct mark *ret_seen, struct problem *ret_problem)
{
	struct store_conn *conn = claiming->ref.conn;
	struct item present = {0};
	const enum outcome written = conn->store->ops->end_write(conn, &present, ret_problem);
	const enum outcome o = claim_outcome(&claiming->ref, &claiming->claim,
		read_refused(written, &present, ret_seen, ret_problem), ret_seen);
	if (o == OUTCOME_OK)
		*ret = claiming->claim;
	return o;
}

void mark_suppose_claim(struct mark *seen, struct claim *ret)
{
	struct claim claim = {.taken_over = seen->state != MARK_ABSENT};
	move_seen(&claim, seen);
	*ret = claim;
}

enum outcome mark_record_upload(const struct mark_ref *ref, struct claim *claim,
	struct open_upload *upload, struct problem *ret_problem)
{
	const struct mark own = own_mark(ref, claim->id);
	const struct mark before = {.upload = claim->upload},
			  after = {.upload = *upload, .at_s = now_s(ref)};
	struct row_write write = {.may_sync_later = ref->may_sync_later};
	row_set(&write, &mark_table, UPLOAD | AT, &after);
	row_expect(&write, &mark_table, STATE | OWNER, &own);
	row_expect(&write, &mark_table, UPLOAD_ID, &before);
	struct mark present;
	enum outcome o = write_mark(ref, &write, &present, ret_problem);
	/* The refusal may be due to our own write. Then the mark records this upload. */
	const bool is_recorded = present.upload.id && strcmp(present.upload.id, upload->id) == 0;
	if (o == OUTCOME_REFUSED && is_our_mark(ref, claim->id, &present) && is_recorded)
		o = OUTCOME_OK;
	mark_clear(&present);
	if (o == OUTCOME_OK)
		open_upload_move(&claim->upload, upload);
	return o;
}

enum outcome mark_done(const struct mark_ref *ref, const struct claim *claim,
	const struct version *version, const char *source, struct mark *ret_seen,
	struct problem *ret_problem)
{
	const struct mark own = own_mark(ref, claim->id);
	const struct mark mark = {.state = MARK_DONE,
		.done = *version,
		.source = (char *)(uintptr_t)source,
		.at_s = now_s(ref)};
	struct row_write write = {.may_sync_later = ref->may_sync_later};
	/* Fields are removed only if they can exist, which halves the request. Only a mark that was
	 * taken over may have attributes of an earlier version that this version does not have. A
	 * claim has no error, and only some claims have an upload. */
	write.removes_nothing = !claim->taken_over;
	row_set(&write, &mark_table, STATE | VERSION, &mark);
	write.removes_nothing = false;
	/* A claim that was not a take-over has set the source, which is that of the version. */
	row_set(&write, &mark_table, claim->taken_over ? SOURCE | AT : AT, &mark);
	if (*claim->suffix)
		row_unset(&write, &mark_table, CLAIM_SUFFIX);
	if (claim->taken_over || claim->upload.id)
		row_unset(&write, &mark_table, UPLOAD);
	if (claim->taken_over)
		row_unset(&write, &mark_table, CLAIM_SOURCE | NEWER);
	row_expect(&write, &mark_table, STATE | OWNER, &own);
	enum outcome o = write_mark(ref, &write, ret_seen, ret_problem);
	/* Another uploader may have marked the same version as done. */
	if (o == OUTCOME_REFUSED && ret_seen->state == MARK_DONE &&
		version_is_same(&ret_seen->done, version)) {
		mark_clear(ret_seen);
		o = OUTCOME_OK;
	}
	return o;
}

enum outcome mark_give_back(
	const struct mark_ref *ref, const struct claim *claim, struct problem *ret_problem)
{
	const struct mark own = own_mark(ref, claim->id);
	struct row_write write = {0};
	row_set(&write, &mark_table, STATE | AT, &claim->before);
	row_unset(&write, &mark_table, CLAIM_SOURCE);
	if (*claim->suffix)
		row_unset(&write, &mark_table, CLAIM_SUFFIX);
	if (claim->upload.id)
		row_unset(&write, &mark_table, UPLOAD);
	row_expect(&write, &mark_table, STATE | OWNER, &own);
	const enum outcome o = write_mark(ref, &write, NULL, ret_problem);
	return o == OUTCOME_REFUSED ? OUTCOME_OK : o;
}

enum outcome mark_fail(const struct mark_ref *ref, const struct claim *claim, const char *error,
	enum upload_record record, struct problem *ret_problem)
{
	const struct mark own = own_mark(ref, claim->id);
	const struct mark mark = {
		.state = MARK_FAILED, .error = (char *)(uintptr_t)error, .at_s = changed_at_s(ref)};
	struct row_write write = {.may_sync_later = ref->may_sync_later};
	if (record == DROP_UPLOAD)
		row_unset(&write, &mark_table, UPLOAD);
	row_set(&write, &mark_table, STATE | ERROR | AT, &mark);
	row_expect(&write, &mark_table, STATE | OWNER, &own);
	const enum outcome o = write_mark(ref, &write, NULL, ret_problem);
	return o == OUTCOME_REFUSED ? OUTCOME_OK : o;
}

enum outcome mark_note_newer(const struct mark_ref *ref, const struct mark *seen, uint64_t size,
	int64_t mtime_ns, struct problem *ret_problem)
{
	const struct mark mark = {.newer_size = size, .newer_mtime_ns = mtime_ns};
	struct row_write write = {.may_sync_later = ref->may_sync_later};
	row_set(&write, &mark_table, NEWER, &mark);
	/* The write changes none of these fields. So if the request is sent twice, the second one
	 * is not refused because of the first. */
	row_expect(&write, &mark_table, STATE | OWNER | MTIME, seen);
	return write_mark(ref, &write, NULL, ret_problem);
}

enum outcome mark_refresh(const struct mark_ref *ref, const struct mark *seen, int64_t mtime_ns,
	struct problem *ret_problem)
{
	const struct mark mark = {.done.mtime_ns = mtime_ns, .at_s = now_s(ref)};
	struct row_write write = {.may_sync_later = ref->may_sync_later};
	row_set(&write, &mark_table, MTIME | AT, &mark);
	if (seen->has_newer)
		row_unset(&write, &mark_table, NEWER);
	if (seen->done.mtime_is_shared)
		row_unset(&write, &mark_table, SHARED);
	row_expect(&write, &mark_table, STATE | OWNER | MTIME, seen);
	struct mark present;
	enum outcome o = write_mark(ref, &write, &present, ret_problem);
	/* The refusal may be due to our own write. Then the mark says that the file with this mtime
	 * is done, and has the same checksum. */
	const struct file_version refreshed = {
		.size = seen->done.size, .mtime_ns = mtime_ns, .content_id = ""};
	const bool is_refreshed = mark_says(&present, &refreshed) == SAYS_DONE &&
				  strcmp(present.done.sum, seen->done.sum) == 0;
	if (o == OUTCOME_REFUSED && is_refreshed)
		o = OUTCOME_OK;
	mark_clear(&present);
	return o;
}

enum outcome mark_forget(
	const struct mark_ref *ref, const struct mark *seen, struct problem *ret_problem)
{
	const int64_t now = now_s(ref);
	struct mark mark = {
		.state = MARK_FORGOTTEN, .at_s = now, .expires_s = now + MARK_FORGOTTEN_KEEP_S};
	/* The mark was forgotten so long ago that no write from before can still arrive. */
	const bool has_expired =
		seen->state == MARK_FORGOTTEN && now > seen->at_s + MARK_FORGOTTEN_KEEP_S;
	struct row_write write = {.kind = ROW_REMOVES};
	random_id(mark.claim); /* a new id, by which this write is recognised */
	/* In a store where a write may come late, the row is replaced by one that says forgotten.
	 * If there were no row, a late duplicate of the claim, and after it one of the done mark,
	 * could bring the mark back. */
	if (!ref->conn->store->ops->removes_for_good && !has_expired) {
		write.kind = ROW_PUTS;
		row_set(&write, &mark_table, STATE | OWNER | AT | EXPIRES, &mark);
	}
	row_expect(&write, &mark_table, STATE | OWNER | UPLOAD_ID | AT, seen);
	/* mark_note_newer() changes none of these, so its own fields are compared, too. */
	row_expect(&write, &mark_table, NEWER_MTIME, seen->has_newer ? seen : NULL);
	struct mark present;
	enum outcome o = write_mark(ref, &write, &present, ret_problem);
	/* The refusal may be due to our own write, by which the row is gone or says forgotten. */
	const bool is_gone = present.state == MARK_ABSENT;
	const bool is_forgotten_here =
		present.state == MARK_FORGOTTEN && strcmp(present.claim, mark.claim) == 0;
	if (o == OUTCOME_REFUSED && (is_gone || is_forgotten_here))
		o = OUTCOME_OK;
	mark_clear(&present);
	return o;
}

/* Reads the item of a mark. It is empty if there is none. */
static enum outcome get_item(
	const struct mark_ref *ref, struct item *ret, struct problem *ret_problem)
{
	char partition[PARTITION_MAX];
	const enum outcome o =
		ref->conn->store->ops->get(ref->conn, mark_key(ref->space, ref->key, partition),
			READ_CONSISTENT, &ref->limits, ret, ret_problem);
	return o == OUTCOME_ABSENT ? OUTCOME_OK : o;
}

enum outcome mark_get_packed(
	const struct mark_ref *ref, struct packed_mark **ret, struct problem *ret_problem)
{
	struct item item = {0};
	enum outcome o = get_item(ref, &item, ret_problem);
	*ret = o == OUTCOME_OK ? mark_pack(ref->key, &item) : NULL;
	if (o == OUTCOME_OK && !*ret)
		o = outcome_no_memory(ret_problem);
	item_clear(&item);
	return o;
}

enum outcome mark_get(const struct mark_ref *ref, struct mark *ret, struct problem *ret_problem)
{
	struct item item = {0};
	enum outcome o = get_item(ref, &item, ret_problem);
	*ret = (struct mark){0};
	if (o == OUTCOME_OK && mark_from_item(&item, ret))
		o = outcome_no_memory(ret_problem);
	item_clear(&item);
	return o;
}
