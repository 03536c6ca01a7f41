/* Marks that are sent together: what each statement's answer means for its own write, which is
 * never more than that answer says, and which servers may get batches at all. The rules are those
 * of docs/protocol.md ("Marks in batches"). */
#include "../script_aws.h"
#include "store/dynamodb_request.h"
#include <stdlib.h>

#define WAITING 26

/* A store in whose queue writes of others wait, which have no threads of their own here. */
struct fixture {
	struct script_aws aws;
	struct store *store;
	struct store_conn *conn;
	struct batch_ticket others[WAITING];
	struct batch_write writes[WAITING];
	char keys[WAITING][8];
};

static const struct table table = {"t", "pk", "sk"};
static const struct change change = {"state", VALUE_STRING, "done", 0};
static const struct condition ours = {"claim", CONDITION_EQUALS, VALUE_STRING, "c"};
static const struct item_write update = {
	.changes = &change, .n_changes = 1, .conditions = &ours, .n_conditions = 1};

static struct batches *batches_of(struct fixture *f)
{
	return &((struct dynamodb *)f->store)->batches;
}

static bool begin(struct fixture *f, const char *const *replies)
{
	*f = (struct fixture){0};
	return script_aws_reply(&f->aws, replies) &&
	       CHECK_INT(store_dynamodb_open_table(
				 &f->aws.settings, f->aws.http, &table, &f->store, &f->aws.problem),
		       0) &&
	       CHECK_INT(store_conn_new(f->store, &f->conn), 0);
}

/* Adds the write of another caller to the queue. Its statement is `bytes` long. */
static void add_waiting(struct fixture *f, size_t i, const char *sk, size_t bytes)
{
	struct batch_ticket *ticket = &f->others[i];
	snprintf(f->keys[i], sizeof f->keys[i], "%s", sk);
	f->writes[i] = (struct batch_write){
		.db = dynamodb_conn_of(f->conn), .key = {"p", f->keys[i]}, .limits = &no_limits};
	ticket->write = &f->writes[i];
	ticket->statement = (struct text)TEXT(2 << 20);
	text_addf(&ticket->statement, "{\"Statement\":\"%s\"%*s}", sk, (int)bytes, "");
	wakeup_init(&ticket->ticket.wakeup);
	ticket_move(&ticket->ticket, &batches_of(f)->locked.waiting, TICKET_WAITS);
}

static void end(struct fixture *f)
{
	for (size_t i = 0; i < WAITING; i++)
		if (f->others[i].write) {
			text_clear(&f->others[i].statement);
			wakeup_clear(&f->others[i].ticket.wakeup);
		}
	batches_of(f)->locked.waiting = (struct tickets){0};
	store_conn_free(f->conn);
	store_close(f->store);
	script_aws_end(&f->aws);
}

/* The requests, by the first letters of their operations. */
static bool check_sent(struct fixture *f, const char *want)
{
	char sent[SCRIPT_STEPS_MAX * 3 + 1] = "";
	script_stop(&f->aws.server);
	for (size_t i = 0; i < f->aws.server.n_requests; i++) {
		const char *target = script_sent(&f->aws.server.requests[i], "x-amz-target");
		snprintf(sent + strlen(sent), sizeof sent - strlen(sent), "%s%c", i ? " " : "",
			target ? target[strlen("DynamoDB_20120810.")] : '?');
	}
	return CHECK_STRING(sent, want);
}

/* --- the answer of one statement */

#define DONE         "{\"TableName\":\"t\"}"
#define FAULT(code)  "{\"Error\":{\"Code\":\"" code "\",\"Message\":\"m\"},\"TableName\":\"t\"}"
#define REFUSED      FAULT("ConditionalCheckFailed")
#define ANSWERS(...) SCRIPT_REPLY("200", "", "{\"Responses\":[" __VA_ARGS__ "]}")
#define ERROR(status, code)                                                                        \
	SCRIPT_REPLY(status, "", "{\"__type\":\"x#" code "\",\"message\":\"m\"}")

