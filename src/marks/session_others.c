#include "base/clock.h"
#include "base/log.h"
#include "marks/session_struct.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEASE_MAX_MS (INT64_MAX / (int64_t)NS_PER_MS) /* what its ns can hold */

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
	snprintf(ret->host, sizeof ret->host, "%s", string_or_empty(row, "host"));
	snprintf(ret->boot, sizeof ret->boot, "%s", string_or_empty(row, "boot"));
	snprintf(ret->machine, sizeof ret->machine, "%s", string_or_empty(row, "machine"));
	snprintf(ret->board, sizeof ret->board, "%s", string_or_empty(row, "board"));
	snprintf(ret->pid_space, sizeof ret->pid_space, "%s", string_or_empty(row, "pid_space"));
	snprintf(ret->time_space, sizeof ret->time_space, "%s", string_or_empty(row, "time_space"));
}

static void read_info(const struct item *row, struct session_info *ret)
{
	*ret = (struct session_info){
		.is_open = strcmp(string_or_empty(row, "state"), "ended") != 0,
		.started_s = number_or(row, "started", 0),
		.expires_s = number_or(row, "expires", 0),
		.lease_ns = (uint64_t)number_or(row, "lease", 0) * NS_PER_MS,
		.files = (uint64_t)number_or(row, "files", 0),
	};
	if (ret->expires_s > SESSION_KEEP_S)
		ret->heard_s = ret->expires_s - SESSION_KEEP_S;
	snprintf(ret->owner, sizeof ret->owner, "%s", string_or_empty(row, "owner"));
}

/* Ends another's row if it still holds the version we judged by. Not over: it moved on. */
static enum outcome end_row(struct session *session, struct store_conn *conn, const char *pk,
	const char *version, bool *ret_over, struct problem *ret_problem)
{
	const struct change changes[] = {
		{"state", VALUE_STRING, "ended"}, {"ended_by", VALUE_STRING, session->id}};
	const struct condition as_seen[] = {{"version", CONDITION_EQUALS, VALUE_STRING, version},
		{"state", CONDITION_EQUALS, VALUE_STRING, "open"}};
	const struct call_limits limits = session_limits(session);
	struct item present = {0};
	*ret_over = session->options.reads_only;
	if (*ret_over)
		return OUTCOME_OK;
	enum outcome o = conn->store->ops->write(conn, (struct item_key){pk, "-"},
		&(struct item_write){.changes = changes,
			.n_changes = 2,
			.conditions = as_seen,
			.n_conditions = 2},
		&limits, &present, ret_problem);
	*ret_over =
		o == OUTCOME_OK ||
		(o == OUTCOME_REFUSED && strcmp(string_or_empty(&present, "state"), "open") != 0);
	item_clear(&present);
	return o == OUTCOME_REFUSED ? OUTCOME_OK : o;
}

/* Judges a session by its row as it is now. */
static enum outcome judge_session(struct session *session, struct store_conn *conn,
	struct observation *seen, const struct item *row, uint64_t now_ns,
	struct problem *ret_problem)
{
	char pk[SESSION_PK_MAX];
	session_pk(seen->session, pk);
	const char *state = item_string(row, "state"), *version = item_string(row, "version");
	const int64_t lease_ms = number_or(row, "lease", -1);
	seen->over = state && strcmp(state, "ended") == 0;
	if (seen->over)
		return OUTCOME_OK;
	if (!state || strcmp(state, "open") != 0 || !version || strlen(version) > ID_CHARS ||
		lease_ms <= 0 || lease_ms > LEASE_MAX_MS)
		return OUTCOME_OK; /* not understood: held, never stale */
	struct process other;
	process_of(row, &other);
	if (process_is_gone(&session->self, &other)) {
		log_info("session %s: its process %d on this host is gone", seen->session,
			(int)other.pid);
		return end_row(session, conn, pk, version, &seen->over, ret_problem);
	}
	if (observer_note(seen, version, now_ns) < (uint64_t)lease_ms * NS_PER_MS)
		return OUTCOME_OK;
	log_info("session %s: no heartbeat for a whole lease", seen->session);
	return end_row(session, conn, pk, version, &seen->over, ret_problem);
}

