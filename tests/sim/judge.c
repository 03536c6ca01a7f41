/* See judge.h. What is known of each key: every content that its file had, what was told of its
 * object, and who has claimed it, in order. */
#include "judge.h"
#include "judge_content.h"
#include "story.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLAIMS_MAX 400

struct had {
	struct content content;
	uint64_t since_ns;
};
struct known {
	char *key; /* that the file has in S3, without a suffix */
	struct had *had;
	size_t n_had;
	bool is_there; /* the file, with the last content */
	bool was_told;
	uint64_t told_ns;
	struct content told;         /* what its object was then */
	char claims[CLAIMS_MAX][40]; /* in the order in which they were made */
	size_t n_claims;
};
static struct {
	struct known *known;
	size_t n;
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
	}
	free(judge.known);
	judge.known = NULL;
	judge.n = 0;
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

/* The key of the file whose object has this key. */
static struct known *file_of(const char *object_key)
{
	static const char *const suffixes[] = {"", ".zst", ".gz"};
	const char *suffix = suffixes[world.scenario.compress % 3];
	const size_t n = strlen(object_key), chars = strlen(suffix);
	char key[1100];
	if (n >= chars && strcmp(object_key + n - chars, suffix) == 0)
		snprintf(key, sizeof key, "%.*s", (int)(n - chars), object_key);
	else
		snprintf(key, sizeof key, "%s", object_key);
	return known_of(key);
}

void judge_content(const char *path, const struct node *node)
{
	struct known *known = known_of(path);
	known->is_there = node != NULL;
	known->had = realloc(known->had, (known->n_had + 1) * sizeof *known->had);
	if (!known->had)
		abort();
	known->had[known->n_had++] = (struct had){
		.content = content_of(node ? node->data : NULL, node ? (size_t)node->size : 0),
		.since_ns = world_now_ns()};
}

static bool had_it(const struct known *known, const struct content *content)
{
	for (size_t i = 0; i < known->n_had; i++)
		if (content_is_same(&known->had[i].content, content))
			return true;
	return false;
}

