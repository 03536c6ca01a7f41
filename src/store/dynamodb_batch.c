/* Sends marks in batches (docs/protocol.md, "Marks in batches"). The store sends every put, update
 * and removal through dynamodb_write(). A caller gets the outcome that its write would have had
 * alone. So the outcome of a whole request is never taken for that of one statement. */
#include "aws/retry.h"
#include "base/clock.h"
#include "base/json_text.h"
#include "base/log.h"
#include "store/dynamodb_request.h"
#include <string.h>

#define HOLD_NS  (50 * NS_PER_MS) /* the longest wait for the request under way to end */
#define LEAVE_NS (5 * NS_PER_S)   /* the longest wait of a caller for the answer to its batch */

static struct batch_ticket *batch_ticket_of(struct ticket *ticket)
{
	return (struct batch_ticket *)ticket;
}

void dynamodb_use_batches(struct store *store, const char *how)
{
	struct batches *batches = &((struct dynamodb *)store)->batches;

	/* The word for DIALECT_NONE changes nothing, since batches are off at first. */
	for (int i = DIALECT_NONE + 1; i < DIALECTS; i++)
		if (strcmp(how, dynamodb_dialects[i]) == 0)
			atomic_store(&batches->dialect, i);
}

/* Whether a write may wait for a batch: it has no deadline, unlike a heartbeat, and a statement can
 * express it. */
static bool may_be_batched(const struct batch_write *w)
{
	const struct item_write *what = w->what;
	if (w->limits->deadline_ns || what->removes || what->returns_item)
		return false;
	if (what->item) /* the only put that INSERT can express */
		return write_puts_if_absent(what, w->db->table->pk_name);
	/* An UPDATE sets values of an item that exists, under conditions of two kinds. */
	if (!what->n_changes || what->or_absent || what->increments)
		return false;
	for (size_t i = 0; i < what->n_conditions; i++) {
		const enum condition_test test = what->conditions[i].test;
		if (test != CONDITION_EQUALS && test != CONDITION_ABSENT)
			return false;
	}
	return true;
}

/* Sets the sentence of a write whose caller has stopped waiting, and returns its outcome. */
static enum outcome abandon_write(const struct batch_write *write)
{
	return outcome_error(write->ret_problem, OUTCOME_ABANDONED,
		"it was given up before the table had answered");
}

/* Turns batches off, and logs why. Does nothing if they are off already. */
static void turn_batches_off(
	struct batches *batches, const struct batch_write *write, enum outcome why)
{
	if (atomic_exchange(&batches->dialect, DIALECT_NONE) == DIALECT_NONE)
		return;
	if (why == OUTCOME_DENIED)
		log_note("table %s: each mark is a request of its own, since BatchExecuteStatement "
			 "is denied; allow dynamodb:PartiQLInsert and dynamodb:PartiQLUpdate",
			write->db->table->name);
	else
		log_info("table %s: each mark is a request of its own, since BatchExecuteStatement "
			 "is %s",
			write->db->table->name, outcome_name(why));
}

/* Whether the waiting writes may be sent now: no request is under way, or they fill a batch. */
static bool may_send_locked(const struct batches *batches)
{
	return batches->locked.waiting.n &&
	       (batches->locked.under_way == 0 || batches->locked.waiting.n >= STATEMENTS_MAX);
}

/* Makes a waiting ticket the leader, whose caller sends the next request. `woken` is the list of
 * tickets that the caller of this function wakes next, or NULL if it is the ticket's own caller.
 * The request counts as under way from now on, so that the other waiting writes are left to this
 * leader. */
static void appoint_leader_locked(
	struct batches *batches, struct ticket *ticket, struct tickets *woken)
{
	ticket_move(ticket, woken, TICKET_LEADS);
	batches->locked.under_way++;
}

/* Notes that a request has ended. If waiting writes may be sent now, the first of them whose caller
 * waits leads the next request. Its ticket is added to *woken, and the caller of this function
 * wakes those. */
static void end_request_locked(struct batches *batches, struct tickets *woken)
{
	struct ticket *first = batches->locked.waiting.first;

	batches->locked.under_way--;
	while (first && batch_ticket_of(first)->caller_is_away)
		first = first->next;
	if (first && may_send_locked(batches))
		appoint_leader_locked(batches, first, woken);
}

