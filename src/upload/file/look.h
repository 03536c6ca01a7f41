/* Checks of the object under the key of a file: step 4, and those right before and after a
 * write. */
#pragma once
#include "upload/file/file.h"

/* Step 4, ELSEWHERE. For a file that is known by its content, checks the mark's key with each
 * other suffix of compression for that content, and adopts such an object. If none was adopted,
 * returns LOOK if S3 may hold an object under its own key, and otherwise NEXT. */
enum step look_elsewhere(struct worker *worker, struct file *file);
/* Whether the file may be sent if S3 refuses to show the state of its key. */
enum look {
	LOOK_REQUIRED, /* no: nothing else protects an object that must stay */
	/* Yes, if the server honours conditions: look_at_object() returns NEXT, and the condition
	 * of the write protects the object. The HEAD only avoids sending much in vain. */
	LOOK_OPTIONAL,
};
/* Step 4, LOOK: checks the object under the key. An object with the file's content is adopted.
 * Returns SEND if the file is to take its place, since it is damaged or by
 * --if-changed=replace-any, and OPEN if it is an earlier version. Returns NEXT if the file can be
 * sent, since S3 holds nothing, or exactly the version to be replaced. */
enum step look_at_object(struct worker *worker, struct file *file, enum look look);
/* Step 2, before a claim that is to replace the object of the done version, whose etag is in
 * file->replaced_etag. Returns NEXT if S3 holds no object under its key by now, or another one, or
 * if these marks have uploaded the object. Otherwise the object stays: reports the file as changed,
 * and returns SETTLED. */
enum step look_whether_ours(struct worker *worker, struct file *file);
/* Likewise right before a write whose condition the server may ignore, but does not read the file.
 * Returns NEXT if S3 holds nothing, or exactly the version to be replaced. If S3 holds another
 * object, returns LOOK. */
enum step look_before_write(struct worker *worker, struct file *file);
/* Handles an outcome other than OK of a PutObject or CompleteMultipartUpload under this condition,
 * if the caller does not handle it itself.
 *
 * If the condition was refused, look_at_object() checks the object. If nothing is in the way of the
 * file now, this returns SEND. It also returns SEND if the server does not support the condition:
 * the file goes on without one. Any other outcome is left to file_handle_outcome(). */
enum step look_after_failed_write(struct worker *worker, struct file *file,
	const struct s3_condition *condition, enum outcome outcome, const struct problem *problem);
/* Step 6 if the reply did not prove the upload. A HEAD shows the object. Either that proves the
 * upload, or the object is judged as in step 4. Returns PROVEN, or the step to take instead. */
enum step prove_by_head(struct worker *worker, struct file *file);
