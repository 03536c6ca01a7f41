/* A bucket whose replies are a script, and marks that are real, for tests of the audit. */
#pragma once
#include "../script_aws.h"
#include "audit/audit_pool.h"
#include "marks/session.h"
#include <time.h>

static const struct mark_space audit_space = {
	.service = "aws", .bucket = "b", .settings = {.table_id = "t", .shards = 3}};

struct audit {
	struct script_aws aws;
	struct s3 *s3;
	struct s3_conn *s3_conn;
	struct store *store;
	struct store_conn *conn;
	struct problem problem; /* of the last call */
	/* Another client, whose turn comes once, before the next read or write of a mark here. */
	void (*before_get)(struct audit *audit), (*before_write)(struct audit *audit);
	/* Reading or writing a mark has this outcome; OUTCOME_OK: its own. */
	enum outcome get_fails, write_fails;
	enum outcome session_fails; /* reading a session, likewise */
	struct store_ops ops;       /* of the store, with these two */
	const struct store_ops *real;
};
static struct audit *audit_of_ops;

static inline void audit_let_other(void (**other)(struct audit *audit))
{
	void (*const happens)(struct audit *) = *other;
	*other = NULL;
	if (happens)
		happens(audit_of_ops);
}

static inline bool audit_is_mark(struct item_key key)
{
	return strncmp(key.pk, "aws/", 4) == 0;
}

static inline enum outcome audit_get(struct store_conn *conn, struct item_key key,
	enum consistency consistency, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	if (audit_is_mark(key))
		audit_let_other(&audit_of_ops->before_get);
	if (audit_is_mark(key) && audit_of_ops->get_fails != OUTCOME_OK)
		return outcome_error(ret_problem, audit_of_ops->get_fails, "as the test wants");
	if (strncmp(key.pk, "session#", 8) == 0 && audit_of_ops->session_fails != OUTCOME_OK)
		return outcome_error(ret_problem, audit_of_ops->session_fails, "as the test wants");
	return audit_of_ops->real->get(conn, key, consistency, limits, ret, ret_problem);
}

static inline enum outcome audit_write_op(struct store_conn *conn, struct item_key key,
	const struct item_write *write, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	if (audit_is_mark(key))
		audit_let_other(&audit_of_ops->before_write);
	if (audit_is_mark(key) && audit_of_ops->write_fails != OUTCOME_OK)
		return outcome_error(ret_problem, audit_of_ops->write_fails, "as the test wants");
	return audit_of_ops->real->write(conn, key, write, limits, ret, ret_problem);
}

/* S3 answers by n steps, each used once, and then no more. */
static inline bool audit_begin(struct audit *audit, const struct script_step *steps, size_t n)
{
	*audit = (struct audit){0};
	if (!script_aws_start(&audit->aws, steps, n))
		return false;
	for (size_t i = 0; i < SCRIPT_STEPS_MAX; i++)
		audit->aws.server.steps[i].close = true;
	if (!CHECK_INT(s3_open(&audit->aws.settings, audit->aws.http, "b", &audit->s3, NULL), 0) ||
		!CHECK_INT(
			store_sqlite_open(STORE_SQLITE_NOWHERE, STORE_WRITTEN, &audit->store, NULL),
			0) ||
		!CHECK_INT(store_conn_new(audit->store, &audit->conn), 0) ||
		!CHECK_INT(s3_conn_new(audit->s3, &audit->s3_conn), 0))
		return false;
	audit_of_ops = audit;
	audit->real = audit->store->ops;
	audit->ops = *audit->real;
	audit->ops.get = audit_get;
	audit->ops.write = audit_write_op;
	audit->store->ops = &audit->ops;
	return true;
}

static inline void audit_end(struct audit *audit)
{
	store_conn_free(audit->conn);
	audit->store->ops = audit->real;
	store_close(audit->store);
	s3_conn_free(audit->s3_conn);
	s3_close(audit->s3);
	script_aws_end(&audit->aws);
}

static inline struct audit_place audit_place(const struct audit *audit)
{
	return (struct audit_place){.store = audit->store,
		.space = &audit_space,
		.s3 = audit->s3,
		.own = {audit->conn, audit->s3_conn}};
}

/* Stops S3, and checks which requests have come, by their methods. */
static inline bool audit_asked(struct audit *audit, const char *methods)
{
	struct script_server *server = &audit->aws.server;
	char got[200] = "";
	script_stop(server);
	for (size_t i = 0; i < server->n_requests; i++)
		snprintf(got + strlen(got), sizeof got - strlen(got), "%.*s ",
			(int)strcspn(server->requests[i].head, " "), server->requests[i].head);
	return CHECK_STRING(got, methods);
}

