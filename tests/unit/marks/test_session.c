/* The lease of a session over a store whose answers take a while, and how sessions judge each
 * other, also where somebody writes between the look at a row and the write that ends it. */
#include "../check.h"
#include "base/clock.h"
#include "lease/observer.h"
#include "lease/process.h"
#include "marks/row.h"
#include "marks/session.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEASE_NS  (60 * NS_PER_S)
#define ANSWER_NS (2 * NS_PER_MS)

/* A store that passes each write on to another, and then takes its time. */
static uint64_t arrived_ns; /* when the last write did */
static struct store *inner;

static enum outcome write_slowly(struct store_conn *conn, struct item_key key,
	const struct item_write *write, const struct call_limits *limits, struct item *ret_present,
	struct problem *ret_problem)
{
	struct store_conn *there;
	arrived_ns = clock_boot_ns();
	if (store_conn_new(inner, &there))
		abort();
	const enum outcome o =
		inner->ops->write(there, key, write, limits, ret_present, ret_problem);
	store_conn_free(there);
	while (clock_boot_ns() < arrived_ns + ANSWER_NS)
		;
	return o;
}

static int64_t time_s(const struct store *store)
{
	return 1000;
}

static int slow_conn_new(struct store *store, struct store_conn **ret)
{
	static struct store_conn conn;
	conn.store = store;
	*ret = &conn;
	return 0;
}

static void slow_conn_free(struct store_conn *conn)
{
}

static const struct store_ops slow_ops = {.conn_new = slow_conn_new,
	.conn_free = slow_conn_free,
	.write = write_slowly,
	.time_s = time_s};
static struct store slow = {&slow_ops};

/* Others count from when they see the row, which may be long before the reply is here. */
static void test_counted_from_before_it_is_sent(void)
{
	const struct session_options options = {.store = &slow, .lease_ns = LEASE_NS};
	struct store_conn *conn;
	struct session *session;
	struct problem problem = {0};
	if (store_conn_new(&slow, &conn) || session_new(&options, &session))
		abort();
	CHECK_INT(session_begin(session, conn, &problem), OUTCOME_OK);
	CHECK(session_lease_ends_ns(session) > arrived_ns);
	CHECK(session_lease_ends_ns(session) <= arrived_ns + LEASE_NS);
	session_close(session, NULL);
	store_conn_free(conn);
}

/* --- sessions that judge others */

/* The row of another session. */
struct other {
	char state[8], version[ID_CHARS + 1];
	int64_t lease_ms;
};
static const struct row_field fields[] = {
	ROW_FIELD(struct other, state, "state", FIELD_TEXT, .groups = 1),
	ROW_FIELD(struct other, version, "version", FIELD_TEXT, .groups = 1),
	ROW_FIELD(struct other, lease_ms, "lease", FIELD_NUMBER, .groups = 1),
};
static const struct row_table table = ROW_TABLE(fields);

/* The store of all sessions. `meanwhile` happens to the next row that this thread writes, before it
 * is written, and n_gets counts its reads. */
static const struct store_ops *real;
static _Thread_local void (*meanwhile)(struct store_conn *conn, struct item_key key);
static _Thread_local unsigned n_gets;
static _Thread_local bool writes_twice, loses_writes;
static struct store_conn *own;

static enum outcome write_after(struct store_conn *conn, struct item_key key,
	const struct item_write *write, const struct call_limits *limits, struct item *ret_present,
	struct problem *ret_problem)
{
	void (*const happens)(struct store_conn *, struct item_key) = meanwhile;
	struct problem unused;
	meanwhile = NULL;
	if (happens)
		happens(conn, key);
	if (loses_writes)
		return outcome_error(ret_problem, OUTCOME_TRANSIENT, "no answer");
	if (writes_twice)
		CHECK_INT(real->write(conn, key, write, limits, NULL, &unused), OUTCOME_OK);
	return real->write(conn, key, write, limits, ret_present, ret_problem);
}

static enum outcome count_get(struct store_conn *conn, struct item_key key,
	enum consistency consistency, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	CHECK(consistency == READ_CONSISTENT);
	n_gets++;
	return real->get(conn, key, consistency, limits, ret, ret_problem);
}

static struct item_key key_of(const char *id)
{
	static char pk[64];
	snprintf(pk, sizeof pk, "session#%s", id);
	return (struct item_key){pk, "-"};
}

