/* Programs that rotate their own logs, each with its own names (docs/rotation-names.md). No run is
 * told which. See world.h. */
#include "compressors.h"
#include "judge.h"
#include "judge_waits.h"
#include "log_folder.h"
#include "story.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S  1000000000ULL
#define KEPT_MOST 24 /* rotated logs of a writer before it deletes the oldest one */
/* The pause after the last line of a file, so that times show which file of a ring was written
 * later. */
#define RING_PAUSE_NS (1200 * 1000000ULL)

enum way {
	MOVED,   /* the live log gets a name that does not change */
	SHIFTED, /* the live log is renamed, and the numbers of earlier logs rise by one */
	BEGUN,   /* each log has its final name from its first line on */
	RING     /* each log has its final name, and names are reused */
};

/* A pattern has some of strftime()'s fields, # for a digit of a rising number, or a single # for
 * all of its digits, and @ for 24 hexadecimal digits. */
struct scheme {
	const char *live; /* RING: the first name; BEGUN: the judge's name for the family */
	const char *pattern;
	enum way way;
	unsigned first; /* SHIFTED: the number of the newest log; RING: that of the second one */
	/* Other programs write several logs with such names at the same time, so one that is not
	 * compressed rests for a day before it counts as finished. */
	bool is_index;
};
static const struct scheme schemes[] = {
	{"current", "@.s", MOVED, 0, false},                                 /* multilog, s6-log */
	{"current", "@.u", MOVED, 0, false},                                 /* svlogd */
	{"server.log", "server-%Y-%m-%dT%H-%M-%S.123.log", MOVED, 0, false}, /* lumberjack */
	{"api-out.log", "api-out__%Y-%m-%d_%H-%M-%S.log", MOVED, 0, false},  /* PM2 */
	{"0.log", "0.log.%Y%m%d-%H%M%S", MOVED, 0, false},                   /* the kubelet */
	{"conn.log", "conn.%H:%M:%S-%H:%M:%S.log", MOVED, 0, false},         /* Zeek */
	{"py.log", "py.log.%Y-%m-%d_%H-%M-%S", MOVED, 0, false},             /* Python */
	{"back.log", "back.%Y-%m-%d.#.log", MOVED, 0, false},                /* logback */
	{"max.log", "max-#.log", MOVED, 0, true},                            /* log4j, max */
	{"maillog", "maillog.%Y%m%dT%H%M%S", MOVED, 0, false},               /* newsyslog -t */
	{"rot.log", "rot.log.#", SHIFTED, 1, false},
	{"ext.log", "ext.#.log", SHIFTED, 1, false},
	{"messages", "messages.#", SHIFTED, 0, false},                      /* newsyslog, savelog */
	{"min.log", "min-#.log", SHIFTED, 1, true},                         /* log4j */
	{"c0ffee-json.log", "c0ffee-json.log.#", SHIFTED, 1, false},        /* Docker */
	{"access", "access.%Y-%m-%d-%H_%M_%S.log", BEGUN, 0, false},        /* rotatelogs */
	{"binlog", "binlog.######", BEGUN, 0, false},                       /* MySQL */
	{"trace", "trace.#####.log", BEGUN, 0, false},                      /* OpenJ9 */
	{"postgresql", "postgresql-%Y-%m-%d_%H%M%S.log", BEGUN, 0, false},  /* PostgreSQL */
	{"glog", "web.host.log.INFO.%Y%m%d-%H%M%S.12345", BEGUN, 0, false}, /* glog */
	{"http", "http-%Y-%m-%dT%H-%M-%S.log", BEGUN, 0, false},
};
static const struct scheme ring = {"ring.log", "ring.log.#", RING, 1, false};

struct writer {
	struct log_family logs;
	const struct scheme *scheme;
	bool compresses, delays, keeps_time;
	unsigned tool, kept;
	unsigned count;                 /* number of logs rotated so far */
	time_t last_s;                  /* the time in the last name */
	char names[KEPT_MOST + 1][100]; /* without suffixes, the newest first */
	unsigned n_names;
	char current[100]; /* the file that is being written */
	struct node *held; /* the open file of a ring */
	struct chance chance;
	struct writer *next;
};
static struct writer *writers;