/* A row of the store, as texts and numbers. What is NULL or 0 is left out. */
struct audit_row {
	const char *state, *session, *claim, *claim_suffix, *suffix, *etag, *sum, *upload,
		*upload_suffix, *upload_encoding, *error, *version_id, *version, *last_key,
		*last_etag, *object_sum;
	int64_t at, size, mtime, md5, upload_size, lease, generation, object_size, expires;
};

static inline void audit_write(
	struct audit *audit, const char *pk, const char *sk, const struct audit_row *row)
{
	const struct {
		const char *name, *text;
	} texts[] = {{"state", row->state}, {"session", row->session}, {"claim", row->claim},
		{"claim_suffix", row->claim_suffix}, {"suffix", row->suffix}, {"etag", row->etag},
		{"sum", row->sum}, {"upload", row->upload}, {"upload_suffix", row->upload_suffix},
		{"upload_encoding", row->upload_encoding}, {"error", row->error},
		{"version_id", row->version_id}, {"version", row->version},
		{"last_key", row->last_key}, {"last_etag", row->last_etag},
		{"object_sum", row->object_sum}};
	enum { GENERATION = 6 }; /* the row of a bucket has it in any case */
	const struct {
		const char *name;
		int64_t number;
	} numbers[] = {{"at", row->at}, {"size", row->size}, {"mtime", row->mtime},
		{"md5", row->md5}, {"upload_size", row->upload_size},
		{"lease", row->lease}, [GENERATION] = {"generation", row->generation},
		{"object_size", row->object_size}, {"expires", row->expires}};
	struct item item = {0}, present = {0};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (texts[i].text)
			item_set_string(&item, texts[i].name, texts[i].text);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (numbers[i].number || (row->last_key && i == GENERATION))
			item_set_number(&item, numbers[i].name, numbers[i].number);
	CHECK_INT(
		audit->real->write(audit->conn, (struct item_key){pk, sk},
			&(struct item_write){.item = &item}, &no_limits, &present, &audit->problem),
		OUTCOME_OK);
	item_clear(&item);
	item_clear(&present);
}

/* Writes a mark. One that says done is of an object of 3 bytes with the etag e1 and the CRC-32C
 * AAAAAA==, unless it says otherwise. */
static inline void audit_put(struct audit *audit, const char *key, const struct audit_row *row)
{
	char partition[PARTITION_MAX];
	struct audit_row mark = *row;
	const bool is_done = row->size || strcmp(row->state, "done") == 0;
	mark.session = row->session ? row->session : "s";
	mark.claim = "c";
	mark.etag = row->etag || !is_done ? row->etag : "e1";
	mark.sum = row->sum || !is_done ? row->sum : "crc32c:AAAAAA==";
	mark.size = row->size || !is_done ? row->size : 3;
	mark.mtime = 7;
	mark_partition(&audit_space, mark_shard(key, audit_space.settings.shards), partition);
	audit_write(audit, partition, key, &mark);
}
#define AUDIT_PUT(audit, key, ...) audit_put(audit, key, &(struct audit_row){__VA_ARGS__})

/* Writes the row of a session, whose last heartbeat was sent just now. */
static inline void audit_put_session(struct audit *audit, const char *id, const char *state)
{
	char pk[64];
	snprintf(pk, sizeof pk, "session#%s", id);
	audit_write(audit, pk, "-",
		&(struct audit_row){.state = state,
			.version = "v",
			.lease = 100000,
			.expires = (int64_t)time(NULL) + SESSION_KEEP_S});
}

/* The mark as the store has it now; the caller's to clear. */
static inline struct mark audit_mark(struct audit *audit, const char *key)
{
	const struct audit_place place = audit_place(audit);
	const struct mark_ref ref = audit_mark_ref(&place, &place.own, key);
	struct mark mark;
	CHECK_INT(mark_get(&ref, &mark, &audit->problem), OUTCOME_OK);
	return mark;
}

#define AUDIT_STEP(...)                                                                            \
	{                                                                                          \
		SCRIPT_REPLY(__VA_ARGS__), .close = true                                           \
	}
#define AUDIT_HEAD(size, etag, sum)                                                                \
	AUDIT_STEP("200",                                                                          \
		"Content-Length: " size "\r\nETag: \"" etag "\"\r\nx-amz-checksum-crc32c: " sum    \
		"\r\n",                                                                            \
		"")
#define AUDIT_ABSENT AUDIT_STEP("404", "Content-Length: 0\r\n", "")
#define AUDIT_ERROR(status, code)                                                                  \
	AUDIT_STEP(status, "", "<Error><Code>" code "</Code><Message>no</Message></Error>")