static void put(struct store_conn *conn, struct item_key key, const struct other *other)
{
	struct row_write write = {.kind = ROW_PUTS};
	struct problem problem;
	row_set(&write, &table, ROW_ALL, other);
	CHECK_INT(row_perform(conn, key, &write, NULL, NULL, &problem), OUTCOME_OK);
}

static void end(struct store_conn *conn, struct item_key key)
{
	put(conn, key, &(struct other){"ended", "1", 1});
}

static void beat(struct store_conn *conn, struct item_key key)
{
	put(conn, key, &(struct other){"open", "2", 1});
}

static void sweep(struct store_conn *conn, struct item_key key)
{
	struct row_write write = {.kind = ROW_REMOVES};
	struct problem problem;
	CHECK_INT(row_perform(conn, key, &write, NULL, NULL, &problem), OUTCOME_OK);
}

static struct session_info row_of(const char *id)
{
	struct session_info info;
	struct problem problem;
	session_describe(own, id, &info, &problem);
	return info;
}

static struct session *session_of(bool reads_only, uint64_t heartbeat_ns)
{
	const struct session_options options = {.store = inner,
		.lease_ns = LEASE_NS,
		.heartbeat_ns = heartbeat_ns,
		.reads_only = reads_only};
	struct session *session;
	if (session_new(&options, &session))
		abort();
	return session;
}

/* Each of these is judged twice, with more than its lease of a millisecond between. */
static const struct case_of_another {
	const char *id;
	struct other row;
	void (*meanwhile)(struct store_conn *conn, struct item_key key); /* the last time */
	bool is_over;
	const char *state; /* in the end */
} others[] = {
	{"00", {"open", "1", 1}, NULL, true, "ended"},
	{"01", {"open", "1", 1}, end, true, "ended"},
	{"02", {"open", "1", 1}, beat, false, "open"},
	{"03", {"open", "1", 1}, sweep, true, ""},
	/* The end of these is unknown. */
	{"04", {"open", "", 1}, NULL, false, "open"},
	{"05", {"open", "1", 0}, NULL, false, "open"},
	{"06", {"open", "1", -1}, NULL, false, "open"},
	{"07", {"open", "1", INT64_MAX}, NULL, false, "open"},
	{"08", {"odd", "1", 1}, NULL, false, "odd"},
	{"09", {"open", "1", 3600000}, NULL, false, "open"},
};
enum { OTHERS = sizeof others / sizeof *others };

static void await(uint64_t until_ns)
{
	while (clock_boot_ns() <= until_ns)
		usleep(1000);
}

static bool is_over(struct session *session, const char *id, uint64_t *ret_again_ns)
{
	struct problem problem = {0};
	bool ret = true;
	CHECK_INT(session_end_if_over(session, own, id, &ret, ret_again_ns, &problem), OUTCOME_OK);
	return ret;
}

static void test_others(void)
{
	struct session *session = session_of(false, LEASE_NS), *reader = session_of(true, LEASE_NS);
	uint64_t again_ns, last_ns = 0;
	for (size_t i = 0; i < OTHERS; i++) {
		put(own, key_of(others[i].id), &others[i].row);
		CHECK(!is_over(session, others[i].id, &again_ns));
		last_ns = again_ns;
	}
	CHECK(last_ns > clock_boot_ns() && last_ns <= clock_boot_ns() + NS_PER_S / 2);
	put(own, key_of("10"), &others[0].row);
	CHECK(!is_over(reader, "10", &again_ns));
	n_gets = 0;
	CHECK(!is_over(session, "00", &again_ns));
	CHECK_INT(n_gets, 0); /* it was asked for just now */
	await(last_ns);
	for (size_t i = 0; i < OTHERS; i++) {
		meanwhile = others[i].meanwhile;
		CHECK(is_over(session, others[i].id, &again_ns) == others[i].is_over);
		meanwhile = NULL;
		CHECK_STRING(row_of(others[i].id).state, others[i].state);
	}
	CHECK_STRING(row_of("00").ended_by, session_id(session));
	await(again_ns);
	n_gets = 0;
	CHECK(is_over(session, "00", &again_ns));
	CHECK_INT(n_gets, 0); /* nobody opens it again */
	CHECK(is_over(reader, "10", &again_ns));
	CHECK_STRING(row_of("10").state, "open");
	session_close(reader, own);
	session_close(session, own);
}