static unsigned field(const struct tm *tm, char name)
{
	switch (name) {
	case 'Y':
		return (unsigned)tm->tm_year + 1900;
	case 'm':
		return (unsigned)tm->tm_mon + 1;
	case 'd':
		return (unsigned)tm->tm_mday;
	case 'H':
		return (unsigned)tm->tm_hour;
	case 'M':
		return (unsigned)tm->tm_min;
	default:
		return (unsigned)tm->tm_sec;
	}
}

/* Makes the name with this number. */
static void name_of(const struct writer *writer, unsigned number, char *ret, size_t size)
{
	char *end = ret + size;
	struct tm tm;
	gmtime_r(&writer->last_s, &tm);
	for (const char *at = writer->scheme->pattern; *at && ret < end - 26;) {
		const int n = (int)strspn(at, "#");
		if (n)
			ret += snprintf(ret, (size_t)(end - ret), "%0*u", n, number);
		else if (*at == '@')
			ret += snprintf(ret, (size_t)(end - ret), "@40000000%08llx%08x",
				(unsigned long long)writer->last_s, writer->count);
		else if (*at == '%')
			ret += snprintf(ret, (size_t)(end - ret), at[1] == 'Y' ? "%04u" : "%02u",
				field(&tm, at[1]));
		else
			*ret++ = *at;
		at += n ? n : *at == '%' ? 2 : 1;
	}
	*ret = 0;
}

/* Waits until the second differs from that in the last name. */
static void tick(struct writer *writer)
{
	const time_t now_s = (time_t)(WORLD_EPOCH + world_now_ns() / NS_PER_S);
	writer->last_s = now_s > writer->last_s ? now_s : writer->last_s + 1;
	writer->count++;
}

/* Finds a log under its present name, with the suffix of a compressor if it has one. NULL: it is
 * gone. */
static struct node *find_packed(
	const struct writer *writer, const char *name, char *ret, size_t size)
{
	snprintf(ret, size, "%s", name);
	if (!log_find(&writer->logs, ret))
		snprintf(ret, size, "%s%s", name, compressor_suffixes[writer->tool]);
	return log_find(&writer->logs, ret);
}

static void note_rotated(const struct writer *writer, const struct node *log)
{
	judge_log(run_prefix(writer->logs.machine), log->log, log->data, (size_t)log->size);
	/* A run that cannot read the next file of a ring does not recognise the ring. */
	if (writer->scheme->is_index || (writer->scheme->way == RING && world.scenario.bad_reads))
		waits_rests(log->log);
	log_moves(&writer->logs);
}

static void drop_oldest(struct writer *writer)
{
	char oldest[140];
	while (writer->n_names >= writer->kept) {
		const struct node *node = find_packed(
			writer, writer->names[--writer->n_names], oldest, sizeof oldest);
		if (!node)
			continue;
		judge_log_gone(node);
		log_remove(&writer->logs, oldest);
		log_moves(&writer->logs);
	}
}

static void add_name(struct writer *writer, const char *name)
{
	memmove(writer->names + 1, writer->names, writer->n_names * sizeof *writer->names);
	writer->n_names++;
	snprintf(writer->names[0], sizeof *writer->names, "%s", name);
}

static void compress_some(struct writer *writer)
{
	const unsigned i = writer->delays;
	if (writer->compresses && writer->n_names > i)
		log_compress(&writer->logs, &writer->chance, writer->names[i], writer->tool,
			writer->keeps_time);
}

