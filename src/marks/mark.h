/* The mark of one file, as it is in memory, and its verdict about the file. mark_row.h has its row
 * in the store. Nothing here sends a request. */
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
#define VERSION_MAX         127           /* a longer id of a version is not kept */
#define PRODUCER_ID_MAX     64

/* A version of a file: one that was read, or one that was sent and proven according to a done
 * mark. */
struct version {
	uint64_t size;
	int64_t mtime_ns;
	bool mtime_is_shared;  /* the file has also had other content with this size and mtime: only
				  the content distinguishes them */
	char sum[SUM_MAX + 1]; /* "crc32c:…" of the file's whole content; "" if not read */
	char etag[S3_ETAG_MAX + 1]; /* etag of the object, without quotes; "" if unknown */
	bool etag_is_md5;    /* the etag is the MD5 of the content, or of the MD5s of its parts */
	uint64_t part_bytes; /* each part was made of this many bytes of the file; 0: sent whole, or
				unknown */
	char parts_sum[PARTS_SUM_MAX + 1]; /* "sha256:…-N", the checksum of the parts' checksums, if
					      these do not combine to that of the whole; or "" */
	char content_id[CONTENT_MAX + 1]; /* id of the content, whatever it is compressed with; ""
					  for a file that is known by size and mtime */
	char suffix[SUFFIX_MAX + 1]; /* suffix of compression: the object's key is the mark's key
					followed by it; mostly "" */
	/* size of its object, if that is encoded; 0: the file is the object */
	uint64_t object_bytes;
	char object_sum[SUM_MAX + 1];     /* likewise, for the object; "" if unknown */
	char version_id[VERSION_MAX + 1]; /* version of the object; "" where the bucket keeps no
					     versions, or if unknown */
	char producer_id[PRODUCER_ID_MAX + 1]; /* of the input of a pipe: the producer's id; "" if
						  it has none */
};
/* The size and the checksum of the version's object, which HEAD shows unless the object has
 * changed. */
uint64_t version_object_bytes(const struct version *version);
const char *version_object_sum(const struct version *version);
/* Whether two uploaders sent the same version of a file. The etag may differ all the same, for
 * example if their parts had other sizes. */
bool version_is_same(const struct version *a, const struct version *b);

/* A file to compare with a mark (mark_says()): by its size and mtime, or by its content's id. */
struct file_version {
	uint64_t size;
	int64_t mtime_ns;
	const char *content_id;  /* that id; "" if the file is known by size and mtime */
	bool is_piped;           /* the input of a pipe, which is known by its key and producer */
	const char *producer_id; /* of the input of a pipe; NULL: its producer has no id */
};

/* Writes the checksum that a mark records: that of the kind `wanted` if it was computed, otherwise
 * the first one in the order of enum checksum. "" if none was computed. */
void mark_sum_of(const struct sums *sums, enum checksum wanted, char ret[static SUM_MAX + 1]);
/* Writes the checksum of the checksums of n parts, "NAME:BASE64-N". It is "" if checksums of this
 * kind combine to one of the whole, if it is MD5 (which the etag is then), or if it was not
 * computed. */
void mark_parts_sum_of(
	const struct sums *parts, size_t n, enum checksum kind, char ret[static PARTS_SUM_MAX + 1]);
/* Converts a sum that mark_sum_of() or mark_parts_sum_of() has written into the form of a server's
 * sum. The text is "" if it is no checksum of ours. */
struct s3_sum mark_sum_parse(const char *sum);

/* A multipart upload that was begun and has not become an object yet. A mark records it, so that
 * any run can send the parts that are missing. Zero: there is none.
 *
 * It has one owner at a time: the mark that was read, and then the claim that took the mark over.
 * An upload that is begun under a claim belongs to that claim once it is recorded. */
