/* Statements as they are written, and what each answer of a batch means. How real servers answer is
 * shown by tests/system/test_batches.py. */
#include "../script_aws.h"
#include "store/dynamodb_request.h"

static const struct table table = {"t-1.x_y", "pk", "sk"};
static const struct item_key key = {"p\"", "s'"};

/* A statement with one kind of quotes for easier reading. */
static void check_statement(struct text *statement, const char *want)
{
	for (char *c = statement->data; c && *c; c++)
		*c = *c == '"' ? '~' : *c;
	CHECK_STRING(text_string(statement), want);
	text_clear(statement);
}

static void test_insert(void)
{
	struct text text = TEXT(1 << 20);
	struct item item = {0};
	item_set_string(&item, "pk", "stale");
	item_set_string(&item, "state", "it's \"claimed\" \\");
	item_set_number(&item, "at", 7);
	item_set(&item, "by", VALUE_BYTES, "\0\1", 2);
	statement_insert(&text, &table, key, &item);
	check_statement(&text,
		"{~Statement~:~INSERT INTO \\~t-1.x_y\\~ VALUE {'pk':?,'sk':?,'state':?,'at':?,'by':?}~,"
		"~Parameters~:[{~S~:~p\\~~},{~S~:~s'~},{~S~:~it's \\~claimed\\~ \\\\~},{~N~:~7~},"
		"{~B~:~AAE=~}]}");
	const struct table lock = {"t", "key"};
	item_clear(&item);
	statement_insert(&text, &lock, (struct item_key){"k"}, &item);
	check_statement(&text,
		"{~Statement~:~INSERT INTO \\~t\\~ VALUE {'key':?}~,~Parameters~:[{~S~:~k~}]}");
}

static const struct change changes[] = {
	{"upload"}, {"state", VALUE_STRING, "done"}, {"part"}, {"size", VALUE_NUMBER, "8"}};
static const struct condition conditions[] = {{"state", CONDITION_EQUALS, VALUE_STRING, "claimed"},
	{"upload", CONDITION_ABSENT}, {"at", CONDITION_EQUALS, VALUE_NUMBER, "7"}};
#define VALUES                                                                                     \
	"~,~Parameters~:[{~S~:~done~},{~N~:~8~},{~S~:~p\\~~},{~S~:~s'~},{~S~:~claimed~},{~N~:~7~}]}"
#define WHERE                                                                                      \
	" WHERE \\~pk\\~=? AND \\~sk\\~=? AND \\~state\\~=? AND \\~upload\\~ IS MISSING AND "      \
	"\\~at\\~=?"

static void test_update(void)
{
	const struct item_write update = {NULL, changes, 4, conditions, 3};
	struct text text = TEXT(1 << 20);
	statement_update(&text, DIALECT_CLAUSES, &table, key, &update);
	check_statement(&text,
		"{~Statement~:~UPDATE \\~t-1.x_y\\~ SET \\~state\\~=? SET \\~size\\~=? REMOVE "
		"\\~upload\\~ REMOVE \\~part\\~" WHERE VALUES);
	statement_update(&text, DIALECT_LISTS, &table, key, &update);
	check_statement(&text,
		"{~Statement~:~UPDATE \\~t-1.x_y\\~ SET \\~state\\~=?,\\~size\\~=? REMOVE "
		"\\~upload\\~,\\~part\\~" WHERE VALUES);
}

static const struct {
	const char *response;
	enum outcome outcome;
} answers[] = {
	{"{\"TableName\":\"t\"}", OUTCOME_OK},
	{"{}", OUTCOME_OK},
	{"{\"TableName\":\"t\",\"Item\":{}}", OUTCOME_OK},
	{"{\"Error\":{\"Code\":\"DuplicateItem\",\"Message\":\"x\"},\"TableName\":\"t\"}",
		OUTCOME_REFUSED},
	{"{\"Error\":{\"Code\":\"ConditionalCheckFailed\"}}", OUTCOME_REFUSED},
	{"{\"Error\":{\"Code\":\"ThrottlingError\"}}", OUTCOME_THROTTLED},
	{"{\"Error\":{\"Code\":\"ProvisionedThroughputExceeded\"}}", OUTCOME_THROTTLED},
	{"{\"Error\":{\"Code\":\"RequestLimitExceeded\"}}", OUTCOME_THROTTLED},
	{"{\"Error\":{\"Code\":\"TransactionConflict\"}}", OUTCOME_THROTTLED},
	{"{\"Error\":{\"Code\":\"InternalServerError\"}}", OUTCOME_TRANSIENT},
	{"{\"Error\":{\"Code\":\"AccessDenied\"}}", OUTCOME_DENIED},
	{"{\"Error\":{\"Code\":\"ValidationError\"}}", OUTCOME_INVALID},
	{"{\"Error\":{\"Code\":\"ItemCollectionSizeLimitExceeded\"}}", OUTCOME_INVALID},
	{"{\"Error\":{\"Code\":\"ResourceNotFound\"}}", OUTCOME_SETUP},
	{"{\"Error\":{\"Code\":\"NobodyKnows\"}}", OUTCOME_INVALID},
	{"{\"Error\":{\"Message\":\"x\"}}", OUTCOME_LOST},
	{"{\"Error\":null}", OUTCOME_LOST},
	{"{\"Errxr\":{\"Code\":\"DuplicateItem\"}}", OUTCOME_LOST},
	{"null", OUTCOME_LOST},
	{"\"ok\"", OUTCOME_LOST},
};
#define ANSWERS (sizeof answers / sizeof *answers)

