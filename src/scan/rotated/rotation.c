/* Lists logs that may rotate meanwhile. They are listed again until two listings agree, and each
 * file gets the id of its content, so that no log is lost if it is renamed or compressed during a
 * listing. source_identify() in source_key.c makes the id, by which a log is recognised under
 * another name. key_order.c reads the files from here instead of from the sources. For growing
 * logs, growing_logs.c chooses the uploads; otherwise every rotated file is uploaded. */
#include "scan/rotated/rotation.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/wait_until.h"
#include "scan/open.h"
#include "scan/scan_entry.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Result of identify_found_file() if the name of a file is gone, or points to another version by
 * now. */
#define HAS_MOVED 1
/* The number of first bytes by which two files are compared. */
#define BEGINNING_BYTES 4096
#define PAUSE_FIRST_NS  (250 * NS_PER_MS) /* after listings that differ; doubles each time */

/* Finds the content id of a file that was found. Returns 0, HAS_MOVED, or -errno, with a sentence
 * for some errors. -ESTALE mostly means that the file is being written to. */
static int identify_found_file(const struct source *source, const struct scan_entry *found,
	char ret_id[static CONTENT_ID_CHARS + 1], struct problem *ret_why)
{
	struct file_state state;
	const int fd = source_open_file(source, found->relative, &state);
	if (fd < 0)
		return error_means_moved(fd) ? HAS_MOVED : fd;
	const bool is_found = state.size == found->size && state.mtime_ns == found->mtime_ns &&
			      state.dev == found->dev && state.ino == found->ino;
	state.ctime_ns = 0; /* does not count, since a rename would change it */
	const int r = is_found ? source_identify(source->options, fd, &state, ret_id, ret_why)
			       : HAS_MOVED;
	close(fd);
	return r;
}

/* Facts about a file of a family, by which is_in_ring() compares two of them. */
struct ring_file {
	char first_bytes[BEGINNING_BYTES];
	size_t n; /* of first_bytes: fewer if the file is shorter */
	int64_t made_ns;
	bool is_being_written; /* a program has the file open for writing */
};
/* Returns 0 or -errno. */
static int read_ring_file(const struct source *source, const char *name, struct ring_file *ret)
{
	struct file_state state;
	const int fd = source_open_file(source, name, &state);
	if (fd < 0)
		return fd;
	const bool is_short = state.size < sizeof ret->first_bytes;
	ret->n = is_short ? (size_t)state.size : sizeof ret->first_bytes;
	const long n = read_at(fd, ret->first_bytes, ret->n, 0);
	ret->made_ns = file_creation_ns(fd);
	ret->is_being_written = file_is_being_written(fd);
	close(fd);
	return n < 0 ? (int)n : 0;
}

/* Whether the file `found`, which has the family's own name, is finished: a program writes to
 * another file, `later`, as the next one of a ring (`rotatelogs -n 3 app.log` writes app.log,
 * app.log.1, app.log.2, and then app.log again).
 *
 * `later` may be no such file in two cases. It may be a log that was renamed before `found` was
 * made, and that a program has not closed yet; then it is older. Or it may be a copy of `found`
 * (copytruncate); then both begin alike. Modification times alone show nothing, since clocks jump.
 * An error counts as no: the next run will see. */
static bool is_in_ring(
	const struct source *source, const struct scan_entry *found, const char *later)
{
	struct ring_file own, next;
	if (read_ring_file(source, found->relative, &own) < 0 ||
		read_ring_file(source, later, &next) < 0)
		return false;
	const size_t n = own.n < next.n ? own.n : next.n;
	const bool was_made_later = own.made_ns && next.made_ns >= own.made_ns;
	const bool begin_alike = memcmp(own.first_bytes, next.first_bytes, n) == 0;
	return next.is_being_written && was_made_later && !begin_alike;
}

/* Finds out whether a file that counts as finished is the live log all the same: because it has the
 * family's own name and is not known to be in a ring, or because an earlier run has uploaded it as
 * finished and it has grown since. Returns 1, 0 or -errno with a sentence. */
