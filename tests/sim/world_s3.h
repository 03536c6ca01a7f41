/* A simulated S3 with one bucket. It takes a request and returns the reply, and does nothing else:
 * delays, losses and copies belong to the network (net.h).
 *
 * It knows PutObject, GetObject, HeadObject, DeleteObject, the calls of multipart uploads,
 * ListObjectsV2, ListMultipartUploads, HeadBucket. */
#pragma once
#include "base/checksum.h"
#include "chance.h"
#include "wire.h"

/* Whether conditions (If-None-Match, If-Match) are honoured. A server that checks first and writes
 * later lets several simultaneous writers win: it ignores objects that were stored after a request
 * was sent. */
enum s3_conditions { S3_HONOURS, S3_IGNORES, S3_LOOKS_FIRST };
struct s3_habits {
	enum s3_conditions conditions;
	bool keeps_checksums; /* x-amz-checksum-* are verified, stored and returned */
	bool has_versions;
	bool etag_is_md5;
	bool forgets_completed; /* a second Complete is always NoSuchUpload, as it is after a while
				 */
	size_t page;            /* entries on a page of a listing; 0: 1,000 */
};

/* The content of a file, in a form that can be compared. */
struct content {
	size_t n;
	unsigned char md5[16];
};

struct s3_stored {
	char *key;
	unsigned char *bytes;
	size_t n;
	char etag[80];
	struct sums sums;         /* CRC32C and MD5 of the whole object, for the judge */
	char checksum_name[24];   /* as the client sent it, such as "crc32c", or "" */
	char checksum[96];        /* in base64; that of parts ends with -N */
	struct wire_header *kept; /* x-amz-meta-*, content-type, content-encoding */
	size_t n_kept;
	size_t *part_bytes; /* sizes of the parts of a multipart upload */
	size_t n_parts;
	char version_id[40];
	int64_t modified_s;
	uint64_t stored_ns;     /* world time, if the server knows it: world_s3_tell_time() */
	char etag_before[80];   /* etag of the object that it replaced, or "" */
	bool is_foreign;        /* people put it there */
	struct content content; /* decompressed; set by the judge */
	const void *writer;     /* wire_request.from */
};

struct world_s3;
/* A step of an upload: `what` is "created", "part", "completed" or "aborted". */
struct s3_upload_step {
	const char *what, *key, *id;
	unsigned part; /* number of the part; for "completed", number of parts */
};
struct s3_part_shown {
	const char *id; /* upload id */
	unsigned number;
	const unsigned char *md5; /* of 16 bytes */
};
struct s3_witness {
	/* An object becomes visible. `before` is the object that it replaces, or NULL. */
	void (*stores)(void *arg, const struct wire_request *request,
		const struct s3_stored *before, struct s3_stored *now);
	void (*removes)(
		void *arg, const struct wire_request *request, const struct s3_stored *before);
	/* A conditional PutObject is refused because of this object. */
	void (*refuses)(
		void *arg, const struct wire_request *request, const struct s3_stored *there);
	/* The reply to a HEAD shows this object. */
	void (*shows)(
		void *arg, const struct wire_request *request, const struct s3_stored *object);
	/* A step of an upload in parts, before its object becomes visible. */
	void (*uploads)(void *arg, const struct s3_upload_step *step);
	/* A part arrives, or the reply to ListParts shows one. */
	void (*takes_part)(
		void *arg, const struct wire_request *request, const struct s3_part_shown *part);
	void (*shows_part)(
		void *arg, const struct wire_request *request, const struct s3_part_shown *part);
	void *arg;
};
struct world_s3 *world_s3_new(uint64_t seed, const char *bucket, const struct s3_habits *habits,
	const struct s3_witness *witness);
void world_s3_free(struct world_s3 *s3);
/* Reports the world time to the server, for S3_LOOKS_FIRST. */
void world_s3_tell_time(struct world_s3 *s3, uint64_t now_ns);
void world_s3_answer(struct world_s3 *s3, const struct wire_request *request, int64_t now_s,
	struct wire_reply *ret);

/* Direct access, as people have it. */
const struct s3_stored *world_s3_object(const struct world_s3 *s3, const char *key);
const struct s3_stored *world_s3_at(const struct world_s3 *s3, size_t i); /* by key, or NULL */
/* Returns the id of the i-th unfinished upload, or NULL. */
const char *world_s3_upload_at(const struct world_s3 *s3, size_t i, size_t *ret_parts);
void world_s3_put(struct world_s3 *s3, const char *key, const void *bytes, size_t n, int64_t now_s);
void world_s3_delete(struct world_s3 *s3, const char *key);
/* Deletes and recreates the bucket. */
void world_s3_make_anew(struct world_s3 *s3);
const char *s3_stored_header(const struct s3_stored *object, const char *name);