/* A session goes on if the write that was to end it was lost, and it renews its row after all. */
static void test_an_end_that_is_not_answered(void)
{
	struct session *session = session_of(false, LEASE_NS);
	struct problem problem = {0};
	uint64_t again_ns;
	bool over = true;
	put(own, key_of("30"), &(struct other){"open", "1", 1});
	CHECK(!is_over(session, "30", &again_ns));
	await(again_ns);
	loses_writes = true;
	CHECK_INT(session_end_if_over(session, own, "30", &over, &again_ns, &problem),
		OUTCOME_TRANSIENT);
	loses_writes = false;
	beat(own, key_of("30"));
	await(again_ns);
	CHECK(!is_over(session, "30", &again_ns));
	CHECK_STRING(row_of("30").state, "open");
	session_close(session, own);
}

static void test_ended_and_swept_at_the_first_look(void)
{
	struct session *session = session_of(false, LEASE_NS);
	uint64_t again_ns;
	put(own, key_of("20"), &(struct other){"ended", "1", 3600000});
	CHECK(is_over(session, "20", &again_ns));
	CHECK(is_over(session, "21", &again_ns)); /* there never was such a row */
	CHECK(!is_over(session, session_id(session), &again_ns));
	CHECK(again_ns > clock_boot_ns());
	session_close(session, own);
}

/* The row is ours if an earlier try of the same request has written it. */
static void test_begun_by_a_request_that_came_twice(void)
{
	struct session *session = session_of(false, LEASE_NS), *other = session_of(false, LEASE_NS);
	struct problem problem = {0};
	writes_twice = true;
	CHECK_INT(session_begin(session, own, &problem), OUTCOME_OK);
	writes_twice = false;
	CHECK_STRING(row_of(session_id(session)).state, "open");
	meanwhile = beat;
	CHECK_INT(session_begin(other, own, &problem), OUTCOME_REFUSED);
	char id[ID_CHARS + 1];
	memcpy(id, session_id(session), sizeof id);
	session_close(session, own);
	CHECK_STRING(row_of(id).state, "ended");
	session_close(other, own);
}

/* A change of our row by another program ends the session, with a reason that says what it was. */
static const struct {
	void (*happens)(struct store_conn *conn, struct item_key key);
	const char *reason, *state;
} losses[] = {
	{end, "another uploader ended this session", "ended"},
	{beat, "a version that this process did not write", "open"},
	{sweep, "was deleted", ""},
};

static void test_fenced(void)
{
	for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
		struct session *session = session_of(false, 10 * NS_PER_MS);
		struct problem problem = {0};
		char id[ID_CHARS + 1];
		memcpy(id, session_id(session), sizeof id);
		CHECK_INT(session_begin(session, own, &problem), OUTCOME_OK);
		CHECK(!session_is_fenced(session));
		losses[i].happens(own, key_of(id));
		for (const uint64_t until_ns = clock_boot_ns() + 20 * NS_PER_S;
			!session_is_fenced(session) && clock_boot_ns() < until_ns;)
			await(clock_boot_ns() + NS_PER_MS);
		CHECK(strstr(session_fence_reason(session), losses[i].reason) != NULL);
		session_close(session, own);
		CHECK_STRING(row_of(id).state, losses[i].state); /* it is not ours any more */
	}
}

/* --- what a row says */

static _Atomic bool is_stuck;
static atomic_uint asked, heartbeats;

static bool stuck(void *arg)
{
	heartbeats++;
	return is_stuck;
}

/* Waits until so many more heartbeats have begun. All but the last of them have ended. */
static void await_heartbeats(unsigned n)
{
	const unsigned begun = heartbeats;
	for (const uint64_t until_ns = clock_boot_ns() + 20 * NS_PER_S;
		heartbeats < begun + n && clock_boot_ns() < until_ns;)
		await(clock_boot_ns() + NS_PER_MS);
	CHECK(heartbeats >= begun + n);
}

static void so_far(void *arg, struct session_so_far *ret)
{
	*ret = (struct session_so_far){.files = ++asked,
		.files_done = 2,
		.files_found = 3,
		.bytes_done = 4,
		.bytes_found = 5,
		.rate = 6,
		.left_s = 7,
		.is_whole = true};
}

/* Waits until another heartbeat is in the row. */
static bool beats_on(const char *id, const char *version)
{
	for (const uint64_t until_ns = clock_boot_ns() + 20 * NS_PER_S; clock_boot_ns() < until_ns;
		await(clock_boot_ns() + NS_PER_MS))
		if (strcmp(row_of(id).version, version) != 0)
			return true;
	return false;
}

