/* Watches the folders of a job by inotify, and reports touched files to watched_job.c. If events
 * are lost, a pass has to check all files. Before each pass over all files, all watches are set up
 * again. */
#include "cli/watch/watch_folders.h"
#include "base/files.h"
#include "base/log.h"
#include "base/must_have.h"
#include "cli/watch/watch_table.h"
#include "scan/filter/filter.h"
#include "scan/removal.h"
#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The events that are asked for. IN_MODIFY is not among them: a file that was written to is closed
 * at some time (IN_CLOSE_WRITE). IN_EXCL_UNLINK ignores files that were removed and are still
 * open. */
#define EVENTS                                                                                     \
	(IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_MOVED_FROM | IN_MOVE_SELF | IN_ONLYDIR |    \
		IN_EXCL_UNLINK)

/* One SOURCE. */
struct root {
	/* The real path of the folder that is watched for it: the SOURCE, or the folder of a SOURCE
	 * that is a file. NULL: there is none. */
	char *path;
	bool reported_gone; /* the folder was reported as gone, and was not watched again since */
};

struct watch_folders {
	const struct job *job;
	void (*touched)(void *arg, const char *path);
	void (*sign)(void *arg);
	void *arg;
	struct filter *filter; /* the rules of the job; NULL: none */
	int fd;                /* descriptor of inotify; -1: there is none */
	struct watch_table table;
	struct root *roots; /* one for each source */
	size_t n_unwatched; /* folders without a watch, since the kernel allows no more */
	/* Conditions that were reported, so that each is reported once while it lasts. */
	bool reported_refused, reported_unwatched, reported_overflow, reported_remote;
	bool has_overflowed; /* the queue of inotify has overflowed since the last renewal */
	bool knows_all; /* until watch_folders_read() finds that events or a SOURCE were lost */
};

struct watch_folders *watch_folders_new(const struct job *job,
	void (*touched)(void *arg, const char *path), void (*sign)(void *arg), void *arg)
{
	struct watch_folders *folders = must_have(calloc(1, sizeof *folders));
	*folders = (struct watch_folders){
		.job = job, .touched = touched, .sign = sign, .arg = arg, .fd = -1};
	folders->roots = must_have(calloc(job->n_sources, sizeof *folders->roots));
	return folders;
}

void watch_folders_free(struct watch_folders *folders)
{
	if (!folders)
		return;
	if (folders->fd >= 0)
		close(folders->fd);
	watch_table_clear(&folders->table);
	filter_free(folders->filter);
	for (size_t i = 0; i < folders->job->n_sources; i++)
		free(folders->roots[i].path);
	free(folders->roots);
	free(folders);
}

/* Watches one folder, of which only one file counts unless only_name is NULL. False: the folder is
 * not watched. A folder that cannot be opened is not reported here. The run over all files reports
 * it. */
static bool watch_folder(struct watch_folders *folders, const char *path, const char *only_name)
{
	folders->sign(folders->arg);
	const int wd = inotify_add_watch(folders->fd, path, EVENTS);
	if (wd >= 0)
		watch_table_put(&folders->table, wd, path, only_name);
	else
		folders->n_unwatched += errno == ENOSPC || errno == ENOMEM;
	return wd >= 0;
}

/* Returns a path relative to the root that it is below, for the filter. "": it is the root itself.
 * The root "/" ends in a slash, and no other root does. */
static const char *path_below(const char *root, const char *path)
{
	const size_t n = strlen(root);
	return path + n + (path[n] == '/');
}

enum tree_kind { TREE_OF_SOURCE, TREE_IS_NEW };

/* Watches the folder `from` and all folders below it, except those that the filter excludes, and
 * those in which removals keep files for a moment (REMOVAL_FOLDER). `from` is the SOURCE `root`, or
 * a new folder in it; new folders are reported as touched.
 *
 * A folder that cannot be read, or is gone by now, is skipped. Each folder is watched before its
 * own folders are read, so that none that is made afterwards is missed. */
