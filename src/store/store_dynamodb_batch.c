#include "store/store_dynamodb_batch.h"
#include "aws/retry.h"
#include "aws/wait.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include <errno.h>
#include <string.h>

#define BATCH_MAX_BYTES (1U << 20)        /* of statements; a mark takes less than 3 KB */
#define HOLD_NS         (50 * NS_PER_MS)  /* a request under way is waited for no longer */
#define LEAVE_NS        (5 * NS_PER_S)    /* nor is one that carries one's own statement */
#define LOOK_NS         (100 * NS_PER_MS) /* how often a waiting caller looks at its limits */

/* The statements of one request, and who waits for their answers: NULL is a caller that left. */
struct batch {
	struct batch_ticket *seats[STATEMENTS_MAX];
	size_t n, bytes;
};

int batch_ticket_init(struct batch_ticket *ticket)
{
	ticket->statement = TEXT(BATCH_MAX_BYTES);
	return sem_init(&ticket->called, 0, 0) ? -errno : 0;
}

void batch_ticket_clear(struct batch_ticket *ticket)
{
	sem_destroy(&ticket->called);
	text_clear(&ticket->statement);
}

/* Called without the mutex, since the thread that is woken would only wait for it. */
static void call(struct batch_ticket *ticket)
{
	if (ticket)
		sem_post(&ticket->called);
}

int batches_init(struct batches *batches)
{
	batches->locked.last = &batches->locked.first;
	return -pthread_mutex_init(&batches->mutex, NULL);
}

