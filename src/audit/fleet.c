/* The state of the jobs of all hosts, for `s3once fleet` and for the last runs in `s3once status`.
 * It reads a page of rows of jobs, and then the sessions of the jobs whose last run has not
 * reported its end. Each job is judged by its row and its session alone. Nothing is printed
 * here. */
#include "audit/fleet.h"
#include "s3once/push.h"
#include <stdlib.h>
#include <string.h>

#define PAGE   500  /* the number of rows read at once */
#define TYPO_S 3600 /* a target that fails for longer was not mistyped once */
/* The time from the last run on a machine to a success on another one, at least, after which the
 * job has moved. */
#define MOVED_FOR_S (24 * 3600)

const char *fleet_state_name(enum fleet_state state)
{
	static const char *const names[] = {
		[FLEET_IDLE] = "idle",
		[FLEET_RUNNING] = "running",
		[FLEET_SILENT] = "silent",
		[FLEET_LOST] = "lost",
	};
	return names[state];
}

/* Whether the last run has reported its end in the row of the job, or the row names no session at
 * all. */
static bool has_reported_end(const struct job_row *row)
{
	return !*row->session || strcmp(row->session, row->ended_session) == 0;
}

/* Returns the state that follows from the row, the session and now_s. */
static enum fleet_state fleet_state_of(const struct fleet_job *job)
{
	const struct job_row *row = &job->row;
	const struct session_info *session = &job->session;
	if (has_reported_end(row))
		return FLEET_IDLE;
	if (job->has_session && session_is_at_work(session, job->now_s))
		return FLEET_RUNNING;
	/* The session is silent or over, but another run of the same job has ended after this one
	 * began. */
	if (row->ended_s > row->began_s)
		return FLEET_IDLE;
	return job->has_session && session->is_open ? FLEET_SILENT : FLEET_LOST;
}

bool fleet_is_failure(int exit)
{
	return exit == S3ONCE_EXIT_FILES || exit == S3ONCE_EXIT_USAGE ||
	       exit == S3ONCE_EXIT_SETUP || exit == S3ONCE_EXIT_FENCED;
}

/* Whether the last run seems to be over without a result. */
static bool is_without_end(const struct fleet_job *job)
{
	return job->state == FLEET_SILENT || job->state == FLEET_LOST;
}

/* Returns whether the last success is longer than expect_s ago. A job that never succeeded is
 * overdue as well, unless its first run is still under way. */
static bool is_overdue(uint64_t expect_s, const struct fleet_job *job)
{
	const struct job_row *row = &job->row;
	if (!expect_s)
		return false;
	if (!row->succeeded_s)
		return row->ended_s || job->state != FLEET_RUNNING;
	return job->now_s > row->succeeded_s &&
	       (uint64_t)(job->now_s - row->succeeded_s) > expect_s;
}

void fleet_judge(uint64_t expect_s, struct fleet_job *job)
{
	job->state = fleet_state_of(job);
	job->has_failed = fleet_is_failure(job->row.exit);
	job->is_overdue = is_overdue(expect_s, job);
	job->waits_long = job->row.waiting && job->row.waiting_since_s &&
			  job->now_s - job->row.waiting_since_s > S3ONCE_WAITS_LONG_S;
	/* A run that succeeds sets both times to the same value. */
	job->repeats_long = job->row.exit == S3ONCE_EXIT_OK &&
			    job->row.ended_s - job->row.succeeded_s >= S3ONCE_REPEATS_LONG_S;
	job->is_fine =
		job->is_replaced || (!job->has_failed && !job->is_overdue && !is_without_end(job));
}

/* A page of rows of jobs, and the sessions that decide about some of them: the rows for which
 * has_reported_end() is false. Several rows may name the same session. */
struct page {
	struct job_row rows[PAGE];
	size_t id_of[PAGE];              /* for these rows: the index of their session in `ids` */
	const char *ids[PAGE];           /* the ids of the sessions */
	struct session_info infos[PAGE]; /* the session with the same index in `ids` */
	bool known[PAGE]; /* whether this session's info is set; otherwise its row is gone */
	bool has_moved[PAGE], has_namesake[PAGE]; /* as in struct fleet_job */
	size_t n, n_ids;
	bool is_last;
};

