/* Random objects, files and marks, judged by the table and by a model. The model follows the words
 * of docs/protocol.md ("What an object is to a file"), and has none of the code's facts. */
#include "../check.h"
#include "marks/judge_object.h"

#define ROUNDS  100000
#define MD5     "5d41402abc4b2a76b9719d911017c592"
#define OPAQUE  "0123-opaque"
#define CONTENT "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
#define CRC     "AAAAAA==" /* of four bytes of 0 */
#define CRC_2   "AAAAAQ=="
#define SIZE    5
#define MTIME   7

static uint64_t state = 1;

static unsigned below(unsigned n)
{
	state = state * 6364136223846793005U + 1442695040888963407U;
	return (unsigned)(state >> 33) % n;
}

/* One of these strings. */
#define ONE_OF(...)                                                                                \
	((const char *const[]){__VA_ARGS__}[below(                                                 \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))])

struct drawn {
	struct s3_object object;
	struct claim claim;
	struct evidence evidence;
	char replaces[S3_ETAG_MAX + 1];
};

static void draw(struct drawn *d)
{
	*d = (struct drawn){0};
	struct s3_object *object = &d->object;
	struct s3_meta *meta = &object->meta;
	struct version *done = &d->claim.before.done;
	object->size = below(4) ? SIZE : SIZE + 1;
	object->etag_is_opaque = below(4) == 0;
	object->sum.kind = below(4) ? CHECKSUM_CRC32C : CHECKSUM_CRC32;
	snprintf(object->etag, sizeof object->etag, "%s", ONE_OF(MD5, MD5 "-2", OPAQUE, ""));
	snprintf(object->sum.text, sizeof object->sum.text, "%s",
		ONE_OF("", CRC, CRC_2, CRC "-2", CRC_2 "-2"));
	snprintf(meta->table_id, sizeof meta->table_id, "%s", ONE_OF("", "ours", "ours", "theirs"));
	meta->written_for = (enum s3_written_for)below(3);
	snprintf(meta->claim_id, sizeof meta->claim_id, "%s", ONE_OF("", "now", "another"));
	snprintf(meta->suffix, sizeof meta->suffix, "%s", ONE_OF("", "", ".gz"));
	snprintf(meta->content_id, sizeof meta->content_id, "%s", ONE_OF("", CONTENT, "another"));
	snprintf(meta->encoding, sizeof meta->encoding, "%s", ONE_OF("", "", "gzip-1"));
	meta->content_bytes = below(2) ? SIZE : SIZE + 1;
	meta->mtime_ns = below(4) ? MTIME : MTIME + 1;
	meta->part_bytes = below(2) * 3;
	if (below(2)) {
		meta->sums.kinds = below(2) ? DIGEST_CRC32C | DIGEST_MD5 : DIGEST_MD5;
		meta->sums.crc32c[3] = (unsigned char)below(2);
		memcpy(meta->sums.md5,
			"\x5d\x41\x40\x2a\xbc\x4b\x2a\x76\xb9\x71\x9d\x91\x10\x17\xc5\x92", 16);
		meta->sums.md5[15] ^= (unsigned char)below(2);
	}
	snprintf(d->claim.id, sizeof d->claim.id, "now");
	d->claim.before.has_done = below(2);
	done->size = below(4) ? SIZE : SIZE + 1;
	snprintf(done->etag, sizeof done->etag, "%s", below(2) ? object->etag : ONE_OF("", "x"));
	snprintf(done->sum, sizeof done->sum, "%s", ONE_OF("", "crc32c:" CRC, "crc32c:" CRC_2));
	snprintf(done->parts_sum, sizeof done->parts_sum, "%s",
		ONE_OF("", "crc32c:" CRC "-2", "crc32c:" CRC_2 "-2"));
	if (below(4) == 0) { /* it was compressed: the object has a size and a sum of its own */
		done->object_bytes = below(2) ? SIZE : SIZE + 1;
		done->size = 99;
		memcpy(done->object_sum, done->sum, sizeof done->object_sum);
		snprintf(done->sum, sizeof done->sum, "crc32c:" CRC_2);
	}
	snprintf(d->replaces, sizeof d->replaces, "%s",
		below(2)   ? ""
		: below(2) ? object->etag
			   : "another");
	d->evidence = (struct evidence){.object = object,
		.proof = (enum proof[]){PROOF_NO, PROOF_NO, PROOF_UNKNOWN, PROOF_YES}[below(4)],
		.file = {SIZE, MTIME, ONE_OF("", "", CONTENT), below(5) == 0},
		.suffix = ONE_OF("", "", ".gz"),
		.table_id = "ours",
		.claim = &d->claim,
		.replaced_etag = d->replaces,
		.replaces_any = below(3) == 0};
}

