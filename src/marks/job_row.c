#include "marks/job_row.h"
#include "base/checksum.h"
#include "base/text.h"
#include "marks/mark_changes.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOBS_PK   "jobs"
#define TAG_CHARS 16 /* of the hash of a name that was cut */

static struct item_key row_key(const struct job_key *key)
{
	return (struct item_key){JOBS_PK, key->text};
}

/* Whether this byte goes on with a character of UTF-8. */
static bool is_within_character(char c)
{
	return ((unsigned char)c & 0xC0) == 0x80;
}

/* s is UTF-8, as it was escaped. Names that are long differ at their ends more often than before.
 */
static void copy_cut(const char *s, char *ret, size_t most)
{
	static const char dots[] = "...";
	const size_t n = strlen(s), left = (most - strlen(dots)) / 2;
	if (n <= most) {
		memcpy(ret, s, n + 1);
		return;
	}
	size_t head = left;
	while (head && is_within_character(s[head]))
		head--;
	const char *tail = s + n - left;
	while (is_within_character(*tail))
		tail++;
	snprintf(ret, most + 1, "%.*s%s%s", (int)head, s, dots, tail);
}

/* Names of which the same is left have other hashes, so that two jobs do not share a row. */
static void add_tag(const char *bytes, char *name, size_t most)
{
	unsigned char sha256[32];
	struct digest digest;
	struct sums sums;
	char tag[2 * sizeof sha256 + 1];
	if (digest_init(&digest, DIGEST_SHA256))
		return; /* the name alone has to do */
	digest_update(&digest, bytes, strlen(bytes));
	digest_finish(&digest, &sums);
	digest_clear(&digest);
	hex_encode(sums.sha256, sizeof sha256, tag);
	snprintf(name + strlen(name), most + 1 - strlen(name), "~%.*s", TAG_CHARS, tag);
}

/* Escaped; what was cut is followed by its hash. */
static void copy_name(const char *bytes, char *ret, size_t most)
{
	struct text t = TEXT(64U << 10);
	text_add_escaped_string(&t, bytes);
	const bool is_cut = t.error || t.len > most;
	copy_cut(text_string(&t), ret, is_cut ? most - TAG_CHARS - 1 : most);
	if (is_cut)
		add_tag(bytes, ret, most);
	text_clear(&t);
}

void job_key_make(const char *host, const char *job, struct job_key *ret)
{
	char name[JOB_NAME_MAX + 1];
	copy_name(host, ret->text, JOB_HOST_MAX);
	for (char *slash; (slash = strchr(ret->text, '/'));)
		*slash = '_'; /* the first slash is what ends the host */
	copy_name(job, name, JOB_NAME_MAX);
	strcat(ret->text, "/");
	strcat(ret->text, name);
}

static enum outcome write_changes(struct store_conn *conn, const struct job_key *key,
	struct changes *c, const struct call_limits *limits, struct problem *ret_problem)
{
	/* Each row that is there has one, so any will do. */
	const struct condition there = {"version", CONDITION_PRESENT, VALUE_STRING, NULL};
	struct item now = {0};
	char version[ID_CHARS + 1];
	random_id(version);
	changes_set_text(c, "version", version);
	const struct item_write write = {.changes = c->list,
		.n_changes = c->n,
		.conditions = &there,
		.n_conditions = 1,
		.or_absent = true};
	const enum outcome o =
		conn->store->ops->write(conn, row_key(key), &write, limits, &now, ret_problem);
	item_clear(&now);
	return o;
}

enum outcome job_row_begin(struct store_conn *conn, const struct job_key *key, const char *session,
	const struct call_limits *limits, struct problem *ret_problem)
{
	struct changes c = {.n = 0};
	changes_set_text(&c, "session", session);
	changes_set_number(&c, "began", store_time_s(conn->store));
	return write_changes(conn, key, &c, limits, ret_problem);
}

enum outcome job_row_end(struct store_conn *conn, const struct job_key *key,
	const struct job_end *end, const struct call_limits *limits, struct problem *ret_problem)
{
	struct changes c = {.n = 0};
	char target[JOB_TARGET_MAX + 1], error[JOB_ERROR_MAX + 1];
	const int64_t now_s = store_time_s(conn->store);
	copy_cut(end->target, target, JOB_TARGET_MAX);
	copy_cut(end->error, error, JOB_ERROR_MAX);
	changes_set_text(&c, "target", target);
	changes_set_or_unset(&c, "error", error);
	changes_set_or_unset(&c, "failures", end->failures);
	if (end->session)
		changes_set_text(&c, "ended_session", end->session);
	changes_set_number(&c, "exit", end->exit);
	changes_set_number(&c, "ended", now_s);
	if (end->exit == 0)
		changes_set_number(&c, "succeeded", now_s);
	changes_set_number(&c, "uploaded", (int64_t)end->uploaded);
	changes_set_number(&c, "failed", (int64_t)end->failed);
	changes_set_number(&c, "bytes", (int64_t)end->bytes);
	return write_changes(conn, key, &c, limits, ret_problem);
}

