/* The lists of those who wait for a store. The batches of DynamoDB and the thread of SQLite move
 * tickets from one to another; nothing here knows what is wanted. */
#include "store/tickets.h"

int ticket_init(struct ticket *ticket)
{
	return bell_init(&ticket->called);
}

void ticket_clear(struct ticket *ticket)
{
	bell_clear(&ticket->called);
}

static void leave_list(struct ticket *ticket)
{
	struct tickets *list = ticket->list;
	*(ticket->next ? &ticket->next->previous : &list->last) = ticket->previous;
	*(ticket->previous ? &ticket->previous->next : &list->first) = ticket->next;
	list->n--;
}

void ticket_move(struct ticket *ticket, struct tickets *to, enum ticket_state state)
{
	if (ticket->list)
		leave_list(ticket);
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

/* Once its bell has rung, a ticket may be anywhere. */
void tickets_call(struct tickets *answered)
{
	for (struct ticket *next, *t = answered->first; t; t = next) {
		next = t->next;
		t->list = NULL;
		bell_ring(&t->called);
	}
	*answered = (struct tickets){0};
}
