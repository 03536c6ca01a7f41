/* Judges objects in S3. A run that finds an object under the key of a file, `verify`, `proven`,
 * `gc` and the removal of files all use it, so that they agree. The functions are pure: the caller
 * has read the file and sent the HEAD before. docs/protocol.md ("What an object is to a file") has
 * the table. */
#pragma once
#include "marks/mark_row.h"

/* The truth of a statement, such as that an object holds the bytes that were read. Zero is
 * UNKNOWN. */
enum proof {
	PROOF_UNKNOWN,
	PROOF_YES,
	PROOF_NO,
};

/* 1. Whether S3's reply proves that an object has the bytes that were read. YES: the size, if
 * known, and all common checksums are equal. NO: one of them differs. UNKNOWN: there is no common
 * checksum. */

/* Whether S3's reply has the object's size. The reply to a HEAD has it, and the replies to
 * PutObject and CompleteMultipartUpload lack it. */
enum proof_size {
	SIZE_UNKNOWN,
	SIZE_KNOWN,
};
/* Compares an object that was sent whole with the sums of its content. */
enum proof proof_whole(
	const struct sums *sums, const struct s3_object *object, enum proof_size size);
/* Compares an object that was sent in parts with the sums of each part, in order. If the server has
 * a checksum of the whole, the sums are combined to one; otherwise the checksum of the parts'
 * checksums is compared. The etag is compared with the MD5 of the parts' MD5s. */
enum proof proof_parts(
	const struct sums *parts, size_t n, const struct s3_object *object, enum proof_size size);
/* Compares one part with the reply to UploadPart or ListParts. */
enum proof proof_part(const struct sums *sums, const struct s3_part *part);
/* Whether an object that s3once compressed was made from the file. It is for an object whose bytes
 * cannot be compared, since this program would compress the file to other bytes.
 *
 * YES if the object holds the bytes that were sent, and its metadata name the file's mtime and
 * ctime, or its content. The object became visible only after all of the file was read. `table` is
 * the id of our store of marks. The caller has compared the size, and the content if the metadata
 * name one. */
enum proof proof_encoded(
	const struct s3_object *object, const char *table, int64_t mtime_ns, int64_t ctime_ns);

/* Returns the digests needed to compare all of the server's values for an object. They are needed
 * for each of *ret_parts parts, or for the whole content if *ret_parts is 0. */
unsigned proof_needs(const struct s3_object *object, unsigned *ret_parts);
/* Whether the server's checksum has the form of one of the whole content, without "-N". Some
 * servers give a checksum of the parts' checksums in this form, too. */
bool proof_has_whole_sum(const struct s3_object *object);
/* Returns the number of parts in an etag of the form "md5-N"; 0 for any other. */
unsigned proof_etag_parts(const char *etag);

/* 2. Whether an object, or a content, is the one that was proven when its mark was set. */

/* The values that a mark or a manifest records of an object or a content. The strings are borrowed.
 * A missing one is "". */
struct recorded {
	uint64_t bytes;
	const char *sum, *parts_sum; /* as in struct version */
	const char *etag;
	bool etag_is_md5;
};
/* recorded_object() is about the object of a version. recorded_content() is about the file's
 * content, which differs from the object if it was sent compressed. Both borrow the version. */
struct recorded recorded_object(const struct version *version);
struct recorded recorded_content(const struct version *version);

/* Sets etag, etag_is_md5 and version_id of a zeroed version to those of its object. An id that is
 * too long is dropped. `etags_are_md5`: the server's etags are MD5s unless the object is
 * encrypted. */
void version_set_object(struct version *ret, const struct s3_object *object, bool etags_are_md5);

/* Compares the recorded values with an object of a HEAD, or of a listing, which has no checksum.
 * YES: a common checksum is equal, or without one, the etag is. NO: the size or a common checksum
 * differs. UNKNOWN: the size is equal, there is no common checksum, and the etag is missing or
 * differs. A different etag proves nothing: some servers return one when an upload is completed,
 * and a different one later. */
enum proof recorded_matches(const struct recorded *recorded, const struct s3_object *object);
/* Returns the recorded checksum that can be compared with S3's. Its text is "" if there is none. */
struct s3_sum recorded_sum_like(const struct recorded *recorded, const struct s3_sum *server_sum);
/* Returns the kinds of the recorded values that can be compared with bytes, as a set of digests:
 * that of the checksum, and MD5 if the etag is one. */
unsigned recorded_digests(const struct recorded *recorded);
/* Compares the recorded values with the sums of bytes. `sums` has the digests of
 * recorded_digests(). */
enum proof recorded_matches_bytes(const struct recorded *recorded, const struct sums *sums);
/* Whether the object is the version that was done when the mark was claimed. Its etag must be
 * equal, too, so that a condition with this etag identifies the object. */
bool judge_is_done_version(const struct claim *claim, const struct s3_object *object);

/* 3. The relation of a file to the object that already has its key. */

enum judgement {
	JUDGED_THE_FILE,    /* exactly the bytes in which this file is sent */
	JUDGED_THE_CONTENT, /* the content of a rotated log, compressed in another way */
	JUDGED_UNPROVEN,    /* its metadata claim this content, without a proof */
	JUDGED_REPLACED,    /* exactly the object to be replaced */
	JUDGED_DAMAGED,     /* sent by us, and stored with wrong bytes */
	JUDGED_EARLIER,     /* an earlier version of the file, sent or adopted for this mark */
	JUDGED_FOREIGN,     /* anything else */
};

/* The facts by which an object is judged. All of it is borrowed. */
struct evidence {
	const struct s3_object *object; /* according to HEAD */
	/* The result of comparing the object with the file. UNKNOWN if the file was not read. */
	enum proof proof;
	struct file_version file; /* the version that was opened */
	/* The suffix of compression that the object's key adds to the mark's key; "" without
	 * compression. */
	const char *suffix;
	const char *table_id;      /* the id of our store of marks */
	const struct claim *claim; /* claim of the file's mark */
	const char *replaced_etag; /* the etag of the object to be replaced, or "" */
	bool replaces_any;         /* even if another client uploaded it */
};
enum judgement judge(const struct evidence *evidence);
/* The index of the table's row that decides, and the number of rows. */
unsigned judge_row(const struct evidence *evidence);
extern const unsigned judge_rows;
/* Whether an upload for this mark wrote the object, with any content. */
bool judge_is_ours(const struct evidence *evidence);