static void test_the_row(void)
{
	const struct session_options options = {.store = inner,
		.lease_ns = LEASE_NS,
		.heartbeat_ns = 20 * NS_PER_MS,
		.is_stuck = stuck,
		.so_far = so_far};
	struct session *session;
	struct process self;
	struct problem problem = {0};
	process_self(&self);
	if (session_new(&options, &session))
		abort();
	char id[ID_CHARS + 1];
	memcpy(id, session_id(session), sizeof id);
	CHECK_INT(session_begin(session, own, &problem), OUTCOME_OK);
	const struct session_info first = row_of(id);
	CHECK_INT(session_begin(session, own, &problem), OUTCOME_OK); /* it is there already */
	CHECK(first.is_open && !first.is_gone);
	CHECK_STRING(first.state, "open");
	CHECK_INT(first.lease_ns, LEASE_NS);
	CHECK_INT(first.process.pid, self.pid);
	CHECK(process_is_local(&self, &first.process));
	CHECK(strstr(first.owner, self.host) == first.owner && strstr(first.owner, " pid "));
	CHECK(first.started_s > 0);
	CHECK_INT(first.expires_s - first.heard_s, SESSION_KEEP_S);
	CHECK(first.heard_s >= first.started_s);
	CHECK(first.so_far.files >= 1 && first.so_far.files_found == 3 && first.so_far.is_whole);
	CHECK(beats_on(id, first.version));
	const struct session_info later = row_of(id);
	CHECK(later.so_far.files > first.so_far.files);
	CHECK_INT(later.so_far.left_s, 7);
	CHECK(later.expires_s >= first.expires_s);
	/* Each heartbeat gives the row more time, so that no store removes it while it lives. */
	char pk[80];
	snprintf(pk, sizeof pk, "session#%s", id);
	const struct change soon = {"expires", VALUE_NUMBER, "1"};
	const struct item_write shortens = {.changes = &soon, .n_changes = 1};
	CHECK_INT(
		inner->ops->write(own, (struct item_key){pk, "-"}, &shortens, NULL, NULL, &problem),
		OUTCOME_OK);
	CHECK(beats_on(id, row_of(id).version));
	CHECK(row_of(id).expires_s >= first.expires_s);
	CHECK_INT(later.started_s, first.started_s);
	/* While no file makes progress, nobody is told that this run is at work. */
	is_stuck = true;
	await_heartbeats(2); /* one may have been under way */
	const struct session_info stopped = row_of(id);
	await_heartbeats(3);
	CHECK_STRING(row_of(id).version, stopped.version);
	CHECK(!session_is_fenced(session));
	is_stuck = false;
	CHECK(beats_on(id, stopped.version));
	session_close(session, own);
	CHECK(!row_of(id).is_open && !row_of(id).is_gone);
}

static bool at_once(void *arg)
{
	return true;
}

/* New work needs half a lease. */
static void test_may_begin(void)
{
	struct session *session = session_of(false, LEASE_NS);
	struct problem problem = {0};
	char id[ID_CHARS + 1];
	memcpy(id, session_id(session), sizeof id);
	CHECK(!session_wait_for_lease(session, at_once, NULL));
	CHECK_INT(session_begin(session, own, &problem), OUTCOME_OK);
	CHECK(session_wait_for_lease(session, at_once, NULL));
	/* Without a connection the row is left to expire. */
	session_close(session, NULL);
	CHECK_STRING(row_of(id).state, "open");
}

/* A session that could not be begun may be begun later. */
static void test_begun_later(void)
{
	struct session *session = session_of(false, LEASE_NS);
	struct problem problem = {0};
	loses_writes = true;
	CHECK_INT(session_begin(session, own, &problem), OUTCOME_TRANSIENT);
	loses_writes = false;
	CHECK_INT(session_lease_ends_ns(session), 0);
	CHECK_STRING(row_of(session_id(session)).state, "");
	CHECK_INT(session_begin(session, own, &problem), OUTCOME_OK);
	CHECK_STRING(row_of(session_id(session)).state, "open");
	session_close(session, own);
}

/* A row of a process of this host, or of a machine like it. */
struct of_process {
	char state[8], version[ID_CHARS + 1];
	int64_t lease_ms;
	struct process process;
};
#define OF_PROCESS(member, attribute, how)                                                         \
	ROW_FIELD(struct of_process, member, attribute, how, .groups = 1)
