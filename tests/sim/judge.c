/* Implements judge.h. For each key it records every content of the file, the reports about the
 * object, and the claims in their order. */
#include "judge.h"
#include "judge_content.h"
#include "judge_lines.h"
#include "judge_parts.h"
#include "judge_runs.h"
#include "judge_sessions.h"
#include "judge_waits.h"
#include "pipes.h"
#include "story.h"
#include "trace.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL_MOST_NS 3000000U /* the longest file system call (world.c) */

struct had {
	struct content content;
	uint64_t since_ns;
};
struct claim_made {
	char id[40];
	uint64_t at_ns;
	bool is_taken; /* taken over from an earlier claim, whose requests may still arrive */
};
struct known {
	char *key; /* key of the object, without a suffix */
	struct had *had;
	size_t n_had;
	bool is_there;   /* the file exists, with its last content */
	bool is_removed; /* a run has removed the file after its upload */
	bool is_deleted; /* people have deleted its object */
	bool was_told;
	uint64_t told_ns;
	struct content told;       /* content of the object at that time */
	uint64_t stored_ns;        /* time of the last write of its object */
	struct claim_made *claims; /* in the order of the claims */
	size_t n_claims;
};
/* The content of a rotated log. */
struct log {
	struct content content;
	const char *prefix;
	uint64_t since_ns;
	unsigned number; /* judge_waits.h */
	bool is_gone;
};
/* An object that people have deleted. */
struct deleted {
	struct content content;
	uint64_t at_ns;
};
/* An object that was replaced. */
struct replaced {
	char *key, *etag;
	uint64_t at_ns;
};
/* An object that the reply to a HEAD has shown to a process. */
struct shown {
	char *key, *etag;
	struct content content;
	const void *to;
	uint64_t at_ns;
};
static struct {
	struct known *known;
	size_t n;
	struct log *logs;
	size_t n_logs;
	struct deleted *deleted;
	size_t n_deleted;
	struct replaced *replaced;
	size_t n_replaced;
	struct shown *shown;
	size_t n_shown;
	const struct node *opened; /* the last file that a program opened for writing */
	uint64_t opened_ns;
	bool has_forgotten;
	uint64_t restored_ns; /* time of the last restoration of earlier marks */
} judge;

void judge_begin(void)
{
	judge_end();
}

void judge_end(void)
{
	for (size_t i = 0; i < judge.n; i++) {
		free(judge.known[i].key);
		free(judge.known[i].had);
		free(judge.known[i].claims);
	}
	free(judge.known);
	for (size_t i = 0; i < judge.n_replaced; i++) {
		free(judge.replaced[i].key);
		free(judge.replaced[i].etag);
	}
	for (size_t i = 0; i < judge.n_shown; i++) {
		free(judge.shown[i].key);
		free(judge.shown[i].etag);
	}
	free(judge.shown);
	free(judge.logs);
	free(judge.deleted);
	free(judge.replaced);
	sessions_end();
	lines_end();
	waits_end();
	parts_end();
	memset(&judge, 0, sizeof judge);
}

static struct known *known_of(const char *key)
{
	for (size_t i = 0; i < judge.n; i++)
		if (strcmp(judge.known[i].key, key) == 0)
			return &judge.known[i];
	judge.known = realloc(judge.known, (judge.n + 1) * sizeof *judge.known);
	if (!judge.known)
		abort();
	judge.known[judge.n] = (struct known){.key = strdup(key)};
	return &judge.known[judge.n++];
}

static const char *const suffixes[] = {".zst", ".gz", ""};

static bool ends_with(const char *s, const char *end)
{
	const size_t n = strlen(s), chars = strlen(end);
	return n >= chars && strcmp(s + n - chars, end) == 0;
}

/* Returns the file whose object has this key. No file of people has such a suffix. */
static struct known *file_of(const char *object_key)
{
	char key[1100];
	size_t i = 0;
	while (!ends_with(object_key, suffixes[i]))
		i++;
	snprintf(key, sizeof key, "%.*s", (int)(strlen(object_key) - strlen(suffixes[i])),
		object_key);
	return known_of(key);
}

static void add_content(struct known *known, const void *bytes, size_t n)
{
	known->had = realloc(known->had, (known->n_had + 1) * sizeof *known->had);
	if (!known->had)
		abort();
	known->had[known->n_had++] =
		(struct had){.content = content_of(bytes, n), .since_ns = world_now_ns()};
}

void judge_content(const char *path, const struct node *node)
{
	struct known *known = known_of(path);
	known->is_there = node != NULL;
	known->is_removed = false;
	add_content(known, node ? node->data : NULL, node ? (size_t)node->size : 0);
}

/* This precedes the keys of files on the machine whose disk is a copy. */
static const char copied[] = "copy of ";

static const char *key_in_s3(const struct known *known)
{
	const size_t n = sizeof copied - 1;
	return strncmp(known->key, copied, n) == 0 ? known->key + n : known->key;
}

