/* Programs that write logs, and logrotate, which renames, compresses and deletes them. Each line is
 * in one log alone. */
#include "compressors.h"
#include "judge.h"
#include "judge_lines.h"
#include "judge_waits.h"
#include "story.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S  1000000000ULL
#define KEPT_MOST 24 /* rotated logs of a family before the oldest is deleted */

#define EQUAL_LINES 10 /* of each log, where logs repeat */

/* When a log is rotated in a night. */
enum cycle { HOURLY, NIGHTLY, BY_SIZE };
#define LARGE 3000 /* bytes, by which a log is rotated that is looked at each hour */

struct family {
	struct machine *machine;
	const char *name; /* of the live log */
	bool copies;      /* copytruncate */
	bool compresses, delays;
	bool lingers;    /* programs write to the renamed log for a while */
	bool is_renamed; /* which they have not noticed yet */
	enum cycle cycle;
	unsigned tool;
	unsigned kept; /* rotated logs, before the oldest one is deleted */
	bool is_dated; /* dateext: else the rotated logs are numbered */
	uint64_t dates[KEPT_MOST + 2];
	char rest[120]; /* of the last line, which is not written to its end yet; or "" */
	uint64_t rest_id;
	bool is_copied; /* just now: what is written would be lost, so nothing is */
	unsigned users; /* tasks */
	struct chance chance;
};

static struct disk *disk_of(const struct family *family)
{
	struct disk *shared = world_shared(family->machine);
	return shared ? shared : family->machine->disk;
}

static struct node *folder_of(const struct family *family)
{
	struct disk *disk = disk_of(family);
	return world_shared(family->machine) ? disk_root(disk) : disk_get(disk, "/data");
}

static struct node *find(const struct family *family, const char *name)
{
	struct node *node;
	return disk_find(disk_of(family), folder_of(family), name, 0, &node) ? NULL : node;
}

/* An empty file of this log; 0: of a new one. */
static struct node *make(const struct family *family, const char *name, unsigned log)
{
	struct node *node;
	const char *prefix = run_prefix(family->machine);
	if (disk_make(disk_of(family), folder_of(family), name, S_IFREG | 0644, 1000, &node))
		return NULL;
	node->log = log ? log : waits_log(prefix, family->name);
	waits_name(prefix, name, node->log);
	return node;
}

static void rename_log(const struct family *family, const char *from, const char *to)
{
	const char *prefix = run_prefix(family->machine);
	const struct node *node = find(family, from);
	if (!node)
		return;
	disk_rename(folder_of(family), from, folder_of(family), to, true);
	waits_name(prefix, from, 0);
	waits_name(prefix, to, node->log);
}

static void remove_log(const struct family *family, const char *name)
{
	disk_remove(folder_of(family), name, false);
	waits_name(run_prefix(family->machine), name, 0);
}

/* Something happens to a log of this family: what a run finds half done waits. */
static void move(const struct family *family)
{
	waits_move(run_prefix(family->machine), family->name);
}

static void pause_briefly(struct family *family, uint64_t most_ms)
{
	if (!task_self()) /* before the world begins */
		return;
	task_sleep_until(world_now_ns() + chance_below(&family->chance, most_ms * 1000000));
}

/* The i-th rotated log's name, without a suffix. */
static void name_of(const struct family *family, unsigned i, char *ret, size_t size)
{
	if (family->is_dated)
		snprintf(ret, size, "%s-%llu", family->name, (unsigned long long)family->dates[i]);
	else
		snprintf(ret, size, "%s.%u", family->name, i);
}

/* A program writes a line in two pieces: its log ends without a newline until the second one. */
static void begin_line(struct family *family, struct node *live)
{
	char text[120];
	const uint64_t id = chance_next(&family->chance);
	const int n =
		snprintf(text, sizeof text, LINE_FORMAT, (unsigned long long)id, family->name);
	const size_t at = chance_between(&family->chance, 1, (uint64_t)n - 1);
	node_write(live, text, at, live->size);
	snprintf(family->rest, sizeof family->rest, "%s", text + at);
	family->rest_id = id;
}

static void finish_line(struct family *family, struct node *live)
{
	if (!live || !*family->rest)
		return;
	if (world.scenario.live)
		lines_written(run_prefix(family->machine), family->rest_id, live->log);
	node_write(live, family->rest, strlen(family->rest), live->size);
	*family->rest = 0;
}

