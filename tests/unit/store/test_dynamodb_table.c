/* Tables: which have the keys that are needed, which are split among Regions that do not exclude
 * each other, and how one is made, also by several at once. */
#include "../script_aws.h"
#include "store/dynamodb.h"
#include <stdlib.h>

#define ERROR(status, code)                                                                        \
	SCRIPT_REPLY(status, "", "{\"__type\":\"x#" code "\",\"message\":\"m\"}")
#define KEYS                                                                                       \
	"\"KeySchema\":[{\"AttributeName\":\"sk\",\"KeyType\":\"RANGE\"},"                         \
	"{\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"}],"                                        \
	"\"AttributeDefinitions\":[{\"AttributeName\":\"other\",\"AttributeType\":\"B\"},"         \
	"{\"AttributeName\":\"pk\",\"AttributeType\":\"S\"},"                                      \
	"{\"AttributeName\":\"sk\",\"AttributeType\":\"S\"}]"
#define TABLE(status, keys, more)                                                                  \
	SCRIPT_REPLY("200", "", "{\"Table\":{\"TableStatus\":\"" status "\"," keys more "}}")
#define ACTIVE TABLE("ACTIVE", KEYS, "")
#define ABSENT ERROR("400", "ResourceNotFoundException")
#define OK     SCRIPT_REPLY("200", "", "{}")

static const struct table both = {"t", "pk", "sk", false};

struct fixture {
	struct script_aws aws;
	struct store *store;
	struct store_conn *conn;
};

static bool begin(struct fixture *f, const char *const *replies)
{
	*f = (struct fixture){0};
	return script_aws_reply(&f->aws, replies) &&
	       CHECK_INT(store_dynamodb_open_table(
				 &f->aws.settings, f->aws.http, &both, &f->store, &f->aws.problem),
		       0) &&
	       CHECK_INT(store_conn_new(f->store, &f->conn), 0);
}

static void end(struct fixture *f)
{
	store_conn_free(f->conn);
	store_close(f->store);
	script_aws_end(&f->aws);
}

/* --- what a table is */

#define REPLICA ",\"Replicas\":[{\"RegionName\":\"eu-west-1\"},{\"RegionName\":\"eu-west-3\"}]"
#define STRONG  ",\"MultiRegionConsistency\":\"STRONG\""

static const struct {
	const char *reply;
	enum outcome outcome;
	bool is_split;
	const char *replicas;
} shapes[] = {
	{ACTIVE, OUTCOME_OK, false, ""},
	{TABLE("ACTIVE", KEYS, ",\"Replicas\":[]"), OUTCOME_OK, false, ""},
	{TABLE("ACTIVE", KEYS, REPLICA), OUTCOME_OK, true, "eu-west-1, eu-west-3"},
	{TABLE("ACTIVE", KEYS, REPLICA ",\"MultiRegionConsistency\":\"EVENTUAL\""), OUTCOME_OK,
		true, "eu-west-1, eu-west-3"},
	{TABLE("ACTIVE", KEYS, REPLICA STRONG), OUTCOME_OK, false, "eu-west-1, eu-west-3"},
	/* A global table of 2017 names no replicas. */
	{TABLE("ACTIVE", KEYS, ",\"GlobalTableVersion\":\"2017.11.29\""), OUTCOME_OK, true,
		"other Regions"},
	{TABLE("ACTIVE", KEYS, ",\"GlobalTableVersion\":\"2019.11.21\""), OUTCOME_OK, false, ""},
	{TABLE("ACTIVE", KEYS, ",\"GlobalTableVersion\":\"2019.11.21\"" REPLICA), OUTCOME_OK, true,
		"eu-west-1, eu-west-3"},
	{ABSENT, OUTCOME_ABSENT, false, ""},
	{ERROR("400", "AccessDeniedException"), OUTCOME_DENIED, false, ""},
	{SCRIPT_REPLY("200", "", "{\"Table\":{}}"), OUTCOME_LOST, false, ""},
	{TABLE("ACTIVE", "\"KeySchema\":[]", ""), OUTCOME_LOST, false, ""},
};