/* What is missing or does not fit was not written by us: it is left out, since nothing depends on
 * it. */
static void read_text(const struct item *item, const char *name, char *ret, size_t size)
{
	const char *value = item_string(item, name);
	if (!value || snprintf(ret, size, "%s", value) >= (int)size)
		*ret = 0;
}

static int64_t read_number(const struct item *item, const char *name)
{
	int64_t value = 0;
	return item_number(item, name, &value) || value < 0 ? 0 : value;
}

static void read_row(const char *sk, const struct item *item, struct job_row *ret)
{
	int64_t exit;
	*ret = (struct job_row){.exit = -1};
	snprintf(ret->key.text, sizeof ret->key.text, "%s", sk);
	const size_t host = strcspn(ret->key.text, "/");
	snprintf(ret->host, sizeof ret->host, "%.*s", (int)host, ret->key.text);
	if (ret->key.text[host])
		snprintf(ret->job, sizeof ret->job, "%s", ret->key.text + host + 1);
	read_text(item, "version", ret->version, sizeof ret->version);
	read_text(item, "target", ret->target, sizeof ret->target);
	read_text(item, "error", ret->error, sizeof ret->error);
	read_text(item, "session", ret->session, sizeof ret->session);
	read_text(item, "ended_session", ret->ended_session, sizeof ret->ended_session);
	ret->began_s = read_number(item, "began");
	ret->ended_s = read_number(item, "ended");
	ret->succeeded_s = read_number(item, "succeeded");
	ret->uploaded = (uint64_t)read_number(item, "uploaded");
	ret->failed = (uint64_t)read_number(item, "failed");
	ret->bytes = (uint64_t)read_number(item, "bytes");
	if (ret->ended_s && item_number(item, "exit", &exit) == 0 && exit >= 0 && exit < 256)
		ret->exit = (int)exit;
}

/* A longer key is not one that job_key_make() has made. */
static bool is_job_key(const char *sk)
{
	const size_t host = strcspn(sk, "/");
	return host <= JOB_HOST_MAX && (!sk[host] || strlen(sk + host + 1) <= JOB_NAME_MAX);
}

struct page {
	struct job_row *rows;
	size_t n, most;
	char *last; /* the last key that came in this reply, owned; NULL: none */
};

static int add_to_page(void *arg, const char *pk, const char *sk, const struct item *item)
{
	struct page *page = arg;
	char *last = strdup(sk);
	(void)pk;
	if (!last)
		return -ENOMEM;
	free(page->last);
	page->last = last;
	if (page->n < page->most && is_job_key(sk))
		read_row(sk, item, &page->rows[page->n++]);
	return 0;
}

enum outcome job_rows_read(struct store_conn *conn, const struct job_key *after, size_t most,
	const struct call_limits *limits, struct job_row *ret, size_t *ret_n,
	struct problem *ret_problem)
{
	struct page page = {ret, 0, most, NULL};
	char *from = after ? strdup(after->text) : NULL;
	enum outcome o = OUTCOME_OK;
	if (after && !from) {
		problem_set(ret_problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	/* A page of the store may end before it is full. */
	for (bool more = true; more && page.n < most && o == OUTCOME_OK;) {
		const struct store_range range = {.pk = JOBS_PK,
			.from = from,
			.after = from != NULL,
			.most = (unsigned)(most - page.n)};
		o = conn->store->ops->query(
			conn, &range, limits, add_to_page, &page, &more, ret_problem);
		if (page.last) {
			free(from);
			from = page.last;
			page.last = NULL;
		}
	}
	free(from);
	*ret_n = page.n;
	return o;
}

enum outcome job_row_failures(struct store_conn *conn, const struct job_key *key,
	const struct call_limits *limits, struct text *ret, struct problem *ret_problem)
{
	struct item item = {0};
	enum outcome o =
		conn->store->ops->get(conn, row_key(key), false, limits, &item, ret_problem);
	const char *failures = o == OUTCOME_OK ? item_string(&item, "failures") : NULL;
	if (failures)
		text_add(ret, failures);
	item_clear(&item);
	return o == OUTCOME_ABSENT ? OUTCOME_OK : o;
}

enum outcome job_row_remove(struct store_conn *conn, const struct job_row *row,
	const struct call_limits *limits, struct problem *ret_problem)
{
	const struct condition as_read = {"version", CONDITION_EQUALS, VALUE_STRING, row->version};
	struct item present = {0};
	enum outcome o = conn->store->ops->write(conn, row_key(&row->key),
		&(struct item_write){.removes = true, .conditions = &as_read, .n_conditions = 1},
		limits, &present, ret_problem);
	/* It is gone: by this very request, which the wire sent twice, or by somebody else's. */
	if (o == OUTCOME_REFUSED && item_is_empty(&present))
		o = OUTCOME_OK;
	item_clear(&present);
	return o;
}
