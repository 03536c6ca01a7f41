/* Judges objects in S3, in the three sections of judge_object.h: whether S3's answers prove bytes,
 * whether an object is the one of a mark, and the relation of an object to a file. src/upload calls
 * it when it finds an object, has stored one, skips a file or removes one. look.c acts upon the
 * judgement. src/audit calls it to compare marks with objects. Nothing here reads a file, sends a
 * request or writes. */
#include "marks/judge_object.h"
#include "base/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Whether the etag has the form of an MD5. */
static bool looks_like_md5(const char *etag)
{
	return strlen(etag) == 32 && strspn(etag, "0123456789abcdefABCDEF") == 32;
}

/* Reads a number of parts, 1 to 10000. Returns 0 if it is none. */
static unsigned read_part_count(const char *s)
{
	const size_t digits = strspn(s, "0123456789");
	const bool is_number = digits && digits <= 5 && !s[digits];
	const unsigned long n = is_number ? strtoul(s, NULL, 10) : 0;
	return n > 10000 ? 0 : (unsigned)n;
}

unsigned proof_etag_parts(const char *etag)
{
	return strspn(etag, "0123456789abcdefABCDEF") == 32 && etag[32] == '-'
		       ? read_part_count(etag + 33)
		       : 0;
}

/* Whether the etag has the form of an MD5, or of the MD5 of parts' MD5s. */
static bool looks_like_any_md5(const char *etag)
{
	return looks_like_md5(etag) || proof_etag_parts(etag);
}

/* Compares an etag that has the form of an MD5 with our MD5. An opaque etag need not be an MD5. So
 * it proves nothing if it differs. */
static enum proof compare_md5(const struct sums *sums, const char *etag, bool is_opaque)
{
	if (!looks_like_md5(etag) || !(sums->kinds & DIGEST_MD5))
		return PROOF_UNKNOWN;
	char hex[33];
	hex_encode(sums->md5, sizeof sums->md5, hex);
	if (strcasecmp(hex, etag) == 0)
		return PROOF_YES;
	return is_opaque ? PROOF_UNKNOWN : PROOF_NO;
}

/* Decodes a checksum from the server. *ret_parts is the number of parts if it is computed of their
 * checksums, or 0 if it is computed of the content. Returns false if it cannot be decoded. */
static bool decode_server_sum(const struct s3_sum *server_sum,
	unsigned char ret[static CHECKSUM_BYTES_MAX], unsigned *ret_parts)
{
	/* It is "BASE64", or "BASE64-N" for one of N parts. */
	const size_t n = strcspn(server_sum->text, "-");
	const bool is_of_parts = server_sum->text[n] == '-';
	const unsigned parts = is_of_parts ? read_part_count(server_sum->text + n + 1) : 0;
	if (is_of_parts && !parts)
		return false;
	*ret_parts = parts;
	return !checksum_from_base64(server_sum->kind, server_sum->text, n, ret);
}

bool proof_has_whole_sum(const struct s3_object *object)
{
	unsigned char bytes[CHECKSUM_BYTES_MAX];
	unsigned parts;
	return decode_server_sum(&object->sum, bytes, &parts) && !parts;
}

unsigned proof_needs(const struct s3_object *object, unsigned *ret_parts)
{
	unsigned char bytes[CHECKSUM_BYTES_MAX];
	unsigned kinds = 0, parts = 0;
	if (decode_server_sum(&object->sum, bytes, &parts))
		kinds = DIGEST_OF(object->sum.kind);
	if (!parts)
		parts = proof_etag_parts(object->etag);
	*ret_parts = parts;
	/* An etag that is an MD5 is compared beside the checksum. An opaque one may be an MD5, too,
	 * but is tried only if there is no checksum. */
	if (!kinds || (!object->etag_is_opaque && looks_like_any_md5(object->etag)))
		kinds |= DIGEST_MD5;
	return kinds;
}

/* Combines two comparisons: NO if one of them is NO, otherwise YES if one is YES. */
static enum proof combine_proofs(enum proof a, enum proof b)
{
	if (a == PROOF_NO || b == PROOF_NO)
		return PROOF_NO;
	return a == PROOF_YES ? PROOF_YES : b;
}

/* Compares the server's checksum of the whole content with ours. */
static enum proof compare_sum(const struct sums *sums, const struct s3_sum *server_sum)
{
	unsigned char bytes[CHECKSUM_BYTES_MAX];
	unsigned parts;
	const bool has_ours = (sums->kinds & DIGEST_OF(server_sum->kind)) != 0;
	if (!has_ours || !decode_server_sum(server_sum, bytes, &parts) || parts)
		return PROOF_UNKNOWN;
	const size_t n = checksum_kinds[server_sum->kind].bytes;
	const bool is_same = memcmp(bytes, sums_bytes(sums, server_sum->kind), n) == 0;
	return is_same ? PROOF_YES : PROOF_NO;
}

