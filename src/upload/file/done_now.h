/* Whether a file is done at this very moment. This requires more than skipping a file in a run
 * does. It decides which files may be removed, and what `s3once proven` answers. */
#pragma once
#include "upload/file/file.h"

enum done {
	DONE_YES,     /* all of the below */
	DONE_NO,      /* something says otherwise, with a sentence */
	DONE_UNKNOWN, /* something could not be read, with a sentence */
};

/* What S3 holds of a file. */
struct done_object {
	struct s3_object object;
	char key[KEY_BYTES_MAX + SUFFIX_MAX + 1]; /* the mark's, and the suffix that it has */
};

/* Reports an event about the file, with what S3 told of its object, or with the problem if that is
 * NULL. */
void done_report(struct run *run, const struct file *file, enum s3once_event_type event,
	const struct done_object *object, const struct problem *problem);

/* Whether the content that file->fd holds is that of the version: by the checksum of the whole
 * content, and its MD5 where the version has that too, or by the id of the content. */
enum done done_content(struct worker *worker, const struct file *file, const struct version *done,
	struct problem *ret_problem);
/* Reads the content that file->fd holds, unless is_read says that this turn has proven it; reads
 * the mark consistently, which says that a version of this size, modification time and checksum is
 * done; and asks for the object by HEAD, which shows that version. OK sets *ret to the object. The
 * file's state is not looked at again after its content was read: that is the caller's. */
enum done done_now(struct worker *worker, struct file *file, bool is_read, struct done_object *ret,
	struct problem *ret_problem);
