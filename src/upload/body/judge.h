/* What an object that stands where a file is to be stored is to that file. One judgement for every
 * place where a run finds an object. Pure. docs/protocol.md, step 4. */
#pragma once
#include "marks/mark.h"
#include "scan/scan.h"
#include "upload/body/proof.h"

enum judgement {
	JUDGED_THE_FILE,    /* the bytes that this file is sent as */
	JUDGED_THE_CONTENT, /* what a log that is known by its content contains, compressed
			       otherwise */
	JUDGED_UNPROVEN,    /* it says that it is that, and nothing shows it */
	JUDGED_REPLACED,    /* exactly what is to be replaced */
	JUDGED_DAMAGED,     /* sent by us, and other bytes were stored */
	JUDGED_EARLIER, /* an earlier version of the file, sent for this mark or adopted by it */
	JUDGED_FOREIGN, /* anything else */
};

/* Borrowed. */
struct judged {
	const struct s3_object *object; /* as HEAD shows it */
	/* What reading the file says of it: file_compare(). NO if the file was not read. */
	enum proof proof;
	const struct file_state *file; /* as it was opened */
	/* The id of the file's content; "" if it is known by size and time. */
	const char *content;
	/* What compressing the file on its way adds to its key; "" if it is sent as it is. */
	const char *suffix;
	const char *table;         /* the id of our store of marks */
	const struct claim *claim; /* of the file's mark */
	const char *replaces;      /* the etag of what is to be replaced, or "" */
};
enum judgement judge(const struct judged *judged);
/* Whether the mark's last done version is this object. */
bool judge_is_done_version(const struct claim *claim, const struct s3_object *object);
/* Whether an upload for this very mark wrote it, whatever it is of. */
bool judge_is_ours(const struct judged *judged);