static void test_shapes(void)
{
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		const char *const replies[] = {shapes[i].reply, NULL};
		struct dynamodb_shape shape = {.is_split = false};
		struct fixture f;
		if (!begin(&f, replies))
			return;
		const enum outcome o =
			dynamodb_describe_table(f.conn, &no_limits, &shape, &f.aws.problem);
		/* LOST stands for a reply that is not understood. */
		bool ok = shapes[i].outcome == OUTCOME_LOST
				  ? CHECK(o != OUTCOME_OK && o != OUTCOME_ABSENT)
				  : CHECK_STRING(outcome_name(o), outcome_name(shapes[i].outcome));
		ok = CHECK(shape.is_split == shapes[i].is_split) && ok;
		ok = CHECK_STRING(shape.replicas, shapes[i].replicas) && ok;
		if (o == OUTCOME_OK) {
			ok = CHECK_STRING(shape.pk_name, "pk") &&
			     CHECK_STRING(shape.sk_name, "sk") && ok;
			ok = CHECK(shape.pk_type == 'S' && shape.sk_type == 'S') && ok;
		}
		if (!ok)
			fprintf(stderr, "\tshape %zu: %s\n", i, outcome_name(o));
		script_stop(&f.aws.server);
		end(&f);
	}
}

static const struct {
	struct table needed;
	struct dynamodb_shape shape;
	bool is_right;
} keys[] = {
	{{"t", "pk", "sk", false}, {"ACTIVE", "pk", "sk", 'S', 'S', "", false}, true},
	{{"t", "pk", NULL, false}, {"ACTIVE", "pk", "", 'S', '\0', "", false}, true},
	{{"t", "pk", "n", true}, {"ACTIVE", "pk", "n", 'S', 'N', "", false}, true},
	{{"t", "pk", "sk", false}, {"ACTIVE", "key", "sk", 'S', 'S', "", false}, false},
	{{"t", "pk", "sk", false}, {"ACTIVE", "pk", "sort", 'S', 'S', "", false}, false},
	{{"t", "pk", "sk", false}, {"ACTIVE", "pk", "sk", 'N', 'S', "", false}, false},
	{{"t", "pk", "sk", false}, {"ACTIVE", "pk", "sk", 'S', 'N', "", false}, false},
	{{"t", "pk", "sk", false}, {"ACTIVE", "pk", "", 'S', '\0', "", false}, false},
	{{"t", "pk", NULL, false}, {"ACTIVE", "pk", "sk", 'S', 'S', "", false}, false},
	{{"t", "pk", "n", true}, {"ACTIVE", "pk", "n", 'S', 'S', "", false}, false},
};

static void test_keys(void)
{
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		struct problem problem = {0};
		const enum outcome o =
			table_check_shape(&keys[i].needed, "locks", &keys[i].shape, &problem);
		if (!CHECK_INT(o, keys[i].is_right ? OUTCOME_OK : OUTCOME_SETUP) ||
			!CHECK(keys[i].is_right || strstr(problem.text, "is not one for locks")))
			fprintf(stderr, "\tkeys %zu: %s\n", i, problem.text);
	}
}

/* --- making one */

static const struct {
	const char *replies[8];
	uint64_t timeout_ms;
	bool has_ttl_name;
	enum outcome outcome;
	bool is_created, has_ttl;
	const char *sent; /* the first letters of the operations */
	const char *problem;
} makings[] = {
	{{ACTIVE}, 60000, false, OUTCOME_OK, false, false, "D", ""},
	{{TABLE("UPDATING", KEYS, "")}, 60000, false, OUTCOME_OK, false, false, "D", ""},
	{{ABSENT, OK, TABLE("CREATING", KEYS, ""), ACTIVE}, 60000, false, OUTCOME_OK, true, false,
		"D C D D", ""},
	/* Another process makes it at the same time. */
	{{ABSENT, ERROR("400", "ResourceInUseException"), ABSENT,
		 ERROR("400", "ResourceInUseException"), ACTIVE},
		60000, false, OUTCOME_OK, false, false, "D C D C D", ""},
	{{TABLE("DELETING", "\"KeySchema\":[{\"AttributeName\":\"x\",\"KeyType\":\"HASH\"}]", ""),
		 ABSENT, OK, ACTIVE},
		60000, false, OUTCOME_OK, true, false, "D D C D", ""},
	{{ACTIVE, OK}, 60000, true, OUTCOME_OK, false, true, "D U", ""},
	{{ACTIVE, SCRIPT_REPLY("400", "",
			  "{\"__type\":\"x#ValidationException\","
			  "\"message\":\"TimeToLive is already enabled\"}")},
		60000, true, OUTCOME_OK, false, true, "D U", ""},
	{{ACTIVE, ERROR("400", "UnknownOperationException")}, 60000, true, OUTCOME_OK, false, false,
		"D U", ""},
	{{ACTIVE, ERROR("400", "ValidationException")}, 60000, true, OUTCOME_INVALID, false, false,
		"D U", ""},
	{{ACTIVE, ERROR("400", "AccessDeniedException")}, 60000, true, OUTCOME_DENIED, false, false,
		"D U", ""},
	/* Strongly consistent replicas have no time to live, and others have. */
	{{TABLE("ACTIVE", KEYS, REPLICA STRONG)}, 60000, true, OUTCOME_OK, false, false, "D", ""},
	{{TABLE("ACTIVE", KEYS, REPLICA), OK}, 60000, true, OUTCOME_OK, false, true, "D U", ""},
	{{TABLE("ACTIVE", "\"KeySchema\":[{\"AttributeName\":\"x\",\"KeyType\":\"HASH\"}]", "")},
		60000, false, OUTCOME_SETUP, false, false, "D", "is not one for marks"},
	{{TABLE("INACCESSIBLE_ENCRYPTION_CREDENTIALS", KEYS, "")}, 60000, false, OUTCOME_SETUP,
		false, false, "D", "cannot be used"},
	{{ABSENT, ERROR("400", "AccessDeniedException")}, 60000, false, OUTCOME_DENIED, false,
		false, "D C", ""},
	{{TABLE("CREATING", KEYS, "")}, 1, false, OUTCOME_SETUP, false, false, NULL, ""},
};

