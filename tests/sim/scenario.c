#include "scenario.h"
#include "chance.h"
#include "world.h"
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define FIELD(name) #name,
	SCENARIO_FIELDS(FIELD)
#undef FIELD
};

size_t scenario_fields(void)
{
	return sizeof names / sizeof *names;
}

const char *scenario_name(size_t i)
{
	return names[i];
}

unsigned *scenario_field(struct scenario *scenario, size_t i)
{
	return (unsigned *)scenario + i; /* all members are unsigned, in the order of the names */
}

bool scenario_set(struct scenario *scenario, const char *setting)
{
	const size_t n = strcspn(setting, "=");
	for (size_t i = 0; i < scenario_fields(); i++)
		if (strncmp(names[i], setting, n) == 0 && !names[i][n] && setting[n]) {
			*scenario_field(scenario, i) = (unsigned)strtoul(setting + n + 1, NULL, 10);
			return true;
		}
	return false;
}

void scenario_print(const struct scenario *scenario, FILE *to)
{
	struct scenario copy = *scenario;
	for (size_t i = 0; i < scenario_fields(); i++)
		if (*scenario_field(&copy, i))
			fprintf(to, "%s=%u ", names[i], *scenario_field(&copy, i));
	fputc('\n', to);
}

static unsigned one_of(struct chance *chance, const unsigned *values, size_t n)
{
	return values[chance_below(chance, n)];
}
#define ONE_OF(chance, ...)                                                                        \
	one_of(chance, (const unsigned[]){__VA_ARGS__},                                            \
		sizeof((const unsigned[]){__VA_ARGS__}) / sizeof(unsigned))

/* A feature occurs in few worlds, but often there, so that features meet that are rare alone. */
#define SOMETIMES(chance, ...) (chance_hits(chance, 300) ? ONE_OF(chance, __VA_ARGS__) : 0)

static void choose_service(struct chance *c, struct scenario *s)
{
	s->dynamodb = ONE_OF(c, 0, 1, 1);
	s->hosts = s->dynamodb ? ONE_OF(c, 1, 2, 2, 3) : ONE_OF(c, 1, 1, 2);
	s->clones = SOMETIMES(c, 1);
	s->aws = ONE_OF(c, 0, 1);
	s->ignores = s->aws ? 0 : ONE_OF(c, 0, 0, 1, 2);
	s->drops_sums = s->aws ? 0 : ONE_OF(c, 0, 1);
	s->versions = SOMETIMES(c, 1);
	s->stale = ONE_OF(c, 0, 1);
	s->small_pages = SOMETIMES(c, 1);
	s->batches = s->aws ? 0 : ONE_OF(c, 0, 1, 2);
	s->no_old = s->aws ? 0 : ONE_OF(c, 0, 0, 1);
	s->slow = ONE_OF(c, 0, 0, 0, 1);
}

static void choose_files(struct chance *c, struct scenario *s)
{
	s->files = ONE_OF(c, 1, 1, 2, 3, 5, 8, 30);
	s->large = ONE_OF(c, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2);
	s->edits = ONE_OF(c, 0, 1, 3, 10, 20);
	s->rotated = ONE_OF(c, 0, 0, 1);
	s->compress = ONE_OF(c, 0, 0, 0, 1, 2);
	s->removes = ONE_OF(c, 0, 0, 0, 1);
	s->if_changed = ONE_OF(c, 0, 0, 1, 2);
	s->locks = s->rotated ? 0 : SOMETIMES(c, 1, 3);
	s->foreign = s->rotated ? 0 : ONE_OF(c, 0, 0, 0, 1);
	s->slow_files = SOMETIMES(c, 1);
	s->bad_reads = chance_hits(c, 100) ? ONE_OF(c, 5, 50) : 0;
	s->deletes = s->removes ? ONE_OF(c, 0, 1, 3) : 0;
	s->anew = s->removes ? 0 : chance_hits(c, 150);
	s->live = s->rotated && !s->dynamodb && !s->removes ? ONE_OF(c, 0, 1) : 0;
	s->backups = s->dynamodb ? 0 : SOMETIMES(c, 1, 2);
}