void judge_copied_content(const char *path, const struct node *node)
{
	char key[1100];
	snprintf(key, sizeof key, "%s%s", copied, path);
	judge_content(key, node);
	/* For the object's own file, its last content stays the last one. */
	struct known *known = known_of(path);
	add_content(known, node ? node->data : NULL, node ? (size_t)node->size : 0);
	const struct had last = known->had[known->n_had - 1];
	memmove(known->had + 1, known->had, (known->n_had - 1) * sizeof *known->had);
	known->had[0] = last;
}

void judge_output(const char *key, const void *bytes, size_t n)
{
	add_content(known_of(key), bytes, n);
}

static struct content content_of_log(const void *bytes, size_t n)
{
	size_t plain_n = 0;
	unsigned char *plain = content_decompress(bytes, n, &plain_n);
	const struct content ret =
		plain ? content_of(plain, plain_n) : (struct content){.n = SIZE_MAX};
	free(plain);
	return ret;
}

static struct log *log_of(const struct content *content)
{
	for (size_t i = 0; i < judge.n_logs; i++)
		if (content_is_same(&judge.logs[i].content, content))
			return &judge.logs[i];
	return NULL;
}

void judge_log(const char *prefix, unsigned log, const void *bytes, size_t n)
{
	if (world.scenario.repeats)
		lines_equal_log(prefix, log);
	if (world.scenario.live)
		return; /* its lines are known */
	judge.logs = realloc(judge.logs, (judge.n_logs + 1) * sizeof *judge.logs);
	if (!judge.logs)
		abort();
	judge.logs[judge.n_logs++] =
		(struct log){content_of_log(bytes, n), prefix, world_now_ns(), log, false};
}

void judge_log_gone(const struct node *node)
{
	if (world.scenario.repeats)
		lines_equal_log_gone(node->log);
	if (world.scenario.live)
		lines_gone(node->data, (size_t)node->size);
	const struct content content = content_of_log(node->data, (size_t)node->size);
	struct log *log = log_of(&content);
	if (log)
		log->is_gone = true;
}

/* Returns the position of a content in the history of the file, from 1; 0 if the file never had it.
 */
static size_t version_of(const struct known *known, const struct content *content)
{
	for (size_t i = known->n_had; i > 0; i--)
		if (content_is_same(&known->had[i - 1].content, content))
			return i;
	return 0;
}

static bool had_it(const struct known *known, const struct content *content)
{
	return version_of(known, content) != 0;
}

/* Whether this file has had its present content since before that time. */
static bool is_settled(const struct known *known, uint64_t before_ns)
{
	return known->is_there && known->had[known->n_had - 1].since_ns < before_ns;
}

void judge_told(const char *key)
{
	struct known *known = file_of(key);
	const struct s3_stored *object = world_s3_object(world.s3, key);
	if (!object) {
		if (known->is_deleted)
			return;
		story_break("%s was told to be in S3, and is not there", key);
		return;
	}
	known->told_ns = world_now_ns();
	known->told = object->content;
	known->was_told = true;
}

/* If a server ignores conditions, or evaluates them too early, the promises hold only while a file
 * does not change and no other client writes its key (docs/guarantees.md). */
static bool may_not_hold(const struct known *known)
{
	return known->n_had != 1 || world.scenario.foreign || world.scenario.varies ||
	       world_rotates_key(known->key);
}

/* Whether a power cut has undone the file's last change, and restored marks may call that earlier
 * version done, although the object is the later one. */
static bool is_undone_and_restored(const struct known *known)
{
	bool is_undone = false;
	for (size_t i = 0; i + 1 < known->n_had; i++)
		is_undone |= content_is_same(
			&known->had[i].content, &known->had[known->n_had - 1].content);
	return is_undone && known->stored_ns < judge.restored_ns;
}

/* Two cases that no client can prevent: people have restored marks from before the object; or a
 * late request of an uploader whose file was taken over has replaced an earlier version that the
 * other uploader left alone. Neither lasts if the file exists, has changed, and may be replaced. */
bool judge_may_differ(const char *key)
{
	const struct known *known = file_of(key);
	const struct s3_stored *object = world_s3_object(world.s3, key);
	const bool leaves_earlier = world.scenario.if_changed || world.scenario.varies;
	if (world.scenario.ignores && may_not_hold(known))
		return true;
	if (!object || world_rotates_key(key) ||
		(world.is_calm && known->is_there && !known->is_removed &&
			!world.scenario.if_changed && !is_undone_and_restored(known)))
		return false;
	return known->stored_ns < judge.restored_ns ||
	       (leaves_earlier &&
		       version_of(known, &object->content) > version_of(known, &known->told));
}

bool judge_may_miss(const char *key)
{
	const struct known *known = file_of(key);
	return world.is_anew && !world_rotates_key(key) && !known->is_there && !known->was_told;
}

void judge_bucket_anew(void)
{
	trace_bucket_anew();
	for (size_t i = 0; i < judge.n; i++)
		judge.known[i].was_told = false;
	lines_bucket_anew();
}

