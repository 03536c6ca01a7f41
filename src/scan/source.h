/* One SOURCE: its place, its stream of entries, and its files. Its entries come from a walk or from
 * a list of paths. struct order makes one stream of several sources. */
#pragma once
#include "base/text.h"
#include "scan/content/content.h"
#include "scan/names.h"
#include "scan/scan.h"
#include <stdbool.h>
#include <stddef.h>

#define SOURCE_PATH_BYTES_MAX (256UL * 1024) /* a SOURCE and a relative path always fit */

struct source {
	const struct scan_options *options; /* borrowed, as long as the source is open */
	size_t index;
	char *directory;   /* absolute path without links of the directory that relative paths are
			      below; NULL if the SOURCE could not be reached */
	int directory_fd;  /* descriptor of a SOURCE directory, otherwise -1 */
	int error;         /* -errno with which the SOURCE could not be reached, or 0 */
	struct walk *walk; /* entries of a SOURCE directory, unless it has a list */
	struct files_from *list; /* entries that --files-from lists */
	char *file;            /* base name in directory, of a SOURCE file that could be reached */
	struct text key, path; /* key and path of the head */
	struct text relative;  /* that of the head, if neither the walk nor the list keeps it */
	size_t key_base_bytes; /* length of the part of `key` that is the same for all entries */
	bool ended; /* for a SOURCE that has neither: it was the head already, as its only entry */
	struct scan_entry head; /* the entry that source_next_unnamed() moved to */
};

/* Opens options->sources[index]. A SOURCE that cannot be reached counts as open, and has a PROBLEM
 * as its entry. Returns 0, or -errno with a sentence; then there is nothing to close. */
int source_open(struct source *source, const struct scan_options *options, size_t index,
	struct problem *ret_problem);
/* Makes the next entry the head, without its key and path, which source_name_head() adds. Returns
 * 1, 0 at the end, or -errno with a sentence. */
int source_next_unnamed(struct source *source, struct problem *ret_problem);
/* Empties the head before another entry is made in it. source_next_unnamed() does it itself. */
void source_empty_head(struct source *source);
/* Makes source_next_unnamed() begin again with the first entry, reading it again. A list of paths
 * cannot be read again. Returns 0 or -ENOMEM. */
int source_rewind(struct source *source);
void source_close(struct source *source);

/* Opens the file at `relative` for reading, as described at scan_open_file(). */
int source_open_file(
	const struct source *source, const char *relative, struct file_state *ret_state);
/* Likewise for the file with this inode. By now it may have another name in the folder of
 * `relative`, and other content. Returns -ENOENT if no name there points to it. */
int source_open_inode(const struct source *source, const char *relative, dev_t dev, ino_t ino,
	struct file_state *ret_state);
/* Whether this -errno means that the name no longer points to the file. -EINVAL does, too: the name
 * now belongs to something other than a regular file. */
bool error_means_moved(int r);
/* The SOURCE as it was given. Borrowed from the options. */
const char *source_given(const struct source *source);
/* Returns the name that the key of a SOURCE file is made of, and that the filter and family_of()
 * use. This is the last component of the path that was given, even if that path is a symlink. With
 * options->rotated it is the name of the file itself, since only that name shows whether the file
 * is rotated. For a pipe it is the whole name that was given. */
const char *source_name(const struct source *source);

/* The names of an entry of a SOURCE, in S3 and for people (source_key.c). */

/* Makes the next entry the head, with its key and path. Returns 1, 0 at the end, or -errno with a
 * sentence. */
int source_next_named(struct source *source, struct problem *ret_problem);
/* Makes the key and path of source->head. A file without a valid key becomes a PROBLEM. A template
 * makes keys of FILE and WAITS entries only, and the content of a FILE is read if its key depends
 * on it. Returns 1, or -errno with a sentence if the scan cannot continue. */