static void choose_runs(struct chance *c, struct scenario *s)
{
	s->hot = ONE_OF(c, 0, 0, 1);
	s->runs = s->hot ? ONE_OF(c, 5, 12) : ONE_OF(c, 1, 2, 3, 5);
	s->overlap = ONE_OF(c, 0, 200, 500);
	s->varies = SOMETIMES(c, 1);
	s->concurrency = ONE_OF(c, 1, 2, 4, 8);
	s->lease_s = s->slow ? 30 : ONE_OF(c, 5, 30, 30);
	s->give_up_s = s->slow ? 0 : SOMETIMES(c, 5, 20, 60);
	s->attempts = ONE_OF(c, 0, 0, 1, 3);
	s->audits = ONE_OF(c, 0, 0, 1, 3);
}

static void choose_troubles(struct chance *c, struct scenario *s)
{
	s->kills = ONE_OF(c, 0, 0, 1, 2, 5);
	s->stops = SOMETIMES(c, 1, 3, 6);
	s->suspends = SOMETIMES(c, 1, 2);
	s->power_cuts = SOMETIMES(c, 1, 2, 4);
	s->net_cuts = SOMETIMES(c, 1, 3);
	s->clock_jumps = SOMETIMES(c, 1, 2);
	unsigned *const shares[] = {&s->lost, &s->lost_after, &s->hangs, &s->twice, &s->again,
		&s->errors, &s->errors_after, &s->throttled, &s->html};
	const bool is_fine = chance_hits(c, 250);
	for (size_t i = 0; i < sizeof shares / sizeof *shares && !is_fine; i++)
		*shares[i] = SOMETIMES(c, 3, 10, 30, 100);
	s->hangs /= 4; /* each takes a minute */
	s->html /= 4;
	s->late_s = s->again ? ONE_OF(c, 1, 10, 60, 600) : 0;
	s->partial = is_fine ? 0 : ONE_OF(c, 0, 0, 10, 100, 300);
}

/* Some worlds concentrate on the ownership of files, and some on lost and late replies. */
static void choose_focus(struct chance *c, struct scenario *s)
{
	const unsigned what = ONE_OF(c, 0, 0, 0, 1, 2);
	if (!what)
		return;
	s->rotated = s->live = s->backups = s->anew = 0;
	s->dynamodb = 1;
	s->kills = ONE_OF(c, 0, 3);
	if (what == 1) {
		s->hosts = ONE_OF(c, 2, 3);
		s->files = ONE_OF(c, 5, 8);
		s->runs = 5;
		s->lease_s = s->slow ? 30 : 5;
		s->stops = ONE_OF(c, 3, 8);
		s->suspends = ONE_OF(c, 0, 2);
		s->net_cuts = ONE_OF(c, 0, 2);
		s->clock_jumps = ONE_OF(c, 0, 4);
		s->lags = ONE_OF(c, 0, 100, 300);
		return;
	}
	s->hot = 1;
	s->aws = ONE_OF(c, 0, s->aws);
	s->ignores = s->aws ? 0 : s->ignores;
	s->batches = s->aws ? 0 : ONE_OF(c, 2, s->batches);
	s->hangs = ONE_OF(c, 0, 10, 50);
	s->files = ONE_OF(c, 1, 3, 30);
	s->concurrency = ONE_OF(c, 2, 8);
	s->partial = ONE_OF(c, 0, 100, 300);
	s->edits = 20;
	s->runs = 12;
	s->attempts = 1;
	s->lost_after = ONE_OF(c, 0, 30, 100);
	s->errors_after = ONE_OF(c, 0, 30, 100);
	s->errors = ONE_OF(c, 0, 30, 100);
	s->again = ONE_OF(c, 30, 100, 200);
	s->late_s = ONE_OF(c, 10, 60);
	s->if_changed = 0;
}

