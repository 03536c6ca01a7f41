/* The mark of a file in memory, and the comparison of a file with it. mark_row.h has its row in the
 * store. Nothing here sends a request. */
#pragma once
#include "base/random.h"
#include "base/text.h"
#include "marks/store_settings.h"
#include "s3/s3.h"
#include "store/store.h"

#define SUFFIX_MAX          4             /* ".bz2" */
#define UPLOAD_ENCODING_MAX 47            /* as S3_ENCODING_MAX */
#define UPLOAD_CONTENT_MAX  64            /* hex digits */
#define SUM_MAX             60            /* a checksum's name, ":" and base64 */
#define PARTS_SUM_MAX       (SUM_MAX + 6) /* "-N" after it */
#define CONTENT_MAX         64            /* hex digits of a content id */
#define VERSION_MAX         127           /* a longer version id is dropped */
#define PRODUCER_ID_MAX     64

/* A version of a file: one that was read, or one that is done according to a mark. */
struct version {
	uint64_t size;
	int64_t mtime_ns;
	bool mtime_is_shared;  /* the file once had other content with the same size and mtime, so
				  only the content tells them apart */
	char sum[SUM_MAX + 1]; /* "crc32c:…" of the file's whole content; "" if not read */
	char etag[S3_ETAG_MAX + 1]; /* etag of the object, without quotes; "" if unknown */
	bool etag_is_md5;    /* the etag is the MD5 of the content, or of the MD5s of its parts */
	uint64_t part_bytes; /* bytes of the file in each part; 0: sent whole, or unknown */
	char parts_sum[PARTS_SUM_MAX + 1]; /* "sha256:…-N", the checksum of the parts' checksums, if
					      these do not combine to that of the whole; or "" */
	char content_id[CONTENT_MAX + 1]; /* id of the decompressed content; "" for a file that is
					     identified by size and mtime */
	char suffix[SUFFIX_MAX + 1];      /* suffix of compression that the object's key has and the
					     mark's key lacks; usually "" */
	/* size of its object, if that is encoded; 0: the file is the object */
	uint64_t object_bytes;
	char object_sum[SUM_MAX + 1]; /* likewise, for the object; "" if unknown */
	char version_id[VERSION_MAX +
			1]; /* version id of the object; "" without versioning, or if unknown */
	char producer_id[PRODUCER_ID_MAX +
			 1]; /* for the input of a pipe, the producer's id; "" if it has none */
};
/* The size and the checksum of the version's object, as HEAD shows them if the object has not
 * changed. */
uint64_t version_object_bytes(const struct version *version);
const char *version_object_sum(const struct version *version);
/* Whether two uploaders sent the same version of a file. The etags may differ nevertheless, for
 * example if the sizes of their parts differ. */
bool version_is_same(const struct version *a, const struct version *b);

/* A file for comparison with a mark (mark_says()), by its size and mtime or by its content id. */
struct file_version {
	uint64_t size;
	int64_t mtime_ns;
	const char *content_id; /* "": the file is identified by size and mtime */
	bool is_piped; /* the input of a pipe, which is identified by its key and producer */
	const char *producer_id; /* producer of the input of a pipe; NULL: it has no id */
};

/* Writes the checksum for a mark: of the kind `wanted` if that was computed, otherwise the first
 * one in the order of enum checksum. "" if none was computed. */
void mark_sum_of(const struct sums *sums, enum checksum wanted, char ret[static SUM_MAX + 1]);
/* Writes the checksum of the checksums of n parts, "NAME:BASE64-N". It is "" if checksums of this
 * kind combine to one of the whole, if it is MD5 (which the etag is then), or if it was not
 * computed. */
void mark_parts_sum_of(
	const struct sums *parts, size_t n, enum checksum kind, char ret[static PARTS_SUM_MAX + 1]);
/* Converts a sum from mark_sum_of() or mark_parts_sum_of() to the form of a server's sum. The text
 * is "" if the sum is not one of ours. */
struct s3_sum mark_sum_parse(const char *sum);

/* A multipart upload that was begun and not completed. A mark records it, so that any run can send
 * the missing parts. Zero: there is none.
 *
 * It has one owner at a time: the mark that was read, and after a take-over the claim. A new upload
 * belongs to its claim once it is recorded. */
