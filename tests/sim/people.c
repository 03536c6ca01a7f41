/* People and programs that make, change and remove the files to be uploaded. */
#include "judge.h"
#include "story.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1000000000ULL

/* The delay until a write to a file reaches the disk. */
#define UNWRITTEN_NS (30 * NS_PER_S)

static unsigned last_file;

/* A file before its last change. */
static struct {
	const struct machine *machine;
	char name[200];
	uint64_t number; /* node.number */
	unsigned char *bytes;
	size_t n;
	int64_t mtime_ns;
	uint64_t at_ns;
} before;

static struct disk *disk_of(const struct machine *machine)
{
	struct disk *shared = world_shared(machine);
	return shared ? shared : machine->disk;
}

static char *path_on_disk(const char *name, char *ret, size_t size)
{
	snprintf(ret, size, world.shared ? "/%s" : "/data/%s", name);
	return ret;
}

static void note(const struct machine *machine, const char *name)
{
	char path[300], whole[340];
	struct node *node = disk_get(disk_of(machine), path_on_disk(name, path, sizeof path));
	snprintf(whole, sizeof whole, "%s/%s", run_prefix(machine), name);
	if (machine == world_image())
		judge_copied_content(whole, node);
	else
		judge_content(whole, node);
}

/* Makes unique lines. */
static size_t make_lines(struct chance *chance, char *ret, size_t size, unsigned n)
{
	size_t at = 0;
	for (unsigned i = 0; i < n && at + 40 < size; i++)
		at += (size_t)snprintf(ret + at, size - at, "line %016llx\n",
			(unsigned long long)chance_next(chance));
	return at;
}

static void new_file(struct machine *machine, const char *name, bool is_large)
{
	char path[300], text[8192];
	path_on_disk(name, path, sizeof path);
	if (is_large) {
		/* One or two parts, and a bit more. */
		const size_t n = (size_t)(chance_hits(&world.chance, 250) ? 10 : 5) << 20 |
				 (size_t)chance_between(&world.chance, 1, 1U << 19);
		unsigned char *bytes = malloc(n);
		if (!bytes)
			abort();
		chance_fill(&world.chance, bytes, n);
		disk_put(disk_of(machine), path, bytes, n);
		free(bytes);
	} else {
		const size_t n = make_lines(&world.chance, text, sizeof text,
			(unsigned)chance_below(&world.chance, 100));
		disk_put(disk_of(machine), path, text, n);
	}
	disk_get(disk_of(machine), path)->uid = 1000;
	note(machine, name);
}

static void next_name(char *ret, size_t size)
{
	static const char *const forms[][2] = {
		{"file-", ".log"}, {"sub/file-", ".txt"}, {"a b+", "~"}, {"", ""}};
	const char *const *form = forms[chance_below(&world.chance, 4)];
	snprintf(ret, size, "%s%u%s", form[0], ++last_file, form[1]);
}

/* Picks the name of an existing file below the folder. Returns false if there is none. */
static bool pick(const struct machine *machine, char *ret, size_t size)
{
	struct disk *disk = disk_of(machine);
	char path[300];
	struct node *top = world.shared ? disk_root(disk) : disk_get(disk, "/data");
	struct node *sub = disk_get(disk, path_on_disk("sub", path, sizeof path));
	const size_t n = top->n_entries + (sub ? sub->n_entries : 0);
	const size_t i = chance_below(&world.chance, n);
	if (!n)
		return false;
	const bool is_in_sub = i >= top->n_entries;
	const struct node_entry *entry =
		is_in_sub ? &sub->entries[i - top->n_entries] : &top->entries[i];
	snprintf(ret, size, "%s%s", is_in_sub ? "sub/" : "", entry->name);
	return S_ISREG(entry->node->mode);
}

/* Records the state of a file that is about to be changed. */
static void keep_before(const struct machine *machine, const char *name, const struct node *node)
{
	free(before.bytes);
	before.machine = machine;
	snprintf(before.name, sizeof before.name, "%s", name);
	before.number = node->number;
	before.n = (size_t)node->size;
	before.bytes = malloc(before.n + 1);
	if (!before.bytes)
		abort();
	if (before.n)
		memcpy(before.bytes, node->data, before.n);
	before.mtime_ns = node->mtime_ns;
	before.at_ns = world_now_ns();
}