static void end_request(struct batches *batches)
{
	struct tickets woken = {0};
	uv_mutex_lock(&batches->mutex);
	end_request_locked(batches, &woken);
	uv_mutex_unlock(&batches->mutex);
	tickets_wake(&woken);
}

static bool is_same_item(const struct batch_ticket *a, const struct batch_ticket *b)
{
	const struct item_key *x = &a->write->key, *y = &b->write->key;
	return strcmp(x->sk ? x->sk : "", y->sk ? y->sk : "") == 0 && strcmp(x->pk, y->pk) == 0;
}

/* Begins a request with the leader's statement, and adds the statements of waiting tickets, as far
 * as they fit. Their tickets are moved to *ret. A caller that stops waiting takes its ticket out of
 * *ret and uses it again, so the statements are copied. Returns the number of statements. */
static size_t collect_statements_locked(
	struct batches *batches, const struct batch_ticket *leader, struct tickets *ret)
{
	struct dynamodb_conn *db = leader->write->db;
	size_t bytes = leader->statement.len;
	dynamodb_batch_begin(db);
	dynamodb_batch_add(db, &leader->statement);
	for (struct ticket *next, *t = batches->locked.waiting.first;
		t && ret->n + 1 < STATEMENTS_MAX; t = next) {
		struct batch_ticket *ticket = batch_ticket_of(t);
		next = t->next;
		/* DynamoDB refuses a request that names one item twice. */
		bool fits = bytes + ticket->statement.len <= BATCH_MAX_BYTES &&
			    !is_same_item(ticket, leader);
		for (struct ticket *other = ret->first; other && fits; other = other->next)
			fits = !is_same_item(ticket, batch_ticket_of(other));
		if (!fits) /* it waits for the next request */
			continue;
		ticket_move(t, ret, TICKET_TAKEN);
		ticket->number = ret->n; /* from 1 on, since the leader's is 0 */
		bytes += ticket->statement.len;
		dynamodb_batch_add(db, &ticket->statement);
	}
	return ret->n + 1;
}

/* Answers a ticket. If the outcome of the whole request is OK, the ticket's statement has an
 * outcome of its own, `answer`, which is final if it is OK or REFUSED. Otherwise the statement has
 * the outcome of the request.
 *
 * SETUP, THROTTLED and TRANSIENT are final for each statement of the request, since the statement
 * alone would have failed in the same way, after as many attempts. Any other failure may have a
 * cause outside of the statements: the leader has stopped waiting, batches are denied, or the
 * answer was lost. The caller of a ticket without a final outcome repeats its write alone. */
static void set_outcome_locked(struct batch_ticket *ticket, enum outcome of_request,
	enum outcome answer, const struct problem *problem)
{
	if (of_request == OUTCOME_OK) {
		ticket->outcome = answer;
		ticket->is_final = answer == OUTCOME_OK || answer == OUTCOME_REFUSED;
	} else {
		ticket->outcome = of_request;
		ticket->is_final = of_request == OUTCOME_SETUP || of_request == OUTCOME_THROTTLED ||
				   of_request == OUTCOME_TRANSIENT;
		ticket->problem = *problem;
	}
	ticket->ticket.state = TICKET_ANSWERED;
}

/* Repeats a write alone, after an outcome `before` that is not final. Waits first after throttling
 * or an error of the server, since the table cannot perform the write at the moment. */
static enum outcome repeat_alone(
	struct batches *batches, const struct batch_write *write, enum outcome before)
{
	const bool is_throttled = before == OUTCOME_THROTTLED;

	if (before == OUTCOME_DENIED || before == OUTCOME_UNSUPPORTED)
		turn_batches_off(batches, write, before);
	if (is_throttled || before == OUTCOME_TRANSIENT) {
		const enum retry_class class = is_throttled ? RETRY_THROTTLE : RETRY_TRANSIENT;
		enum outcome waited = wait_within(write->limits,
			retry_backoff_ms(class, RETRY_OF_DYNAMODB, 0), write->ret_problem);
		if (waited != OUTCOME_OK)
			return waited;
	}
	enum outcome outcome = dynamodb_write_alone(write);
	/* The server accepts the write alone, but said that its statement in the batch is invalid.
	 * So it does not accept such statements after all, although the probe succeeded. */
	if (before == OUTCOME_INVALID && (outcome == OUTCOME_OK || outcome == OUTCOME_REFUSED))
		turn_batches_off(batches, write, before);
	return outcome;
}

