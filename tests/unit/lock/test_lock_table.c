/* Locks in a table of DynamoDB, over scripted replies: which tables are refused, and the requests
 * of each dialect, whose rows other clients read. */
#include "../script_aws.h"
#include "../store/sqlite_scratch.h"
#include "s3once/lock.h"
#include <errno.h>
#include <stdlib.h>

#define ERROR(status, code)                                                                        \
	SCRIPT_REPLY(status, "", "{\"__type\":\"x#" code "\",\"message\":\"m\"}")
#define TABLE(more)                                                                                \
	SCRIPT_REPLY("200", "",                                                                    \
		"{\"Table\":{\"TableStatus\":\"ACTIVE\",\"KeySchema\":[{\"AttributeName\":"        \
		"\"key\",\"KeyType\":\"HASH\"}],\"AttributeDefinitions\":[{\"AttributeName\":"     \
		"\"key\",\"AttributeType\":\"S\"}]" more "}}")
#define REPLICA ",\"Replicas\":[{\"RegionName\":\"eu-west-1\"}]"
#define ROW     SCRIPT_REPLY("200", "", "{\"Attributes\":{}}")
#define TOKEN   SCRIPT_REPLY("200", "", "{\"Attributes\":{\"fencingToken\":{\"N\":\"3\"}}}")
#define OK      SCRIPT_REPLY("200", "", "{}")
#define DENIED  ERROR("400", "AccessDeniedException")
#define FAILED  ERROR("500", "InternalServerError")

struct fixture {
	struct script_aws aws;
	struct s3once_locks *locks;
	struct s3once_lock_error error;
};

static bool begin(
	struct fixture *f, const char *const *replies, const struct s3once_locks_options *more)
{
	struct script_step steps[SCRIPT_STEPS_MAX];
	struct s3once_locks_options options = *more;
	size_t n = 0;
	for (; replies[n]; n++)
		steps[n] = (struct script_step){.reply = replies[n], .close = true};
	*f = (struct fixture){0};
	if (!script_aws_start(&f->aws, steps, n))
		return false;
	setenv("HOME", scratch, 1);
	options.place = "dynamodb:table";
	options.dynamodb_endpoint_url = f->aws.server.url;
	options.region = "us-east-1";
	options.owner = "anna";
	options.manual = 1;
	return CHECK_INT(s3once_locks_open(&options, &f->locks, &f->error), 0);
}

static void end(struct fixture *f)
{
	s3once_locks_free(f->locks);
	script_aws_end(&f->aws);
}

/* The requests, by the first four letters of their operations. */
static bool check_sent(struct fixture *f, const char *want)
{
	char sent[200] = "";
	script_stop(&f->aws.server);
	for (size_t i = 0; i < f->aws.server.n_requests; i++) {
		const char *target = script_sent(&f->aws.server.requests[i], "x-amz-target");
		snprintf(sent + strlen(sent), sizeof sent - strlen(sent), "%s%.4s", i ? " " : "",
			target ? target + strlen("DynamoDB_20120810.") : "?");
	}
	return CHECK_STRING(sent, want);
}

/* --- tables that are split among Regions */

static const struct {
	const char *replies[7];
	int allow_replicas;
	int first, second; /* two acquisitions, one after the other */
	const char *sent;
} tables[] = {
	{{TABLE(""), ROW, TOKEN, ROW, TOKEN}, 0, 0, 0, "Desc Upda Upda Upda Upda"},
	{{TABLE(REPLICA ",\"MultiRegionConsistency\":\"STRONG\""), ROW, TOKEN, ROW, TOKEN}, 0, 0, 0,
		"Desc Upda Upda Upda Upda"},
	/* Two hosts of two Regions could hold one lock at once: nothing is written. */
	{{TABLE(REPLICA), TABLE(REPLICA)}, 0, -EIO, -EIO, "Desc Desc"},
	{{TABLE(REPLICA), TABLE(""), ROW, TOKEN}, 0, -EIO, 0, "Desc Desc Upda Upda"},
	{{ROW, TOKEN, ROW, TOKEN}, 1, 0, 0, "Upda Upda Upda Upda"},
	/* It cannot be known here: whoever may not ask is told once. */
	{{DENIED, ROW, TOKEN, ROW, TOKEN}, 0, 0, 0, "Desc Upda Upda Upda Upda"},
	{{FAILED, ROW, TOKEN, TABLE(REPLICA)}, 0, 0, -EIO, "Desc Upda Upda Desc"},
};

static void test_tables(void)
{
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		struct s3once_lock *lock = NULL, *second = NULL;
		struct fixture f;
		const struct s3once_locks_options options = {
			.allow_replicas = tables[i].allow_replicas};
		if (!begin(&f, tables[i].replies, &options))
			return;
		bool ok = CHECK_INT(
			s3once_lock_acquire(f.locks, &(struct s3once_lock_request){.key = "k"},
				&lock, &f.error),
			tables[i].first);
		ok = CHECK(tables[i].first == 0 || strstr(f.error.text, "eu-west-1")) && ok;
		ok = CHECK_INT(
			     s3once_lock_acquire(f.locks, &(struct s3once_lock_request){.key = "l"},
				     &second, &f.error),
			     tables[i].second) &&
		     ok;
		ok = CHECK(!lock || s3once_lock_token(lock) == 3) && ok;
		ok = check_sent(&f, tables[i].sent) && ok;
		if (!ok)
			fprintf(stderr, "\ttable %zu: %s\n", i, f.error.text);
		end(&f);
	}
}

