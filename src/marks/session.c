#include "marks/session.h"
#include "base/clock.h"
#include "base/log.h"
#include "lease/lease.h"
#include "lease/observer.h"
#include "lease/process.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEASE_MAX_MS (INT64_MAX / (int64_t)NS_PER_MS) /* what its ns can hold */
#define PK_MAX       (sizeof "session#" + ID_CHARS)

struct session {
	struct session_options options;
	struct process self;
	char id[ID_CHARS + 1], pk[PK_MAX];
	struct leases *leases;
	struct lease *lease;
	char observations[4096]; /* "" if not kept */
	struct {
		pthread_mutex_t mutex;
		bool begun;
		struct observer observer;
	} locked;
};

static void session_pk(const char *id, char ret[static PK_MAX])
{
	snprintf(ret, PK_MAX, "session#%s", id);
}

static enum outcome renew(void *arg, struct store_conn *conn, const struct lease_try *try,
	struct item *ret_row, struct problem *ret_problem)
{
	const struct session *session = arg;
	char expires[24];
	snprintf(expires, sizeof expires, "%" PRId64,
		store_time_s(session->options.store) + LEASE_KEEP_S);
	const struct change changes[] = {
		{"version", VALUE_STRING, try->next}, {"expires", VALUE_NUMBER, expires}};
	const struct condition ours[] = {{"version", CONDITION_EQUALS, VALUE_STRING, try->version},
		{"state", CONDITION_EQUALS, VALUE_STRING, "open"}};
	return conn->store->ops->update(conn, (struct item_key){session->pk, "-"}, changes, 2, ours,
		2, try->limits, ret_row, ret_problem);
}

static const char *whose(void *arg, const struct item *row, char ret_why[static LEASE_TEXT_MAX],
	char ret_owner[static LEASE_TEXT_MAX])
{
	const char *state = item_string(row, "state"), *version = item_string(row, "version");
	const bool is_open = state && !strcmp(state, "open");
	const char *why =
		"the row of this session holds a version that is not ours: a copy of this "
		"process (a cloned machine?) renews it";
	if (item_is_empty(row))
		why = "the row of this session was deleted";
	else if (!is_open)
		why = "another uploader ended this session: its lease had run out";
	snprintf(ret_why, LEASE_TEXT_MAX, "%s", why);
	*ret_owner = 0;
	return is_open ? version : NULL;
}

static const struct lease_ops lease_ops = {.renew = renew, .whose = whose};

int session_new(const struct session_options *options, struct session **ret)
{
	struct session *session = calloc(1, sizeof *session);
	if (!session)
		return -ENOMEM;
	session->options = *options;
	process_self(&session->self);
	random_id(session->id);
	session_pk(session->id, session->pk);
	if (options->observations)
		snprintf(session->observations, sizeof session->observations, "%s",
			options->observations);
	const struct lease_options lease = {
		.ops = &lease_ops,
		.arg = session,
		.lease_ns = options->lease_ns,
		.heartbeat_ns = options->heartbeat_ns,
	};
	int error = leases_new(options->store, 1, &session->leases);
	if (!error)
		error = lease_new(session->leases, &lease, &session->lease);
	if (error) {
		leases_free(session->leases);
		free(session);
		return error;
	}
	pthread_mutex_init(&session->locked.mutex, NULL);
	if (*session->observations)
		observer_load(&session->locked.observer, session->observations);
	*ret = session;
	return 0;
}

const char *session_id(const struct session *session)
{
	return session->id;
}

static struct call_limits limits_of(const struct session *session)
{
	return (struct call_limits){
		.abandon = session->options.abandon,
		.abandon_arg = session->options.abandon_arg,
	};
}

static int describe_self(const struct session *session, const char *version, struct item *row)
{
	const struct process *self = &session->self;
	const int64_t now_s = store_time_s(session->options.store);
	char owner[320];
	snprintf(owner, sizeof owner, "%s pid %d", self->host, (int)self->pid);
	const struct {
		const char *name, *value;
	} texts[] = {{"owner", owner}, {"version", version}, {"state", "open"},
		{"host", self->host}, {"boot", self->boot}, {"pid_space", self->pid_space}};
	const struct {
		const char *name;
		int64_t value;
	} numbers[] = {{"lease", (int64_t)(session->options.lease_ns / NS_PER_MS)},
		{"pid", self->pid}, {"start", (int64_t)self->start}, {"started", now_s},
		{"expires", now_s + LEASE_KEEP_S}};
	int error = 0;
	for (size_t i = 0; !error && i < sizeof texts / sizeof *texts; i++)
		error = item_set_string(row, texts[i].name, texts[i].value);
	for (size_t i = 0; !error && i < sizeof numbers / sizeof *numbers; i++)
		error = item_set_number(row, numbers[i].name, numbers[i].value);
	return error;
}

