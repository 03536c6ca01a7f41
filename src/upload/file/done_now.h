/* Finds out whether a file is done at this very moment. This requires more than skipping a file in
 * a run does. It decides about the removal of files, and about the answers of `s3once proven`.
 *
 * The functions that return a proof return YES if everything they check is true, NO with a sentence
 * if something is false, and UNKNOWN with a sentence if something could not be read. */
#pragma once
#include "upload/file/file.h"

/* The object of a file in S3. */
struct done_object {
	struct s3_object object;
	char key[KEY_BYTES_MAX + SUFFIX_MAX + 1]; /* the mark's key and suffix */
};

/* Sends a HEAD for the object of a done version of the file. OK sets ret->object, which may be
 * another object by now. */
enum outcome head_done_object(struct worker *worker, const struct file *file,
	const struct version *done, struct done_object *ret, struct problem *ret_problem);
/* Reports an event about the file. With `object`, the report has S3's values of it; otherwise the
 * report has the problem. */
void report_done_object(struct run *run, const struct file *file, enum s3once_event_type event,
	const struct done_object *object, const struct problem *problem);

/* Whether the content of file->fd is that of the version. For a file that is known by its content,
 * compares the content's id. For any other file, compares the checksum of the whole content, and
 * its MD5 if the version has that too. */
enum proof compare_done_content(struct worker *worker, const struct file *file,
	const struct version *done, struct problem *ret_problem);
/* Whether this turn has read the content of a file already, and proven it. */
enum content_state {
	CONTENT_UNREAD,
	CONTENT_PROVEN,
};
/* Checks three things. The mark, read consistently, says that this version is done. The content
 * that file->fd holds is that version. A HEAD shows the object of that version. CONTENT_PROVEN is
 * not read again. For CONTENT_UNREAD, another modification time than the mark's does not matter,
 * since the content is compared.
 *
 * PROOF_YES sets *ret to the object. The caller has to check that the file did not change while it
 * was read. */
enum proof prove_done_now(struct worker *worker, struct file *file, enum content_state content,
	struct done_object *ret, struct problem *ret_problem);
