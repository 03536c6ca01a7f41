#include "store/store_dynamodb_batch_queue.h"

void batch_queue_add(struct batches *batches, struct batch_ticket *ticket)
{
	ticket->state = BATCH_WAITS;
	ticket->locked.next = NULL;
	*batches->locked.last = ticket;
	batches->locked.last = &ticket->locked.next;
	batches->locked.waiting++;
}

struct batch_ticket *batch_queue_unlink(struct batches *batches, struct batch_ticket **at)
{
	struct batch_ticket *ticket = *at;

	*at = ticket->locked.next;
	if (batches->locked.last == &ticket->locked.next)
		batches->locked.last = at;
	batches->locked.waiting--;
	return ticket;
}

void batch_queue_leave(struct batches *batches, struct batch_ticket *ticket)
{
	struct batch_ticket **at = &batches->locked.first;

	while (*at != ticket)
		at = &(*at)->locked.next;
	batch_queue_unlink(batches, at);
}

void batch_queue_lead(struct batches *batches, struct batch_ticket *ticket)
{
	batch_queue_leave(batches, ticket);
	ticket->state = BATCH_LEADS;
	batches->locked.under_way++;
}

bool batch_queue_may_go(const struct batches *batches)
{
	return batches->locked.first &&
	       (batches->locked.under_way == 0 || batches->locked.waiting >= STATEMENTS_MAX);
}

struct batch_ticket *batch_queue_end(struct batches *batches)
{
	struct batch_ticket *first = batches->locked.first;

	batches->locked.under_way--;
	if (!batch_queue_may_go(batches))
		return NULL;
	batch_queue_lead(batches, first);
	return first;
}
