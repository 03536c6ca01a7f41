#include "marks/mark.h"
#include "base/clock.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[] = {
	[MARK_ABSENT] = "absent",
	[MARK_CLAIMED] = "claimed",
	[MARK_DONE] = "done",
	[MARK_FAILED] = "failed",
	[MARK_UNREADABLE] = "unreadable",
};

const char *mark_state_name(enum mark_state state)
{
	return state_names[state];
}

void mark_clear(struct mark *mark)
{
	free(mark->upload_id);
	free(mark->source);
	free(mark->error);
	*mark = (struct mark){0};
}

void claim_clear(struct claim *claim)
{
	mark_clear(&claim->before);
	*claim = (struct claim){0};
}

void mark_sum_of(const struct sums *sums, enum checksum wanted, char ret[static SUM_MAX + 1])
{
	unsigned kind = wanted;
	char base64[CHECKSUM_BASE64_MAX + 1];
	if (!(sums->kinds & DIGEST_OF(kind)))
		kind = 0;
	while (kind < CHECKSUMS && !(sums->kinds & DIGEST_OF(kind)))
		kind++;
	*ret = '\0';
	if (kind == CHECKSUMS)
		return;
	checksum_to_base64((enum checksum)kind, sums_bytes(sums, (enum checksum)kind), base64);
	snprintf(ret, SUM_MAX + 1, "%s:%s", checksum_kinds[kind].name, base64);
}

struct s3_sum mark_sum_told(const char *sum)
{
	const size_t n = strcspn(sum, ":");
	struct s3_sum told = {.kind = checksum_named(sum, n)};
	if (told.kind == CHECKSUMS || !sum[n] ||
		snprintf(told.text, sizeof told.text, "%s", sum + n + 1) >= (int)sizeof told.text)
		told = (struct s3_sum){0};
	return told;
}

unsigned mark_shard(const char *key, unsigned shards)
{
	uint64_t hash = 14695981039346656037ULL;
	for (const unsigned char *c = (const unsigned char *)key; *c; c++)
		hash = (hash ^ *c) * 1099511628211ULL;
	return (unsigned)(hash % shards);
}

void mark_partition(const struct mark_space *space, unsigned shard, char ret[static PARTITION_MAX])
{
	snprintf(ret, PARTITION_MAX, "%s/%s#%u", space->service, space->bucket, shard);
}

/* Copies a string attribute into a fixed field; false if it does not fit. An absent one is "". */
static bool take_text(const struct item *item, const char *name, char *ret, size_t size)
{
	const char *value = item_string(item, name);
	size_t n = value ? strlen(value) : 0;
	if (n >= size)
		return false;
	memcpy(ret, value ? value : "", n + 1);
	return true;
}

static int take_copy(const struct item *item, const char *name, char **ret)
{
	const char *value = item_string(item, name);
	if (!value)
		return 0;
	*ret = strdup(value);
	return *ret ? 0 : -ENOMEM;
}

/* A number that is absent leaves *ret as it is; one that is no size at all makes the row
 * unreadable. */
static bool take_size(const struct item *item, const char *name, uint64_t *ret)
{
	int64_t n = 0;
	int error = item_number(item, name, &n);
	if (error == -ENOENT)
		return true;
	*ret = (uint64_t)n;
	return !error && n >= 0;
}

static bool take_number(const struct item *item, const char *name, int64_t *ret)
{
	int error = item_number(item, name, ret);
	return !error || error == -ENOENT;
}

/* Uploads that were begun before there was a choice have no name of it. */
static enum checksum take_checksum(const struct item *item)
{
	const char *name = item_string(item, "upload_sum");
	return name ? checksum_named(name, strlen(name)) : CHECKSUM_CRC32C;
}

static enum mark_state take_state(const struct item *item)
{
	const char *name = item_string(item, "state");
	for (size_t s = MARK_CLAIMED; name && s <= MARK_FAILED; s++)
		if (!strcmp(name, state_names[s]))
			return (enum mark_state)s;
	return MARK_UNREADABLE;
}

