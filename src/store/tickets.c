/* The lists of tickets of callers that wait for a store. The batches of DynamoDB and the thread of
 * SQLite move tickets from one list to another. The operations themselves are not known here. */
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

/* Nobody else uses these tickets and their list any more, since each caller only waits for its
 * bell. As soon as its bell rings, the caller may use a ticket again, or free it. So the bell is
 * the last thing of each ticket that is touched. */
void tickets_call(struct tickets *answered)
{
	for (struct ticket *next, *t = answered->first; t; t = next) {
		next = t->next;
		t->list = NULL;
		bell_ring(&t->called);
	}
	*answered = (struct tickets){0};
}