/* Returns the outcome of an answered ticket, in its caller's thread. If the batch has not decided
 * the write (is_final), the write is repeated alone. The answer of a batch does not bring along the
 * item of a refusal, so the item is read. */
static enum outcome final_outcome(struct batches *batches, struct batch_ticket *ticket)
{
	const struct batch_write *write = ticket->write;
	const enum outcome outcome = ticket->outcome;

	if (!ticket->is_final)
		return repeat_alone(batches, write, outcome);
	if (outcome == OUTCOME_REFUSED && write->ret)
		return dynamodb_read_refused(write);
	if (outcome != OUTCOME_OK && outcome != OUTCOME_REFUSED)
		*write->ret_problem = ticket->problem;
	return outcome;
}

void dynamodb_batch_begin(struct dynamodb_conn *db)
{
	struct text *body = dynamodb_begin_bare(db);
	json_add_member(body, "Statements");
	text_add_char(body, '[');
}

void dynamodb_batch_add(struct dynamodb_conn *db, const struct text *statement)
{
	struct text *body = &db->body;
	if (body->len && body->data[body->len - 1] != '[')
		text_add_char(body, ',');
	text_add_bytes(body, text_string(statement), statement->len);
}

/* Returns the outcome of a statement by its answer, {"TableName":"…"}, perhaps with an Item, or
 * {"Error":{"Code":"…","Message":"…"},…}. Any other answer means LOST. */
static enum outcome statement_outcome(const json_t *response)
{
	const json_t *error = json_object_get(response, "Error");
	const char *code = json_text(error, "Code");
	const size_t n_table = json_object_get(response, "TableName") ? 1 : 0;
	const size_t n_item = json_object_get(response, "Item") ? 1 : 0;
	/* Any further member may be an error in an unknown form. */
	if (json_is_object(response) && !error && json_object_size(response) == n_table + n_item)
		return OUTCOME_OK;
	if (!*code)
		return OUTCOME_LOST;
	/* The outcome is that of a single request with this code, which has the status 400. */
	const struct attempt attempt = {.status = 400, .code = code, .is_write = true};
	const enum outcome outcome = classify(&attempt).outcome;
	if (outcome != OUTCOME_REFUSED)
		log_debug("a statement of a batch: %s, it is repeated alone", quote(code).text);
	return outcome;
}

enum outcome dynamodb_batch_execute(struct dynamodb_conn *db, size_t n,
	const struct call_limits *limits, enum outcome ret_answers[static STATEMENTS_MAX],
	struct problem *ret_problem)
{
	json_t *reply;
	text_add_char(&db->body, ']');
	enum outcome outcome =
		dynamodb_perform(db, DYNAMODB_BATCH_EXECUTE, limits, &reply, ret_problem);
	const json_t *responses = json_object_get(reply, "Responses");
	/* Unless there is one answer for each statement, answers cannot be matched with
	 * statements. */
	const bool is_whole = json_array_size(responses) == n;
	for (size_t i = 0; i < n && outcome == OUTCOME_OK; i++)
		ret_answers[i] =
			is_whole ? statement_outcome(json_array_get(responses, i)) : OUTCOME_LOST;
	json_decref(reply);
	return outcome;
}

/* Sends the leader's write and all waiting writes as a batch. If none waits, the write is sent
 * alone. */
static enum outcome send_batch(struct batches *batches, struct batch_ticket *leader)
{
	const struct batch_write *write = leader->write;
	enum outcome answers[STATEMENTS_MAX] = {OUTCOME_OK}, outcome;
	struct problem problem = {0};
	struct tickets others = {0}; /* tickets that this request answers, unless they leave */