/* --- making a table */

static const struct {
	enum s3once_lock_dialect dialect;
	const char *ttl_name, *replies[6];
	int r, is_created;
	const char *sent, *text;
} inits[] = {
	{S3ONCE_LOCK_JAVA, NULL, {TABLE("")}, 0, 0, "Desc", ""},
	{S3ONCE_LOCK_JAVA, NULL, {ERROR("400", "ResourceNotFoundException"), OK, TABLE("")}, 0, 1,
		"Desc Crea Desc", ""},
	{S3ONCE_LOCK_JAVA, "gone", {TABLE(""), OK}, 0, 0, "Desc Upda", ""},
	/* No failures, but the user learns of them. */
	{S3ONCE_LOCK_JAVA, "gone", {TABLE(""), ERROR("400", "UnknownOperationException")}, 0, 0,
		"Desc Upda", "has no time to live"},
	{S3ONCE_LOCK_JAVA, NULL, {TABLE(REPLICA)}, 0, 0, "Desc", "eu-west-1"},
	{S3ONCE_LOCK_JAVA, NULL, {DENIED}, -EIO, 0, "Desc", ""},
	{S3ONCE_LOCK_PYTHON, NULL, {TABLE("")}, -EIO, 0, "Desc", "is not one for these locks"},
	/* That client copies unknown attributes, and would let new rows expire. */
	{S3ONCE_LOCK_GO, "gone", {NULL}, -EINVAL, 0, "", "no time to live in a go table"},
};

static void test_inits(void)
{
	for (size_t i = 0; i < sizeof inits / sizeof *inits; i++) {
		const struct s3once_locks_options options = {.dialect = inits[i].dialect};
		const struct s3once_locks_table table = {.ttl_name = inits[i].ttl_name};
		struct fixture f;
		int is_created = -1;
		if (!begin(&f, inits[i].replies, &options))
			return;
		bool ok = CHECK_INT(
			s3once_locks_init(f.locks, &table, &is_created, &f.error), inits[i].r);
		ok = CHECK_INT(is_created, inits[i].is_created) && ok;
		ok = CHECK(strstr(f.error.text, inits[i].text) != NULL) && ok;
		ok = CHECK(*inits[i].text || inits[i].r || !*f.error.text) && ok;
		ok = check_sent(&f, inits[i].sent) && ok;
		if (!ok)
			fprintf(stderr, "\tinit %zu: %s\n", i, f.error.text);
		end(&f);
	}
}

static void test_refused_init(void)
{
	static const char *const no_replies[] = {NULL};
	const struct s3once_locks_table table = {.reserved = {[15] = 1}};
	struct fixture f;
	int is_created;
	if (!begin(&f, no_replies, &(struct s3once_locks_options){0}))
		return;
	CHECK_INT(s3once_locks_init(f.locks, &table, &is_created, &f.error), -EINVAL);
	CHECK(*f.error.text);
	check_sent(&f, "");
	end(&f);
}

/* The table gets the capacity that was asked for. */
static void test_capacity(void)
{
	static const char *const replies[] = {
		ERROR("400", "ResourceNotFoundException"), OK, TABLE(""), NULL};
	const struct s3once_locks_options options = {.dialect = S3ONCE_LOCK_JAVA};
	const struct s3once_locks_table table = {.read_units = 7, .write_units = 3};
	struct fixture f;
	int is_created;
	if (!begin(&f, replies, &options))
		return;
	CHECK_INT(s3once_locks_init(f.locks, &table, &is_created, &f.error), 0);
	check_sent(&f, "Desc Crea Desc");
	const char *body = f.aws.server.requests[1].body;
	CHECK(strstr(body, "\"ReadCapacityUnits\":7") != NULL);
	CHECK(strstr(body, "\"WriteCapacityUnits\":3") != NULL);
	end(&f);
}

/* --- rows of each dialect */

