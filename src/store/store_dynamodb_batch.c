#include "store/store_dynamodb_batch.h"
#include "aws/retry.h"
#include "aws/wait.h"
#include "base/clock.h"
#include "base/log.h"
#include "store/store_dynamodb_batch_queue.h"
#include <string.h>

#define BATCH_MAX_BYTES (1U << 20)       /* of statements; a mark takes less than 3 KB */
#define HOLD_NS         (50 * NS_PER_MS) /* a request under way is waited for no longer */
#define LEAVE_NS        (5 * NS_PER_S)   /* nor is one that carries one's own statement */

/* The statements of one request, and who waits for their answers: NULL is a caller that left. */
struct batch {
	struct batch_ticket *seats[STATEMENTS_MAX];
	size_t n, bytes;
};

int batch_ticket_init(struct batch_ticket *ticket)
{
	ticket->statement = TEXT(BATCH_MAX_BYTES);
	return bell_init(&ticket->called);
}

void batch_ticket_clear(struct batch_ticket *ticket)
{
	bell_clear(&ticket->called);
	text_clear(&ticket->statement);
}

/* Called without the mutex, since the thread that is woken would only wait for it. */
static void call(struct batch_ticket *ticket)
{
	if (ticket)
		bell_ring(&ticket->called);
}

int batches_init(struct batches *batches)
{
	batches->locked.last = &batches->locked.first;
	return uv_mutex_init(&batches->mutex);
}

void batches_destroy(struct batches *batches)
{
	uv_mutex_destroy(&batches->mutex);
}

void batches_begin(struct batches *batches, enum dynamodb_dialect dialect)
{
	atomic_store(&batches->dialect, (int)dialect);
	atomic_store(&batches->is_on, true);
}

/* Not for this caller, or not any more: said once. */
static void stop(struct batches *batches, const struct batch_write *write, enum outcome why)
{
	if (!atomic_exchange(&batches->is_on, false))
		return;
	if (why == OUTCOME_DENIED)
		log_note("table %s: each mark is a request of its own, since BatchExecuteStatement "
			 "is denied; allow dynamodb:PartiQLInsert and dynamodb:PartiQLUpdate",
			write->table->name);
	else
		log_info("table %s: each mark is a request of its own, since BatchExecuteStatement "
			 "is %s",
			write->table->name, outcome_name(why));
}

static void end_batch(struct batches *batches)
{
	uv_mutex_lock(&batches->mutex);
	struct batch_ticket *next = batch_queue_end(batches);
	uv_mutex_unlock(&batches->mutex);
	call(next);
}

/* DynamoDB refuses a request that names one item twice. */
static bool has_key(const struct batch *batch, const struct item_key *key)
{
	for (size_t i = 0; i < batch->n; i++)
		if (batch_write_is_of(batch->seats[i]->write, key))
			return true;
	return false;
}

static void seat(struct batch *batch, struct batch_ticket *ticket, struct dynamodb_conn *db)
{
	ticket->locked.seat = &batch->seats[batch->n];
	batch->seats[batch->n++] = ticket;
	batch->bytes += ticket->statement.len;
	dynamodb_batch_add(db, &ticket->statement);
}

/* Takes along who waits. Their statements are copied: they may leave while it is under way. */
static void fill_locked(struct batches *batches, struct batch *batch, struct batch_ticket *leader)
{
	struct batch_ticket **at = &batches->locked.first;

	dynamodb_batch_begin(leader->write->db, leader->write->table->name);
	seat(batch, leader, leader->write->db);
	while (*at && batch->n < STATEMENTS_MAX) {
		struct batch_ticket *ticket = *at;
		if (has_key(batch, &ticket->write->key) ||
			batch->bytes + ticket->statement.len > BATCH_MAX_BYTES) {
			at = &ticket->locked.next;
			continue;
		}
		batch_queue_unlink(batches, at);
		ticket->state = BATCH_TAKEN;
		seat(batch, ticket, leader->write->db);
	}
}

