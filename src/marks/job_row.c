/* The rows of jobs. The key of a row is made of the names of its host and its job, and of the id of
 * its machine: hosts that share a name must not hide each other's failures. A run writes its report
 * there when it begins and when it ends, and `s3once fleet` reads the rows, page by page. No upload
 * depends on these rows: people read them. */
#include "marks/job_row.h"
#include "base/checksum.h"
#include "marks/row.h"
#include "store/item_pack.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOBS_PK   "jobs"
#define TAG_CHARS 16 /* length of the hash of a name that was cut */

/* Copies a string. If it has more than `max_bytes` bytes, its middle is replaced by "...", since
 * long names mostly differ at their ends. The string was escaped before, so that it is UTF-8. It is
 * cut between two characters: all bytes of a character but the first are 10xxxxxx. */
static void copy_cut(const char *s, char *ret, size_t max_bytes)
{
	static const char dots[] = "...";
	const size_t n = strlen(s), half = (max_bytes - strlen(dots)) / 2;
	if (n <= max_bytes) {
		memcpy(ret, s, n + 1);
		return;
	}
	size_t head = half;
	while (head && (s[head] & 0xC0) == 0x80)
		head--;
	const char *tail = s + n - half;
	while ((*tail & 0xC0) == 0x80)
		tail++;
	snprintf(ret, max_bytes + 1, "%.*s%s%s", (int)head, s, dots, tail);
}

/* Copies a name, escaped. If the name is cut, a hash of it follows, so that two jobs whose cut
 * names are the same do not share a row. */
static void copy_name(const char *bytes, char *ret, size_t max_bytes)
{
	struct text t = TEXT(64U << 10); /* a name that has no room in it is cut in any case */
	struct sums sums;
	char tag[2 * sizeof sums.sha256 + 1];
	text_add_escaped_string(&t, bytes);
	const bool is_cut = t.error || t.len > max_bytes;
	copy_cut(text_string(&t), ret, is_cut ? max_bytes - TAG_CHARS - 1 : max_bytes);
	text_clear(&t);
	/* If the hash cannot be computed, the cut name alone has to do. */
	if (!is_cut || digest_bytes(DIGEST_SHA256, bytes, strlen(bytes), &sums))
		return;
	hex_encode(sums.sha256, sizeof sums.sha256, tag);
	snprintf(ret + strlen(ret), max_bytes + 1 - strlen(ret), "~%.*s", TAG_CHARS, tag);
}

void job_key_make(const struct job_name *name, struct job_key *ret)
{
	char host[JOB_HOST_MAX + 1], job[JOB_NAME_MAX + 1];
	ret->only_updates = false;
	copy_name(name->host, host, JOB_HOST_MAX);
	for (char *slash; (slash = strchr(host, '/'));)
		*slash = '_'; /* the first slash ends the host */
	copy_name(name->job, job, JOB_NAME_MAX);
	snprintf(ret->text, sizeof ret->text, "%s/%.*s/%s", host, JOB_MACHINE_CHARS, name->machine,
		job);
}

/* The groups of fields that a run writes when it begins and when it ends. 0 and "" are written like
 * any other value, but for `error`: "" removes that of an earlier run. A value that does not fit
 * its field is ignored when the row is read, since nothing depends on it. */
enum {
	GROUP_BEGAN = 1 << 0,
	GROUP_ENDED = 1 << 1,
	GROUP_SUCCEEDED = 1 << 2,
	GROUP_ENDED_SESSION = 1 << 3,
	GROUP_VERSION = 1 << 4,
	GROUP_WAITING = 1 << 5,
	GROUP_SHIPPED = 1 << 6,
	GROUP_FAILED_SINCE = 1 << 7,
	GROUP_FIRST_RUN = 1 << 8,
};
#define FIELD(member, attribute, how, group)                                                       \
	ROW_FIELD(struct job_row, member, attribute, how, .groups = (group), .is_always = true)
