/* The lists of tickets of callers that wait for a store. The batches of DynamoDB and the thread of
 * SQLite move tickets from one list to another. This file does not know the operations
 * themselves. */
#include "store/tickets.h"

static void remove_from_list(struct tickets *list, struct ticket *ticket)
{
	if (ticket->next)
		ticket->next->previous = ticket->previous;
	else
		list->last = ticket->previous;
	if (ticket->previous)
		ticket->previous->next = ticket->next;
	else
		list->first = ticket->next;
	list->n--;
}

static void append_to_list(struct tickets *list, struct ticket *ticket)
{
	ticket->next = NULL;
	ticket->previous = list->last;
	if (list->last)
		list->last->next = ticket;
	else
		list->first = ticket;
	list->last = ticket;
	list->n++;
}

void ticket_move(struct ticket *ticket, struct tickets *to, enum ticket_state state)
{
	if (ticket->list)
		remove_from_list(ticket->list, ticket);
	if (to)
		append_to_list(to, ticket);
	ticket->list = to;
	ticket->state = state;
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
