#include "judge_lines.h"
#include "judge_waits.h"
#include "story.h"
#include "tasks.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether a line may be in a second object: one of the same piece with another suffix, any object
 * since its log is cut again, or one for each equal log. */
enum twice { NEVER, AS_SAME_PIECE, CUT_ANEW, REPEATED };

struct line {
	uint64_t id, since_ns;
	const char *prefix;
	unsigned log;     /* judge_waits.h */
	char *object;     /* key of the object that has the line, or NULL */
	uint64_t sent_ns; /* time of the request that stored it */
	bool is_gone;
	enum twice may_be_twice;
};
/* A rotated log that is equal to others. */
struct equal {
	unsigned log; /* judge_waits.h */
	const char *prefix;
	uint64_t since_ns;
	bool is_gone;
	bool is_due; /* a run has ended that had to send it */
};
static struct {
	struct equal *equals;
	size_t n_equals, n_equals_stored;
	struct line *lines;
	size_t n, cap;
	size_t *places;  /* hash table by id: the index of the line + 1, or 0 */
	size_t n_places; /* a power of two, more than twice n */
} state;

void lines_end(void)
{
	for (size_t i = 0; i < state.n; i++)
		free(state.lines[i].object);
	free(state.lines);
	free(state.places);
	free(state.equals);
	memset(&state, 0, sizeof state);
}

static size_t *place_of(uint64_t id)
{
	size_t at = (size_t)id & (state.n_places - 1); /* ids are random */
	while (state.places[at] && state.lines[state.places[at] - 1].id != id)
		at = (at + 1) & (state.n_places - 1);
	return &state.places[at];
}

static void grow(void)
{
	state.cap = 2 * state.cap + 256;
	state.n_places = state.n_places ? state.n_places : 256;
	while (state.n_places < 3 * state.cap)
		state.n_places *= 2;
	state.lines = realloc(state.lines, state.cap * sizeof *state.lines);
	free(state.places);
	state.places = calloc(state.n_places, sizeof *state.places);
	if (!state.lines || !state.places)
		abort();
	for (size_t i = 0; i < state.n; i++)
		*place_of(state.lines[i].id) = i + 1;
}

void lines_written(const char *prefix, uint64_t id, unsigned log)
{
	if (state.n == state.cap)
		grow();
	state.lines[state.n] =
		(struct line){.id = id, .since_ns = world_now_ns(), .prefix = prefix, .log = log};
	*place_of(id) = ++state.n;
}

void lines_repeated(const char *prefix, uint64_t id)
{
	lines_written(prefix, id, 0);
	state.lines[state.n - 1].may_be_twice = REPEATED;
}

void lines_equal_log(const char *prefix, unsigned log)
{
	state.equals = realloc(state.equals, (state.n_equals + 1) * sizeof *state.equals);
	if (!state.equals)
		abort();
	state.equals[state.n_equals++] =
		(struct equal){.log = log, .prefix = prefix, .since_ns = world_now_ns()};
}

void lines_equal_log_gone(unsigned log)
{
	for (size_t i = 0; i < state.n_equals; i++)
		if (state.equals[i].log == log)
			state.equals[i].is_gone = true;
}

/* Returns the next line of a log, or NULL, and moves *at behind it. *ret_n is its length. */
static struct line *next_line(const char **at, const char *end, size_t *ret_n)
{
	static const char word[] = "line ";
	const size_t chars = sizeof word - 1 + 16;
	char id[17], *id_end;
	const char *line = *at, *newline = memchr(line, '\n', (size_t)(end - line));
	*ret_n = (size_t)((newline ? newline + 1 : end) - line);
	*at = line + *ret_n;
	if (!newline || *ret_n < chars || memcmp(line, word, sizeof word - 1) != 0 || !state.n)
		return NULL;
	memcpy(id, line + sizeof word - 1, 16);
	id[16] = 0;
	const size_t place = *place_of(strtoull(id, &id_end, 16));
	if (*id_end)
		return NULL;
	return place ? &state.lines[place - 1] : NULL;
}

void lines_gone(const unsigned char *bytes, size_t n)
{
	size_t plain_n = 0, line_n;
	unsigned char *plain = content_decompress(bytes, n, &plain_n);
	const char *at = (const char *)plain, *end = at + plain_n;
	while (plain && at < end) {
		struct line *line = next_line(&at, end, &line_n);
		if (line)
			line->is_gone = true;
	}
	free(plain);
}

bool lines_are_stored(const unsigned char *bytes, size_t n)
{
	size_t plain_n = 0, line_n;
	bool ret = true;
	unsigned char *plain = content_decompress(bytes, n, &plain_n);
	const char *at = (const char *)plain, *end = at + plain_n;
	while (plain && at < end) {
		const struct line *line = next_line(&at, end, &line_n);
		ret &= !line || line->object || line->is_gone || line->may_be_twice == REPEATED;
	}
	free(plain);
	return ret;
}

