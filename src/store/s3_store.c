/* The store for locks of many hosts without a database: each item is a small object in S3, whose
 * content is its JSON. Only locks are kept here. For marks it would be too expensive: two requests
 * to write each, and a listing and a GET to read it.
 *
 * S3 has conditions only on the etag. So a write reads the object, judges its conditions by the
 * item that it has read, and puts the new object on condition that the old one still has the same
 * etag (If-Match), or that there still is none (If-None-Match). If that is refused, another writer
 * was faster, and everything begins again with a fresh read. The etag changes with the content, so
 * the conditions, which held for the object that was read, still hold at the moment of the put. The
 * objects are in s3_store_object.c. */
#include "store/s3_store.h"
#include "aws/retry.h"
#include "base/random.h"
#include "s3/object_stream.h"
#include "store/item_json.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_MAX_BYTES (1 << 20) /* size limit of a page of query() */
/* The most rounds of a write, each of which begins because another writer was faster in the round
 * before. One of the writers finishes in each round, and no row ever has so many writers at once.
 */
#define ROUNDS_MAX 64
/* A pause between two rounds is random, and shorter than this, doubled with each round, five times
 * at most. */
#define PAUSE_MS 20U

static struct s3_store_conn *conn_of(struct store_conn *conn)
{
	return (struct s3_store_conn *)conn;
}

/* Returns the condition of the put: that the object is still the row that was read. A put or a
 * removal without conditions has none: it replaces any object, even one that has changed since. */
static struct s3_condition condition_of(
	const struct item_write *write, const struct s3_store_row *row)
{
	const bool is_update = !write->item && !write->removes;
	if (!is_update && !write->n_conditions)
		return (struct s3_condition){0};
	const bool was_there = *row->etag != 0;
	return (struct s3_condition){
		.if_none_match = !was_there, .if_match = was_there ? row->etag : NULL};
}

/* Writes the new content of the object to conn->body, which stays empty if the item is removed. An
 * update changes row->item. OK, or the fault with a sentence. */
static enum outcome make_body(struct s3_store_conn *conn, struct item_key key,
	const struct item_write *write, struct s3_store_row *row, struct problem *ret_problem)
{
	const bool is_update = !write->item && !write->removes;
	int error = is_update ? write_update(write, &row->item) : 0;
	text_reset(&conn->body);
	if (!error && !write->removes)
		error = item_to_doc(is_update ? &row->item : write->item, &conn->body);
	if (error == -ENOMEM)
		return outcome_no_memory(ret_problem);
	if (error)
		return outcome_error(ret_problem, OUTCOME_INVALID, "the row of %s %s",
			quote(key.sk).text,
			error == -EMSGSIZE ? "would be larger than 1 MiB"
			: error == -EILSEQ ? "would have text that is not UTF-8"
					   : "has something other than a number in a counter");
	return OUTCOME_OK;
}

/* Puts the object of conn->body in place of the row that was read. CONFLICT: another writer was
 * faster, so that the object is not that row any more. */
static enum outcome replace_row(struct s3_store_conn *conn, const char *name,
	const struct item_write *write, const struct call_limits *limits,
	const struct s3_store_row *row, struct problem *ret_problem)
{
	struct s3_object object;
	const enum outcome o =
		s3_store_put(conn, name, condition_of(write, row), limits, &object, ret_problem);
	/* S3 answers a condition on the etag of an object that is gone with 404 (ABSENT). */
	if (o == OUTCOME_REFUSED || o == OUTCOME_ABSENT)
		return OUTCOME_CONFLICT;
	return o == OUTCOME_UNSUPPORTED ? OUTCOME_SETUP : o;
}

/* One attempt of a write: reads the row, checks the conditions, and puts the new row. REFUSED: the
 * conditions are not met, and *row is the row that was read. CONFLICT: another writer was faster.
 * OK: if write->returns_item is set, row->item is the new item. */