static const struct {
	const char *answer;
	enum outcome outcome;
} answers[] = {
	{DONE, OUTCOME_OK},
	{"{\"TableName\":\"t\",\"Item\":{\"a\":{\"S\":\"b\"}}}", OUTCOME_OK},
	{"{}", OUTCOME_OK},
	{REFUSED, OUTCOME_REFUSED},
	{FAULT("DuplicateItem"), OUTCOME_REFUSED},
	{FAULT("ThrottlingError"), OUTCOME_THROTTLED},
	{FAULT("ProvisionedThroughputExceeded"), OUTCOME_THROTTLED},
	{FAULT("TransactionConflict"), OUTCOME_THROTTLED},
	{FAULT("InternalServerError"), OUTCOME_TRANSIENT},
	{FAULT("ValidationError"), OUTCOME_INVALID},
	{FAULT("ResourceNotFound"), OUTCOME_SETUP},
	{FAULT("AccessDenied"), OUTCOME_DENIED},
	{FAULT("NeverHeardOf"), OUTCOME_INVALID},
	/* HTTP 200 says nothing about a statement, and neither does an answer in an odd form. */
	{FAULT(""), OUTCOME_LOST},
	{"{\"Error\":{}}", OUTCOME_LOST},
	{"{\"Error\":null}", OUTCOME_LOST},
	{"{\"TableName\":\"t\",\"Fault\":1}", OUTCOME_LOST},
	{"null", OUTCOME_LOST},
	{"[]", OUTCOME_LOST},
	{"\"ok\"", OUTCOME_LOST},
};

static void test_answers(void)
{
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		char reply[400];
		struct fixture f;
		enum outcome got[STATEMENTS_MAX];
		snprintf(reply, sizeof reply, ANSWERS("%s,%s"), DONE, answers[i].answer);
		const char *const replies[] = {reply, NULL};
		if (!begin(&f, replies))
			return;
		struct dynamodb_conn *db = dynamodb_conn_of(f.conn);
		struct text statement = TEXT(100);
		text_add(&statement, "{}");
		dynamodb_batch_begin(db);
		dynamodb_batch_add(db, &statement);
		dynamodb_batch_add(db, &statement);
		CHECK_INT(
			dynamodb_batch_execute(db, 2, &no_limits, got, &f.aws.problem), OUTCOME_OK);
		if (!CHECK_INT(got[0], OUTCOME_OK) ||
			!CHECK_STRING(outcome_name(got[1]), outcome_name(answers[i].outcome)))
			fprintf(stderr, "\tanswer %zu\n", i);
		text_clear(&statement);
		script_stop(&f.aws.server);
		CHECK_STRING(f.aws.server.requests[0].body, "{\"Statements\":[{},{}]}");
		end(&f);
	}
}

/* --- a batch of three: the caller's own write comes first */

#define ITEM SCRIPT_REPLY("200", "", "{\"Item\":{\"pk\":{\"S\":\"p\"},\"claim\":{\"S\":\"x\"}}}")
#define OK   SCRIPT_REPLY("200", "", "{}")

