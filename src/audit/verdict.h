/* An object against its mark. Pure. */
#pragma once
#include "audit/mark_stream.h"
#include "base/checksum.h"

enum verdict {
	VERDICT_SAME,
	VERDICT_DIFFERS,    /* surely; with a sentence */
	VERDICT_OTHER_ETAG, /* and nothing else to compare; with a sentence */
	VERDICT_UNTOLD, /* nothing to compare but the size, which is the same; with a sentence */
};

/* What a listing tells: SAME, or anything else that only a closer look decides. */
bool verdict_of_listing(const struct mark_row *row, uint64_t size, const char *etag);
/* What HEAD tells. A checksum that both sides have decides; else the etag does. */
enum verdict verdict_of_head(
	const struct mark_row *row, const struct s3_object *object, struct problem *ret_problem);
/* What the bytes tell: sums has what verdict_digests() names. */
enum verdict verdict_of_bytes(
	const struct mark_row *row, const struct sums *sums, struct problem *ret_problem);
/* Of enum digest_kind: 0 if the mark has nothing that bytes can be compared with. */
unsigned verdict_digests(const struct mark_row *row);
