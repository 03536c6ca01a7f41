/* The session of a run. It writes a row of its own, which a lease renews, and judges whether the
 * sessions of others are over. Runs and gc have one. A row that is not understood counts as held,
 * and never as over. Whether a lease has expired follows only from the time for which this host has
 * seen the row's version unchanged. */
#include "marks/session.h"
#include "base/clock.h"
#include "base/log.h"
#include "lease/lease.h"
#include "lease/observer.h"
#include "marks/row.h"
#include "store/item_pack.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define LEASE_MAX_MS   (INT64_MAX / (int64_t)NS_PER_MS) /* more would not fit as nanoseconds */
#define SESSION_PK_MAX (sizeof "session#" + ID_CHARS)
#define LATE_S         2 /* the error of times in whole seconds */
/* More than the clocks of two hosts differ by, and than a page of rows takes to be read. */
#define LATELY_S 60

struct session {
	struct session_options options;
	struct call_limits limits; /* limits of the requests of this session */
	struct process self;
	char id[ID_CHARS + 1];
	struct lease_keeper *keeper;
	struct lease *lease;
	char observations[4096]; /* the path of their file; "": they are not kept */
	struct {
		uv_mutex_t mutex;
		bool begun;
		struct observer observer;
		/* the last reading for each observation */
		struct session_info infos[OBSERVATIONS_MAX]; /* see info_of_observation_locked() */
	} locked;
};

enum {
	GROUP_STATE = 1 << 0,
	GROUP_VERSION = 1 << 1,
	GROUP_EXPIRES = 1 << 2,
	GROUP_SO_FAR = 1 << 3,
	GROUP_ENDED_BY = 1 << 4,
	GROUP_REST = 1 << 5,
};
#define FIELD(member, attribute, how, group)                                                       \
	ROW_FIELD(struct session_info, member, attribute, how, .groups = (group), .is_always = true)
static const struct row_field fields[] = {
	FIELD(owner, "owner", FIELD_TEXT, GROUP_REST),
	FIELD(version, "version", FIELD_TEXT, GROUP_VERSION),
	FIELD(state, "state", FIELD_TEXT, GROUP_STATE),
	FIELD(process.host, "host", FIELD_TEXT, GROUP_REST),
	FIELD(process.boot, "boot", FIELD_TEXT, GROUP_REST),
	FIELD(process.machine, "machine", FIELD_TEXT, GROUP_REST),
	FIELD(process.board, "board", FIELD_TEXT, GROUP_REST),
	FIELD(process.pid_space, "pid_space", FIELD_TEXT, GROUP_REST),
	FIELD(process.time_space, "time_space", FIELD_TEXT, GROUP_REST),
	FIELD(lease_ms, "lease", FIELD_NUMBER, GROUP_REST),
	FIELD(process.pid, "pid", FIELD_INT, GROUP_REST),
	FIELD(process.start, "start", FIELD_SIZE, GROUP_REST),
	FIELD(started_s, "started", FIELD_NUMBER, GROUP_REST),
	FIELD(expires_s, "expires", FIELD_NUMBER, GROUP_EXPIRES),
	FIELD(so_far.files, "files", FIELD_SIZE, GROUP_SO_FAR),
	FIELD(so_far.files_done, "files_done", FIELD_SIZE, GROUP_SO_FAR),
	FIELD(so_far.files_found, "files_found", FIELD_SIZE, GROUP_SO_FAR),
	FIELD(so_far.bytes_done, "bytes_done", FIELD_SIZE, GROUP_SO_FAR),
	FIELD(so_far.bytes_found, "bytes_found", FIELD_SIZE, GROUP_SO_FAR),
	FIELD(so_far.rate, "rate", FIELD_SIZE, GROUP_SO_FAR),
	FIELD(so_far.left_s, "left", FIELD_NUMBER, GROUP_SO_FAR),
	ROW_FIELD(struct session_info, so_far.is_whole, "found_all", FIELD_FLAG,
		.groups = GROUP_SO_FAR),
	FIELD(ended_by, "ended_by", FIELD_TEXT, GROUP_ENDED_BY),
};
static const struct row_table session_table = ROW_TABLE(fields);

static struct item_key row_key(const char *id, char pk[static SESSION_PK_MAX])
{
	snprintf(pk, SESSION_PK_MAX, "session#%s", id);
	return (struct item_key){pk, "-"};
}