static bool take_fields(const struct item *item, struct mark *mark)
{
	mark->has_done = item_find(item, "size") && item_find(item, "mtime");
	mark->upload_checksum = take_checksum(item);
	return take_text(item, "session", mark->session, sizeof mark->session) &&
	       take_text(item, "claim", mark->claim, sizeof mark->claim) &&
	       take_text(item, "sum", mark->done.sum, sizeof mark->done.sum) &&
	       take_text(item, "etag", mark->done.etag, sizeof mark->done.etag) &&
	       take_size(item, "size", &mark->done.size) &&
	       take_number(item, "mtime", &mark->done.mtime_ns) &&
	       take_size(item, "part", &mark->part_bytes) &&
	       take_text(item, "upload_key", mark->upload_key, sizeof mark->upload_key) &&
	       take_size(item, "upload_size", &mark->upload_size) &&
	       take_number(item, "upload_mtime", &mark->upload_mtime_ns) &&
	       take_number(item, "tries", &mark->tries) && take_number(item, "at", &mark->at_s);
}

int mark_from_item(const struct item *item, struct mark *ret)
{
	*ret = (struct mark){0};
	if (item_is_empty(item))
		return 0;
	struct mark mark = {.state = take_state(item)};
	if (!take_fields(item, &mark) || (mark.state == MARK_DONE && !mark.has_done))
		mark.state = MARK_UNREADABLE;
	int error = take_copy(item, "upload", &mark.upload_id);
	if (!error)
		error = take_copy(item, "source", &mark.source);
	if (!error)
		error = take_copy(item, "error", &mark.error);
	if (error) {
		mark_clear(&mark);
		return error;
	}
	*ret = mark;
	return 0;
}

enum mark_says mark_says(const struct mark *mark, uint64_t size, int64_t mtime_ns)
{
	switch (mark->state) {
	case MARK_ABSENT:
	case MARK_FAILED:
		return SAYS_FREE;
	case MARK_CLAIMED:
	case MARK_UNREADABLE:
		return SAYS_CLAIMED;
	case MARK_DONE:
		break;
	}
	if (mark->done.size != size)
		return SAYS_CHANGED;
	if (mark->done.mtime_ns == mtime_ns)
		return SAYS_DONE;
	return SAYS_COMPARE;
}

/* A list of changes with room for the decimal text of its numbers. */
struct changes {
	struct change list[16];
	size_t n;
	char numbers[8][24];
	size_t n_numbers;
};

static void set_text(struct changes *c, const char *name, const char *value)
{
	c->list[c->n++] = (struct change){name, VALUE_STRING, value};
}

static void set_number(struct changes *c, const char *name, int64_t value)
{
	char *text = c->numbers[c->n_numbers++];
	snprintf(text, sizeof c->numbers[0], "%" PRId64, value);
	c->list[c->n++] = (struct change){name, VALUE_NUMBER, text};
}

static void unset(struct changes *c, const char *name)
{
	c->list[c->n++] = (struct change){name, VALUE_STRING, NULL};
}

static void unset_upload(struct changes *c)
{
	unset(c, "upload");
	unset(c, "part");
	unset(c, "upload_sum");
	unset(c, "upload_key");
	unset(c, "upload_size");
	unset(c, "upload_mtime");
}

static struct condition equals(const char *name, const char *value)
{
	return (struct condition){name, CONDITION_EQUALS, VALUE_STRING, value};
}

/* As equals, but an empty value stands for an attribute that is not there. */
static struct condition equals_or_absent(const char *name, const char *value)
{
	if (value && *value)
		return equals(name, value);
	return (struct condition){name, CONDITION_ABSENT, VALUE_STRING, NULL};
}

static struct item_key mark_key(const struct mark_ref *ref, char partition[static PARTITION_MAX])
{
	mark_partition(ref->space, mark_shard(ref->key, ref->space->settings.shards), partition);
	return (struct item_key){partition, ref->key};
}

/* Reads the image of a refusal; the outcome stays unless memory runs out. */
static enum outcome seen(
	enum outcome o, struct item *present, struct mark *ret_seen, struct problem *ret_problem)
{
	*ret_seen = (struct mark){0};
	if (o == OUTCOME_REFUSED && mark_from_item(present, ret_seen)) {
		problem_set(ret_problem, "out of memory");
		o = OUTCOME_LOCAL;
	}
	item_clear(present);
	return o;
}

