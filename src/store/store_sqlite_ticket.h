/* One operation of a connection on its way through the queue, and the wait for its answer. */
#pragma once
#include "base/wait_until.h"
#include "store/store_sqlite_items.h"

enum ticket_state { TICKET_IDLE, TICKET_QUEUED, TICKET_TAKEN };

/* One operation on its way. Embedded in a connection, used for one operation after another. */
struct ticket {
	struct items_op op;
	struct {
		struct ticket *next, *previous;
		enum ticket_state state;
		uint64_t since_ns; /* clock_boot_ns() when it was queued */
	} queued;                  /* guarded by the queue's mutex */
	struct bell answered;      /* the op is decided, and the ticket is its caller's again */
};