/* Reads a session from its row. `self` is this process. If it is NULL, is_gone is not
 * determined. */
static struct session_info read_session_row(const struct item *item, const struct process *self)
{
	struct session_info row = {0};
	/* A field that cannot be read stays 0 or "". judge_other_row() never treats such a row
	 * as over. */
	row_read(&session_table, item, &row);
	row.is_open = strcmp(row.state, "ended") != 0;
	row.is_gone = self && row.is_open && process_is_gone(self, &row.process);
	row.lease_ns = (uint64_t)row.lease_ms * NS_PER_MS;
	/* `expires` is SESSION_KEEP_S after the last heartbeat. */
	if (row.expires_s > SESSION_KEEP_S)
		row.heard_s = row.expires_s - SESSION_KEEP_S;
	return row;
}

/* Reads the row of a session consistently. If there is no row, the outcome is ABSENT, and *ret is
 * what read_session_row() makes of an empty item: without any value, but open. */
static enum outcome get_row(struct store_conn *conn, const char *id, const struct process *self,
	const struct call_limits *limits, struct session_info *ret, struct problem *ret_problem)
{
	char pk[SESSION_PK_MAX];
	struct item item = {0};
	const enum outcome o = conn->store->ops->get(
		conn, row_key(id, pk), READ_CONSISTENT, limits, &item, ret_problem);
	*ret = read_session_row(&item, self);
	item_clear(&item);
	return o;
}

/* Changes the row of a session if it is open and, unless `version` is NULL, has this version. */
static enum outcome write_open_row(struct store_conn *conn, const char *id, const char *version,
	struct row_write *write, const struct call_limits *limits, struct item *ret_present,
	struct problem *ret_problem)
{
	char pk[SESSION_PK_MAX];
	struct session_info seen = {.state = "open"};
	snprintf(seen.version, sizeof seen.version, "%s", version ? version : "");
	row_expect(
		write, &session_table, version ? GROUP_VERSION | GROUP_STATE : GROUP_STATE, &seen);
	return row_perform(conn, row_key(id, pk), write, limits, ret_present, ret_problem);
}

/* Sends a heartbeat. While no file makes progress it fails instead, so that the lease expires and
 * others may take the files. */
static enum outcome renew(void *arg, struct store_conn *conn, const struct lease_try *try,
	struct item *ret_row, struct problem *ret_problem)
{
	const struct session *session = arg;
	const struct session_options *options = &session->options;
	if (options->is_stuck && options->is_stuck(options->arg))
		return outcome_error(ret_problem, OUTCOME_TRANSIENT,
			"no file has made progress for a long time, so they pause and other "
			"uploaders may take the files; check whether a disk does not answer");
	struct session_info next = {.expires_s = store_time_s(options->store) + SESSION_KEEP_S};
	struct row_write write = {0};
	if (options->so_far)
		options->so_far(options->arg, &next.so_far);
	snprintf(next.version, sizeof next.version, "%s", try->next);
	row_set(&write, &session_table, GROUP_VERSION | GROUP_EXPIRES | GROUP_SO_FAR, &next);
	return write_open_row(
		conn, session->id, try->version, &write, try->limits, ret_row, ret_problem);
}

/* Whether the row that has refused a heartbeat may be ours: lease_ops.row_version(). */
static const char *own_row_version(void *arg, const struct item *row,
	char ret_why[static LEASE_TEXT_MAX], char ret_owner[static LEASE_TEXT_MAX])
{
	const char *state = item_string(row, "state"), *version = item_string(row, "version");
	const bool is_open = state && strcmp(state, "open") == 0;
	const char *why = "the row of this session has a version that this process did not write: "
			  "a copy of this process (a cloned machine?) renews it";
	if (item_is_empty(row))
		why = "the row of this session was deleted";
	else if (!is_open)
		why = "another uploader ended this session, because its lease had expired";
	snprintf(ret_why, LEASE_TEXT_MAX, "%s", why);
	*ret_owner = 0;
	return is_open ? version : NULL;
}

static void on_lease_event(void *arg, enum lease_event event, const char *text, const char *owner)
{
	if (event == LEASE_OUTAGE)
		log_warning("heartbeats fail: %s", text);
}

static const struct lease_ops lease_ops = {
	.renew = renew, .row_version = own_row_version, .on_event = on_lease_event};

