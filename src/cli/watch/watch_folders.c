/* What inotify tells of the folders of a job: which are watched, and what is touched in them. Where
 * the kernel has told too little, a pass looks at all files. The folders are kept in a table by
 * their inotify descriptor and by their path; watched.c keeps what was touched. */
#include "cli/watch/watch_folders.h"
#include "base/files.h"
#include "base/log.h"
#include "base/must_have.h"
#include "base/quote.h"
#include "scan/filter/filter.h"
#include "scan/removal.h"
#include <errno.h>
#include <fts.h>
#include <libgen.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static void forget_folder(struct watch_folder *folder)
{
	free(folder->path);
	free(folder->only_name);
	folder->path = folder->only_name = NULL;
}

void watch_table_clear(struct watch_table *table)
{
	for (size_t i = 0; i < table->n; i++)
		forget_folder(&table->folders[i]);
	free(table->folders);
	*table = (struct watch_table){0};
}

/* The first with this wd or a higher one. */
static size_t lower_bound(const struct watch_table *table, int wd)
{
	size_t from = 0, to = table->n;
	if (to && table->folders[to - 1].wd < wd)
		return to;
	while (from < to) {
		const size_t middle = from + (to - from) / 2;
		if (table->folders[middle].wd < wd)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

struct watch_folder *watch_table_find(struct watch_table *table, int wd)
{
	const size_t i = lower_bound(table, wd);
	struct watch_folder *folder = &table->folders[i];
	return i < table->n && folder->wd == wd && folder->path ? folder : NULL;
}

/* Room for one more. The folders that are gone are dropped if they are more than those that exist.
 */
static void make_room(struct watch_table *table)
{
	size_t kept = 0;
	if (table->n_gone > table->n / 2) {
		for (size_t i = 0; i < table->n; i++)
			if (table->folders[i].path)
				table->folders[kept++] = table->folders[i];
		table->n = kept;
		table->n_gone = 0;
	}
	if (table->n < table->cap)
		return;
	table->cap = 2 * table->cap + 16;
	table->folders =
		must_have(reallocarray(table->folders, table->cap, sizeof *table->folders));
}

void watch_table_put(struct watch_table *table, int wd, const char *path, const char *only_name)
{
	char *path_copy = must_have(strdup(path));
	char *name_copy = only_name ? must_have(strdup(only_name)) : NULL;
	size_t i = lower_bound(table, wd);
	if (i == table->n || table->folders[i].wd != wd) {
		make_room(table);
		i = lower_bound(table, wd);
		memmove(&table->folders[i + 1], &table->folders[i],
			(table->n - i) * sizeof *table->folders);
		table->folders[i] = (struct watch_folder){.wd = wd};
		table->n++;
		table->n_gone++;
	}
	struct watch_folder *folder = &table->folders[i];
	const bool is_known = folder->path, counts_all = is_known && !folder->only_name;
	const bool is_same = is_known && folder->generation == table->generation;
	table->n_gone -= !is_known;
	/* Of a folder that several sources are in, all counts unless they name the same file. */
	if (is_same && name_copy && (counts_all || strcmp(folder->only_name, name_copy) != 0)) {
		free(name_copy);
		name_copy = NULL;
	}
	forget_folder(folder);
	folder->path = path_copy;
	folder->only_name = name_copy;
	folder->generation = table->generation;
}

void watch_table_drop(struct watch_table *table, struct watch_folder *folder)
{
	table->n_gone += folder->path != NULL;
	forget_folder(folder);
}

void watch_table_drop_all(
	struct watch_table *table, const char *path, void (*dropped)(void *arg, int wd), void *arg)
{
	const size_t n = path ? strlen(path) : 0;
	for (size_t i = 0; i < table->n; i++) {
		struct watch_folder *folder = &table->folders[i];
		const char *own = folder->path;
		const bool is_below =
			own && path && strncmp(own, path, n) == 0 && (!own[n] || own[n] == '/');
		if (!own || (path ? !is_below : folder->generation == table->generation))
			continue;
		watch_table_drop(table, folder);
		dropped(arg, folder->wd);
	}
}

/* A file that is written is followed by its being closed. */
#define MASK                                                                                       \
	(IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_MOVED_FROM | IN_MOVE_SELF | IN_ONLYDIR |    \
		IN_EXCL_UNLINK)

/* One SOURCE. */
struct root {
	char *path;     /* the folder that is watched for it, without links; NULL: there is none */
	bool said_gone; /* until it is watched again */
};

struct watch_folders {
	struct watch_folders_options options;
	int fd; /* of inotify, or -1 */
	struct watch_table table;
	struct root *roots; /* of each source */
	size_t n_unwatched; /* in this generation */
	bool said_unwatched, said_overflow, said_remote;
	bool has_overflowed; /* since all was watched anew */
	bool knows_all;      /* what watch_folders_read() returns */
};

struct watch_folders *watch_folders_new(const struct watch_folders_options *options)
{
	struct watch_folders *folders = must_have(calloc(1, sizeof *folders));
	folders->options = *options;
	folders->roots = must_have(calloc(options->job->n_sources, sizeof *folders->roots));
	folders->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (folders->fd < 0)
		log_warning("%s: the kernel tells of no new files (inotify: %s): they are found by "
			    "the full scans alone; raise fs.inotify.max_user_instances",
			quote(options->job->name).text, strerror(errno));
	return folders;
}

void watch_folders_free(struct watch_folders *folders)
{
	if (!folders)
		return;
	if (folders->fd >= 0)
		close(folders->fd);
	watch_table_clear(&folders->table);
	for (size_t i = 0; i < folders->options.job->n_sources; i++)
		free(folders->roots[i].path);
	free(folders->roots);
	free(folders);
}

static void on_dropped(void *arg, int wd)
{
	const struct watch_folders *folders = arg;
	inotify_rm_watch(folders->fd, wd);
}

/* What cannot be opened is an error of the run that looks at all files. */
static bool watch_one(struct watch_folders *folders, const char *path, const char *only_name)
{
	folders->options.moves(folders->options.arg);
	const int wd = inotify_add_watch(folders->fd, path, MASK);
	if (wd >= 0)
		watch_table_put(&folders->table, wd, path, only_name);
	else
		folders->n_unwatched += errno == ENOSPC || errno == ENOMEM;
	return wd >= 0;
}

/* Watches all folders of a SOURCE, or those from a new one on, but what the filter excludes. What
 * cannot be read, or is gone by now, is left out. Each is watched before its own folders are read,
 * so that none is missed that is made after that. */
static void watch_tree(
	struct watch_folders *folders, const char *root, const char *from, bool is_new)
{
	char *const paths[] = {(char *)(uintptr_t)from, NULL};
	const int links =
		folders->options.job->options.run.follow ? FTS_LOGICAL : FTS_PHYSICAL | FTS_NOSTAT;
	FTS *tree = fts_open(paths, links | FTS_NOCHDIR, NULL);
	const size_t n = strlen(root);
	for (FTSENT *entry; tree && (entry = fts_read(tree));) {
		const char *path = entry->fts_path;
		if (entry->fts_info != FTS_D)
			continue;
		if (strcmp(entry->fts_name, REMOVAL_FOLDER) == 0 ||
			(strlen(path) > n && filter_prunes(folders->options.filter,
						     path + n + (path[n] == '/'))))
			fts_set(tree, entry, FTS_SKIP);
		else if (watch_one(folders, path, NULL) && is_new)
			folders->options.touched(folders->options.arg, path);
	}
	if (tree)
		fts_close(tree);
}

/* Says once that a folder is on a file system that other hosts may change unnoticed. */
static void say_remote(struct watch_folders *folders, const char *path)
{
	static const struct {
		uint32_t magic;
		const char *name;
	} kinds[] = {
		{NFS_SUPER_MAGIC, "NFS"},
		{SMB_SUPER_MAGIC, "SMB"},
		{SMB2_SUPER_MAGIC, "SMB"},
		{CIFS_SUPER_MAGIC, "SMB"},
		{CEPH_SUPER_MAGIC, "CephFS"},
		{AFS_SUPER_MAGIC, "AFS"},
		{CODA_SUPER_MAGIC, "Coda"},
		{V9FS_MAGIC, "9P"},
		{FUSE_SUPER_MAGIC, "FUSE"},
	};
	struct statfs fs;
	if (folders->said_remote || statfs(path, &fs))
		return;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if ((uint32_t)fs.f_type != kinds[i].magic)
			continue;
		folders->said_remote = true;
		log_note("%s: %s is on a file system of the network (%s), of which the kernel "
			 "tells only what this host does: files of other hosts are found by the "
			 "full scans",
			quote(folders->options.job->name).text, quote(path).text, kinds[i].name);
	}
}

static void say_unwatched(struct watch_folders *folders)
{
	if (folders->n_unwatched && !folders->said_unwatched)
		log_warning("%s: %zu folders are not watched, since the kernel allows no more "
			    "watches: their files are found by the full scans; raise "
			    "fs.inotify.max_user_watches",
			quote(folders->options.job->name).text, folders->n_unwatched);
	folders->said_unwatched = folders->n_unwatched != 0;
}

void watch_folders_renew(struct watch_folders *folders)
{
	if (folders->fd < 0)
		return;
	folders->table.generation++;
	folders->n_unwatched = 0;
	folders->said_overflow = folders->said_overflow && folders->has_overflowed;
	folders->has_overflowed = false;
	for (size_t i = 0; i < folders->options.job->n_sources; i++) {
		struct root *root = &folders->roots[i];
		struct stat st;
		free(root->path);
		root->path = realpath(folders->options.job->options.run.sources[i], NULL);
		if (!root->path || stat(root->path, &st))
			continue;
		if (S_ISDIR(st.st_mode)) {
			watch_tree(folders, root->path, root->path, false);
		} else {
			char *name = must_have(strdup(basename(root->path)));
			dirname(root->path);
			watch_one(folders, root->path, name);
			free(name);
		}
		root->said_gone = false;
		say_remote(folders, root->path);
	}
	watch_table_drop_all(&folders->table, NULL, on_dropped, folders);
	say_unwatched(folders);
}

/* The SOURCE directory that the path lies below. */
static const char *root_above(const struct watch_folders *folders, const char *path)
{
	for (size_t i = 0; i < folders->options.job->n_sources; i++) {
		const char *root = folders->roots[i].path;
		const size_t n = root ? strlen(root) : 0;
		if (n && strncmp(path, root, n) == 0 && (path[n] == '/' || root[n - 1] == '/'))
			return root;
	}
	return NULL;
}

static void on_name(struct watch_folders *folders, const struct watch_folder *folder,
	const struct inotify_event *event)
{
	const struct watch_folders_options *options = &folders->options;
	const char *log_file = options->job->options.run.log_file;
	char path[PATH_MAX + NAME_MAX + 2];
	if (strcmp(event->name, REMOVAL_FOLDER) == 0)
		return;
	if (folder->only_name && strcmp(event->name, folder->only_name) != 0)
		return;
	snprintf(path, sizeof path, "%s/%s", folder->path[1] ? folder->path : "", event->name);
	const char *root = root_above(folders, path);
	const size_t n = root ? strlen(root) : 0;
	if (event->mask & IN_ISDIR) {
		if (event->mask & IN_MOVED_FROM)
			watch_table_drop_all(&folders->table, path, on_dropped, folders);
		if (event->mask & (IN_CREATE | IN_MOVED_TO) && root)
			watch_tree(folders, root, path, true);
		say_unwatched(folders);
	} else if (!(event->mask & IN_MOVED_FROM) && !(log_file && same_file(path, log_file)) &&
		   (!root || filter_wants_file(options->filter, path + n + (path[n] == '/')))) {
		options->touched(options->arg, path);
	}
}

static void on_event(struct watch_folders *folders, const struct inotify_event *event)
{
	if (event->mask & IN_Q_OVERFLOW) {
		if (!folders->said_overflow)
			log_warning("%s: more happened than the kernel keeps (its queue for "
				    "inotify has overflowed): all files are looked at; raise "
				    "fs.inotify.max_queued_events",
				quote(folders->options.job->name).text);
		folders->said_overflow = folders->has_overflowed = true;
		folders->knows_all = false;
		return;
	}
	struct watch_folder *folder = watch_table_find(&folders->table, event->wd);
	if (!folder)
		return; /* of a watch that was dropped meanwhile */
	if (event->len) {
		on_name(folders, folder, event);
		return;
	}
	struct root *root = NULL; /* the SOURCE that it is */
	for (size_t i = 0; i < folders->options.job->n_sources && !root; i++)
		if (folders->roots[i].path && strcmp(folders->roots[i].path, folder->path) == 0)
			root = &folders->roots[i];
	if (!(event->mask & IN_IGNORED) && !(event->mask & IN_MOVE_SELF && root))
		return;
	/* A folder that was removed, renamed or unmounted is watched no more. A SOURCE is looked
	 * for. */
	if (root) {
		if (!root->said_gone)
			log_warning("%s: %s was removed, renamed or unmounted: each full scan "
				    "looks whether it is there again",
				quote(folders->options.job->name).text, quote(folder->path).text);
		root->said_gone = true;
		folders->knows_all = false;
	}
	watch_table_drop(&folders->table, folder);
}

bool watch_folders_read(struct watch_folders *folders)
{
	_Alignas(struct inotify_event) char buffer[64 * 1024];
	ssize_t n;
	folders->knows_all = true;
	while (folders->fd >= 0 && (n = read(folders->fd, buffer, sizeof buffer)) > 0)
		for (const char *at = buffer; at < buffer + n;) {
			const struct inotify_event *event = (const void *)at;
			on_event(folders, event);
			at += sizeof *event + event->len;
		}
	return folders->knows_all;
}

int watch_folders_fd(const struct watch_folders *folders)
{
	return folders->fd;
}

size_t watch_folders_count(const struct watch_folders *folders)
{
	return folders->table.n - folders->table.n_gone;
}