static const struct {
	enum s3once_lock_dialect dialect;
	const char *sort_key;
	enum s3once_lock_release_by release_by;
	const char *replies[7];
	const char *sent;
	/* Parts of the bodies of the write that acquires, of that of the counter, and of that which
	 * releases. */
	const char *row, *counter, *release;
} dialects[] = {
	{S3ONCE_LOCK_JAVA, NULL, 0, {ROW, TOKEN, OK}, "Upda Upda Dele",
		"\"Key\":{\"key\":{\"S\":\"k\"}}", "\"Key\":{\"key\":{\"S\":\"s3once-token:k\"}}",
		"\"Key\":{\"key\":{\"S\":\"k\"}},\"ConditionExpression\":\"#a0 = :a1\""},
	{S3ONCE_LOCK_JAVA, NULL, S3ONCE_LOCK_BY_MARK, {ROW, TOKEN, OK}, "Upda Upda Upda",
		"\"leaseDuration\"", "\"s3once-token:k\"", "\"isReleased\""},
	{S3ONCE_LOCK_GO, NULL, 0, {ROW, TOKEN, OK}, "Upda Upda Upda", "{\"S\":\"20s\"}",
		"\"s3once-token:k\"", "\"isReleased\""},
	{S3ONCE_LOCK_PYTHON, NULL, 0, {ROW, TOKEN, OK}, "Upda Upda Dele",
		"\"Key\":{\"lock_key\":{\"S\":\"k\"},\"sort_key\":{\"S\":\"-\"}}",
		"\"Key\":{\"lock_key\":{\"S\":\"s3once-token:k\"},\"sort_key\":{\"S\":\"-\"}}",
		"\"sort_key\":{\"S\":\"-\"}"},
	{S3ONCE_LOCK_PYTHON, "s", 0, {ROW, TOKEN, OK}, "Upda Upda Dele",
		"\"Key\":{\"lock_key\":{\"S\":\"k\"},\"sort_key\":{\"S\":\"s\"}}",
		"\"sort_key\":{\"S\":\"s\"}", "\"sort_key\":{\"S\":\"s\"}"},
	/* By the wall clock: the reply to a read tells the service's time. */
	{S3ONCE_LOCK_DLM, NULL, 0, {OK, ROW, TOKEN, OK}, "GetI Upda Upda Dele",
		"\"Key\":{\"resource_id\":{\"S\":\"k\"},\"concurrency_id\":{\"N\":\"0\"}}",
		"\"resource_id\":{\"S\":\"s3once-token:k\"}", "\"concurrency_id\":{\"N\":\"0\"}"},
};

static void test_dialects(void)
{
	for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++) {
		struct s3once_lock *lock = NULL;
		struct fixture f;
		const struct s3once_locks_options options = {.dialect = dialects[i].dialect,
			.release_by = dialects[i].release_by,
			.allow_replicas = 1};
		const struct s3once_lock_request request = {
			.key = "k", .sort_key = dialects[i].sort_key};
		if (!begin(&f, dialects[i].replies, &options))
			return;
		bool ok = CHECK_INT(s3once_lock_acquire(f.locks, &request, &lock, &f.error), 0);
		if (lock)
			ok = CHECK_INT(s3once_lock_release(lock, &f.error), 0) && ok;
		ok = check_sent(&f, dialects[i].sent) && ok;
		const size_t n = f.aws.server.n_requests;
		if (CHECK(n >= 3)) {
			const struct script_request *last = &f.aws.server.requests[n - 1];
			ok = CHECK(strstr(last[-2].body, dialects[i].row) != NULL) && ok;
			ok = CHECK(strstr(last[-1].body, dialects[i].counter) != NULL) && ok;
			ok = CHECK(strstr(last->body, dialects[i].release) != NULL) && ok;
			/* A row of other clients is only taken if it is absent or free. */
			ok = CHECK(strstr(last[-2].body, "attribute_not_exists(") != NULL) && ok;
			if (!ok)
				fprintf(stderr, "\tdialect %zu: %s\n%s\n%s\n%s\n", i, f.error.text,
					last[-2].body, last[-1].body, last->body);
		}
		end(&f);
	}
}

/* --- the rows of a table, without those of the counters */

static int note_key(void *arg, const struct s3once_lock_info *info)
{
	char *keys = arg;
	/* A row without an owner is not understood, and so not free. */
	CHECK(info->held && !info->understood && *info->why);
	snprintf(keys + strlen(keys), 100 - strlen(keys), "%s/%s ", info->key, info->sort_key);
	return 0;
}

static void test_listing(void)
{
	static const char rows[] = SCRIPT_REPLY("200", "",
		"{\"Items\":[{\"lock_key\":{\"S\":\"a1\"},\"sort_key\":{\"S\":\"x\"}},"
		"{\"lock_key\":{\"S\":\"s3once-token:a1\"},\"sort_key\":{\"S\":\"x\"}},"
		"{\"lock_key\":{\"S\":\"b\"},\"sort_key\":{\"S\":\"-\"}},"
		"{\"lock_key\":{\"S\":\"a2\"},\"sort_key\":{\"S\":\"-\"}}]}");
	static const char *const replies[] = {rows, rows, NULL};
	char keys[100] = "", all[100] = "";
	struct fixture f;
	if (!begin(&f, replies, &(struct s3once_locks_options){.dialect = S3ONCE_LOCK_PYTHON}))
		return;
	CHECK_INT(s3once_lock_list(f.locks, "a", note_key, keys, &f.error), 0);
	CHECK_STRING(keys, "a1/x a2/- ");
	CHECK_INT(s3once_lock_list(f.locks, NULL, note_key, all, &f.error), 0);
	CHECK_STRING(all, "a1/x b/- a2/- ");
	check_sent(&f, "Scan Scan");
	end(&f);
}

int main(void)
{
	scratch_make();
	test_tables();
	test_inits();
	test_refused_init();
	test_capacity();
	test_dialects();
	test_listing();
	scratch_remove();
	return check_result();
}