static const struct {
	const char *replies[4];
	enum outcome outcome; /* of the caller's write */
	const char *sent;
	struct {
		enum outcome outcome;
		bool is_final;
	} others[2];
	bool batches_go_on;
} batches[] = {
	{{ANSWERS(DONE "," DONE "," DONE)}, OUTCOME_OK, "B",
		{{OUTCOME_OK, true}, {OUTCOME_OK, true}}, true},
	{{ANSWERS(DONE "," REFUSED "," FAULT("ThrottlingError"))}, OUTCOME_OK, "B",
		{{OUTCOME_REFUSED, true}, {OUTCOME_THROTTLED, false}}, true},
	{{ANSWERS(DONE "," FAULT("InternalServerError") "," FAULT("ValidationError"))}, OUTCOME_OK,
		"B", {{OUTCOME_TRANSIENT, false}, {OUTCOME_INVALID, false}}, true},
	/* A refusal brings no item, so that is read. */
	{{ANSWERS(REFUSED "," DONE "," DONE), ITEM}, OUTCOME_REFUSED, "B G",
		{{OUTCOME_OK, true}, {OUTCOME_OK, true}}, true},
	{{ANSWERS(REFUSED "," DONE "," DONE), ERROR("500", "InternalServerError")},
		OUTCOME_TRANSIENT, "B G", {{OUTCOME_OK, true}, {OUTCOME_OK, true}}, true},
	/* Without a clear answer the write is repeated alone. */
	{{ANSWERS(FAULT("InternalServerError") "," DONE "," DONE), OK}, OUTCOME_OK, "B U",
		{{OUTCOME_OK, true}, {OUTCOME_OK, true}}, true},
	{{ANSWERS(DONE "," DONE), OK}, OUTCOME_OK, "B U",
		{{OUTCOME_LOST, false}, {OUTCOME_LOST, false}}, true},
	{{ANSWERS(DONE "," DONE "," DONE "," DONE), OK}, OUTCOME_OK, "B U",
		{{OUTCOME_LOST, false}, {OUTCOME_LOST, false}}, true},
	{{SCRIPT_REPLY("200", "", "{}"), OK}, OUTCOME_OK, "B U",
		{{OUTCOME_LOST, false}, {OUTCOME_LOST, false}}, true},
	{{"", OK}, OUTCOME_OK, "B U", {{OUTCOME_LOST, false}, {OUTCOME_LOST, false}}, true},
	{{ANSWERS("{\"Error\":{}}," DONE "," DONE), OK}, OUTCOME_OK, "B U",
		{{OUTCOME_OK, true}, {OUTCOME_OK, true}}, true},
	/* Each statement alone would have failed in the same way, after as many attempts. */
	{{ERROR("500", "InternalServerError")}, OUTCOME_TRANSIENT, "B",
		{{OUTCOME_TRANSIENT, true}, {OUTCOME_TRANSIENT, true}}, true},
	{{ERROR("400", "ThrottlingException")}, OUTCOME_THROTTLED, "B",
		{{OUTCOME_THROTTLED, true}, {OUTCOME_THROTTLED, true}}, true},
	{{ERROR("400", "InvalidSignatureException")}, OUTCOME_SETUP, "B",
		{{OUTCOME_SETUP, true}, {OUTCOME_SETUP, true}}, true},
	/* A server that does not take them gets none any more. */
	{{ERROR("400", "AccessDeniedException"), OK}, OUTCOME_OK, "B U",
		{{OUTCOME_DENIED, false}, {OUTCOME_DENIED, false}}, false},
	{{ERROR("400", "UnknownOperationException"), OK}, OUTCOME_OK, "B U",
		{{OUTCOME_UNSUPPORTED, false}, {OUTCOME_UNSUPPORTED, false}}, false},
	{{ANSWERS(FAULT("ValidationError") "," DONE "," DONE), OK}, OUTCOME_OK, "B U",
		{{OUTCOME_OK, true}, {OUTCOME_OK, true}}, false},
	/* The write itself is invalid, whichever way it is sent. */
	{{ANSWERS(FAULT("ValidationError") "," DONE "," DONE), ERROR("400", "ValidationException")},
		OUTCOME_INVALID, "B U", {{OUTCOME_OK, true}, {OUTCOME_OK, true}}, true},
};

static enum outcome write_own(struct fixture *f, const struct item_write *write,
	const struct call_limits *limits, struct item *ret)
{
	return dynamodb_write(
		f->conn, (struct item_key){"p", "own"}, write, limits, ret, &f->aws.problem);
}

static void test_batches(void)
{
	for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
		struct fixture f;
		struct item item = {0};
		if (!begin(&f, batches[i].replies))
			return;
		dynamodb_use_batches(f.store, "clauses");
		add_waiting(&f, 0, "a", 0);
		add_waiting(&f, 1, "b", 0);
		bool ok = CHECK_STRING(outcome_name(write_own(&f, &update, NULL, &item)),
			outcome_name(batches[i].outcome));
		ok = check_sent(&f, batches[i].sent) && ok;
		for (size_t k = 0; k < 2; k++) {
			ok = CHECK_INT(f.others[k].ticket.state, TICKET_ANSWERED) && ok;
			ok = CHECK_STRING(outcome_name(f.others[k].outcome),
				     outcome_name(batches[i].others[k].outcome)) &&
			     ok;
			ok = CHECK(f.others[k].is_final == batches[i].others[k].is_final) && ok;
		}
		ok = CHECK((batches_of(&f)->dialect != DIALECT_NONE) == batches[i].batches_go_on) &&
		     ok;
		ok = CHECK_INT(batches_of(&f)->locked.under_way, 0) && ok;
		const char *claim = batches[i].outcome == OUTCOME_REFUSED ? "x" : NULL;
		ok = CHECK_STRING(item_string(&item, "claim"), claim) && ok;
		if (!ok)
			fprintf(stderr, "\tbatch %zu: %s\n", i, f.aws.problem.text);
		item_clear(&item);
		end(&f);
	}
}

