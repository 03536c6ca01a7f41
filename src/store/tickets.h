/* Callers that wait while somebody else does what they want, so that what many want leaves
 * together: 25 marks in a request to DynamoDB, all that waits in a transaction of SQLite. A ticket
 * is a caller's place, embedded in its connection and used for one call after another.
 *
 * Every list and every state is changed with the mutex of its store held. A bell is rung without
 * it, since the thread that wakes would only wait for it. */
#pragma once
#include "base/wait_until.h"
#include <stddef.h>
#include <stdint.h>

enum ticket_state {
	TICKET_WAITS,
	TICKET_TAKEN,    /* what it wants is being done */
	TICKET_LEADS,    /* its caller does what the others want along with its own */
	TICKET_ANSWERED, /* it is its caller's alone */
};
struct ticket {
	struct ticket *next, *previous;
	struct tickets *list; /* that it is in, or NULL */
	_Atomic enum ticket_state state;
	uint64_t since_ns; /* clock_boot_ns() when it began to wait */
	/* Rung once for each time that another thread made it LEADS or ANSWERED. Whoever has the
	 * ticket begins and clears it. */
	struct bell called;
};

/* In the order in which they came. Zero is an empty one. */
struct tickets {
	struct ticket *first, *last;
	size_t n;
};
/* Moves it to the end of a list, or with NULL out of the one that it is in. */
void ticket_move(struct ticket *ticket, struct tickets *to, enum ticket_state state);
/* Empties a list whose tickets are all answered, and rings their bells. Called without the mutex.
 */
void tickets_call(struct tickets *answered);