void batches_destroy(struct batches *batches)
{
	pthread_mutex_destroy(&batches->mutex);
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

/* --- One write. */

static const struct call_limits *limits_of(const struct batch_write *write)
{
	static const struct call_limits none;

	return write->limits ? write->limits : &none;
}

static enum outcome perform_alone(const struct batch_write *w)
{
	if (w->item)
		return dynamodb_put(w->db, w->table, w->key, w->item, w->conditions,
			w->n_conditions, w->limits, w->ret_present, w->ret_problem);
	return dynamodb_update(w->db, w->table, w->key, w->changes, w->n_changes, w->conditions,
		w->n_conditions, w->limits, w->ret_present, w->ret_problem);
}

/* INSERT can express only one kind of put, which is a put if the item is absent. */
static bool is_put_if_absent(const struct batch_write *w)
{
	return w->item && w->n_conditions == 1 && w->conditions->test == CONDITION_ABSENT &&
	       strcmp(w->conditions->name, w->table->pk_name) == 0;
}

static bool may_wait(const struct batch_write *w)
{
	return !limits_of(w)->deadline_ns && (!w->item || is_put_if_absent(w));
}

static bool write_statement(const struct batches *batches, struct batch_ticket *ticket)
{
	const struct batch_write *w = ticket->write;
	const struct statement_update update = {
		w->changes, w->n_changes, w->conditions, w->n_conditions};
	const int dialect = atomic_load(&batches->dialect);

	text_reset(&ticket->statement);
	if (w->item)
		return statement_insert(&ticket->statement, w->table, w->key, w->item);
	return statement_update(
		&ticket->statement, (enum dynamodb_dialect)dialect, w->table, w->key, &update);
}

static bool same_key(const struct item_key *a, const struct item_key *b)
{
	return strcmp(a->sk ? a->sk : "", b->sk ? b->sk : "") == 0 && strcmp(a->pk, b->pk) == 0;
}

/* --- The queue. */

static void enqueue_locked(struct batches *batches, struct batch_ticket *ticket)
{
	ticket->state = TICKET_WAITS;
	ticket->locked.next = NULL;
	*batches->locked.last = ticket;
	batches->locked.last = &ticket->locked.next;
	batches->locked.waiting++;
}

/* at: the link that leads to the ticket. */
static struct batch_ticket *unlink_locked(struct batches *batches, struct batch_ticket **at)
{
	struct batch_ticket *ticket = *at;

	*at = ticket->locked.next;
	if (batches->locked.last == &ticket->locked.next)
		batches->locked.last = at;
	batches->locked.waiting--;
	return ticket;
}

static void leave_locked(struct batches *batches, struct batch_ticket *ticket)
{
	struct batch_ticket **at = &batches->locked.first;

	while (*at != ticket)
		at = &(*at)->locked.next;
	unlink_locked(batches, at);
}

/* The ticket leads from here on: its request counts already, so that nobody else leaves with what
 * it is to take along. */
static void lead_locked(struct batches *batches, struct batch_ticket *ticket)
{
	leave_locked(batches, ticket);
	ticket->state = TICKET_LEADS;
	batches->locked.under_way++;
}

static bool may_leave_locked(const struct batches *batches)
{
	return batches->locked.first &&
	       (batches->locked.under_way == 0 || batches->locked.waiting >= STATEMENTS_MAX);
}

/* A request has ended. Returns who leads the next one and is to be called, or NULL. */
static struct batch_ticket *end_locked(struct batches *batches)
{
	struct batch_ticket *first = batches->locked.first;

	batches->locked.under_way--;
	if (!may_leave_locked(batches))
		return NULL;
	lead_locked(batches, first);
	return first;
}

static void end_batch(struct batches *batches)
{
	pthread_mutex_lock(&batches->mutex);
	struct batch_ticket *next = end_locked(batches);
	pthread_mutex_unlock(&batches->mutex);
	call(next);
}

/* --- One batch. */

/* DynamoDB refuses a request that names one item twice. */
static bool has_key(const struct batch *batch, const struct item_key *key)
{
	for (size_t i = 0; i < batch->n; i++)
		if (same_key(&batch->seats[i]->write->key, key))
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
		unlink_locked(batches, at);
		ticket->state = TICKET_TAKEN;
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
	ticket->state = TICKET_ANSWERED;
}

static enum outcome give_up_write(const struct batch_write *write)
{
	problem_set(write->ret_problem, "it was given up before the table had answered");
	return OUTCOME_ABANDONED;
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
	enum outcome outcome = perform_alone(write);
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

	pthread_mutex_lock(&batches->mutex);
	fill_locked(batches, &batch, leader);
	pthread_mutex_unlock(&batches->mutex);
	if (batch.n == 1) {
		outcome = perform_alone(write);
		end_batch(batches);
		return outcome;
	}
	outcome = dynamodb_batch_execute(write->db, batch.n, write->limits, answers, &problem);
	pthread_mutex_lock(&batches->mutex);
	for (size_t i = 0; i < batch.n; i++)
		if (batch.seats[i])
			answer_locked(batch.seats[i], outcome,
				outcome == OUTCOME_OK ? answers[i] : outcome, &problem);
	struct batch_ticket *next = end_locked(batches);
	pthread_mutex_unlock(&batches->mutex);
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

/* How long to sleep before there is something else to look at. */
static uint64_t sleep_ns(const struct batch_ticket *ticket, uint64_t since_ns)
{
	const uint64_t now_ns = clock_boot_ns(), leaves_ns = since_ns + HOLD_NS;

	if (ticket->state != TICKET_WAITS)
		return LOOK_NS;
	return leaves_ns > now_ns ? leaves_ns - now_ns : 0;
}

/* Whether the ticket leads since it has waited long enough. */
static bool leads_by_itself(struct batches *batches, struct batch_ticket *ticket, uint64_t since_ns)
{
	if (clock_boot_ns() < since_ns + HOLD_NS)
		return false;
	pthread_mutex_lock(&batches->mutex);
	const bool waits = ticket->state == TICKET_WAITS;
	if (waits)
		lead_locked(batches, ticket);
	pthread_mutex_unlock(&batches->mutex);
	return waits;
}

/* The caller, which was not called so far, goes away. False: it is just being called. */
static bool give_up(struct batches *batches, struct batch_ticket *ticket)
{
	pthread_mutex_lock(&batches->mutex);
	const enum ticket_state state = ticket->state;
	if (state == TICKET_WAITS)
		leave_locked(batches, ticket);
	else if (state == TICKET_TAKEN)
		*ticket->locked.seat = NULL;
	pthread_mutex_unlock(&batches->mutex);
	return state == TICKET_WAITS || state == TICKET_TAKEN;
}

static enum outcome lead_unless_over(struct batches *batches, struct batch_ticket *ticket)
{
	if (!limits_are_over(limits_of(ticket->write)))
		return lead(batches, ticket);
	end_batch(batches);
	return give_up_write(ticket->write);
}

static enum outcome await(struct batches *batches, struct batch_ticket *ticket, uint64_t since_ns)
{
	while (!thread_sem_wait(&ticket->called, sleep_ns(ticket, since_ns))) {
		if (leads_by_itself(batches, ticket, since_ns))
			return lead_unless_over(batches, ticket);
		if (clock_boot_ns() - since_ns >= LEAVE_NS && give_up(batches, ticket))
			return perform_alone(ticket->write);
		if (limits_are_over(limits_of(ticket->write)) && give_up(batches, ticket))
			return give_up_write(ticket->write);
	}
	return ticket->state == TICKET_ANSWERED ? ticket_outcome(batches, ticket)
						: lead_unless_over(batches, ticket);
}

/* No request is under way, so later writes wait for this one. */
static bool begin_alone(struct batches *batches)
{
	pthread_mutex_lock(&batches->mutex);
	const bool is_idle = batches->locked.under_way == 0 && !batches->locked.first;
	batches->locked.under_way += is_idle;
	pthread_mutex_unlock(&batches->mutex);
	return is_idle;
}

static enum outcome join(struct batches *batches, struct batch_ticket *ticket)
{
	pthread_mutex_lock(&batches->mutex);
	enqueue_locked(batches, ticket);
	const bool leads = may_leave_locked(batches);
	if (leads)
		lead_locked(batches, ticket);
	pthread_mutex_unlock(&batches->mutex);
	return leads ? lead_unless_over(batches, ticket) : await(batches, ticket, clock_boot_ns());
}

enum outcome batches_write(
	struct batches *batches, struct batch_ticket *ticket, const struct batch_write *write)
{
	ticket->write = write;
	if (!atomic_load(&batches->is_on) || !may_wait(write))
		return perform_alone(write);
	if (begin_alone(batches)) {
		enum outcome outcome = perform_alone(write);
		end_batch(batches);
		return outcome;
	}
	if (!write_statement(batches, ticket))
		return perform_alone(write);
	return join(batches, ticket);
}