/* The caller does not want the item of this refusal. */
static void test_refused_without_an_item(void)
{
	static const char *const replies[] = {ANSWERS(REFUSED "," DONE), NULL};
	struct fixture f;
	if (!begin(&f, replies))
		return;
	dynamodb_use_batches(f.store, "lists");
	add_waiting(&f, 0, "a", 0);
	CHECK_INT(write_own(&f, &update, NULL, NULL), OUTCOME_REFUSED);
	check_sent(&f, "B");
	CHECK(strstr(f.aws.server.requests[0].body, "{\"Statements\":[{\"Statement\":\"UPDATE") ==
		f.aws.server.requests[0].body);
	end(&f);
}

/* The next write of a connection is a statement of its own. */
static void test_next_write(void)
{
	static const char *const replies[] = {ANSWERS(DONE "," DONE), ANSWERS(DONE "," DONE), NULL};
	struct fixture f;
	if (!begin(&f, replies))
		return;
	dynamodb_use_batches(f.store, "clauses");
	for (size_t i = 0; i < 2; i++) {
		add_waiting(&f, i, "a", 0);
		CHECK_INT(write_own(&f, &update, NULL, NULL), OUTCOME_OK);
	}
	check_sent(&f, "B B");
	CHECK_STRING(f.aws.server.requests[1].body, f.aws.server.requests[0].body);
	end(&f);
}

/* A write that was begun leaves with the next one of its caller, and has an outcome of its own. If
 * there is no next one, it is sent at its end. */