/* Sends n statements, is answered with this list of responses. */
static enum outcome play(const char *reply, size_t n, enum outcome ret[static STATEMENTS_MAX])
{
	const struct script_step step = {reply, .close = true};
	struct script_aws aws;
	struct store *store = NULL;
	struct store_conn *conn = NULL;
	struct text statement = TEXT(100);
	struct problem problem;
	enum outcome outcome = OUTCOME_LOCAL;
	text_add(&statement, "{\"Statement\":\"…\"}");
	if (script_aws_start(&aws, &step, 1) &&
		CHECK_INT(store_dynamodb_open(&aws.settings, aws.http, "t", &store, &problem), 0) &&
		CHECK_INT(store_conn_new(store, &conn), 0)) {
		struct dynamodb_conn *db = dynamodb_conn_of(conn);
		dynamodb_batch_begin(db);
		for (size_t i = 0; i < n; i++)
			dynamodb_batch_add(db, &statement);
		outcome = dynamodb_batch_execute(db, n, NULL, ret, &problem);
		script_stop(&aws.server);
		CHECK_STRING(script_sent(&aws.server.requests[0], "x-amz-target"),
			"DynamoDB_20120810.BatchExecuteStatement");
		if (n == 2)
			CHECK_STRING(aws.server.requests[0].body,
				"{\"Statements\":[{\"Statement\":\"…\"},{\"Statement\":\"…\"}]}");
	}
	store_conn_free(conn);
	store_close(store);
	script_aws_end(&aws);
	text_clear(&statement);
	return outcome;
}

static void test_each_has_its_answer(void)
{
	enum outcome got[STATEMENTS_MAX];
	char reply[4000];
	size_t at =
		(size_t)snprintf(reply, sizeof reply, SCRIPT_REPLY("200", "", "{\"Responses\":["));
	for (size_t i = 0; i < ANSWERS; i++)
		at += (size_t)snprintf(
			reply + at, sizeof reply - at, "%s%s", i ? "," : "", answers[i].response);
	snprintf(reply + at, sizeof reply - at, "]}");
	CHECK_INT(play(reply, ANSWERS, got), OUTCOME_OK);
	for (size_t i = 0; i < ANSWERS; i++)
		if (!CHECK_STRING(outcome_name(got[i]), outcome_name(answers[i].outcome)))
			fprintf(stderr, "\tof %s\n", answers[i].response);
}

/* Answers that are too few or too many belong to nobody. */
static void test_a_list_of_another_length(void)
{
	static const char *const replies[] = {
		SCRIPT_REPLY("200", "", "{\"Responses\":[{\"TableName\":\"t\"}]}"),
		SCRIPT_REPLY("200", "", "{\"Responses\":[{},{},{}]}"),
		SCRIPT_REPLY("200", "", "{\"Responses\":{}}"),
		SCRIPT_REPLY("200", "", "{}"),
	};
	for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
		enum outcome got[STATEMENTS_MAX] = {OUTCOME_OK};
		CHECK_INT(play(replies[i], 2, got), OUTCOME_OK);
		CHECK(got[0] == OUTCOME_LOST && got[1] == OUTCOME_LOST);
	}
}

static void test_a_request_that_fails_whole(void)
{
	static const struct {
		const char *status, *code;
		enum outcome outcome;
	} cases[] = {
		{"400", "ThrottlingException", OUTCOME_THROTTLED},
		{"400", "AccessDeniedException", OUTCOME_DENIED},
		{"400", "UnknownOperationException", OUTCOME_UNSUPPORTED},
		{"400", "ValidationException", OUTCOME_INVALID},
		{"500", "InternalServerError", OUTCOME_TRANSIENT},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		enum outcome got[STATEMENTS_MAX] = {OUTCOME_LOCAL};
		char reply[300];
		snprintf(reply, sizeof reply,
			"HTTP/1.1 %s X\r\nConnection: close\r\n\r\n{\"__type\":\"x#%s\"}",
			cases[i].status, cases[i].code);
		CHECK_INT(play(reply, 1, got), cases[i].outcome);
		CHECK_INT(got[0], OUTCOME_LOCAL);
	}
}

int main(void)
{
	test_insert();
	test_update();
	test_each_has_its_answer();
	test_a_list_of_another_length();
	test_a_request_that_fails_whole();
	return check_result();
}
