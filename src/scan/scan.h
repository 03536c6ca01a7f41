/* The files to upload, as a stream in byte order of their keys. For a directory tree, memory holds
 * only the names in the directories on the way down to the present file. If a template makes the
 * keys, they do not come in the order of the paths. Then all files are found first, and sorted by
 * their keys in a temporary file. */
#pragma once
#include "base/problem.h"
#include "s3once/push.h"
#include "scan/filter/filter.h"
#include "scan/key/key_template.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct scan_options {
	const char *const *sources; /* directories (their contents go below the prefix) or files
				       (PREFIX/basename) */
	size_t n_sources;
	const char *prefix; /* taken byte for byte; a '/' is appended unless it is empty or ends in
			       one */
	const char *as; /* the whole key for exactly one SOURCE file, or NULL; prefix is then not
			   used */
	const struct key_template *key_template; /* borrowed; NULL: keys are relative paths */
	const struct family_rules *rotated; /* borrowed; with it, rotated logs are identified by
			     family, mtime and content (rotation.h), and there is a key_template.
			     NULL: every file is identified by its name */
	struct log_rows *log_rows; /* with rotated, borrowed: the pieces that growing logs were cut
				      into, including live ones up to the end of their last line.
				      NULL: no log is cut into pieces */
	bool takes_open_logs; /* with rotated, a log that is open for writing is uploaded as it is
			       now, and without log_rows a live log, too */
	bool template_is_for_rotated; /* only rotated files get keys from the template; the keys of
					 others are relative paths */
	struct identity_cache *identities; /* cache of content ids; borrowed. NULL: all contents are
					      read */
	const char *files_from; /* a file of paths relative to the one SOURCE, in lines or each with
				   a NUL after it, "-" for stdin, or NULL */
	const char *const *folders; /* borrowed: absolute paths without links. Only these files of
				       SOURCE directories, and the files directly in these folders,
				       are read. NULL: everything */
	size_t n_folders;
	struct filter *filter; /* borrowed; NULL: everything */
	bool is_piped;         /* with `as`: the SOURCE is not a file but the name of an input read
				  elsewhere; its entry is a FILE without a size, and is not opened */
	bool one_file_system;  /* a directory on another file system than its SOURCE is skipped */
	bool follow; /* symlinks are followed, and loops found; otherwise a symlink is a LINK */
	uint64_t min_age_ms; /* files written less than this ago wait for a later run */
	int64_t now_wall_ns; /* the time that min_age_ms is measured from */
	uint64_t max_bytes;  /* the content of a larger file is not read for its key. If the key
				depends on the content, such a FILE has no key. 0: no file is too
				large */
	/* Returns whether the caller keeps this file for itself, so that it is SPECIAL and never
	 * opened. Only the base name of the path counts. May be NULL. */
	bool (*is_own)(void *arg, const char *path, dev_t dev, ino_t ino);
	void *is_own_arg;
	/* Returns true to end the scan. Called at each folder, for each key that a template makes,
	 * and while contents are read and keys are sorted. May be NULL. */
	bool (*abandon)(void *arg);
	void *abandon_arg;
	bool read_only; /* changes nothing on this host: files in the folder of an interrupted
			    removal are not put back, and are a PROBLEM */
	bool accounts_for_all; /* each file of a folder that the filter leaves out has its own
				  entry, and a directory on another file system is a PROBLEM */
};
/* Whether live logs are uploaded as they are now, in pieces or whole. */
static inline bool scan_takes_live(const struct scan_options *options)
{
	return options->log_rows || options->takes_open_logs;
}

enum scan_kind {
	SCAN_FILE,     /* to be uploaded */
	SCAN_PROBLEM,  /* requested, but cannot be uploaded, so that the run exits 1 */
	SCAN_LINK,     /* a symlink that is not followed */
	SCAN_WAITS,    /* left to a later run, for the reason `wait` */
	SCAN_NOTICE,   /* no file: a remark about other files, in `problem` */
	SCAN_SPECIAL,  /* skipped, unless the user has named it: a socket, named pipe or device, a
			  directory where another file system is mounted, or a file of
			  options.is_own */
	SCAN_EXCLUDED, /* the filter leaves this file out, or this folder with all that is in it;
			  the path of a folder ends in '/' */
};

/* Valid until the next scan_next() of the same scan. */
struct scan_entry {
	enum scan_kind kind;
	const char *key;  /* key of a FILE; for another entry the key that it would have, or "" if
			     that is unknown */
	const char *path; /* SOURCE/relative, for messages; raw bytes: escape before showing */
	size_t source;    /* index into sources */
	const char *relative; /* path relative to the source's directory; for a SOURCE file the name
				 in its key */
	uint64_t size;
	int64_t mtime_ns;
	dev_t dev;
	ino_t ino;
	enum s3once_wait wait; /* for WAITS; otherwise NONE */
	const char *suffix;    /* suffix of compression, by which the object's key is longer than
				  `key`; or "" */
	bool is_rotated; /* it is a finished log, or a live one that is taken as it is now; only
			    with options.rotated */
	bool may_grow;   /* with is_rotated: only the time since its last write suggests that it is
			    finished. It is never removed, since its writer may just be quiet */
	bool is_piece;   /* the entry is a range of the file's content, from offset on: size and
			    content_id are those of the range, and mtime_ns is that of the file when
			    the range was cut. It is opened by scan_open_piece() */
	uint64_t offset; /* offset of a piece */
	bool is_new;     /* a piece that this scan has cut after an earlier piece of the same log,
			    so that no earlier run has sent it */
	bool is_own;     /* for SPECIAL: a file of options.is_own */
	bool is_from_future; /* for FILE and WAITS: min_age_ms was counted from the ctime, since the
				mtime lies in the future */
	bool collides;       /* another file, named in `problem`, has the same key */
	char content_id[65]; /* see content.h; "" unless the key depends on the content */
	struct problem problem; /* for PROBLEM */
};

