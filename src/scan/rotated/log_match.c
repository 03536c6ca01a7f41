/* For growing logs: finds the log of each file of a family. (Other rotated logs are known by the id
 * of their content, see source_key.c. rotated_name.c finds the family of a name.)
 *
 * Three rules are tried in turn. First, the log that this very file had in an earlier run, by its
 * inode and generation (struct file_identity), if the file still begins with that log's bytes.
 * Second, a log that was copied or compressed to the file, if the file's content begins with that
 * log's bytes. Third, a new log. Each rule is tried on all files before the next rule is tried on
 * any, so that two logs that begin alike stay two.
 *
 * New bytes of a log are cut into pieces here as well: a piece of a live log ends where its last
 * line does. growing_logs.c calls log_match() for one family after the other, and keeps the rows.
 * Files are only read here. */
#include "base/clock.h"
#include "base/files.h"
#include "scan/open.h"
#include "scan/rotated/growing_logs.h"
#include "scan/scan_entry.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES 65536
/* A file system may count modification times in steps of two seconds. */
#define TOO_FRESH_NS ((int64_t)(2 * NS_PER_S))
/* If it is unknown whether a file is open for writing, it counts as being written for this long
 * after its last write: a program that copies or compresses a log pauses for less. */
#define WRITING_NS ((int64_t)(60 * NS_PER_S))

/* Whether the file has the family's own name, and so is the one that is renamed, copied and
 * emptied. Any other file may be a copy of it, even if it is live. */
static bool has_family_name(const struct log_family *family, const struct grown_file *file)
{
	return strcmp(file->entry.relative, family->name.family) == 0;
}

/* Leaves a file that could not be read to a later run, or makes it a PROBLEM, for which the reading
 * may have set a sentence already. The family is unsure from then on, since this file may have any
 * log. Returns 0, or the error with a sentence if the scan cannot go on. */
static int report_unread(
	struct log_family *family, struct grown_file *file, int error, struct problem *ret_problem)
{
	if (open_error_is_fatal(error, ret_problem))
		return error;
	family->is_unsure = true;
	if (error == -ESTALE || error == -ENOENT || error == -ENOTDIR || error == -ELOOP) {
		/* it was renamed, removed or emptied just now */
		entry_let_wait(&file->entry, S3ONCE_WAIT_CHANGED);
		return 0;
	}
	file->entry.kind = SCAN_PROBLEM;
	return open_report_unread(error, &file->entry.problem, ret_problem);
}

/* Whether two times are in the same second. Compressing a file keeps its time, but not the fraction
 * of the second. */