void judge_deleted(const struct s3_stored *object)
{
	struct known *known = file_of(object->key);
	lines_deleted(object->key);
	known->is_deleted = true;
	known->was_told = false;
	judge.deleted = realloc(judge.deleted, (judge.n_deleted + 1) * sizeof *judge.deleted);
	if (!judge.deleted)
		abort();
	judge.deleted[judge.n_deleted++] = (struct deleted){object->content, world_now_ns()};
}

static bool was_deleted_since(const struct content *content, uint64_t since_ns)
{
	for (size_t i = 0; i < judge.n_deleted; i++)
		if (content_is_same(&judge.deleted[i].content, content) &&
			judge.deleted[i].at_ns >= since_ns)
			return true;
	return false;
}

static const struct node *marks_of(const struct machine *machine, const char *suffix)
{
	char path[100];
	snprintf(path, sizeof path, "/home/up/.local/state/s3once/marks.db%s", suffix);
	return disk_get(machine->disk, path);
}

void judge_forgotten_as_missing(const char *key, const char *suffix, uint64_t began_ns)
{
	char object_key[1100];
	snprintf(object_key, sizeof object_key, "%s%s", key, suffix);
	const struct s3_stored *object = world_s3_object(world.s3, object_key);
	if (object && object->stored_ns < began_ns)
		story_break("the mark of %s is forgotten, since its object were missing, and %s is "
			    "there",
			key, object_key);
}

void judge_forgotten(const char *key)
{
	judge.has_forgotten = true;
	lines_forgotten(key);
}

void judge_aborted(const char *key, const char *upload)
{
	const json_t *item;
	const char *id;
	size_t n_parts;
	for (size_t i = 0; (id = world_s3_upload_at(world.s3, i, &n_parts)); i++)
		if (strcmp(id, upload) == 0)
			story_break("the upload %s of %s was aborted, and is there with %zu parts",
				upload, key, n_parts);
	for (size_t i = 0; (item = world_dynamodb_at(world.db, i)); i++)
		if (strcmp(dynamodb_text(item, "sk"), key) == 0 &&
			strcmp(dynamodb_text(item, "state"), "failed") == 0 &&
			strcmp(dynamodb_text(item, "upload"), upload) == 0)
			story_break("the upload %s of %s was aborted, and its mark names it still",
				upload, key);
}

void judge_power_fails(const struct machine *machine)
{
	const struct node *database = marks_of(machine, ""), *log = marks_of(machine, "-wal");
	vfs_power_fails(machine);
	if (database && database->n_unsynced)
		lines_power_failed(run_prefix(machine), database->unsynced_ns);
	if (log && log->n_unsynced)
		lines_power_failed(run_prefix(machine), log->unsynced_ns);
}

void judge_restored(void)
{
	judge.restored_ns = world_now_ns();
	lines_restored();
}

static bool is_mark(const char *pk)
{
	return strchr(pk, '#') && strchr(pk, '/') && strncmp(pk, "bucket#", 7) != 0;
}

static bool is_open(const char *session)
{
	char pk[80];
	snprintf(pk, sizeof pk, "session#%s", session);
	const json_t *row = world_dynamodb_item(world.db, pk, "-");
	return row && strcmp(dynamodb_text(row, "state"), "open") == 0;
}

/* Returns when a process last knew that the object has this etag: by a HEAD, or else when it sent
 * this request. A late request may have replaced the object since. */
static uint64_t knew_etag_ns(const struct wire_request *request, const char *key, const char *etag)
{
	for (size_t i = judge.n_shown; i-- > 0;) {
		const struct shown *shown = &judge.shown[i];
		if (shown->to == request->from && shown->at_ns <= request->sent_ns &&
			strcmp(shown->key, key) == 0)
			return strcmp(shown->etag, etag) == 0 ? shown->at_ns : request->sent_ns;
	}
	return request->sent_ns;
}

static void judge_done(const struct wire_request *request, const char *sk, const json_t *now)
{
	const char *etag = dynamodb_text(now, "etag");
	char key[1100];
	snprintf(key, sizeof key, "%s%s", sk, dynamodb_text(now, "suffix"));
	const struct s3_stored *object = world_s3_object(world.s3, key);
	const bool may_be_replaced = world.scenario.ignores && may_not_hold(known_of(sk));
	if (may_be_replaced || world_loses_objects())
		return; /* replaced by a late or simultaneous request */
	if (!object)
		story_break("the mark of %s becomes done, and there is no object %s", sk, key);
	else if (*etag && strcmp(etag, object->etag) != 0 &&
		 !judge_had_etag(key, etag, knew_etag_ns(request, key, etag)))
		story_break("the mark of %s becomes done with the etag %s, and the object has %s",
			sk, etag, object->etag);
}