	/* If the caller has stopped waiting, its request is never sent. The request has counted as
	 * under way since the ticket was made the leader, so it is ended here, and another ticket
	 * leads. */
	if (limits_are_over(write->limits)) {
		end_request(batches);
		return abandon_write(write);
	}
	uv_mutex_lock(&batches->mutex);
	const size_t n = collect_statements_locked(batches, leader, &others);
	uv_mutex_unlock(&batches->mutex);
	if (n == 1) { /* no other ticket waits or fits */
		outcome = dynamodb_write_alone(write);
		end_request(batches);
		return outcome;
	}
	outcome = dynamodb_batch_execute(write->db, n, write->limits, answers, &problem);
	/* The leader's ticket is in no list, so that only this thread uses it, without the mutex.
	 * Its statement is the first one. */
	set_outcome_locked(leader, outcome, answers[0], &problem);
	uv_mutex_lock(&batches->mutex);
	for (struct ticket *t = others.first; t; t = t->next) {
		struct batch_ticket *other = batch_ticket_of(t);
		set_outcome_locked(other, outcome, answers[other->number], &problem);
	}
	end_request_locked(batches, &others); /* adds the next leader to the tickets to be woken */
	uv_mutex_unlock(&batches->mutex);
	tickets_wake(&others);
	/* The leader itself has given up, so only the other writes are repeated. */
	if (outcome == OUTCOME_ABANDONED) {
		*write->ret_problem = problem;
		return outcome;
	}
	return final_outcome(batches, leader);
}

/* Waits until the ticket is woken, but only until wait_ns after the ticket began to wait, or until
 * the caller's abandon() returns true. Returns whether it was woken. */
static bool await_wakeup(struct ticket *ticket, uint64_t wait_ns, const struct call_limits *limits)
{
	return wakeup_await(
		&ticket->wakeup, ticket->since_ns + wait_ns, limits->abandon, limits->abandon_arg);
}

/* Makes the ticket a leader if no other leader has taken it. Returns whether it is one now. */
static bool try_to_lead(struct batches *batches, struct ticket *ticket)
{
	uv_mutex_lock(&batches->mutex);
	const bool leads = ticket->state == TICKET_WAITS;
	if (leads)
		appoint_leader_locked(batches, ticket, NULL);
	uv_mutex_unlock(&batches->mutex);
	return leads;
}

/* Takes the ticket out of the queue or of its batch. Returns false if it was answered or made the
 * leader just now, so that it is about to be woken. */
static bool try_to_leave(struct batches *batches, struct ticket *ticket)
{
	uv_mutex_lock(&batches->mutex);
	const bool leaves = ticket->state == TICKET_WAITS || ticket->state == TICKET_TAKEN;
	if (leaves)
		ticket_move(ticket, NULL, TICKET_ANSWERED);
	uv_mutex_unlock(&batches->mutex);
	return leaves;
}

/* Waits until the ticket is answered or made the leader, and then returns its outcome or leads. A
 * ticket that no leader has taken after HOLD_NS leads by itself. A ticket that is not answered
 * after LEAVE_NS leaves its batch, and its write is repeated alone, as after a reply that was lost:
 * the batch may be applied all the same. A caller whose limits end gives up. */
static enum outcome await_outcome(struct batches *batches, struct batch_ticket *own)
{
	struct ticket *ticket = &own->ticket;
	const struct call_limits *limits = own->write->limits;
	bool woken = await_wakeup(ticket, HOLD_NS, limits);

	if (!woken) {
		/* If HOLD_NS is not over, abandon() has ended the wait. Then the next wait ends at
		 * once. */
		const bool was_held_long = clock_boot_ns() >= ticket->since_ns + HOLD_NS;
		if (was_held_long && try_to_lead(batches, ticket))
			return send_batch(batches, own);
		woken = await_wakeup(ticket, LEAVE_NS, limits);
	}
	if (!woken) {
		if (try_to_leave(batches, ticket))
			return limits_are_over(limits) ? abandon_write(own->write)
						       : dynamodb_write_alone(own->write);
		/* The ticket could not leave, since it is about to be woken. This wait has no
		 * deadline, but is short. */
		wakeup_await(&ticket->wakeup, 0, NULL, NULL);
	}
	return ticket->state == TICKET_ANSWERED ? final_outcome(batches, own)
						: send_batch(batches, own);
}