static bool is_same_second(int64_t a_ns, int64_t b_ns)
{
	return a_ns / (int64_t)NS_PER_S == b_ns / (int64_t)NS_PER_S;
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

/* Opens the file, whatever its name is now. Returns the descriptor or -errno. */
static int open_file(const struct log_family *family, const struct grown_file *file,
	struct file_state *ret_state)
{
	const struct scan_entry *entry = &file->entry;
	return source_open_inode(
		family->source, entry->relative, entry->dev, entry->ino, ret_state);
}

/* Sets *ret_end to the end of the last line that ends between the offsets from and to, or to from
 * if none does. Returns 0 or -errno. */
static int find_line_end(int fd, uint64_t from, uint64_t to, uint64_t *ret_end)
{
	char bytes[CHUNK_BYTES];
	for (uint64_t at = to; at > from;) {
		const size_t want = at - from < sizeof bytes ? (size_t)(at - from) : sizeof bytes;
		at -= want;
		const long n = read_at(fd, bytes, want, at);
		if (n < 0)
			return (int)n;
		const char *end = memrchr(bytes, '\n', want);
		if (end) {
			*ret_end = at + (size_t)(end - bytes) + 1;
			return 0;
		}
	}
	*ret_end = from;
	return 0;
}

/* Whether the log may go on in the middle of its last line: it is live, or is being written. */
static bool ends_at_last_line(const struct grown_file *file)
{
	return file->is_live || file->is_being_written;
}

/* Sets *ret to whether the file still begins with the log that is in `row`, judging by the first
 * and the last bytes of that log. Returns 0 or -errno. */
static int still_begins_with(const struct content *content, const struct log_row *row, bool *ret)
{
	char edges[CONTENT_ID_CHARS + 1];
	const int r = content->size < row->end ? -ESTALE : content_edges(content, row->end, edges);
	*ret = r == 0 && strcmp(edges, row->edges) == 0;
	return r == -ESTALE ? 0 : r;
}

/* Measures the bytes behind the log in its own file, if the file still begins with it. */
static int measure_grown(const struct content *content, const struct log_row *row,
	struct content_prefix *prefix, struct content_measured *ret)
{
	const int r = still_begins_with(content, row, &prefix->is_there);
	return prefix->is_there ? content_measure_more(content, &row->sha256, prefix, ret) : r;
}

/* Measures the part of the file that may be uploaded: all of it or, for a file that is being
 * written, its lines up to the end of the last whole one. If no line ends behind the first prefix,
 * such a file is measured up to the end of that prefix. `own` is the log that this very file had
 * before, whose bytes are the only prefix, or NULL. Sets has_rest of the file. Returns 0, or
 * -errno, and then the file may have a sentence. */
static int measure_uploadable(const struct log_family *family, struct grown_file *file,
	const struct log_row *own, struct content_prefix *prefixes, size_t n,
	struct content_measured *ret)
{
	const struct scan_options *options = family->options;
	const uint64_t from = n ? prefixes[0].bytes : 0;
	struct file_state ignored;
	const int fd = open_file(family, file, &ignored);
	/* Lines written since match_by_identity() are left to the next run. */
	struct content content = {fd, file->state.size, options->is_over, options->is_over_arg};
	int r = fd < 0 ? fd : 0;
	if (r == 0 && ends_at_last_line(file) && content.size > from)
		r = find_line_end(fd, from, content.size, &content.size);
	file->has_rest = content.size < file->state.size;
	/* The edges have to be those of the measured bytes, beside which they are kept. */
	char edges[CONTENT_ID_CHARS + 1];
	if (r == 0)
		r = content_edges(&content, content.size, edges);
	if (r == 0 && own && *own->edges)
		r = measure_grown(&content, own, prefixes, ret);
	else if (r == 0)
		r = content_measure(&content, prefixes, n, ret, &file->entry.problem);
	if (r == 0 && *ret->edges && strcmp(ret->edges, edges) != 0)
		r = -ESTALE;
	if (fd >= 0)
		close(fd);
	return r;
}

/* Gives the file this log, whose state becomes LOG_TAKEN. Sets is_whole if the log's only piece is
 * the file's whole content. Then the file is uploaded as it is, and not as a piece. For this its
 * time has to be that of the piece, since the template may use it in the key. */
static void set_log(struct grown_file *file, struct log_row *row)
{
	file->row = row;
	file->is_whole = !file->is_live && !file->has_rest && row->n_pieces == 1 &&
			 is_same_second(file->state.mtime_ns, row->pieces[0].mtime_ns);
	row->state = LOG_TAKEN;
}

/* Updates the columns about the file's name, which is_copy() uses. */
static void note_name(
	const struct log_family *family, const struct grown_file *file, struct log_row *row)
{
	const bool is_live = has_family_name(family, file);
	if (row->was_live == is_live && row->moment == file->moment)
		return;
	row->was_live = is_live;
	row->moment = file->moment;
	row->change = LOG_CHANGED;
}

/* Makes the log in `row` the log of the file, which was measured and begins with the log's bytes.
 * The log grows: the bytes of the file behind its end become its next piece. A log that is empty
 * has one empty piece. The row then describes the present file. Returns 0 or -ENOMEM. */
static int extend_log(const struct log_family *family, struct grown_file *file, struct log_row *row,
	const struct content_measured *found)
{
	if (found->bytes > row->end || !row->n_pieces) {
		struct log_piece piece = {
			.start = row->end, .end = found->bytes, .mtime_ns = file->state.mtime_ns};
		memcpy(piece.id, found->rest, sizeof piece.id); /* of the bytes behind the log */
		if (log_row_add_piece(row, &piece))
			return -ENOMEM;
		row->end = found->bytes;
		memcpy(row->until, found->id, sizeof row->until); /* of all bytes */
	}
	/* is_unchanged() must not rely on size and time of a file that was written a moment ago.
	 * The beginning of a line that was left out becomes a piece once the file is finished. */
	const bool is_settled = !file->has_rest && !file->is_being_written &&
				file->state.mtime_ns < clock_wall_ns() - TOO_FRESH_NS;
	row->identity = file->identity;
	row->file_size = is_settled ? file->state.size : LOG_SIZE_UNSETTLED;
	row->file_mtime_ns = file->state.mtime_ns;
	row->was_packed = file->is_packed;
	memcpy(row->edges, found->edges, sizeof row->edges);
	row->sha256 = found->sha256;
	note_name(family, file, row);
	row->change = LOG_CHANGED;
	set_log(file, row);
	return 0;
}

/* Whether all of the file was compared with this log, and the file has not changed since. */
static bool is_unchanged(const struct grown_file *file, const struct log_row *row)
{
	return file->state.mtime_ns == row->file_mtime_ns && file->state.size == row->file_size;
}

/* Finds out whether the file still begins with the log that it had in an earlier run, and takes
 * this log if it does. `row` is this log: it has the identity of the file. If the file begins with
 * something else, the log becomes LOG_TRUNCATED. Returns 0 or -errno. */
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
		note_name(family, file, row);
		set_log(file, row);
		return 0;
	}
	const int r = measure_uploadable(family, file, row, &known, 1, &found);
	if (r < 0)
		return r;
	if (known.is_there)
		return extend_log(family, file, row, &found);
	row->state = LOG_TRUNCATED;
	/* If the file was emptied after it was listed, the folders may have a copy of it that was
	 * made after they were listed. */
	family->is_unsure |= file->state.size < file->entry.size;
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