enum proof proof_whole(
	const struct sums *sums, const struct s3_object *object, enum proof_size size)
{
	if (size == SIZE_KNOWN && object->size != sums->bytes)
		return PROOF_NO;
	return combine_proofs(compare_sum(sums, &object->sum),
		compare_md5(sums, object->etag, object->etag_is_opaque));
}

enum proof proof_part(const struct sums *sums, const struct s3_part *part)
{
	if (part->size != sums->bytes)
		return PROOF_NO;
	return combine_proofs(
		compare_sum(sums, &part->sum), compare_md5(sums, part->etag, part->etag_is_opaque));
}

/* Compares the checksum of the parts' checksums, "base64-N". Some servers omit the "-N". An object
 * with another number of parts was cut differently, and cannot be compared in this way. */
static enum proof compare_composite_sum(
	const struct sums *parts, size_t n, const struct s3_sum *server_sum)
{
	unsigned char theirs[CHECKSUM_BYTES_MAX], ours[CHECKSUM_BYTES_MAX];
	unsigned server_parts; /* 0: without "-N" */
	if (!decode_server_sum(server_sum, theirs, &server_parts))
		return PROOF_UNKNOWN;
	if (server_parts && server_parts != n)
		return PROOF_UNKNOWN;
	if (sums_compose(parts, n, server_sum->kind, ours))
		return PROOF_UNKNOWN;
	if (memcmp(ours, theirs, checksum_kinds[server_sum->kind].bytes) == 0)
		return PROOF_YES;
	/* A checksum without "-N" may be that of the whole content, which compare_sum() compares.
	 */
	return server_parts ? PROOF_NO : PROOF_UNKNOWN;
}

/* Compares an etag that has the form of the MD5 of n parts' MD5s. */
static enum proof compare_composite_md5(
	const struct sums *parts, size_t n, const struct s3_object *object)
{
	unsigned char md5[CHECKSUM_BYTES_MAX];
	char hex[33];
	if (proof_etag_parts(object->etag) != n || sums_compose(parts, n, CHECKSUM_MD5, md5))
		return PROOF_UNKNOWN;
	hex_encode(md5, 16, hex);
	if (strncasecmp(hex, object->etag, 32) == 0)
		return PROOF_YES;
	return object->etag_is_opaque ? PROOF_UNKNOWN : PROOF_NO;
}

enum proof proof_parts(
	const struct sums *parts, size_t n, const struct s3_object *object, enum proof_size size)
{
	const struct sums whole = sums_combine(parts, n);
	if (size == SIZE_KNOWN && object->size != whole.bytes)
		return PROOF_NO;
	enum proof proof = compare_composite_sum(parts, n, &object->sum);
	if (proof == PROOF_UNKNOWN)
		proof = compare_sum(&whole, &object->sum);
	return combine_proofs(proof, compare_composite_md5(parts, n, object));
}

/* Whether the object holds the bytes that s3once sent for it, according to its own metadata. The
 * metadata of an object that was sent in parts has no sums. But s3once has compared each of its
 * parts with the server's answer, before the object became visible. So such an object is proven if
 * the server has a checksum or an etag that could be compared. */
static enum proof proof_sent(const struct s3_object *object)
{
	const struct sums *sent = &object->meta.sums;
	if (sent->kinds) {
		const enum proof proof = compare_sum(sent, &object->sum);
		return proof != PROOF_UNKNOWN
			       ? proof
			       : compare_md5(sent, object->etag, object->etag_is_opaque);
	}
	const bool was_sent_in_parts = *object->meta.table_id && object->meta.part_bytes;
	const bool has_server_value =
		*object->sum.text || (!object->etag_is_opaque && looks_like_any_md5(object->etag));
	return was_sent_in_parts && has_server_value ? PROOF_YES : PROOF_UNKNOWN;
}

enum proof proof_encoded(
	const struct s3_object *object, const char *table, int64_t mtime_ns, int64_t ctime_ns)
{
	const struct s3_meta *meta = &object->meta;
	const enum proof sent = proof_sent(object);
	if (sent != PROOF_YES)
		return sent;
	/* The metadata are about this file only if an uploader with our marks wrote them for this
	 * key. A copy that was made in S3 keeps the metadata of another key. */
	if (strcmp(meta->table_id, table) != 0 || meta->written_for != S3_WRITTEN_FOR_THIS)
		return PROOF_UNKNOWN;
	if (*meta->content_id)
		return PROOF_YES; /* the caller has compared the content */
	if (meta->mtime_ns != mtime_ns)
		return PROOF_NO;
	/* The mtime alone proves nothing, since it can be set. A ctime of 0 was not recorded. */
	return meta->ctime_ns && meta->ctime_ns == ctime_ns ? PROOF_YES : PROOF_UNKNOWN;
}