static int counts_as_live(const struct rotation *rotation, const struct source *source,
	const struct scan_entry *found, struct problem *ret_problem)
{
	if (!found->may_grow)
		return 0;
	struct text later = TEXT(SOURCE_PATH_BYTES_MAX);
	const int has_later = rotation_table_find_later(rotation->table, &later, ret_problem);
	bool is_live = false;
	if (has_later > 0)
		is_live = !is_in_ring(source, found, text_string(&later));
	else if (has_later == 0 && !rotation->options->log_rows)
		is_live = source_has_grown(source, found);
	text_clear(&later);
	return has_later < 0 ? has_later : is_live;
}

int rotation_complete_head(struct source *source, struct problem *ret_problem)
{
	struct scan_entry *head = &source->head;
	struct family family;
	family_of(source->options->rotated, path_name(head->relative), &family);
	const bool is_live = family.form == FAMILY_PLAIN && !*family.suffix;
	head->is_rotated = !is_live && !family.is_unfinished;
	head->suffix = family.suffix;
	head->kind = SCAN_PROBLEM;
	if (!head->is_rotated)
		return problem_error(&head->problem, 0, "%s",
			family.is_unfinished
				? "by its name is unfinished or put aside: --rotated leaves it out"
				: "does not have the name of a rotated file: --rotated takes it "
				  "for a live log");
	if (entry_is_too_large(head, source->options))
		return problem_error(&head->problem, 0, "is larger than --max-size");
	const int r = identify_found_file(source, head, head->content_id, &head->problem);
	if (r == -ECANCELED)
		return problem_error(ret_problem, r, "stopped while the file was read");
	if (r == -ESTALE || r == HAS_MOVED)
		return problem_error(&head->problem, 0, "is being written to");
	if (r < 0)
		return open_explain_unread(r, &head->problem, ret_problem);
	head->kind = SCAN_FILE;
	return 0;
}

void rotation_clear(struct rotation *rotation)
{
	growing_logs_clear(&rotation->logs);
	rotation_table_free(rotation->table);
}

/* Lists all sources once. Returns 1 if the listing found the same as the one before it, 0 if not,
 * or -errno with a sentence. */
static int list_sources(struct rotation *rotation, struct problem *ret_problem)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < rotation->n; i++) {
		struct source *source = &rotation->sources[i];
		r = source_rewind(source) ? scan_no_memory(ret_problem) : 0;
		while (r == 0 && (r = source_next_unnamed(source, ret_problem)) > 0) {
			source->head.source = source->index;
			r = rotation_table_add(rotation->table, &source->head, ret_problem);
			if (r == 0)
				r = scan_check_cancelled(rotation->options, ret_problem);
		}
	}
	return r < 0 ? r : rotation_table_end(rotation->table, ret_problem);
}

/* Reads a file whose content is not known, and notes the result. A file that has moved is left to
 * the next listing. Returns 0, or -errno with a sentence. */
static int identify_entry(
	struct rotation *rotation, const struct scan_entry *entry, struct problem *ret_problem)
{
	struct rotation_table *table = rotation->table;
	const struct source *source = &rotation->sources[entry->source];
	struct problem why = {.text = ""};
	char id[CONTENT_ID_CHARS + 1];
	const int is_live = counts_as_live(rotation, source, entry, ret_problem);
	if (is_live < 0)
		return is_live;
	if (is_live)
		return rotation_table_note_content(table, entry, READING_LIVE, NULL, ret_problem);
	if (entry_is_too_large(entry, rotation->options))
		return rotation_table_note_content(table, entry, READING_NO_ID, NULL, ret_problem);
	const int r = identify_found_file(source, entry, id, &why);
	if (r == HAS_MOVED)
		return 0;
	if (r == 0)
		return rotation_table_note_content(table, entry, READING_ID, id, ret_problem);
	if (r == -ESTALE)
		return rotation_table_note_content(
			table, entry, READING_BEING_WRITTEN, NULL, ret_problem);
	const int error = open_explain_unread(r, &why, ret_problem);
	if (error)
		return error;
	return rotation_table_note_content(table, entry, READING_FAILED, why.text, ret_problem);
}

