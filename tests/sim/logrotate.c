/* Programs that write logs, and logrotate, which renames, compresses and deletes them. Each line is
 * in one log alone. */
#include "judge.h"
#include "judge_lines.h"
#include "story.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define NS_PER_S  1000000000ULL
#define KEPT_MOST 6 /* rotated logs of a family before the oldest is deleted */

struct family {
	struct machine *machine;
	const char *name; /* of the live log */
	bool copies;      /* copytruncate */
	bool compresses, delays;
	bool lingers;    /* programs write to the renamed log for a while */
	bool is_renamed; /* which they have not noticed yet */
	struct chance chance;
};

static struct disk *disk_of(const struct family *family)
{
	return world.shared ? world.shared : family->machine->disk;
}

static struct node *folder_of(const struct family *family)
{
	struct disk *disk = disk_of(family);
	return world.shared ? disk_root(disk) : disk_get(disk, "/data");
}

static struct node *find(const struct family *family, const char *name)
{
	struct node *node;
	return disk_find(disk_of(family), folder_of(family), name, 0, &node) ? NULL : node;
}

static struct node *make(const struct family *family, const char *name)
{
	struct node *node;
	if (disk_make(disk_of(family), folder_of(family), name, S_IFREG | 0644, 1000, &node))
		return NULL;
	return node;
}

static void pause_briefly(struct family *family, uint64_t most_ms)
{
	if (!task_self()) /* before the world begins */
		return;
	task_sleep_until(world_now_ns() + chance_below(&family->chance, most_ms * 1000000));
}

static void write_lines(struct family *family)
{
	char text[4000], name[100];
	snprintf(name, sizeof name, "%s%s", family->name, family->is_renamed ? ".1" : "");
	family->is_renamed = false;
	struct node *live = find(family, name);
	if (!live)
		live = make(family, name);
	const unsigned n = (unsigned)chance_below(&family->chance, 60);
	size_t at = 0;
	for (unsigned i = 0; i < n; i++) {
		const uint64_t id = chance_next(&family->chance);
		at += (size_t)snprintf(text + at, sizeof text - at, LINE_FORMAT,
			(unsigned long long)id, family->name);
		if (world.scenario.live)
			lines_written(run_prefix(family->machine), id);
	}
	if (live && at)
		node_write(live, text, at, live->size);
}

/* In pieces, as a program that has the file open. */
static void write_slowly(
	struct family *family, struct node *node, const unsigned char *bytes, size_t n)
{
	node->opened++;
	node->writers++;
	for (size_t at = 0; at < n;) {
		const size_t piece = n - at < 1000 ? n - at : 1000;
		node_write(node, bytes + at, piece, at);
		at += piece;
		pause_briefly(family, 20);
	}
	if (node->writers) /* the power may have failed */
		node->writers--;
	if (node->opened)
		node->opened--;
}