static void watch_tree(
	struct watch_folders *folders, const char *root, const char *from, enum tree_kind kind)
{
	char *const paths[] = {(char *)(uintptr_t)from, NULL};
	/* Not with FTS_NOSTAT: fts would take a folder's link count for the number of folders in
	 * it, and miss those made after it was read, or all of them on a file system without link
	 * counts. */
	const int links = folders->job->options.run.follow ? FTS_LOGICAL : FTS_PHYSICAL;
	FTS *tree = fts_open(paths, links | FTS_NOCHDIR, NULL);
	for (FTSENT *entry; tree && (entry = fts_read(tree));) {
		const char *path = entry->fts_path, *below = path_below(root, path);
		if (entry->fts_info != FTS_D)
			continue;
		const bool is_excluded = *below && filter_prunes(folders->filter, below);
		if (strcmp(entry->fts_name, REMOVAL_FOLDER) == 0 || is_excluded)
			fts_set(tree, entry, FTS_SKIP);
		else if (watch_folder(folders, path, NULL) && kind == TREE_IS_NEW)
			folders->touched(folders->arg, path);
	}
	if (tree)
		fts_close(tree);
}

/* Reports once that a folder is on a file system that other hosts may change unnoticed. */
static void report_remote(struct watch_folders *folders, const char *path)
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
	if (folders->reported_remote || statfs(path, &fs))
		return;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if ((uint32_t)fs.f_type != kinds[i].magic)
			continue;
		folders->reported_remote = true;
		log_note(
			"%s: %s is on a network file system (%s): full scans find other hosts' files",
			quote(folders->job->name).text, quote(path).text, kinds[i].name);
	}
}

/* Warns of folders that are not watched: once, until all folders are watched again. */
static void warn_unwatched(struct watch_folders *folders)
{
	if (folders->n_unwatched && !folders->reported_unwatched)
		log_warning("%s: %zu folders are not watched, since the kernel allows no more "
			    "watches: their files are found by the full scans; raise "
			    "fs.inotify.max_user_watches",
			quote(folders->job->name).text, folders->n_unwatched);
	folders->reported_unwatched = folders->n_unwatched != 0;
}

/* Reads the rules of the job, and its files of patterns as they are now. If such a file has become
 * invalid, all folders are watched, and the next pass reports it. */
static void read_rules(struct watch_folders *folders)
{
	const struct s3once_options *run = &folders->job->options.run;
	struct problem problem;
	filter_free(folders->filter);
	folders->filter = NULL;
	int error = run->n_rules ? filter_new(&folders->filter) : 0;
	for (size_t i = 0; !error && i < run->n_rules; i++)
		error = filter_add_rule(folders->filter, &run->rules[i], &problem);
	must_have(error == -ENOMEM ? NULL : folders);
	if (error) {
		filter_free(folders->filter);
		folders->filter = NULL;
	}
}

/* Watches a SOURCE, or the folder of a SOURCE that is a file. */
static void watch_source(struct watch_folders *folders, const char *source, struct root *root)
{
	struct stat st;
	free(root->path);
	root->path = realpath(source, NULL);
	if (!root->path || stat(root->path, &st)) /* the pass reports a missing SOURCE */
		return;
	if (S_ISDIR(st.st_mode)) {
		watch_tree(folders, root->path, root->path, TREE_OF_SOURCE);
	} else {
		char *folder = must_have(path_folder(root->path));
		watch_folder(folders, folder, path_name(root->path));
		free(root->path);
		root->path = folder;
	}
	root->reported_gone = false;
	report_remote(folders, root->path);
}

void watch_folders_renew(struct watch_folders *folders)
{
	read_rules(folders);
	/* A new descriptor drops all old watches, and all events that were not read yet. */
	watch_table_clear(&folders->table);
	if (folders->fd >= 0)
		close(folders->fd);
	folders->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (folders->fd < 0 && !folders->reported_refused)
		log_warning("%s: the kernel reports no new files (inotify: %s): they are found by "
			    "the full scans alone; raise fs.inotify.max_user_instances",
			quote(folders->job->name).text, strerror(errno));
	folders->reported_refused = folders->fd < 0;
	if (folders->fd < 0)
		return;
	folders->n_unwatched = 0;
	/* The next overflow is reported only if there was none since the last renewal. */
	folders->reported_overflow = folders->reported_overflow && folders->has_overflowed;
	folders->has_overflowed = false;
	for (size_t i = 0; i < folders->job->n_sources; i++)
		watch_source(folders, folders->job->options.run.sources[i], &folders->roots[i]);
	warn_unwatched(folders);
}

/* Returns the folder of the SOURCE that the path is below. NULL: it is below none. */
static const char *root_above(const struct watch_folders *folders, const char *path)
{
	for (size_t i = 0; i < folders->job->n_sources; i++) {
		const char *root = folders->roots[i].path;
		const size_t n = root ? strlen(root) : 0;
		/* The slash keeps /logs-old from being below /logs. The root "/" has it itself. */
		if (n && strncmp(path, root, n) == 0 && (path[n] == '/' || root[n - 1] == '/'))
			return root;
	}
	return NULL;
}