struct open_upload {
	char *id;     /* the upload id, owned; NULL: none is recorded */
	bool is_open; /* S3 probably still has it */
	/* checksum of its parts; CHECKSUMS for an algorithm that is not ours */
	enum checksum checksum;
	/* The encryption of its object: the MD5 of the caller's key (SSE-C), the value of the
	 * setting sse, or "". */
	char encryption[S3_KEY_MD5_CHARS + 1];
	char suffix[SUFFIX_MAX + 1]; /* suffix of the object's key, as in struct mark */
	/* The encoding of its parts, each of which is made of part_bytes of the file. "" if they
	 * are sent as they are. */
	char encoding[UPLOAD_ENCODING_MAX + 1];
	uint64_t part_bytes; /* bytes of the file in all parts but the last */
	uint64_t size;       /* size of the version of the file that it was begun for */
	int64_t mtime_ns;    /* likewise */
	/* The id of the content of that version of the file, as the metadata of the upload has it;
	 * "" if the metadata has none. */
	char content_id[UPLOAD_CONTENT_MAX + 1];
	char table_id[ID_CHARS + 1]; /* the id of the marks, as the metadata of the upload has it */
};

/* Frees what it owns and leaves it zero. */
void open_upload_clear(struct open_upload *upload);
/* Clears *to, then moves *from into it and leaves *from zero. */
void open_upload_move(struct open_upload *to, struct open_upload *from);

enum mark_state {
	MARK_ABSENT,
	MARK_CLAIMED,
	MARK_DONE,
	MARK_FAILED,
	MARK_FORGOTTEN, /* counts as absent; the row is removed by its time to live */
	MARK_UNREADABLE /* not understood, perhaps of a later layout: it is never taken over */
};
const char *mark_state_name(enum mark_state state);

/* A mark in memory. Owns its strings; zero is an absent one. */
struct mark {
	enum mark_state state;
	char session[ID_CHARS + 1], claim[ID_CHARS + 1];
	bool has_done; /* a version was done once; `done` is the last such one */
	struct version done;
	/* "host:directory" of the version that is done or, if none is, of the first claim, which
	 * may have uploaded an object before it ended; NULL: unknown */
	char *source;
	char *claim_source; /* likewise, of a later claim or of its failure; NULL: there is none */
	char claim_suffix[SUFFIX_MAX + 1]; /* suffix of the object that its claim is or was for */
	/* The state is done, but a run has seen that the file has changed since, and left it: these
	 * are the size and the mtime of the changed file. */
	bool has_newer;
	uint64_t newer_size;
	int64_t newer_mtime_ns;
	struct open_upload upload; /* the upload of a claim or failure */
	int64_t tries;
	char *error;       /* the reason of its failure, or NULL */
	int64_t at_s;      /* store time of the last change */
	int64_t expires_s; /* for a forgotten one: the time at which the store may remove the row */
};
void mark_clear(struct mark *mark);
/* Return the suffix of the object that the mark is about, and its source, or NULL: those of its
 * claim if it is claimed or failed, otherwise those of the version that is done. Borrowed. */
const char *mark_suffix(const struct mark *mark);
const char *mark_source(const struct mark *mark);

/* The place of a bucket's marks. The partition of a key is "<service>/<bucket>#<shard>", or
 * "<service>/<bucket>~<generation>#<shard>" for the marks of a bucket that took the place of
 * another one. No bucket's name has a '~'. */
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
/* Makes the key of a mark's row. It borrows `key` and `partition`. */
struct item_key mark_key(
	const struct mark_space *space, const char *key, char partition[static PARTITION_MAX]);

/* The verdict of a mark about a file. */
enum mark_says {
	SAYS_FREE,    /* absent, forgotten or failed: claim it, or take it over */
	SAYS_DONE,    /* this very version is done */
	SAYS_COMPARE, /* done with the same size, but the mtime differs, or other content has had
			 the same mtime: compare the content */
	SAYS_CHANGED, /* another version is done */
	SAYS_CLAIMED, /* another session has claimed it, and its row shows whether the claim is
			 stale; or the mark is MARK_UNREADABLE */
};
/* Judges a file by its mark. The input of a pipe is done if its mark is done, unless the mark has
 * the id of another producer. If both the mark and the file have a content id, only the ids are
 * compared, and not size and mtime. */
enum mark_says mark_says(const struct mark *mark, const struct file_version *file);