/* Files on a file server keep their changes. */
void people_lose_power(const struct machine *machine)
{
	char path[300];
	if (before.machine != machine || world.shared || world_rotates(machine) ||
		world_now_ns() - before.at_ns > UNWRITTEN_NS)
		return;
	struct node *node =
		disk_get(disk_of(machine), path_on_disk(before.name, path, sizeof path));
	before.machine = NULL;
	if (!node || node->number != before.number)
		return;
	node_truncate(node, 0);
	node_write(node, before.bytes, before.n, 0);
	node->mtime_ns = before.mtime_ns;
	note(machine, before.name);
	story("%s: the last change of %s is lost", machine->name, before.name);
}

static void append(struct machine *machine, const char *name, struct node *node)
{
	char text[2048];
	const size_t n = make_lines(
		&world.chance, text, sizeof text, 1 + (unsigned)chance_below(&world.chance, 20));
	node_write(node, text, n, node->size);
	note(machine, name);
	story("%s: lines are appended to %s", machine->name, name);
}

/* A program opens a file, and writes to it a moment later. The file may have been removed and put
 * back meanwhile. */
static void write_later(struct machine *machine, const char *name, struct node *node)
{
	char path[300], text[100];
	const uint64_t number = node->number;
	const size_t n = make_lines(&world.chance, text, sizeof text, 2);
	node->opened++;
	node->writers++;
	judge_opened(node);
	story("%s: %s is opened for writing", machine->name, name);
	node = NULL;
	for (unsigned i = 0; i < 10 && !node; i++) {
		task_sleep_until(world_now_ns() + chance_below(&world.chance, NS_PER_S));
		node = disk_get(disk_of(machine), path_on_disk(name, path, sizeof path));
	}
	if (!node || node->number != number || !node->writers)
		return; /* the file is gone, or the power was cut */
	node_write(node, text, n, node->size);
	node->opened--;
	node->writers--;
	note(machine, name);
	story("%s: lines are appended to %s", machine->name, name);
}

static void overwrite(struct machine *machine, const char *name, struct node *node)
{
	unsigned char bytes[16];
	if (node->size < 32)
		return;
	chance_fill(&world.chance, bytes, sizeof bytes);
	node_write(node, bytes, sizeof bytes, chance_below(&world.chance, node->size - 16));
	note(machine, name);
	story("%s: some bytes of %s are overwritten", machine->name, name);
}

static void truncate_it(struct machine *machine, const char *name, struct node *node)
{
	node_truncate(node, chance_below(&world.chance, node->size + 1));
	note(machine, name);
	story("%s: %s is truncated to %llu bytes", machine->name, name,
		(unsigned long long)node->size);
}

static void remove_it(struct machine *machine, const char *name)
{
	char path[300];
	struct node *folder;
	const char *last;
	struct disk *disk = disk_of(machine);
	path_on_disk(name, path, sizeof path);
	if (!disk_find_parent(disk, disk_root(disk), path, &folder, &last))
		disk_remove(folder, last, false);
	note(machine, name);
	story("%s: %s is removed", machine->name, name);
}

static void rename_it(struct machine *machine, const char *name)
{
	char from[300], to[300], other[200];
	struct node *folder, *to_folder;
	const char *last, *to_last;
	struct disk *disk = disk_of(machine);
	snprintf(other, sizeof other, "renamed-%u", ++last_file);
	if (!disk_find_parent(
		    disk, disk_root(disk), path_on_disk(name, from, sizeof from), &folder, &last) &&
		!disk_find_parent(disk, disk_root(disk), path_on_disk(other, to, sizeof to),
			&to_folder, &to_last))
		disk_rename(folder, last, to_folder, to_last, true);
	note(machine, name);
	note(machine, other);
	story("%s: %s is renamed to %s", machine->name, name, other);
}

static void replace_it(struct machine *machine, const char *name)
{
	char path[300], text[4096];
	struct node *folder;
	const char *last;
	struct disk *disk = disk_of(machine);
	path_on_disk(name, path, sizeof path);
	if (disk_find_parent(disk, disk_root(disk), path, &folder, &last))
		return;
	disk_remove(folder, last, false);
	const size_t n = make_lines(
		&world.chance, text, sizeof text, (unsigned)chance_below(&world.chance, 50));
	disk_put(disk, path, text, n);
	disk_get(disk, path)->uid = 1000;
	note(machine, name);
	story("%s: %s is replaced by another file", machine->name, name);
}

static void touch(struct machine *machine, const char *name, struct node *node)
{
	node_touch(node);
	note(machine, name);
	story("%s: %s is touched", machine->name, name);
}

