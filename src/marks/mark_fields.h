/* The fields of a mark in its row, for the files that read and write rows of marks: packed_mark.c
 * and mark_row.c. mark.c has the table. */
#pragma once
#include "marks/mark.h"
#include "marks/row.h"

/* The groups of fields that are written, removed or compared together. */
enum {
	GROUP_STATE = 1 << 0,
	GROUP_OWNER = 1 << 1, /* session, claim */
	GROUP_SOURCE = 1 << 2,
	GROUP_CLAIM_SOURCE = 1 << 3,
	GROUP_CLAIM_SUFFIX = 1 << 4,
	GROUP_TRIES = 1 << 5,
	GROUP_AT = 1 << 6,
	GROUP_EXPIRES = 1 << 7,
	GROUP_ERROR = 1 << 8,
	GROUP_VERSION = 1 << 9,
	GROUP_MTIME = 1 << 10,
	GROUP_SHARED = 1 << 11,
	GROUP_UPLOAD_ID = 1 << 12,
	GROUP_UPLOAD = 1 << 13, /* the upload with its id */
	GROUP_NEWER = 1 << 14,
	GROUP_NEWER_MTIME = 1 << 15,
	GROUP_SIZE = 1 << 16,
	GROUP_SUFFIX = 1 << 17,
};
extern const struct row_table mark_table; /* of struct mark */