static void judge_claimed(const struct wire_request *request, const struct known *known,
	const json_t *old, const json_t *now)
{
	const char *claim = dynamodb_text(old, "claim"), *state = dynamodb_text(now, "state");
	size_t i = 0;
	if (strcmp(claim, dynamodb_text(now, "claim")) != 0 || strcmp(state, "forgotten") == 0)
		return;
	while (i < known->n_claims && strcmp(known->claims[i].id, claim) != 0)
		i++;
	if (session_owner(dynamodb_text(old, "session")) != request->from)
		story_break("the mark of %s, which another run has claimed, becomes %s", known->key,
			state);
	else if (i < known->n_claims && request->sent_ns < known->claims[i].at_ns)
		story_break("the mark of %s becomes %s by a request from before its claim",
			known->key, state);
}

/* The file has not changed since it was done. A run that began before may know an earlier version.
 */
static void judge_claim_of_done(
	const struct machine_process *process, const struct known *known, const json_t *old)
{
	char key[1100];
	snprintf(key, sizeof key, "%s%s", known->key, dynamodb_text(old, "suffix"));
	const struct s3_stored *object = world_s3_object(world.s3, key);
	if (object && is_settled(known, process->began_ns) && !world.scenario.varies &&
		!world.scenario.ignores && strcmp(dynamodb_text(old, "etag"), object->etag) == 0 &&
		content_is_same(&known->had[known->n_had - 1].content, &object->content))
		story_break(
			"%s is claimed again, although it is done and has not changed", known->key);
}

static void note_claim(struct known *known, const char *claim, bool is_taken)
{
	if (known->n_claims && strcmp(known->claims[known->n_claims - 1].id, claim) == 0)
		return;
	known->claims = realloc(known->claims, (known->n_claims + 1) * sizeof *known->claims);
	if (!known->claims)
		abort();
	struct claim_made *made = &known->claims[known->n_claims++];
	*made = (struct claim_made){.at_ns = world_now_ns(), .is_taken = is_taken};
	snprintf(made->id, sizeof made->id, "%s", claim);
}

void judge_item(void *arg, const struct wire_request *request, const char *pk, const char *sk,
	const json_t *old, const json_t *now)
{
	trace_item(request, pk, sk, old, now);
	sessions_item(request, pk, old, now);
	if (is_mark(pk) && !now && is_open(dynamodb_text(old, "session")) &&
		strcmp(dynamodb_text(old, "state"), "claimed") == 0)
		story_break("the claim of %s is removed from a session that is open", sk);
	if (!is_mark(pk) || !now)
		return;
	const char *state = dynamodb_text(now, "state"), *before = dynamodb_text(old, "state");
	const char *session = dynamodb_text(now, "session");
	const char *other = dynamodb_text(old, "session");
	const bool was_done = strcmp(before, "done") == 0;
	judge.has_forgotten = judge.has_forgotten || strcmp(state, "forgotten") == 0;
	if (strcmp(state, "done") == 0 && !was_done)
		judge_done(request, sk, now);
	if (strcmp(before, "claimed") == 0 && strcmp(session, other) != 0 && is_open(other))
		story_break("the claim of %s is taken from a session that is open", sk);
	struct known *known = known_of(sk);
	if (strcmp(before, "claimed") == 0)
		judge_claimed(request, known, old, now);
	if (was_done && strcmp(state, "claimed") == 0)
		judge_claim_of_done(request->from, known, old);
	if (strcmp(state, "claimed") == 0)
		note_claim(known, dynamodb_text(now, "claim"),
			strcmp(before, "claimed") == 0 || strcmp(before, "failed") == 0);
}

/* A run that takes a file over checks for its object first. A condition would protect the object,
 * but only after all of its bytes were sent again. */
void judge_refused_object(
	void *arg, const struct wire_request *request, const struct s3_stored *there)
{
	const char *id = wire_header(request, "x-amz-meta-s3once-claim");
	const struct known *known = file_of(there->key);
	const struct claim_made *claim = NULL;
	struct content raw = {.n = there->n};
	memcpy(raw.md5, there->sums.md5, sizeof raw.md5);
	const struct content sent = content_of(request->body, request->body_bytes);
	for (size_t i = 0; id && i < known->n_claims; i++)
		if (strcmp(known->claims[i].id, id) == 0)
			claim = &known->claims[i];
	if (claim && claim->is_taken && !request->is_late && there->stored_ns < claim->at_ns &&
		content_is_same(&sent, &raw))
		story_break("%s is sent again by who has taken it over, and was there before",
			there->key);
}

void judge_shown_object(
	void *arg, const struct wire_request *request, const struct s3_stored *object)
{
	judge.shown = realloc(judge.shown, (judge.n_shown + 1) * sizeof *judge.shown);
	if (!judge.shown)
		abort();
	judge.shown[judge.n_shown++] = (struct shown){strdup(object->key), strdup(object->etag),
		object->content, request->from, world_now_ns()};
}

bool judge_was_shown(const struct machine_process *process, const char *key)
{
	for (size_t i = 0; i < judge.n_shown; i++)
		if (judge.shown[i].to == process && strcmp(judge.shown[i].key, key) == 0)
			return true;
	return false;
}

/* DynamoDB refuses a batch that names an item twice. */
void judge_batch_refused(void)
{
	story_break("a batch names an item twice");
}

