/* A large file's multipart upload while workers send its parts, for the files of that name:
 * parts_begin.c opens or resumes it, parts.c sends its parts, parts_complete.c makes it an object.
 */
#pragma once
#include "upload/worker.h"
#include <pthread.h>

/* The file is untouched until the last of its parts has ended. */
struct upload {
	struct parts parts;
	struct file *file;
	struct s3_part *done; /* [n_parts]: as the server has them; part_number 0: not yet */
	struct sums *sums;    /* [n_parts] */
	struct {
		pthread_mutex_t mutex;
		enum outcome outcome; /* the first failure, or OK */
		int read_error;       /* of an OUTCOME_LOCAL */
		struct problem problem;
	} locked;
};

/* The upload that these parts are of. */
struct upload *upload_of(struct parts *parts);
void upload_free(struct upload *upload);
/* So many bytes of the file are in parts that S3 keeps, for a later run or a later turn. */
void upload_keeps(struct file *file, uint64_t bytes);
/* The upload id is worth nothing any more: completed by a late request, aborted, or expired; HEAD
 * will tell which. AGAIN, or why the file is given up. */
enum step upload_is_gone(struct worker *worker, struct file *file);
/* Every part is there: makes them the object, and proves it. */
enum step upload_complete(struct worker *worker, struct upload *upload);