static enum outcome ask_for_session(struct session *session, struct store_conn *conn,
	struct observation *seen, struct problem *ret_problem)
{
	char pk[SESSION_PK_MAX];
	session_pk(seen->session, pk);
	struct item row = {0};
	const struct call_limits limits = session_limits(session);
	enum outcome o = conn->store->ops->get(
		conn, (struct item_key){pk, "-"}, true, &limits, &row, ret_problem);
	const uint64_t now_ns = clock_boot_ns(); /* after the reply: invariant 6 */
	seen->over = o == OUTCOME_ABSENT; /* swept long ago: a row comes before the first claim */
	read_info(&row, &session->locked.infos[seen - session->locked.observer.list]);
	if (o == OUTCOME_OK)
		o = judge_session(session, conn, seen, &row, now_ns, ret_problem);
	item_clear(&row);
	seen->asked_ns = now_ns;
	return o == OUTCOME_ABSENT ? OUTCOME_OK : o;
}

enum outcome session_is_over(struct session *session, struct store_conn *conn, const char *id,
	bool *ret_over, uint64_t *ret_again_ns, struct problem *ret_problem)
{
	const uint64_t pause_ns = NS_PER_S / 2;
	enum outcome o = OUTCOME_OK;
	*ret_over = false;
	if (strcmp(id, session->id) == 0) {
		*ret_again_ns = clock_boot_ns() + pause_ns;
		return o;
	}
	/* Held while the store is asked: one question answers all workers that have it. */
	uv_mutex_lock(&session->locked.mutex);
	struct observation *seen = observer_of(&session->locked.observer, id);
	if (!seen->over && (!seen->asked_ns || clock_boot_ns() - seen->asked_ns >= pause_ns))
		o = ask_for_session(session, conn, seen, ret_problem);
	*ret_over = seen->over;
	*ret_again_ns = seen->asked_ns + pause_ns;
	uv_mutex_unlock(&session->locked.mutex);
	return o;
}

void session_recall(struct session *session, const char *id, struct session_info *ret)
{
	uv_mutex_lock(&session->locked.mutex);
	const struct observation *seen = observer_of(&session->locked.observer, id);
	*ret = (struct session_info){0};
	if (seen->asked_ns)
		*ret = session->locked.infos[seen - session->locked.observer.list];
	uv_mutex_unlock(&session->locked.mutex);
}

static void describe_row(
	const struct item *row, const struct process *self, struct session_info *ret)
{
	struct process other;
	read_info(row, ret);
	process_of(row, &other);
	ret->is_gone = ret->is_open && process_is_gone(self, &other);
}

enum outcome session_describe(struct store_conn *conn, const char *id, struct session_info *ret,
	struct problem *ret_problem)
{
	char pk[SESSION_PK_MAX];
	session_pk(id, pk);
	struct item row = {0};
	const struct call_limits limits = {0};
	enum outcome o = conn->store->ops->get(
		conn, (struct item_key){pk, "-"}, true, &limits, &row, ret_problem);
	if (o == OUTCOME_OK) {
		struct process self;
		process_self(&self);
		describe_row(&row, &self, ret);
	}
	item_clear(&row);
	return o;
}

struct many {
	char (*pks)[SESSION_PK_MAX];
	size_t n;
	struct process self;
	struct session_info *infos;
	bool *known;
};

static int visit_one(void *arg, const char *pk, const char *sk, const struct item *row)
{
	struct many *many = arg;
	(void)sk;
	for (size_t i = 0; i < many->n; i++)
		if (strcmp(many->pks[i], pk) == 0) {
			describe_row(row, &many->self, &many->infos[i]);
			many->known[i] = true;
		}
	return 0;
}

enum outcome session_describe_many(struct store_conn *conn, const char *const *ids, size_t n,
	const struct call_limits *limits, struct session_info *ret, bool *ret_known,
	struct problem *ret_problem)
{
	struct many many = {
		.pks = calloc(n + 1, sizeof *many.pks), .n = n, .infos = ret, .known = ret_known};
	struct item_key *keys = calloc(n + 1, sizeof *keys);
	enum outcome o = OUTCOME_OK;
	if (many.pks && keys) {
		process_self(&many.self);
		for (size_t i = 0; i < n; i++) {
			session_pk(ids[i], many.pks[i]);
			keys[i] = (struct item_key){many.pks[i], "-"};
			ret_known[i] = false;
		}
		if (n)
			o = conn->store->ops->get_many(
				conn, keys, n, limits, visit_one, &many, ret_problem);
	} else {
		problem_set(ret_problem, "out of memory");
		o = OUTCOME_LOCAL;
	}
	free(keys);
	free(many.pks);
	return o;
}
