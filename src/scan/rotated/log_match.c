/* For growing logs: finds the log of each file of a family. growing_logs.c calls log_match() for
 * one family after the other, and keeps the rows. (Other rotated logs are known by the id of their
 * content, see source_key.c. rotated_name.c finds the family of a name.)
 *
 * A file has one of three logs. First, the log that the same file had in an earlier run, by its
 * inode and generation (struct file_identity), if the file still begins with that log's bytes.
 * Second, a log that was copied or compressed into the file, if its content begins with that log's
 * bytes. Third, a new log. Each of these is tried on all files before the next one, so that two
 * logs with the same beginning stay separate.
 *
 * log_growth.c measures a file, and cuts the new bytes of its log. Files are only read here. */
#include "base/clock.h"
#include "base/files.h"
#include "scan/open.h"
#include "scan/rotated/log_growth.h"
#include "scan/scan_entry.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* If it is unknown whether a file is open for writing, it counts as being written for this long
 * after its last write: a program that copies or compresses a log pauses for less. */
#define WRITING_NS ((int64_t)(60 * NS_PER_S))

/* Lets a file that could not be read wait for a later run, or makes it a PROBLEM, whose sentence
 * may already be set. From then on the family may lack files, since any of its logs may be in this
 * file. Returns 0, or the error with a sentence if the scan cannot continue. */
static int report_unread(
	struct log_family *family, struct grown_file *file, int error, struct problem *ret_problem)
{
	if (open_explain_fatal(error, ret_problem))
		return error;
	family->may_lack_files = true;
	const bool was_renamed = error == -ENOENT || error == -ENOTDIR || error == -ELOOP;
	const bool has_changed = error == -ESTALE; /* it was emptied, for example */
	if (was_renamed || has_changed) {
		entry_let_wait(&file->entry, S3ONCE_WAIT_CHANGED);
		return 0;
	}
	file->entry.kind = SCAN_PROBLEM;
	return open_explain_unread(error, &file->entry.problem, ret_problem);
}

/* Whether the file is to be uploaded, and is not known to have a log yet. */
static bool lacks_log(const struct grown_file *file)
{
	return file->entry.kind == SCAN_FILE && file->identity.n && !file->row;
}

bool log_row_is_of(const struct log_row *row, const struct grown_file *file)
{
	return file->identity.n && file->identity.n == row->identity.n &&
	       memcmp(file->identity.bytes, row->identity.bytes, row->identity.n) == 0;
}

/* Whether all of the file was compared with this log, and the file has not changed since. */
static bool is_unchanged(const struct grown_file *file, const struct log_row *row)
{
	return file->state.mtime_ns == row->file_mtime_ns && file->state.size == row->file_size;
}

/* Finds the log that this very file had in an earlier run. Returns NULL if there is none. */
static struct log_row *find_own_log(const struct log_family *family, const struct grown_file *file)
{
	for (size_t k = 0; k < family->n_rows; k++)
		if (log_row_is_of(&family->rows[k], file))
			return &family->rows[k];
	return NULL;
}

/* Finds out whether the file still begins with its own log of an earlier run, which is in `row`,
 * and takes this log if it does. If not, the log becomes LOG_TRUNCATED. Returns 0 or -errno. */
static int match_own(struct log_family *family, struct grown_file *file, struct log_row *row)
{
	struct content_prefix known = {.bytes = row->end, .id = row->until};
	struct content_measured found = {0};
	if (row->state == LOG_TAKEN) {
		file->entry.kind = SCAN_PROBLEM;
		return problem_error(&file->entry.problem, 0,
			"is another name (a hard link) of a log of this family; remove or exclude it");
	}
	row->state = LOG_WAITS; /* until this file or another one turns out to have the log */
	if (file->entry.kind == SCAN_WAITS)
		return 0;
	if (is_unchanged(file, row)) {
		log_row_note_name(family, file, row);
		grown_file_take_log(file, row);
		return 0;
	}
	const int r = grown_file_measure(family, file, row, &known, 1, &found);
	if (r < 0)
		return r;
	if (known.is_there)
		return log_row_extend(family, file, row, &found);
	row->state = LOG_TRUNCATED;
	/* A file that was emptied after the listing may have been copied after it, too. The listing
	 * lacks that copy. */
	family->may_lack_files |= file->state.size < file->entry.size;
	return 0;
}