/* Whether a file that was touched is to be reported. The job's --log-file is not, since each pass
 * itself writes to it, nor is a file that the rules exclude. */
static bool wants_file(const struct watch_folders *folders, const char *root, const char *path)
{
	const char *log_file = folders->job->options.run.log_file;
	if (log_file && same_file(path, log_file))
		return false;
	/* Each folder that is watched is in a SOURCE. If it were in none, no rule would apply. */
	return !root || filter_wants_file(folders->filter, path_below(root, path));
}

/* Handles an event about a name in a watched folder: watches a new folder, no longer watches one
 * that was moved away, and reports a file that was touched. */
static void on_name(struct watch_folders *folders, const struct watch_folder *folder,
	const struct inotify_event *event)
{
	char path[PATH_MAX + NAME_MAX + 2];
	const bool is_another_file =
		folder->only_name && strcmp(event->name, folder->only_name) != 0;
	if (is_another_file || strcmp(event->name, REMOVAL_FOLDER) == 0)
		return;
	/* The folder "/" must not produce a second slash. */
	snprintf(path, sizeof path, "%s/%s", folder->path[1] ? folder->path : "", event->name);
	const char *root = root_above(folders, path);
	if (event->mask & IN_ISDIR) {
		if (event->mask & IN_MOVED_FROM)
			watch_table_drop_below(&folders->table, path, folders->fd);
		if (event->mask & (IN_CREATE | IN_MOVED_TO) && root)
			watch_tree(folders, root, path, TREE_IS_NEW);
		warn_unwatched(folders);
	} else if (!(event->mask & IN_MOVED_FROM) && wants_file(folders, root, path)) {
		folders->touched(folders->arg, path);
	}
}

/* Handles the loss of events. It is reported once, until a renewal without a loss. */
static void on_overflow(struct watch_folders *folders)
{
	if (!folders->reported_overflow)
		log_warning("%s: more happened than the kernel keeps (its queue for inotify has "
			    "overflowed): all files are looked at; raise "
			    "fs.inotify.max_queued_events",
			quote(folders->job->name).text);
	folders->reported_overflow = folders->has_overflowed = true;
	folders->knows_all = false;
}

/* Handles an event about a watched folder itself: it may be gone. */
static void on_folder(struct watch_folders *folders, const struct watch_folder *folder,
	const struct inotify_event *event)
{
	struct root *root = NULL; /* the SOURCE whose folder it is; NULL: it is below one */
	for (size_t i = 0; i < folders->job->n_sources && !root; i++)
		if (folders->roots[i].path && strcmp(folders->roots[i].path, folder->path) == 0)
			root = &folders->roots[i];
	/* IN_IGNORED: the folder was removed or unmounted, and its watch has ended. IN_MOVE_SELF:
	 * it was renamed, which matters here only for the folder of a SOURCE. For any other folder,
	 * an event of its parent goes to on_name(). */
	const bool is_gone = (event->mask & IN_IGNORED) || (root && (event->mask & IN_MOVE_SELF));
	if (!is_gone)
		return;
	/* Only a pass over all files finds out whether the folder of a SOURCE exists again. */
	if (root) {
		if (!root->reported_gone)
			log_warning("%s: %s was removed, renamed or unmounted: each full scan "
				    "looks whether it is there again",
				quote(folders->job->name).text, quote(folder->path).text);
		root->reported_gone = true;
		folders->knows_all = false;
	}
	watch_table_drop(&folders->table, event->wd);
}

/* Takes one event. The events about a watched folder itself have no name. */
static void on_event(struct watch_folders *folders, const struct inotify_event *event)
{
	if (event->mask & IN_Q_OVERFLOW) {
		on_overflow(folders);
		return;
	}
	const struct watch_folder *folder = watch_table_find(&folders->table, event->wd);
	if (!folder)
		return; /* the folder is no longer watched */
	if (event->len)
		on_name(folders, folder, event);
	else
		on_folder(folders, folder, event);
}

bool watch_folders_read(struct watch_folders *folders)
{
	_Alignas(struct inotify_event) char buffer[64 * 1024];
	ssize_t n;
	folders->knows_all = true; /* until on_event() resets it */
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
	return folders->table.n;
}