void lines_bucket_anew(void)
{
	for (size_t i = 0; i < state.n; i++) {
		free(state.lines[i].object);
		state.lines[i].object = NULL;
	}
}

/* Whether two keys are of one piece, under any suffix. */
static bool is_same_piece(const char *a, const char *b)
{
	static const char *const suffixes[] = {".zst", ".gz"};
	size_t lengths[] = {strlen(a), strlen(b)};
	const char *const keys[] = {a, b};
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < sizeof suffixes / sizeof *suffixes; k++) {
			const size_t n = strlen(suffixes[k]);
			if (lengths[i] > n && strcmp(keys[i] + lengths[i] - n, suffixes[k]) == 0)
				lengths[i] -= n;
		}
	return lengths[0] == lengths[1] && strncmp(a, b, lengths[0]) == 0;
}

/* Only a change of options gives another suffix. */
static void forget(struct line *line)
{
	if (world.scenario.varies && line->may_be_twice == NEVER)
		line->may_be_twice = AS_SAME_PIECE;
}

void lines_forgotten(const char *key)
{
	for (size_t i = 0; i < state.n; i++)
		if (state.lines[i].object && is_same_piece(state.lines[i].object, key))
			forget(&state.lines[i]);
}

void lines_deleted(const char *key)
{
	for (size_t i = 0; i < state.n; i++) {
		struct line *line = &state.lines[i];
		if (!line->object || strcmp(line->object, key) != 0)
			continue;
		free(line->object);
		line->object = NULL;
		line->is_gone = true;
	}
}

void lines_power_failed(const char *prefix, uint64_t unsynced_ns)
{
	for (size_t i = 0; i < state.n; i++)
		if (strcmp(state.lines[i].prefix, prefix) == 0 && state.lines[i].object &&
			state.lines[i].sent_ns >= unsynced_ns)
			forget(&state.lines[i]);
}

void lines_restored(void)
{
	for (size_t i = 0; i < state.n; i++)
		state.lines[i].may_be_twice = CUT_ANEW;
}

static void store(struct line *line, const struct s3_stored *object, uint64_t sent_ns)
{
	const bool is_other = line->object && strcmp(line->object, object->key) != 0;
	const bool may_be = line->may_be_twice == CUT_ANEW || line->may_be_twice == REPEATED ||
			    (is_other && line->may_be_twice == AS_SAME_PIECE &&
				    is_same_piece(line->object, object->key));
	if (is_other && !may_be)
		story_break("%s gets the line %016llx, which is in %s already", object->key,
			(unsigned long long)line->id, line->object);
	free(line->object);
	line->object = strdup(object->key);
	line->sent_ns = sent_ns;
	if (line->may_be_twice != REPEATED)
		line->may_be_twice = NEVER;
}

void lines_stored(const struct s3_stored *object, uint64_t sent_ns)
{
	size_t n = 0, line_n;
	unsigned char *plain = content_decompress(object->bytes, object->n, &n);
	const char *at = (const char *)plain, *end = at + n;
	state.n_equals_stored += world.scenario.repeats != 0;
	if (!plain)
		story_break("%s gets a content that cannot be decompressed", object->key);
	while (plain && at < end) {
		const char *begin = at;
		struct line *line = next_line(&at, end, &line_n);
		if (line)
			store(line, object, sent_ns);
		else
			story_break("%s gets what no program wrote: %.*s", object->key, (int)line_n,
				begin);
	}
	free(plain);
}

/* Equal logs cannot be told apart, so their objects are counted. */
static void judge_equals(const char *when, uint64_t before_ns, const char *prefix,
	const struct machine_process *process)
{
	size_t n = 0;
	for (size_t i = 0; i < state.n_equals; i++) {
		struct equal *equal = &state.equals[i];
		equal->is_due |= !equal->is_gone && equal->since_ns < before_ns &&
				 strcmp(equal->prefix, prefix) == 0 &&
				 !waits_may(process, equal->log);
		n += equal->is_due;
	}
	if (n > state.n_equals_stored)
		story_break("%s, and of %zu equal logs only %zu are in S3", when, n,
			state.n_equals_stored);
}

void lines_judge(const char *when, uint64_t before_ns, const char *prefix,
	const struct machine_process *process)
{
	judge_equals(when, before_ns, prefix, process);
	for (size_t i = 0; i < state.n; i++) {
		const struct line *line = &state.lines[i];
		if (!line->is_gone && !line->object && line->may_be_twice != REPEATED &&
			line->since_ns < before_ns && strcmp(line->prefix, prefix) == 0 &&
			!waits_may(process, line->log))
			story_break("%s, and the line %016llx is not in S3", when,
				(unsigned long long)line->id);
	}
}