/* Adds troubles that are rare in an hour, but not in a night. */
static void choose_night_troubles(struct chance *c, struct scenario *s)
{
	unsigned *const troubles[] = {&s->kills, &s->stops, &s->suspends, &s->power_cuts,
		&s->net_cuts, &s->clock_jumps, &s->asked, &s->reboots};
	const size_t n = sizeof troubles / sizeof *troubles;
	unsigned sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += *troubles[i] = ONE_OF(c, 0, 0, 1, 2, 3);
	for (; sum < 20; sum++) /* some find no process or machine to trouble */
		++*troubles[chance_below(c, n)];
}

static void choose_night(struct chance *c, struct scenario *s)
{
	s->night_h = ONE_OF(c, 9, 10, 12, 14, 24, 60, 200);
	s->hosts = ONE_OF(c, 2, 2, 2, 3, 4);
	s->runs = ONE_OF(c, 3, 5, 8, 12);
	s->files = ONE_OF(c, 1, 2, 3);
	s->large = s->hot = s->locks = s->foreign = 0;
	s->rotated = 1;
	s->removes = ONE_OF(c, 0, 0, 1);
	s->live = !s->dynamodb && !s->removes ? ONE_OF(c, 0, 1) : 0;
	s->deletes = s->removes ? ONE_OF(c, 0, 1, 3) : 0;
	s->anew = s->removes ? 0 : chance_hits(c, 100);
	s->backups = s->dynamodb ? 0 : SOMETIMES(c, 1, 2);
	s->grace_s = ONE_OF(c, 0, 1, 30, 3600);
	s->rate_kib = SOMETIMES(c, 8, 16, 64);
	s->rules = SOMETIMES(c, 1);
	s->manifest = SOMETIMES(c, 1);
	s->id_object = s->ignores ? 0 : SOMETIMES(c, 1);
	s->lifecycle_h = s->night_h > 24 ? SOMETIMES(c, 24, 48) : 0;
	s->lockers = s->slow ? 0 : SOMETIMES(c, 2, 4, 8);
	s->limit_s = chance_hits(c, 150) ? ONE_OF(c, 1, 3, 20) : 0;
	s->threads = chance_hits(c, 100) ? ONE_OF(c, 6, 8, 12) : 0;
	s->lease_s = s->slow ? 30 : ONE_OF(c, 5, 30, 600, 7200);
	choose_night_troubles(c, s);
}

/* Shortens long leases, since a process that polls for hours costs as much as ten other nights; and
 * shortens nights of several days, which show no more than those of hours. */
static void make_night_small(struct chance *c, struct scenario *s)
{
	s->night_h = s->night_h > 24 && !s->lifecycle_h ? ONE_OF(c, 9, 24) : s->night_h;
	s->lease_s =
		s->lease_s > 600 || (s->lease_s == 600 && chance_hits(c, 500)) ? 30 : s->lease_s;
}

/* Chooses uploads in parts that no run resumes, and gc. */
static void choose_leftovers(struct chance *c, struct scenario *s)
{
	s->rotated = s->live = s->backups = s->anew = 0;
	s->dynamodb = 1;
	s->files = ONE_OF(c, 1, 2);
	s->large = s->files;
	s->hosts = 1;
	s->runs = 3;
	s->hot = 0;
	s->edits = 3;
	s->kills = 5;
	s->audits = 8;
	s->lease_s = s->slow ? 30 : 5;
}

/* Limits the runs of all kinds to at most twelve, and mostly fewer, since a small world shows
 * nearly as much in half of the time. Of the most frequent kind, runs are dropped first. */
#define RUNS_LEAST 6

