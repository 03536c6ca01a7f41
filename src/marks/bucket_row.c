#include "marks/bucket_row.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define ROW_PK_MAX (sizeof "bucket#" + PARTITION_MAX)

static struct item_key row_key(const struct mark_space *space, char pk[static ROW_PK_MAX])
{
	snprintf(pk, ROW_PK_MAX, "bucket#%s/%s", space->service, space->bucket);
	return (struct item_key){pk, "-"};
}

/* A value that does not fit was not written by us. */
static bool read_text(const struct item *item, const char *name, char *ret, size_t size)
{
	const char *value = item_string(item, name);
	return snprintf(ret, size, "%s", value ? value : "") < (int)size;
}

static void read_time(const struct item *item, const char *name, int64_t *ret)
{
	if (item_number(item, name, ret))
		*ret = 0;
}

static const char *const condition_names[BUCKET_CONDITIONS] = {
	[BUCKET_PUT_CONDITION] = "put",
	[BUCKET_COMPLETE_CONDITION] = "complete",
	[BUCKET_IF_MATCH] = "if-match",
};

/* Names that only a later version knows are ignored. */
static unsigned read_honours(const struct item *item)
{
	const char *names = item_string(item, "honours");
	unsigned honours = 0;
	for (; names && *names; names += strspn(names, " ")) {
		const size_t n = strcspn(names, " ");
		for (unsigned i = 0; i < BUCKET_CONDITIONS; i++)
			if (n == strlen(condition_names[i]) &&
				strncmp(names, condition_names[i], n) == 0)
				honours |= 1U << i;
		names += n;
	}
	return honours;
}

static enum outcome read_row_of_bucket(
	const struct item *item, struct bucket_row *ret, struct problem *ret_problem)
{
	struct bucket_row row = {0};
	int64_t generation = 0, made = 0;
	bool good = read_text(item, "version", row.version, sizeof row.version) && *row.version;
	good = good && read_text(item, "object", row.id, sizeof row.id);
	good = good && read_text(item, "object_key", row.id_key, sizeof row.id_key);
	good = good && read_text(item, "last_key", row.last_key, sizeof row.last_key);
	good = good && read_text(item, "last_etag", row.last_etag, sizeof row.last_etag);
	good = good && read_text(item, "server", row.honours_server, sizeof row.honours_server);
	good = good && item_number(item, "generation", &generation) == 0;
	good = good && generation >= 0 && generation <= INT_MAX;
	if (!good) {
		problem_set(ret_problem,
			"the row of this bucket in the mark store (its pk begins with \"bucket#\") is "
			"damaged, or of a later version of s3once: use that one");
		return OUTCOME_SETUP;
	}
	row.generation = (unsigned)generation;
	if (item_number(item, "object_made", &made) || made != 1)
		row.id[0] = '\0';
	read_time(item, "honours_at", &row.honours_at_s);
	read_time(item, "at", &row.at_s);
	row.honours = read_honours(item);
	*ret = row;
	return OUTCOME_OK;
}

enum outcome bucket_row_read(struct store_conn *conn, const struct mark_space *space,
	const struct call_limits *limits, struct bucket_row *ret, struct problem *ret_problem)
{
	char pk[ROW_PK_MAX];
	struct item item = {0};
	*ret = (struct bucket_row){0};
	enum outcome o =
		conn->store->ops->get(conn, row_key(space, pk), true, limits, &item, ret_problem);
	if (o == OUTCOME_ABSENT)
		o = OUTCOME_OK;
	else if (o == OUTCOME_OK)
		o = read_row_of_bucket(&item, ret, ret_problem);
	item_clear(&item);
	return o;
}

static int set_if_told(struct item *item, const char *name, const char *value)
{
	return *value ? item_set_string(item, name, value) : 0;
}

static int set_honours(struct item *item, const struct bucket_row *row)
{
	char names[64] = "";
	size_t n = 0;
	for (unsigned i = 0; i < BUCKET_CONDITIONS; i++)
		if (row->honours & 1U << i)
			n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? " " : "",
				condition_names[i]);
	int error = set_if_told(item, "honours", names);
	if (!error)
		error = set_if_told(item, "server", row->honours_server);
	if (!error && row->honours_at_s)
		error = item_set_number(item, "honours_at", row->honours_at_s);
	return error;
}

static int row_item(const struct bucket_row *row, struct item *ret)
{
	int error = item_set_string(ret, "version", row->version);
	if (!error && *row->id)
		error = item_set_number(ret, "object_made", 1);
	if (!error)
		error = set_if_told(ret, "object", row->id);
	if (!error)
		error = set_if_told(ret, "object_key", row->id_key);
	if (!error)
		error = set_if_told(ret, "last_key", row->last_key);
	if (!error)
		error = set_if_told(ret, "last_etag", row->last_etag);
	if (!error)
		error = set_honours(ret, row);
	if (!error)
		error = item_set_number(ret, "generation", row->generation);
	if (!error)
		error = item_set_number(ret, "at", row->at_s);
	return error;
}

enum outcome bucket_row_write(struct store_conn *conn, const struct mark_space *space,
	struct bucket_row *row, const struct call_limits *limits, struct bucket_row *ret_seen,
	struct problem *ret_problem)
{
	char pk[ROW_PK_MAX];
	struct item item = {0}, present = {0};
	struct bucket_row next = *row;
	const struct condition as_seen =
		*row->version ? (struct condition){"version", CONDITION_EQUALS, VALUE_STRING,
					row->version}
			      : (struct condition){"pk", CONDITION_ABSENT, VALUE_STRING, NULL};
	random_id(next.version);
	next.at_s = store_time_s(conn->store);
	*ret_seen = (struct bucket_row){0};
	enum outcome o = OUTCOME_LOCAL;
	if (row_item(&next, &item))
		problem_set(ret_problem, "out of memory");
	else
		o = conn->store->ops->write(conn, row_key(space, pk),
			&(struct item_write){
				.item = &item, .conditions = &as_seen, .n_conditions = 1},
			limits, &present, ret_problem);
	if (o == OUTCOME_REFUSED && !item_is_empty(&present))
		o = read_row_of_bucket(&present, ret_seen, ret_problem) == OUTCOME_OK
			    ? o
			    : OUTCOME_SETUP;
	/* Any refusal may be the echo of our own write. */
	if (o == OUTCOME_REFUSED && strcmp(ret_seen->version, next.version) == 0)
		o = OUTCOME_OK;
	if (o == OUTCOME_OK)
		*row = next;
	item_clear(&item);
	item_clear(&present);
	return o;
}