static enum outcome write_once(struct s3_store_conn *conn, struct item_key key,
	const struct item_write *write, const struct call_limits *limits, struct s3_store_row *row,
	struct problem *ret_problem)
{
	struct object_name name;
	enum outcome o = s3_store_name(conn->s3_store, key, &name, ret_problem);
	if (o == OUTCOME_OK)
		o = s3_store_read(conn, key, limits, row, ret_problem);
	if (o != OUTCOME_OK)
		return o;
	if (!write_conditions_met(write, &row->item, row->is_there))
		return OUTCOME_REFUSED;
	if (write->removes && !row->is_there)
		return OUTCOME_OK;
	o = make_body(conn, key, write, row, ret_problem);
	if (o == OUTCOME_OK)
		o = replace_row(conn, name.text, write, limits, row, ret_problem);
	if (o == OUTCOME_OK && write->returns_item) {
		s3_store_row_clear(row);
		if (item_from_doc(key, text_string(&conn->body), &row->item))
			o = outcome_no_memory(ret_problem);
	}
	return o;
}

/* Waits a random time, which is longer the more rounds there were, so that writers do not meet
 * again and again. Returns false if there is to be no further round. */
static bool pause_before_round(
	unsigned round, const struct call_limits *limits, struct problem *ret_problem)
{
	const unsigned doublings = round < 5 ? round : 5;
	return round < ROUNDS_MAX &&
	       wait_within(limits, random_below(PAUSE_MS << doublings), ret_problem) == OUTCOME_OK;
}

/* store_ops.write: reads the row and replaces it by a conditional PutObject, again and again as
 * long as another client is faster. Pauses between the rounds. */
static enum outcome write_item(struct store_conn *conn, struct item_key key,
	const struct item_write *write, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	struct s3_store_row row = {0};
	enum outcome o = s3_store_prepare(conn, limits, ret_problem);
	if (o != OUTCOME_OK)
		return o;
	o = OUTCOME_CONFLICT;
	for (unsigned round = 0; o == OUTCOME_CONFLICT; round++) {
		if (round && !pause_before_round(round, limits, ret_problem)) {
			problem_set(ret_problem,
				"the row of %s was changed by others each time that it was to be "
				"written",
				quote(key.sk).text);
			o = OUTCOME_TRANSIENT;
			break;
		}
		s3_store_row_clear(&row);
		row = (struct s3_store_row){0};
		o = write_once(conn_of(conn), key, write, limits, &row, ret_problem);
		/* A refused put may hide an earlier try of ours that was applied. So if a later
		 * read is throttled, the write may have been applied. */
		if (round && o == OUTCOME_THROTTLED)
			o = OUTCOME_TRANSIENT;
	}
	const bool returns_item = o == OUTCOME_REFUSED || (o == OUTCOME_OK && write->returns_item);
	if (ret && returns_item) {
		*ret = row.item;
		row.item = (struct item){0};
	}
	s3_store_row_clear(&row);
	return o;
}

static enum outcome get(struct store_conn *conn, struct item_key key, enum consistency consistency,
	const struct call_limits *limits, struct item *ret, struct problem *ret_problem)
{
	struct s3_store_row row = {0};
	const enum outcome o = s3_store_read(conn_of(conn), key, limits, &row, ret_problem);
	if (o == OUTCOME_OK && row.is_there)
		*ret = row.item;
	else
		s3_store_row_clear(&row);
	return o == OUTCOME_OK && !row.is_there ? OUTCOME_ABSENT : o;
}

/* Reads one item, hands it to the visitor, and adds its size to *bytes. An absent item is
 * skipped. */
static enum outcome visit_item(struct s3_store_conn *conn, struct item_key key,
	const struct call_limits *limits, found_visitor *each, void *arg, size_t *bytes,
	struct problem *ret_problem)
{
	struct s3_store_row row = {0};
	enum outcome o = s3_store_read(conn, key, limits, &row, ret_problem);
	for (size_t i = 0; i < row.item.count; i++)
		*bytes += row.item.attributes[i].n;
	if (o == OUTCOME_OK && row.is_there &&
		each(arg, &(struct found_item){.key = key, .item = &row.item}))
		o = outcome_error(
			ret_problem, OUTCOME_LOCAL, "reading the locks was stopped before its end");
	s3_store_row_clear(&row);
	return o;
}

