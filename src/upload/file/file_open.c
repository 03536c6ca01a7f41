/* Opens a file as it is now, chooses whether it is compressed during its upload, and reads it for
 * checksums. worker.c opens each file. A step that finds that the file changed while it was read
 * opens it again by file_handle_read_error(). Only the version that is open can become visible in
 * S3. */
#include "upload/file/file_open.h"
#include "base/clock.h"
#include "scan/content/content.h"
#include "scan/key/key.h"
#include "scan/open.h"
#include "upload/bucket/bucket_check.h"
#include "upload/file/file.h"
#include "upload/file/payload.h"
#include "upload/file/worker.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Duplicates the descriptor of the output of a pipe, so that each turn has one of its own. Returns
 * a descriptor, or -errno. */
static int open_piped(const struct run *run, struct file_state *ret)
{
	const int fd = fcntl(run->piped_fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	const int error = file_state_of(fd, ret);
	if (error)
		close(fd);
	return error ? error : fd;
}

/* Makes a copy of a piece of a log, since the log goes on growing. Returns a descriptor, or
 * -errno. */
static int open_piece(const struct scan *scan, const struct candidate *c, struct file_state *ret,
	struct problem *ret_problem)
{
	struct scan_entry found = {.source = c->source,
		.relative = c->relative,
		.size = c->size,
		.mtime_ns = c->mtime_ns,
		.dev = c->dev,
		.ino = c->ino,
		.is_piece = true,
		.offset = c->offset};
	memcpy(found.content_id, c->content_id, sizeof found.content_id);
	return scan_open_piece(scan, &found, ret, ret_problem);
}

/* Opens the file that now has the name of a candidate, and sets *ret to its state. A rotated file
 * is also searched under other names. Returns a descriptor, or -errno. For a piece of a log,
 * *ret_problem may have the reason. */
static int open_candidate(const struct run *run, const struct candidate *c, struct file_state *ret,
	struct problem *ret_problem)
{
	const struct scan *scan = run->files.scan;
	if (c->is_piped)
		return open_piped(run, ret);
	if (c->is_piece)
		return open_piece(scan, c, ret, ret_problem);
	const int fd = scan_open_file(scan, c->source, c->relative, ret);
	if (!c->is_rotated)
		return fd;
	/* A rotated file may have been renamed since it was found, and another file may have the
	 * name now. */
	const bool is_another = fd >= 0 && (ret->dev != c->dev || ret->ino != c->ino);
	if (is_another)
		close(fd);
	else if (fd != -ENOENT)
		return fd;
	const struct file_state found = {
		.size = c->size, .mtime_ns = c->mtime_ns, .dev = c->dev, .ino = c->ino};
	return scan_open_moved(scan, c->source, c->relative, &found, ret);
}

/* Reads the mark of a file that is missing into file->seen_mark, if that may matter. Returns
 * whether the mark says done of the file as it was found, so that another uploader has uploaded and
 * removed it since. */
static bool mark_explains_absence(struct worker *worker, struct file *file)
{
	const struct candidate *c = file->candidate;
	const struct file_version found = {
		.size = c->size, .mtime_ns = c->mtime_ns, .content_id = c->content_id};
	const struct mark_ref ref = file_mark_ref(worker, file);
	struct problem problem = {0};
	/* After the claim, the mark is ours and does not say done. With --reupload, a file that is
	 * done would have to be sent all the same. */
	if (file->step > STEP_CLAIM || worker->options->reupload)
		return false;
	mark_clear(&file->seen_mark);
	if (mark_get(&ref, &file->seen_mark, &problem) != OUTCOME_OK)
		return false;
	/* If the mark notes a newer version, the missing file may be that one, which was not
	 * uploaded. */
	return !file->seen_mark.has_newer && mark_says(&file->seen_mark, &found) == SAYS_DONE;
}

/* Handles a file that is missing. If its mark is done, another uploader has uploaded and removed it
 * since it was found, which is not an error. */
static enum step handle_missing(struct worker *worker, struct file *file)
{
	if (mark_explains_absence(worker, file)) {
		if (!bucket_ensure_trusted(worker->run, worker->marks))
			return STEP_OVER; /* the run ends: the mark may be about another bucket */
		return file_settle(worker, file, S3ONCE_EVENT_SKIPPED);
	}
	if (file->candidate->is_rotated) /* the next run finds it under its new name */
		return file_fail(worker, file,
			PROBLEM("was compressed or deleted before it could be sent; the next run "
				"looks"));
	return file_handle_read_error(worker, file, -ENOENT);
}

/* The form that a file has on its disk. */
enum disk_form { PLAIN, COMPRESSED };

/* Whether the file's source has a file of this name and form that --exclude and --include let
 * through. */
static bool source_has_file(
	struct worker *worker, const struct file *file, const char *name, enum disk_form form)
{
	struct file_state state;
	if (worker->run->files.filter && !filter_wants_file(worker->run->files.filter, name))
		return false;
	const int fd =
		scan_open_file(worker->run->files.scan, file->candidate->source, name, &state);
	if (fd < 0)
		return false;
	const int is_compressed = content_seems_compressed(fd); /* 1, 0 or -errno */
	close(fd);
	return is_compressed == (form == COMPRESSED ? 1 : 0);
}

/* Whether this is a name with the suffix after it. The suffix alone is none. */
static bool has_suffix(const char *name, const char *suffix)
{
	const size_t n = strlen(name), n_suffix = strlen(suffix);
	return n > n_suffix && strcmp(name + n - n_suffix, suffix) == 0;
}

/* Whether the file X.zst and what X is compressed to would be the same object X.zst, and the source
 * shows whether both files exist: the scan has walked a directory, and keys are paths with the
 * suffix. Elsewhere, the check of the object shows another file with its key. */
static bool neighbours_may_collide(const struct worker *worker, const struct candidate *c)
{
	const struct run *run = worker->run;
	const bool keys_are_paths =
		!run->files.key_template && !object_rules_name_encoding(run->bodies.rules);
	const bool was_walked = !worker->options->files_from &&
				scan_source_is_directory(run->files.scan, c->source);
	return keys_are_paths && was_walked;
}

/* Fails the file, which has this form, if its folder has both X and X.zst, and X.zst is compressed
 * already. Both would become the object X.zst, since X is compressed during its upload. Returns
 * NEXT if they do not both exist. */
static enum step check_neighbour(struct worker *worker, struct file *file, enum disk_form form)
{
	const bool is_compressed = form == COMPRESSED;
	const struct candidate *c = file->candidate;
	const char *suffix = codecs[worker->run->bodies.encoding.codec].suffix;
	/* No file is compressed into the key of a compressed file that lacks the suffix. */
	const bool has_neighbour = !is_compressed || has_suffix(c->relative, suffix);
	if (!has_neighbour || !neighbours_may_collide(worker, c))
		return STEP_NEXT;
	/* The neighbour of X.zst is X, and that of X is X.zst. */
	const size_t n_dropped = is_compressed ? strlen(suffix) : 0;
	const char *added = is_compressed ? "" : suffix;
	struct text name = TEXT(1024UL * 1024), path = TEXT(1024UL * 1024);
	enum step step = STEP_NEXT;
	text_add_bytes(&name, c->relative, strlen(c->relative) - n_dropped);
	text_add_bytes(&path, c->path, strlen(c->path) - n_dropped);
	text_add(&name, added);
	text_add(&path, added);
	if (!name.error && source_has_file(worker, file, text_string(&name),
				   is_compressed ? PLAIN : COMPRESSED)) {
		struct problem problem;
		collision_explain(c->object_key, c->path, text_string(&path),
			"exclude one of them, or use --header Content-Encoding in place of the suffix",
			&problem);
		step = file_fail(worker, file, &problem);
	}
	text_clear(&name);
	text_clear(&path);
	return step;
}

enum step file_add_suffix(struct worker *worker, struct file *file)
{
	struct candidate *c = file->candidate;
	const bool by_header = object_rules_name_encoding(worker->run->bodies.rules);
	const char *suffix = by_header ? "" : codecs[worker->run->bodies.encoding.codec].suffix;
	if (strlen(c->key) + strlen(suffix) > KEY_BYTES_MAX)
		return file_fail(worker, file,
			PROBLEM("its key has more than %u bytes with the %s that --compress adds; "
				"make it shorter, or use --header Content-Encoding in place of the suffix",
				KEY_BYTES_MAX, suffix));
	snprintf(c->suffix, SUFFIX_MAX + 1, "%s", suffix);
	return STEP_NEXT;
}

/* Notes that the key of --as, or of a pipe, gets the suffix of compression a second time. */
static void note_second_suffix(struct worker *worker, const struct candidate *c)
{
	if (worker->options->as && *c->suffix && has_suffix(c->key, c->suffix))
		report_run(worker->report, S3ONCE_EVENT_NOTE,
			PROBLEM("the key is %s%s: --compress adds %s, so leave it out of the key "
				"that you give",
				quote(c->key).text, c->suffix, c->suffix));
}

/* Decides whether --compress compresses the file, and sets the values that depend on that:
 * file->encoding, the suffix of the object's key, and its Content-Encoding. A file that is
 * compressed already is sent as it is. Returns NEXT, or the step to take instead. */
static enum step choose_encoding(struct worker *worker, struct file *file)
{
	struct candidate *c = file->candidate;
	const bool by_header = object_rules_name_encoding(worker->run->bodies.rules);
	const int is_compressed = content_seems_compressed(file->fd); /* or -errno */
	if (is_compressed < 0)
		return file_handle_read_error(worker, file, is_compressed);
	if (is_compressed) {
		file->encoding = NULL;
		file->target.content_encoding = NULL;
		c->suffix[0] = '\0';
		return check_neighbour(worker, file, COMPRESSED);
	}
	const enum step step = file_add_suffix(worker, file);
	if (step != STEP_NEXT)
		return step;
	note_second_suffix(worker, c);
	file->encoding = &worker->run->bodies.encoding;
	file->target.content_encoding = by_header ? codecs[file->encoding->codec].name : NULL;
	return check_neighbour(worker, file, PLAIN);
}

/* Whether the file has content although its size is 0, as files of /proc and /sys have. */
static bool hides_size(const struct file *file)
{
	if (file->state.size)
		return false;
	const bool has_content = pread(file->fd, &(char){0}, 1, 0) > 0;
	/* A file that has merely grown since it was opened hides nothing. The step that reads it
	 * notices the change. */
	return has_content && body_check_unchanged(file->fd, &file->state) == 0;
}

/* Checks whether the version that was opened may be sent, and sets file->plan by its size. Returns
 * NEXT, or the step to take instead. */
static enum step check_opened(struct worker *worker, struct file *file)
{
	const struct run_files *files = &worker->run->files;
	const struct candidate *found = file->candidate;
	/* Whether the file must not have changed since it was found. A key made from the
	 * modification time or the content belongs to one version of the file. So does the id of a
	 * rotated file's content. */
	const bool is_of_version =
		*found->content_id ||
		(files->key_template && key_template_depends_on_version(files->key_template));
	enum s3once_event_type event;
	/* The file may have been written to since it was found, so what the scan has checked is
	 * checked again. The age of a piece is meaningless: it is a copy that was made just now. */
	if (!found->is_piece && scan_is_young(files->scan, &file->state))
		return file_settle(worker, file, S3ONCE_EVENT_WAITING);
	if (run_excludes_size(worker->run, file->state.size, &event))
		return file_settle(worker, file, event);
	const bool has_changed =
		file->state.size != found->size || file->mtime_ns != found->mtime_ns;
	if (is_of_version && has_changed) {
		file_fail(worker, file,
			PROBLEM("changed while the run was under way, so that it is no longer the "
				"file that its key and its mark are about; the next run takes it, "
				"and --min-age leaves out files that were modified a moment ago"));
		return STEP_STRANDED; /* the upload that its mark records is aborted */
	}
	if (hides_size(file))
		return file_fail(worker, file,
			PROBLEM("has size 0 but is not empty, as files of the kernel do (/proc, "
				"/sys): copy it to a file, or exclude it"));
	if (plan_upload(file->state.size, worker->options->part_bytes, &file->plan))
		return file_fail(worker, file,
			PROBLEM("larger than the largest object S3 can hold; split or exclude it"));
	return STEP_NEXT;
}

/* Makes this descriptor, whose state is file->state, the open file. Sets `must_reread`, and the
 * members of file->state by which body_check_unchanged() will notice a change: 0 in a member means
 * that it does not count. */
static void take_descriptor(struct file *file, int fd)
{
	const struct candidate *c = file->candidate;
	/* Only this run writes to the copy of a piece, or to the input of a pipe. */
	const bool may_be_written = !c->is_piece && !c->is_piped;
	file->fd = fd;
	file->opened_ctime_ns = file->state.ctime_ns;
	file->must_reread = file->stat_is_unsteady ||
			    (may_be_written && !file_times_show_changes(fd, file->opened_ctime_ns));
	if (file->stat_is_unsteady)
		file->state.ino = 0;
	/* A rotated file may be renamed while it is sent, which changes its ctime. */
	if (file->stat_is_unsteady || c->is_rotated)
		file->state.ctime_ns = 0;
	file->mtime_ns = c->is_piece ? c->mtime_ns : file->state.mtime_ns;
}

enum step file_open(struct worker *worker, struct file *file)
{
	const struct candidate *c = file->candidate;
	struct problem problem = {.text = ""};
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
	file->content_sums = file->object_sums = (struct sums){0};
	file->opened_ns = clock_wall_ns();
	if (c->is_piped && worker->run->piped_fd < 0)
		return STEP_NEXT; /* the input of the pipe comes once the key is claimed */
	const int fd = open_candidate(worker->run, c, &file->state, &problem);
	if (fd < 0 && *problem.text) /* only a piece of a log has a sentence of its own */
		return file_fail(worker, file, &problem);
	if (fd < 0)
		return fd == -ENOENT ? handle_missing(worker, file)
				     : file_handle_read_error(worker, file, fd);
	take_descriptor(file, fd);
	const enum step step = check_opened(worker, file);
	/* Whether the file is sent as it is: without --compress, if it was compressed when it was
	 * found, or if its object gets a Content-Encoding from the user. */
	const bool is_plain = !*worker->run->bodies.encoding.name || c->was_compressed ||
			      s3_headers_value(file->target.headers, "header Content-Encoding");
	return (step == STEP_NEXT && !is_plain) ? choose_encoding(worker, file) : step;
}

struct range file_whole_range(const struct file *file, const struct encoding *encoding)
{
	return (struct range){.fd = file->fd, .bytes = file->state.size, .encoding = encoding};
}

struct range file_part_range(const struct file *file, const struct encoding *encoding,
	const struct plan *plan, unsigned index)
{
	struct range range = {.fd = file->fd,
		.offset = plan_offset(plan, index),
		.bytes = plan_bytes(plan, file->state.size, index),
		.encoding = encoding};
	/* Every part but the last is padded to the length that all parts must have, if there is
	 * one, and otherwise to the least that S3 accepts as a part. */
	if (encoding && index + 1 < plan->n_parts)
		range.pad_to_bytes = encoding->part_bytes ? encoding->part_bytes : PART_BYTES_MIN;
	return range;
}

int file_digest(struct worker *worker, const struct file *file, unsigned kinds,
	const struct range *range, struct sums *ret)
{
	const int error = range_digest(worker, NULL, kinds, range, ret);
	return error ? error : body_check_unchanged(file->fd, &file->state);
}

enum step file_compute_sums(
	struct worker *worker, struct file *file, const struct encoding *encoding, unsigned kinds)
{
	struct sums *sums = encoding ? &file->object_sums : &file->content_sums;
	if ((sums->kinds & kinds) == kinds)
		return STEP_NEXT;
	const struct range range = file_whole_range(file, encoding);
	const int error = file_digest(worker, file, kinds, &range, sums);
	if (error) /* the bytes read before may belong to another version */
		*sums = (struct sums){0};
	return error ? file_handle_read_error(worker, file, error) : STEP_NEXT;
}

/* The change of a file between its opening and the end of a reading. */
enum file_change {
	CHANGE_SEEN,      /* its size or modification time shows the change, or its ctime does */
	CHANGE_STAT_ONLY, /* its file system returns another inode or ctime at each fstat() */
	CHANGE_UNSEEN,    /* its state is the same, and yet two readings differ */
	CHANGE_SHORT,     /* its state is the same, and its content ends before its size (/sys) */
};

/* Finds out how the file differs from its state when it was opened. */
static enum file_change find_change(const struct file *file)
{
	struct file_state now, again;
	if (file->fd < 0 || file_state_of(file->fd, &now))
		return CHANGE_SEEN;
	if (now.size != file->state.size || now.mtime_ns != file->state.mtime_ns)
		return CHANGE_SEEN;
	if (!file_state_equal(&now, &file->state)) { /* by inode or ctime */
		/* The file was really changed, for example by chmod, if a second fstat() shows the
		 * same state as the first one, and this has not restarted the turn before. */
		const bool is_steady =
			!file_state_of(file->fd, &again) && file_state_equal(&now, &again);
		return is_steady && !file->restarts ? CHANGE_SEEN : CHANGE_STAT_ONLY;
	}
	const off_t last_byte = (off_t)now.size - 1;
	const bool is_short = now.size && pread(file->fd, &(char){0}, 1, last_byte) == 0;
	return is_short ? CHANGE_SHORT : CHANGE_UNSEEN;
}

/* Fails a file that was never the same for as long as it takes to read it. */
static enum step fail_unsteady(struct worker *worker, struct file *file, enum file_change change)
{
	struct file_state first, second;
	if (change == CHANGE_UNSEEN)
		return file_fail(worker, file,
			PROBLEM("each read of it returns other content, although its size and "
				"modification time stay: another process writes to it through a "
				"mapping (mmap), or its file server does; the next run tries "
				"again"));
	if (!file_state_of(file->fd, &first) && !file_state_of(file->fd, &second) &&
		first.mtime_ns != second.mtime_ns)
		return file_fail(worker, file,
			PROBLEM("its file system reports a different modification time each "
				"time, so nothing shows whether it changes: copy it to another "
				"file system, or exclude it"));
	return file_fail(worker, file,
		PROBLEM("changes faster than it can be read; --min-age skips files that were "
			"modified a moment ago"));
}

/* Opens a file that has changed while it was read, as it is now. Returns the step that follows. */
static enum step reopen_changed(struct worker *worker, struct file *file)
{
	const enum file_change change = find_change(file);
	if (change == CHANGE_SHORT)
		return file_fail(worker, file,
			PROBLEM("its content ends before its size, as that of files of the kernel "
				"does (/sys): copy it to a file, or exclude it"));
	if (++file->restarts > FILE_RESTARTS_MAX)
		return fail_unsteady(worker, file, change);
	/* CHANGE_STAT_ONLY is not reported, since the content is probably the same. */
	if (change == CHANGE_SEEN || file->stat_is_unsteady)
		file_report(worker, file, S3ONCE_EVENT_RETRY,
			PROBLEM("changed while it was read, starting again with what it is now"));
	else if (change == CHANGE_UNSEEN)
		file_report(worker, file, S3ONCE_EVENT_RETRY,
			PROBLEM("its content changed while it was read, although its size and "
				"modification time did not, starting again with what it is now"));
	file->stat_is_unsteady |= change == CHANGE_STAT_ONLY; /* before file_open() reads it */
	const enum step step = file_open(worker, file);
	file->must_reread |= change == CHANGE_UNSEEN; /* after file_open() has set it */
	if (step != STEP_NEXT)
		return step;
	/* The file was to replace an object. By now it may again have the content of that object,
	 * which is checked again. */
	const bool was_to_replace = file->step == STEP_SEND && *file->replaced_etag;
	return was_to_replace ? STEP_LOOK : file->step;
}

/* Fails a file that is no longer there. No run can resume its upload, which gc aborts. */
static enum step fail_gone(struct worker *worker, struct file *file, const struct problem *problem)
{
	file_set_kept_bytes(file, 0);
	return file_fail(worker, file, problem);
}

enum step file_handle_read_error(struct worker *worker, struct file *file, int error)
{
	struct problem problem;
	switch (error) {
	case -ESTALE: /* the file changed while it was read */
		return reopen_changed(worker, file);
	case -ECANCELED:
		return STEP_OVER;
	case -ENOENT:
	case -ENOTDIR:
		return fail_gone(worker, file, PROBLEM("disappeared while it was uploaded"));
	case -ELOOP:
	case -EXDEV:
		return fail_gone(worker, file,
			PROBLEM("became a symbolic link, or lies behind one, since the directory "
				"was read; links are not followed"));
	case -EINVAL:
		return fail_gone(worker, file, PROBLEM("is no longer a regular file"));
	case -EAGAIN: /* the kernel now asks that process to give the lease up, so this may pass */
		return file_retry(worker, file,
			PROBLEM("cannot be read: another process holds a lease on it"));
	case -ENOMEM:
		return file_fail(worker, file, PROBLEM("out of memory"));
	case -EMFILE:
	case -ENFILE:
		run_fail(worker->run,
			PROBLEM("out of file descriptors; raise ulimit -n or lower --concurrency"));
		return STEP_OVER;
	default:
		open_explain(error, "read", &problem);
		return file_fail(worker, file, &problem);
	}
}
