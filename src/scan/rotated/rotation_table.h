/* The names from the listings of the sources, and the information about their files. They are in a
 * temporary database, so that memory does not grow with their number. For one thread. */
#pragma once
#include "scan/scan.h"

struct rotation_table;
/* All functions return 0, or -errno with a sentence, unless said otherwise. */

/* `options` are borrowed until rotation_table_free. */
int rotation_table_new(const struct scan_options *options, struct rotation_table **ret,
	struct problem *ret_problem);
void rotation_table_free(struct rotation_table *table);

/* Adds an entry to the current listing. */
int rotation_table_add(
	struct rotation_table *table, const struct scan_entry *entry, struct problem *ret_problem);
/* Ends the listing; later additions belong to the next one. Files that have to WAIT are: the live
 * file of a family, unless scan_takes_live(), a compressed file beside the file that it is made of,
 * and a file that was noted as being written to. Returns 1 if this listing found the same finished
 * files as the previous one, even if they were renumbered; else 0. */
int rotation_table_end(struct rotation_table *table, struct problem *ret_problem);

enum reading_result {
	READING_ID,            /* the id of its content, with the id as the text */
	READING_NO_ID,         /* no id is wanted */
	READING_FAILED,        /* there is no id, with the reason as the text */
	READING_LIVE,          /* it counts as the live log, whatever its name says */
	READING_BEING_WRITTEN, /* it is being written to */
};
/* Notes the result of reading exactly this version of a file. `text` is NULL where the result has
 * none. */
int rotation_table_note_content(struct rotation_table *table, const struct scan_entry *version,
	enum reading_result result, const char *text, struct problem *ret_problem);

enum rotation_entries {
	ROTATION_UNKNOWN, /* finished files with unknown content */
	ROTATION_ALL,     /* all files, by family, the oldest file first */
	ROTATION_NEW,     /* finished files of the last listing that the previous one lacks */
};
/* Reads the next entry of this kind from the last listing. Returns 1, or 0 at the end; the call
 * after that begins again. Rotated files have their content_id and suffix. A rotated file with
 * unknown content is a PROBLEM if there is a sentence with the reason; otherwise it WAITS. The
 * entry is valid until the next call. is_rotated means that the file is finished, with any name. */
int rotation_table_next(struct rotation_table *table, enum rotation_entries which,
	struct scan_entry *ret, struct problem *ret_problem);
/* Checks whether the last entry of ROTATION_UNKNOWN has its family's own name, and counts as
 * finished only because another file of the family was written to later. If so, returns 1 with the
 * path of the file that was written to last. Otherwise returns 0, or -errno with a sentence. */
int rotation_table_find_later(
	struct rotation_table *table, struct text *ret_relative, struct problem *ret_problem);
/* Returns the family of the last entry of ROTATION_ALL: its name, with the path of its folder
 * ("nginx/access.log"). Valid until the next call of rotation_table_next(). */
const char *rotation_table_family(const struct rotation_table *table);

/* Returns the path of a file that was compressed and then rotated again, or "". */
const char *rotation_table_packed_twice(const struct rotation_table *table);