static void limit_runs(struct chance *c, struct scenario *s)
{
	const bool is_mixed = s->rotated == 2;
	const unsigned runs_most = ONE_OF(c, 6, 7, 7, 8, 12), others_most = runs_most - 5;
	const unsigned hosts = s->hosts - is_mixed,
		       all = runs_most - (is_mixed ? WORLD_LOG_RUNS : 0);
	unsigned *const counts[] = {&s->pipes, &s->lockers, &s->audits};
	while (s->audits + s->lockers + s->pipes > others_most) {
		unsigned *largest = counts[0];
		for (size_t i = 1; i < 3; i++)
			largest = *counts[i] > *largest ? counts[i] : largest;
		--*largest;
	}
	const unsigned others = s->audits + s->lockers + s->pipes;
	const unsigned most = (all - others) / hosts;
	while (s->runs * hosts + others + runs_most - all < RUNS_LEAST)
		s->runs++; /* some begin while their machine is off */
	s->runs = s->runs < most ? s->runs : most ? most : 1;
}

/* Adds troubles to a quiet world until there are some ten faults. */
static void add_troubles(struct chance *c, struct scenario *s)
{
	unsigned *const troubles[] = {&s->kills, &s->stops, &s->suspends, &s->power_cuts,
		&s->net_cuts, &s->clock_jumps, &s->asked, &s->reboots};
	const size_t n = sizeof troubles / sizeof *troubles;
	const unsigned shares = s->lost + s->lost_after + s->hangs + s->twice + s->again + s->lags +
				s->errors + s->errors_after + s->throttled + s->html;
	unsigned sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += *troubles[i];
	for (const unsigned wanted = shares > 150 ? 12 : 26; sum < wanted; sum++)
		++*troubles[chance_below(c, n)];
}

/* Chooses the evening of people's files, and the night of a host with rotated logs. */
static void choose_evening(struct chance *c, struct scenario *s)
{
	if (chance_hits(c, 50))
		choose_leftovers(c, s);
	s->hosts += s->hosts < 4;
	s->rotated = 2;
	s->live = !s->dynamodb && !s->removes ? ONE_OF(c, 0, 1) : 0;
	s->night_h = ONE_OF(c, 9, 10, 12, 14);
	s->grace_s = ONE_OF(c, 0, 1, 30, 3600);
	s->rate_kib = s->large ? 0 : SOMETIMES(c, 8, 16, 64);
	s->rules = chance_hits(c, 100);
	s->manifest = chance_hits(c, 100);
	s->id_object = s->ignores ? 0 : chance_hits(c, 100);
	s->lockers = s->slow ? 0 : chance_hits(c, 50) ? 4 : 0;
	s->limit_s = chance_hits(c, 50) ? ONE_OF(c, 1, 3, 20) : 0;
	s->threads = chance_hits(c, 50) ? ONE_OF(c, 6, 8, 12) : 0;
}

/* Chooses options that differ among the writers of a row or a file. */
static void choose_kinds(struct chance *c, struct scenario *s)
{
	const bool has_files = s->rotated != 1;
	s->keep_marks_s = s->audits ? SOMETIMES(c, 1, 60, 3600) : 0;
	s->leases = SOMETIMES(c, 1);
	s->if_mixed = has_files ? SOMETIMES(c, 1) : 0;
	s->recompress = has_files && !s->removes ? chance_hits(c, 100) : 0;
	s->age_s = s->removes ? SOMETIMES(c, 1, 60, 3600) : 0;
	s->transfer_kib = s->pipes || s->large ? SOMETIMES(c, 1, 64, 6000) : 0;
	s->open_lines = s->rotated && s->live && !s->finals ? ONE_OF(c, 0, 1) : 0;
	s->id_gone = s->id_object && !s->anew ? ONE_OF(c, 0, 1, 2) : 0;
	s->bad_part = s->large ? SOMETIMES(c, 1) : 0;
	if (s->bad_part) { /* so that the pauses between turns matter */
		s->attempts = 1;
		s->give_up_s = 60;
	}
	s->meets = s->dynamodb ? SOMETIMES(c, 100, 500) : 0;
	s->proxy = s->aws ? 0 : SOMETIMES(c, 1);
}