static void test_begun(void)
{
	static const struct {
		const char *dialect;
		bool has_next;
		const char *replies[4];
		const char *sent;
	} rows[] = {
		{"lists", true, {ANSWERS(DONE "," REFUSED), ITEM}, "B G"},
		{"lists", false, {ERROR("400", "ConditionalCheckFailedException"), ITEM}, "U G"},
		{"none", true, {OK, ERROR("400", "ConditionalCheckFailedException"), ITEM},
			"U U G"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct fixture f;
		struct item item = {0};
		if (!begin(&f, rows[i].replies))
			return;
		dynamodb_use_batches(f.store, rows[i].dialect);
		dynamodb_begin_write(f.conn, (struct item_key){"p", "begun"}, &update, NULL);
		if (rows[i].has_next)
			CHECK_INT(write_own(&f, &update, NULL, NULL), OUTCOME_OK);
		bool good = CHECK_INT(
			dynamodb_end_write(f.conn, &item, &f.aws.problem), OUTCOME_REFUSED);
		good &= CHECK_STRING(item_string(&item, "claim"), "x");
		good &= check_sent(&f, rows[i].sent);
		good &= CHECK_INT(batches_of(&f)->locked.under_way, 0);
		/* While its caller waited, it could have been made the leader. */
		good &= CHECK(!dynamodb_conn_of(f.conn)->begun.caller_is_away);
		if (!good)
			fprintf(stderr, "\tbegun %zu: %s\n", i, f.aws.problem.text);
		item_clear(&item);
		end(&f);
	}
}

/* A request that ends appoints no leader whose caller does not wait yet. */
static void test_tickets_without_a_caller_do_not_lead(void)
{
	for (int is_away = 0; is_away < 2; is_away++) {
		static const char *const replies[] = {OK, NULL};
		struct fixture f;
		if (!begin(&f, replies))
			return;
		dynamodb_use_batches(f.store, "lists");
		add_waiting(&f, 0, "a", BATCH_MAX_BYTES); /* it does not fit into the request */
		f.others[0].caller_is_away = is_away;
		CHECK_INT(write_own(&f, &update, NULL, NULL), OUTCOME_OK);
		check_sent(&f, "U");
		CHECK_INT(f.others[0].ticket.state, is_away ? TICKET_WAITS : TICKET_LEADS);
		CHECK_INT(batches_of(&f)->locked.under_way, is_away ? 0 : 1);
		end(&f);
	}
}

/* --- which writes a request takes along */

/* The statements of a request have a limit together, also where each one alone is below it. */
static void test_bytes_together(void)
{
	static const char *const replies[] = {ANSWERS(DONE "," DONE), NULL};
	struct fixture f;
	if (!begin(&f, replies))
		return;
	dynamodb_use_batches(f.store, "clauses");
	add_waiting(&f, 0, "a", BATCH_MAX_BYTES / 2);
	add_waiting(&f, 1, "b", BATCH_MAX_BYTES / 2);
	CHECK_INT(write_own(&f, &update, NULL, NULL), OUTCOME_OK);
	check_sent(&f, "B");
	CHECK_INT(f.others[0].ticket.state, TICKET_ANSWERED);
	CHECK_INT(f.others[1].ticket.state, TICKET_LEADS);
	end(&f);
}

/* No item is twice in one request, and no request is larger than a server takes. */
static void test_batches_keep_the_limits(void)
{
	static const char *const replies[] = {ANSWERS(DONE "," DONE "," DONE), NULL};
	struct fixture f;
	if (!begin(&f, replies))
		return;
	dynamodb_use_batches(f.store, "clauses");
	add_waiting(&f, 0, "own", 0);
	add_waiting(&f, 1, "a", 0);
	add_waiting(&f, 2, "a", 0);
	add_waiting(&f, 3, "b", BATCH_MAX_BYTES);
	add_waiting(&f, 4, "c", 0);
	CHECK_INT(write_own(&f, &update, NULL, NULL), OUTCOME_OK);
	check_sent(&f, "B");
	/* The first of those that are left leads the next request. */
	static const enum ticket_state states[] = {
		TICKET_LEADS, TICKET_ANSWERED, TICKET_WAITS, TICKET_WAITS, TICKET_ANSWERED};
	for (size_t i = 0; i < 5; i++)
		CHECK_INT(f.others[i].ticket.state, states[i]);
	CHECK_INT(batches_of(&f)->locked.under_way, 1);
	end(&f);
}

static void test_how_many(void)
{
	char reply[2000] = ANSWERS(DONE);
	struct fixture f;
	reply[strlen(reply) - 2] = 0;
	for (size_t i = 1; i < STATEMENTS_MAX; i++)
		strcat(reply, "," DONE);
	strcat(reply, "]}");
	const char *const replies[] = {reply, NULL};
	if (!begin(&f, replies))
		return;
	dynamodb_use_batches(f.store, "clauses");
	for (size_t i = 0; i < WAITING; i++) {
		char sk[8];
		snprintf(sk, sizeof sk, "k%zu", i);
		add_waiting(&f, i, sk, 0);
	}
	CHECK_INT(write_own(&f, &update, NULL, NULL), OUTCOME_OK);
	check_sent(&f, "B");
	CHECK_INT(f.others[STATEMENTS_MAX - 2].ticket.state, TICKET_ANSWERED);
	CHECK_INT(f.others[STATEMENTS_MAX - 1].ticket.state, TICKET_LEADS);
	CHECK_INT(f.others[STATEMENTS_MAX].ticket.state, TICKET_WAITS);
	end(&f);
}

static bool always(void *arg)
{
	return true;
}

/* A caller that has given up sends nothing, and leaves the others to the next leader. */
static void test_given_up(void)
{
	static const char *const replies[] = {NULL};
	const struct call_limits over = {.abandon = always};
	struct fixture f;
	if (!begin(&f, replies))
		return;
	dynamodb_use_batches(f.store, "clauses");
	add_waiting(&f, 0, "a", 0);
	CHECK_INT(write_own(&f, &update, &over, NULL), OUTCOME_ABANDONED);
	check_sent(&f, "");
	CHECK_INT(f.others[0].ticket.state, TICKET_LEADS);
	CHECK_INT(batches_of(&f)->locked.under_way, 1);
	end(&f);
}

/* Writes that statements cannot express, and those with a deadline, are requests of their own. */
static const struct condition absent_pk = {"pk", CONDITION_ABSENT, VALUE_STRING, NULL},
			      present = {"claim", CONDITION_PRESENT, VALUE_STRING, NULL},
			      at_most = {"at", CONDITION_AT_MOST, VALUE_NUMBER, "5"};
static struct item put_item;
static const struct call_limits until = {.deadline_ns = UINT64_MAX};

static const struct {
	struct item_write write;
	const struct call_limits *limits;
	const char *sent;
} kinds[] = {
	{{.changes = &change, .n_changes = 1, .conditions = &ours, .n_conditions = 1}, NULL, "B"},
	{{.changes = &change, .n_changes = 1}, NULL, "B"},
	{{.item = &put_item, .conditions = &absent_pk, .n_conditions = 1}, NULL, "B"},
	{{.changes = &change, .n_changes = 1, .conditions = &ours, .n_conditions = 1}, &until, "U"},
	{{.item = &put_item}, NULL, "P"},
	{{.item = &put_item, .conditions = &ours, .n_conditions = 1}, NULL, "P"},
	{{.removes = true, .conditions = &ours, .n_conditions = 1}, NULL, "D"},
	{{.changes = &change, .n_changes = 1, .returns_item = true}, NULL, "U"},
	{{.changes = &change, .n_changes = 1, .or_absent = true}, NULL, "U"},
	{{.changes = &change, .n_changes = 1, .increments = "n"}, NULL, "U"},
	{{.changes = &change, .n_changes = 1, .conditions = &present, .n_conditions = 1}, NULL,
		"U"},
	{{.changes = &change, .n_changes = 1, .conditions = &at_most, .n_conditions = 1}, NULL,
		"U"},
};

static void test_kinds(void)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const bool is_batch = *kinds[i].sent == 'B';
		const char *const replies[] = {
			is_batch ? ANSWERS(DONE "," DONE)
				 : SCRIPT_REPLY("200", "", "{\"Attributes\":{}}"),
			NULL};
		struct fixture f;
		struct item item = {0};
		if (!begin(&f, replies))
			return;
		dynamodb_use_batches(f.store, "clauses");
		add_waiting(&f, 0, "a", 0);
		bool ok = CHECK_INT(
			write_own(&f, &kinds[i].write, kinds[i].limits, &item), OUTCOME_OK);
		ok = check_sent(&f, kinds[i].sent) && ok;
		ok = CHECK_INT(
			     f.others[0].ticket.state, is_batch ? TICKET_ANSWERED : TICKET_WAITS) &&
		     ok;
		if (!ok)
			fprintf(stderr, "\tkind %zu: %s\n", i, f.aws.problem.text);
		item_clear(&item);
		end(&f);
	}
}

