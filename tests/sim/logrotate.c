/* Programs that write logs, and logrotate, which renames, compresses and deletes them. Each line is
 * in only one log. */
#include "compressors.h"
#include "judge.h"
#include "judge_lines.h"
#include "judge_waits.h"
#include "log_folder.h"
#include "story.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S  1000000000ULL
#define KEPT_MOST 24 /* rotated logs of a family before the oldest is deleted */

/* The schedule of a log in a night. */
enum cycle { HOURLY, NIGHTLY, BY_SIZE };
#define LARGE 3000 /* bytes; BY_SIZE rotates a larger log, each hour */

struct family {
	struct log_family logs; /* named after the live log */
	bool copies;            /* copytruncate */
	bool compresses, delays;
	bool lingers;    /* programs keep writing to the renamed log for a while */
	bool is_renamed; /* programs have not noticed the rename yet */
	enum cycle cycle;
	unsigned tool;
	unsigned kept; /* rotated logs before the oldest one is deleted */
	bool is_dated; /* dateext; otherwise the rotated logs are numbered */
	uint64_t dates[KEPT_MOST + 2];
	char rest[120]; /* the rest of an incomplete last line, or "" */
	uint64_t rest_id;
	bool is_copied; /* the log is being copied: writes would be lost, so there are none */
	unsigned users; /* number of tasks that use it */
	struct chance chance;
};

/* Makes the name of the i-th rotated log, without a suffix. */
static void name_of(const struct family *family, unsigned i, char *ret, size_t size)
{
	if (family->is_dated)
		snprintf(ret, size, "%s-%llu", family->logs.name,
			(unsigned long long)family->dates[i]);
	else
		snprintf(ret, size, "%s.%u", family->logs.name, i);
}

/* Writes the first piece of a line: until the second one follows, the log ends without a newline.
 */
static void begin_line(struct family *family, struct node *live)
{
	char text[120];
	const uint64_t id = chance_next(&family->chance);
	const int n =
		snprintf(text, sizeof text, LINE_FORMAT, (unsigned long long)id, family->logs.name);
	const size_t at = chance_between(&family->chance, 1, (uint64_t)n - 1);
	node_write(live, text, at, live->size);
	waits_written(live->log);
	snprintf(family->rest, sizeof family->rest, "%s", text + at);
	family->rest_id = id;
}

static void finish_line(struct family *family, struct node *live)
{
	if (!live || !*family->rest)
		return;
	if (world.scenario.live)
		lines_written(run_prefix(family->logs.machine), family->rest_id, live->log);
	node_write(live, family->rest, strlen(family->rest), live->size);
	waits_written(live->log);
	*family->rest = 0;
}

static void write_lines(struct family *family)
{
	char name[100];
	while (family->is_copied)
		log_pause(&family->chance, 1000);
	if (family->is_renamed)
		name_of(family, 1, name, sizeof name);
	else
		snprintf(name, sizeof name, "%s", family->logs.name);
	if (family->is_renamed)
		log_moves(&family->logs);
	family->is_renamed = false;
	struct node *live = log_find(&family->logs, name);
	if (!live)
		live = log_make(&family->logs, name, 0);
	finish_line(family, live);
	log_append(&family->logs, &family->chance, live);
	if (live && live == log_find(&family->logs, family->logs.name) &&
		world.scenario.open_lines && chance_hits(&family->chance, 400))
		begin_line(family, live);
}

/* Returns the i-th rotated log and its present name, or NULL. */
static struct node *find_rotated(const struct family *family, unsigned i, char *ret, size_t size)
{
	char plain[100];
	name_of(family, i, plain, sizeof plain);
	snprintf(ret, size, "%s", plain);
	if (!log_find(&family->logs, ret))
		snprintf(ret, size, "%s%s", plain, compressor_suffixes[family->tool]);
	return log_find(&family->logs, ret);
}

/* Makes room for a rotated log, and removes the oldest one. */
static void shift(struct family *family)
{
	char from[120], to[120];
	struct node *oldest = find_rotated(family, family->kept, from, sizeof from);
	if (oldest) {
		judge_log_gone(oldest);
		log_remove(&family->logs, from);
	}
	for (unsigned i = family->kept - 1; i > 0 && !family->is_dated; i--) {
		const struct node *node = find_rotated(family, i, from, sizeof from);
		if (!node)
			continue;
		name_of(family, i, to, sizeof to);
		const char *suffix = from + strlen(to);
		name_of(family, i + 1, to, sizeof to);
		strncat(to, suffix, sizeof to - strlen(to) - 1);
		log_rename(&family->logs, from, to);
		log_pause(&family->chance, 10);
	}
	memmove(family->dates + 2, family->dates + 1, KEPT_MOST * sizeof *family->dates);
	family->dates[1] = WORLD_EPOCH + world_now_ns() / NS_PER_S;
}

