/* DynamoDB's requests as they are written, and replies that no server here gives. How real servers
 * answer is shown by tests/system/test_aws_layer.py. */
#include "../script_aws.h"
#include "base/clock.h"
#include "store/dynamodb.h"
#include "store/dynamodb_request.h"

struct fixture {
	struct script_aws aws;
	struct store *store;
	struct store_conn *conn;
	struct item item;
};

static const struct table table = {"t", "pk", "sk"};
static const struct item_key key = {"p\"", "s"};

static bool begin_table(
	struct fixture *f, const struct script_step *steps, size_t n, const struct table *of)
{
	*f = (struct fixture){0};
	return script_aws_start(&f->aws, steps, n) &&
	       CHECK_INT(store_dynamodb_open_table(
				 &f->aws.settings, f->aws.http, of, &f->store, &f->aws.problem),
		       0) &&
	       CHECK_INT(store_conn_new(f->store, &f->conn), 0);
}

static bool begin(struct fixture *f, const struct script_step *steps, size_t n)
{
	return begin_table(f, steps, n, &table);
}

static void end(struct fixture *f)
{
	store_conn_free(f->conn);
	store_close(f->store);
	item_clear(&f->item);
	script_aws_end(&f->aws);
}

/* The body of the i-th request, as JSON with one kind of quotes for easier reading. */
static void check_sent(struct fixture *f, size_t i, const char *operation, const char *want)
{
	const struct script_request *request = &f->aws.server.requests[i];
	char target[64];
	snprintf(target, sizeof target, "DynamoDB_20120810.%s", operation);
	CHECK(script_is_to(request, "POST /"));
	CHECK_STRING(script_sent(request, "x-amz-target"), target);
	CHECK_STRING(script_sent(request, "content-type"), "application/x-amz-json-1.0");
	char *got = strdup(request->body ? request->body : "");
	for (char *c = got; *c; c++)
		*c = *c == '"' ? '\'' : *c;
	CHECK_STRING(got, want);
	free(got);
}

#define NOT_MET                                                                                    \
	"{\"__type\":\"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException\","        \
	"\"message\":\"The conditional request failed\""
#define THROTTLED                                                                                  \
	SCRIPT_REPLY("400", "",                                                                    \
		"{\"__type\":\"x#ProvisionedThroughputExceededException\",\"message\":\"slow\"}")

static int skip(void *arg, const struct found_item *found)
{
	return 0;
}

/* A read whose reply is lost has failed. A write may have been applied. */
static void test_lost_replies(void)
{
	static const struct script_step none[] = {{"", .close = true}, {"", .close = true},
		{"", .close = true}, {"", .close = true}, {"", .close = true}, {"", .close = true},
		{"", .close = true}};
	static const struct change change = {"a", VALUE_STRING, "b", 0};
	const struct store_range all = {.pk = "p"};
	struct dynamodb_shape shape;
	struct fixture f;
	bool yes;
	if (!begin(&f, none, 7))
		return;
	const struct store_ops *ops = f.store->ops;
	struct problem *problem = &f.aws.problem;
	CHECK_INT(
		ops->get(f.conn, key, READ_CONSISTENT, NULL, &f.item, problem), OUTCOME_TRANSIENT);
	CHECK_INT(ops->get_many(f.conn, &key, 1, NULL, skip, NULL, problem), OUTCOME_TRANSIENT);
	CHECK_INT(ops->query(f.conn, &all, NULL, skip, NULL, &yes, problem), OUTCOME_TRANSIENT);
	CHECK_INT(ops->scan(f.conn, NULL, skip, NULL, problem), OUTCOME_TRANSIENT);
	CHECK_INT(dynamodb_describe_table(f.conn, NULL, &shape, problem), OUTCOME_TRANSIENT);
	CHECK_INT(dynamodb_describe_ttl(f.conn, "a", NULL, &yes, problem), OUTCOME_TRANSIENT);
	CHECK_INT(ops->write(f.conn, key, &(struct item_write){.changes = &change, .n_changes = 1},
			  NULL, NULL, problem),
		OUTCOME_LOST);
	script_stop(&f.aws.server);
	CHECK_INT(f.aws.server.n_requests, 7);
	end(&f);
}

/* The condition that an update becomes: of an item that is there, of one that may be made, and of
 * one that must be. */
