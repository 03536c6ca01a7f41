/* How gc aborts an upload that a mark records: as long as gc holds the mark, and no longer. The S3
 * server is a script; the marks are real. */
#include "../check.h"
#include "../script_aws.h"
#include "audit/forget.h"
#include "base/clock.h"
#include <poll.h>

#define LEASE_MS 600

static const struct mark_space space = {
	.service = "aws", .bucket = "b", .settings = {.table_id = "t", .shards = 1}};

static void put_failed_mark(struct store_conn *conn)
{
	char partition[PARTITION_MAX];
	struct item item = {0}, present = {0};
	struct problem problem;
	mark_partition(&space, 0, partition);
	item_set_string(&item, "state", "failed");
	item_set_string(&item, "source", "h:/f");
	item_set_string(&item, "error", "it was cut");
	item_set_string(&item, "upload", "u1");
	item_set_number(&item, "tries", 1);
	item_set_number(&item, "at", 1000);
	item_set_number(&item, "part", 5 << 20);
	item_set_number(&item, "upload_size", 9);
	item_set_number(&item, "upload_mtime", 7);
	CHECK_INT(conn->store->ops->write(conn, (struct item_key){partition, "k"},
			  &(struct item_write){.item = &item}, &no_limits, &present, &problem),
		OUTCOME_OK);
	item_clear(&item);
	item_clear(&present);
}

static unsigned fates[FATE_FAILED + 1];

static void note_fate(void *arg, const struct mark_report *report)
{
	fates[report->fate]++;
}

/* Longer than the lease, which nothing renews. */
static void outlast_the_lease(void *arg)
{
	poll(NULL, 0, 2 * LEASE_MS);
}

/* Runs gc over the one mark, and checks the requests, as the first words of their lines. */
static void collect_by(const struct script_step *script, size_t n, bool is_held, const char *asked)
{
	struct script_aws aws;
	struct s3 *s3;
	struct s3_conn *s3_conn;
	struct store *store;
	struct store_conn *conn;
	struct session *session;
	struct problem problem = {0};
	if (!script_aws_start(&aws, script, n) ||
		!CHECK_INT(s3_open(&aws.settings, aws.http, "b", &s3, NULL), 0) ||
		!CHECK_INT(store_sqlite_open(STORE_SQLITE_NOWHERE, false, &store, NULL), 0) ||
		!CHECK_INT(store_conn_new(store, &conn), 0) ||
		!CHECK_INT(s3_conn_new(s3, &s3_conn), 0))
		return;
	const struct session_options options = {.store = store,
		.lease_ns = (is_held ? 100ULL : 1ULL) * LEASE_MS * NS_PER_MS,
		.heartbeat_ns = 100 * LEASE_MS * NS_PER_MS};
	CHECK_INT(session_new(&options, &session), 0);
	put_failed_mark(conn);
	memset(fates, 0, sizeof fates);
	const struct collect_options collecting = {.clearing = {.place = {.store = store,
									.space = &space,
									.s3 = s3,
									.own = {conn, s3_conn}},
							   .reporter = {.report = note_fate}},
		.session = session,
		.source = "h:gc",
		.keep_uploads_s = 1,
		.keep_marks_s = UINT64_MAX};
	const enum outcome o = collect(&collecting, "", &problem);
	CHECK_INT(fates[FATE_ABORTED], is_held);
	CHECK(is_held ? o == OUTCOME_OK : o != OUTCOME_OK || fates[FATE_FAILED] == 1);
	session_close(session, conn);
	script_stop(&aws.server);
	char got[200] = "";
	for (size_t i = 0; i < aws.server.n_requests; i++)
		snprintf(got + strlen(got), sizeof got - strlen(got), "%.*s ",
			(int)strcspn(aws.server.requests[i].head, " "),
			aws.server.requests[i].head);
	CHECK_STRING(got, asked);
	store_conn_free(conn);
	store_close(store);
	s3_conn_free(s3_conn);
	s3_close(s3);
	script_aws_end(&aws);
}

#define NO_OBJECT SCRIPT_REPLY("404", "Content-Length: 0\r\n", "")
#define NO_PARTS                                                                                   \
	SCRIPT_REPLY(                                                                              \
		"200", "", "<ListPartsResult><IsTruncated>false</IsTruncated></ListPartsResult>")
#define ABORTED SCRIPT_REPLY("204", "", "")
#define GONE    SCRIPT_REPLY("404", "", "<Error><Code>NoSuchUpload</Code><Message>m</Message></Error>")

int main(void)
{
	const struct script_step in_time[] = {{NO_OBJECT, .close = true}, {NO_PARTS, .close = true},
		{ABORTED, .close = true}, {GONE, .close = true}};
	collect_by(in_time, 4, true, "HEAD GET DELETE GET ");
	/* Another uploader may go on with the upload once the lease is over. */
	const struct script_step late_object[] = {
		{NO_OBJECT, .close = true, .meanwhile = outlast_the_lease},
		{NO_PARTS, .close = true}, {ABORTED, .close = true}, {GONE, .close = true}};
	collect_by(late_object, 4, false, "HEAD ");
	const struct script_step late_list[] = {{NO_OBJECT, .close = true},
		{NO_PARTS, .close = true, .meanwhile = outlast_the_lease}, {ABORTED, .close = true},
		{GONE, .close = true}};
	collect_by(late_list, 4, false, "HEAD GET ");
	return check_result();
}