/* Whether another process has the file open for writing, or may have. */
static bool may_be_written(int fd, const struct grown_file *file)
{
	const enum write_lease lease = write_lease_take(fd);
	write_lease_drop(fd, lease);
	return lease == LEASE_REFUSED ||
	       (lease == LEASE_UNKNOWN && file->state.mtime_ns > clock_wall_ns() - WRITING_NS);
}

/* Makes the file a PROBLEM if it cannot be followed as a log: it has no identity, or the log that
 * it had in an earlier run belongs to another family. `own` is the log that it had in this family,
 * or NULL. If it had one, nothing is checked. */
static void refuse_unknown(
	const struct log_family *family, struct grown_file *file, const struct log_row *own)
{
	struct scan_entry *entry = &file->entry;
	if (own || entry->kind != SCAN_FILE)
		return;
	if (!file->identity.n)
		problem_set(&entry->problem,
			"is on a file system without lasting file handles, by which --live knows "
			"a log that grew; run without this option");
	else if (!log_rows_are_elsewhere(family->options->log_rows, &family->name, &file->identity,
			 &entry->problem))
		return;
	entry->kind = SCAN_PROBLEM;
}

/* Sets the fields of the open file that the rules need, beside its identity. `own` is its log of an
 * earlier run, or NULL. An unchanged file is not read. Returns 0 or -errno. */
static int inspect_file(
	const struct log_family *family, struct grown_file *file, int fd, const struct log_row *own)
{
	const bool has_to_be_read =
		file->entry.kind == SCAN_FILE && !(own && is_unchanged(file, own));
	const int packed = has_to_be_read ? content_seems_compressed(fd) : 0;
	const int64_t made_ns = file_creation_ns(fd);
	file->has_own_time = made_ns && file->state.mtime_ns >= made_ns;
	file->is_packed = packed == 1;
	file->is_being_written =
		!packed && family->options->takes_open_logs && may_be_written(fd, file);
	return packed < 0 ? packed : 0;
}

/* Finds the identity of the file, and matches the file with its own log of an earlier run, if it
 * had one. Returns 0 or -errno. */
static int match_by_identity(struct log_family *family, struct grown_file *file)
{
	if (!entry_is_file(&file->entry)) { /* for example a PROBLEM, which may have any log */
		family->may_lack_files = true;
		return 0;
	}
	const int fd = grown_file_open(family, file, &file->state);
	if (fd < 0)
		return fd;
	if (file_identity_of(fd, &file->identity) < 0)
		family->may_lack_files = true; /* any log may be in this file */
	struct log_row *own = find_own_log(family, file);
	refuse_unknown(family, file, own);
	const int r = inspect_file(family, file, fd, own);
	close(fd);
	if (r < 0) {
		/* The log may be in this file, which cannot be read now. */
		if (own && own->state != LOG_TAKEN)
			own->state = LOG_WAITS;
		return r;
	}
	const bool has_changed = file->state.size != file->entry.size ||
				 file->state.mtime_ns != file->entry.mtime_ns;
	/* A rotated file that has changed since the listing is not finished. */
	if (file->entry.kind == SCAN_FILE && !file->is_live && has_changed)
		entry_let_wait(&file->entry, S3ONCE_WAIT_CHANGED);
	return own ? match_own(family, file, own) : 0;
}

/* Whether the file, which begins with the bytes of this log, is a copy of it, and not another log
 * that begins alike. */
static bool is_copy(const struct grown_file *file, const struct log_row *row,
	const struct content_measured *found)
{
	const bool has_same_moment = file->moment == row->moment;
	const bool has_more_bytes = found->bytes > row->end;
	/* The log's own file was emptied, or was the live file when it was last seen. A live file
	 * is renamed or emptied sooner or later, so that the log has to be in another file now. */
	if (row->state == LOG_TRUNCATED || row->was_live)
		return true;
	/* A rotated log may get more lines, and then be compressed, but the date in its name stays.
	 * A plain file that is longer than the log, and is not the log's own file, is taken for
	 * another log. */
	if (has_more_bytes)
		return file->is_packed && has_same_moment;
	/* Logs of two days may be equal. But compressing and decompressing keep the time or, as
	 * the kubelet does it, the date and time in the name. */
	if (is_same_second(file->state.mtime_ns, row->file_mtime_ns) ||
		(has_same_moment && family_moment_is_unique(file->moment)))
		return true;
	/* Docker keeps neither: the time is the file's own (has_own_time), that of the compression,
	 * and the name has no date, or one without a time of day. So the time says nothing about
	 * the log, and an equal date, or none in both names, is enough. The log's plain file is
	 * gone: a log that one of the files has is not compared here (match_content()). */
	const bool is_newly_packed = file->is_packed && !row->was_packed;
	return is_newly_packed && file->has_own_time && has_same_moment;
}

