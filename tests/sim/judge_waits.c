#include "judge_waits.h"
#include "tasks.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REST_NS ((24 * 3600 + 60) * 1000000000ULL) /* one minute more, since clocks differ */

struct log {
	const char *prefix, *family;
	uint64_t moved_ns; /* last change of the family, in the last one of its logs */
	uint64_t written_ns;
	bool rests, is_open;
};
struct named {
	const char *prefix;
	char name[120];
	unsigned log;
	uint64_t since_ns, until_ns; /* until_ns is TASK_FOREVER while it has that name */
};
struct told {
	const struct machine_process *process;
	unsigned log;
};
static struct {
	struct log *logs;
	size_t n_logs;
	struct named *names;
	size_t n_names;
	struct told *told;
	size_t n_told;
} state;

void waits_end(void)
{
	free(state.logs);
	free(state.names);
	free(state.told);
	memset(&state, 0, sizeof state);
}

static void *grow(void *list, size_t n, size_t each)
{
	if (n & (n - 1)) /* there is room up to a power of two */
		return list;
	list = realloc(list, (n ? 2 * n : 1) * each);
	if (!list)
		abort();
	return list;
}

unsigned waits_log(const char *prefix, const char *family)
{
	state.logs = grow(state.logs, state.n_logs, sizeof *state.logs);
	state.logs[state.n_logs++] = (struct log){prefix, family, world_now_ns()};
	return (unsigned)state.n_logs;
}

void waits_name(const char *prefix, const char *name, unsigned log)
{
	for (size_t i = state.n_names; i > 0; i--) {
		struct named *named = &state.names[i - 1];
		if (strcmp(named->name, name) != 0 || strcmp(named->prefix, prefix) != 0)
			continue;
		if (named->until_ns == TASK_FOREVER)
			named->until_ns = world_now_ns();
		break;
	}
	if (!log)
		return;
	state.names = grow(state.names, state.n_names, sizeof *state.names);
	struct named *named = &state.names[state.n_names++];
	*named = (struct named){
		.prefix = prefix, .log = log, .since_ns = world_now_ns(), .until_ns = TASK_FOREVER};
	snprintf(named->name, sizeof named->name, "%s", name);
}

void waits_move(const char *prefix, const char *family)
{
	for (size_t i = 0; i < state.n_logs; i++)
		if (strcmp(state.logs[i].family, family) == 0 &&
			strcmp(state.logs[i].prefix, prefix) == 0)
			state.logs[i].moved_ns = world_now_ns();
}

void waits_told(const struct machine_process *process, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *prefix = run_prefix(process->machine);
	for (size_t i = 0; i < state.n_names; i++) {
		const struct named *named = &state.names[i];
		if (named->until_ns < process->began_ns || strcmp(named->name, name) != 0 ||
			strcmp(named->prefix, prefix) != 0)
			continue;
		state.told = grow(state.told, state.n_told, sizeof *state.told);
		state.told[state.n_told++] = (struct told){process, named->log};
	}
}

void waits_written(unsigned log)
{
	state.logs[log - 1].written_ns = world_now_ns();
}

void waits_rests(unsigned log)
{
	state.logs[log - 1].rests = true;
}

void waits_open(unsigned log, bool is_open)
{
	state.logs[log - 1].is_open = is_open;
}

bool waits_was_told(const struct machine_process *process, unsigned log)
{
	for (size_t i = 0; process && i < state.n_told; i++)
		if (state.told[i].process == process && state.told[i].log == log)
			return true;
	return false;
}

bool waits_may(const struct machine_process *process, unsigned log)
{
	if (!waits_was_told(process, log))
		return false;
	const struct log *of = &state.logs[log - 1];
	return of->moved_ns >= process->began_ns || of->is_open ||
	       (of->rests && process->began_ns < of->written_ns + REST_NS);
}

bool waits_is_settled(const char *prefix, const char *name, unsigned log, uint64_t before_ns)
{
	for (size_t i = 0; i < state.n_names; i++) {
		const struct named *named = &state.names[i];
		if (named->log == log && named->until_ns == TASK_FOREVER &&
			strcmp(named->name, name) == 0 && strcmp(named->prefix, prefix) == 0)
			return named->since_ns < before_ns &&
			       state.logs[log - 1].written_ns < before_ns;
	}
	return false;
}
