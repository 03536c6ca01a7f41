/* Step 5 for a large file: a multipart upload, recorded in the mark before its first part, so that
 * any run can go on with it. multipart.c begins it, sends its parts by any workers, and the worker
 * that ends the last part makes them an object. multipart_resume.c finds out whether the upload
 * that a mark records can be resumed, plans one if not, and ends the recorded one. */
#pragma once
#include "upload/file/file.h"

/* Makes file->encoding and file->plan of a large file: of the upload that the mark records if that
 * can go on, and then *ret_resumes is set, or else by the size and by a sample of how well the file
 * can be compressed: it may come to a plan without parts. NEXT, or why not. */
enum step multipart_plan_or_resume(struct worker *worker, struct file *file, bool *ret_resumes);
/* The metadata are sent before the content is read. Where they name it, it is read for that first,
 * if `is_needed`. NEXT, or why not. */
enum step multipart_learn_content(struct worker *worker, struct file *file, bool is_needed);

/* Lists the parts that S3 has of the upload to be resumed, into ret_done[file->plan.n_parts]. They
 * are compared with the file, one by one, as they come up. NEXT, or why not. */
enum step multipart_resume(struct worker *worker, struct file *file, struct s3_part *ret_done);
/* Aborts the upload that the mark records, if it is open, and awaits the answer. NEXT, or why not:
 * of a file that is STRANDED, whose key no later run will use, an error is only logged. */
enum step multipart_abort(struct worker *worker, struct file *file);
/* The upload id is not valid any more. The upload was completed by a late request, was aborted, or
 * has expired; HEAD will show which. AGAIN, or why the file is given up. */
enum step multipart_is_gone(struct worker *worker, struct file *file);
/* Reports that so many bytes of the file are in parts that S3 keeps for a later run or turn. */
void multipart_keeps(struct file *file, uint64_t bytes);

/* Begins an upload, or resumes the one that is recorded. PARTS once its parts are in the queue, or
 * why not. NEXT: the file is small enough to be sent whole once it is compressed. */
enum step multipart_begin(struct worker *worker, struct file *file);
/* Sends one part. *ret_file is NULL while other parts are under way or to come. Whoever ends the
 * last one gets the file, completed or not, and the step is where it goes on: NEXT, too, is from
 * the state in which it is now. */
enum step multipart_send(
	struct worker *worker, struct parts *parts, unsigned index, struct file **ret_file);
/* Frees an upload that nobody works on any more. The mark still records it for the next run.
 * Returns its file, which is the caller's. */
struct file *multipart_give_up(struct parts *parts);