/* Writes the ticket's statement. Returns false if it is too long, or out of memory. */
static bool make_statement(struct batch_ticket *ticket, enum dynamodb_dialect dialect)
{
	const struct batch_write *write = ticket->write;
	struct text *statement = &ticket->statement;

	text_reset(statement);
	if (write->what->item)
		statement_insert(statement, write->db->table, write->key, write->what->item);
	else
		statement_update(statement, dialect, write->db->table, write->key, write->what);
	return !statement->error;
}

static void queue_ticket(struct batches *batches, struct batch_ticket *own)
{
	own->ticket.since_ns = clock_boot_ns();
	uv_mutex_lock(&batches->mutex);
	ticket_move(&own->ticket, &batches->locked.waiting, TICKET_WAITS);
	uv_mutex_unlock(&batches->mutex);
}

/* Sends a batch if the ticket still waits and a request may be sent. Otherwise waits for the
 * outcome. */
static enum outcome lead_or_await(struct batches *batches, struct batch_ticket *own)
{
	uv_mutex_lock(&batches->mutex);
	own->caller_is_away = false;
	const bool leads = own->ticket.state == TICKET_WAITS && may_send_locked(batches);
	if (leads)
		appoint_leader_locked(batches, &own->ticket, NULL);
	uv_mutex_unlock(&batches->mutex);
	return leads ? send_batch(batches, own) : await_outcome(batches, own);
}

enum outcome dynamodb_write(struct store_conn *conn, struct item_key key,
	const struct item_write *what, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	struct dynamodb_conn *db = dynamodb_conn_of(conn);
	struct batches *batches = &db->db->batches;
	struct batch_ticket *own = &db->ticket;
	const struct batch_write write = {
		db, key, what, limits ? limits : &no_limits, ret, ret_problem};

	own->write = &write;
	const int dialect = atomic_load(&batches->dialect);
	if (dialect == DIALECT_NONE || !may_be_batched(&write))
		return dynamodb_write_alone(&write);
	/* If no request is under way, this write is sent at once. It counts as a request under way,
	 * for which later writes wait. */
	uv_mutex_lock(&batches->mutex);
	const bool is_idle = batches->locked.under_way == 0 && !batches->locked.waiting.n;
	if (is_idle)
		batches->locked.under_way++;
	uv_mutex_unlock(&batches->mutex);
	if (is_idle) {
		enum outcome outcome = dynamodb_write_alone(&write);
		end_request(batches);
		return outcome;
	}
	/* Otherwise the write waits as a statement, until one of the callers sends a batch. */
	if (!make_statement(own, (enum dynamodb_dialect)dialect))
		return dynamodb_write_alone(&write);
	queue_ticket(batches, own);
	return lead_or_await(batches, own);
}

void dynamodb_begin_write(struct store_conn *conn, struct item_key key,
	const struct item_write *what, const struct call_limits *limits)
{
	struct dynamodb_conn *db = dynamodb_conn_of(conn);
	struct batch_ticket *begun = &db->begun;
	const int dialect = atomic_load(&db->db->batches.dialect);

	db->begun_write = (struct batch_write){
		.db = db, .key = key, .what = what, .limits = limits ? limits : &no_limits};
	begun->write = &db->begun_write;
	begun->is_queued = dialect != DIALECT_NONE && may_be_batched(begun->write) &&
			   make_statement(begun, (enum dynamodb_dialect)dialect);
	if (begun->is_queued) {
		begun->caller_is_away = true; /* until dynamodb_end_write() */
		queue_ticket(&db->db->batches, begun);
	}
}

enum outcome dynamodb_end_write(
	struct store_conn *conn, struct item *ret, struct problem *ret_problem)
{
	struct dynamodb_conn *db = dynamodb_conn_of(conn);
	struct batch_write *write = &db->begun_write;

	write->ret = ret;
	write->ret_problem = ret_problem;
	if (!db->begun.is_queued)
		return dynamodb_write(
			conn, write->key, write->what, write->limits, ret, ret_problem);
	return lead_or_await(&db->db->batches, &db->begun);
}