static enum outcome update(const struct mark_ref *ref, const struct changes *changes,
	const struct condition *conditions, size_t n_conditions, struct mark *ret_seen,
	struct problem *ret_problem)
{
	char partition[PARTITION_MAX];
	struct item present = {0};
	enum outcome o =
		ref->conn->store->ops->update(ref->conn, mark_key(ref, partition), changes->list,
			changes->n, conditions, n_conditions, &ref->limits, &present, ret_problem);
	return seen(o, &present, ret_seen, ret_problem);
}

/* Any refusal may be the echo of our own write, even on a first try: curl resends on a reused
 * connection that drops. */
static bool is_ours(const struct mark_ref *ref, const char *claim, const struct mark *mark)
{
	return mark->state == MARK_CLAIMED && !strcmp(mark->session, ref->session) &&
	       !strcmp(mark->claim, claim);
}

static int64_t now_s(const struct mark_ref *ref)
{
	return store_time_s(ref->conn->store);
}

static int claim_item(const struct mark_ref *ref, const char *claim, struct item *ret)
{
	int error = item_set_string(ret, "state", state_names[MARK_CLAIMED]);
	if (!error)
		error = item_set_string(ret, "session", ref->session);
	if (!error)
		error = item_set_string(ret, "claim", claim);
	if (!error)
		error = item_set_string(ret, "source", ref->source);
	if (!error)
		error = item_set_number(ret, "tries", 1);
	if (!error)
		error = item_set_number(ret, "at", now_s(ref));
	return error;
}

