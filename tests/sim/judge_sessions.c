/* No process may end the session of another running process, unless heartbeats have been missing
 * for a whole lease. Nor may it end any session, unless its machine was shown the version a whole
 * lease ago, or the process of the session has exited on that machine. Times are world times, so a
 * wrong use of clocks shows. */
#include "judge_sessions.h"
#include "story.h"
#include "tasks.h"
#include "world_dynamodb.h"
#include <stdlib.h>
#include <string.h>

struct session {
	char *pk;
	const struct machine_process *owner;
	uint64_t beat_ns, lease_ns, ended_ns; /* 0: not ended */
	struct session *next;
};
static struct session *sessions;

/* A version of a session's row that a machine was shown. */
struct shown_version {
	const struct machine *to;
	char *pk, *version;
	uint64_t since_ns; /* time of the first reply that showed it */
	struct shown_version *next;
};
static struct shown_version *shown_versions;

void sessions_end(void)
{
	for (struct shown_version *next, *shown = shown_versions; shown; shown = next) {
		next = shown->next;
		free(shown->pk);
		free(shown->version);
		free(shown);
	}
	shown_versions = NULL;
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

static const struct shown_version *shown_to(
	const struct machine *machine, const char *pk, const char *version)
{
	const struct shown_version *shown = shown_versions;
	while (shown && (shown->to != machine || strcmp(shown->version, version) != 0 ||
				strcmp(shown->pk, pk) != 0))
		shown = shown->next;
	return shown;
}

static void note_shown(const struct machine *machine, const char *pk, const char *version)
{
	if (shown_to(machine, pk, version))
		return;
	struct shown_version *shown = calloc(1, sizeof *shown);
	if (!shown)
		abort();
	*shown = (struct shown_version){.to = machine,
		.pk = strdup(pk),
		.version = strdup(version),
		.since_ns = world_now_ns(),
		.next = shown_versions};
	shown_versions = shown;
}

void sessions_heard(const struct wire_request *request, const struct wire_reply *reply)
{
	const struct machine_process *to = request->from;
	const char *target = wire_header(request, "x-amz-target");
	if (!to || !target || !strstr(target, ".GetItem"))
		return;
	json_t *asked = json_loadb((const char *)request->body, request->body_bytes, 0, NULL);
	json_t *told = json_loadb(text_string(&reply->body), reply->body.len, 0, NULL);
	const char *pk = dynamodb_text(json_object_get(asked, "Key"), "pk");
	const char *version = dynamodb_text(json_object_get(told, "Item"), "version");
	if (strncmp(pk, "session#", 8) == 0 && *version)
		note_shown(to->machine, pk, version);
	json_decref(asked);
	json_decref(told);
}

/* Judges a process that ends the session of another one. The row has the version of `old`. */
static void judge_observer(
	const struct machine_process *by, const struct session *session, const char *version)
{
	const struct machine_process *owner = session->owner;
	const struct shown_version *shown = shown_to(by->machine, session->pk, version);
	if (owner->is_over && owner->machine == by->machine)
		return;
	if (!shown)
		story_break("%s ends the session of %s, whose version it was never shown", by->name,
			owner->name);
	else if (world_now_ns() - shown->since_ns < session->lease_ns)
		story_break("%s ends the session of %s %llu ms after it was shown its version",
			by->name, owner->name,
			(unsigned long long)(world_now_ns() - shown->since_ns) / 1000000);
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
	if (request->from && session->owner && request->from != session->owner)
		judge_observer(request->from, session, dynamodb_text(old, "version"));
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