static unsigned char *gzip(const unsigned char *bytes, size_t n, size_t *ret_n)
{
	z_stream z = {0};
	const size_t most = n + n / 1000 + 100;
	unsigned char *ret = malloc(most);
	if (!ret || deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		abort();
	z.next_in = (unsigned char *)(uintptr_t)bytes;
	z.avail_in = (uInt)n;
	z.next_out = ret;
	z.avail_out = (uInt)most;
	if (deflate(&z, Z_FINISH) != Z_STREAM_END)
		abort();
	*ret_n = most - z.avail_out;
	deflateEnd(&z);
	return ret;
}

static void compress_one(struct family *family, const char *name)
{
	char to[120];
	size_t n;
	struct node *node = find(family, name);
	snprintf(to, sizeof to, "%s.gz", name);
	if (!node || find(family, to))
		return;
	const int64_t mtime_ns = node->mtime_ns;
	unsigned char *bytes = gzip(node->data, (size_t)node->size, &n);
	struct node *target = make(family, to);
	write_slowly(family, target, bytes, n);
	free(bytes);
	target->mtime_ns = mtime_ns;
	pause_briefly(family, 30);
	disk_remove(folder_of(family), name, false);
	story("logrotate: %s is compressed", name);
}

/* The i-th rotated log's name, without .gz. */
static void name_of(const struct family *family, unsigned i, char *ret, size_t size)
{
	snprintf(ret, size, "%s.%u", family->name, i);
}

static void shift(struct family *family)
{
	char from[100], to[100], from_gz[110], to_gz[110];
	for (unsigned i = KEPT_MOST; i > 0; i--) {
		name_of(family, i, from, sizeof from);
		name_of(family, i + 1, to, sizeof to);
		snprintf(from_gz, sizeof from_gz, "%s.gz", from);
		snprintf(to_gz, sizeof to_gz, "%s.gz", to);
		const bool is_oldest = i == KEPT_MOST;
		struct node *node = find(family, from) ? find(family, from) : find(family, from_gz);
		const bool is_gz = node && !find(family, from);
		if (!node)
			continue;
		if (is_oldest) {
			judge_log_gone(node);
			disk_remove(folder_of(family), is_gz ? from_gz : from, false);
			continue;
		}
		disk_rename(folder_of(family), is_gz ? from_gz : from, folder_of(family),
			is_gz ? to_gz : to, true);
		pause_briefly(family, 10);
	}
}

static void rotate(struct family *family)
{
	char first[100], second[100];
	struct node *live = find(family, family->name);
	if (!live || !live->size)
		return; /* notifempty */
	shift(family);
	name_of(family, 1, first, sizeof first);
	if (family->copies) {
		struct node *copy = make(family, first);
		/* What is written between the copy and the truncation is lost, so nothing is. */
		const size_t n = (size_t)live->size;
		unsigned char *bytes = malloc(n);
		if (!bytes || !copy)
			abort();
		memcpy(bytes, live->data, n);
		judge_log(run_prefix(family->machine), bytes, n);
		write_slowly(family, copy, bytes, n);
		node_truncate(live, 0);
		free(bytes);
	} else {
		judge_log(run_prefix(family->machine), live->data, (size_t)live->size);
		disk_rename(folder_of(family), family->name, folder_of(family), first, true);
		make(family, family->name);
		family->is_renamed = family->lingers;
	}
	story("logrotate: %s is rotated", family->name);
	name_of(family, 2, second, sizeof second);
	if (family->compresses)
		compress_one(family, family->delays ? second : first);
}

static bool can_act(const struct machine *machine)
{
	return world.shared || (!machine->is_off && !machine->suspended_at_ns);
}

static void live(void *arg)
{
	struct family *family = arg;
	for (unsigned i = 0; i < world.scenario.edits; i++) {
		pause_briefly(family, chance_hits(&family->chance, 700) ? 1000 : 100000);
		if (!can_act(family->machine))
			continue;
		write_lines(family);
		if (chance_hits(&family->chance, 500))
			rotate(family);
	}
	free(family);
	world.busy--;
}

void logrotate_begin(void)
{
	static const char *const names[] = {"app.log", "db.log", "mail.log"};
	const size_t machines = world.shared ? 1 : machines_count();
	const unsigned n = world.scenario.files < 3 ? world.scenario.files : 3;
	for (size_t m = 0; m < machines; m++)
		for (unsigned i = 0; i < n; i++) {
			struct family *family = calloc(1, sizeof *family);
			if (!family)
				abort();
			*family = (struct family){.machine = machine_at(m),
				.name = names[i],
				.chance = chance_of(world.seed + m, names[i])};
			family->copies = chance_hits(&family->chance, 250);
			family->compresses = chance_hits(&family->chance, 700);
			family->delays = chance_hits(&family->chance, 500);
			family->lingers = world.scenario.live &&
					  (family->delays || !family->compresses) &&
					  chance_hits(&family->chance, 500);
			write_lines(family);
			rotate(family);
			world.busy++;
			task_start(NULL, live, family);
		}
}