static const struct row_field fields[] = {
	FIELD(target, "target", FIELD_TEXT, GROUP_BEGAN | GROUP_ENDED),
	ROW_FIELD(struct job_row, error, "error", FIELD_TEXT, .groups = GROUP_ENDED),
	FIELD(ended_session, "ended_session", FIELD_TEXT, GROUP_ENDED_SESSION),
	FIELD(exit, "exit", FIELD_INT, GROUP_ENDED),
	FIELD(ended_s, "ended", FIELD_NUMBER, GROUP_ENDED),
	FIELD(succeeded_s, "succeeded", FIELD_NUMBER, GROUP_SUCCEEDED),
	FIELD(shipped_s, "shipped", FIELD_NUMBER, GROUP_SHIPPED),
	FIELD(failed_since_s, "failed_since", FIELD_NUMBER, GROUP_FAILED_SINCE),
	FIELD(found, "found", FIELD_SIZE, GROUP_ENDED),
	FIELD(uploaded, "uploaded", FIELD_SIZE, GROUP_ENDED),
	FIELD(failed, "failed", FIELD_SIZE, GROUP_ENDED),
	FIELD(bytes, "bytes", FIELD_SIZE, GROUP_ENDED),
	FIELD(waiting, "waiting", FIELD_SIZE, GROUP_WAITING),
	FIELD(waiting_since_s, "waiting_since", FIELD_NUMBER, GROUP_WAITING),
	FIELD(session, "session", FIELD_TEXT, GROUP_BEGAN),
	FIELD(began_s, "began", FIELD_NUMBER, GROUP_BEGAN),
	FIELD(first_s, "first", FIELD_NUMBER, GROUP_FIRST_RUN),
	FIELD(version, "version", FIELD_TEXT, GROUP_VERSION),
};
static const struct row_table job_table = ROW_TABLE(fields);

/* Writes the changes of a run into the row, with a new version. A row that is absent is made,
 * unless the key only updates. */
static enum outcome write_row(struct store_conn *conn, const struct job_key *key,
	struct row_write *write, const struct call_limits *limits, struct problem *ret_problem)
{
	const struct item_key at = {JOBS_PK, key->text};
	struct job_row changed = {.first_s = store_time_s(conn->store)};
	struct item present = {0};
	random_id(changed.version);
	row_set(write, &job_table, GROUP_VERSION, &changed);
	/* Every row has a version, so this condition says that the row is there. */
	row_expect_test(write, "version", CONDITION_PRESENT);
	enum outcome o = row_perform(conn, at, write, limits, &present, ret_problem);
	const bool is_absent = o == OUTCOME_REFUSED && item_is_empty(&present);
	item_clear(&present);
	if (!is_absent || key->only_updates)
		return o;
	write->kind = ROW_MAKES;
	row_set(write, &job_table, GROUP_FIRST_RUN, &changed);
	return row_perform(conn, at, write, limits, NULL, ret_problem);
}

enum outcome job_row_begin(struct store_conn *conn, const struct job_key *key,
	const struct job_begin *begin, const struct call_limits *limits,
	struct problem *ret_problem)
{
	struct job_row row = {.began_s = store_time_s(conn->store)};
	struct row_write write = {0};
	copy_cut(begin->target, row.target, JOB_TARGET_MAX);
	snprintf(row.session, sizeof row.session, "%s", begin->session);
	row_set(&write, &job_table, GROUP_BEGAN, &row);
	return write_row(conn, key, &write, limits, ret_problem);
}

enum failure_record {
	FIRST_FAILURE, /* the run is the first one since the last success that failed */
	LEAVE_FAILURE, /* it has not failed, or an earlier run is recorded as the first one */
};
/* Writes the result of a run. REFUSED: it is not the FIRST_FAILURE, since the row names an earlier
 * one, or the key only updates and there is no row. */