/* Returns the position of the object's claim among the claims of the key, from 1; 0 if it is none
 * of them. */
static size_t rank(const struct known *known, const struct s3_stored *object)
{
	const char *claim = s3_stored_header(object, "x-amz-meta-s3once-claim");
	for (size_t i = 0; claim && i < known->n_claims; i++)
		if (strcmp(known->claims[i].id, claim) == 0)
			return i + 1;
	return 0;
}

static void judge_replacement(const struct wire_request *request, const struct s3_stored *before,
	const struct s3_stored *now, const struct known *known, const struct content *content)
{
	/* Conditions would prevent it. For a file that does not change, a late request has the same
	 * content. */
	if (world.scenario.ignores == 1 && (may_not_hold(known) || request->is_late))
		return;
	if (world.scenario.ignores == 2 && !request->is_late &&
		before->stored_ns > request->sent_ns)
		return;
	if (before->is_foreign)
		story_break("%s, which is somebody else's, is overwritten", now->key);
	if (content_is_same(&before->content, content) && known->was_told && !request->is_late &&
		request->sent_ns > known->told_ns)
		story_break("%s is sent a second time, although it was told to be there", now->key);
	if (pipe_makes(known->key) && known->was_told && !request->is_late &&
		request->sent_ns > known->told_ns)
		story_break("the output at %s is replaced", now->key);
	if (run_keeps_earlier(request->from) && known->was_told && !request->is_late &&
		request->sent_ns > known->told_ns &&
		content_is_same(&before->content, &known->told))
		story_break(
			"%s, which was told to be done, is replaced by a run that leaves earlier "
			"versions alone",
			now->key);
	const struct machine_process *writer = before->writer, *from = request->from;
	if (!world.scenario.dynamodb && writer && from && writer->machine != from->machine)
		story_break("%s, which %s uploaded, is replaced by %s", now->key,
			writer->machine->name, from->machine->name);
	const size_t older = rank(known, now), later = rank(known, before);
	if (older && later && older < later)
		story_break(
			"%s, which a later owner wrote, is replaced by an earlier one", now->key);
}

/* The same for a key that people chose: one output in one object. If its mark was lost, the object
 * is found only under the suffix of the present options (docs/pipes.md). */
void judge_produced(const char *key, const char *suffix, const struct machine_process *process)
{
	const bool may_be_lost =
		judge.has_forgotten || judge.restored_ns || world.scenario.power_cuts;
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		char object_key[1100];
		snprintf(object_key, sizeof object_key, "%s%s", key, suffixes[i]);
		if ((may_be_lost && strcmp(suffixes[i], suffix) != 0) ||
			!world_s3_object(world.s3, object_key))
			continue;
		if (known_of(key)->stored_ns < process->began_ns)
			story_break("the output for %s is made, and %s is there", key, object_key);
	}
}

bool judge_has_output(const char *key)
{
	const struct s3_stored *object = NULL;
	for (size_t i = 0; !object && i < sizeof suffixes / sizeof *suffixes; i++) {
		char object_key[1100];
		snprintf(object_key, sizeof object_key, "%s%s", key, suffixes[i]);
		object = world_s3_object(world.s3, object_key);
	}
	return object || known_of(key)->is_deleted;
}

void judge_piped(const char *key, const struct machine_process *process)
{
	if (!judge_has_output(key))
		story_break("%s ends with 0, and no output is at %s", process->name, key);
}

static bool is_below(const char *key, const char *prefix)
{
	const size_t n = strlen(prefix);
	return strncmp(key, prefix, n) == 0 && key[n] == '/';
}

/* Returns the first component of a key, borrowed until the next call. */
static const char *prefix_of(const char *key)
{
	static char ret[64];
	snprintf(ret, sizeof ret, "%.*s", (int)strcspn(key, "/"), key);
	return ret;
}

/* Whether two keys are of one log, under any suffix. */
static bool is_same_log(const char *a, const char *b)
{
	const char *end = strstr(a, ".log");
	return end && strncmp(a, b, (size_t)(end - a) + 4) == 0;
}

/* A rotated log is in one object alone, whatever its names were. No client can prevent a late
 * request of a run that has ended, or whose session was ended, if the run that continued uses
 * another suffix. Without --live, a log whose compressor does not keep its time counts as another
 * log (docs/logs.md): it is in two objects at most, since it is compressed once. */
static void judge_log_stored(const struct wire_request *request, const struct s3_stored *now,
	const struct content *content)
{
	const struct machine_process *from = request->from;
	const bool is_left = request->is_late && from &&
			     (from->is_over || session_had_ended(from, world_now_ns()));
	unsigned allowed = world.scenario.timeless && !world.scenario.live;
	const struct s3_stored *other;
	if (!log_of(content))
		story_break("%s gets a content that no rotated log ever had (%zu bytes)", now->key,
			now->n);
	for (size_t i = 0; (other = world_s3_at(world.s3, i)); i++) {
		if (strcmp(other->key, now->key) != 0 &&
			!(is_left && is_same_log(other->key, now->key)) &&
			content_is_same(&other->content, content) &&
			is_below(other->key, prefix_of(now->key)) && !(allowed && allowed--))
			story_break("%s gets the log that is in %s already", now->key, other->key);
	}
}