/* Of a request that failed as a whole: whether its statements would have failed alone just so,
 * after as many attempts. The rest is the leader's affair, or that of batches. */
static bool is_of_all(enum outcome whole)
{
	return whole == OUTCOME_SETUP || whole == OUTCOME_THROTTLED || whole == OUTCOME_TRANSIENT;
}

/* What a statement's outcome means to its caller. `whole` is the outcome of the request. */
static void answer_locked(struct batch_ticket *ticket, enum outcome whole, enum outcome own,
	const struct problem *problem)
{
	const bool is_decided = own == OUTCOME_OK || own == OUTCOME_REFUSED;

	ticket->locked.outcome = whole == OUTCOME_OK ? own : whole;
	ticket->locked.is_final = whole == OUTCOME_OK ? is_decided : is_of_all(whole);
	if (whole != OUTCOME_OK)
		ticket->locked.problem = *problem;
	ticket->state = BATCH_ANSWERED;
}

/* A throttled or failed statement is not repeated at once: the table said that it cannot. */
static enum outcome repeat_alone(
	struct batches *batches, const struct batch_write *write, enum outcome before)
{
	const bool is_throttled = before == OUTCOME_THROTTLED;

	if (before == OUTCOME_DENIED || before == OUTCOME_UNSUPPORTED)
		stop(batches, write, before);
	if (is_throttled || before == OUTCOME_TRANSIENT) {
		const enum retry_class class = is_throttled ? RETRY_THROTTLE : RETRY_TRANSIENT;
		enum outcome waited = wait_within(
			write->limits, retry_backoff_ms(class, false, 0, 0), write->ret_problem);
		if (waited != OUTCOME_OK)
			return waited;
	}
	enum outcome outcome = batch_write_alone(write);
	/* It was the statement that is not valid: this server wants others than the probe's did. */
	if (before == OUTCOME_INVALID && (outcome == OUTCOME_OK || outcome == OUTCOME_REFUSED))
		stop(batches, write, before);
	return outcome;
}

/* The outcome of an answered ticket, in its caller's thread. */
static enum outcome ticket_outcome(struct batches *batches, struct batch_ticket *ticket)
{
	const struct batch_write *write = ticket->write;
	const enum outcome outcome = ticket->locked.outcome;

	if (!ticket->locked.is_final)
		return repeat_alone(batches, write, outcome);
	if (outcome == OUTCOME_REFUSED && write->ret_present)
		return dynamodb_present(write->db, write->table, write->key, write->limits,
			write->ret_present, write->ret_problem);
	if (outcome != OUTCOME_OK && outcome != OUTCOME_REFUSED && write->ret_problem)
		*write->ret_problem = ticket->locked.problem;
	return outcome;
}

/* Leads a batch of all that waits. A leader that finds nobody goes as it would have gone alone. */
static enum outcome lead(struct batches *batches, struct batch_ticket *leader)
{
	const struct batch_write *write = leader->write;
	enum outcome answers[STATEMENTS_MAX], outcome;
	struct problem problem = {0};
	struct batch batch = {0};

	uv_mutex_lock(&batches->mutex);
	fill_locked(batches, &batch, leader);
	uv_mutex_unlock(&batches->mutex);
	if (batch.n == 1) {
		outcome = batch_write_alone(write);
		end_batch(batches);
		return outcome;
	}
	outcome = dynamodb_batch_execute(write->db, batch.n, write->limits, answers, &problem);
	uv_mutex_lock(&batches->mutex);
	for (size_t i = 0; i < batch.n; i++)
		if (batch.seats[i])
			answer_locked(batch.seats[i], outcome,
				outcome == OUTCOME_OK ? answers[i] : outcome, &problem);
	struct batch_ticket *next = batch_queue_end(batches);
	uv_mutex_unlock(&batches->mutex);
	for (size_t i = 1; i < batch.n; i++) /* the first one is the leader's own */
		call(batch.seats[i]);
	call(next);
	if (outcome == OUTCOME_ABANDONED) {
		if (write->ret_problem)
			*write->ret_problem = problem;
		return outcome;
	}
	return ticket_outcome(batches, leader);
}