int session_new(const struct session_options *options, struct session **ret)
{
	struct session *session = calloc(1, sizeof *session);
	if (!session)
		return -ENOMEM;
	session->options = *options;
	session->limits = (struct call_limits){.abandon = options->abandon,
		.abandon_arg = options->arg,
		.progress = options->progress};
	process_self(&session->self);
	random_id(session->id);
	if (options->observations)
		snprintf(session->observations, sizeof session->observations, "%s",
			options->observations);
	const struct lease_options lease = {.ops = &lease_ops,
		.arg = session,
		.lease_ns = options->lease_ns,
		.heartbeat_ns = options->heartbeat_ns};
	int error = lease_keeper_new(options->store, 1, &session->keeper); /* one thread sends */
	if (!error)
		error = lease_new(session->keeper, &lease, &session->lease);
	if (error) {
		lease_keeper_free(session->keeper);
		free(session);
		return error;
	}
	uv_mutex_init(&session->locked.mutex);
	if (*session->observations)
		observer_load(&session->locked.observer, session->observations);
	*ret = session;
	return 0;
}

const char *session_id(const struct session *session)
{
	return session->id;
}

/* Writes the row of this session and starts the heartbeats. The lease is counted from before the
 * request was sent, so that it never seems longer to us than to others. */
static enum outcome write_own_row(
	struct session *session, struct store_conn *conn, struct problem *ret_problem)
{
	const int64_t now_s = store_time_s(session->options.store);
	struct session_info row = {.state = "open",
		.process = session->self,
		.lease_ms = (int64_t)(session->options.lease_ns / NS_PER_MS),
		.started_s = now_s,
		.expires_s = now_s + SESSION_KEEP_S};
	struct row_write write = {.kind = ROW_PUTS};
	char pk[SESSION_PK_MAX];
	struct item present = {0};
	snprintf(row.owner, sizeof row.owner, "%s pid %d", row.process.host, (int)row.process.pid);
	random_id(row.version);
	if (session->options.so_far)
		session->options.so_far(session->options.arg, &row.so_far);
	row_set(&write, &session_table,
		GROUP_STATE | GROUP_VERSION | GROUP_EXPIRES | GROUP_SO_FAR | GROUP_REST, &row);
	row_expect_test(&write, "pk", CONDITION_ABSENT);
	const uint64_t sent_ns = clock_boot_ns();
	enum outcome o = row_perform(
		conn, row_key(session->id, pk), &write, &session->limits, &present, ret_problem);
	const char *seen = item_string(&present, "version");
	if (o == OUTCOME_REFUSED && seen && strcmp(seen, row.version) == 0)
		o = OUTCOME_OK; /* refused by our own write, which was sent twice */
	item_clear(&present);
	if (o == OUTCOME_OK && lease_start(session->lease, row.version, sent_ns))
		o = outcome_error(ret_problem, OUTCOME_SETUP, PROBLEM_NO_THREAD);
	return o;
}

enum outcome session_begin(
	struct session *session, struct store_conn *conn, struct problem *ret_problem)
{
	enum outcome o = OUTCOME_OK;
	uv_mutex_lock(&session->locked.mutex);
	if (!session->locked.begun) {
		o = write_own_row(session, conn, ret_problem);
		session->locked.begun = o == OUTCOME_OK;
	}
	uv_mutex_unlock(&session->locked.mutex);
	return o;
}

uint64_t session_lease_ends_ns(const struct session *session)
{
	return lease_ends_ns(session->lease);
}

bool session_wait_for_lease(struct session *session, bool (*abandon)(void *arg), void *arg)
{
	return lease_await(session->lease, session->options.lease_ns / 2, abandon, arg);
}

bool session_is_fenced(const struct session *session)
{
	return lease_is_lost(session->lease);
}

const char *session_fence_reason(const struct session *session)
{
	return lease_loss(session->lease);
}

/* Ends the row of another session if it still has the version that was judged. Sets *ret_over to
 * whether the session is over now: it is not if it has renewed its row meanwhile. With `reads_only`
 * nothing is written, and the session counts as over. Returns OK, or the outcome if the store did
 * not answer. */