static void rotate(struct family *family)
{
	char first[100], second[100];
	struct node *live = log_find(&family->logs, family->logs.name);
	finish_line(family, live);
	if (!live || !live->size)
		return; /* notifempty */
	shift(family);
	finish_line(family, live); /* the line that was begun meanwhile */
	name_of(family, 1, first, sizeof first);
	if (family->copies) {
		struct node *copy = log_make(&family->logs, first, live->log);
		family->is_copied = true;
		const size_t n = (size_t)live->size;
		unsigned char *bytes = malloc(n);
		if (!bytes || !copy)
			abort();
		memcpy(bytes, live->data, n);
		judge_log(run_prefix(family->logs.machine), live->log, bytes, n);
		log_write_slowly(&family->chance, copy, bytes, n);
		node_truncate(live, 0);
		log_begin(&family->logs, family->logs.name, live);
		family->is_copied = false;
		free(bytes);
	} else {
		judge_log(run_prefix(family->logs.machine), live->log, live->data,
			(size_t)live->size);
		log_rename(&family->logs, family->logs.name, first);
		log_make(&family->logs, family->logs.name, 0);
		family->is_renamed = family->lingers;
	}
	log_moves(&family->logs);
	story("logrotate: %s is rotated", family->logs.name);
	name_of(family, 2, second, sizeof second);
	if (family->compresses)
		log_compress(&family->logs, &family->chance, family->delays ? second : first,
			family->tool, !world.scenario.timeless);
}

static void leave(struct family *family)
{
	world.busy--;
	if (--family->users == 0)
		free(family);
}

/* In a night, checks each log at every full hour. */
static void look_at_hours(void *arg)
{
	struct family *family = arg;
	for (uint64_t hour = 1; hour <= world.scenario.night_h; hour++) {
		task_sleep_until(hour * 3600 * NS_PER_S);
		log_pause(&family->chance, 5000);
		const struct node *node = log_find(&family->logs, family->logs.name);
		const bool is_due = family->cycle == HOURLY ||
				    (family->cycle == NIGHTLY && hour % 24 == 5) ||
				    (family->cycle == BY_SIZE && node && node->size > LARGE);
		if (!is_due || !log_can_act(family->logs.machine))
			continue;
		if (world.scenario.repeats) /* no run recognises it by another file */
			write_lines(family);
		rotate(family);
		log_pause(&family->chance, 1000);
		if (family->is_renamed)
			write_lines(family);
	}
	leave(family);
}

/* In a night, programs write some 50 times, however long the night is. */
static void write_at_night(struct family *family)
{
	while (world_now_ns() < world_night_ns() && !world.scenario.repeats) {
		log_pause(&family->chance,
			chance_hits(&family->chance, 500) ? 2000 : world_night_ns() / 1000000 / 12);
		if (log_can_act(family->logs.machine))
			write_lines(family);
	}
}

static void live(void *arg)
{
	struct family *family = arg;
	if (world.scenario.night_h)
		write_at_night(family);
	for (unsigned i = 0; i < world.scenario.edits && !world.scenario.night_h; i++) {
		log_pause(&family->chance, chance_hits(&family->chance, 700) ? 1000 : 100000);
		if (!log_can_act(family->logs.machine))
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
			if (zoo_begin(machine_at(m), i))
				continue;
			struct family *family = calloc(1, sizeof *family);
			if (!family)
				abort();
			*family = (struct family){.logs = {machine_at(m), names[i]},
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
			if (world.scenario.repeats) { /* an earlier log is gone by then */
				family->copies = family->lingers = false;
				family->cycle = HOURLY;
				family->kept = 1;
			}
			if (world.scenario.timeless) { /* as Docker does */
				family->compresses = true;
				family->is_dated = family->lingers = false;
			}
			write_lines(family);
			rotate(family);
			world.busy++;
			task_start(NULL, live, family);
		}
}
