/* Writes of many callers that leave together: a put if absent or an update of each becomes a
 * statement of one BatchExecuteStatement.
 *
 * A write that comes while no other is under way leaves at once, as a request of its own. Those
 * that come meanwhile wait until it has ended, until they are STATEMENTS_MAX, or for 50 ms at most;
 * then one of the waiting callers takes all of them along. One that waits for 5 s for the answer to
 * its batch repeats its write alone: a connection that hangs stalls nobody but the caller that sent
 * it. There is no thread beside the callers', and each caller's abandon() is asked in its own. */
#pragma once
#include "base/wait_until.h"
#include "store/store_dynamodb_write.h"
#include <stdatomic.h>
#include <uv.h>

enum batch_ticket_state { BATCH_WAITS, BATCH_TAKEN, BATCH_LEADS, BATCH_ANSWERED };

/* A caller's place in the queue. Embedded in a connection, used for one write after another. */
struct batch_ticket {
	const struct batch_write *write;
	struct text statement; /* kept for its memory */
	/* Rung once, without the mutex, for each time that another caller made it LEADS or
	 * ANSWERED. The ticket is its caller's again only when it has taken that. Who makes itself
	 * LEADS is not called for that, and no leader for its own answer. */
	struct bell called;
	_Atomic enum batch_ticket_state state; /* changed with the mutex held */
	struct {
		struct batch_ticket *next;  /* in the queue */
		struct batch_ticket **seat; /* of TAKEN: where the batch knows it */
		enum outcome outcome;       /* of ANSWERED */
		bool is_final;              /* else it is repeated alone */
		struct problem problem;     /* of a final outcome that is not OK or REFUSED */
	} locked;
};
int batch_ticket_init(struct batch_ticket *ticket); /* 0 or -errno */
void batch_ticket_clear(struct batch_ticket *ticket);

struct batches {
	atomic_bool is_on;
	atomic_int dialect;
	uv_mutex_t mutex; /* never held while a request is under way or an abandon() is asked */
	struct {
		struct batch_ticket *first, **last;
		size_t waiting, under_way; /* writes; requests */
	} locked;
};
int batches_init(struct batches *batches); /* off; 0 or -errno */
void batches_destroy(struct batches *batches);
/* From now on, for every table whose server passed the probe. Thread-safe, as what follows. */
void batches_begin(struct batches *batches, enum dynamodb_dialect dialect);

/* Performs the write, alone or together with others. The outcome is the one that dynamodb_put or
 * dynamodb_update would have, with these differences: a statement that was throttled, failed or
 * lost is repeated alone before its outcome counts; the item of a refusal is read after it. What
 * statements cannot say, and what has a deadline (a heartbeat), never waits. */
enum outcome batches_write(
	struct batches *batches, struct batch_ticket *ticket, const struct batch_write *write);