static const struct row_field process_fields[] = {
	OF_PROCESS(state, "state", FIELD_TEXT),
	OF_PROCESS(version, "version", FIELD_TEXT),
	OF_PROCESS(lease_ms, "lease", FIELD_NUMBER),
	OF_PROCESS(process.host, "host", FIELD_TEXT),
	OF_PROCESS(process.boot, "boot", FIELD_TEXT),
	OF_PROCESS(process.machine, "machine", FIELD_TEXT),
	OF_PROCESS(process.board, "board", FIELD_TEXT),
	OF_PROCESS(process.pid_space, "pid_space", FIELD_TEXT),
	OF_PROCESS(process.time_space, "time_space", FIELD_TEXT),
	OF_PROCESS(process.pid, "pid", FIELD_INT),
	OF_PROCESS(process.start, "start", FIELD_SIZE),
};
static const struct row_table process_table = ROW_TABLE(process_fields);

static void put_process(const char *id, const struct of_process *row)
{
	struct row_write write = {.kind = ROW_PUTS};
	struct problem problem;
	row_set(&write, &process_table, ROW_ALL, row);
	CHECK_INT(row_perform(own, key_of(id), &write, NULL, NULL, &problem), OUTCOME_OK);
}

/* A process of this host that has ended is over at the first look, and one of another host is not.
 */
static void test_a_process_that_is_gone(void)
{
	struct session *session = session_of(false, LEASE_NS);
	struct of_process row = {.state = "open", .version = "1", .lease_ms = 3600000};
	uint64_t again_ns;
	process_self(&row.process);
	put_process("50", &row);
	CHECK(!row_of("50").is_gone);
	CHECK(!is_over(session, "50", &again_ns));
	row.process.start++; /* its pid is ours by now */
	put_process("51", &row);
	CHECK(row_of("51").is_gone);
	CHECK(is_over(session, "51", &again_ns));
	CHECK_STRING(row_of("51").state, "ended");
	CHECK(!row_of("51").is_gone); /* what has ended in order is not gone */
	row.process.host[0] ^= 1;
	put_process("52", &row);
	CHECK(!row_of("52").is_gone);
	CHECK(!is_over(session, "52", &again_ns));
	row.process.host[0] ^= 1;
	snprintf(row.version, sizeof row.version, "%s", ""); /* not understood: held */
	put_process("53", &row);
	CHECK(!is_over(session, "53", &again_ns));
	session_close(session, own);
}

static void test_many(void)
{
	const char *const ids[] = {"60", "61", "62"};
	struct session_info infos[3];
	bool known[3] = {false, true, false};
	struct of_process row = {.state = "open", .version = "1", .lease_ms = 1000};
	struct problem problem = {0};
	process_self(&row.process);
	row.process.start++;
	put_process("60", &row);
	put(own, key_of("62"), &(struct other){"ended", "9", 1});
	CHECK_INT(session_describe_many(own, ids, 3, NULL, infos, known, &problem), OUTCOME_OK);
	CHECK(known[0] && !known[1] && known[2]);
	CHECK(infos[0].is_gone && infos[0].is_open && !infos[2].is_open);
	CHECK_STRING(infos[2].version, "9");
}

/* The last observation of another session, without a request. */
static void test_recall(void)
{
	struct session *session = session_of(false, LEASE_NS);
	struct session_info info;
	uint64_t again_ns;
	put(own, key_of("70"), &(struct other){"open", "5", 3600000});
	session_recall(session, "70", &info);
	CHECK_STRING(info.version, "");
	CHECK(!is_over(session, "70", &again_ns));
	put(own, key_of("70"), &(struct other){"open", "6", 3600000});
	n_gets = 0;
	session_recall(session, "70", &info);
	CHECK_STRING(info.version, "5");
	CHECK_INT(info.lease_ns, 3600 * NS_PER_S);
	CHECK_INT(n_gets, 0);
	session_close(session, own);
}

#define ROW_80 "80808080808080808080808080808080"