/* Opens every source. A missing or unreadable SOURCE is not an error here but a PROBLEM entry of
 * the stream. Returns 0, -EINVAL for options that contradict each other, another -errno for a
 * files_from that cannot be read, -ENOMEM, -EMFILE; always with a sentence. options and everything
 * they point to are borrowed until scan_close. */
struct scan;
int scan_open(const struct scan_options *options, struct scan **ret, struct problem *ret_problem);
/* Returns 1 and the next entry, 0 at the end, or -errno with a sentence if the scan cannot
 * continue; -ECANCELED if abandon() returned true. With a template, every file is found before the
 * first one comes.
 *
 * Files come in strictly increasing key order over all sources. Two files with one key come as a
 * PROBLEM each, and neither as a FILE. Links and problems come in the order in which they are
 * met. */
int scan_next(struct scan *scan, struct scan_entry *ret, struct problem *ret_problem);
/* Sets options.accounts_for_all, before the first scan_next(). */
void scan_account_for_all(struct scan *scan);
void scan_close(struct scan *scan);

/* Makes the entry that the scan would make of one file, which is named by a path. Returns 1 and its
 * entry, with the key that a run with these options would use; 0 if the file is in none of the
 * SOURCEs; or -errno with a sentence. The entry is EXCLUDED if the filter leaves the file out in
 * each SOURCE that it is in. The list of files_from is not read, and a collision with another file
 * is not noticed. It must not be called while scan_next() runs, and the
 * entry that scan_next() gave last is no longer valid. */
int scan_make_entry(
	struct scan *scan, const char *path, struct scan_entry *ret, struct problem *ret_problem);

/* Returns the directory of a SOURCE, as marks name it: the absolute path without links. For a
 * SOURCE file it is the folder that the file is in. A SOURCE that could not be reached has the path
 * that was given. Borrowed. */
const char *scan_source_path(const struct scan *scan, size_t source);

/* The state of a file at one moment. Two states are equal if nothing has changed. */
struct file_state {
	uint64_t size;
	int64_t mtime_ns;
	int64_t ctime_ns; /* 0: it does not count, since the file may be renamed */
	dev_t dev;
	ino_t ino; /* 0: it does not count, since its file system returns another one each time */
};
bool file_state_equal(const struct file_state *a, const struct file_state *b);
int file_state_of(int fd, struct file_state *ret); /* Sets the state by fstat(2); 0 or -errno. */
struct stat;
void file_state_from(const struct stat *st, struct file_state *ret);

/* Opens the regular file source/relative for reading, without blocking. Unless links are followed,
 * it is opened neither through a symlink below the source nor outside of the source. Returns the
 * descriptor, which the caller closes, and the file's state; -ELOOP for a symlink, -EXDEV for a
 * path that points outside, -EINVAL for anything but a regular file, -ESTALE if the name points to
 * another file by now, or another -errno. Thread-safe. */
int scan_open_file(
	const struct scan *scan, size_t source, const char *relative, struct file_state *ret_state);

/* Opens the folder that source/relative is in (O_PATH), never through a symlink below the source.
 * For a SOURCE file that is a symlink the result is -ELOOP. *ret_name is the file's name in the
 * folder; it is borrowed from `relative` or from the scan. *ret_owner is the owner of the SOURCE
 * directory or, for a SOURCE that is a file, of its folder. Returns the descriptor or -errno.
 * Thread-safe. */
int scan_open_folder(const struct scan *scan, size_t source, const char *relative,
	const char **ret_name, uid_t *ret_owner);

/* Opens a file as scan_open_file() does, under its present name in its folder. Returns -ENOENT if
 * no name there points to this version of the file. */
int scan_open_moved(const struct scan *scan, size_t source, const char *relative,
	const struct file_state *version, struct file_state *ret_state);

/* Copies a piece into a file without a name, which never changes. Returns as scan_open_file(), with
 * the state of the copy. `found` is the entry of the piece; its key, path and suffix are not used.
 * Thread-safe.
 *
 * The copy has the content with the id of the piece. Otherwise the result is -ENOENT if the file is
 * gone, -ESTALE if it has other content by now, -ECANCELED if abandon() returned true, or another
 * -errno. If the error is about the copy or the content, ret_problem has a sentence; otherwise it
 * is untouched. */
int scan_open_piece(const struct scan *scan, const struct scan_entry *found,
	struct file_state *ret_state, struct problem *ret_problem);

/* Whether a file in this state has to wait because of min_age_ms (scan_entry.h). */
bool scan_is_young(const struct scan *scan, const struct file_state *state);
/* Returns the -errno with which a source could not be reached, or 0. */
int scan_source_error(const struct scan *scan, size_t source);
/* Whether a source could be opened and is a directory. */
bool scan_source_is_directory(const struct scan *scan, size_t source);
