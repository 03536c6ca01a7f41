#include "log_folder.h"
#include "compressors.h"
#include "judge_lines.h"
#include "judge_waits.h"
#include "story.h"
#include "tasks.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>

#define EQUAL_LINES 10 /* of each log, with repeats=1 */

static struct disk *disk_of(const struct log_family *family)
{
	struct disk *shared = world_shared(family->machine);
	return shared ? shared : family->machine->disk;
}

static struct node *folder_of(const struct log_family *family)
{
	struct disk *disk = disk_of(family);
	return world_shared(family->machine) ? disk_root(disk) : disk_get(disk, "/data");
}

struct node *log_find(const struct log_family *family, const char *name)
{
	struct node *node;
	return disk_find(disk_of(family), folder_of(family), name, 0, &node) ? NULL : node;
}

struct node *log_make(const struct log_family *family, const char *name, unsigned log)
{
	struct node *node;
	const char *prefix = run_prefix(family->machine);
	if (disk_make(disk_of(family), folder_of(family), name, S_IFREG | 0644, 1000, &node))
		return NULL;
	node->log = log ? log : waits_log(prefix, family->name);
	waits_name(prefix, name, node->log);
	return node;
}

void log_begin(const struct log_family *family, const char *name, struct node *node)
{
	node->log = waits_log(run_prefix(family->machine), family->name);
	waits_name(run_prefix(family->machine), name, node->log);
}

void log_rename(const struct log_family *family, const char *from, const char *to)
{
	const char *prefix = run_prefix(family->machine);
	const struct node *node = log_find(family, from);
	if (!node)
		return;
	disk_rename(folder_of(family), from, folder_of(family), to, true);
	waits_name(prefix, from, 0);
	waits_name(prefix, to, node->log);
}

void log_remove(const struct log_family *family, const char *name)
{
	disk_remove(folder_of(family), name, false);
	waits_name(run_prefix(family->machine), name, 0);
}

void log_moves(const struct log_family *family)
{
	waits_move(run_prefix(family->machine), family->name);
}

void log_pause(struct chance *chance, uint64_t most_ms)
{
	if (!task_self()) /* before the world begins */
		return;
	task_sleep_until(world_now_ns() + chance_below(chance, most_ms * 1000000));
}

bool log_can_act(const struct machine *machine)
{
	return world_shared(machine) || (!machine->is_off && !machine->suspended_at_ns);
}

void log_append(const struct log_family *family, struct chance *chance, struct node *node)
{
	char text[4000];
	const bool repeats = world.scenario.repeats != 0;
	const unsigned n = repeats ? EQUAL_LINES : (unsigned)chance_below(chance, 60);
	size_t at = 0;
	for (unsigned i = 0; i < n; i++) {
		const uint64_t id = repeats ? i + 1 : chance_next(chance);
		at += (size_t)snprintf(text + at, sizeof text - at, LINE_FORMAT,
			(unsigned long long)id, family->name);
		if (repeats)
			lines_repeated(run_prefix(family->machine), id);
		else if (world.scenario.live)
			lines_written(run_prefix(family->machine), id, node ? node->log : 0);
	}
	if (!node || !at)
		return;
	node_write(node, text, at, node->size);
	waits_written(node->log);
}

void log_write_slowly(
	struct chance *chance, struct node *node, const unsigned char *bytes, size_t n)
{
	node->opened++;
	node->writers++;
	for (size_t at = 0; at < n;) {
		const size_t piece = n - at < 1000 ? n - at : 1000;
		node_write(node, bytes + at, piece, at);
		at += piece;
		log_pause(chance, 20);
	}
	if (node->writers) /* the power may have been cut */
		node->writers--;
	if (node->opened)
		node->opened--;
}

void log_compress(const struct log_family *family, struct chance *chance, const char *name,
	unsigned tool, bool keeps_time)
{
	char to[160];
	size_t n;
	struct node *node = log_find(family, name);
	snprintf(to, sizeof to, "%s%s", name, compressor_suffixes[tool]);
	if (!node || log_find(family, to))
		return;
	const int64_t mtime_ns = node->mtime_ns;
	log_moves(family);
	unsigned char *bytes = compressor_run(tool, node->data, (size_t)node->size, &n);
	struct node *target = log_make(family, to, node->log);
	log_write_slowly(chance, target, bytes, n);
	free(bytes);
	if (keeps_time)
		target->mtime_ns = mtime_ns;
	log_pause(chance, 30);
	log_remove(family, name);
	log_moves(family);
	story("%s is compressed%s", name, keeps_time ? "" : ", and its time is not kept");
}
