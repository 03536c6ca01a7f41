#include "rivals.h"
#include "chance.h"
#include "tasks.h"
#include <stdlib.h>
#include <string.h>

/* A row, named by the text of its keys in a request, or an object, named by its path. */
struct target {
	char *name;
	const void *writer; /* the last writer */
	struct target *next;
};
struct rival {
	const struct target *target;
	const void *from;
	bool has_met;
	struct rival *next;
};
static struct {
	struct chance chance;
	unsigned per_mille;
	struct target *targets;
	struct rival *rivals;
} state;

void rivals_begin(uint64_t seed, unsigned per_mille)
{
	for (struct target *next, *t = state.targets; t; t = next) {
		next = t->next;
		free(t->name);
		free(t);
	}
	for (struct rival *next, *r = state.rivals; r; r = next) {
		next = r->next;
		free(r);
	}
	memset(&state, 0, sizeof state);
	state.chance = chance_of(seed, "rivals");
	state.per_mille = per_mille;
}

void rivals_calm(void)
{
	state.per_mille = 0;
	for (struct rival *rival = state.rivals; rival; rival = rival->next) {
		rival->has_met = true;
		task_wake_all(rival);
	}
}

/* Returns the name of a request's target, or NULL if it writes nothing. The caller frees it. */
static char *name_of(const struct wire_request *request)
{
	static const char first[] = "\"pk\":{\"S\":\"", second[] = "\"sk\":{\"S\":\"";
	const char *target = wire_header(request, "x-amz-target");
	const char *body = (const char *)request->body, *end = body + request->body_bytes;
	if (!target)
		return *request->method == 'P' ? strdup(request->path) : NULL;
	if (!strstr(target, ".UpdateItem") && !strstr(target, ".PutItem"))
		return NULL;
	const char *pk = memmem(body, request->body_bytes, first, sizeof first - 1);
	const char *sk = pk ? memmem(pk, (size_t)(end - pk), second, sizeof second - 1) : NULL;
	const char *stop =
		sk ? memchr(sk + sizeof second - 1, '"', (size_t)(end - sk) - (sizeof second - 1))
		   : NULL;
	return stop ? strndup(pk, (size_t)(stop - pk)) : NULL;
}

static struct target *find(const char *name)
{
	struct target *target = state.targets;
	while (target && strcmp(target->name, name) != 0)
		target = target->next;
	return target;
}

struct rival *rivals_hold(const struct wire_request *request)
{
	if (!state.per_mille || !request->from)
		return NULL;
	char *name = name_of(request);
	const struct target *target = name ? find(name) : NULL;
	free(name);
	if (!target || !target->writer || target->writer == request->from ||
		!chance_hits(&state.chance, state.per_mille))
		return NULL;
	struct rival *rival = calloc(1, sizeof *rival);
	if (!rival)
		abort();
	*rival = (struct rival){.target = target, .from = request->from, .next = state.rivals};
	state.rivals = rival;
	return rival;
}

bool rivals_have_met(const struct rival *rival)
{
	return rival->has_met;
}

void rivals_let_in(struct rival *rival)
{
	struct rival **at = &state.rivals;
	while (*at != rival)
		at = &(*at)->next;
	*at = rival->next;
	free(rival);
}

void rivals_wrote(const struct wire_request *request)
{
	char *name = state.per_mille ? name_of(request) : NULL;
	struct target *target = name ? find(name) : NULL;
	if (name && !target) {
		target = calloc(1, sizeof *target);
		if (!target)
			abort();
		*target = (struct target){.name = name, .next = state.targets};
		state.targets = target;
	} else {
		free(name);
	}
	if (!target)
		return;
	target->writer = request->from;
	for (struct rival *rival = state.rivals; rival; rival = rival->next)
		if (rival->target == target && rival->from != request->from) {
			rival->has_met = true;
			task_wake_all(rival);
		}
}