enum outcome mark_claim(const struct mark_ref *ref, struct claim *ret, struct mark *ret_seen,
	struct problem *ret_problem)
{
	char partition[PARTITION_MAX];
	struct item item = {0}, present = {0};
	struct claim claim = {0};
	random_id(claim.id);
	*ret_seen = (struct mark){0};
	if (claim_item(ref, claim.id, &item)) {
		item_clear(&item);
		problem_set(ret_problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	struct condition absent = {"pk", CONDITION_ABSENT, VALUE_STRING, NULL};
	enum outcome o = ref->conn->store->ops->put(ref->conn, mark_key(ref, partition), &item,
		&absent, 1, &ref->limits, &present, ret_problem);
	item_clear(&item);
	o = seen(o, &present, ret_seen, ret_problem);
	if (o == OUTCOME_REFUSED && is_ours(ref, claim.id, ret_seen)) {
		mark_clear(ret_seen);
		o = OUTCOME_OK;
	}
	if (o == OUTCOME_OK)
		*ret = claim;
	return o;
}

enum outcome mark_take(const struct mark_ref *ref, struct mark *old, struct claim *ret,
	struct mark *ret_seen, struct problem *ret_problem)
{
	struct claim claim = {.taken_over = true};
	random_id(claim.id);
	struct changes c = {0};
	set_text(&c, "state", state_names[MARK_CLAIMED]);
	set_text(&c, "session", ref->session);
	set_text(&c, "claim", claim.id);
	set_text(&c, "source", ref->source);
	set_number(&c, "tries", old->tries + 1);
	set_number(&c, "at", now_s(ref));
	unset(&c, "error");
	/* The state too: a mark that became done in between keeps its session and claim. */
	const struct condition as_seen[] = {equals("state", state_names[old->state]),
		equals_or_absent("session", old->session), equals_or_absent("claim", old->claim)};
	enum outcome o = update(ref, &c, as_seen, 3, ret_seen, ret_problem);
	if (o == OUTCOME_REFUSED && is_ours(ref, claim.id, ret_seen)) {
		mark_clear(ret_seen);
		o = OUTCOME_OK;
	}
	if (o == OUTCOME_OK) {
		claim.before = *old;
		*old = (struct mark){0};
		*ret = claim;
	}
	return o;
}

enum outcome mark_record_upload(const struct mark_ref *ref, struct claim *claim,
	const struct upload_record *record, struct problem *ret_problem)
{
	struct changes c = {0};
	claim->has_upload = true;
	set_text(&c, "upload", record->upload_id);
	set_number(&c, "part", (int64_t)record->part_bytes);
	set_text(&c, "upload_sum", checksum_kinds[record->checksum].name);
	if (*record->key_md5)
		set_text(&c, "upload_key", record->key_md5);
	else
		unset(&c, "upload_key");
	set_number(&c, "upload_size", (int64_t)record->size);
	set_number(&c, "upload_mtime", record->mtime_ns);
	set_number(&c, "at", now_s(ref));
	const struct condition fence[] = {equals("state", state_names[MARK_CLAIMED]),
		equals("session", ref->session), equals("claim", claim->id),
		equals_or_absent("upload", record->before)};
	struct mark present;
	enum outcome o = update(ref, &c, fence, 4, &present, ret_problem);
	if (o == OUTCOME_REFUSED && is_ours(ref, claim->id, &present) && present.upload_id &&
		!strcmp(present.upload_id, record->upload_id))
		o = OUTCOME_OK;
	mark_clear(&present);
	return o;
}

static bool same_version(const struct version *a, const struct version *b)
{
	return a->size == b->size && a->mtime_ns == b->mtime_ns && !strcmp(a->sum, b->sum);
}

enum outcome mark_done(const struct mark_ref *ref, const struct claim *claim,
	const struct version *version, struct mark *ret_seen, struct problem *ret_problem)
{
	struct changes c = {0};
	set_text(&c, "state", state_names[MARK_DONE]);
	set_number(&c, "size", (int64_t)version->size);
	set_number(&c, "mtime", version->mtime_ns);
	set_text(&c, "sum", version->sum);
	set_text(&c, "etag", version->etag);
	set_number(&c, "at", now_s(ref));
	/* A claim has no error, and only some have an upload: half of the request's length. */
	if (claim->taken_over || claim->has_upload)
		unset_upload(&c);
	const struct condition fence[] = {equals("state", state_names[MARK_CLAIMED]),
		equals("session", ref->session), equals("claim", claim->id)};
	enum outcome o = update(ref, &c, fence, 3, ret_seen, ret_problem);
	if (o == OUTCOME_REFUSED && ret_seen->state == MARK_DONE &&
		same_version(&ret_seen->done, version)) {
		mark_clear(ret_seen);
		o = OUTCOME_OK;
	}
	return o;
}

enum outcome mark_fail(const struct mark_ref *ref, const struct claim *claim, const char *error,
	struct problem *ret_problem)
{
	struct changes c = {0};
	set_text(&c, "state", state_names[MARK_FAILED]);
	set_text(&c, "error", error);
	set_number(&c, "at", now_s(ref));
	const struct condition fence[] = {equals("state", state_names[MARK_CLAIMED]),
		equals("session", ref->session), equals("claim", claim->id)};
	struct mark present;
	enum outcome o = update(ref, &c, fence, 3, &present, ret_problem);
	mark_clear(&present);
	return o == OUTCOME_REFUSED ? OUTCOME_OK : o;
}

enum outcome mark_refresh(const struct mark_ref *ref, const struct mark *old, int64_t mtime_ns,
	struct problem *ret_problem)
{
	struct changes c = {0};
	set_number(&c, "mtime", mtime_ns);
	set_number(&c, "at", now_s(ref));
	char old_mtime[24];
	snprintf(old_mtime, sizeof old_mtime, "%" PRId64, old->done.mtime_ns);
	const struct condition as_seen[] = {equals("state", state_names[MARK_DONE]),
		equals_or_absent("session", old->session), equals_or_absent("claim", old->claim),
		{"mtime", CONDITION_EQUALS, VALUE_NUMBER, old_mtime}};
	struct mark present;
	enum outcome o = update(ref, &c, as_seen, 4, &present, ret_problem);
	if (o == OUTCOME_REFUSED && mark_says(&present, old->done.size, mtime_ns) == SAYS_DONE &&
		!strcmp(present.done.sum, old->done.sum))
		o = OUTCOME_OK;
	mark_clear(&present);
	return o;
}

enum outcome mark_get(const struct mark_ref *ref, struct mark *ret, struct problem *ret_problem)
{
	char partition[PARTITION_MAX];
	struct item item = {0};
	enum outcome o = ref->conn->store->ops->get(
		ref->conn, mark_key(ref, partition), true, &ref->limits, &item, ret_problem);
	*ret = (struct mark){0};
	if (o == OUTCOME_ABSENT)
		o = OUTCOME_OK;
	else if (o == OUTCOME_OK && mark_from_item(&item, ret)) {
		problem_set(ret_problem, "out of memory");
		o = OUTCOME_LOCAL;
	}
	item_clear(&item);
	return o;
}