/* A late request may store the same piece again. */
static void judge_piece(const struct wire_request *request, const struct s3_stored *before,
	const struct s3_stored *now)
{
	if (!before || !content_is_same(&before->content, &now->content))
		lines_stored(now, request->sent_ns);
}

static void note_replaced(const struct s3_stored *object)
{
	judge.replaced = realloc(judge.replaced, (judge.n_replaced + 1) * sizeof *judge.replaced);
	if (!judge.replaced)
		abort();
	judge.replaced[judge.n_replaced++] =
		(struct replaced){strdup(object->key), strdup(object->etag), world_now_ns()};
}

bool judge_had_etag(const char *key, const char *etag, uint64_t since_ns)
{
	for (size_t i = 0; i < judge.n_replaced; i++) {
		const struct replaced *replaced = &judge.replaced[i];
		if (replaced->at_ns >= since_ns && strcmp(replaced->key, key) == 0 &&
			strcmp(replaced->etag, etag) == 0)
			return true;
	}
	return false;
}

void judge_store(void *arg, const struct wire_request *request, const struct s3_stored *before,
	struct s3_stored *now)
{
	now->content = content_of_object(now);
	trace_object(request, now);
	if (before)
		note_replaced(before);
	if (!request)
		return;
	runs_stored(request, now);
	if (runs_own(now->key))
		return;
	struct known *known = file_of(now->key);
	const struct content content = now->content;
	known->stored_ns = world_now_ns();
	const bool is_log = !pipe_makes(now->key) && world_rotates_key(now->key);
	if (is_log && world.scenario.live)
		judge_piece(request, before, now);
	else if (is_log)
		judge_log_stored(request, now, &content);
	else if (!had_it(known, &content))
		story_break(
			"%s gets a content that its file never had (%zu bytes)", now->key, now->n);
	if (before)
		judge_replacement(request, before, now, known, &content);
	if (!request->is_late && session_had_ended(request->from, request->sent_ns))
		story_break("%s is written by a run whose session had ended before", now->key);
}

void judge_remove_object(
	void *arg, const struct wire_request *request, const struct s3_stored *before)
{
	story_break("the object %s is deleted", before->key);
}

/* Returns an object of this file, under any suffix: one with this content, if there is one. */
static const struct s3_stored *object_of(const char *key, const struct content *content)
{
	const struct s3_stored *any = NULL;
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		char object_key[1100];
		snprintf(object_key, sizeof object_key, "%s%s", key, suffixes[i]);
		const struct s3_stored *object = world_s3_object(world.s3, object_key);
		if (object && content_is_same(&object->content, content))
			return object;
		if (object && (!any || any->is_foreign))
			any = object;
	}
	return any;
}

static const struct s3_stored *object_with(const struct content *content, const char *prefix)
{
	const struct s3_stored *object;
	for (size_t i = 0; (object = world_s3_at(world.s3, i)); i++) {
		if (is_below(object->key, prefix) && content_is_same(&object->content, content))
			return object;
	}
	return NULL;
}

bool judge_is_in_s3(const char *prefix, const struct node *log)
{
	const struct content content = content_of_log(log->data, (size_t)log->size);
	return object_with(&content, prefix) != NULL;
}

void judge_opened(const struct node *node)
{
	judge.opened = node;
	judge.opened_ns = world_now_ns();
}

/* The program takes a write lease and then removes the file by another call. It cannot notice an
 * opening between the two. */
static bool is_open_for_writing(const struct node *node)
{
	return node->writers && node == judge.opened &&
	       world_now_ns() - judge.opened_ns > CALL_MOST_NS;
}

/* Whether no object has had this content for the time of --delete-after. The time of a mark is that
 * of its machine's clock, and earlier marks may have been restored. */
static bool is_too_early(const struct machine *machine, const struct content *content)
{
	const struct scenario *s = &world.scenario;
	const uint64_t age_ns = s->age_s * 1000000000ULL, now_ns = world_now_ns();
	const struct s3_stored *object;
	if (!s->age_s || world.is_calm || s->clock_jumps || judge.restored_ns || s->ignores ||
		s->varies)
		return false;
	for (size_t i = 0; (object = world_s3_at(world.s3, i)); i++)
		if (is_below(object->key, run_prefix(machine)) &&
			content_is_same(&object->content, content) &&
			now_ns - object->stored_ns + 2000000000ULL >= age_ns)
			return false;
	return object_with(content, run_prefix(machine)) != NULL;
}

/* Whether a power cut would now undo the mark of a file that this machine has uploaded: the mark
 * was set after the object was stored, and nothing has been synced since. */
