/* Nobody may end a session of another process that lives, unless its heartbeats stay away for a
 * whole lease. The time is the world's, so that a clock that the program reads wrongly shows. */
#include "judge_sessions.h"
#include "story.h"
#include "tasks.h"
#include "world_dynamodb.h"
#include <stdlib.h>
#include <string.h>

struct session {
	char *pk;
	const struct machine_process *owner;
	uint64_t beat_ns, lease_ns, ended_ns; /* 0: it is open */
	struct session *next;
};
static struct session *sessions;

void sessions_end(void)
{
	for (struct session *next, *s = sessions; s; s = next) {
		next = s->next;
		free(s->pk);
		free(s);
	}
	sessions = NULL;
}

static struct session *find(const char *pk)
{
	for (struct session *s = sessions; s; s = s->next)
		if (strcmp(s->pk, pk) == 0)
			return s;
	return NULL;
}

static void begin(const struct wire_request *request, const char *pk, const json_t *now)
{
	struct session *session = calloc(1, sizeof *session);
	if (!session)
		abort();
	*session = (struct session){.pk = strdup(pk),
		.owner = request->from,
		.beat_ns = world_now_ns(),
		.lease_ns = strtoull(dynamodb_text(now, "lease"), NULL, 10) * 1000000,
		.next = sessions};
	sessions = session;
}

void sessions_item(
	const struct wire_request *request, const char *pk, const json_t *old, const json_t *now)
{
	struct session *session = find(pk);
	if (!now || strncmp(pk, "session#", 8) != 0)
		return;
	if (!session) {
		begin(request, pk, now);
		return;
	}
	if (strcmp(dynamodb_text(old, "version"), dynamodb_text(now, "version")) != 0)
		session->beat_ns = world_now_ns();
	if (session->ended_ns || strcmp(dynamodb_text(now, "state"), "open") == 0)
		return;
	session->ended_ns = world_now_ns();
	if (request->from != session->owner && !session->owner->is_over &&
		world_now_ns() - session->beat_ns < session->lease_ns)
		story_break("the session of %s, which lives, is ended %llu ms after its heartbeat",
			session->owner->name,
			(unsigned long long)(world_now_ns() - session->beat_ns) / 1000000);
}

const struct machine_process *session_owner(const char *id)
{
	for (const struct session *s = sessions; s; s = s->next)
		if (strcmp(s->pk + strlen("session#"), id) == 0)
			return s->owner;
	return NULL;
}

bool session_had_ended(const struct machine_process *process, uint64_t before_ns)
{
	for (const struct session *s = sessions; s; s = s->next)
		if (s->owner == process && s->ended_ns && s->ended_ns < before_ns)
			return true;
	return false;
}
