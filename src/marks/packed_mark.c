/* Packs and unpacks marks by the table of their fields. The stream of marks, the reads before
 * claims, and the tasks of audits keep many marks in this form. */
#include "marks/packed_mark.h"
#include "marks/mark_fields.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PACKED_MOSTLY 512 /* bytes of a packed mark, but for few that are longer */

struct packed_mark *mark_pack(const struct found_item *found)
{
	const char *key = found->key.sk;
	char row[PACKED_MOSTLY];
	const struct row_packed size = row_pack(&mark_table, found, row, sizeof row);
	const size_t key_bytes = strlen(key) + 1;
	const bool has_suffix = (size.groups & (GROUP_SUFFIX | GROUP_CLAIM_SUFFIX)) != 0;
	/* The keys follow the row. */
	struct packed_mark *packed = malloc(sizeof *packed + size.bytes + key_bytes +
					    (has_suffix ? key_bytes + SUFFIX_MAX : 0));
	if (!packed)
		return NULL;
	char *copy = packed->row + size.bytes;
	*packed = (struct packed_mark){.size = size};
	packed->is_absent = found->item && item_is_empty(found->item);
	if (size.bytes <= sizeof row)
		memcpy(packed->row, row, size.bytes);
	else
		row_pack(&mark_table, found, packed->row, size.bytes);
	packed->key = packed->object_key = memcpy(copy, key, key_bytes);
	if (!has_suffix)
		return packed;
	const struct mark mark = mark_unpack(packed);
	if (*mark_suffix(&mark)) {
		packed->object_key = copy + key_bytes;
		stpcpy(stpcpy(copy + key_bytes, key), mark_suffix(&mark));
	}
	return packed;
}

struct packed_mark *mark_pack_item(const char *key, const struct item *item)
{
	return mark_pack(&(const struct found_item){.key.sk = key, .item = item});
}

struct packed_mark *mark_pack_done(const char *key, const struct version *version)
{
	const struct mark mark = {.state = MARK_DONE, .done = *version};
	struct row_write write = {.removes_nothing = true};
	struct item item = {0};
	row_set(&write, &mark_table, GROUP_STATE | GROUP_VERSION, &mark);
	const int error = item_apply(&item, write.changes, write.n_changes);
	struct packed_mark *packed = error ? NULL : mark_pack_item(key, &item);
	item_clear(&item);
	return packed;
}

struct mark mark_unpack(const struct packed_mark *packed)
{
	struct mark mark = {0};
	if (!packed || packed->is_absent)
		return mark;
	const unsigned groups = packed->size.groups;
	/* If the row does not name the checksum of an upload, it is CRC-32C: the upload was begun
	 * before there was a choice. */
	mark.upload.checksum = CHECKSUM_CRC32C;
	row_unpack(&mark_table, packed->row, &mark);
	mark.has_done = (groups & GROUP_SIZE) && (groups & GROUP_MTIME);
	mark.has_newer = (groups & GROUP_NEWER_MTIME) != 0;
	mark.upload.is_open = mark.upload.id != NULL;
	/* A row that cannot be read, or that contradicts itself, is not understood: a later version
	 * of this program may have written it. */
	const bool is_row_of_none = mark.state == MARK_ABSENT;
	const bool lacks_version = mark.state == MARK_DONE && !mark.has_done;
	const bool has_empty_id = mark.upload.id && !*mark.upload.id;
	if (packed->size.is_damaged || is_row_of_none || lacks_version || has_empty_id)
		mark.state = MARK_UNREADABLE;
	return mark;
}

/* Replaces a borrowed string, or NULL, by a copy. Returns whether there was memory. */
static bool own_string(char **string)
{
	const char *borrowed = *string;
	*string = borrowed ? strdup(borrowed) : NULL;
	return *string || !borrowed;
}

int mark_from_item(const struct item *item, struct mark *ret)
{
	struct packed_mark *packed = mark_pack_item("", item);
	struct mark mark = mark_unpack(packed);
	bool is_whole = packed != NULL;
	is_whole &= own_string(&mark.source);
	is_whole &= own_string(&mark.claim_source);
	is_whole &= own_string(&mark.upload.id);
	is_whole &= own_string(&mark.error);
	free(packed);
	if (!is_whole)
		mark_clear(&mark);
	*ret = mark;
	return is_whole ? 0 : -ENOMEM;
}