static const struct condition free_row = {"free", CONDITION_EQUALS, VALUE_STRING, "1"},
			      at_most = {"at", CONDITION_AT_MOST, VALUE_NUMBER, "5"},
			      there = {"c", CONDITION_PRESENT, VALUE_STRING, NULL};
static const struct change set_s = {"s2", VALUE_STRING, "x", 0};

static const struct {
	struct item_write write;
	const char *condition; /* the text of the expression; NULL: there is none */
	const char *update;
} expressions[] = {
	{{.changes = &set_s, .n_changes = 1}, "attribute_exists(#a2)", "SET #a0 = :a1"},
	{{.changes = &set_s, .n_changes = 1, .or_absent = true}, "attribute_not_exists(#a2)",
		"SET #a0 = :a1"},
	{{.changes = &set_s,
		 .n_changes = 1,
		 .conditions = &free_row,
		 .n_conditions = 1,
		 .or_absent = true},
		"attribute_not_exists(#a2) OR (#a3 = :a4)", "SET #a0 = :a1"},
	{{.changes = &set_s, .n_changes = 1, .conditions = &at_most, .n_conditions = 1},
		"attribute_exists(#a2) AND #a3 <= :a4", "SET #a0 = :a1"},
	{{.changes = &set_s, .n_changes = 1, .conditions = &there, .n_conditions = 1},
		"attribute_exists(#a2) AND attribute_exists(#a3)", "SET #a0 = :a1"},
	{{.increments = "n", .or_absent = true}, NULL, " ADD #a0 :a1"},
	{{.increments = "n"}, "attribute_exists(#a2)", " ADD #a0 :a1"},
	{{.changes = &set_s, .n_changes = 1, .increments = "n", .or_absent = true},
		"attribute_not_exists(#a4)", "SET #a0 = :a1 ADD #a2 :a3"},
};

static void test_expressions(void)
{
	for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
		static const struct script_step step = {
			SCRIPT_REPLY("200", "", "{\"Attributes\":{}}"), .close = true};
		char condition[200], update[200];
		struct fixture f;
		struct item present = {0};
		if (!begin(&f, &step, 1))
			return;
		CHECK_INT(dynamodb_write(f.conn, key, &expressions[i].write, NULL, &present,
				  &f.aws.problem),
			OUTCOME_OK);
		script_stop(&f.aws.server);
		const char *body = f.aws.server.requests[0].body;
		snprintf(condition, sizeof condition, "\"ConditionExpression\":\"%s\"",
			expressions[i].condition ? expressions[i].condition : "");
		snprintf(update, sizeof update, "\"UpdateExpression\":\"%s\"",
			expressions[i].update);
		if (!CHECK(expressions[i].condition ? strstr(body, condition) != NULL
						    : !strstr(body, "ConditionExpression")) ||
			!CHECK(strstr(body, update) != NULL))
			fprintf(stderr, "\texpression %zu: %s\n", i, body);
		item_clear(&present);
		end(&f);
	}
}