/* Whether the ticket leads since it has waited long enough. */
static bool leads_by_itself(struct batches *batches, struct batch_ticket *ticket, uint64_t since_ns)
{
	if (clock_boot_ns() < since_ns + HOLD_NS)
		return false;
	uv_mutex_lock(&batches->mutex);
	const bool waits = ticket->state == BATCH_WAITS;
	if (waits)
		batch_queue_lead(batches, ticket);
	uv_mutex_unlock(&batches->mutex);
	return waits;
}

/* The caller, which was not called so far, goes away. False: it is just being called. */
static bool give_up(struct batches *batches, struct batch_ticket *ticket)
{
	uv_mutex_lock(&batches->mutex);
	const enum batch_ticket_state state = ticket->state;
	if (state == BATCH_WAITS)
		batch_queue_leave(batches, ticket);
	else if (state == BATCH_TAKEN)
		*ticket->locked.seat = NULL;
	uv_mutex_unlock(&batches->mutex);
	return state == BATCH_WAITS || state == BATCH_TAKEN;
}

static enum outcome lead_unless_over(struct batches *batches, struct batch_ticket *ticket)
{
	if (!limits_are_over(batch_write_limits(ticket->write)))
		return lead(batches, ticket);
	end_batch(batches);
	return batch_write_give_up(ticket->write);
}

static bool is_called(
	struct batch_ticket *ticket, uint64_t until_ns, const struct call_limits *limits)
{
	return bell_await(&ticket->called, until_ns, limits->abandon, limits->abandon_arg);
}

static enum outcome await(struct batches *batches, struct batch_ticket *ticket, uint64_t since_ns)
{
	const struct call_limits *limits = batch_write_limits(ticket->write);
	bool called = is_called(ticket, since_ns + HOLD_NS, limits);

	if (!called && leads_by_itself(batches, ticket, since_ns))
		return lead_unless_over(batches, ticket);
	if (!called)
		called = is_called(ticket, since_ns + LEAVE_NS, limits);
	if (!called && give_up(batches, ticket))
		return limits_are_over(limits) ? batch_write_give_up(ticket->write)
					       : batch_write_alone(ticket->write);
	if (!called) /* it is just being called */
		bell_await(&ticket->called, 0, NULL, NULL);
	return ticket->state == BATCH_ANSWERED ? ticket_outcome(batches, ticket)
					       : lead_unless_over(batches, ticket);
}

/* No request is under way, so later writes wait for this one. */
static bool begin_alone(struct batches *batches)
{
	uv_mutex_lock(&batches->mutex);
	const bool is_idle = batches->locked.under_way == 0 && !batches->locked.first;
	batches->locked.under_way += is_idle;
	uv_mutex_unlock(&batches->mutex);
	return is_idle;
}

static enum outcome join(struct batches *batches, struct batch_ticket *ticket)
{
	uv_mutex_lock(&batches->mutex);
	batch_queue_add(batches, ticket);
	const bool leads = batch_queue_may_go(batches);
	if (leads)
		batch_queue_lead(batches, ticket);
	uv_mutex_unlock(&batches->mutex);
	return leads ? lead_unless_over(batches, ticket) : await(batches, ticket, clock_boot_ns());
}

enum outcome batches_write(
	struct batches *batches, struct batch_ticket *ticket, const struct batch_write *write)
{
	ticket->write = write;
	if (!atomic_load(&batches->is_on) || !batch_write_may_wait(write))
		return batch_write_alone(write);
	if (begin_alone(batches)) {
		enum outcome outcome = batch_write_alone(write);
		end_batch(batches);
		return outcome;
	}
	const int dialect = atomic_load(&batches->dialect);
	if (!batch_write_statement(write, (enum dynamodb_dialect)dialect, &ticket->statement))
		return batch_write_alone(write);
	return join(batches, ticket);
}