/* Whether the file may be this log, compressed by logrotate: that gives it the time at which the
 * rotation began, which is before the last line that the log got. A later log of the family with
 * the same content has a later time. */
static bool may_be_compressed(const struct grown_file *file, const struct log_row *row)
{
	return file->is_packed && !row->was_packed && file->moment == row->moment &&
	       file->state.mtime_ns <= row->file_mtime_ns;
}

/* Whether the file has the content of this log, and nothing after it. */
static bool is_equal(const struct grown_file *file, const struct log_row *row,
	const struct content_measured *found)
{
	(void)file;
	return found->bytes == row->end;
}

/* Whether the file, which begins with the bytes of the log, has this log. */
typedef bool has_log(const struct grown_file *file, const struct log_row *row,
	const struct content_measured *found);

/* The logs that a file may have: n logs that no file has, in rising order of their ends, and what
 * decides about one that the file begins with. */
struct free_logs {
	struct log_row **logs;
	size_t n;
	struct content_prefix *prefixes; /* working memory, with room for n */
	has_log *has;
};

/* Finds the log that was copied or compressed to the file. Sets *ret to the longest free log that
 * the file begins with, and for which `has` returns true, or to NULL. *ret_found is the file as it
 * was measured with this log as the longest prefix. Returns 0 or -errno. */
static int find_copied_log(const struct log_family *family, struct grown_file *file,
	const struct free_logs *free_logs, struct log_row **ret, struct content_measured *ret_found)
{
	struct content_prefix *prefixes = free_logs->prefixes;
	*ret = NULL;
	/* Each turn drops the longest log that is left, since the file does not have it, and
	 * measures the file again: found.rest has to be that of the log that is chosen. */
	for (size_t n = free_logs->n; n; n--) {
		for (size_t k = 0; k < n; k++)
			prefixes[k] = (struct content_prefix){
				.bytes = free_logs->logs[k]->end, .id = free_logs->logs[k]->until};
		const int r = grown_file_measure(family, file, NULL, prefixes, n, ret_found);
		if (r < 0)
			return r;
		while (n && !prefixes[n - 1].is_there)
			n--;
		if (!n) /* the file begins with none of the logs */
			return 0;
		struct log_row *longest = free_logs->logs[n - 1];
		if (free_logs->has(file, longest, ret_found)) {
			*ret = longest;
			return 0;
		}
	}
	return 0;
}

/* Gives the file the log that was copied or compressed to it, if there is one. Returns 0, -ESTALE
 * if the file has to wait, or another -errno. */
static int match_copy(
	struct log_family *family, struct grown_file *file, const struct free_logs *free_logs)
{
	struct content_measured found = {0};
	struct log_row *row;
	const int r = find_copied_log(family, file, free_logs, &row, &found);
	if (r < 0 || !row)
		return r;
	/* Another file may have this log: one that waits, was not found or could not be read. */
	const bool may_be_elsewhere =
		row->state == LOG_WAITS || (row->state == LOG_LOOSE && family->may_lack_files);
	if (may_be_elsewhere) {
		entry_let_wait(&file->entry, S3ONCE_WAIT_FAMILY);
		return -ESTALE;
	}
	if (row->state == LOG_TRUNCATED &&
		log_rows_note_once(family->options->log_rows, &family->name, "copytruncate"))
		problem_set(&family->notice,
			"%s was copied to %s and emptied (copytruncate): what was written between "
			"the two is lost, whoever uploads the copy; logrotate's create loses "
			"nothing",
			quote(family->name.family).text, quote(file->relative).text);
	return log_row_extend(family, file, row, &found);
}

/* Finds the log that was copied or compressed to the file, among those that `may_be` accepts (NULL:
 * all). Only files that are to be uploaded and have no log yet are examined. The file with the
 * family's own name is not: it is the one that is copied. Returns 0, -ESTALE if the file has to
 * wait, or another -errno. */