static bool may_lose_mark(const struct machine *machine, const struct content *content)
{
	const struct node *log = marks_of(machine, "-wal");
	const struct s3_stored *object;
	bool is_lost = false;
	if (world.scenario.dynamodb || !log || !log->n_unsynced)
		return false;
	for (size_t i = 0; (object = world_s3_at(world.s3, i)); i++)
		if (is_below(object->key, run_prefix(machine)) &&
			content_is_same(&object->content, content)) {
			const struct machine_process *writer = object->writer;
			if (!writer || writer->machine != machine ||
				object->stored_ns < log->unsynced_ns)
				return false;
			is_lost = true;
		}
	return is_lost;
}

/* Returns the time at which a HEAD last showed this process an object with this content;
 * UINT64_MAX: never. */
static uint64_t was_shown_ns(const struct machine_process *process, const struct content *content)
{
	for (size_t i = judge.n_shown; i-- > 0;)
		if (judge.shown[i].to == process &&
			content_is_same(&judge.shown[i].content, content))
			return judge.shown[i].at_ns;
	return UINT64_MAX;
}

/* Files are renamed before they are removed, so only the content shows which file it is. */
void judge_removal(struct machine_process *process, struct node *node, const char *path)
{
	const bool is_in_shared = world.shared && node->disk == world.shared;
	if (!is_in_shared && !is_below(path, run_folder(process->machine)))
		return;
	const struct content content = world_rotates(process->machine)
					       ? content_of_log(node->data, (size_t)node->size)
					       : content_of(node->data, (size_t)node->size);
	/* No client can prevent that people delete an object a moment before its file is removed.
	 * That moment is long if the process was stopped between its HEAD and the removal. */
	const uint64_t now_ns = world_now_ns(), moment_ns = 60000000000U,
		       before_ns = now_ns > moment_ns ? now_ns - moment_ns : 0,
		       shown_ns = was_shown_ns(process, &content);
	if (was_deleted_since(&content, shown_ns < before_ns ? shown_ns : before_ns))
		return;
	if (is_too_early(process->machine, &content))
		story_break(
			"%s is removed, and was not in S3 for %u s", path, world.scenario.age_s);
	if (may_lose_mark(process->machine, &content))
		story_break("%s is removed, and its mark is not synced to the disk", path);
	if (is_open_for_writing(node))
		story_break("%s is removed, and a program has it open for writing", path);
	if (!object_with(&content, run_prefix(process->machine)))
		story_break("%s is removed, and no object has its content", path);
	else if (world_rotates(process->machine))
		judge_log_gone(node);
	for (size_t i = 0; i < judge.n; i++) {
		struct known *known = &judge.known[i];
		if (known->n_had &&
			content_is_same(&known->had[known->n_had - 1].content, &content))
			known->is_removed = true;
	}
}

/* Returns the time since which the file has its present content, which a touch does not change. */
static uint64_t content_since_ns(const struct known *known)
{
	size_t i = known->n_had - 1;
	while (i && content_is_same(&known->had[i - 1].content, &known->had[i].content))
		i--;
	return known->had[i].since_ns;
}

static void judge_file(const struct known *known, const char *when, bool keeps_earlier)
{
	const struct content *last = &known->had[known->n_had - 1].content;
	const struct s3_stored *object = object_of(key_in_s3(known), last);
	if (known->is_deleted)
		return;
	if (!object) {
		story_break("%s, and %s is not in S3", when, known->key);
		return;
	}
	/* If conditions are ignored, a late request replaces the object. */
	const bool may_be_earlier = (world.scenario.ignores && may_not_hold(known)) ||
				    keeps_earlier || world.scenario.recompress ||
				    is_undone_and_restored(known);
	/* An object that one of two machines has found may be replaced by the machine that uploaded
	 * it. */
	const struct machine_process *writer = object->writer;
	const bool is_of_image = key_in_s3(known) != known->key;
	const bool is_replaced = world_image() && writer && *object->etag_before &&
				 is_of_image != (writer->machine == world_image()) &&
				 content_since_ns(known) < object->stored_ns;
	if (!content_is_same(last, &object->content) &&
		!((may_be_earlier || is_replaced) &&
			had_it(known_of(key_in_s3(known)), &object->content)))
		story_break("%s, and %s has another content in S3", when, known->key);
}

/* Whether the mark of a key in DynamoDB says done, for any bucket of this name. Another run may
 * have claimed the file since if it checks files that are done (--reupload), if it replaces
 * versions that this one leaves alone, or if it began before the file got its present content, and
 * knows an earlier version. */
static bool is_marked(const struct known *known, const struct machine_process *process)
{
	const json_t *item;
	const uint64_t since_ns = known->had[known->n_had - 1].since_ns;
	for (size_t i = 0; (item = world_dynamodb_at(world.db, i)); i++) {
		const struct machine_process *owner = session_owner(dynamodb_text(item, "session"));
		const bool may_be_claimed =
			owner != process && (world.scenario.varies || world.scenario.if_mixed ||
						    (owner && owner->began_ns < since_ns));
		if (strcmp(dynamodb_text(item, "sk"), known->key) == 0 &&
			is_mark(dynamodb_text(item, "pk")) &&
			(strcmp(dynamodb_text(item, "state"), "done") == 0 || may_be_claimed))
			return true;
	}
	return false;
}

