/* The names found by listings of the sources, and the knowledge about their files. A temporary
 * database holds them, so that memory does not grow with their number. For one thread. */
#pragma once
#include "scan/scan.h"

struct rotation_table;
/* All functions return 0, or -errno with a sentence, unless said otherwise. */

/* `options` are borrowed until rotation_table_free. */
int rotation_table_new(const struct scan_options *options, struct rotation_table **ret,
	struct problem *ret_problem);
void rotation_table_free(struct rotation_table *table);

/* Adds an entry that the present listing has found. */
int rotation_table_add(
	struct rotation_table *table, const struct scan_entry *entry, struct problem *ret_problem);
/* Ends the listing; later additions belong to the next one. Files that have to WAIT are: the live
 * file of a family, unless scan_takes_live(), a compressed file beside the file that it is made of,
 * and a file that was noted as being written to. Returns 1 if this listing found the same finished
 * files as the one before, whatever numbers their names have by now; else 0. */
int rotation_table_end(struct rotation_table *table, struct problem *ret_problem);

/* Notes the result of reading exactly this version of a file. That is one of:
 *
 *     id      sentence
 *     an id   NULL      the id of its content
 *     ""      NULL      no id is wanted
 *     NULL    a text    there is no id, for this reason
 *     NULL    ""        it counts as the live log, whatever its name says
 *     NULL    NULL      it is being written to
 */
int rotation_table_note_content(struct rotation_table *table, const struct scan_entry *version,
	const char *id, const char *sentence, struct problem *ret_problem);

enum rotation_entries {
	ROTATION_UNKNOWN, /* the finished files whose content is not known yet */
	ROTATION_ALL,     /* one family after the other, each from the oldest file on */
	ROTATION_NEW, /* the finished files of the last listing that were not in the one before */
};
/* Reads the next entry of this kind from the last listing. Returns 1, or 0 at the end; the call
 * after that begins again. Rotated files have their content_id and suffix. A rotated file without a
 * known content is a PROBLEM if a sentence says why, else it WAITS. The entry is valid until the
 * next call. is_rotated means that the file is finished, whatever its name is. */
int rotation_table_next(struct rotation_table *table, enum rotation_entries which,
	struct scan_entry *ret, struct problem *ret_problem);
/* Finds out whether the entry that ROTATION_UNKNOWN has returned last has its family's own name,
 * and counts as finished only because another file of the family was written to later. Returns 1 if
 * so, with the path of the one that was written to last; 0; or -errno with a sentence. */
int rotation_table_find_later(
	struct rotation_table *table, struct text *ret_relative, struct problem *ret_problem);
/* Returns the family of the entry that ROTATION_ALL has returned last: its name, with the path of
 * its folder in front ("nginx/access.log"). Valid until the next call of rotation_table_next(). */
const char *rotation_table_family(const struct rotation_table *table);

/* Returns the path of a file that was rotated once more after it had been compressed, or "". */
const char *rotation_table_packed_twice(const struct rotation_table *table);
