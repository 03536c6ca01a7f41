#include "base/clock.h"
#include "base/log.h"
#include "marks/session_struct.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void session_pk(const char *id, char ret[static SESSION_PK_MAX])
{
	snprintf(ret, SESSION_PK_MAX, "session#%s", id);
}

static enum outcome renew(void *arg, struct store_conn *conn, const struct lease_try *try,
	struct item *ret_row, struct problem *ret_problem)
{
	const struct session *session = arg;
	const struct session_options *o = &session->options;
	if (o->is_stuck && o->is_stuck(o->abandon_arg)) {
		problem_set(ret_problem,
			"no file has made progress for a long time, so they pause and other "
			"uploaders may take the files; check whether a disk does not answer");
		return OUTCOME_TRANSIENT;
	}
	char expires[24];
	snprintf(expires, sizeof expires, "%" PRId64,
		store_time_s(session->options.store) + SESSION_KEEP_S);
	char files[16];
	snprintf(files, sizeof files, "%u", o->files ? o->files(o->abandon_arg) : 0);
	const struct change changes[] = {{"version", VALUE_STRING, try->next},
		{"expires", VALUE_NUMBER, expires}, {"files", VALUE_NUMBER, files}};
	const struct condition ours[] = {{"version", CONDITION_EQUALS, VALUE_STRING, try->version},
		{"state", CONDITION_EQUALS, VALUE_STRING, "open"}};
	return conn->store->ops->write(conn, (struct item_key){session->pk, "-"},
		&(struct item_write){
			.changes = changes, .n_changes = 3, .conditions = ours, .n_conditions = 2},
		try->limits, ret_row, ret_problem);
}

static const char *whose(void *arg, const struct item *row, char ret_why[static LEASE_TEXT_MAX],
	char ret_owner[static LEASE_TEXT_MAX])
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

static const struct lease_ops lease_ops = {.renew = renew, .whose = whose, .tell = on_lease_event};

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

struct call_limits session_limits(const struct session *session)
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
		{"host", self->host}, {"boot", self->boot}, {"machine", self->machine},
		{"board", self->board}, {"pid_space", self->pid_space},
		{"time_space", self->time_space}};
	const struct {
		const char *name;
		int64_t value;
	} numbers[] = {{"lease", (int64_t)(session->options.lease_ns / NS_PER_MS)},
		{"pid", self->pid}, {"start", (int64_t)self->start}, {"started", now_s},
		{"expires", now_s + SESSION_KEEP_S}};
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
	const struct call_limits limits = session_limits(session);
	const uint64_t sent_ns = clock_boot_ns();
	enum outcome o = conn->store->ops->write(conn, (struct item_key){session->pk, "-"},
		&(struct item_write){.item = &row, .conditions = &absent, .n_conditions = 1},
		&limits, &present, ret_problem);
	const char *seen = item_string(&present, "version");
	if (o == OUTCOME_REFUSED && seen && strcmp(seen, version) == 0)
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
	uv_mutex_lock(&session->locked.mutex);
	if (!session->locked.begun) {
		o = write_row(session, conn, ret_problem);
		session->locked.begun = o == OUTCOME_OK;
	}
	uv_mutex_unlock(&session->locked.mutex);
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

/* Our unfinished claims are free for the next run from here on. Best effort: without it they are
 * when the lease runs out. */
static void end_own(struct session *session, struct store_conn *conn)
{
	const struct change changes[] = {{"state", VALUE_STRING, "ended"}};
	const struct condition ours[] = {{"state", CONDITION_EQUALS, VALUE_STRING, "open"}};
	const struct call_limits limits = {.deadline_ns = clock_boot_ns() + 3 * NS_PER_S};
	struct item present = {0};
	struct problem problem = {0};
	if (conn->store->ops->write(conn, (struct item_key){session->pk, "-"},
		    &(struct item_write){.changes = changes,
			    .n_changes = 1,
			    .conditions = ours,
			    .n_conditions = 1},
		    &limits, &present, &problem) != OUTCOME_OK &&
		item_is_empty(&present))
		log_info("cannot end the session: %s", problem.text);
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
	uv_mutex_destroy(&session->locked.mutex);
	free(session);
}