static enum outcome get_many(struct store_conn *conn, const struct item_key *keys, size_t n,
	const struct call_limits *limits, found_visitor *each, void *arg,
	struct problem *ret_problem)
{
	enum outcome o = OUTCOME_OK;
	size_t unused_bytes = 0;
	for (size_t i = 0; i < n && o == OUTCOME_OK; i++)
		o = visit_item(
			conn_of(conn), keys[i], limits, each, arg, &unused_bytes, ret_problem);
	return o;
}

/* The sort keys of a range, each with its NUL, and pointers to them in the order of their bytes. */
struct sort_keys {
	struct text all;
	const char **list;
	size_t n;
};

/* Lists the objects whose names begin with `prefix`, and adds the sort key of each to *ret. It is
 * the rest of the name, after the `partition_n` bytes of the prefix that are the partition's. */
static enum outcome list_sort_keys(struct s3_store_conn *conn, const char *prefix,
	size_t partition_n, const struct call_limits *limits, struct text *ret,
	struct problem *ret_problem)
{
	struct object_stream *stream = object_stream_new(conn->s3, prefix, NULL, limits);
	const struct s3_listed *object = NULL;
	enum outcome o = stream ? OUTCOME_OK : outcome_no_memory(ret_problem);
	while (o == OUTCOME_OK) {
		o = object_stream_next(stream, &object, ret_problem);
		if (o != OUTCOME_OK || !object)
			break;
		const bool is_removed = !object->size;
		if (!is_removed && strlen(object->key) > partition_n)
			s3_store_add_key(object->key + partition_n, ret);
		if (ret->error)
			o = outcome_no_memory(ret_problem);
	}
	object_stream_free(stream);
	return o;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_in_range(const char *key, const struct store_range *range)
{
	if (range->to && strcmp(key, range->to) > 0)
		return false;
	if (!range->from)
		return true;
	const int order = strcmp(key, range->from);
	return range->after ? order > 0 : order >= 0;
}

/* Sorts the keys that are in the range. Escaped names have another order than the keys, so the
 * server cannot do it. */
static enum outcome sort_keys_in_range(
	struct sort_keys *keys, const struct store_range *range, struct problem *ret_problem)
{
	const char *end = keys->all.data + keys->all.len;
	size_t n_all = 0; /* keys, whether or not they are in the range */
	for (const char *at = keys->all.data; at < end; at += strlen(at) + 1)
		n_all++;
	keys->list = calloc(n_all + 1, sizeof *keys->list);
	if (!keys->list)
		return outcome_no_memory(ret_problem);
	for (const char *at = keys->all.data; at < end; at += strlen(at) + 1) {
		if (is_in_range(at, range))
			keys->list[keys->n++] = at;
	}
	qsort(keys->list, keys->n, sizeof *keys->list, by_bytes);
	return OUTCOME_OK;
}

/* Copies the beginning that both ends of a range share: "" if it has only one end. */
static void copy_common_beginning(
	const struct store_range *range, char ret[static KEY_BYTES_MAX + 1])
{
	const char *from = range->from ? range->from : "", *to = range->to ? range->to : "";
	size_t n = 0;
	while (n < KEY_BYTES_MAX && from[n] && from[n] == to[n])
		n++;
	memcpy(ret, from, n);
	ret[n] = '\0';
}

/* Makes the prefix of the names of a range: the prefix of the partition, and the beginning that
 * both ends of the range share. *ret_partition_n is the length of the former. */
static enum outcome range_prefix(struct s3_store_conn *conn, const struct store_range *range,
	struct object_name *ret, size_t *ret_partition_n, struct problem *ret_problem)
{
	char common[KEY_BYTES_MAX + 1];
	const enum outcome o =
		s3_store_name(conn->s3_store, (struct item_key){range->pk, ""}, ret, ret_problem);
	if (o != OUTCOME_OK)
		return o;
	*ret_partition_n = strlen(ret->text);
	copy_common_beginning(range, common);
	return s3_store_name(
		conn->s3_store, (struct item_key){range->pk, common}, ret, ret_problem);
}

static enum outcome query(struct store_conn *conn, const struct store_range *range,
	const struct call_limits *limits, found_visitor *each, void *arg, bool *ret_more,
	struct problem *ret_problem)
{
	struct s3_store_conn *s3 = conn_of(conn);
	struct sort_keys keys = {.all = TEXT(SIZE_MAX)};
	struct object_name prefix;
	size_t partition_n, bytes = 0, i = 0;
	enum outcome o = range_prefix(s3, range, &prefix, &partition_n, ret_problem);
	if (o == OUTCOME_OK)
		o = list_sort_keys(s3, prefix.text, partition_n, limits, &keys.all, ret_problem);
	if (o == OUTCOME_OK)
		o = sort_keys_in_range(&keys, range, ret_problem);
	for (; i < keys.n && o == OUTCOME_OK; i++) {
		if ((range->max_items && i == range->max_items) || bytes >= PAGE_MAX_BYTES)
			break;
		const struct item_key key = {range->pk, keys.list[i]};
		o = visit_item(s3, key, limits, each, arg, &bytes, ret_problem);
	}
	*ret_more = i < keys.n;
	free(keys.list);
	text_clear(&keys.all);
	return o;
}

static void conn_free(struct store_conn *conn)
{
	struct s3_store_conn *s3 = conn_of(conn);
	s3_conn_free(s3->s3);
	text_clear(&s3->body);
	free(s3);
}

static int conn_new(struct store *store, struct store_conn **ret)
{
	struct s3_store_conn *conn = calloc(1, sizeof *conn);
	if (!conn)
		return -ENOMEM;
	*conn = (struct s3_store_conn){.conn.store = store,
		.s3_store = (struct s3_store *)store,
		.body = TEXT(S3_STORE_MAX_BYTES)};
	const int error = s3_conn_new(conn->s3_store->s3, &conn->s3);
	if (error)
		conn_free(&conn->conn);
	else
		*ret = &conn->conn;
	return error;
}

static int64_t time_s(const struct store *store)
{
	return service_time_s(store->service);
}

static const char *kind(const struct store *store, size_t i, unsigned long *ret_count)
{
	return service_kind(store->service, i, ret_count);
}

/* Closes a store that may be half made. */
static void close_store(struct store *store)
{
	struct s3_store *s3 = (struct s3_store *)store;
	s3_close(s3->s3);
	free(s3->bucket);
	free(s3->prefix);
	free(s3);
}

static const struct store_ops s3_ops = {
	.conn_new = conn_new,
	.conn_free = conn_free,
	.prepare = s3_store_prepare,
	.write = write_item,
	.get = get,
	.get_many = get_many,
	.query = query,
	.time_s = time_s,
	.kind = kind,
	.close = close_store,
};

/* Splits s3://BUCKET/PREFIX into bucket and prefix. The prefix gets one '/' at its end, unless it
 * is empty. */
static int split_place(struct s3_store *store, const char *place)
{
	const char *bucket = place + strlen(STORE_S3_BEGIN);
	const size_t n = strcspn(bucket, "/");
	const char *prefix = bucket + n + strspn(bucket + n, "/");
	size_t prefix_n = strlen(prefix);
	while (prefix_n && prefix[prefix_n - 1] == '/')
		prefix_n--;
	store->bucket = strndup(bucket, n);
	store->prefix = malloc(prefix_n + 2);
	if (!store->bucket || !store->prefix)
		return -ENOMEM;
	memcpy(store->prefix, prefix, prefix_n);
	memcpy(store->prefix + prefix_n, "/", 2);
	if (!prefix_n)
		*store->prefix = '\0';
	return 0;
}

int store_s3_open(const struct aws_settings *settings, struct http_shared *http, const char *place,
	struct store **ret, struct problem *ret_problem)
{
	struct s3_store *s3 = calloc(1, sizeof *s3);
	if (!s3)
		return problem_error(ret_problem, -ENOMEM, "out of memory");
	s3->store.ops = &s3_ops;
	int error = split_place(s3, place);
	if (error)
		problem_set(ret_problem, "out of memory");
	else
		error = s3_open(settings, http, s3->bucket, &s3->s3, ret_problem);
	if (error) {
		close_store(&s3->store);
		return error;
	}
	s3->store.service = s3_service(s3->s3);
	*ret = &s3->store;
	return 0;
}
