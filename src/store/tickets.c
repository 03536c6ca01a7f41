/* The lists of tickets of callers that wait for a store. The batches of DynamoDB and the thread of
 * SQLite move tickets from one list to another. This file does not know the operations
 * themselves. */
#include "store/tickets.h"

void ticket_move(struct ticket *ticket, struct tickets *to, enum ticket_state state)
{
	struct tickets *from = ticket->list;
	/* A ticket without a neighbour is at an end of the list. Then `last` or `first` of the list
	 * is set in place of the neighbour's pointer. */
	if (from) {
		*(ticket->next ? &ticket->next->previous : &from->last) = ticket->previous;
		*(ticket->previous ? &ticket->previous->next : &from->first) = ticket->next;
		from->n--;
	}
	ticket->list = to;
	ticket->state = state;
	if (!to)
		return;
	ticket->next = NULL;
	ticket->previous = to->last;
	*(to->last ? &to->last->next : &to->first) = ticket;
	to->last = ticket;
	to->n++;
}

/* No other thread uses these tickets and their list now, since each caller only waits to be woken.
 * Once woken, the caller may reuse its ticket, or free it. So sending the wakeup is the last access
 * to each ticket. */
void tickets_wake(struct tickets *answered)
{
	for (struct ticket *next, *t = answered->first; t; t = next) {
		next = t->next;
		t->list = NULL;
		wakeup_send(&t->wakeup);
	}
	*answered = (struct tickets){0};
}