/* Nothing waits, or nobody has turned batches on. */
static void test_alone(void)
{
	static const char *const replies[] = {OK, OK, OK, NULL};
	struct fixture f;
	if (!begin(&f, replies))
		return;
	dynamodb_use_batches(f.store, "none");
	dynamodb_use_batches(f.store, "a later word");
	CHECK_INT(batches_of(&f)->dialect, DIALECT_NONE);
	CHECK_INT(write_own(&f, &update, NULL, NULL), OUTCOME_OK);
	dynamodb_use_batches(f.store, "lists");
	CHECK_INT(batches_of(&f)->dialect, DIALECT_LISTS);
	CHECK_INT(write_own(&f, &update, NULL, NULL), OUTCOME_OK);
	CHECK_INT(batches_of(&f)->locked.under_way, 0);
	/* A request of another is under way, and does not end: this one waits for 50 ms. */
	batches_of(&f)->locked.under_way = 1;
	CHECK_INT(write_own(&f, &update, NULL, NULL), OUTCOME_OK);
	CHECK_INT(batches_of(&f)->locked.under_way, 1);
	check_sent(&f, "U U U");
	end(&f);
}

/* --- whether a server may get batches */

#define STATE(more)                                                                                \
	SCRIPT_REPLY("200", "",                                                                    \
		"{\"Item\":{\"pk\":{\"S\":\"p\"},\"sk\":{\"S\":\"1\"},"                            \
		"\"state\":{\"S\":\"second\"},\"at\":{\"N\":\"1\"}" more "}}")