/* Chooses the programs that write logs. No clock jumps if times have to show which file was written
 * last. */
static void choose_writers(struct chance *c, struct scenario *s)
{
	s->zoo = s->rotated ? chance_hits(c, 300) : 0;
	s->rings = s->rotated ? chance_hits(c, 130) : 0;
	/* Without --live, such a log counts as another log (docs/logs.md). */
	s->timeless = s->rotated && s->live ? chance_hits(c, 300) : 0;
	if (s->rings)
		s->clock_jumps = s->clock_days = 0;
}

/* In an evening, two hosts have the same files and marks, and a third one has logs. */
static void choose_images(struct chance *c, struct scenario *s)
{
	s->images = s->rotated == 2 ? chance_hits(c, 150) : 0;
	if (!s->images)
		return;
	s->hosts = 3;
	s->dynamodb = s->clones = s->ignores = s->removes = s->deletes = 0;
	s->anew = s->backups = s->foreign = s->pipes = s->manifest = s->lifecycle_h = 0;
	s->batches = s->no_old = s->partial = s->bad_part = s->age_s = s->spools = 0;
	s->id_gone = s->transfer_kib = s->recompress = 0;
	s->bad_reads = 0; /* of the files that identify a machine */
}

void scenario_choose(uint64_t seed, bool may_be_night, struct scenario *ret)
{
	struct chance chance = chance_of(seed, "scenario");
	*ret = (struct scenario){0};
	choose_service(&chance, ret);
	choose_files(&chance, ret);
	choose_runs(&chance, ret);
	choose_troubles(&chance, ret);
	choose_focus(&chance, ret);
	struct chance other = chance_of(seed, "night");
	const bool is_told = seed && may_be_night;
	const bool is_large = chance_told(&other, is_told, seed % 200 == 0, 5);
	const bool is_night =
		chance_told(&other, is_told, seed / (is_large ? 200 : 1) % 2 == 0, 500);
	if (may_be_night && is_night)
		choose_night(&other, ret);
	else if (may_be_night && !is_large)
		choose_evening(&other, ret);
	struct chance pipes = chance_of(seed, "pipes");
	ret->pipes = may_be_night && chance_hits(&pipes, 200) ? ONE_OF(&pipes, 2, 4, 8) : 0;
	ret->spools = ret->pipes ? ONE_OF(&pipes, 0, 1) : 0;
	struct chance clocks = chance_of(seed, "clocks");
	ret->clock_days = may_be_night && chance_hits(&clocks, 200) ? 1000 : 0;
	/* A live log that was uploaded as a whole is uploaded again when it has grown. */
	ret->finals = ret->rotated == 1 && !ret->live ? 0 : SOMETIMES(&chance, 200, 500);
	if (may_be_night && !is_large) {
		if (is_night)
			make_night_small(&other, ret);
		ret->once = chance_hits(&other, 700);
		limit_runs(&other, ret);
		add_troubles(&other, ret);
	}
	struct chance kinds = chance_of(seed, "kinds");
	choose_kinds(&kinds, ret);
	struct chance writers = chance_of(seed, "writers");
	choose_writers(&writers, ret);
	struct chance images = chance_of(seed, "images");
	choose_images(&images, ret);
	struct chance locks = chance_of(seed, "locks");
	ret->s3_locks = ret->lockers ? chance_hits(&locks, 500) : 0;
	struct chance silences = chance_of(seed, "silences");
	ret->silences = may_be_night ? SOMETIMES(&silences, 1, 1, 2) : 0;
	struct chance denials = chance_of(seed, "denials");
	ret->denials = may_be_night && chance_hits(&denials, 50) ? ONE_OF(&denials, 1, 3) : 0;
}
