/* The session of a run: one lease for all files that the run has claimed. Also decides whether the
 * session of another run is over. */
#pragma once
#include "base/random.h"
#include "lease/process.h"
#include "store/store.h"

/* The time for which a session's row is kept after its last heartbeat. Each heartbeat sets
 * `expires` to the end of this time, when DynamoDB's TTL may remove the row. */
#define SESSION_KEEP_S (7 * 24 * 3600)

/* The progress of a run, for people only. */
struct session_so_far {
	uint64_t files; /* files under way */
	uint64_t files_done,
		files_found; /* files that need no more work in this run, and all files */
	uint64_t bytes_done, bytes_found; /* likewise */
	uint64_t rate;                    /* recent bytes per second that left the host */
	int64_t left_s;                   /* estimated remaining time; 0: unknown */
	bool is_whole;                    /* all files were found */
};

struct session_options {
	struct store *store; /* borrowed until session_close */
	uint64_t lease_ns, heartbeat_ns;
	const char
		*observations; /* file for observations of other sessions; NULL: not kept; copied */
	void *arg;             /* for abandon(), is_stuck() and so_far() */
	bool (*abandon)(void *arg); /* returns true to end a wait below; called from any thread */
	struct progress_clock *progress; /* limits the waits that `abandon` ends; NULL: no limit */
	/* While it returns true, the lease is not renewed: it expires, and other uploaders may take
	 * the files. NULL: always false. Called from any thread. */
	bool (*is_stuck)(void *arg);
	/* Returns the progress of the run, for the row and each heartbeat. NULL: none. Called from
	 * any thread. */
	void (*so_far)(void *arg, struct session_so_far *ret);
	bool reads_only; /* nothing is written, so the rows of sessions that are over are not ended
			  */
};

struct session;
/* Makes a session. Nothing is written before session_begin(). Returns 0 or -errno. */
int session_new(const struct session_options *options, struct session **ret);
/* The id of the session, which is set even before its row is written. Borrowed. */
const char *session_id(const struct session *session);

/* Writes the row, unless it was written, and starts the heartbeats, which have two threads and a
 * connection of their own. Thread-safe: the first caller writes it, and later callers wait. */
enum outcome session_begin(
	struct session *session, struct store_conn *conn, struct problem *ret_problem);

/* Returns the clock_boot_ns() at which our lease ends unless another heartbeat succeeds. The lease
 * is counted from before the last successful heartbeat was sent. Lock-free. */
uint64_t session_lease_ends_ns(const struct session *session);
/* Waits until at least half of the lease is left, so that new work usually ends before the lease
 * does. False if the session is fenced, or abandon() (called every 100 ms) returns true. */
bool session_wait_for_lease(struct session *session, bool (*abandon)(void *arg), void *arg);
/* Whether this session has lost its row, since another client has ended, deleted or changed it. The
 * run then stops at once. If the lease has only expired, since the store could not be reached, the
 * session is not fenced and may recover; requests that would make an object visible are ended by
 * then. Lock-free. */
bool session_is_fenced(const struct session *session);
/* Returns the reason for which the session is fenced, as a sentence; "" if it is not. Borrowed
 * until session_close. */
const char *session_fence_reason(const struct session *session);

/* Decides whether another session is over, and if so ends its row, which fences it. Our own session
 * is never over. *ret_again_ns is the clock_boot_ns() for the next call. Returns OK, or the outcome
 * if the store did not answer, with a sentence.
 *
 * Thread-safe. It reads the row of one session at most twice a second. */
enum outcome session_end_if_over(struct session *session, struct store_conn *conn, const char *id,
	bool *ret_over, uint64_t *ret_again_ns, struct problem *ret_problem);

/* The content of a session's row. Missing values, or those not understood, are 0 or "". */
struct session_info {
	char owner[320]; /* "host pid 123" */
	char version[ID_CHARS + 1], state[8], ended_by[ID_CHARS + 1];
	struct process process;
	int64_t lease_ms, started_s, expires_s;
	struct session_so_far so_far; /* according to the last heartbeat */
	/* Derived from these members: */
	bool is_open;    /* the state is not "ended"; it may be one that is not understood */
	bool is_gone;    /* open by its row, but its process ran on this host and has ended */
	int64_t heard_s; /* store time of its last heartbeat; 0 if unknown */
	uint64_t lease_ns;
};
/* Whether the run of a session seems to be at work at now_s (store time): its row is open and was
 * renewed within its lease, and its process is not known to be gone. Otherwise other uploaders may
 * take over its files. This is only for reports; session_end_if_over() decides. Pure. */
bool session_is_at_work(const struct session_info *session, int64_t now_s);
/* Whether the run of a session that is not at work may have ended after since_s (store time). If
 * so, rows that were read before may be out of date. Pure. */
bool session_may_have_ended_since(const struct session_info *session, int64_t since_s);
/* Describes a session, for `status`. ABSENT: its row is gone. */
enum outcome session_describe(struct store_conn *conn, const char *id, struct session_info *ret,
	struct problem *ret_problem);
/* Reads the session, and returns session_is_at_work(). Also true if it cannot be read. */
bool session_may_be_at_work(struct store_conn *conn, const char *id);
/* Describes the sessions with these distinct ids, for `fleet`. ret[i] belongs to ids[i].
 * ret_known[i] is false if its row was removed. Eventually consistent. */
enum outcome session_describe_many(struct store_conn *conn, const char *const *ids, size_t n,
	const struct call_limits *limits, struct session_info *ret, bool *ret_known,
	struct problem *ret_problem);

/* Sets *ret to the information that session_end_if_over() last read about another session, without
 * is_gone; zeros if it has read none. Thread-safe. Sends no request. */
void session_recall(struct session *session, const char *id, struct session_info *ret);

/* Stops the heartbeats, ends the row if it was written and is still ours, saves the observations of
 * other sessions, and frees the session. Takes a few seconds at most. If conn is NULL, the row is
 * left to expire. */
void session_close(struct session *session, struct store_conn *conn);