/* Raises the numbers of the earlier logs by one. */
static void shift(struct writer *writer)
{
	char from[140], to[140], plain[100];
	for (unsigned i = writer->n_names; i-- > 0;) {
		snprintf(plain, sizeof plain, "%s", writer->names[i]);
		name_of(writer, writer->scheme->first + i + 1, writer->names[i],
			sizeof *writer->names);
		if (!find_packed(writer, plain, from, sizeof from))
			continue;
		snprintf(to, sizeof to, "%s%s", writer->names[i], from + strlen(plain));
		log_rename(&writer->logs, from, to);
		log_pause(&writer->chance, 10);
	}
}

static void move_live(struct writer *writer)
{
	char name[100];
	const bool shifts = writer->scheme->way == SHIFTED;
	const struct node *live = log_find(&writer->logs, writer->current);
	if (!live || !live->size)
		return;
	tick(writer);
	name_of(writer, shifts ? writer->scheme->first : writer->count, name, sizeof name);
	if (!shifts && log_find(&writer->logs, name))
		return; /* the name has only the time of day, which has recurred */
	log_moves(&writer->logs);
	drop_oldest(writer);
	if (shifts)
		shift(writer);
	add_name(writer, name);
	note_rotated(writer, live);
	log_rename(&writer->logs, writer->current, name);
	if (world.scenario.clock_jumps || chance_hits(&writer->chance, 500))
		log_make(&writer->logs, writer->current, 0);
	else /* with the next line; until then this one is the newest, and may be live */
		waits_rests(live->log);
	story("%s becomes %s", writer->current, name);
	compress_some(writer);
}

static void begin_next(struct writer *writer)
{
	const struct node *last = log_find(&writer->logs, writer->current);
	if (last && !last->size)
		return;
	tick(writer);
	drop_oldest(writer);
	if (last)
		add_name(writer, writer->current);
	name_of(writer, writer->count, writer->current, sizeof writer->current);
	struct node *node = log_make(&writer->logs, writer->current, 0);
	if (last)
		note_rotated(writer, last);
	log_append(&writer->logs, &writer->chance, node);
	story("%s is begun", writer->current);
	if (last)
		compress_some(writer);
}

static void hold(struct writer *writer, struct node *node)
{
	node->opened++;
	node->writers++;
	writer->held = node;
	waits_open(node->log, true);
}

static void let_go(struct writer *writer, struct node *node)
{
	waits_open(node->log, false);
	if (node->writers) /* the power may have been cut */
		node->writers--;
	if (node->opened)
		node->opened--;
	log_moves(&writer->logs);
}

/* Opens and empties the next file of the ring, and then closes the last one. */
static void go_round(struct writer *writer)
{
	struct node *last = writer->held;
	if (!last->size)
		return;
	if (task_self()) /* the world has begun */
		task_sleep_until(world_now_ns() + RING_PAUSE_NS);
	if (!log_can_act(writer->logs.machine))
		return;
	const unsigned i = ++writer->count % writer->kept;
	if (i)
		name_of(writer, i, writer->current, sizeof writer->current);
	else
		snprintf(writer->current, sizeof writer->current, "%s", writer->scheme->live);
	struct node *node = log_find(&writer->logs, writer->current);
	if (node) {
		judge_log_gone(node);
		node_truncate(node, 0);
		log_begin(&writer->logs, writer->current, node);
		log_moves(&writer->logs);
	} else
		node = log_make(&writer->logs, writer->current, 0);
	hold(writer, node);
	while (!node->size)
		log_append(&writer->logs, &writer->chance, node);
	note_rotated(writer, last);
	let_go(writer, last);
	story("%s is next of its ring", writer->current);
}

static void write_lines(struct writer *writer)
{
	struct node *node = log_find(&writer->logs, writer->current);
	if (!node && writer->scheme->way != BEGUN)
		node = log_make(&writer->logs, writer->current, 0);
	if (node)
		log_append(&writer->logs, &writer->chance, node);
}

static void rotate(struct writer *writer)
{
	if (writer->scheme->way == RING)
		go_round(writer);
	else if (writer->scheme->way == BEGUN)
		begin_next(writer);
	else
		move_live(writer);
}