static bool is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* Whether its metadata shows that it is what was sent for it. */
static enum proof is_as_sent(const struct s3_object *object)
{
	const struct sums *sums = &object->meta.sums;
	const bool has_parts = strchr(object->sum.text, '-') != NULL;
	if (!sums->kinds) {
		const bool is_told =
			*object->sum.text ||
			(!object->etag_is_opaque && strncmp(object->etag, MD5, 32) == 0);
		return *object->meta.table_id && object->meta.part_bytes && is_told ? PROOF_YES
										    : PROOF_UNKNOWN;
	}
	if ((sums->kinds & DIGEST_CRC32C) && object->sum.kind == CHECKSUM_CRC32C &&
		*object->sum.text && !has_parts)
		return is(object->sum.text, sums->crc32c[3] ? CRC_2 : CRC) ? PROOF_YES : PROOF_NO;
	/* An opaque etag that equals the MD5 is one. If it differs, it may be anything. */
	if (is(object->etag, MD5) && sums->md5[15] == 0x92)
		return PROOF_YES;
	return is(object->etag, MD5) && !object->etag_is_opaque ? PROOF_NO : PROOF_UNKNOWN;
}

/* Whether it is the version that the mark said was done. */
static bool was_done(const struct drawn *d)
{
	const struct version *done = &d->claim.before.done;
	const struct s3_object *object = &d->object;
	const char *whole = done->object_bytes ? done->object_sum : done->sum;
	const char *told = object->sum.text;
	if (!d->claim.before.has_done || !*done->etag || !is(done->etag, object->etag) ||
		object->size != (done->object_bytes ? done->object_bytes : done->size))
		return false;
	const char *kept = strchr(told, '-') ? done->parts_sum : whole;
	const bool can_compare = *told && *kept && object->sum.kind == CHECKSUM_CRC32C;
	return !can_compare || is(told, kept + strlen("crc32c:"));
}

static enum judgement model(const struct drawn *d)
{
	const struct evidence *j = &d->evidence;
	const struct s3_object *object = &d->object;
	const struct s3_meta *meta = &object->meta;
	const bool is_written_here =
		is(meta->table_id, "ours") && meta->written_for == S3_WRITTEN_FOR_THIS;
	const bool same_suffix = is(meta->suffix, j->suffix);
	const bool names_content =
		j->file.is_piped ? is_written_here && same_suffix
				 : *j->file.content_id && is(meta->content_id, j->file.content_id);
	const bool is_ours = is_written_here && (same_suffix || names_content);
	const enum proof sent = is_as_sent(object);
	if (j->proof == PROOF_YES)
		return JUDGED_THE_FILE;
	if (*d->replaces && is(d->replaces, object->etag) && (is_ours || j->replaces_any))
		return JUDGED_REPLACED;
	if (is_ours && sent == PROOF_NO)
		return JUDGED_DAMAGED;
	if (is_ours && j->proof == PROOF_NO && !meta->sums.kinds && is(meta->claim_id, "now") &&
		meta->mtime_ns == MTIME &&
		(*meta->encoding ? meta->content_bytes : object->size) == SIZE)
		return JUDGED_DAMAGED;
	if (names_content && sent == PROOF_YES)
		return JUDGED_THE_CONTENT;
	if (names_content && sent == PROOF_UNKNOWN)
		return JUDGED_UNPROVEN;
	if (is_ours && j->proof == PROOF_NO)
		return JUDGED_EARLIER;
	return was_done(d) ? JUDGED_EARLIER : JUDGED_FOREIGN;
}

int main(void)
{
	unsigned decided[32] = {0};
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct drawn d;
		draw(&d);
		const unsigned row = judge_row(&d.evidence);
		decided[row]++;
		if (!CHECK_INT(judge(&d.evidence), model(&d))) {
			fprintf(stderr, "\tround %u, row %u: sum %s, etag %s\n", round, row + 1,
				d.object.sum.text, d.object.etag);
			break;
		}
	}
	/* Chance has come to each row. */
	for (unsigned i = 0; i < judge_rows; i++)
		if (!CHECK(decided[i] > ROUNDS / 1000))
			fprintf(stderr, "\trow %u has decided only %u times\n", i + 1, decided[i]);
	return check_result();
}