void version_set_object(struct version *ret, const struct s3_object *object, bool etags_are_md5)
{
	ret->etag_is_md5 =
		etags_are_md5 && !object->etag_is_opaque && looks_like_any_md5(object->etag);
	memcpy(ret->etag, object->etag, sizeof ret->etag);
	if (strlen(object->version_id) <= VERSION_MAX)
		memcpy(ret->version_id, object->version_id, strlen(object->version_id) + 1);
}

struct recorded recorded_object(const struct version *version)
{
	return (struct recorded){.bytes = version_object_bytes(version),
		.sum = version_object_sum(version),
		.parts_sum = version->parts_sum,
		.etag = version->etag,
		.etag_is_md5 = version->etag_is_md5};
}

struct recorded recorded_content(const struct version *version)
{
	if (!version->object_bytes)
		return recorded_object(version);
	return (struct recorded){
		.bytes = version->size, .sum = version->sum, .parts_sum = "", .etag = ""};
}

/* Whether two checksums can be compared: both exist and are of the same kind, and both are of the
 * whole content or both of parts. */
static bool are_comparable(const struct s3_sum *a, const struct s3_sum *b)
{
	const bool a_is_of_parts = strchr(a->text, '-') != NULL;
	const bool b_is_of_parts = strchr(b->text, '-') != NULL;
	return *a->text && *b->text && a->kind == b->kind && a_is_of_parts == b_is_of_parts;
}

struct s3_sum recorded_sum_like(const struct recorded *recorded, const struct s3_sum *server_sum)
{
	struct s3_sum sum = mark_sum_parse(recorded->sum);
	if (!are_comparable(&sum, server_sum))
		sum = mark_sum_parse(recorded->parts_sum);
	return are_comparable(&sum, server_sum) ? sum : (struct s3_sum){.text = ""};
}

enum proof recorded_matches(const struct recorded *recorded, const struct s3_object *object)
{
	const struct s3_sum sum = recorded_sum_like(recorded, &object->sum);
	if (object->size != recorded->bytes)
		return PROOF_NO;
	if (*sum.text)
		return strcmp(sum.text, object->sum.text) == 0 ? PROOF_YES : PROOF_NO;
	/* Another etag proves nothing: a server may return another one later for the same bytes. */
	const bool has_same_etag = *recorded->etag && strcmp(recorded->etag, object->etag) == 0;
	return has_same_etag ? PROOF_YES : PROOF_UNKNOWN;
}

unsigned recorded_digests(const struct recorded *recorded)
{
	const struct s3_sum sum = mark_sum_parse(recorded->sum);
	unsigned kinds = *sum.text ? DIGEST_OF(sum.kind) : 0U;
	if (recorded->etag_is_md5 && looks_like_md5(recorded->etag))
		kinds |= DIGEST_MD5;
	return kinds;
}

/* Makes an object of the recorded values, and compares the sums with it. An etag that is not known
 * to be an MD5 is ignored: if it had the form of an MD5, it would differ although the bytes are the
 * same. */
enum proof recorded_matches_bytes(const struct recorded *recorded, const struct sums *sums)
{
	struct s3_object object = {.size = recorded->bytes, .sum = mark_sum_parse(recorded->sum)};
	if (recorded->etag_is_md5)
		snprintf(object.etag, sizeof object.etag, "%s", recorded->etag);
	return proof_whole(sums, &object, SIZE_KNOWN);
}

/* The etags are compared here, since recorded_matches() ignores them where it can compare
 * checksums. */
bool judge_is_done_version(const struct claim *claim, const struct s3_object *object)
{
	const struct version *done = &claim->before.done;
	const struct recorded recorded = recorded_object(done);
	const bool has_same_etag = *done->etag && strcmp(done->etag, object->etag) == 0;
	return claim->before.has_done && has_same_etag &&
	       recorded_matches(&recorded, object) == PROOF_YES;
}

/* Whether the object was written for this very mark. A copy that was made in S3 keeps the metadata,
 * but it is not under the key that it was written for. */
static bool is_of_this_mark(const struct evidence *e)
{
	const struct s3_meta *meta = &e->object->meta;
	return strcmp(meta->table_id, e->table_id) == 0 && meta->written_for == S3_WRITTEN_FOR_THIS;
}

/* Whether the metadata claim that the object has the file's content. The input of a pipe is known
 * by its key: whatever was sent for its mark is its content. The mark's key is that of the object
 * without the suffix, so that an object X.gz of its own is not the output X. */
static bool says_content(const struct evidence *e)
{
	if (e->file.is_piped)
		return is_of_this_mark(e) && strcmp(e->object->meta.suffix, e->suffix) == 0;
	return *e->file.content_id && strcmp(e->object->meta.content_id, e->file.content_id) == 0;
}