void judge_told(const char *key)
{
	struct known *known = file_of(key);
	const struct s3_stored *object = world_s3_object(world.s3, key);
	if (!object) {
		story_break("%s was told to be in S3, and is not there", key);
		return;
	}
	known->told = content_of_object(object);
	known->told_ns = world_now_ns();
	known->was_told = true;
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

static void judge_done(const char *sk, const json_t *old, const json_t *now)
{
	const char *etag = dynamodb_text(now, "etag");
	char key[1100];
	if (old && strcmp(dynamodb_text(old, "state"), "claimed") == 0 &&
		(strcmp(dynamodb_text(old, "session"), dynamodb_text(now, "session")) != 0 ||
			strcmp(dynamodb_text(old, "claim"), dynamodb_text(now, "claim")) != 0))
		story_break("the mark of %s becomes done under a claim of somebody else", sk);
	snprintf(key, sizeof key, "%s%s", sk, dynamodb_text(now, "suffix"));
	const struct s3_stored *object = world_s3_object(world.s3, key);
	if (world.scenario.ignores)
		return; /* there a late request may replace the object meanwhile */
	if (!object)
		story_break("the mark of %s becomes done, and there is no object %s", sk, key);
	else if (*etag && strcmp(etag, object->etag) != 0)
		story_break("the mark of %s becomes done with the etag %s, and the object has %s",
			sk, etag, object->etag);
}

void judge_item(void *arg, const struct wire_request *request, const char *pk, const char *sk,
	const json_t *old, const json_t *now)
{
	if (!is_mark(pk) || !now)
		return;
	const char *state = dynamodb_text(now, "state"), *before = dynamodb_text(old, "state");
	const char *session = dynamodb_text(now, "session");
	const char *other = dynamodb_text(old, "session");
	const bool was_done = strcmp(before, "done") == 0;
	if (strcmp(state, "done") == 0 && !was_done)
		judge_done(sk, old, now);
	if (strcmp(before, "claimed") == 0 && strcmp(session, other) != 0 && is_open(other))
		story_break("the claim of %s is taken from a session that is open", sk);
	const char *claim = dynamodb_text(now, "claim");
	struct known *known = known_of(sk);
	if (strcmp(state, "claimed") == 0 && known->n_claims < CLAIMS_MAX &&
		(!known->n_claims || strcmp(known->claims[known->n_claims - 1], claim) != 0))
		snprintf(known->claims[known->n_claims++], sizeof known->claims[0], "%s", claim);
}

/* The place of a claim in the order of the claims of a key, from 1; 0: it is none of them. */
static size_t rank(const struct known *known, const struct s3_stored *object)
{
	const char *claim = s3_stored_header(object, "x-amz-meta-s3once-claim");
	for (size_t i = 0; claim && i < known->n_claims; i++)
		if (strcmp(known->claims[i], claim) == 0)
			return i + 1;
	return 0;
}

static void judge_replacement(const struct wire_request *request, const struct s3_stored *before,
	const struct s3_stored *now, const struct known *known, const struct content *content)
{
	if (world.scenario.ignores)
		return; /* conditions are what would prevent it */
	if (before->is_foreign && !had_it(known, &(struct content){0}))
		story_break("%s, which is somebody else's, is overwritten", now->key);
	const struct content there = content_of_object(before);
	if (content_is_same(&there, content) && known->was_told && !request->is_late &&
		request->sent_ns > known->told_ns)
		story_break("%s is sent a second time, although it was told to be there", now->key);
	const size_t older = rank(known, now), later = rank(known, before);
	if (older && later && older < later)
		story_break(
			"%s, which a later owner wrote, is replaced by an earlier one", now->key);
}

void judge_store(void *arg, const struct wire_request *request, const struct s3_stored *before,
	const struct s3_stored *now)
{
	if (!request)
		return;
	struct known *known = file_of(now->key);
	const struct content content = content_of_object(now);
	if (!had_it(known, &content))
		story_break(
			"%s gets a content that its file never had (%zu bytes)", now->key, now->n);
	if (before)
		judge_replacement(request, before, now, known, &content);
}

void judge_remove_object(
	void *arg, const struct wire_request *request, const struct s3_stored *before)
{
	story_break("the object %s is deleted", before->key);
}

static const struct s3_stored *object_of(const char *key)
{
	static const char *const suffixes[] = {"", ".zst", ".gz"};
	char object_key[1100];
	snprintf(object_key, sizeof object_key, "%s%s", key, suffixes[world.scenario.compress % 3]);
	return world_s3_object(world.s3, object_key);
}

void judge_removal(struct machine_process *process, struct node *node, const char *path)
{
	const char *folder = run_folder(process->machine);
	char key[1100];
	const char *in_disk = world.shared && node->disk == world.shared ? path : NULL;
	if (!in_disk && strncmp(path, folder, strlen(folder)) == 0)
		in_disk = path + strlen(folder);
	if (!in_disk || strstr(path, "/.s3once"))
		in_disk = in_disk && strstr(path, "/.s3once") ? in_disk : NULL;
	if (!in_disk)
		return;
	const char *name = strrchr(in_disk, '/');
	(void)name;
	snprintf(key, sizeof key, "%s%s", run_prefix(process->machine), in_disk);
	const struct content content = content_of(node->data, (size_t)node->size);
	for (size_t i = 0;; i++) { /* under whatever key: removal goes by way of another name */
		const struct s3_stored *object = world_s3_at(world.s3, i);
		if (!object)
			break;
		const struct content there = content_of_object(object);
		if (content_is_same(&there, &content))
			return;
	}
	story_break("%s is removed, and no object has its content", path);
}

/* Whether this file was as it is now since before that time. */
static bool is_settled(const struct known *known, uint64_t before_ns)
{
	return known->is_there && known->had[known->n_had - 1].since_ns < before_ns;
}

static bool is_below(const char *key, const char *prefix)
{
	const size_t n = strlen(prefix);
	return strncmp(key, prefix, n) == 0 && key[n] == '/';
}

static void judge_file(const struct known *known, const char *when)
{
	const struct s3_stored *object = object_of(known->key);
	if (!object) {
		story_break("%s, and %s is not in S3", when, known->key);
		return;
	}
	const struct content content = content_of_object(object);
	const bool is_last = content_is_same(&known->had[known->n_had - 1].content, &content);
	/* Where conditions are ignored, a request that comes late replaces what is there; with
	 * if_changed=skip an earlier version stays. */
	const bool may_be_earlier = world.scenario.ignores || world.scenario.if_changed == 2;
	if (!is_last && !(may_be_earlier && had_it(known, &content)))
		story_break("%s, and %s has another content in S3", when, known->key);
}

void judge_exit(const struct machine_process *process, uint64_t began_ns, int exit,
	const struct s3once_counts *counts)
{
	char when[100];
	snprintf(when, sizeof when, "push of %s ends with 0", process->name);
	for (size_t i = 0; exit == 0 && i < judge.n; i++)
		if (is_below(judge.known[i].key, run_prefix(process->machine)) &&
			is_settled(&judge.known[i], began_ns))
			judge_file(&judge.known[i], when);
}

void judge_rest(void)
{
	for (size_t i = 0; i < judge.n; i++)
		if (judge.known[i].is_there)
			judge_file(&judge.known[i], "all is quiet");
}
