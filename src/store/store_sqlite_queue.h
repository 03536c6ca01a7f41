/* The one thread that uses an SQLite connection, and the queue before it. All writes that are
 * queued become one transaction: a single sync acknowledges them all. Those that may_sync_later are
 * acknowledged before the sync, which follows within a second. */
#pragma once
#include "store/store_sqlite_ticket.h"

struct sqlite_queue;
/* Takes the connection over and starts the thread. `name` names the file in messages; both must
 * live until sqlite_queue_free, which does not close the connection. 0 or -errno with a sentence.
 */
int sqlite_queue_new(
	sqlite3 *db, const char *name, struct sqlite_queue **ret, struct problem *ret_problem);
void sqlite_queue_free(struct sqlite_queue *queue); /* when no ticket is under way; NULL is fine */

/* Queues ticket->op and waits for its outcome, in op. ABANDONED, with nothing applied, if the
 * limits end it before the thread has begun with it; one that is begun is waited for. */
void sqlite_queue_perform(
	struct sqlite_queue *queue, struct ticket *ticket, const struct call_limits *limits);
