#include "judge_runs.h"
#include "judge.h"
#include "judge_content.h"
#include "story.h"
#include "world.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S     1000000000ULL
#define END_S        60 /* time that a run may take after its grace period */
#define CAUGHT_UP_NS NS_PER_S

const char rules_text[] = "[default]\nstorage-class = STANDARD_IA\n"
			  "[rule \"db*\"]\nstorage-class = ONEZONE_IA\n";

static struct {
	struct line {
		uint64_t since_ns, sent;
	} lines[MACHINES_MAX];
	uint64_t tokens[MACHINES_MAX +
			1]; /* token of the last act; the first element is for locks in the table */
} state;

void runs_begin(void)
{
	memset(&state, 0, sizeof state);
}

void runs_started(const struct machine_process *process)
{
	for (const struct machine_process *p = processes_first(); p; p = p->next)
		if (p != process && !p->is_over && p->machine == process->machine)
			return;
	state.lines[process->machine->index] = (struct line){.since_ns = world_now_ns()};
}

void runs_sent(const struct machine *machine, const struct wire_request *request)
{
	struct line *line = &state.lines[machine->index];
	const uint64_t rate = (uint64_t)world.scenario.rate_kib << 10;
	const uint64_t length_ns = world_now_ns() - line->since_ns + CAUGHT_UP_NS;
	if (!rate)
		return;
	line->sent += request->body_bytes;
	if ((double)line->sent > (double)rate * (double)length_ns / (double)NS_PER_S)
		story_break("%s has sent %llu bytes in %llu ms, at a limit of %llu a second",
			machine->name, (unsigned long long)line->sent,
			(unsigned long long)(length_ns - CAUGHT_UP_NS) / 1000000,
			(unsigned long long)rate);
}

/* A stopped process learns the time when it continues. */
static uint64_t grace_end_ns(const struct machine_process *process, uint64_t more_s)
{
	const uint64_t asked_ns = run_asked_ns(process);
	if (!asked_ns)
		return UINT64_MAX;
	const uint64_t end_ns = asked_ns + run_grace_ns(process);
	return (end_ns > process->continued_ns ? end_ns : process->continued_ns) +
	       more_s * NS_PER_S;
}

static void judge_settings(const struct wire_request *request, const struct s3_stored *now)
{
	const char *class = wire_header(request, "x-amz-storage-class");
	const char *slash = strrchr(now->key, '/');
	const char *wanted =
		slash && strncmp(slash + 1, "db", 2) == 0 ? "ONEZONE_IA" : "STANDARD_IA";
	if (!class || strcmp(class, wanted) != 0)
		story_break("%s is stored as %s, and its rule says %s", now->key,
			class ? class : "nothing", wanted);
}

void runs_stored(const struct wire_request *request, const struct s3_stored *now)
{
	const struct machine_process *from = request->from;
	if (strcmp(now->key, WORLD_ID_OBJECT) == 0 && !*now->etag_before && from &&
		from->machine->knows_id && !world.scenario.backups && !world.is_anew &&
		!request->is_late && !run_was_told_of_bucket(from))
		story_break("%s makes %s again, and nobody has said that it is the same bucket",
			from->name, now->key);
	if (request->sent_ns > grace_end_ns(request->from, 1))
		story_break("%s is written by a run whose grace is over", now->key);
	if (world.scenario.rules && !runs_own(now->key) && strcmp(request->method, "PUT") == 0)
		judge_settings(request, now);
}

void runs_ended(const struct machine_process *process)
{
	if (world_now_ns() > grace_end_ns(process, END_S))
		story_break("%s ends %llu s after it was asked to", process->name,
			(unsigned long long)((world_now_ns() - run_asked_ns(process)) / NS_PER_S));
}

bool runs_own(const char *key)
{
	return strcmp(key, WORLD_ID_OBJECT) == 0 || strstr(key, "_s3once/runs/") != NULL;
}

/* The run has found the object at some moment. Another run may have sent a later version since. */
static void judge_line(const char *manifest, const char *line, uint64_t began_ns)
{
	json_t *entry = json_loads(line, 0, NULL);
	const char *key = json_string_value(json_object_get(entry, "key"));
	const char *etag = json_string_value(json_object_get(entry, "etag"));
	const struct s3_stored *object = key ? world_s3_object(world.s3, key) : NULL;
	if (!key || !etag)
		story_break("%s has a line without a key or an etag: %s", manifest, line);
	else if (!object && !world_loses_objects())
		story_break("%s lists %s, which is not there", manifest, key);
	else if (object && *etag && strcmp(etag, object->etag) != 0 && !judge_may_differ(key) &&
		 !judge_had_etag(key, etag, began_ns))
		story_break("%s lists %s with the etag %s, and it has %s", manifest, key, etag,
			object->etag);
	json_decref(entry);
}

void runs_manifest(const char *key, const struct s3once_counts *counts, uint64_t began_ns)
{
	const struct s3_stored *object = world_s3_object(world.s3, key);
	const uint64_t there =
		counts->uploaded + counts->adopted + counts->refreshed + counts->skipped;
	uint64_t lines = 0;
	size_t n = 0;
	unsigned char *bytes = object ? content_decompress(object->bytes, object->n, &n) : NULL;
	if (!bytes) {
		story_break("the manifest %s is not there, or cannot be decompressed", key);
		return;
	}
	char *text = strndup((const char *)bytes, n), *rest = text;
	for (char *line; (line = strsep(&rest, "\n")) && *line; lines++)
		judge_line(key, line, began_ns);
	if (lines != there)
		story_break("%s lists %llu files, and %llu are there", key,
			(unsigned long long)lines, (unsigned long long)there);
	free(text);
	free(bytes);
}

void runs_act(const struct machine *machine, uint64_t token)
{
	uint64_t *last = &state.tokens[machine ? machine->index + 1 : 0];
	if (token < *last)
		story_break("the holder of a lock acts under the token %llu after one with %llu",
			(unsigned long long)token, (unsigned long long)*last);
	*last = token;
}
