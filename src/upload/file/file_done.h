/* Sets the mark to done once the content of a file is in S3. All functions may block, and are
 * called in the thread of the worker. */
#pragma once
#include "upload/file/file.h"

/* Returns the version of an object of ours, according to its metadata. */
struct version file_version_of(const struct worker *worker, const struct s3_object *object);
/* Step 6 for an object that is proven by the content of the file, which this turn has read: marks
 * the open version done and reports the event. Returns PROVEN, or LEFT_OUT in a dry run, or the
 * step to take instead. */
enum step file_finish(struct worker *worker, struct file *file, const struct s3_object *object,
	enum s3once_event_type event);
/* Likewise for an object that holds the content of the file according to its metadata. It may be
 * compressed differently, and its key is the mark's key with `suffix`. First aborts the upload that
 * the mark records. Returns IN_S3, or LEFT_OUT in a dry run, or the step to take instead. */
enum step file_finish_by_metadata(struct worker *worker, struct file *file,
	const struct s3_object *object, const char *suffix);
/* Sets the mark to done with this version, which came from `source`, or NULL if that is unknown.
 * Returns NEXT once the mark is written, or the step to take instead. */
enum step file_mark_done(struct worker *worker, struct file *file, const struct version *version,
	const char *source);
/* Fails a file that was uploaded although there is no object under its key. Returns SETTLED. */
enum step file_fail_missing(struct worker *worker, struct file *file);