static enum outcome end_row(struct session *session, struct store_conn *conn, const char *id,
	const char *version, bool *ret_over, struct problem *ret_problem)
{
	struct session_info ended = {.state = "ended"};
	struct row_write write = {0};
	struct item present = {0};
	if (session->options.reads_only) {
		*ret_over = true;
		return OUTCOME_OK;
	}
	memcpy(ended.ended_by, session->id, sizeof ended.ended_by);
	row_set(&write, &session_table, GROUP_STATE | GROUP_ENDED_BY, &ended);
	enum outcome o =
		write_open_row(conn, id, version, &write, &session->limits, &present, ret_problem);
	/* After a refusal, the row may be ended, by another uploader or by this write if it was
	 * sent twice, or it may be gone. */
	const struct session_info now = read_session_row(&present, NULL);
	const bool is_still_open = strcmp(now.state, "open") == 0;
	*ret_over = o == OUTCOME_OK || (o == OUTCOME_REFUSED && !is_still_open);
	item_clear(&present);
	return o == OUTCOME_REFUSED ? OUTCOME_OK : o;
}

/* Sets seen->over by the present row of another session. If the session is over and its row is
 * still open, ends the row. session_end_if_over() holds the mutex. */
static enum outcome judge_other_row(struct session *session, struct store_conn *conn,
	struct observation *seen, const struct session_info *row, uint64_t now_ns,
	struct problem *ret_problem)
{
	seen->over = strcmp(row->state, "ended") == 0;
	if (seen->over)
		return OUTCOME_OK;
	/* A row that is not understood counts as held, and never as over. */
	const bool is_understood = strcmp(row->state, "open") == 0 && *row->version &&
				   row->lease_ms > 0 && row->lease_ms <= LEASE_MAX_MS;
	if (!is_understood)
		return OUTCOME_OK;
	if (process_is_gone(&session->self, &row->process))
		log_info("session %s: its process %d on this host is gone", seen->row,
			(int)row->process.pid);
	else if (observer_note(seen, row->version, now_ns) >= row->lease_ns)
		log_info("session %s: no heartbeat for a whole lease", seen->row);
	else
		return OUTCOME_OK; /* it may be running */
	/* Ending the row fences the session, before others take its claims. */
	return end_row(session, conn, seen->row, row->version, &seen->over, ret_problem);
}

/* Returns the info about the session of an observation: infos[i] is about observer.list[i]. */
static struct session_info *info_of_observation_locked(
	struct session *session, const struct observation *seen)
{
	return &session->locked.infos[seen - session->locked.observer.list];
}

/* Reads the row of another session, judges the session, and keeps the result in *seen and in
 * session->locked.infos. The caller, session_end_if_over(), holds the mutex. */
static enum outcome read_other_session(struct session *session, struct store_conn *conn,
	struct observation *seen, struct problem *ret_problem)
{
	struct session_info row;
	/* The time is taken after the reply, since this host cannot know earlier that the row has
	 * this version (invariant 6 of docs/protocol.md). */
	enum outcome o = get_row(conn, seen->row, NULL, &session->limits, &row, ret_problem);
	const uint64_t now_ns = clock_boot_ns();
	/* The row was written before the first claim. So if it is absent, it was swept, long after
	 * the last heartbeat. */
	seen->over = o == OUTCOME_ABSENT;
	*info_of_observation_locked(session, seen) = row;
	if (o == OUTCOME_OK)
		o = judge_other_row(session, conn, seen, &row, now_ns, ret_problem);
	seen->asked_ns = now_ns;
	return o == OUTCOME_ABSENT ? OUTCOME_OK : o;
}

enum outcome session_end_if_over(struct session *session, struct store_conn *conn, const char *id,
	bool *ret_over, uint64_t *ret_again_ns, struct problem *ret_problem)
{
	/* the least time between two requests about one session */
	const uint64_t pause_ns = NS_PER_S / 2;
	enum outcome o = OUTCOME_OK;
	*ret_over = false;
	if (strcmp(id, session->id) == 0) {
		*ret_again_ns = clock_boot_ns() + pause_ns;
		return o;
	}
	/* The mutex is held during the request, so that one request answers all workers. */
	uv_mutex_lock(&session->locked.mutex);
	struct observation *seen = observer_find_or_add(&session->locked.observer, id);
	const bool was_just_asked = seen->asked_ns && clock_boot_ns() - seen->asked_ns < pause_ns;
	if (!seen->over && !was_just_asked) /* a session that is over stays over */
		o = read_other_session(session, conn, seen, ret_problem);
	*ret_over = seen->over;
	*ret_again_ns = seen->asked_ns + pause_ns;
	uv_mutex_unlock(&session->locked.mutex);
	return o;
}