static int match_content(struct log_family *family, struct grown_file *file,
	bool (*may_be)(const struct grown_file *file, const struct log_row *row), has_log *has)
{
	size_t n = 0;
	if (!lacks_log(file) || grown_file_has_family_name(family, file))
		return 0;
	/* calloc() may return NULL for no elements, which is no lack of memory. */
	struct log_row **logs = calloc(family->n_rows + 1, sizeof(struct log_row *));
	struct content_prefix *prefixes = calloc(family->n_rows + 1, sizeof *prefixes);
	for (size_t k = 0; logs && k < family->n_rows; k++) {
		struct log_row *row = &family->rows[k];
		/* Every file begins with an empty log, so that this shows nothing. */
		const bool is_free = row->end && row->state != LOG_TAKEN;
		if (is_free && (!may_be || may_be(file, row)))
			logs[n++] = row;
	}
	const struct free_logs free_logs = {.logs = logs, .n = n, .prefixes = prefixes, .has = has};
	const int r = logs && prefixes ? match_copy(family, file, &free_logs) : -ENOMEM;
	free(prefixes);
	free(logs);
	return r;
}

/* Looks for a copy by its content and its time or date. */
static int match_by_content(struct log_family *family, struct grown_file *file)
{
	return match_content(family, file, NULL, is_copy);
}

/* Looks for a log that logrotate compressed, whose file has an earlier time. By now, a file with
 * the time of the log itself has taken it. */
static int match_compressed(struct log_family *family, struct grown_file *file)
{
	return match_content(family, file, may_be_compressed, is_equal);
}

/* Sets *ret to whether the first bytes of the live file rule out a copy: the file begins with its
 * own log, if it has one, but not with this content. Almost all logs differ in their first bytes.
 * Returns 0 or -errno. */
static int begins_otherwise(const struct content *in_live, const struct grown_file *live,
	const struct content_measured *content, bool *ret)
{
	char first[CONTENT_ID_CHARS + 1];
	bool has_own = true;
	*ret = false;
	if (live->is_packed) /* its first bytes are not those of its content */
		return 0;
	int r = live->row ? log_still_begins(in_live, live->row, &has_own) : 0;
	if (r == 0 && has_own)
		r = content_first(in_live, content->bytes, first);
	*ret = r == 0 && has_own && strcmp(first, content->first) != 0;
	return r == -ESTALE ? 0 : r; /* the live file is shorter: it was emptied */
}

/* Sets *ret to whether a file with this content may be a copy of the live file: that begins with
 * all of the content, or no longer begins with its own log, if it has one. Reads all of the live
 * file, if need be. Returns 0 or -errno. */
static int compare_with_live(const struct content *in_live, const struct grown_file *live,
	const struct content_measured *content, struct problem *ret_problem, bool *ret)
{
	bool is_no_copy;
	*ret = false;
	int r = begins_otherwise(in_live, live, content, &is_no_copy);
	if (r < 0 || is_no_copy)
		return r;
	/* `copy` and `own` are two prefixes that the live file may begin with: the content, and its
	 * own log. content_measure() takes prefixes in rising order of their bytes. */
	struct content_prefix prefixes[2], *copy = &prefixes[0], *own = NULL;
	if (live->row) {
		const bool own_is_shorter = live->row->end <= content->bytes;
		own = own_is_shorter ? &prefixes[0] : &prefixes[1];
		copy = own_is_shorter ? &prefixes[1] : &prefixes[0];
		*own = (struct content_prefix){.bytes = live->row->end, .id = live->row->until};
	}
	*copy = (struct content_prefix){.bytes = content->bytes, .id = content->id};
	struct content_measured ignored;
	r = content_measure(in_live, prefixes, own ? 2 : 1, &ignored, ret_problem);
	const bool was_emptied = own && !own->is_there;
	*ret = r == 0 && (copy->is_there || was_emptied);
	return r;
}

/* Finds the live file, if it has a log or will get one. */
static const struct grown_file *find_live(const struct log_family *family)
{
	for (size_t i = 0; i < family->n_files; i++) {
		const struct grown_file *file = &family->files[i];
		if (file->is_live && grown_file_has_family_name(family, file) &&
			(file->row || lacks_log(file)))
			return file;
	}
	return NULL;
}