static enum outcome write_row(
	struct session *session, struct store_conn *conn, struct problem *ret_problem)
{
	char version[ID_CHARS + 1];
	struct item row = {0}, present = {0};
	random_id(version);
	if (describe_self(session, version, &row)) {
		item_clear(&row);
		problem_set(ret_problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	const struct condition absent = {"pk", CONDITION_ABSENT, VALUE_STRING, NULL};
	const struct call_limits limits = limits_of(session);
	const uint64_t sent_ns = clock_boot_ns();
	enum outcome o = conn->store->ops->put(conn, (struct item_key){session->pk, "-"}, &row,
		&absent, 1, &limits, &present, ret_problem);
	const char *seen = item_string(&present, "version");
	if (o == OUTCOME_REFUSED && seen && !strcmp(seen, version))
		o = OUTCOME_OK; /* our own write, sent twice by the wire */
	item_clear(&row);
	item_clear(&present);
	if (o == OUTCOME_OK && lease_start(session->lease, version, sent_ns)) {
		problem_set(ret_problem, PROBLEM_NO_THREAD);
		o = OUTCOME_SETUP;
	}
	return o;
}

enum outcome session_begin(
	struct session *session, struct store_conn *conn, struct problem *ret_problem)
{
	enum outcome o = OUTCOME_OK;
	pthread_mutex_lock(&session->locked.mutex);
	if (!session->locked.begun) {
		o = write_row(session, conn, ret_problem);
		session->locked.begun = o == OUTCOME_OK;
	}
	pthread_mutex_unlock(&session->locked.mutex);
	return o;
}

uint64_t session_lease_ends_ns(const struct session *session)
{
	return lease_ends_ns(session->lease);
}

bool session_may_begin(struct session *session, bool (*abandon)(void *arg), void *arg)
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

static int64_t number_or(const struct item *row, const char *name, int64_t otherwise)
{
	item_number(row, name, &otherwise);
	return otherwise;
}

static const char *string_or_empty(const struct item *row, const char *name)
{
	const char *value = item_string(row, name);
	return value ? value : "";
}

static void process_of(const struct item *row, struct process *ret)
{
	*ret = (struct process){
		.pid = (pid_t)number_or(row, "pid", 0),
		.start = (uint64_t)number_or(row, "start", 0),
	};
	snprintf(ret->boot, sizeof ret->boot, "%s", string_or_empty(row, "boot"));
	snprintf(ret->pid_space, sizeof ret->pid_space, "%s", string_or_empty(row, "pid_space"));
}

/* Ends another's row if it still holds the version we judged by. 1 ended, 0 it moved on, -EIO. */
static int end_row(struct session *session, struct store_conn *conn, const char *pk,
	const char *version, struct problem *ret_problem)
{
	const struct change changes[] = {
		{"state", VALUE_STRING, "ended"}, {"ended_by", VALUE_STRING, session->id}};
	const struct condition as_seen[] = {{"version", CONDITION_EQUALS, VALUE_STRING, version},
		{"state", CONDITION_EQUALS, VALUE_STRING, "open"}};
	const struct call_limits limits = limits_of(session);
	struct item present = {0};
	enum outcome o = conn->store->ops->update(conn, (struct item_key){pk, "-"}, changes, 2,
		as_seen, 2, &limits, &present, ret_problem);
	bool ended =
		o == OUTCOME_OK ||
		(o == OUTCOME_REFUSED && strcmp(string_or_empty(&present, "state"), "open") != 0);
	item_clear(&present);
	return ended ? 1 : o == OUTCOME_REFUSED ? 0 : -EIO;
}

/* Judges a session by its row as it is now. */
static int judge(struct session *session, struct store_conn *conn, struct observation *seen,
	const struct item *row, uint64_t now_ns, struct problem *ret_problem)
{
	char pk[PK_MAX];
	session_pk(seen->session, pk);
	const char *state = item_string(row, "state"), *version = item_string(row, "version");
	const int64_t lease_ms = number_or(row, "lease", -1);
	if (state && !strcmp(state, "ended"))
		return 1;
	if (!state || strcmp(state, "open") || !version || strlen(version) > ID_CHARS ||
		lease_ms <= 0 || lease_ms > LEASE_MAX_MS)
		return 0; /* not understood: held, never stale */
	struct process other;
	process_of(row, &other);
	if (process_is_gone(&session->self, &other)) {
		log_info("session %s: its process %d on this host is gone", seen->session,
			(int)other.pid);
		return end_row(session, conn, pk, version, ret_problem);
	}
	if (observer_note(seen, version, now_ns) < (uint64_t)lease_ms * NS_PER_MS)
		return 0;
	log_info("session %s: no heartbeat for a whole lease", seen->session);
	return end_row(session, conn, pk, version, ret_problem);
}

static int ask(struct session *session, struct store_conn *conn, struct observation *seen,
	struct problem *ret_problem)
{
	char pk[PK_MAX];
	session_pk(seen->session, pk);
	struct item row = {0};
	const struct call_limits limits = limits_of(session);
	enum outcome o = conn->store->ops->get(
		conn, (struct item_key){pk, "-"}, true, &limits, &row, ret_problem);
	const uint64_t now_ns = clock_boot_ns(); /* after the reply: invariant 6 */
	int over;
	if (o == OUTCOME_ABSENT)
		over = 1; /* swept long ago: a row is written before the first claim */
	else if (o == OUTCOME_OK)
		over = judge(session, conn, seen, &row, now_ns, ret_problem);
	else
		over = -EIO;
	item_clear(&row);
	seen->asked_ns = now_ns;
	seen->over = over == 1;
	return over;
}

int session_is_over(struct session *session, struct store_conn *conn, const char *id,
	uint64_t *ret_again_ns, struct problem *ret_problem)
{
	const uint64_t pause_ns = NS_PER_S / 2;
	if (!strcmp(id, session->id)) {
		*ret_again_ns = clock_boot_ns() + pause_ns;
		return 0;
	}
	/* Held while the store is asked: one question answers all workers that have it. */
	pthread_mutex_lock(&session->locked.mutex);
	struct observation *seen = observer_of(&session->locked.observer, id);
	int over = seen->over;
	if (!over && (!seen->asked_ns || clock_boot_ns() - seen->asked_ns >= pause_ns))
		over = ask(session, conn, seen, ret_problem);
	*ret_again_ns = seen->asked_ns + pause_ns;
	pthread_mutex_unlock(&session->locked.mutex);
	return over;
}

enum outcome session_describe(struct store_conn *conn, const char *id, struct session_info *ret,
	struct problem *ret_problem)
{
	char pk[PK_MAX];
	session_pk(id, pk);
	struct item row = {0};
	const struct call_limits limits = {0};
	enum outcome o = conn->store->ops->get(
		conn, (struct item_key){pk, "-"}, true, &limits, &row, ret_problem);
	if (o == OUTCOME_OK) {
		*ret = (struct session_info){
			.is_open = strcmp(string_or_empty(&row, "state"), "ended") != 0,
			.started_s = number_or(&row, "started", 0),
			.expires_s = number_or(&row, "expires", 0),
			.lease_ns = (uint64_t)number_or(&row, "lease", 0) * NS_PER_MS,
		};
		snprintf(ret->owner, sizeof ret->owner, "%s", string_or_empty(&row, "owner"));
	}
	item_clear(&row);
	return o;
}

/* Our unfinished claims are free for the next run from here on. Best effort: without it they are
 * when the lease runs out. */
static void end_own(struct session *session, struct store_conn *conn)
{
	const struct change changes[] = {{"state", VALUE_STRING, "ended"}};
	const struct condition ours[] = {{"state", CONDITION_EQUALS, VALUE_STRING, "open"}};
	const struct call_limits limits = {.deadline_ns = clock_boot_ns() + 3 * NS_PER_S};
	struct item present = {0};
	struct problem problem = {0};
	if (conn->store->ops->update(conn, (struct item_key){session->pk, "-"}, changes, 1, ours, 1,
		    &limits, &present, &problem) != OUTCOME_OK &&
		item_is_empty(&present))
		log_info("ending the session: %s", problem.text);
	item_clear(&present);
}

void session_close(struct session *session, struct store_conn *conn)
{
	const bool lost = lease_is_lost(session->lease);
	lease_free(session->lease);
	leases_free(session->leases);
	if (session->locked.begun && !lost && conn)
		end_own(session, conn);
	if (*session->observations && session->locked.begun)
		observer_save(&session->locked.observer, session->observations);
	pthread_mutex_destroy(&session->locked.mutex);
	free(session);
}