void session_recall(struct session *session, const char *id, struct session_info *ret)
{
	uv_mutex_lock(&session->locked.mutex);
	const struct observation *seen = observer_find_or_add(&session->locked.observer, id);
	*ret = seen->asked_ns ? *info_of_observation_locked(session, seen)
			      : (struct session_info){0};
	uv_mutex_unlock(&session->locked.mutex);
}

bool session_is_at_work(const struct session_info *session, int64_t now_s)
{
	const int64_t silent_s = now_s - session->heard_s;
	const int64_t lease_s = (int64_t)(session->lease_ns / NS_PER_S);
	return session->is_open && !session->is_gone && silent_s <= lease_s + LATE_S;
}

bool session_may_have_ended_since(const struct session_info *session, int64_t since_s)
{
	const int64_t lease_s = (int64_t)(session->lease_ns / NS_PER_S);
	return since_s - session->heard_s <= lease_s + LATELY_S;
}

enum outcome session_describe(struct store_conn *conn, const char *id, struct session_info *ret,
	struct problem *ret_problem)
{
	struct process self;
	process_self(&self);
	return get_row(conn, id, &self, NULL, ret, ret_problem);
}

bool session_may_be_at_work(struct store_conn *conn, const char *id)
{
	struct session_info session;
	struct problem unread;
	const enum outcome o = session_describe(conn, id, &session, &unread);
	return o == OUTCOME_OK ? session_is_at_work(&session, store_time_s(conn->store))
			       : o != OUTCOME_ABSENT;
}

/* The requested sessions, and the results. */
struct described {
	char (*pks)[SESSION_PK_MAX];
	size_t n;
	struct process self;
	struct session_info *infos;
	bool *known;
};

/* Notes the content of a session's row, if the session was requested. */
static int note_row(void *arg, const char *pk, const char *sk, const struct item *row)
{
	struct described *described = arg;
	for (size_t i = 0; i < described->n; i++)
		if (strcmp(described->pks[i], pk) == 0) {
			described->infos[i] = read_session_row(row, &described->self);
			described->known[i] = true;
		}
	return 0;
}

enum outcome session_describe_many(struct store_conn *conn, const char *const *ids, size_t n,
	const struct call_limits *limits, struct session_info *ret, bool *ret_known,
	struct problem *ret_problem)
{
	struct described described = {.pks = calloc(n + 1, sizeof *described.pks),
		.n = n,
		.infos = ret,
		.known = ret_known};
	struct item_visitor rows = {note_row, &described};
	struct item_key *keys = calloc(n + 1, sizeof *keys); /* + 1: never of 0 bytes */
	enum outcome o;
	if (described.pks && keys) {
		process_self(&described.self);
		for (size_t i = 0; i < n; i++) {
			keys[i] = row_key(ids[i], described.pks[i]);
			ret_known[i] = false; /* until note_row() is called for its row */
		}
		o = conn->store->ops->get_many(
			conn, keys, n, limits, visit_unpacked, &rows, ret_problem);
	} else {
		o = outcome_no_memory(ret_problem);
	}
	free(keys);
	free(described.pks);
	return o;
}

/* Ends the row of this session, so that our unfinished claims are free for the next run at once. If
 * this fails, they are free when the lease has expired. */
static void end_own_row(const struct session *session, struct store_conn *conn)
{
	const struct session_info ended = {.state = "ended"};
	const struct call_limits limits = {.deadline_ns = clock_boot_ns() + 3 * NS_PER_S};
	struct row_write write = {0};
	struct item present = {0};
	struct problem problem = {0};
	row_set(&write, &session_table, GROUP_STATE, &ended);
	const enum outcome o =
		write_open_row(conn, session->id, NULL, &write, &limits, &present, &problem);
	/* A refusal with an item means that the row is ended already. */
	if (o != OUTCOME_OK && item_is_empty(&present))
		log_info("cannot end the session: %s", problem.text);
	item_clear(&present);
}

void session_close(struct session *session, struct store_conn *conn)
{
	const bool is_lost = lease_is_lost(session->lease);
	lease_free(session->lease);
	lease_keeper_free(session->keeper);
	/* No other thread uses the session any more, so the mutex is not taken. */
	if (session->locked.begun && !is_lost && conn)
		end_own_row(session, conn);
	if (*session->observations && session->locked.begun)
		observer_save(&session->locked.observer, session->observations);
	uv_mutex_destroy(&session->locked.mutex);
	free(session);
}