/* Files that this run has left to the next one may be missing. NULL: the world is at rest, and none
 * may be. */
static void judge_logs(const char *when, uint64_t before_ns, const char *prefix,
	const struct machine_process *process)
{
	lines_judge(when, before_ns, prefix, process);
	for (size_t i = 0; i < judge.n_logs; i++) {
		const struct log *log = &judge.logs[i];
		if (!log->is_gone && log->since_ns < before_ns &&
			strcmp(log->prefix, prefix) == 0 && !object_with(&log->content, prefix) &&
			!was_deleted_since(&log->content, 0) && !waits_may(process, log->number))
			story_break("%s, and a rotated log of %zu bytes is not in S3", when,
				log->content.n);
	}
}

/* Whether S3 has the content of this log. Objects that people or rules have deleted count. */
static bool is_sent(const struct machine *machine, const struct node *log)
{
	if (world.scenario.live)
		return lines_are_stored(log->data, (size_t)log->size);
	const struct content content = content_of_log(log->data, (size_t)log->size);
	return object_with(&content, run_prefix(machine)) || was_deleted_since(&content, 0);
}

/* A run has reported each file that it leaves, if the file has had its present content since the
 * run began. */
static void judge_silence(
	const char *when, uint64_t before_ns, const struct machine_process *process)
{
	const struct machine *machine = process->machine;
	const struct node *folder = world_shared(machine) ? disk_root(world_shared(machine))
							  : disk_get(machine->disk, "/data");
	for (size_t i = 0; i < folder->n_entries; i++) {
		const struct node *node = folder->entries[i].node;
		const char *name = folder->entries[i].name;
		if (S_ISREG(node->mode) && node->size && node->log &&
			waits_is_settled(run_prefix(machine), name, node->log, before_ns) &&
			!waits_was_told(process, node->log) && !is_sent(machine, node))
			story_break("%s, and it has not said that it leaves %s", when, name);
	}
}

/* SQLite's writes are on the disk. Pages that a killed run had begun to move into the database are
 * still in SQLite's log. */
static void judge_disk(const struct machine_process *process, const char *when)
{
	const struct node *database = marks_of(process->machine, "");
	const struct node *log = marks_of(process->machine, "-wal");
	for (const struct machine_process *p = processes_first(); p; p = p->next)
		if (p != process && !p->is_over && p->machine == process->machine)
			return; /* its writes may wait */
	if (log && log->n_unsynced)
		story_break("%s, and SQLite's log is not synced to the disk", when);
	else if (database && database->n_unsynced && !(log && log->size))
		story_break("%s, and the marks are not synced to the disk", when);
}

void judge_exit(const struct machine_process *process, const struct run_end *end)
{
	char when[100];
	const char *prefix = run_prefix(process->machine);
	snprintf(when, sizeof when, "push of %s ends with 0", process->name);
	if (end->exit != 0)
		return;
	if (!world.scenario.dynamodb)
		judge_disk(process, when);
	if (world_rotates(process->machine)) {
		judge_logs(when, end->began_ns, prefix, process);
		judge_silence(when, end->began_ns, process);
	}
	for (size_t i = 0; i < judge.n; i++) {
		const struct known *known = &judge.known[i];
		const bool is_copy = key_in_s3(known) != known->key;
		if (!is_below(key_in_s3(known), prefix) || !is_settled(known, end->began_ns) ||
			is_copy != (process->machine == world_image()))
			continue;
		judge_file(known, when, end->keeps_earlier);
		if (world.scenario.dynamodb && !judge.has_forgotten && !is_marked(known, process))
			story_break("%s, and the mark of %s does not say done", when, known->key);
	}
}

/* Checks for unfinished uploads that no mark names: their parts would be lost. */
static void judge_open_uploads(void)
{
	size_t n_parts;
	const char *id;
	for (size_t i = 0; (id = world_s3_upload_at(world.s3, i, &n_parts)); i++) {
		const json_t *item;
		bool is_named = !n_parts;
		for (size_t k = 0; !is_named && (item = world_dynamodb_at(world.db, k)); k++)
			is_named = strcmp(dynamodb_text(item, "upload"), id) == 0;
		if (!is_named)
			story_break("all is quiet, and no mark names the upload %s with %zu parts",
				id, n_parts);
	}
}

void judge_rest(void)
{
	if (world.scenario.dynamodb && !world.is_anew)
		judge_open_uploads();
	for (size_t i = 0; i < machines_count(); i++)
		if (world_rotates(machine_at(i)))
			judge_logs("all is quiet", world_now_ns(), run_prefix(machine_at(i)), NULL);
	for (size_t i = 0; i < judge.n && !world_image(); i++)
		if (judge.known[i].is_there)
			judge_file(&judge.known[i], "all is quiet", world.scenario.if_changed == 2);
}