/* Finds the identity of the file, and matches the file with the log that had this identity, if
 * there is one. An unchanged file is not read. A file whose log cannot be determined becomes a
 * PROBLEM. Returns 0 or -errno. */
static int match_by_identity(struct log_family *family, struct grown_file *file)
{
	if (!entry_is_file(&file->entry)) { /* for example a PROBLEM, which may have any log */
		family->is_unsure = true;
		return 0;
	}
	const int fd = open_file(family, file, &file->state);
	if (fd < 0)
		return fd;
	const bool has_identity = file_identity_of(fd, &file->identity) == 0;
	struct log_row *own = NULL; /* the log that this file had in an earlier run */
	for (size_t k = 0; k < family->n_rows && !own; k++)
		if (log_row_is_of(&family->rows[k], file)) /* false without an identity */
			own = &family->rows[k];
	int packed = 0; /* 1 if the file begins as a compressed one does; or the error of reading */
	if (has_identity && !own && file->entry.kind == SCAN_FILE &&
		log_rows_are_elsewhere(family->options->log_rows, &family->name, &file->identity,
			&file->entry.problem))
		file->entry.kind = SCAN_PROBLEM;
	if (file->entry.kind == SCAN_FILE && !(own && is_unchanged(file, own)))
		packed = content_seems_compressed(fd);
	const bool is_being_written = family->options->takes_written && may_be_written(fd, file);
	const int64_t made_ns = file_made_ns(fd);
	close(fd);
	file->has_own_time = made_ns && file->state.mtime_ns >= made_ns;
	file->is_packed = packed == 1;
	file->is_being_written = is_being_written && !packed;
	family->is_unsure |= !has_identity; /* it may have any log */
	if (!has_identity && file->entry.kind == SCAN_FILE) {
		file->entry.kind = SCAN_PROBLEM;
		problem_set(&file->entry.problem,
			"is on a file system without lasting file handles, by which --live knows "
			"a log that grew; run without this option");
	}
	/* The file cannot be read now, so its log waits for it. */
	if (packed < 0) {
		if (own && own->state != LOG_TAKEN)
			own->state = LOG_WAITS;
		return packed;
	}
	/* A rotated file has to wait if it has changed since the listing. */
	if (file->entry.kind == SCAN_FILE && !file->is_live &&
		(file->state.size != file->entry.size ||
			file->state.mtime_ns != file->entry.mtime_ns))
		entry_let_wait(&file->entry, S3ONCE_WAIT_CHANGED);
	return own ? match_own(family, file, own) : 0;
}

