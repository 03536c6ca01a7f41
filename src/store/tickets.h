/* A ticket stands for a caller that waits while another thread performs the caller's operation. So
 * the operations of many callers are performed together: up to 25 marks in a request to DynamoDB,
 * or all waiting ones in a transaction of SQLite. A ticket is embedded in the caller's connection,
 * and used for one call after another.
 *
 * Every list and every state is changed with the mutex of its store held. A caller is woken after
 * the mutex was released, so that its thread need not wait for the mutex. */
#pragma once
#include "base/wait_until.h"
#include <stddef.h>
#include <stdint.h>

enum ticket_state {
	TICKET_WAITS,
	TICKET_TAKEN,    /* another thread is performing its operation */
	TICKET_LEADS,    /* its caller sends the operations of other tickets along with its own */
	TICKET_ANSWERED, /* it has its outcome, or was withdrawn; only its caller uses it now */
};
struct ticket {
	struct ticket *next, *previous;
	struct tickets *list; /* the list that it is in, or NULL */
	_Atomic enum ticket_state state;
	uint64_t since_ns; /* clock_boot_ns() at which it began to wait */
	/* Sent each time that another thread has answered the ticket, or has made it lead. The
	 * owner of the ticket initializes and clears it. */
	struct wakeup wakeup;
};

/* A list of tickets, in order of arrival. A zeroed one is empty. */
struct tickets {
	struct ticket *first, *last;
	size_t n;
};
/* Sets the state of a ticket. Moves it to the end of the list `to`, or out of its list if `to` is
 * NULL. */
void ticket_move(struct ticket *ticket, struct tickets *to, enum ticket_state state);
/* Empties a list of tickets that were answered or are to lead, and wakes their callers. Called
 * without the mutex. */
void tickets_wake(struct tickets *answered);