static void write_lines(struct family *family)
{
	char text[4000], name[100];
	while (family->is_copied)
		pause_briefly(family, 1000);
	if (family->is_renamed)
		name_of(family, 1, name, sizeof name);
	else
		snprintf(name, sizeof name, "%s", family->name);
	if (family->is_renamed)
		move(family);
	family->is_renamed = false;
	struct node *live = find(family, name);
	if (!live)
		live = make(family, name, 0);
	finish_line(family, live);
	const bool repeats = world.scenario.repeats != 0;
	const unsigned n = repeats ? EQUAL_LINES : (unsigned)chance_below(&family->chance, 60);
	size_t at = 0;
	for (unsigned i = 0; i < n; i++) {
		const uint64_t id = repeats ? i + 1 : chance_next(&family->chance);
		at += (size_t)snprintf(text + at, sizeof text - at, LINE_FORMAT,
			(unsigned long long)id, family->name);
		if (repeats)
			lines_repeated(run_prefix(family->machine), id);
		else if (world.scenario.live)
			lines_written(run_prefix(family->machine), id, live ? live->log : 0);
	}
	if (live && at)
		node_write(live, text, at, live->size);
	if (live && live == find(family, family->name) && world.scenario.open_lines &&
		chance_hits(&family->chance, 400))
		begin_line(family, live);
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

static void compress_one(struct family *family, const char *name)
{
	char to[120];
	size_t n;
	struct node *node = find(family, name);
	snprintf(to, sizeof to, "%s%s", name, compressor_suffixes[family->tool]);
	if (!node || find(family, to))
		return;
	const int64_t mtime_ns = node->mtime_ns;
	move(family);
	unsigned char *bytes = compressor_run(family->tool, node->data, (size_t)node->size, &n);
	struct node *target = make(family, to, node->log);
	write_slowly(family, target, bytes, n);
	free(bytes);
	target->mtime_ns = mtime_ns;
	pause_briefly(family, 30);
	remove_log(family, name);
	move(family);
	story("logrotate: %s is compressed", name);
}

/* The i-th rotated log, and its name as it is now; or NULL. */
static struct node *find_rotated(const struct family *family, unsigned i, char *ret, size_t size)
{
	char plain[100];
	name_of(family, i, plain, sizeof plain);
	snprintf(ret, size, "%s", plain);
	if (!find(family, ret))
		snprintf(ret, size, "%s%s", plain, compressor_suffixes[family->tool]);
	return find(family, ret);
}

/* Makes room for a rotated log, and removes the oldest one. */
static void shift(struct family *family)
{
	char from[120], to[120];
	struct node *oldest = find_rotated(family, family->kept, from, sizeof from);
	if (oldest) {
		judge_log_gone(oldest);
		remove_log(family, from);
	}
	for (unsigned i = family->kept - 1; i > 0 && !family->is_dated; i--) {
		const struct node *node = find_rotated(family, i, from, sizeof from);
		if (!node)
			continue;
		name_of(family, i, to, sizeof to);
		const char *suffix = from + strlen(to);
		name_of(family, i + 1, to, sizeof to);
		strncat(to, suffix, sizeof to - strlen(to) - 1);
		rename_log(family, from, to);
		pause_briefly(family, 10);
	}
	memmove(family->dates + 2, family->dates + 1, KEPT_MOST * sizeof *family->dates);
	family->dates[1] = WORLD_EPOCH + world_now_ns() / NS_PER_S;
}

static void rotate(struct family *family)
{
	char first[100], second[100];
	struct node *live = find(family, family->name);
	finish_line(family, live);
	if (!live || !live->size)
		return; /* notifempty */
	shift(family);
	name_of(family, 1, first, sizeof first);
	if (family->copies) {
		struct node *copy = make(family, first, live->log);
		family->is_copied = true;
		const size_t n = (size_t)live->size;
		unsigned char *bytes = malloc(n);
		if (!bytes || !copy)
			abort();
		memcpy(bytes, live->data, n);
		judge_log(run_prefix(family->machine), live->log, bytes, n);
		write_slowly(family, copy, bytes, n);
		node_truncate(live, 0);
		live->log = waits_log(run_prefix(family->machine), family->name);
		waits_name(run_prefix(family->machine), family->name, live->log);
		family->is_copied = false;
		free(bytes);
	} else {
		judge_log(run_prefix(family->machine), live->log, live->data, (size_t)live->size);
		rename_log(family, family->name, first);
		make(family, family->name, 0);
		family->is_renamed = family->lingers;
	}
	move(family);
	story("logrotate: %s is rotated", family->name);
	name_of(family, 2, second, sizeof second);
	if (family->compresses)
		compress_one(family, family->delays ? second : first);
}

static bool can_act(const struct machine *machine)
{
	return world_shared(machine) || (!machine->is_off && !machine->suspended_at_ns);
}

static void leave(struct family *family)
{
	world.busy--;
	if (--family->users == 0)
		free(family);
}

/* In a night, each log is looked at when an hour is full. */
static void look_at_hours(void *arg)
{
	struct family *family = arg;
	for (uint64_t hour = 1; hour <= world.scenario.night_h; hour++) {
		task_sleep_until(hour * 3600 * NS_PER_S);
		pause_briefly(family, 5000);
		const struct node *node = find(family, family->name);
		const bool is_due = family->cycle == HOURLY ||
				    (family->cycle == NIGHTLY && hour % 24 == 5) ||
				    (family->cycle == BY_SIZE && node && node->size > LARGE);
		if (!is_due || !can_act(family->machine))
			continue;
		if (world.scenario.repeats) /* no run knows it by another file */
			write_lines(family);
		rotate(family);
		pause_briefly(family, 1000);
		if (family->is_renamed)
			write_lines(family);
	}
	leave(family);
}

/* In a night, programs write some 50 times, however long it is. */
static void write_at_night(struct family *family)
{
	while (world_now_ns() < world_night_ns() && !world.scenario.repeats) {
		pause_briefly(family,
			chance_hits(&family->chance, 500) ? 2000 : world_night_ns() / 1000000 / 12);
		if (can_act(family->machine))
			write_lines(family);
	}
}

static void live(void *arg)
{
	struct family *family = arg;
	if (world.scenario.night_h)
		write_at_night(family);
	for (unsigned i = 0; i < world.scenario.edits && !world.scenario.night_h; i++) {
		pause_briefly(family, chance_hits(&family->chance, 700) ? 1000 : 100000);
		if (!can_act(family->machine))
			continue;
		write_lines(family);
		if (chance_hits(&family->chance, 500))
			rotate(family);
	}
	leave(family);
}

static void choose_night(struct family *family)
{
	family->cycle = (enum cycle)chance_below(&family->chance, 3);
	family->tool = (unsigned)chance_below(&family->chance, COMPRESSORS);
	family->is_dated = chance_hits(&family->chance, 500);
	family->kept = chance_hits(&family->chance, 500) ? KEPT_MOST : 6;
	family->users++;
	world.busy++;
	task_start(NULL, look_at_hours, family);
}

void logrotate_begin(void)
{
	static const char *const names[] = {"app.log", "db.log", "mail.log"};
	const unsigned n = world.scenario.files < 3 ? world.scenario.files : 3;
	const size_t first = world_people();
	const size_t end = world_shared(machine_at(first)) ? first + 1 : machines_count();
	for (size_t m = first; m < end; m++)
		for (unsigned i = 0; i < n; i++) {
			struct family *family = calloc(1, sizeof *family);
			if (!family)
				abort();
			*family = (struct family){.machine = machine_at(m),
				.name = names[i],
				.kept = 6,
				.users = 1,
				.chance = chance_of(world.seed + m, names[i])};
			family->copies = chance_hits(&family->chance, 250);
			family->compresses = chance_hits(&family->chance, 700);
			family->delays = chance_hits(&family->chance, 500);
			family->lingers = world.scenario.live &&
					  (family->delays || !family->compresses) &&
					  chance_hits(&family->chance, 500);
			if (world.scenario.night_h)
				choose_night(family);
			if (world.scenario.repeats) { /* an earlier one is gone by then */
				family->copies = family->lingers = false;
				family->cycle = HOURLY;
				family->kept = 1;
			}
			write_lines(family);
			rotate(family);
			world.busy++;
			task_start(NULL, live, family);
		}
}