#define KEPT ",\"kept\":{\"S\":\"1\"}"
#define NO   ANSWERS(REFUSED)
#define YES  ANSWERS(DONE)

static const struct {
	const char *replies[12];
	enum outcome outcome;
	const char *how, *sent;
} probes[] = {
	/* Two requests insert, three update, and one reads what has come of that. */
	{{YES, ANSWERS(REFUSED "," DONE), NO, NO, YES, STATE(KEPT)}, OUTCOME_OK, "clauses",
		"B B B B B G"},
	/* Sent twice: what may be applied may also be refused. */
	{{NO, ANSWERS(REFUSED "," REFUSED), NO, NO, NO, STATE(KEPT)}, OUTCOME_OK, "clauses",
		"B B B B B G"},
	/* It reads the other form alone. */
	{{YES, ANSWERS(REFUSED "," DONE), ANSWERS(FAULT("ValidationError")), NO, NO, YES,
		 STATE(KEPT)},
		OUTCOME_OK, "lists", "B B B B B B G"},
	/* Conditions are ignored. */
	{{YES, ANSWERS(DONE "," DONE)}, OUTCOME_OK, "none", "B B"},
	{{YES, ANSWERS(REFUSED "," DONE), YES, YES}, OUTCOME_OK, "none", "B B B B"},
	{{YES, ANSWERS(REFUSED "," DONE), NO, YES, NO, YES}, OUTCOME_OK, "none", "B B B B B B"},
	/* It does something else than it says. */
	{{YES, ANSWERS(REFUSED "," DONE), NO, NO, YES, STATE(""), NO, NO, YES, STATE("")},
		OUTCOME_OK, "none", "B B B B B G B B B G"},
	{{YES, ANSWERS(REFUSED "," DONE), NO, NO, YES, STATE(KEPT ",\"gone\":{\"S\":\"1\"}"), NO,
		 NO, YES, STATE(KEPT)},
		OUTCOME_OK, "lists", "B B B B B G B B B G"},
	{{YES, ANSWERS(REFUSED "," DONE), NO, NO, YES, OK, NO, NO, YES, OK}, OUTCOME_OK, "none",
		"B B B B B G B B B G"},
	{{ERROR("400", "UnknownOperationException")}, OUTCOME_OK, "none", "B"},
	/* Nothing is known yet. */
	{{ERROR("400", "AccessDeniedException")}, OUTCOME_DENIED, "", "B"},
	{{YES, ANSWERS(REFUSED "," FAULT("AccessDenied"))}, OUTCOME_DENIED, "", "B B"},
	{{ANSWERS(DONE "," DONE)}, OUTCOME_LOST, "", "B"},
	{{YES, ANSWERS(REFUSED "," DONE), NO, NO, YES, ERROR("400", "AccessDeniedException")},
		OUTCOME_DENIED, "", "B B B B B G"},
};

static void test_probes(void)
{
	for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
		char how[STORE_BATCHES_MAX] = "";
		struct fixture f;
		if (!begin(&f, probes[i].replies))
			return;
		bool ok = CHECK_STRING(outcome_name(dynamodb_try_batches(
					       f.conn, "p", &no_limits, how, &f.aws.problem)),
			outcome_name(probes[i].outcome));
		ok = CHECK_STRING(how, probes[i].how) && ok;
		ok = check_sent(&f, probes[i].sent) && ok;
		if (!ok)
			fprintf(stderr, "\tprobe %zu: %s\n", i, f.aws.problem.text);
		end(&f);
	}
}

int main(void)
{
	item_set_string(&put_item, "state", "claimed");
	test_answers();
	test_batches();
	test_refused_without_an_item();
	test_next_write();
	test_begun();
	test_tickets_without_a_caller_do_not_lead();
	test_bytes_together();
	test_batches_keep_the_limits();
	test_how_many();
	test_given_up();
	test_kinds();
	test_alone();
	test_probes();
	item_clear(&put_item);
	return check_result();
}