/* Whether the file, which begins with the bytes of this log, is a copy of it, and not another log
 * that begins alike. */
static bool is_copy(const struct grown_file *file, const struct log_row *row,
	const struct content_measured *found)
{
	/* A log whose file was emptied, or had the family's name when it was last seen, has to be
	 * in another file now. */
	if (row->state == LOG_TRUNCATED || row->was_live)
		return true;
	/* A rotated log may get more lines, and then be compressed, but the date in its name stays.
	 * A plain file that is longer than the log, and is not the log's own file, is taken for
	 * another log. */
	if (found->bytes != row->end)
		return file->is_packed && file->moment == row->moment;
	/* Logs of two days may be equal. But compressing and decompressing keep the time or, as
	 * the kubelet does it, the date and time in the name. */
	if (is_same_second(file->state.mtime_ns, row->file_mtime_ns) ||
		(family_moment_is_unique(file->moment) && file->moment == row->moment))
		return true;
	/* Docker keeps neither. But then the time is that of the compression, which has nothing to
	 * do with the log, and the plain file is gone. */
	return file->is_packed && !row->was_packed && file->has_own_time &&
	       file->moment == row->moment;
}

/* Whether the file may be this log, compressed by logrotate: that gives it the time at which the
 * rotation began, which is before the last line that the log got. A later log of the family with
 * the same content has a later time. */
static bool may_be_compressed(const struct grown_file *file, const struct log_row *row)
{
	return file->is_packed && !row->was_packed && file->moment == row->moment &&
	       file->state.mtime_ns <= row->file_mtime_ns;
}

/* Whether the file has the content of this log, and nothing behind it. */
static bool is_equal(const struct grown_file *file, const struct log_row *row,
	const struct content_measured *found)
{
	(void)file;
	return found->bytes == row->end;
}

/* Whether the file, which begins with the bytes of the log, has this log. */
typedef bool has_log(const struct grown_file *file, const struct log_row *row,
	const struct content_measured *found);

/* Finds the log that was copied or compressed to the file. `logs` are n logs that no file has, in
 * rising order of their ends. Sets *ret to the longest of them that the file begins with, and of
 * which `has` says so, or to NULL. *ret_found is the file as it was measured beside this log.
 * `known` has room for n. Returns 0 or -errno. */
static int find_copied_log(const struct log_family *family, struct grown_file *file,
	struct log_row **logs, struct content_prefix *known, size_t n, has_log *has,
	struct log_row **ret, struct content_measured *ret_found)
{
	/* If the file begins with a log, but does not have it, the file is measured again without
	 * this log and those behind it: found.rest has to be that of the log that is chosen. */
	for (; n; n--) {
		for (size_t k = 0; k < n; k++)
			known[k] = (struct content_prefix){
				.bytes = logs[k]->end, .id = logs[k]->until};
		const int r = measure_uploadable(family, file, NULL, known, n, ret_found);
		if (r < 0)
			return r;
		while (n && !known[n - 1].is_there)
			n--;
		/* Now logs[n - 1] is the longest log that the file begins with, if there is one. */
		if (!n || has(file, logs[n - 1], ret_found))
			break;
	}
	*ret = n ? logs[n - 1] : NULL;
	return 0;
}