/* Reads all files whose content is not known. Returns their number, or -errno with a sentence. */
static long identify_all(struct rotation *rotation, struct problem *ret_problem)
{
	struct scan_entry entry;
	for (long n = 0;; n++) {
		int r = rotation_table_next(rotation->table, ROTATION_UNKNOWN, &entry, ret_problem);
		if (r <= 0)
			return r < 0 ? r : n;
		r = identify_entry(rotation, &entry, ret_problem);
		if (r == 0)
			r = scan_check_cancelled(rotation->options, ret_problem);
		if (r < 0)
			return r;
	}
}

/* Waits after two listings that differ, the longer the more rounds there were. Returns 0, or
 * -ECANCELED with a sentence if the run is over. */
static int pause_listing(
	const struct rotation *rotation, unsigned round, struct problem *ret_problem)
{
	int r;
	wait_until((r = scan_check_cancelled(rotation->options, ret_problem)) < 0,
		.deadline_ns = clock_boot_ns() + (PAUSE_FIRST_NS << (round - 1)));
	return r;
}

/* Lists the sources until two listings agree and nothing is left to be read, or for ROTATION_ROUNDS
 * more listings. A listing goes through names in order, so that a file may be renamed from a name
 * that comes later to one that was passed. Two listings with the same files have missed none, and
 * each file was read under a name that it had then. Returns 0, even if this never happened
 * (keeps_changing), or -errno with a sentence. */
static int list_until_stable(struct rotation *rotation, struct problem *ret_problem)
{
	const struct scan_options *options = rotation->options;
	int r = rotation->table ? 0 : rotation_table_new(options, &rotation->table, ret_problem);
	for (unsigned round = 0; r == 0; round++) {
		const int is_same = list_sources(rotation, ret_problem);
		if (is_same < 0)
			return is_same;
		const long n_read = identify_all(rotation, ret_problem);
		if (n_read < 0)
			return (int)n_read;
		if (is_same && n_read == 0)
			return 0;
		if (round == ROTATION_ROUNDS) {
			rotation->keeps_changing = true;
			return 0;
		}
		/* The first listing has none before it that it could agree with. */
		if (round > 0 && !is_same)
			r = pause_listing(rotation, round, ret_problem);
	}
	return r;
}

/* Makes the entry the version of the live log that is there now, with its content id. It is a piece
 * unless the log is compressed. Returns 0 or -errno. */
static int read_live_log(const struct source *source, struct scan_entry *entry)
{
	const struct scan_options *options = source->options;
	struct file_state state = {0};
	const int fd = source_open_inode(source, entry->relative, entry->dev, entry->ino, &state);
	entry_set_version(entry, &state);
	if (fd < 0)
		return fd;
	const struct content content = {fd, state.size, options->abandon, options->abandon_arg};
	const int packed = content_seems_compressed(fd);
	entry->is_piece = packed == 0;
	const int r =
		packed < 0 ? packed : content_id(&content, entry->content_id, &entry->problem);
	close(fd);
	return r;
}

/* Makes the entry of a live log a piece: all that the log contains now. A piece is sent from a
 * copy, which does not change when more is written to the log. A log that is compressed stays a
 * file (read_live_log()). A log that is empty, or that was moved just now, WAITS. One that cannot
 * be read is a PROBLEM. Returns 0, or -errno with a sentence if the scan cannot continue. */
static int take_live_log(
	struct rotation *rotation, struct scan_entry *entry, struct problem *ret_problem)
{
	const int r = read_live_log(&rotation->sources[entry->source], entry);
	entry->is_rotated = true;
	if (r == 0) {
		if (!entry->size)
			entry_let_wait(entry, S3ONCE_WAIT_NO_LINE);
		return 0;
	}
	if (error_means_moved(r)) /* it was renamed, removed or emptied just now */
		entry_let_wait(entry, S3ONCE_WAIT_CHANGED);
	else
		entry->kind = SCAN_PROBLEM;
	return open_explain_unread(r, &entry->problem, ret_problem);
}