static void test_writes(void)
{
	static const char ok[] = SCRIPT_REPLY("200", "", "{}");
	const struct script_step steps[] = {
		{ok, .close = true}, {ok, .close = true}, {ok, .close = true}, {ok, .close = true}};
	struct fixture f;
	if (!begin(&f, steps, 4))
		return;
	item_set_string(&f.item, "pk", "stale");
	item_set_string(&f.item, "state", "claimed");
	item_set_number(&f.item, "size", 7);
	const struct condition absent = {"pk", CONDITION_ABSENT};
	const struct condition both[] = {{"state", CONDITION_EQUALS, VALUE_STRING, "claimed"},
		{"size", CONDITION_EQUALS, VALUE_NUMBER, "7"}};
	const struct change changes[] = {{"upload"}, {"state", VALUE_STRING, "done"}, {"error"},
		{"size", VALUE_NUMBER, "8"}};
	struct item present = {0};
	CHECK_INT(dynamodb_write(f.conn, key,
			  &(struct item_write){
				  .item = &f.item, .conditions = &absent, .n_conditions = 1},
			  NULL, &present, &f.aws.problem),
		OUTCOME_OK);
	CHECK_INT(dynamodb_write(f.conn, key, &(struct item_write){.item = &present}, NULL, NULL,
			  &f.aws.problem),
		OUTCOME_OK);
	CHECK_INT(dynamodb_write(f.conn, key,
			  &(struct item_write){.changes = changes,
				  .n_changes = 4,
				  .conditions = both,
				  .n_conditions = 2},
			  NULL, &present, &f.aws.problem),
		OUTCOME_OK);
	CHECK_INT(dynamodb_write(f.conn, key,
			  &(struct item_write){
				  .removes = true, .conditions = both, .n_conditions = 1},
			  NULL, &present, &f.aws.problem),
		OUTCOME_OK);
	script_stop(&f.aws.server);
	check_sent(&f, 0, "PutItem",
		"{'TableName':'t','Item':{'pk':{'S':'p\\''},'sk':{'S':'s'},'state':{'S':'claimed'},"
		"'size':{'N':'7'}},'ConditionExpression':'attribute_not_exists(#a0)',"
		"'ReturnValuesOnConditionCheckFailure':'ALL_OLD',"
		"'ExpressionAttributeNames':{'#a0':'pk'}}");
	check_sent(&f, 1, "PutItem", "{'TableName':'t','Item':{'pk':{'S':'p\\''},'sk':{'S':'s'}}}");
	check_sent(&f, 2, "UpdateItem",
		"{'TableName':'t','Key':{'pk':{'S':'p\\''},'sk':{'S':'s'}},"
		"'UpdateExpression':'SET #a0 = :a1, #a2 = :a3 REMOVE #a4, #a5',"
		"'ConditionExpression':'attribute_exists(#a6) AND #a7 = :a8 AND #a9 = :b0',"
		"'ReturnValuesOnConditionCheckFailure':'ALL_OLD',"
		"'ExpressionAttributeNames':{'#a0':'state','#a2':'size','#a4':'upload',"
		"'#a5':'error','#a6':'pk','#a7':'state','#a9':'size'},"
		"'ExpressionAttributeValues':{':a1':{'S':'done'},':a3':{'N':'8'},"
		"':a8':{'S':'claimed'},':b0':{'N':'7'}}}");
	check_sent(&f, 3, "DeleteItem",
		"{'TableName':'t','Key':{'pk':{'S':'p\\''},'sk':{'S':'s'}},"
		"'ConditionExpression':'#a0 = :a1',"
		"'ReturnValuesOnConditionCheckFailure':'ALL_OLD',"
		"'ExpressionAttributeNames':{'#a0':'state'},"
		"'ExpressionAttributeValues':{':a1':{'S':'claimed'}}}");
	end(&f);
}

static enum outcome put_absent(struct fixture *f, struct item *ret)
{
	const struct condition absent = {"pk", CONDITION_ABSENT};
	return dynamodb_write(f->conn, key,
		&(struct item_write){.item = &f->item, .conditions = &absent, .n_conditions = 1},
		NULL, ret, &f->aws.problem);
}

/* A refusal without the item is followed by a consistent read; one that carries it is not. */
static void test_refusals(void)
{
	const struct script_step steps[] = {
		{SCRIPT_REPLY("400", "", NOT_MET ",\"Item\":{\"by\":{\"S\":\"a\"}}}"),
			.close = true},
		{SCRIPT_REPLY("400", "", NOT_MET "}"), .close = true},
		{SCRIPT_REPLY("200", "", "{\"Item\":{\"by\":{\"S\":\"b\"}}}"), .close = true},
		{SCRIPT_REPLY("400", "", NOT_MET "}"), .close = true},
		{SCRIPT_REPLY("200", "", "{}"), .close = true},
		{SCRIPT_REPLY("400", "", NOT_MET "}"), .close = true}, {THROTTLED, .close = true},
		{SCRIPT_REPLY("400", "", NOT_MET ",\"Item\":{\"by\":1}}"), .close = true}};
	struct fixture f;
	struct item present = {0};
	if (!begin(&f, steps, 8))
		return;
	CHECK_INT(put_absent(&f, &present), OUTCOME_REFUSED);
	CHECK_STRING(item_string(&present, "by"), "a");
	CHECK_STRING(f.aws.problem.code, "ConditionalCheckFailedException");
	item_clear(&present);
	CHECK_INT(put_absent(&f, &present), OUTCOME_REFUSED);
	CHECK_STRING(item_string(&present, "by"), "b");
	CHECK_STRING(f.aws.problem.code, "ConditionalCheckFailedException");
	item_clear(&present);
	CHECK_INT(put_absent(&f, &present), OUTCOME_REFUSED);
	CHECK(item_is_empty(&present));
	/* The refusal may hide an earlier try of ours: never "not applied". */
	CHECK_INT(put_absent(&f, &present), OUTCOME_TRANSIENT);
	CHECK(item_is_empty(&present));
	CHECK_INT(put_absent(&f, &present), OUTCOME_LOST);
	CHECK(item_is_empty(&present));
	script_stop(&f.aws.server);
	CHECK_INT(f.aws.server.n_requests, 8);
	check_sent(&f, 2, "GetItem",
		"{'TableName':'t','Key':{'pk':{'S':'p\\''},'sk':{'S':'s'}},'ConsistentRead':true}");
	end(&f);
}

