/* Functions for the events of --json of all commands: beginning an event, setting members, and
 * printing it. The members of each event are chosen where it is made: in push/run_events.c for a
 * run, in status/status_print.c for status, and in the files of the other commands. */
#include "cli/json.h"
#include "base/clock.h"
#include <stdlib.h>

/* Returns the value of a member that json_set_bytes() does not set. The caller owns the
 * reference. */
static json_t *value_of(const struct json_member *member)
{
	char time[21];
	switch (member->kind) {
	case IS_NUMBER:
		return json_integer(member->number);
	case IS_TIME:
		if (member->number <= 0)
			return json_null();
		clock_format_iso(member->number, time);
		return json_string(time);
	case IS_BOOLEAN:
		return json_boolean(member->number);
	case IS_NODE:
		return member->node;
	case IS_BYTES: /* BYTES(name, NULL) becomes null */
		break;
	}
	return json_null();
}

json_t *json_set_members(json_t *object, const struct json_member *members)
{
	for (const struct json_member *m = members; m->name; m++)
		if (m->kind == IS_BYTES && m->bytes)
			json_set_bytes(object, m->name, m->bytes);
		else
			json_object_set_new(object, m->name, value_of(m));
	return object;
}

json_t *json_set_problem(json_t *object, const struct problem *problem)
{
	static const struct problem none;
	problem = problem ? problem : &none;
	return json_set(object, BYTES("text", problem->text), BYTES("code", problem->code),
		BYTES("request_id", problem->request_id));
}

json_t *json_event(const char *name)
{
	int64_t ns = clock_wall_ns();
	char second[21], time[32];
	clock_format_iso(ns / (int64_t)NS_PER_S, second);
	second[19] = 0; /* cuts off the Z, which comes after the milliseconds */
	snprintf(time, sizeof time, "%s.%03dZ", second, (int)(ns / (int64_t)NS_PER_MS % 1000));
	return json_pack("{s:i, s:s, s:s}", "v", 1, "event", name, "time", time);
}

char *json_line(json_t *object)
{
	char *line = object ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	return line;
}

void json_print(struct output *output, json_t *object)
{
	char *line = json_line(object);
	if (line)
		output_result(output, line);
	else
		output_message(output, "error: an event is lost: out of memory");
	free(line);
}