/* Lists the sources once more at the first call, and hands out the rotated files that are new in
 * this listing: they wait for the next run. Such a log may have been copied from a live file
 * (copytruncate) after the names were listed and before the live file was read, so that nothing
 * else would name it. Returns 1, 0 if none is left, or -errno with a sentence. */
static int next_of_last_listing(
	struct rotation *rotation, struct scan_entry *ret, struct problem *ret_problem)
{
	int r = rotation->is_listed_again ? 0 : list_sources(rotation, ret_problem);
	rotation->is_listed_again = true;
	if (r >= 0)
		r = rotation_table_next(rotation->table, ROTATION_NEW, ret, ret_problem);
	if (r > 0)
		entry_let_wait(ret, S3ONCE_WAIT_CHANGED);
	return r;
}

/* Makes the next entry that is about all files and not about one of them: a PROBLEM if no two
 * listings agreed, and a NOTICE if a log is rotated and compressed again each night, so that it has
 * a new content and a new object each time. Each of them comes once. Returns 1, or 0 if none is
 * left. */
static int next_general(struct rotation *rotation, struct scan_entry *ret)
{
	const char *packed_twice = rotation_table_packed_twice(rotation->table);
	const bool is_packed_twice = *packed_twice && !rotation->has_reported_packed;
	if (!rotation->keeps_changing && !is_packed_twice)
		return 0;
	*ret = (struct scan_entry){.relative = ".", .suffix = ""};
	if (rotation->keeps_changing) {
		rotation->keeps_changing = false;
		ret->kind = SCAN_PROBLEM;
		problem_set(&ret->problem,
			"the rotated files kept changing their names while they were listed %d "
			"times; the next run takes what this one has missed",
			ROTATION_ROUNDS + 1);
		return 1;
	}
	rotation->has_reported_packed = true;
	ret->kind = SCAN_NOTICE;
	problem_set(&ret->problem,
		"%s was rotated once more after it had been compressed, and is uploaded again each "
		"time; let logrotate's wildcard match live logs alone, such as *.log",
		quote(packed_twice).text);
	return 1;
}

/* Makes the next entry of the listings, which may be one of a log that grows. Returns 1, 0 if none
 * is left, or -errno with a sentence. */
static int next_listed(
	struct rotation *rotation, struct scan_entry *ret, struct problem *ret_problem)
{
	if (rotation->options->log_rows)
		return growing_logs_next(&rotation->logs, ret, ret_problem);
	const int r = rotation_table_next(rotation->table, ROTATION_ALL, ret, ret_problem);
	/* Live logs are FILEs only if they are taken. */
	const bool is_live = r > 0 && ret->kind == SCAN_FILE && !ret->is_rotated;
	if (!is_live || entry_is_too_large(ret, rotation->options))
		return r;
	const int error = take_live_log(rotation, ret, ret_problem);
	return error ? error : r;
}

int rotation_next(
	struct rotation *rotation, struct source **ret_source, struct problem *ret_problem)
{
	struct scan_entry entry;
	if (!rotation->logs.table) { /* the first call */
		const int error = list_until_stable(rotation, ret_problem);
		if (error)
			return error;
		rotation->logs = (struct growing_logs){.table = rotation->table,
			.sources = rotation->sources,
			.is_complete = !rotation->keeps_changing};
	}
	int r = next_general(rotation, &entry);
	if (r == 0 && !rotation->is_listed_again)
		r = next_listed(rotation, &entry, ret_problem);
	/* After all entries, one more listing finds the rotated files that have appeared since. */
	if (r == 0 && scan_takes_live(rotation->options))
		r = next_of_last_listing(rotation, &entry, ret_problem);
	if (r > 0) {
		*ret_source = &rotation->sources[entry.source];
		(*ret_source)->head = entry;
	}
	return r;
}