static void test_makings(void)
{
	for (size_t i = 0; i < sizeof makings / sizeof *makings; i++) {
		char sent[60] = "";
		struct fixture f;
		struct table_made made = {.created = false};
		static const char *const tags[] = {"team", "logs", NULL};
		const struct table_making making = {.table = both,
			.terms = {.read_units = 2, .tags = tags},
			.what = "marks",
			.ttl_name = makings[i].has_ttl_name ? "expires" : NULL,
			.timeout_ms = makings[i].timeout_ms};
		if (!begin(&f, makings[i].replies))
			return;
		const enum outcome o =
			table_make(&f.aws.settings, f.aws.http, &making, &made, &f.aws.problem);
		script_stop(&f.aws.server);
		for (size_t k = 0; k < f.aws.server.n_requests; k++) {
			const struct script_request *request = &f.aws.server.requests[k];
			const char *target = script_sent(request, "x-amz-target");
			const char c = target ? target[strlen("DynamoDB_20120810.")] : '?';
			snprintf(sent + strlen(sent), sizeof sent - strlen(sent), "%s%c",
				k ? " " : "", c);
			if (c == 'C') {
				CHECK(strstr(
					request->body, "{\"Key\":\"team\",\"Value\":\"logs\"}"));
				CHECK(strstr(request->body, "\"ReadCapacityUnits\":2,"
							    "\"WriteCapacityUnits\":1"));
			}
		}
		/* The first request of the last one may have no time left. */
		bool ok = !makings[i].sent || CHECK_STRING(sent, makings[i].sent);
		ok = (makings[i].sent ? CHECK_STRING(
						outcome_name(o), outcome_name(makings[i].outcome))
				      : CHECK(o != OUTCOME_OK)) &&
		     ok;
		ok = CHECK(made.created == makings[i].is_created) && ok;
		ok = CHECK(made.has_ttl == makings[i].has_ttl) && ok;
		ok = CHECK(strstr(f.aws.problem.text, makings[i].problem) != NULL) && ok;
		if (!ok)
			fprintf(stderr, "\tmaking %zu: %s\n", i, f.aws.problem.text);
		end(&f);
	}
}

/* --- time to live */

static const struct {
	const char *status, *attribute;
	bool is_on;
} ttls[] = {
	{"ENABLED", "expires", true},
	{"ENABLING", "expires", true},
	{"DISABLED", "expires", false},
	{"DISABLING", "expires", false},
	{"ENABLED", "other", false},
};

static void test_ttl(void)
{
	for (size_t i = 0; i < sizeof ttls / sizeof *ttls; i++) {
		char reply[300];
		bool is_on = !ttls[i].is_on;
		struct fixture f;
		snprintf(reply, sizeof reply,
			SCRIPT_REPLY("200", "",
				"{\"TimeToLiveDescription\":{\"TimeToLiveStatus\":\"%s\","
				"\"AttributeName\":\"%s\"}}"),
			ttls[i].status, ttls[i].attribute);
		const char *const replies[] = {reply, NULL};
		if (!begin(&f, replies))
			return;
		CHECK_INT(dynamodb_describe_ttl(
				  f.conn, "expires", &no_limits, &is_on, &f.aws.problem),
			OUTCOME_OK);
		if (!CHECK(is_on == ttls[i].is_on))
			fprintf(stderr, "\tttl %zu\n", i);
		script_stop(&f.aws.server);
		end(&f);
	}
}

int main(void)
{
	test_shapes();
	test_keys();
	test_makings();
	test_ttl();
	return check_result();
}
