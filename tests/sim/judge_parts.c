#include "judge_parts.h"
#include "machines.h"
#include "story.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1000000000ULL
/* The time after --give-up-after for attempts of a last request, pauses, and turns of other files.
 */
#define LAST_S 1800

struct listed {
	char id[48];
	unsigned number;
	unsigned char md5[16];
	const struct machine_process *to;
	uint64_t request;  /* number of the request */
	uint64_t heard_ns; /* 0: the reply is on its way, or lost */
};
/* The parts of one object that a process has seen. */
struct progress {
	char *path;
	const struct machine_process *of;
	uint64_t since_ns; /* time at which it began to send, or of the last new part */
};
/* A part that the server has received at some time. */
struct got {
	char id[48];
	unsigned number;
};
static struct {
	struct listed *listed;
	size_t n_listed;
	struct progress *progress;
	size_t n_progress;
	struct got *got;
	size_t n_got;
} state;

void parts_end(void)
{
	for (size_t i = 0; i < state.n_progress; i++)
		free(state.progress[i].path);
	free(state.listed);
	free(state.progress);
	free(state.got);
	memset(&state, 0, sizeof state);
}

static void *add(void **list, size_t *n, size_t each)
{
	*list = realloc(*list, (*n + 1) * each);
	if (!*list)
		abort();
	void *ret = (char *)*list + (*n)++ * each;
	memset(ret, 0, each);
	return ret;
}

void parts_listed(void *arg, const struct wire_request *request, const struct s3_part_shown *shown)
{
	if (request->is_late)
		return;
	struct listed *listed = add((void **)&state.listed, &state.n_listed, sizeof *state.listed);
	snprintf(listed->id, sizeof listed->id, "%s", shown->id);
	listed->number = shown->number;
	memcpy(listed->md5, shown->md5, sizeof listed->md5);
	listed->to = request->from;
	listed->request = request->number;
}

void parts_heard(const struct wire_request *request)
{
	for (size_t i = state.n_listed; i > 0; i--)
		if (state.listed[i - 1].request == request->number)
			state.listed[i - 1].heard_ns = world_now_ns();
}

static void judge_again(const struct wire_request *request, const struct s3_part_shown *part)
{
	for (size_t i = 0; i < state.n_listed; i++) {
		const struct listed *listed = &state.listed[i];
		if (listed->to == request->from && listed->heard_ns &&
			listed->heard_ns < request->sent_ns && listed->number == part->number &&
			strcmp(listed->id, part->id) == 0 &&
			memcmp(listed->md5, part->md5, sizeof listed->md5) == 0)
			story_break("part %u of %s is sent again, although the server has shown "
				    "that it has these bytes",
				part->number, request->path);
	}
}

/* Whether the server receives this part for the first time. */
static bool is_new(const struct s3_part_shown *part)
{
	for (size_t i = 0; i < state.n_got; i++)
		if (state.got[i].number == part->number && strcmp(state.got[i].id, part->id) == 0)
			return false;
	struct got *got = add((void **)&state.got, &state.n_got, sizeof *state.got);
	snprintf(got->id, sizeof got->id, "%s", part->id);
	got->number = part->number;
	return true;
}

void parts_stored(void *arg, const struct wire_request *request, const struct s3_part_shown *part)
{
	if (!request->is_late)
		judge_again(request, part);
	if (!is_new(part))
		return;
	for (size_t i = 0; i < state.n_progress; i++)
		if (strcmp(state.progress[i].path, request->path) == 0)
			state.progress[i].since_ns = world_now_ns();
}

static struct progress *progress_of(const struct wire_request *request)
{
	for (size_t i = 0; i < state.n_progress; i++)
		if (state.progress[i].of == request->from &&
			strcmp(state.progress[i].path, request->path) == 0)
			return &state.progress[i];
	struct progress *ret =
		add((void **)&state.progress, &state.n_progress, sizeof *state.progress);
	ret->path = strdup(request->path);
	ret->of = request->from;
	ret->since_ns = request->sent_ns;
	return ret;
}

void parts_sent(const struct wire_request *request)
{
	const struct machine_process *from = request->from;
	if (!from || !world.scenario.give_up_s)
		return;
	struct progress *progress = progress_of(request);
	/* A process that was stopped or suspended has had no time. */
	if (from->continued_ns > progress->since_ns || from->suspended_ns)
		progress->since_ns = request->sent_ns;
	const uint64_t most_s = world.scenario.give_up_s + LAST_S;
	if (request->sent_ns - progress->since_ns > most_s * NS_PER_S)
		story_break("%s sends a part of %s %llu s after the last new one, and gives up "
			    "after %u s",
			from->name, request->path,
			(unsigned long long)((request->sent_ns - progress->since_ns) / NS_PER_S),
			world.scenario.give_up_s);
}
