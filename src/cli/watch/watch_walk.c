/* Finds the folders of a tree, so that each can be watched. watch_folders.c asks for it when
 * folders come. */
#include "cli/watch/watch_walk.h"
#include "scan/removal.h"
#include <fts.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

static bool is_wanted(const struct watch_walk_options *options, const FTSENT *entry)
{
	const size_t n = strlen(options->root);
	const char *relative = entry->fts_path + n + (entry->fts_path[n] == '/');
	if (strcmp(entry->fts_name, REMOVAL_FOLDER) == 0)
		return false;
	return strlen(entry->fts_path) <= n || !filter_prunes(options->filter, relative);
}

void watch_walk(const struct watch_walk_options *options)
{
	char *from = strdup(options->from);
	char *const paths[] = {from, NULL};
	const int links = options->follow ? FTS_LOGICAL : FTS_PHYSICAL | FTS_NOSTAT;
	FTS *tree = from ? fts_open(paths, links | FTS_NOCHDIR, NULL) : NULL;
	for (FTSENT *entry; tree && (entry = fts_read(tree));) {
		if (entry->fts_info != FTS_D)
			continue;
		if (is_wanted(options, entry))
			options->folder(options->arg, entry->fts_path);
		else
			fts_set(tree, entry, FTS_SKIP);
	}
	if (tree)
		fts_close(tree);
	free(from);
}

const char *watch_walk_remote(const char *path)
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
	if (statfs(path, &fs))
		return NULL;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if ((uint32_t)fs.f_type == kinds[i].magic)
			return kinds[i].name;
	return NULL;
}
