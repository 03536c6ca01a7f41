/* Step 5 for a large file: a multipart upload. It is recorded in the mark before its first part, so
 * that any run can resume it. multipart.c begins it and sends its parts, by any workers. The worker
 * that ends the last part completes it. multipart_resume.c decides whether a recorded upload can be
 * resumed, plans a new one if not, and aborts the recorded one. */
#pragma once
#include "upload/file/file.h"

/* Sets file->encoding and file->plan of a large file. If the upload that the mark records can be
 * resumed, they are those of that upload, and *ret_resumes is true. Otherwise they follow from the
 * size and from compressing samples of the file. The plan has no parts if the compressed file is so
 * small that it is sent whole. Returns NEXT, or the step to take instead. */
enum step multipart_choose_plan(struct worker *worker, struct file *file, bool *ret_resumes);
/* If the file is compressed during the upload and has no content id, reads it, and adds the SHA-256
 * of its content to file->content_sums. The metadata of its upload includes that (file_meta()), and
 * is sent before the first part is read. Returns NEXT, or the step to take instead. */
enum step multipart_add_content_sha256(struct worker *worker, struct file *file);

/* Returns the upload that the file would begin now, as a mark records it, but without its id. */
struct open_upload open_upload_of_file(const struct worker *worker, const struct file *file);
/* Lists the parts that S3 has of the upload to be resumed, into ret_done[file->plan.n_parts].
 * send_part() compares each with the file when its turn comes. Returns NEXT, or the step to take
 * instead. */
enum step multipart_resume(struct worker *worker, struct file *file, struct s3_part *ret_done);
/* Aborts the upload that the mark records, if it is open, and waits for the answer. Returns NEXT,
 * or the step to take instead. For a STRANDED file, whose key no later run will use, an error is
 * only logged. */
enum step multipart_abort(struct worker *worker, struct file *file);
/* Handles an upload id that S3 no longer knows. Either a late request has completed the upload, or
 * the upload was aborted or has expired. A HEAD will show which. Returns LOOK, or the reason for
 * giving the file up. */
enum step multipart_handle_gone(struct worker *worker, struct file *file);

/* Begins an upload, or resumes the recorded one. Returns PARTS once its parts are in the queue, or
 * the step to take instead. Returns NEXT if the file becomes so small by compressing that it is
 * sent whole. */
enum step multipart_begin(struct worker *worker, struct file *file);
/* Sends one part. While other parts are under way or still to come, *ret_file is NULL.
 *
 * The worker that ends the last part gets the file in *ret_file, whether or not the upload was
 * completed. The returned answer is for the file. */
enum step multipart_send(
	struct worker *worker, struct parts *parts, unsigned index, struct file **ret_file);
/* Frees an upload that no worker uses any more. The mark still records it for the next run. Returns
 * its file, which the caller then owns. */
struct file *multipart_give_up(struct parts *parts);