int source_name_head(struct source *source, struct problem *ret_problem);
/* Sets `path` to the path of the file at `relative`, for messages. */
void source_set_path(const struct source *source, const char *relative, struct text *path);
/* Finds the content id of the open file, whose version is `version`, in the cache or by reading it.
 * Returns 0; -ESTALE if the file is another version by then, or if it is open for writing and the
 * options have `rotated` without `takes_open_logs`; else as content_id(). */
int source_identify(const struct scan_options *options, int fd, const struct file_state *version,
	char ret_id[static CONTENT_ID_CHARS + 1], struct problem *ret_why);
/* Whether the file begins with the content that it had when it was identified the last time, and
 * has more by now. A file that is not in the cache has not grown. */
bool source_has_grown(const struct source *source, const struct scan_entry *found);

/* One directory tree, as a stream in byte order of the paths. It holds one descriptor, and the
 * names in the directories on the way down, however deep and long the paths are. */
struct walk;
/* The directory stays open until walk_close, and its path and the options are borrowed until then.
 * `directory` is that path, absolute and without links. The walk uses the options filter, folders,
 * follow, one_file_system, min_age_ms, now_wall_ns, read_only, accounts_for_all and abandon.
 * Returns 0 or -ENOMEM. */
int walk_open(int directory_fd, const struct scan_options *options, const char *directory,
	struct walk **ret);
/* Returns 1 and the next entry, 0 at the end, or -errno with a sentence if memory or descriptors
 * ran out, or if abandon() returned true (-ECANCELED). Sets `kind`, `relative`, which is valid
 * until the next call, and the fields that entry_look() sets. `key`, `path` and `source` stay as
 * they are. A directory that cannot be listed is a PROBLEM entry. If it is the top directory,
 * `relative` is ".". */
int walk_next(struct walk *walk, struct scan_entry *ret, struct problem *ret_problem);
void walk_close(struct walk *walk);

/* A walk may be restricted to some folders and files. `wanted` is the list of them. Each is a path
 * relative to the source with a '/' after it, and the source itself is "/". Because of this slash,
 * a folder and everything below it are neighbours in the sorted list.
 *
 * wanted_init() fills the empty list with those of n folders (absolute paths without links) that
 * are the source's directory or lie below it. Returns 0 or -ENOMEM. The caller calls names_clear(),
 * even after an error. */
int wanted_init(struct names *wanted, const char *directory, const char *const *folders, size_t n);
/* Whether `relative` is in the list: as a file, or as a folder whose own files are wanted. It is ""
 * for the source itself. */
bool wanted_has(const struct names *wanted, const char *relative);
/* Whether this folder, or something below it, is in the list. It must not be the source itself. */
bool wanted_reaches_below(const struct names *wanted, const char *relative);

/* A list of paths below one directory, as a stream in byte order of the paths. */
struct files_from;
/* Reads the whole list of options->files_from: one path a line, or NUL-terminated. Empty lines are
 * skipped, "./", "//" and repeated paths collapse, and CR is a byte like others. directory_fd stays
 * open and options are borrowed until files_from_close. Returns 0, -EINVAL for a list with a NUL in
 * a line or of more than 4 GiB, or another -errno, with a sentence. */
int files_from_open(int directory_fd, const struct scan_options *options, struct files_from **ret,
	struct problem *ret_problem);
/* As walk_next. A path that is absolute, contains "..", does not exist or is not a file is a
 * PROBLEM; so is one through a symlink, unless links are followed. */
int files_from_next(struct files_from *list, struct scan_entry *ret, struct problem *ret_problem);
void files_from_close(struct files_from *list);

/* Several sources as one stream in byte order of the keys. */
struct order;
/* Makes the next entry. Returns 1, 0 at the end, or -errno with a sentence. *order is NULL before
 * the first call, which begins to read the sources. The array of sources must not move until
 * order_free(). With a template, entries without a key come while the files are found. */
int order_next(struct order **order, struct source *sources, size_t n, struct scan_entry *ret,
	struct problem *ret_problem);
void order_free(struct order *order);