static void edit(struct machine *machine)
{
	char name[200], path[300];
	const bool is_there = pick(machine, name, sizeof name);
	struct node *node =
		is_there ? disk_get(disk_of(machine), path_on_disk(name, path, sizeof path)) : NULL;
	static const uint64_t changes[] = {0, 1, 2, 3, 7};
	uint64_t what = node ? chance_below(&world.chance, 10) : 9;
	if (node && world.scenario.hot)
		what = changes[what % 5];
	if (node)
		keep_before(machine, name, node);
	switch (what) {
	case 0:
	case 1:
		if (world.scenario.removes && chance_hits(&world.chance, 300))
			write_later(machine, name, node);
		else
			append(machine, name, node);
		break;
	case 2:
		overwrite(machine, name, node);
		break;
	case 3:
		truncate_it(machine, name, node);
		break;
	case 4:
		remove_it(machine, name);
		break;
	case 5:
		rename_it(machine, name);
		break;
	case 6:
		replace_it(machine, name);
		break;
	case 7:
		touch(machine, name, node);
		break;
	default:
		next_name(name, sizeof name);
		new_file(machine, name, false);
		story("%s: %s is new", machine->name, name);
	}
}

/* Sets wrong permissions, and mends them after a while. The node may have another name by then, or
 * none. */
static void lock_one(void)
{
	char name[200], path[300];
	struct machine *machine = machine_at(chance_below(&world.chance, world_people()));
	if (!pick(machine, name, sizeof name))
		return;
	struct node *node = disk_get(disk_of(machine), path_on_disk(name, path, sizeof path));
	node->mode &= ~(mode_t)0777;
	node_touch_status(node);
	story("%s: nobody may read %s any more", machine->name, name);
	task_sleep_until(world_now_ns() + chance_below(&world.chance, 60 * NS_PER_S));
	node->mode |= 0644;
	node_touch_status(node);
	story("%s: what was %s may be read again", machine->name, name);
}

static void foreign_object(void)
{
	char name[200], key[300];
	struct machine *machine = machine_at(chance_below(&world.chance, world_people()));
	if (!pick(machine, name, sizeof name))
		return;
	snprintf(key, sizeof key, "%s/%s", run_prefix(machine), name);
	if (world_s3_object(world.s3, key))
		return;
	world_s3_put(world.s3, key, "somebody else's", 15,
		WORLD_EPOCH + (int64_t)(world_now_ns() / NS_PER_S));
	story("somebody puts an object at %s", key);
}

/* Hot files are changed while they are uploaded. */
static void wait_for_run(void)
{
	for (unsigned i = 0; i < 600 && !processes_any(NULL); i++)
		task_sleep_until(world_now_ns() + NS_PER_S / 10);
}

static void live(void *arg)
{
	for (unsigned i = 0; i < world.scenario.edits; i++) {
		if (world.scenario.hot)
			wait_for_run();
		struct machine *machine = machine_at(chance_below(&world.chance, world_people()));
		/* Mostly a moment, sometimes minutes. */
		task_sleep_until(
			world_now_ns() + chance_below(&world.chance, chance_hits(&world.chance, 700)
									     ? NS_PER_S
									     : 100 * NS_PER_S));
		if (!machine->is_off)
			edit(machine);
	}
	world.busy--;
}

static void interfere(void *arg)
{
	for (unsigned i = 0; i < world.scenario.foreign; i++) {
		task_sleep_until(world_now_ns() + chance_below(&world.chance, 2 * NS_PER_S));
		foreign_object();
	}
	world.busy--;
}

static void lock(void *arg)
{
	for (unsigned i = 0; i < world.scenario.locks; i++) {
		task_sleep_until(world_now_ns() + chance_below(&world.chance, 20 * NS_PER_S));
		lock_one();
	}
	world.busy--;
}

void people_begin(void)
{
	const size_t n = world_people_disks();
	last_file = 0;
	before.machine = NULL;
	for (unsigned i = 0; i < world.scenario.files; i++) {
		char name[200];
		next_name(name, sizeof name);
		new_file(machine_at(i % n), name, i < world.scenario.large);
	}
	if (world.scenario.edits) {
		world.busy++;
		task_start(NULL, live, NULL);
	}
	if (world.scenario.foreign) {
		world.busy++;
		task_start(NULL, interfere, NULL);
	}
	if (world.scenario.locks) {
		world.busy++;
		task_start(NULL, lock, NULL);
	}
}
