/* Checks whether S3 already has an object under the key of a file: in step 4, and right before and
 * after a write. */
#pragma once
#include "upload/file/file.h"

/* Step 4, ELSEWHERE. A rotated log may be in S3 under its key with a different suffix of
 * compression (.gz, .zst). Checks each of these keys, and adopts the object that has the file's
 * content. If there is none, returns LOOK if S3 may hold an object under the file's own key, and
 * otherwise NEXT. */
enum step look_elsewhere(struct worker *worker, struct file *file);
/* Decides whether a file may be sent if S3 denies the HEAD. */
enum look {
	LOOK_REQUIRED, /* it may not: nothing else protects an existing object */
	/* It may, if the server honours conditions: the condition of the write protects an existing
	 * object, so look_at_object() returns NEXT. The HEAD would only have saved a useless
	 * transfer. */
	LOOK_OPTIONAL,
};
/* Step 4, LOOK: checks the object under the key. An object with the file's content is adopted.
 * Returns SEND if the file is to take its place, since it is damaged or by
 * --if-changed=replace-any, and OPEN if it is an earlier version. Returns NEXT if the file can be
 * sent: S3 has no object, or exactly the version to be replaced. */
enum step look_at_object(struct worker *worker, struct file *file, enum look look);
/* Step 2, before a claim that is to replace the object of the done version, whose etag is in
 * file->replaced_etag. Returns NEXT if that object is gone or was replaced, or if it was uploaded
 * under these marks. Otherwise the object stays: reports the file as changed, and returns
 * SETTLED. */
enum step look_whether_ours(struct worker *worker, struct file *file);
/* Checks the object again right before a write whose condition the server may ignore, without
 * reading the file. Returns NEXT if S3 has no object, or exactly the version to be replaced, and
 * LOOK if it has another object. Fails a file for which that happens again and again. */
enum step look_before_write(struct worker *worker, struct file *file);
/* Handles the failure of a PutObject or CompleteMultipartUpload with this condition, if the caller
 * does not handle it itself.
 *
 * If the condition was not met, calls look_at_object(), and returns SEND if no object is in the way
 * any more. Also returns SEND if the server does not support the condition: the file is then sent
 * without one. Passes any other outcome to file_handle_outcome(). */
enum step look_after_failed_write(struct worker *worker, struct file *file,
	const struct s3_condition *condition, enum outcome outcome, const struct problem *problem);
/* Step 6 if the reply did not prove the upload: sends a HEAD. If that does not prove the upload
 * either, the object is judged as in step 4. Returns PROVEN, or the step to take instead. */
enum step prove_by_head(struct worker *worker, struct file *file);
