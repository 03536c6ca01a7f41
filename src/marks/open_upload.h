/* A multipart upload that was begun and has not become an object yet. A mark records it, so that
 * any run can send the parts that are missing. */
#pragma once
#include "s3/s3.h"

#define SUFFIX_MAX          4 /* ".bz2" */
#define UPLOAD_ENCODING_MAX 47
#define UPLOAD_CONTENT_MAX  64 /* hex digits */

/* Zero: there is none. A value has one owner at a time: the mark that was read, then the claim that
 * took the mark over or recorded the upload. */
struct open_upload {
	char *id;               /* the upload id, owned; NULL: none is recorded */
	bool is_open;           /* S3 still has it, as far as is known */
	enum checksum checksum; /* of its parts; CHECKSUMS for an algorithm that is not ours */
	char key_md5[S3_KEY_MD5_CHARS + 1]; /* of the caller's key (SSE-C), or "" */
	char suffix[SUFFIX_MAX + 1];        /* of the object's key, see mark.h */
	/* Of its parts, each made of part_bytes of the file; "" if they are sent as they are. */
	char encoding[UPLOAD_ENCODING_MAX + 1];
	uint64_t part_bytes; /* of the file in all parts but the last */
	uint64_t size;       /* of the version of the file that it was begun for */
	int64_t mtime_ns;    /* likewise */
	/* The id of that version's content, if the metadata of the upload has it; or "". */
	char content[UPLOAD_CONTENT_MAX + 1];
};

/* Frees what it owns and leaves it zero. */
void open_upload_clear(struct open_upload *upload);
/* Clears *to, then moves *from into it and leaves *from zero. */
void open_upload_move(struct open_upload *to, struct open_upload *from);
