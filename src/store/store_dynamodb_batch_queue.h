/* The callers that wait for a batch, and who of them leads the next one. All of it with the mutex
 * of the batches held. */
#pragma once
#include "store/store_dynamodb_batch.h"

void batch_queue_add(struct batches *batches, struct batch_ticket *ticket);
/* Takes out the ticket that this link leads to. */
struct batch_ticket *batch_queue_unlink(struct batches *batches, struct batch_ticket **at);
/* Takes out a ticket that waits. */
void batch_queue_leave(struct batches *batches, struct batch_ticket *ticket);
/* A ticket that waits leads from here on: its request counts already, so that nobody else leaves
 * with what it is to take along. */
void batch_queue_lead(struct batches *batches, struct batch_ticket *ticket);
/* Whether one of those that wait may leave now. */
bool batch_queue_may_go(const struct batches *batches);
/* A request has ended. Returns who leads the next one and is to be called, or NULL. */
struct batch_ticket *batch_queue_end(struct batches *batches);