/* {} has the CRC-32 2745614147. */
static void test_checksum_of_replies(void)
{
	const struct script_step steps[] = {
		{SCRIPT_REPLY("200", "x-amz-crc32: 2745614147\r\n", "{}"), .close = true},
		{SCRIPT_REPLY("200", "x-amz-crc32: 2745614148\r\n", "{}"), .close = true},
		{SCRIPT_REPLY("200", "x-amz-crc32: 2745614148\r\n", "{}"), .close = true},
		{SCRIPT_REPLY("400", "x-amz-crc32: 1\r\n", NOT_MET "}"), .close = true},
		{SCRIPT_REPLY("200", "", "<html>"), .close = true},
		{SCRIPT_REPLY("200", "", "{\"cut"), .close = true}};
	struct fixture f;
	struct item present = {0};
	if (!begin(&f, steps, 6))
		return;
	CHECK_INT(put_absent(&f, &present), OUTCOME_OK);
	f.aws.settings.attempts = 2;
	CHECK_INT(put_absent(&f, &present), OUTCOME_LOST);
	f.aws.settings.attempts = 1;
	for (int i = 0; i < 3; i++)
		CHECK_INT(put_absent(&f, &present), OUTCOME_LOST);
	script_stop(&f.aws.server);
	CHECK_INT(f.aws.server.n_requests, 6);
	end(&f);
}

static int count(void *arg, const struct found_item *found)
{
	++*(unsigned *)arg;
	return 0;
}

static const struct item_key keys[] = {{"p", "a"}, {"p", "b"}};

/* Unprocessed keys are sent again just as they came. */
static void test_unprocessed_keys(void)
{
	const struct script_step steps[] = {
		{SCRIPT_REPLY("200", "",
			 "{\"Responses\":{\"t\":[{\"pk\":{\"S\":\"p\"},\"sk\":{\"S\":\"a\"}}]},"
			 "\"UnprocessedKeys\":{\"t\":{\"Keys\":[{\"pk\":{\"S\":\"p\"},"
			 "\"sk\":{\"S\":\"b\"}}]}}}"),
			.close = true},
		{SCRIPT_REPLY("200", "",
			 "{\"Responses\":{\"t\":[{\"pk\":{\"S\":\"p\"},\"sk\":{\"S\":\"b\"}}]},"
			 "\"UnprocessedKeys\":{}}"),
			.close = true},
		{SCRIPT_REPLY("200", "",
			 "{\"Responses\":{\"t\":[]},\"UnprocessedKeys\":{\"t\":{\"Keys\":[]}}}"),
			.close = true}};
	struct fixture f;
	unsigned found = 0;
	if (!begin(&f, steps, 3))
		return;
	CHECK_INT(
		f.conn->store->ops->get_many(f.conn, keys, 2, NULL, count, &found, &f.aws.problem),
		OUTCOME_OK);
	CHECK_INT(found, 2);
	/* A server that answers no key is waited for as after throttling, within the deadline. */
	const struct call_limits limits = {.deadline_ns = clock_boot_ns() + 500 * NS_PER_MS};
	enum outcome outcome = f.conn->store->ops->get_many(
		f.conn, keys, 2, &limits, count, &found, &f.aws.problem);
	CHECK_INT(outcome, OUTCOME_ABANDONED);
	CHECK_INT(found, 2);
	script_stop(&f.aws.server);
	check_sent(&f, 0, "BatchGetItem",
		"{'RequestItems':{'t':{'Keys':[{'pk':{'S':'p'},'sk':{'S':'a'}},"
		"{'pk':{'S':'p'},'sk':{'S':'b'}}]}}}");
	check_sent(&f, 1, "BatchGetItem",
		"{'RequestItems':{'t':{'Keys':[{'pk':{'S':'p'},'sk':{'S':'b'}}]}}}");
	end(&f);
}

