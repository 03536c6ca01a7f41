/* Step 5 for a large file: a multipart upload, recorded in the mark before its first part, so that
 * any run can go on with it. A worker begins or resumes it (multipart_begin.c), any workers send
 * its parts (multipart_send.c), and the one that ends the last part makes them an object
 * (multipart_complete.c). What these share is in multipart.c. */
#pragma once
#include "upload/file/worker.h"
#include <uv.h>

/* Why a part could not be sent. */
struct part_failure {
	int read_error; /* -errno of reading the file; the rest is not set then */
	enum outcome outcome;
	struct problem problem;
};

/* An upload while workers send its parts. The file is not changed until the last part has ended. */
struct multipart {
	struct parts parts;   /* what the queue has still to hand out */
	struct file *file;    /* owned by whoever ends the last part */
	struct s3_part *done; /* [n_parts]: as the server has them; part_number 0: not yet */
	struct sums *sums;    /* [n_parts]: of what is sent */
	struct sums *read;    /* [n_parts]: of the content, if the file is encoded; else NULL */
	struct {
		uv_mutex_t mutex;
		bool has_failed;
		struct part_failure failure; /* the first one */
	} locked;
};
/* For the parts of file->plan. NULL: out of memory. */
struct multipart *multipart_new(struct file *file);
void multipart_free(struct multipart *multipart);
/* The upload that these parts are of. */
struct multipart *multipart_of(struct parts *parts);

/* Plans the parts of a file that is to be encoded: by the recorded upload if that will be resumed,
 * else by a sample of how well it can be compressed. Any other file has its plan. NEXT, or why not.
 */
enum step multipart_plan(struct worker *worker, struct file *file);
/* Resumes the recorded upload or begins one, and puts its parts into the queue. PARTS, or why not.
 */
enum step multipart_begin(struct worker *worker, struct file *file);
/* Sends one part. *ret_file is NULL while other parts are under way or to come. Whoever ends the
 * last one gets the file, completed or not, and the step is where it goes on. */
enum step multipart_send(
	struct worker *worker, struct parts *parts, unsigned index, struct file **ret_file);
/* Every part is there: makes them the object, and proves it. */
enum step multipart_complete(struct worker *worker, struct multipart *multipart);
/* Frees an upload that nobody works on any more. The mark still records it for the next run.
 * Returns its file, which is the caller's. */
struct file *multipart_give_up(struct parts *parts);

/* Whether the server may take the parts that a file is sent in with this encoding, or NULL. */
bool multipart_may_be(const struct worker *worker, const struct encoding *encoding);
/* Every part of an upload in equal parts but the last one has that length, and no part is larger.
 */
bool multipart_part_fits(const struct file *file, unsigned index, uint64_t bytes);
/* Begins the file again in smaller ranges, since a part was larger. AGAIN, or why not. */
enum step multipart_misfits(struct worker *worker, struct file *file);

/* Aborts the upload that the mark records, if it is open, and awaits the answer. NEXT, or why not.
 */
enum step multipart_abort(struct worker *worker, struct file *file);
/* The same of a file that has failed and whose key no later run will use. An error is only logged.
 */
void multipart_discard(struct worker *worker, struct file *file);
/* The upload id is not valid any more. The upload was completed by a late request, was aborted, or
 * has expired; HEAD will show which. AGAIN, or why the file is given up. */
enum step multipart_is_gone(struct worker *worker, struct file *file);
/* Reports that so many bytes of the file are in parts that S3 keeps for a later run or turn. */
void multipart_keeps(struct file *file, uint64_t bytes);