/* Short runs, each of which looks once: what one that was begun has seen counts for the next. */
static void test_observations(void)
{
	char path[] = "/tmp/s3once-session-XXXXXX";
	const int fd = mkstemp(path);
	struct problem problem = {0};
	uint64_t again_ns;
	close(fd);
	put(own, key_of(ROW_80), &(struct other){"open", ROW_80, 1});
	for (int run = 0; run < 3; run++) {
		const struct session_options options = {
			.store = inner, .lease_ns = LEASE_NS, .observations = path};
		struct session *session;
		if (session_new(&options, &session))
			abort();
		if (run)
			CHECK_INT(session_begin(session, own, &problem), OUTCOME_OK);
		await(clock_boot_ns() + 2 * NS_PER_MS);
		CHECK(is_over(session, ROW_80, &again_ns) == (run == 2));
		session_close(session, own);
	}
	unlink(path);
}

/* The reply of a store that is slow. */
static uint64_t replied_ns;

static enum outcome get_slowly(struct store_conn *conn, struct item_key key,
	enum consistency consistency, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	await(clock_boot_ns() + ANSWER_NS);
	const enum outcome o = count_get(conn, key, consistency, limits, ret, ret_problem);
	await(clock_boot_ns() + ANSWER_NS);
	replied_ns = clock_boot_ns();
	return o;
}

/* A run that looks once at a session. Returns since when it has seen the row as it is. */
static uint64_t unchanged_since(const char *id, const char *observations)
{
	const struct session_options options = {
		.store = inner, .lease_ns = LEASE_NS, .observations = observations};
	struct observer observer = {0};
	struct problem problem = {0};
	struct session *session;
	uint64_t again_ns;
	if (session_new(&options, &session))
		abort();
	CHECK_INT(session_begin(session, own, &problem), OUTCOME_OK);
	CHECK(!is_over(session, id, &again_ns));
	session_close(session, own);
	observer_load(&observer, observations);
	CHECK_INT(observer.n, 1);
	return observer.list[0].since_ns;
}

/* A version counts from after the reply that first showed it, since the other session may have
 * written it while the request was under way. */
static void test_seen_from_after_the_reply(struct store_ops *hooked)
{
	char path[] = "/tmp/s3once-session-XXXXXX";
	close(mkstemp(path));
	hooked->get = get_slowly;
	put(own, key_of(ROW_80), &(struct other){"open", "1", 3600000});
	const uint64_t first_ns = unchanged_since(ROW_80, path);
	CHECK(first_ns >= replied_ns);
	CHECK_INT(unchanged_since(ROW_80, path), first_ns);
	CHECK(first_ns < replied_ns);
	put(own, key_of(ROW_80), &(struct other){"open", "2", 3600000});
	CHECK(unchanged_since(ROW_80, path) >= replied_ns);
	hooked->get = count_get;
	unlink(path);
}

/* A store that does not answer leaves it open whether a session is over. */
static bool loses_reads;

static enum outcome lose_get(struct store_conn *conn, struct item_key key,
	enum consistency consistency, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	return loses_reads ? outcome_error(ret_problem, OUTCOME_TRANSIENT, "no answer")
			   : count_get(conn, key, consistency, limits, ret, ret_problem);
}

static void test_a_look_that_is_not_answered(struct store_ops *hooked)
{
	struct session *session = session_of(false, LEASE_NS);
	struct problem problem = {0};
	uint64_t again_ns;
	bool over = true;
	hooked->get = lose_get;
	loses_reads = true;
	CHECK_INT(session_end_if_over(session, own, "90", &over, &again_ns, &problem),
		OUTCOME_TRANSIENT);
	CHECK(!over);
	loses_reads = false;
	CHECK(again_ns > clock_boot_ns());
	await(again_ns);
	CHECK(is_over(session, "90", &again_ns)); /* there is no such row */
	session_close(session, own);
}

int main(void)
{
	struct problem problem = {0};
	if (store_sqlite_open(STORE_SQLITE_NOWHERE, STORE_WRITTEN, &inner, &problem) < 0)
		return 1;
	test_counted_from_before_it_is_sent();
	real = inner->ops;
	struct store_ops hooked = *real;
	hooked.write = write_after;
	hooked.get = count_get;
	inner->ops = &hooked;
	if (store_conn_new(inner, &own))
		return 1;
	test_others();
	test_an_end_that_is_not_answered();
	test_ended_and_swept_at_the_first_look();
	test_begun_by_a_request_that_came_twice();
	test_fenced();
	test_the_row();
	test_may_begin();
	test_begun_later();
	test_a_process_that_is_gone();
	test_many();
	test_recall();
	test_observations();
	test_seen_from_after_the_reply(&hooked);
	test_a_look_that_is_not_answered(&hooked);
	store_conn_free(own);
	inner->ops = real;
	store_close(inner);
	return check_result();
}