/* No item, and n keys unprocessed. */
static void unprocessed_reply(char *ret, size_t size, size_t n)
{
	size_t at = (size_t)snprintf(ret, size, SCRIPT_REPLY("200", "", "%s"),
		"{\"Responses\":{\"t\":[]},\"UnprocessedKeys\":{\"t\":{\"Keys\":[");
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(ret + at, size - at,
			"%s{\"pk\":{\"S\":\"p\"},\"sk\":{\"S\":\"%zu\"}}", i ? "," : "", i);
	snprintf(ret + at, size - at, "]}}}");
}

/* Keys without items are progress, too: a table that answers some of them is not waited for. */
static void test_unprocessed_keys_without_items(void)
{
	struct script_step steps[14];
	char replies[13][1000];
	struct item_key absent[14];
	for (size_t i = 0; i < 14; i++)
		absent[i] = (struct item_key){"p", "x"};
	for (size_t i = 0; i < 13; i++) {
		unprocessed_reply(replies[i], sizeof replies[i], 13 - i);
		steps[i] = (struct script_step){replies[i], .close = true};
	}
	steps[13] = (struct script_step){
		SCRIPT_REPLY("200", "", "{\"Responses\":{},\"UnprocessedKeys\":{}}"),
		.close = true};
	struct fixture f;
	unsigned found = 0;
	if (!begin(&f, steps, 14))
		return;
	CHECK_INT(f.conn->store->ops->get_many(
			  f.conn, absent, 14, NULL, count, &found, &f.aws.problem),
		OUTCOME_OK);
	CHECK_INT(found, 0);
	script_stop(&f.aws.server);
	CHECK_INT(f.aws.server.n_requests, 14);
	end(&f);
}

