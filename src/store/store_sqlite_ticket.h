/* One operation of a connection on its way through the queue, and the wait for its answer. */
#pragma once
#include "base/thread.h"
#include "store/store_sqlite_items.h"

enum ticket_state { TICKET_IDLE, TICKET_QUEUED, TICKET_TAKEN };

/* One operation on its way. Embedded in a connection, used for one operation after another. */
struct ticket {
	struct items_op op;
	struct {
		struct ticket *next, *previous;
		enum ticket_state state;
		uint64_t since_ns;  /* clock_boot_ns() when it was queued */
	} queued;                   /* guarded by the queue's mutex */
	struct thread_sem answered; /* 1 from the answer until the caller took it */
};
int ticket_init(struct ticket *ticket);
void ticket_clear(struct ticket *ticket);
/* The op is decided; after this the ticket belongs to its caller again. */
void ticket_answer(struct ticket *ticket);
/* Waits a moment for the answer, no longer than to the deadline; whether it is there. Not to be
 * called again once it was. */
bool ticket_wait(struct ticket *ticket, const struct call_limits *limits);