struct open_upload {
	char *id;     /* the upload id, owned; NULL: none is recorded */
	bool is_open; /* it probably still exists in S3 */
	/* kind of checksum of its parts; CHECKSUMS: an unknown algorithm */
	enum checksum checksum;
	/* The encryption of its object: the MD5 of the caller's key (SSE-C), the value of the
	 * setting sse, or "". */
	char encryption[S3_KEY_MD5_CHARS + 1];
	char suffix[SUFFIX_MAX + 1]; /* suffix of the object's key, as in struct mark */
	/* The encoding of its parts, each from part_bytes of the file. "": not encoded. */
	char encoding[UPLOAD_ENCODING_MAX + 1];
	uint64_t part_bytes; /* bytes of the file in all parts but the last */
	uint64_t size;       /* size of the file's version for which it was begun */
	int64_t mtime_ns;    /* likewise */
	/* Content id of that version in the metadata of the upload; "" if it has none. */
	char content_id[UPLOAD_CONTENT_MAX + 1];
	char table_id[ID_CHARS + 1]; /* id of the marks in the metadata of the upload */
};

/* Frees its strings and zeroes it. */
void open_upload_clear(struct open_upload *upload);
/* Clears *to, moves *from into it, and zeroes *from. */
void open_upload_move(struct open_upload *to, struct open_upload *from);

enum mark_state {
	MARK_ABSENT,
	MARK_CLAIMED,
	MARK_DONE,
	MARK_FAILED,
	MARK_FORGOTTEN, /* counts as absent; the row is removed by its time to live */
	MARK_UNREADABLE /* not understood, perhaps of a later layout; never taken over */
};
const char *mark_state_name(enum mark_state state);

/* A mark in memory. Owns its strings. A zeroed one is absent. */
struct mark {
	enum mark_state state;
	char session[ID_CHARS + 1], claim[ID_CHARS + 1];
	bool has_done; /* a version was done at some time; `done` is the last one */
	struct version done;
	/* "host:directory" of the done version; without one, of the first claim, which may have
	 * uploaded an object before it ended; NULL: unknown */
	char *source;
	char *claim_source; /* "host:directory" of a later claim or of its failure; NULL: there is
			       none */
	char claim_suffix[SUFFIX_MAX + 1]; /* suffix of the object of its claim or failure */
	/* If a run found that the file of a done mark has changed, and did not upload it: the size
	 * and the mtime of the changed file. */
	bool has_newer;
	uint64_t newer_size;
	int64_t newer_mtime_ns;
	struct open_upload upload; /* open upload of the claim or failure */
	int64_t tries;
	char *error;       /* the reason of its failure, or NULL */
	int64_t at_s;      /* store time of the last change */
	int64_t expires_s; /* if forgotten: the time at which the store may remove the row */
};
void mark_clear(struct mark *mark);
/* Return the suffix of the mark's object, and its source or NULL: those of the claim if the mark is
 * claimed or failed, otherwise those of the done version. Borrowed. */
const char *mark_suffix(const struct mark *mark);
const char *mark_source(const struct mark *mark);

/* The place of a bucket's marks. The partition of a key is "<service>/<bucket>#<shard>", or
 * "<service>/<bucket>~<generation>#<shard>" if the bucket has replaced an earlier one of the same
 * name. The name of a bucket never contains '~'. */
struct mark_space {
	char service[256]; /* aws_settings_service() */
	char bucket[256];
	int generation; /* generation (bucket_row.h); 0: the first */
	struct store_settings settings;
};
#define PARTITION_MAX 560
/* The shard of a key never changes: it is FNV-1a 64 of the key's bytes, modulo `shards`. */
unsigned mark_shard(const char *key, unsigned shards);
/* Writes the name of this shard's partition. */
void mark_partition(const struct mark_space *space, unsigned shard, char ret[static PARTITION_MAX]);
/* Returns the key of a mark's row, which borrows `key` and `partition`. */
struct item_key mark_key(
	const struct mark_space *space, const char *key, char partition[static PARTITION_MAX]);

/* The result of comparing a file with its mark. */
enum mark_says {
	SAYS_FREE,    /* absent, forgotten or failed: claim it, or take it over */
	SAYS_DONE,    /* this very version is done */
	SAYS_COMPARE, /* done with the same size, but the mtime differs, or was shared by other
			 content: compare the content */
	SAYS_CHANGED, /* another version is done */
	SAYS_CLAIMED, /* claimed by another session, whose row shows whether the claim is stale; or
			 the mark is MARK_UNREADABLE */
};
/* Compares a file with its mark. The input of a pipe is done if its mark is done, unless the mark
 * has the id of another producer. If both the mark and the file have a content id, only the ids are
 * compared. */
enum mark_says mark_says(const struct mark *mark, const struct file_version *file);
