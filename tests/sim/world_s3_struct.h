/* Structs and functions shared by the files of the simulated S3. */
#pragma once
#include "world_s3.h"

struct part {
	unsigned number;
	unsigned char *bytes;
	size_t n;
	char etag[40];
	char checksum[64];
	unsigned char md5[16];
};
struct upload {
	char id[48];
	char *key;
	struct part *parts; /* by number */
	size_t n_parts;
	struct wire_header *kept;
	size_t n_kept;
	char checksum_name[24];
	bool is_composite;
	bool is_overtaken; /* its key was written or deleted since it began */
	int64_t initiated_s;
	const void *writer;
};
struct completed { /* a completed upload, for a repeated Complete */
	char id[48];
	char etag[80];
};
struct world_s3 {
	struct chance chance;
	char bucket[64];
	struct s3_habits habits;
	struct s3_witness witness;
	struct s3_stored *objects; /* by key */
	size_t n, cap;
	struct upload *uploads;
	size_t n_uploads;
	struct completed *completed;
	size_t n_completed;
	uint64_t now_ns;
};

/* In world_s3.c. */
void s3_refuse(struct wire_reply *ret, int status, const char *code, const char *message);
/* Whether the request's condition holds for the present object. If not, answers the request. */
bool s3_condition_holds(struct world_s3 *s3, const struct wire_request *request,
	const struct s3_stored *there, struct wire_reply *ret);
/* Notes that this key is written or deleted after its uploads have begun. */
void s3_overtake(struct world_s3 *s3, const char *key);
/* Stores an object, and takes ownership of the memory that `now` points to. */
void s3_store(struct world_s3 *s3, const struct wire_request *request, struct s3_stored *now);
struct wire_header *s3_kept_headers(const struct wire_request *request, size_t *ret_n);
void s3_free_kept(struct wire_header *kept, size_t n);
/* Verifies the body. *ret_kind is the kind of x-amz-checksum-* in the request, or CHECKSUMS if
 * there is none. If the checksum is wrong, answers the request and returns false. */
bool s3_check_body(struct world_s3 *s3, const struct wire_request *request, struct sums *ret_sums,
	enum checksum *ret_kind, char ret_text[static CHECKSUM_BASE64_MAX + 1],
	struct wire_reply *ret);
void s3_sum(const void *bytes, size_t n, unsigned kinds, struct sums *ret);
void s3_hex(const unsigned char *bytes, size_t n, char *ret);

/* In world_s3_multipart.c. Answers the calls of multipart uploads, and returns false for any other
 * request. */
bool s3_answer_multipart(struct world_s3 *s3, const struct wire_request *request, const char *key,
	int64_t now_s, struct wire_reply *ret);
void s3_answer_uploads(
	struct world_s3 *s3, const struct wire_request *request, struct wire_reply *ret);
void s3_free_uploads(struct world_s3 *s3);