/* A range in which no key can be is not asked for, since DynamoDB refuses it. */
static void test_empty_ranges(void)
{
	static const struct {
		const char *from, *to;
		bool after, is_empty;
	} rows[] = {
		{"b", "a", false, true},
		{"b", "a", true, true},
		{"a", "a", true, true},
		{"a", "a", false, false},
		{"a", "b", true, false},
		{NULL, "", false, true},
		{"", "", true, true},
		{NULL, "a", false, false},
		{"a", NULL, true, false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct script_step steps[] = {
			{SCRIPT_REPLY("200", "", "{\"Items\":[]}"), .close = true}};
		const struct store_range range = {
			.pk = "p", .from = rows[i].from, .to = rows[i].to, .after = rows[i].after};
		struct fixture f;
		unsigned found = 0;
		bool more = true;
		if (!begin(&f, steps, 1))
			return;
		CHECK_INT(f.conn->store->ops->query(
				  f.conn, &range, NULL, count, &found, &more, &f.aws.problem),
			OUTCOME_OK);
		script_stop(&f.aws.server);
		if (!CHECK_INT(f.aws.server.n_requests, !rows[i].is_empty) || !CHECK(!more))
			fprintf(stderr, "\trow %zu\n", i);
		end(&f);
	}
}

/* Every reply holds the same two items, or does not read as a page. */
static void test_pages_however_written(void)
{
#define ONE "{\"pk\":{\"S\":\"p\"},\"sk\":{\"S\":\"\\\"Items\\\":[\"}}"
#define TWO "{\"pk\":{\"S\":\"p\"},\"sk\":{\"S\":\"y\"},\"Items\":{\"S\":\"z\"}}"
	static const struct {
		const char *reply;
		enum outcome outcome;
		unsigned items;
		bool more;
	} rows[] = {
		{SCRIPT_REPLY("200", "", "{\"Items\":[" ONE "," TWO "]}"), OUTCOME_OK, 2, false},
		{SCRIPT_REPLY("200", "",
			 "{\"Count\":2,\"LastEvaluatedKey\":{\"Items\":{\"S\":\"Items\"}},"
			 "\"Items\":[" ONE "," TWO "],\"ScannedCount\":2}"),
			OUTCOME_OK, 2, true},
		{SCRIPT_REPLY("200", "", "{ \"Items\" : [ " ONE " ,\n" TWO " ]\n, \"x\" : [] }"),
			OUTCOME_OK, 2, false},
		{SCRIPT_REPLY("200", "", "{\"Count\":0}"), OUTCOME_OK, 0, false},
		{SCRIPT_REPLY("200", "", "{\"Items\":[ ]}"), OUTCOME_OK, 0, false},
		{SCRIPT_REPLY("200", "", "{\"Items\":[" ONE ",]}"), OUTCOME_LOST, 1, false},
		{SCRIPT_REPLY("200", "", "{\"Items\":[" ONE " " TWO "]}"), OUTCOME_LOST, 1, false},
		{SCRIPT_REPLY("200", "", "{\"Items\":[" ONE "]"), OUTCOME_LOST, 1, false},
		{SCRIPT_REPLY("200", "", "{\"Items\":[" ONE "]}}"), OUTCOME_LOST, 1, false},
		{SCRIPT_REPLY("200", "", "{\"Items\":[" ONE), OUTCOME_LOST, 1, false},
		{SCRIPT_REPLY("200", "", "{\"Items\":["), OUTCOME_LOST, 0, false},
	};
	enum { ROWS = sizeof rows / sizeof *rows };
	const struct store_range all = {.pk = "p"};
	struct script_step steps[ROWS];
	struct fixture f;
	for (size_t i = 0; i < ROWS; i++)
		steps[i] = (struct script_step){rows[i].reply, .close = true};
	if (!begin(&f, steps, ROWS))
		return;
	for (size_t i = 0; i < ROWS; i++) {
		unsigned found = 0;
		bool more = false;
		if (!CHECK_INT(f.conn->store->ops->query(
				       f.conn, &all, NULL, count, &found, &more, &f.aws.problem),
			    rows[i].outcome) ||
			!CHECK_INT(found, rows[i].items) || !CHECK_INT(more, rows[i].more))
			fprintf(stderr, "\tof reply %zu\n", i);
	}
	script_stop(&f.aws.server);
	end(&f);
}

static void test_query(void)
{
	const struct script_step steps[] = {
		{SCRIPT_REPLY("200", "",
			 "{\"Items\":[],\"LastEvaluatedKey\":{\"pk\":{\"S\":\"p\"},"
			 "\"sk\":{\"S\":\"b\"}}}"),
			.close = true},
		{SCRIPT_REPLY("200", "",
			 "{\"Items\":[{\"pk\":{\"S\":\"p\"},\"sk\":{\"S\":\"c\"}}],"
			 "\"LastEvaluatedKey\":{\"pk\":{\"S\":\"p\"},\"sk\":{\"S\":\"c\"}}}"),
			.close = true},
		{SCRIPT_REPLY(
			 "200", "", "{\"Items\":[{\"pk\":{\"S\":\"p\"},\"sk\":{\"N\":\"1\"}}]}"),
			.close = true}};
	struct fixture f;
	unsigned found = 0;
	bool more = false;
	const struct store_range range = {.pk = "p",
		.from = "a",
		.after = true,
		.to = "x",
		.max_items = 1,
		.consistent = true};
	const struct store_range all = {.pk = "p"};
	if (!begin(&f, steps, 3))
		return;
	CHECK_INT(f.conn->store->ops->query(
			  f.conn, &range, NULL, count, &found, &more, &f.aws.problem),
		OUTCOME_OK);
	CHECK_INT(found, 1);
	CHECK(more);
	CHECK_INT(
		f.conn->store->ops->query(f.conn, &all, NULL, count, &found, &more, &f.aws.problem),
		OUTCOME_SETUP);
	CHECK_STRING(f.aws.problem.text,
		"table t: its items have other keys than pk and sk: check the name of the table");
	CHECK_INT(found, 1);
	script_stop(&f.aws.server);
#define RANGE(start)                                                                               \
	"{'TableName':'t','KeyConditionExpression':'#a0 = :a1 AND #a2 <= :a3',"                    \
	"'ConsistentRead':true,'Limit':1,"                                                         \
	"'ExclusiveStartKey':{'pk':{'S':'p'},'sk':{'S':'" start "'}},"                             \
	"'ExpressionAttributeNames':{'#a0':'pk','#a2':'sk'},"                                      \
	"'ExpressionAttributeValues':{':a1':{'S':'p'},':a3':{'S':'x'}}}"
	check_sent(&f, 0, "Query", RANGE("a"));
	check_sent(&f, 1, "Query", RANGE("b"));
	check_sent(&f, 2, "Query",
		"{'TableName':'t','KeyConditionExpression':'#a0 = :a1','ConsistentRead':false,"
		"'ExpressionAttributeNames':{'#a0':'pk'},"
		"'ExpressionAttributeValues':{':a1':{'S':'p'}}}");
	end(&f);
}

static void test_tables(void)
{
	const struct script_step steps[] = {
		{SCRIPT_REPLY("400", "",
			 "{\"__type\":\"x#ResourceInUseException\",\"Message\":\"Table exists\"}"),
			.close = true},
		{SCRIPT_REPLY("200", "", "{\"Table\":{}}"), .close = true},
		{SCRIPT_REPLY("400", "",
			 "{\"__type\":\"x#ResourceNotFoundException\",\"message\":\"none\"}"),
			.close = true},
		{SCRIPT_REPLY("400", "",
			 "{\"__type\":\"com.amazon.coral.validate#ValidationException\","
			 "\"message\":\"TimeToLive is already enabled\"}"),
			.close = true},
		{SCRIPT_REPLY("400", "",
			 "{\"__type\":\"com.amazon.coral.validate#ValidationException\",\"message\":"
			 "\"TimeToLive is active on a different AttributeName\"}"),
			.close = true}};
	struct fixture f;
	struct dynamodb_shape shape = {0};
	const struct table other = {"t", "k\"", NULL};
	if (!begin_table(&f, steps, 5, &other))
		return;
	CHECK_INT(dynamodb_create_table(f.conn, &(struct table_terms){0}, NULL, &f.aws.problem),
		OUTCOME_REFUSED);
	CHECK_INT(dynamodb_describe_table(f.conn, NULL, &shape, &f.aws.problem), OUTCOME_LOST);
	CHECK_INT(dynamodb_describe_table(f.conn, NULL, &shape, &f.aws.problem), OUTCOME_ABSENT);
	CHECK_INT(dynamodb_enable_ttl(f.conn, "expires", NULL, &f.aws.problem), OUTCOME_OK);
	CHECK_INT(dynamodb_enable_ttl(f.conn, "expires", NULL, &f.aws.problem), OUTCOME_INVALID);
	script_stop(&f.aws.server);
	check_sent(&f, 0, "CreateTable",
		"{'TableName':'t','BillingMode':'PAY_PER_REQUEST',"
		"'AttributeDefinitions':[{'AttributeName':'k\\'','AttributeType':'S'}],"
		"'KeySchema':[{'AttributeName':'k\\'','KeyType':'HASH'}]}");
	check_sent(&f, 1, "DescribeTable", "{'TableName':'t'}");
	check_sent(&f, 3, "UpdateTimeToLive",
		"{'TableName':'t','TimeToLiveSpecification':{'Enabled':true,"
		"'AttributeName':'expires'}}");
	end(&f);
}

/* The code of an error in each place and form that AWS's services have for it. */
static void test_codes(void)
{
	static const char *const replies[] = {
		SCRIPT_REPLY("400", "", "{\"__type\":\"ResourceNotFoundException\"}"),
		SCRIPT_REPLY(
			"400", "", "{\"__type\":\"a.b#ResourceNotFoundException:http://x/y#z\"}"),
		SCRIPT_REPLY("400", "", "{\"code\":\"a.b#ResourceNotFoundException\"}"),
		SCRIPT_REPLY("400", "X-Amzn-Errortype: ResourceNotFoundException:http://x/y\r\n",
			"{\"__type\":\"ValidationException\"}"),
		SCRIPT_REPLY("400", "X-Amzn-Errortype: a.b#ResourceNotFoundException\r\n", ""),
	};
	enum { N = sizeof replies / sizeof *replies };
	struct script_step steps[N];
	struct dynamodb_shape shape = {0};
	struct fixture f;
	for (size_t i = 0; i < N; i++)
		steps[i] = (struct script_step){replies[i], .close = true};
	if (!begin(&f, steps, N))
		return;
	for (size_t i = 0; i < N; i++)
		if (!CHECK_INT(dynamodb_describe_table(f.conn, NULL, &shape, &f.aws.problem),
			    OUTCOME_ABSENT) ||
			!CHECK_STRING(f.aws.problem.code, "ResourceNotFoundException"))
			fprintf(stderr, "\treply %zu\n", i);
	script_stop(&f.aws.server);
	end(&f);
}

int main(void)
{
	test_codes();
	test_writes();
	test_expressions();
	test_lost_replies();
	test_refusals();
	test_checksum_of_replies();
	test_unprocessed_keys();
	test_unprocessed_keys_without_items();
	test_empty_ranges();
	test_query();
	test_pages_however_written();
	test_tables();
	return check_result();
}
