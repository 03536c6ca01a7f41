/* The marks below a prefix as one stream in byte order of their keys, or of their objects' keys,
 * whatever shards they are in. Eventually consistent: what is to be acted upon is read again. */
#pragma once
#include "marks/mark.h"
#include "scan/scan.h"

/* The parts of a mark that an audit needs. It is one block of memory, to be freed by free(). */
struct mark_row {
	const char *key;
	const char *object_key; /* the key, and the suffix behind it */
	enum mark_state state;
	bool has_done, etag_is_md5; /* as in struct mark and struct version */
	bool has_newer;             /* as in struct mark */
	uint64_t file_bytes;        /* of the version that was done last; its object may be of
				       another size */
	uint64_t size, part_bytes;  /* of the version that was done last, as the four below */
	const char *etag, *sum, *parts_sum;
	const char *version_id;      /* likewise; "" if unknown */
	const char *suffix;          /* of the object's key */
	const char *session, *claim; /* who wrote it last */
	bool has_upload;             /* a multipart upload is recorded */
	bool is_of_manifest;         /* it is an entry of a manifest, and not a mark */
	int64_t at_s;                /* store time of the last change */
};
/* A copy of a mark under this key; NULL if out of memory. */
struct mark_row *mark_row_new(const char *key, const struct mark *mark);
/* What says this of the object, for sentences: "its mark" or "the manifest". */
const char *mark_row_teller(const struct mark_row *row);
/* Whether nobody has claimed the file between these two readings of its mark: a claim's id is
 * unique. */
bool mark_row_is_same(const struct mark_row *a, const struct mark_row *b);

/* The marks to read. The stream borrows all of it until mark_stream_free. */
struct mark_range {
	const char *prefix; /* "" for all */
	const char *after;  /* only keys above this one; NULL or "": from the first */
	/* In the order of the objects' keys, of which `after` is one then. An object's key is its
	 * mark's key with a suffix of compression behind it, so that the two orders differ. Marks
	 * that wait for their turn all have keys that the last key begins with, so there are at
	 * most as many as it has bytes. */
	bool by_object;
};

/* conn and space are borrowed until mark_stream_free. Memory: at most MARK_STREAM_ROWS marks.
 * 0 or -ENOMEM. */
#define MARK_STREAM_ROWS 20000
struct mark_stream;
int mark_stream_new(struct store_conn *conn, const struct mark_space *space,
	const struct mark_range *range, const struct call_limits *limits, struct mark_stream **ret);
void mark_stream_free(struct mark_stream *stream); /* NULL is fine */

/* OK sets *ret to the next mark, the caller's to free(), or to NULL after the last one. Two marks
 * may stand for the same object. */
enum outcome mark_stream_next(
	struct mark_stream *stream, struct mark_row **ret, struct problem *ret_problem);