static enum outcome write_end(struct store_conn *conn, const struct job_key *key,
	const struct job_end *end, enum failure_record failure, const struct call_limits *limits,
	struct problem *ret_problem)
{
	const int64_t now_s = store_time_s(conn->store);
	const bool succeeded = end->exit == 0 && !end->repeats;
	struct job_row row = {.exit = end->exit,
		.ended_s = now_s,
		.succeeded_s = now_s,
		.shipped_s = now_s,
		.failed_since_s = now_s,
		.found = end->found,
		.uploaded = end->uploaded,
		.failed = end->failed,
		.bytes = end->bytes,
		.waiting = end->waiting,
		.waiting_since_s = end->waiting_since_s};
	struct row_write write = {0};
	copy_cut(end->target, row.target, JOB_TARGET_MAX);
	copy_cut(end->error, row.error, JOB_ERROR_MAX);
	snprintf(row.ended_session, sizeof row.ended_session, "%s",
		end->session ? end->session : "");
	/* A group that does not apply keeps its values of an earlier run. */
	unsigned groups = GROUP_ENDED;
	if (end->session)
		groups |= GROUP_ENDED_SESSION;
	if (succeeded) {
		groups |= GROUP_SUCCEEDED;
		row_unset(&write, &job_table, GROUP_FAILED_SINCE);
	}
	if (failure == FIRST_FAILURE) {
		groups |= GROUP_FAILED_SINCE;
		row_expect_test(&write, "failed_since", CONDITION_ABSENT);
	}
	if (end->uploaded)
		groups |= GROUP_SHIPPED;
	if (end->has_seen_all)
		groups |= GROUP_WAITING;
	row_set(&write, &job_table, groups, &row);
	/* The lines about failures may be long, so struct job_row has no field for them. Without
	 * failures, NULL removes those of an earlier run. */
	write.changes[write.n_changes++] =
		(struct change){"failures", VALUE_STRING, *end->failures ? end->failures : NULL, 0};
	return write_row(conn, key, &write, limits, ret_problem);
}

enum outcome job_row_end(struct store_conn *conn, const struct job_key *key,
	const struct job_end *end, const struct call_limits *limits, struct problem *ret_problem)
{
	enum outcome o = OUTCOME_REFUSED;
	if (end->exit != 0)
		o = write_end(conn, key, end, FIRST_FAILURE, limits, ret_problem);
	if (o == OUTCOME_REFUSED)
		o = write_end(conn, key, end, LEAVE_FAILURE, limits, ret_problem);
	return o;
}

/* The parts of a sort key. Only the job may contain slashes. A part that is missing is "". */
struct key_parts {
	const char *host, *machine, *job;
	size_t host_bytes, machine_bytes;
};
static struct key_parts key_parts(const char *sk)
{
	struct key_parts parts = {.host = sk, .host_bytes = strcspn(sk, "/")};
	parts.machine = sk + parts.host_bytes + (sk[parts.host_bytes] == '/');
	parts.machine_bytes = strcspn(parts.machine, "/");
	parts.job =
		parts.machine + parts.machine_bytes + (parts.machine[parts.machine_bytes] == '/');
	return parts;
}

/* Whether job_key_make() may have made this key. */
static bool has_room(const struct key_parts *parts)
{
	return parts->host_bytes <= JOB_HOST_MAX && parts->machine_bytes <= JOB_MACHINE_CHARS &&
	       strlen(parts->job) <= JOB_NAME_MAX;
}

/* Reads a row whose key has_room(). `exit` is -1 unless a run has ended. Impossible values are
 * ignored. 0 or -ENOMEM. */
static int read_row(const char *sk, const struct item *item, struct job_row *ret)
{
	const struct key_parts parts = key_parts(sk);
	*ret = (struct job_row){.exit = -1};
	snprintf(ret->key.text, sizeof ret->key.text, "%s", sk);
	snprintf(ret->host, sizeof ret->host, "%.*s", (int)parts.host_bytes, parts.host);
	snprintf(
		ret->machine, sizeof ret->machine, "%.*s", (int)parts.machine_bytes, parts.machine);
	snprintf(ret->job, sizeof ret->job, "%s", parts.job);
	const int error = row_read(&job_table, item, ret);
	int64_t *const times[] = {&ret->first_s, &ret->began_s, &ret->ended_s, &ret->succeeded_s,
		&ret->shipped_s, &ret->failed_since_s, &ret->waiting_since_s};
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		*times[i] = *times[i] < 0 ? 0 : *times[i];
	if (!ret->ended_s || ret->exit < 0 || ret->exit > 255)
		ret->exit = -1;
	return error == -ENOMEM ? error : 0;
}