/* Adds an id to `ids` unless it already exists, and returns its index. Rows may name the same
 * session, and DynamoDB refuses a request that names an item twice. */
static size_t add_id(struct page *page, const char *id)
{
	size_t at = 0;
	while (at < page->n_ids && strcmp(page->ids[at], id) != 0)
		at++;
	if (at == page->n_ids)
		page->ids[page->n_ids++] = id;
	return at;
}

/* Returns the bytes of HOST and the sources, which stand before the target in the key of a job
 * without a name. 0: the job has a name. */
static size_t bytes_before_target(const struct job_row *row)
{
	const char *target = NULL;
	for (const char *at = row->key.text; (at = strstr(at, " s3://")); at++)
		target = at;
	return target ? (size_t)(target - row->key.text) : 0;
}

static bool is_same_host(const struct job_row *a, const struct job_row *b)
{
	return strcmp(a->host, b->host) == 0;
}

/* Returns the number of rows of the page without those of the last host name, whose other rows may
 * be in the next page. If all rows of the page have one, they stay. */
static size_t without_last_host(const struct page *page)
{
	size_t n = page->n;
	while (n && is_same_host(&page->rows[n - 1], &page->rows[page->n - 1]))
		n--;
	return n ? n : page->n;
}

/* Whether the job of this row has moved to the machine of the other one, unless a run of it is
 * still at work. A second host with this name, whose first run comes later in the same night, does
 * not make it so. Of two rows at least one has not moved. */
static bool has_moved_to(const struct job_row *row, const struct job_row *other)
{
	const int64_t last_s = row->began_s > row->ended_s ? row->began_s : row->ended_s;
	return other->first_s > last_s && other->succeeded_s - last_s >= MOVED_FOR_S;
}

static bool is_at_work(const struct page *page, size_t i, int64_t now_s)
{
	const size_t id = page->id_of[i];
	return !has_reported_end(&page->rows[i]) && page->known[id] &&
	       session_is_at_work(&page->infos[id], now_s);
}

/* Sets has_moved and has_namesake of row i, which is compared with the rows `from` to `to` - 1: all
 * those of its host name. */
static void compare_machines(struct page *page, size_t i, size_t from, size_t to, int64_t now_s)
{
	const struct job_row *row = &page->rows[i];
	for (size_t j = from; j < to; j++) {
		const struct job_row *other = &page->rows[j];
		const bool is_namesake = j != i && strcmp(other->job, row->job) == 0;
		if (!is_namesake)
			continue;
		page->has_namesake[i] |= !has_moved_to(other, row);
		page->has_moved[i] |= has_moved_to(row, other) && !is_at_work(page, i, now_s);
	}
}

/* Sets has_moved and has_namesake of all rows. */
static void find_moved_jobs(struct page *page, int64_t now_s)
{
	memset(page->has_moved, 0, sizeof page->has_moved);
	memset(page->has_namesake, 0, sizeof page->has_namesake);
	for (size_t from = 0, to = 0; from < page->n; from = to) {
		while (to < page->n && is_same_host(&page->rows[from], &page->rows[to]))
			to++;
		for (size_t i = from; i < to; i++)
			compare_machines(page, i, from, to, now_s);
	}
}

/* Whether the job in row i is_replaced. Rows of the same sources are side by side, so the other row
 * is looked for in this page alone. */
static bool is_replaced(const struct page *page, size_t i)
{
	const struct job_row *row = &page->rows[i];
	const size_t n = bytes_before_target(row);
	const bool has_name = !n;
	if (has_name || row->succeeded_s || row->exit != S3ONCE_EXIT_SETUP)
		return false;
	if (row->ended_s - row->failed_since_s > TYPO_S)
		return false;
	for (size_t j = 0; j < page->n; j++) {
		const struct job_row *other = &page->rows[j];
		if (bytes_before_target(other) == n && other->succeeded_s >= row->ended_s &&
			strncmp(other->key.text, row->key.text, n) == 0)
			return true;
	}
	return false;
}

/* Reads the page of rows that follow `after`, and the sessions that decide about some of them. A
 * job is not divided between two pages. */