/* Sets *ret to whether a file without a log may be a copy of the live file (copytruncate). Until
 * the live file is emptied, such a copy looks like a new log. So it has to wait until then, except
 * in a run that takes files that are still being written. `content` is the whole file.
 *
 * The file may be a copy in two cases: if the live file begins with all of it, or if the live file
 * no longer begins with its own log, and so was just emptied. A file that was last written before
 * the live file was created is not a copy of it. Returns 0 or -errno. */
static int may_be_copy(const struct log_family *family, struct grown_file *file,
	const struct content_measured *content, bool *ret)
{
	const struct scan_options *options = family->options;
	const struct grown_file *live = find_live(family);
	*ret = false;
	if (!live || live == file || !content->bytes || options->takes_open_logs)
		return 0;
	struct file_state now = {0};
	const int fd = grown_file_open(family, live, &now);
	if (fd < 0)
		return fd;
	const struct content in_live = {fd, now.size, options->abandon, options->abandon_arg};
	const bool is_older = file->state.mtime_ns < file_creation_ns(fd);
	const int r =
		is_older ? 0
			 : compare_with_live(&in_live, live, content, &file->entry.problem, ret);
	close(fd);
	return r;
}

/* Returns the row of a log that was found in another rotated file already, if this file has the
 * same content, or NULL. A log may be in a folder twice, as a copy or compressed. The modification
 * time is compared as well, since the logs of two days may have the same content. */
static struct log_row *find_same_log(const struct log_family *family, const struct grown_file *file)
{
	if (grown_file_has_family_name(family, file))
		return NULL;
	for (size_t k = 0; k < family->n_rows; k++) {
		struct log_row *row = &family->rows[k];
		const bool is_rotated = row->state == LOG_TAKEN && !row->was_live;
		const bool has_content = row->end && *row->until;
		const bool has_same_content =
			has_content && strcmp(file->entry.content_id, row->until) == 0;
		if (is_rotated && has_same_content &&
			is_same_second(file->state.mtime_ns, row->file_mtime_ns))
			return row;
	}
	return NULL;
}

/* Computes the id of the first bytes of a file that is not compressed (content_first()). Returns 0
 * or -errno. */
static int read_first_id(const struct log_family *family, const struct grown_file *file,
	char ret_id[static CONTENT_ID_CHARS + 1])
{
	struct file_state ignored;
	const int fd = grown_file_open(family, file, &ignored);
	const struct content content = {.fd = fd, .size = file->state.size};
	const int r = fd < 0 ? fd : content_first(&content, content.size, ret_id);
	if (fd >= 0)
		close(fd);
	return r;
}

/* Returns the reason for which a later run begins the log of this file, or S3ONCE_WAIT_NONE.
 * `found` is the part of the file that may be uploaded. */
static enum s3once_wait reason_to_wait(
	const struct grown_file *file, const struct content_measured *found, bool is_copy_of_live)
{
	const bool has_no_line = grown_file_may_end_in_line(file) && !found->bytes;
	if (is_copy_of_live)
		return S3ONCE_WAIT_COPY;
	if (file->is_live && file->is_packed) /* no log: lines are not appended to such a file */
		return S3ONCE_WAIT_LIVE;
	return has_no_line ? S3ONCE_WAIT_NO_LINE : S3ONCE_WAIT_NONE;
}

/* Begins a new log with the file, or lets it wait. Returns 0 or -errno. */
static int begin_log(struct log_family *family, struct grown_file *file)
{
	/* The scan has already computed the content id, so usually only the first bytes are read
	 * here. The whole file is read if it may end in the middle of a line, to find the end of
	 * its last whole line, or if it is compressed, to measure its content. */
	const bool has_to_be_read = grown_file_may_end_in_line(file) || file->is_packed;
	struct content_measured found = {.bytes = file->state.size};
	bool is_copy_of_live = false;
	memcpy(found.id, file->entry.content_id, sizeof found.id);
	memcpy(found.rest, file->entry.content_id, sizeof found.rest);
	int r = has_to_be_read ? grown_file_measure(family, file, NULL, NULL, 0, &found)
			       : read_first_id(family, file, found.first);
	if (r == 0)
		r = may_be_copy(family, file, &found, &is_copy_of_live);
	if (r < 0)
		return r;
	const enum s3once_wait why = reason_to_wait(file, &found, is_copy_of_live);
	if (why != S3ONCE_WAIT_NONE) {
		entry_let_wait(&file->entry, why);
		return 0;
	}
	struct log_row *row = &family->rows[family->n_rows++]; /* load_rows() has made the room */
	*row = (struct log_row){0};
	return log_row_extend(family, file, row, &found);
}