/* Gives the file the log that was copied or compressed to it, if there is one. The arguments are as
 * in find_copied_log(). Returns 0, -ESTALE if the file has to wait, or another -errno. */
static int match_copy(struct log_family *family, struct grown_file *file, struct log_row **logs,
	struct content_prefix *known, size_t n, has_log *has)
{
	struct content_measured found = {0};
	struct log_row *row;
	const int r = find_copied_log(family, file, logs, known, n, has, &row, &found);
	if (r < 0 || !row)
		return r;
	/* Another file may have this log: one that waits, was not found or could not be read. */
	if (row->state == LOG_WAITS || (family->is_unsure && row->state == LOG_LOOSE)) {
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
	return extend_log(family, file, row, &found);
}

/* Finds the log that was copied or compressed to the file, among those that `may_be` accepts (NULL:
 * all). Only files that are to be uploaded, have no log yet and do not have the family's own name
 * are examined. Returns as match_copy(). */
static int match_content(struct log_family *family, struct grown_file *file,
	bool (*may_be)(const struct grown_file *file, const struct log_row *row), has_log *has)
{
	size_t n = 0;
	if (!lacks_log(file) || has_family_name(family, file))
		return 0;
	/* calloc() may return NULL for no elements, which is no lack of memory. */
	struct log_row **logs = calloc(family->n_rows + 1, sizeof(struct log_row *));
	struct content_prefix *known = calloc(family->n_rows + 1, sizeof *known);
	for (size_t k = 0; logs && k < family->n_rows; k++)
		if (family->rows[k].end && family->rows[k].state != LOG_TAKEN &&
			(!may_be || may_be(file, &family->rows[k])))
			logs[n++] = &family->rows[k];
	const int r = logs && known ? match_copy(family, file, logs, known, n, has) : -ENOMEM;
	free(known);
	free(logs);
	return r;
}

static int match_by_content(struct log_family *family, struct grown_file *file)
{
	return match_content(family, file, NULL, is_copy);
}

/* Of the logs that are left. So a file of the same time, if there is one, has its log already. */
static int match_compressed(struct log_family *family, struct grown_file *file)
{
	return match_content(family, file, may_be_compressed, is_equal);
}

/* Sets *ret to whether its first bytes already show that the live file begins with its own log, if
 * it has one, but not with this content. Almost all logs differ in their first bytes. Returns 0 or
 * -errno. */
static int begins_otherwise(const struct content *in_live, const struct grown_file *live,
	const struct content_measured *content, bool *ret)
{
	char first[CONTENT_ID_CHARS + 1];
	bool has_own = true;
	*ret = false;
	if (live->is_packed) /* its first bytes are not those of its content */
		return 0;
	int r = live->row ? still_begins_with(in_live, live->row, &has_own) : 0;
	if (r == 0 && has_own)
		r = content_first(in_live, content->bytes, first);
	*ret = r == 0 && has_own && strcmp(first, content->first) != 0;
	return r == -ESTALE ? 0 : r;
}

/* Sets *ret to whether a file without a log may be a copy of the live file (copytruncate). Until
 * the live file is emptied, such a copy cannot be distinguished from a new log. So it has to wait
 * until then, except in a run that takes files that are still being written. `content` is the whole
 * file.
 *
 * The file may be a copy in two cases. Either the live file begins with all of it. Or the live file
 * no longer begins with its own log, and so was emptied a moment ago. One reading of the live file
 * shows both. A file that was last written before the live file was made is no copy of it. Returns
 * 0 or -errno. */
static int may_be_copy(const struct log_family *family, struct grown_file *file,
	const struct content_measured *content, bool *ret)
{
	const struct scan_options *options = family->options;
	const struct grown_file *live = NULL; /* the live file, if it has a log or will get one */
	for (size_t i = 0; i < family->n_files && !live; i++)
		if (family->files[i].is_live && has_family_name(family, &family->files[i]) &&
			(family->files[i].row || lacks_log(&family->files[i])))
			live = &family->files[i];
	*ret = false;
	if (!live || live == file || !content->bytes || options->takes_written)
		return 0;
	/* known[copy] is the whole file. known[own] is the live file's log if it has one, and
	 * otherwise also the whole file. content_measure() takes the shorter prefix first. */
	const size_t own = (live->row && live->row->end > content->bytes), copy = !own;
	const struct content_prefix whole = {.bytes = content->bytes, .id = content->id};
	struct content_prefix known[2] = {whole, whole};
	if (live->row)
		known[own] =
			(struct content_prefix){.bytes = live->row->end, .id = live->row->until};
	struct file_state now = {0};
	const int fd = open_file(family, live, &now);
	if (fd < 0)
		return fd;
	const struct content in_live = {fd, now.size, options->is_over, options->is_over_arg};
	struct content_measured found;
	bool is_no_copy = file->state.mtime_ns < file_made_ns(fd);
	int r = is_no_copy ? 0 : begins_otherwise(&in_live, live, content, &is_no_copy);
	if (r == 0 && !is_no_copy) {
		r = content_measure(&in_live, known, 2, &found, &file->entry.problem);
		*ret = r == 0 && (known[copy].is_there || (live->row && !known[own].is_there));
	}
	close(fd);
	return r;
}

/* Returns the row of a log that was found in another rotated file already, if this file has the
 * same content, or NULL. A log may be in a folder twice, as a copy or compressed. The modification
 * time is compared as well, since the logs of two days may have the same content. */
static struct log_row *find_same_log(const struct log_family *family, const struct grown_file *file)
{
	if (has_family_name(family, file))
		return NULL;
	for (size_t k = 0; k < family->n_rows; k++) {
		struct log_row *row = &family->rows[k];
		if (row->state == LOG_TAKEN && !row->was_live && row->end && *row->until &&
			strcmp(file->entry.content_id, row->until) == 0 &&
			is_same_second(file->state.mtime_ns, row->file_mtime_ns))
			return row;
	}
	return NULL;
}

/* Computes the id of the first bytes of a file that is not compressed (content_first()). Returns 0
 * or -errno. */
static int first_bytes_id(const struct log_family *family, const struct grown_file *file,
	char ret_id[static CONTENT_ID_CHARS + 1])
{
	struct file_state ignored;
	const int fd = open_file(family, file, &ignored);
	const struct content content = {.fd = fd, .size = file->state.size};
	const int r = fd < 0 ? fd : content_first(&content, content.size, ret_id);
	if (fd >= 0)
		close(fd);
	return r;
}

/* Begins a new log with the file. The file is left to a later run if it may be a copy of the live
 * file, or if it is itself live and has no whole line yet or is compressed. Returns 0 or -errno. */
static int begin_log(struct log_family *family, struct grown_file *file)
{
	const bool must_be_read = ends_at_last_line(file) || file->is_packed;
	struct content_measured found = {.bytes = file->state.size};
	bool is_copy_of_live = false;
	/* Of a rotated file that is not compressed only the first bytes are read here: the id of
	 * its content is known, and all of it is new. */
	memcpy(found.id, file->entry.content_id, sizeof found.id);
	memcpy(found.rest, file->entry.content_id, sizeof found.rest);
	int r = must_be_read ? measure_uploadable(family, file, NULL, NULL, 0, &found)
			     : first_bytes_id(family, file, found.first);
	if (r == 0)
		r = may_be_copy(family, file, &found, &is_copy_of_live);
	if (r < 0)
		return r;
	/* A file that is being written may have no whole line yet. A live file that is compressed
	 * is no log. */
	if (is_copy_of_live || (ends_at_last_line(file) && !found.bytes) ||
		(file->is_live && file->is_packed)) {
		entry_let_wait(&file->entry, is_copy_of_live   ? S3ONCE_WAIT_COPY
					     : file->is_packed ? S3ONCE_WAIT_LIVE
							       : S3ONCE_WAIT_NO_LINE);
		return 0;
	}
	struct log_row *row = &family->rows[family->n_rows++]; /* load_rows() has made the room */
	*row = (struct log_row){0};
	return extend_log(family, file, row, &found);
}

/* If this file has to wait, finds the logs of emptied files that may be in it: those whose bytes it
 * begins with, or all of them if it is compressed, since it may not be whole yet. These become
 * LOG_WAITS. A copy of any other log would be whole, since a log is emptied after it was copied.
 * Returns 0 or -errno. */
static int match_waiting(struct log_family *family, struct grown_file *file)
{
	if (file->entry.kind != SCAN_WAITS)
		return 0;
	struct content_prefix *known = calloc(family->n_rows + 1, sizeof *known);
	struct log_row **logs = calloc(family->n_rows + 1, sizeof(struct log_row *));
	size_t n = 0;
	int r = known && logs ? 0 : -ENOMEM, packed = 0;
	for (size_t k = 0; r == 0 && k < family->n_rows; k++)
		if (family->rows[k].state == LOG_TRUNCATED) {
			known[n] = (struct content_prefix){
				.bytes = family->rows[k].end, .id = family->rows[k].until};
			logs[n++] = &family->rows[k];
		}
	if (n) {
		const struct scan_options *options = family->options;
		struct content_measured found;
		struct file_state now = {0};
		const int fd = open_file(family, file, &now);
		r = packed = fd < 0 ? fd : content_seems_compressed(fd);
		const uint64_t max_bytes = known[n - 1].bytes;
		const struct content content = {fd, now.size < max_bytes ? now.size : max_bytes,
			options->is_over, options->is_over_arg};
		if (r == 0)
			r = content_measure(&content, known, n, &found, &file->entry.problem);
		if (fd >= 0)
			close(fd);
	}
	for (size_t i = 0; i < n; i++)
		if (packed > 0 || known[i].is_there)
			logs[i]->state = LOG_WAITS;
	free(known);
	free(logs);
	return r < 0 ? r : 0;
}

/* If a file has no log yet, finds the log of another file with the same content, or begins a new
 * log.
 *
 * logrotate's copytruncate copies a log and then empties the file, which goes on with a new log.
 * The old log is then in the copy. If the copy has to wait itself, was missed or could not be read,
 * the row of the old log is still needed to recognise the copy. The database keeps one row for each
 * file, so a new log would replace that row. Therefore the file waits meanwhile.
 * Returns 0 or -errno. */
static int match_new(struct log_family *family, struct grown_file *file)
{
	if (!lacks_log(file))
		return 0;
	struct log_row *same = find_same_log(family, file);
	bool is_needed = false; /* the row of the log that the file had before */
	for (size_t k = 0; k < family->n_rows; k++) {
		const enum log_state state = family->rows[k].state;
		is_needed |=
			(state == LOG_WAITS || (state == LOG_TRUNCATED && family->is_unsure)) &&
			log_row_is_of(&family->rows[k], file);
	}
	if (is_needed)
		entry_let_wait(&file->entry, S3ONCE_WAIT_FAMILY);
	else if (same)
		set_log(file, same);
	else
		return begin_log(family, file);
	return 0;
}

int log_match(struct log_family *family, struct problem *ret_problem)
{
	static int (*const passes[])(struct log_family *, struct grown_file *) = {
		match_by_identity, match_by_content, match_compressed, match_waiting, match_new};
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