struct page {
	struct job_row *rows;
	size_t n, max_rows;
	char *last; /* the last key that came in this reply, owned; NULL: none */
};

/* Adds a row to the page if the page has room. Skips a row whose key is longer than job_key_make()
 * makes it. In any case page->last is its key, after which the reading continues: the store is
 * never asked for more rows than have room. 0 or -ENOMEM. */
static int add_to_page(void *arg, const char *pk, const char *sk, const struct item *item)
{
	struct page *page = arg;
	char *last = strdup(sk);
	const struct key_parts parts = key_parts(sk);
	if (!last)
		return -ENOMEM;
	free(page->last);
	page->last = last;
	if (page->n == page->max_rows || !has_room(&parts))
		return 0;
	return read_row(sk, item, &page->rows[page->n++]);
}

enum outcome job_rows_read(struct store_conn *conn, const struct job_key *after, size_t max_rows,
	const struct call_limits *limits, struct job_row *ret, size_t *ret_n,
	struct problem *ret_problem)
{
	struct page page = {.rows = ret, .max_rows = max_rows};
	struct item_visitor rows = {add_to_page, &page};
	char *from = after ? strdup(after->text) : NULL;
	enum outcome o = OUTCOME_OK;
	if (after && !from)
		return outcome_no_memory(ret_problem);
	/* A page of the store may end before `max_rows` rows were read. While it is read, the store
	 * uses `from`, so add_to_page() keeps the last key elsewhere. */
	for (bool more = true; more && page.n < max_rows && o == OUTCOME_OK;) {
		const struct store_range range = {.pk = JOBS_PK,
			.from = from,
			.after = from != NULL,
			.max_items = (unsigned)(max_rows - page.n)};
		o = conn->store->ops->query(
			conn, &range, limits, visit_unpacked, &rows, &more, ret_problem);
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

enum outcome job_row_read(struct store_conn *conn, const struct job_key *key,
	const struct call_limits *limits, struct job_row *ret, struct problem *ret_problem)
{
	struct item item = {0};
	enum outcome o = conn->store->ops->get(conn, (struct item_key){JOBS_PK, key->text},
		READ_CONSISTENT, limits, &item, ret_problem);
	if (o == OUTCOME_OK && read_row(key->text, &item, ret))
		o = outcome_no_memory(ret_problem);
	item_clear(&item);
	return o;
}

enum outcome job_row_failures(struct store_conn *conn, const struct job_key *key,
	const struct call_limits *limits, struct text *ret, struct problem *ret_problem)
{
	struct item item = {0};
	enum outcome o = conn->store->ops->get(conn, (struct item_key){JOBS_PK, key->text},
		READ_EVENTUAL, limits, &item, ret_problem);
	const char *failures = o == OUTCOME_OK ? item_string(&item, "failures") : NULL;
	if (failures)
		text_add(ret, failures);
	item_clear(&item);
	return o == OUTCOME_ABSENT ? OUTCOME_OK : o;
}

enum outcome job_row_remove(struct store_conn *conn, const struct job_row *row,
	const struct call_limits *limits, struct problem *ret_problem)
{
	struct row_write write = {.kind = ROW_REMOVES};
	row_expect(&write, &job_table, GROUP_VERSION, row);
	struct item present = {0};
	enum outcome o = row_perform(conn, (struct item_key){JOBS_PK, row->key.text}, &write,
		limits, &present, ret_problem);
	/* The row is gone: removed by another client, or by this request itself, if it was sent
	 * twice. */
	if (o == OUTCOME_REFUSED && item_is_empty(&present))
		o = OUTCOME_OK;
	item_clear(&present);
	return o;
}
