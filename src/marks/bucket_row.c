/* Reads and writes the row of a bucket, from which a run learns the conditions that the server
 * honours. Runs, audits and doctor call it. The row is replaced only if it has not changed since it
 * was read. */
#include "marks/bucket_row.h"
#include "marks/row.h"
#include <stdio.h>
#include <string.h>

/* The lifetime of a result about a server's conditions. A server may be upgraded, or its name may
 * point to a different server. */
#define HOLDS_FOR_S (30 * 24 * 3600)
#define ROW_PK_MAX  (sizeof "bucket#" + PARTITION_MAX)

static struct item_key row_key(const struct mark_space *space, char pk[static ROW_PK_MAX])
{
	snprintf(pk, ROW_PK_MAX, "bucket#%s/%s", space->service, space->bucket);
	return (struct item_key){pk, "-"};
}

enum { GROUP_VERSION = 1, GROUP_REST = 2 };
#define FIELD(member, attribute, how, ...)                                                         \
	ROW_FIELD(struct bucket_row, member, attribute, how, .groups = GROUP_REST, __VA_ARGS__)
static const struct row_field fields[] = {
	ROW_FIELD(struct bucket_row, version, "version", FIELD_ID, .groups = GROUP_VERSION),
	FIELD(has_id, "object_made", FIELD_FLAG),
	FIELD(id, "object", FIELD_TEXT),
	FIELD(id_key, "object_key", FIELD_TEXT),
	FIELD(last_key, "last_key", FIELD_TEXT),
	FIELD(last_etag, "last_etag", FIELD_TEXT),
	FIELD(honours, "honours", FIELD_TEXT),
	FIELD(honours_server, "server", FIELD_TEXT),
	FIELD(honours_at_s, "honours_at", FIELD_NUMBER),
	FIELD(generation, "generation", FIELD_INT, .is_always = true),
	FIELD(at_s, "at", FIELD_NUMBER, .is_always = true),
};
static const struct row_table bucket_table = ROW_TABLE(fields);

/* The conditional requests of S3, and the other features that doctor tests by writing objects of
 * its own. */
static const struct {
	const char *name;
	enum s3_feature feature;
} conditions[] = {{"put", S3_PUT_CONDITION}, {"complete", S3_COMPLETE_CONDITION},
	{"if-match", S3_IF_MATCH}, {"trailer", S3_TRAILER}};
#define CONDITIONS (sizeof conditions / sizeof *conditions)

/* Reads the row from its item. OK, or SETUP if it is damaged: every row has a version and a
 * generation. */
static enum outcome read_row_of_bucket(
	const struct item *item, struct bucket_row *ret, struct problem *ret_problem)
{
	struct bucket_row row = {.generation = -1};
	if (row_read(&bucket_table, item, &row) || !*row.version || row.generation < 0)
		return outcome_error(ret_problem, OUTCOME_SETUP,
			"the row of this bucket in the mark store (its pk begins with \"bucket#\") is "
			"damaged, or of a later version of s3once: use that one");
	*ret = row;
	if (!row.has_id) /* an id counts only with has_id */
		ret->id[0] = '\0';
	return OUTCOME_OK;
}

enum outcome bucket_row_read(struct store_conn *conn, const struct mark_space *space,
	const struct call_limits *limits, struct bucket_row *ret, struct problem *ret_problem)
{
	char pk[ROW_PK_MAX];
	struct item item = {0};
	*ret = (struct bucket_row){0};
	enum outcome o = conn->store->ops->get(
		conn, row_key(space, pk), READ_CONSISTENT, limits, &item, ret_problem);
	if (o == OUTCOME_ABSENT)
		o = OUTCOME_OK;
	else if (o == OUTCOME_OK)
		o = read_row_of_bucket(&item, ret, ret_problem);
	item_clear(&item);
	return o;
}

enum outcome bucket_row_write(struct store_conn *conn, const struct mark_space *space,
	struct bucket_row *row, const struct call_limits *limits, struct bucket_row *ret_seen,
	struct problem *ret_problem)
{
	char pk[ROW_PK_MAX];
	struct item item = {0};
	struct bucket_row next = *row;
	struct row_write write = {.kind = ROW_PUTS};
	random_id(next.version);
	next.has_id = *row->id;
	next.at_s = store_time_s(conn->store);
	*ret_seen = (struct bucket_row){0};
	row_set(&write, &bucket_table, ROW_ALL, &next);
	if (*row->version)
		row_expect(&write, &bucket_table, GROUP_VERSION, row);
	else
		row_expect_test(&write, "pk", CONDITION_ABSENT);
	enum outcome o = row_perform(conn, row_key(space, pk), &write, limits, &item, ret_problem);
	/* After a refusal, the item is the present row, or empty if there is none. */
	if (o == OUTCOME_REFUSED && !item_is_empty(&item) &&
		read_row_of_bucket(&item, ret_seen, ret_problem) != OUTCOME_OK)
		o = OUTCOME_SETUP;
	/* A refusal may be due to our own write, if the request was sent twice. */
	if (o == OUTCOME_REFUSED && strcmp(ret_seen->version, next.version) == 0)
		o = OUTCOME_OK;
	if (o == OUTCOME_OK)
		*row = next;
	item_clear(&item);
	return o;
}

/* Whether a word is among others, which have spaces between them. A later version may have written
 * words that this one does not know. */
static bool has_word(const char *words, const char *word)
{
	const size_t n = strlen(word);
	for (const char *at = words; (at = strstr(at, word)); at += n)
		if ((at == words || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
			return true;
	return false;
}

void conditions_recall(const struct bucket_row *row, struct s3 *s3, int64_t now_s)
{
	if (s3_is_aws(s3)) /* it is known which ones AWS honours */
		return;
	/* A time in the future shows that the clock was set back. */
	const bool is_recent =
		now_s >= row->honours_at_s && now_s - row->honours_at_s < HOLDS_FOR_S;
	const bool is_same_server = strcmp(row->honours_server, s3_server(s3)) == 0;
	if (!is_recent || !is_same_server)
		return;
	for (size_t i = 0; i < CONDITIONS; i++)
		if (has_word(row->honours, conditions[i].name))
			s3_set_support(s3, conditions[i].feature, S3_YES);
}

void conditions_note(struct bucket_row *row, const struct s3 *s3)
{
	size_t n = 0;
	row->honours[0] = '\0';
	for (size_t i = 0; i < CONDITIONS; i++)
		if (s3_supports(s3, conditions[i].feature) == S3_YES)
			n += (size_t)snprintf(row->honours + n, sizeof row->honours - n, "%s%s",
				n ? " " : "", conditions[i].name);
	snprintf(row->honours_server, sizeof row->honours_server, "%s", s3_server(s3));
}
