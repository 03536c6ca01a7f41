/* Rows of the mark store, whoever wrote them: a file is taken for done, and a session for over,
 * only if its row says so in words that are understood. */
#include "base/clock.h"
#include "fuzz.h"
#include "lease/process.h"
#include "marks/mark_row.h"
#include "marks/session.h"
#include "store/item_json.h"

/* A store that holds one row, under every key. */
static struct item row;
static const struct store_ops ops;
static struct store store = {&ops};
static struct store_conn conn = {&store};

static enum outcome get(struct store_conn *from, struct item_key key, enum consistency consistency,
	const struct call_limits *limits, struct item *ret, struct problem *ret_problem)
{
	for (size_t i = 0; i < row.count; i++) {
		const struct attribute *a = &row.attributes[i];
		ENSURE(item_set(ret, a->name, a->type, a->value, a->n) == 0);
	}
	return OUTCOME_OK;
}

static enum outcome update(struct store_conn *to, struct item_key key,
	const struct item_write *write, const struct call_limits *limits, struct item *ret_present,
	struct problem *ret_problem)
{
	if (item_satisfies(&row, write->conditions, write->n_conditions))
		return OUTCOME_OK;
	get(to, key, true, limits, ret_present, ret_problem);
	return OUTCOME_REFUSED;
}

static int conn_new(struct store *of, struct store_conn **ret)
{
	*ret = &conn;
	return 0;
}

static void conn_free(struct store_conn *unused)
{
}

static const struct store_ops ops = {
	.conn_new = conn_new, .conn_free = conn_free, .get = get, .write = update};

static bool says(const char *name, const char *value)
{
	const char *found = item_string(&row, name);
	return found && strcmp(found, value) == 0;
}

static void read_mark(void)
{
	struct mark mark;
	struct problem problem = {0};
	const struct mark_ref ref = {.conn = &conn,
		.space = &(const struct mark_space){.settings.shards = 16},
		.key = "k"};
	int64_t size = -1, mtime_ns = -1;
	bool has_size = item_number(&row, "size", &size) == 0 && size >= 0;
	bool has_mtime = item_number(&row, "mtime", &mtime_ns) == 0;
	ENSURE(mark_get(&ref, &mark, &problem) == OUTCOME_OK);
	const struct file_version asked = {(uint64_t)size, mtime_ns, ""},
				  done = {mark.done.size, mark.done.mtime_ns, ""},
				  larger = {mark.done.size + 1, mark.done.mtime_ns, ""},
				  other = {mark.done.size, mark.done.mtime_ns, "another content"};
	enum mark_says same = mark_says(&mark, &asked), another = mark_says(&mark, &larger);
	ENSURE(another != SAYS_DONE && another != SAYS_COMPARE);
	ENSURE(!*mark.done.content_id || mark_says(&mark, &other) != SAYS_DONE);
	ENSURE(strnlen(mark_suffix(&mark), SUFFIX_MAX + 1) <= SUFFIX_MAX);
	ENSURE(mark_says(&mark, &done) != SAYS_DONE ||
		(says("state", "done") && has_size && has_mtime && same == SAYS_DONE));
	ENSURE(same != SAYS_FREE || item_is_empty(&row) || says("state", "failed"));
	ENSURE(strnlen(mark.session, ID_CHARS + 1) <= ID_CHARS);
	ENSURE(strnlen(mark.done.sum, SUM_MAX + 1) <= SUM_MAX);
	ENSURE(mark_state_name(mark.state));
	mark_clear(&mark);
}

static void read_session(const char *boot)
{
	const struct session_options options = {
		.store = &store, .lease_ns = NS_PER_S, .heartbeat_ns = NS_PER_S / 4};
	struct session *session;
	struct session_info info;
	struct problem problem = {0};
	uint64_t again_ns = 0;
	ENSURE(session_new(&options, &session) == 0);
	bool over;
	ENSURE(session_end_if_over(session, &conn, "another", &over, &again_ns, &problem) ==
		OUTCOME_OK);
	bool here = says("boot", boot); /* then its process may be gone */
	ENSURE(!over || says("state", "ended") || here);
	ENSURE(session_describe(&conn, "another", &info, &problem) == OUTCOME_OK);
	ENSURE(info.is_open != says("state", "ended"));
	ENSURE(strnlen(info.owner, sizeof info.owner) < sizeof info.owner);
	session_close(session, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *json = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
	struct process self;
	process_self(&self);
	if (item_from_json(json, &row) == 0) {
		if (says("boot", "this one"))
			ENSURE(item_set_string(&row, "boot", self.boot) == 0 &&
				item_set_string(&row, "host", self.host) == 0 &&
				item_set_string(&row, "machine", self.machine) == 0 &&
				item_set_string(&row, "board", self.board) == 0 &&
				item_set_string(&row, "time_space", self.time_space) == 0 &&
				item_set_string(&row, "pid_space", self.pid_space) == 0);
		read_mark();
		read_session(self.boot);
	}
	item_clear(&row);
	json_decref(json);
	return 0;
}