static enum outcome read_page(struct store_conn *conn, const struct job_key *after,
	struct page *page, struct problem *ret_problem)
{
	/* Limits NULL: both calls go on until their retries are used up. */
	const enum outcome o =
		job_rows_read(conn, after, PAGE, NULL, page->rows, &page->n, ret_problem);
	if (o != OUTCOME_OK)
		return o;
	page->is_last = page->n < PAGE;
	if (!page->is_last)
		page->n = without_last_host(page);
	page->n_ids = 0;
	for (size_t i = 0; i < page->n; i++)
		if (!has_reported_end(&page->rows[i]))
			page->id_of[i] = add_id(page, page->rows[i].session);
	return session_describe_many(
		conn, page->ids, page->n_ids, NULL, page->infos, page->known, ret_problem);
}

/* Makes and judges the job in row i. */
static struct fleet_job job_of_row(
	const struct page *page, size_t i, uint64_t expect_s, int64_t now_s)
{
	struct fleet_job job = {.row = page->rows[i], .now_s = now_s};
	if (!has_reported_end(&job.row)) {
		job.has_session = page->known[page->id_of[i]];
		job.session = page->infos[page->id_of[i]];
	}
	job.has_moved = page->has_moved[i];
	job.has_namesake = page->has_namesake[i];
	job.is_replaced = is_replaced(page, i);
	fleet_judge(expect_s, &job);
	return job;
}

/* Whether the job is_without_end(), and its session was heard, or its run began, so lately that
 * this may have changed since its row was read. */
static bool may_have_changed(const struct fleet_job *job)
{
	const struct session_info begun = {.heard_s = job->row.began_s};
	return is_without_end(job) && !job->has_moved &&
	       session_may_have_ended_since(job->has_session ? &job->session : &begun, job->now_s);
}

/* Judges a job that is_without_end() again. Its session and its row are read consistently, and the
 * session before the row: a run ends its session after it has reported its end. */
static enum outcome judge_again(struct store_conn *conn, uint64_t expect_s, struct fleet_job *job,
	struct problem *ret_problem)
{
	for (;;) {
		struct job_row now;
		enum outcome o = OUTCOME_ABSENT;
		if (!has_reported_end(&job->row))
			o = session_describe(conn, job->row.session, &job->session, ret_problem);
		if (o != OUTCOME_OK && o != OUTCOME_ABSENT)
			return o;
		job->has_session = o == OUTCOME_OK;
		fleet_judge(expect_s, job);
		if (!is_without_end(job))
			return OUTCOME_OK;
		o = job_row_read(conn, &job->row.key, NULL, &now, ret_problem);
		if (o != OUTCOME_OK)
			return o == OUTCOME_ABSENT ? OUTCOME_OK : o;
		if (strcmp(now.version, job->row.version) == 0)
			return OUTCOME_OK;
		job->row = now;
	}
}

enum outcome fleet_walk(struct store_conn *conn, uint64_t expect_s,
	enum outcome (*each)(void *arg, const struct fleet_job *job, struct problem *ret_problem),
	void *arg, struct problem *ret_problem)
{
	struct page *page = calloc(1, sizeof *page);
	const struct job_key *after = NULL;
	struct job_key last;
	enum outcome o;
	if (!page)
		return outcome_no_memory(ret_problem);
	do {
		o = read_page(conn, after, page, ret_problem);
		const int64_t now_s = store_time_s(conn->store);
		if (o == OUTCOME_OK)
			find_moved_jobs(page, now_s);
		for (size_t i = 0; o == OUTCOME_OK && i < page->n; i++) {
			struct fleet_job job = job_of_row(page, i, expect_s, now_s);
			if (may_have_changed(&job))
				o = judge_again(conn, expect_s, &job, ret_problem);
			if (o == OUTCOME_OK)
				o = each(arg, &job, ret_problem);
		}
		/* The next page begins after the last key of this one, and takes the place of this
		 * page. So the key is copied. */
		if (page->n)
			last = page->rows[page->n - 1].key;
		after = &last;
	} while (o == OUTCOME_OK && !page->is_last);
	free(page);
	return o;
}