/* In a night, each log is written some 50 times, and rotated about once an hour; otherwise as often
 * as those of logrotate. */
static void write_on(void *arg)
{
	struct writer *writer = arg;
	const uint64_t night_ms = world_night_ns() / 1000000;
	for (unsigned i = 0;
		night_ms ? world_now_ns() < world_night_ns() : i < world.scenario.edits; i++) {
		const bool is_soon = chance_hits(&writer->chance, night_ms ? 500 : 700);
		log_pause(&writer->chance, is_soon ? 2000 : night_ms ? night_ms / 12 : 100000);
		if (!log_can_act(writer->logs.machine))
			continue;
		write_lines(writer);
		if (chance_hits(&writer->chance, night_ms ? 200 : 500))
			rotate(writer);
	}
	world.busy--;
}

void zoo_booted(const struct machine *machine)
{
	for (struct writer *writer = writers; writer; writer = writer->next)
		if (writer->logs.machine == machine && writer->held && !writer->held->writers) {
			writer->held->opened++;
			writer->held->writers++;
			log_moves(&writer->logs);
		}
}

void zoo_rest(void)
{
	for (struct writer *writer = writers; writer; writer = writer->next) {
		const struct node *node = log_find(&writer->logs, writer->current);
		if (writer->scheme->way == BEGUN && node && node->size)
			judge_log(run_prefix(writer->logs.machine), node->log, node->data,
				(size_t)node->size);
		if (writer->held && world.scenario.live) { /* the other files would wait */
			let_go(writer, writer->held);
			writer->held = NULL;
		}
	}
	if (writers)
		task_sleep_until(world_now_ns() + ZOO_REST_NS);
}

/* Unless clocks jump, times show how long a log has rested. */
static const struct scheme *choose(struct chance *chance)
{
	const struct scheme *scheme;
	const bool may_rest = !world.scenario.clock_jumps && world.scenario.night_h <= 24;
	do
		scheme = &schemes[chance_below(chance, sizeof schemes / sizeof *schemes)];
	while ((scheme->way == BEGUN || scheme->is_index) && !may_rest);
	return scheme;
}

bool zoo_begin(struct machine *machine, unsigned family)
{
	const struct scenario *s = &world.scenario;
	struct chance chance = chance_of(world.seed + machine->index * 10 + family, "zoo");
	const bool is_ring = s->rings && family == 0;
	if (!is_ring && (!s->zoo || chance_hits(&chance, 250)))
		return false;
	struct writer *writer = calloc(1, sizeof *writer);
	if (!writer)
		abort();
	writer->scheme = is_ring ? &ring : choose(&chance);
	for (struct writer *other = writers; other; other = other->next)
		if (other->logs.machine == machine && /* a name has one writer */
			strcmp(other->scheme->live, writer->scheme->live) == 0) {
			free(writer);
			return true;
		}
	writer->logs = (struct log_family){machine, writer->scheme->live};
	writer->compresses = !is_ring && chance_hits(&chance, 600);
	writer->delays = chance_hits(&chance, 500);
	writer->keeps_time = !s->timeless;
	writer->tool = (unsigned)chance_below(&chance, COMPRESSORS);
	writer->kept = is_ring                     ? (unsigned)chance_between(&chance, 3, 6)
		       : chance_hits(&chance, 500) ? KEPT_MOST
						   : 6;
	snprintf(writer->current, sizeof writer->current, "%s",
		writer->scheme->way == BEGUN ? "" : writer->scheme->live);
	writer->chance = chance;
	writer->next = writers;
	writers = writer;
	if (writer->scheme->way == BEGUN)
		rotate(writer);
	else
		write_lines(writer);
	if (is_ring)
		hold(writer, log_find(&writer->logs, writer->current));
	world.busy++;
	task_start(NULL, write_on, writer);
	return true;
}

void zoo_end(void)
{
	for (struct writer *next, *writer = writers; writer; writer = next) {
		next = writer->next;
		free(writer);
	}
	writers = NULL;
}
