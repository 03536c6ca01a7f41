/* Compares an object with its mark. Pure. */
#pragma once
#include "audit/mark_stream.h"
#include "base/checksum.h"

enum object_verdict {
	VERDICT_SAME,
	VERDICT_DIFFERS,    /* surely; with a sentence */
	VERDICT_OTHER_ETAG, /* and nothing else to compare; with a sentence */
	VERDICT_UNTOLD, /* nothing to compare but the size, which is the same; with a sentence */
};

/* Compares by the listing. If the result is not SAME, only a closer look decides. */
bool verdict_of_listing(const struct mark_row *row, uint64_t size, const char *etag);
/* Compares by HEAD. A checksum that both sides have decides, or else the etag. */
enum object_verdict verdict_of_head(
	const struct mark_row *row, const struct s3_object *object, struct problem *ret_problem);
/* Compares by the content. sums has the digests that verdict_digests() names. */
enum object_verdict verdict_of_bytes(
	const struct mark_row *row, const struct sums *sums, struct problem *ret_problem);
/* The digests (enum digest_kind) to compute; 0 if the mark has nothing to compare the content with.
 */
unsigned verdict_digests(const struct mark_row *row);
