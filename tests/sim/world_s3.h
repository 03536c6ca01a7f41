/* A simulated S3 with one bucket. A request goes in, the answer comes out, and nothing else
 * happens: delays, losses and duplicates are the wire's (net.h).
 *
 * What it knows: PutObject, GetObject, HeadObject, DeleteObject, the calls of multipart uploads,
 * ListObjectsV2, ListMultipartUploads, HeadBucket. */
#pragma once
#include "base/checksum.h"
#include "chance.h"
#include "wire.h"

/* Whether conditions (If-None-Match, If-Match) count. A server that looks first and writes then
 * lets several writers at once win: what has come since a request was sent does not count for it.
 */
enum s3_conditions { S3_HONOURS, S3_IGNORES, S3_LOOKS_FIRST };
struct s3_habits {
	enum s3_conditions conditions;
	bool keeps_checksums; /* x-amz-checksum-* are verified, kept and told */
	bool has_versions;
	bool etag_is_md5;
	bool forgets_completed; /* a second Complete of an upload is NoSuchUpload, as after a while
				 */
	size_t page;            /* objects, parts of a page of a listing; 0: 1,000 */
};

/* What a file contains, so that it can be compared. */
struct content {
	size_t n;
	unsigned char md5[16];
};

struct s3_stored {
	char *key;
	unsigned char *bytes;
	size_t n;
	char etag[80];
	struct sums sums;         /* CRC32C and MD5 of the whole, for whoever looks on */
	char checksum_name[24];   /* "crc32c" as the client gave it, or "" */
	char checksum[96];        /* in base64, perhaps with -N */
	struct wire_header *kept; /* x-amz-meta-*, content-type, content-encoding */
	size_t n_kept;
	size_t *part_bytes; /* of an object that was sent in parts */
	size_t n_parts;
	char version_id[40];
	int64_t modified_s;
	uint64_t stored_ns;     /* the world's time, if it is told (world_s3_tell_time) */
	char etag_before[80];   /* of what it replaced, "" if nothing was there */
	bool is_foreign;        /* people put it there */
	struct content content; /* decompressed; whoever looks on sets it */
	const void *writer;     /* wire_request.from */
};

struct world_s3;
/* What becomes of an upload: "created", "part", "completed" or "aborted". */
struct s3_upload_step {
	const char *what, *key, *id;
	unsigned part; /* its number; of Complete, how many there are */
};
struct s3_part_shown {
	const char *id; /* of the upload */
	unsigned number;
	const unsigned char *md5; /* of 16 bytes */
};
struct s3_witness {
	/* An object becomes visible. `before` is what was there, or NULL. */
	void (*stores)(void *arg, const struct wire_request *request,
		const struct s3_stored *before, struct s3_stored *now);
	void (*removes)(
		void *arg, const struct wire_request *request, const struct s3_stored *before);
	/* A PutObject under a condition is refused, since this is there. */
	void (*refuses)(
		void *arg, const struct wire_request *request, const struct s3_stored *there);
	/* The answer to a HEAD shows this object. */
	void (*shows)(
		void *arg, const struct wire_request *request, const struct s3_stored *object);
	/* Something becomes of an upload in parts, before what is visible of it. */
	void (*uploads)(void *arg, const struct s3_upload_step *step);
	/* A part arrives, and the answer to ListParts shows one. */
	void (*takes_part)(
		void *arg, const struct wire_request *request, const struct s3_part_shown *part);
	void (*shows_part)(
		void *arg, const struct wire_request *request, const struct s3_part_shown *part);
	void *arg;
};
struct world_s3 *world_s3_new(uint64_t seed, const char *bucket, const struct s3_habits *habits,
	const struct s3_witness *witness);
void world_s3_free(struct world_s3 *s3);
/* For S3_LOOKS_FIRST. */
void world_s3_tell_time(struct world_s3 *s3, uint64_t now_ns);
void world_s3_answer(struct world_s3 *s3, const struct wire_request *request, int64_t now_s,
	struct wire_reply *ret);

/* What people do, and see. */
const struct s3_stored *world_s3_object(const struct world_s3 *s3, const char *key);
const struct s3_stored *world_s3_at(const struct world_s3 *s3, size_t i); /* by key, or NULL */
/* The id of an upload that is open, or NULL. */
const char *world_s3_upload_at(const struct world_s3 *s3, size_t i, size_t *ret_parts);
void world_s3_put(struct world_s3 *s3, const char *key, const void *bytes, size_t n, int64_t now_s);
void world_s3_delete(struct world_s3 *s3, const char *key);
/* The bucket is deleted and made again. */
void world_s3_make_anew(struct world_s3 *s3);
const char *s3_stored_header(const struct s3_stored *object, const char *name);