/* Finds out which of n prefixes a file that has to wait begins with. Returns 1 if the file is
 * compressed: it is not read then, since it may not be whole yet. Otherwise 0 or -errno. */
static int measure_waiting(const struct log_family *family, struct grown_file *file,
	struct content_prefix *known, size_t n)
{
	const struct scan_options *options = family->options;
	const uint64_t max_bytes = known[n - 1].bytes; /* they are in rising order */
	struct content_measured ignored;
	struct file_state now = {0};
	const int fd = grown_file_open(family, file, &now);
	if (fd < 0)
		return fd;
	const struct content content = {fd, now.size < max_bytes ? now.size : max_bytes,
		options->abandon, options->abandon_arg};
	const int packed = content_seems_compressed(fd);
	const int r = packed ? packed
			     : content_measure(&content, known, n, &ignored, &file->entry.problem);
	close(fd);
	return r;
}

/* If this file has to wait, finds the logs of emptied files that may be in it: those whose bytes it
 * begins with, or all of them if it is compressed. These become LOG_WAITS. Whatever else the file
 * may be, it is no copy of any other of them: a log is emptied only after all of it was copied.
 * Returns 0 or -errno. */
static int match_waiting(struct log_family *family, struct grown_file *file)
{
	if (file->entry.kind != SCAN_WAITS)
		return 0;
	struct content_prefix *known = calloc(family->n_rows + 1, sizeof *known);
	struct log_row **emptied = calloc(family->n_rows + 1, sizeof(struct log_row *));
	size_t n = 0;
	for (size_t k = 0; known && emptied && k < family->n_rows; k++) {
		struct log_row *row = &family->rows[k];
		if (row->state != LOG_TRUNCATED)
			continue;
		known[n] = (struct content_prefix){.bytes = row->end, .id = row->until};
		emptied[n++] = row;
	}
	int r = known && emptied ? 0 : -ENOMEM;
	if (n)
		r = measure_waiting(family, file, known, n);
	const bool is_packed = r > 0;
	for (size_t i = 0; i < n; i++)
		if (is_packed || known[i].is_there)
			emptied[i]->state = LOG_WAITS;
	free(known);
	free(emptied);
	return r < 0 ? r : 0;
}

/* Whether the row of the log that this file had before it was emptied has to stay for now.
 *
 * logrotate's copytruncate copies a log and then empties the file, which goes on with a new log.
 * The old log is then in the copy. If the copy has to wait itself, was missed or could not be read,
 * a later run recognises it by the row of the old log. */
static bool needs_old_row(const struct log_family *family, const struct grown_file *file)
{
	for (size_t k = 0; k < family->n_rows; k++) {
		const struct log_row *row = &family->rows[k];
		const bool is_needed = row->state == LOG_WAITS ||
				       (row->state == LOG_TRUNCATED && family->may_lack_files);
		if (is_needed && log_row_is_of(row, file))
			return true;
	}
	return false;
}

/* If a file has no log yet, finds the log of another file with the same content, or begins a new
 * log. Returns 0 or -errno. */
static int match_new(struct log_family *family, struct grown_file *file)
{
	if (!lacks_log(file))
		return 0;
	struct log_row *same = find_same_log(family, file);
	/* The database keeps one row for each file, so a new log would replace the old row. */
	if (needs_old_row(family, file))
		entry_let_wait(&file->entry, S3ONCE_WAIT_FAMILY);
	else if (same)
		grown_file_take_log(file, same);
	else
		return begin_log(family, file);
	return 0;
}

int log_match(struct log_family *family, struct problem *ret_problem)
{
	static int (*const passes[])(struct log_family *, struct grown_file *) = {
		match_by_identity, /* first, since no other file can have that log then */
		match_by_content,  /* copies that are certain by their time or date */
		match_compressed,  /* those of logrotate, which are less certain */
		match_waiting,     /* logs that may be in files that wait */
		match_new,         /* last, since a new log may replace the row of an old one */
	};
	for (size_t pass = 0; pass < sizeof passes / sizeof *passes; pass++)
		for (size_t i = 0; i < family->n_files; i++) {
			struct grown_file *file = &family->files[i];
			int r = passes[pass](family, file);
			if (r < 0)
				r = report_unread(family, file, r, ret_problem);
			if (r < 0)
				return r;
		}
	return 0;
}