/* An object that was compressed from a file X is not an earlier version of a file X.zst, nor the
 * reverse. So the suffix has to be the same. A log that is known by its content may be the same log
 * under either suffix. */
bool judge_is_ours(const struct evidence *e)
{
	return is_of_this_mark(e) &&
	       (strcmp(e->object->meta.suffix, e->suffix) == 0 || says_content(e));
}

/* Whether the object was sent in parts, under our own claim, of a version with this size and mtime.
 * An object was sent in parts if its metadata lacks the sums of the sent bytes. */
static bool was_sent_from_this_version(const struct evidence *e)
{
	const struct s3_meta *meta = &e->object->meta;
	const uint64_t size = *meta->encoding ? meta->content_bytes : e->object->size;
	const bool was_sent_in_parts = !meta->sums.kinds;
	const bool has_our_claim = strcmp(meta->claim_id, e->claim->id) == 0;
	const bool is_this_version = meta->mtime_ns == e->file.mtime_ns && size == e->file.size;
	return was_sent_in_parts && has_our_claim && is_this_version;
}

/* Facts about an object and a file. */
enum fact {
	IS_THE_FILE = 1 << 0,    /* proven by comparing the bytes */
	IS_OTHER_BYTES = 1 << 1, /* shown to differ by comparing the bytes */
	IS_TO_REPLACE = 1 << 2,  /* the object that is to be replaced, and may be */
	IS_OURS = 1 << 3,        /* judge_is_ours() */
	IS_AS_SENT = 1 << 4,     /* it holds the bytes that were sent, by its own metadata */
	IS_NOT_AS_SENT = 1 << 5, /* it holds other bytes than were sent */
	IS_UNKNOWN = 1 << 6,     /* nothing shows which bytes it holds */
	IS_FROM_THIS_VERSION =
		1 << 7, /* was_sent_from_this_version(): sent from this version of the file */
	SAYS_CONTENT = 1 << 8, /* its metadata have the id of the file's content */
	WAS_DONE = 1 << 9,     /* the version that was done according to the mark */
};

static unsigned facts_of(const struct evidence *e)
{
	const enum proof sent = proof_sent(e->object);
	/* An object that another client uploaded is replaced only if replaces_any, even if its
	 * content was adopted once. */
	const bool has_replaced_etag =
		*e->replaced_etag && strcmp(e->replaced_etag, e->object->etag) == 0;
	const bool is_to_replace = has_replaced_etag && (e->replaces_any || judge_is_ours(e));
	const unsigned as_sent = sent == PROOF_YES  ? IS_AS_SENT
				 : sent == PROOF_NO ? IS_NOT_AS_SENT
						    : IS_UNKNOWN;
	return (e->proof == PROOF_YES ? IS_THE_FILE : 0U) |
	       (e->proof == PROOF_NO ? IS_OTHER_BYTES : 0U) | (is_to_replace ? IS_TO_REPLACE : 0U) |
	       (judge_is_ours(e) ? IS_OURS : 0U) | as_sent |
	       (was_sent_from_this_version(e) ? IS_FROM_THIS_VERSION : 0U) |
	       (says_content(e) ? SAYS_CONTENT : 0U) |
	       (judge_is_done_version(e->claim, e->object) ? WAS_DONE : 0U);
}

/* The first row whose facts are all true decides. The last row requires none, so one row always
 * matches. docs/protocol.md ("What an object is to a file") has the same rows in words. */
static const struct {
	unsigned facts;
	enum judgement judgement;
} table[] = {
	{IS_THE_FILE, JUDGED_THE_FILE},
	{IS_TO_REPLACE, JUDGED_REPLACED},
	{IS_OURS | IS_NOT_AS_SENT, JUDGED_DAMAGED},
	{IS_OURS | IS_OTHER_BYTES | IS_FROM_THIS_VERSION, JUDGED_DAMAGED},
	{SAYS_CONTENT | IS_AS_SENT, JUDGED_THE_CONTENT},
	{SAYS_CONTENT | IS_UNKNOWN, JUDGED_UNPROVEN},
	{IS_OURS | IS_OTHER_BYTES, JUDGED_EARLIER},
	{WAS_DONE, JUDGED_EARLIER},
	{0, JUDGED_FOREIGN},
};
const unsigned judge_rows = sizeof table / sizeof *table;

unsigned judge_row(const struct evidence *evidence)
{
	const unsigned facts = facts_of(evidence);
	unsigned row = 0;
	while ((facts & table[row].facts) != table[row].facts)
		row++;
	return row;
}

enum judgement judge(const struct evidence *evidence)
{
	return table[judge_row(evidence)].judgement;
}
