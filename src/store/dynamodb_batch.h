/* Writes of many callers that leave together: a put if absent or an update of each becomes a
 * statement of one BatchExecuteStatement.
 *
 * A write that comes while no other is under way leaves at once, as a request of its own. Those
 * that come meanwhile wait until it has ended, until they are STATEMENTS_MAX, or for 50 ms at most;
 * then one of the waiting callers takes all of them along. One that waits for 5 s for the answer to
 * its batch repeats its write alone: a connection that hangs stalls nobody but the caller that sent
 * it. There is no thread beside the callers', and each caller's abandon() is asked in its own. */
#pragma once
#include "store/dynamodb_statement.h"
#include "store/tickets.h"
#include <stdatomic.h>

/* One caller's write of an item. All of it is borrowed until the write has ended. */
struct batch_write {
	struct dynamodb_conn *db; /* the caller's own */
	const struct table *table;
	struct item_key key;
	const struct item_write *what;
	const struct call_limits *limits; /* not NULL */
	struct item *ret;                 /* as of dynamodb_write() */
	struct problem *ret_problem;
};

/* A caller's place in the queue. */
struct batch_ticket {
	struct ticket ticket;
	const struct batch_write *write;
	struct text statement;  /* kept for its memory */
	unsigned number;        /* of its statement in the request */
	enum outcome outcome;   /* of an ANSWERED one, as the two below */
	bool is_final;          /* else it is repeated alone */
	struct problem problem; /* of a final outcome that is not OK or REFUSED */
};
int batch_ticket_init(struct batch_ticket *ticket); /* 0 or -errno */
void batch_ticket_clear(struct batch_ticket *ticket);

struct batches {
	atomic_bool is_on;
	atomic_int dialect;
	uv_mutex_t mutex; /* never held while a request is under way or an abandon() is asked */
	struct {
		struct tickets waiting;
		size_t under_way; /* requests */
	} locked;
};
int batches_init(struct batches *batches); /* off; 0 or -errno */
void batches_destroy(struct batches *batches);
/* From now on, for every table whose server passed the probe. Thread-safe, as what follows. */
void batches_begin(struct batches *batches, enum dynamodb_dialect dialect);

/* Performs the write, alone or together with others. The outcome is the one that dynamodb_write()
 * would have, with these differences: a statement that was throttled, failed or lost is repeated
 * alone before its outcome counts; the item of a refusal is read after it. What statements cannot
 * say, and what has a deadline (a heartbeat), never waits. */
enum outcome batches_write(
	struct batches *batches, struct batch_ticket *ticket, const struct batch_write *write);
