/* The bucket's listing as a stream, and objects read piece by piece, for verify and for whoever
 * looks for manifests. A page is kept as one block of bytes. A server that lists in another order
 * than that of bytes is found out here, and what came before that point is right all the same. */
#include "audit/object_stream.h"
#include "base/quote.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct row {
	size_t key_at, etag_at; /* in bytes */
	uint64_t size;
	int64_t modified_s;
};

struct object_stream {
	struct s3_conn *conn;
	const char *prefix;
	struct call_limits limits;
	struct text bytes; /* keys and etags of the page, each with its NUL */
	struct row *rows;
	size_t n, at, cap;
	char *last; /* the last key that came, owned; NULL: none */
	bool ended, is_in_disorder;
	struct object_row current;
};

/* Of one page: more than 1,000 objects with the longest keys. */
#define PAGE_BYTES_MAX (8U << 20)
/* Of an object, in memory at once. */
#define PIECE_BYTES (4U << 20)

int object_stream_new(struct s3_conn *conn, const char *prefix, const char *after,
	const struct call_limits *limits, struct object_stream **ret)
{
	struct object_stream *stream = calloc(1, sizeof *stream);
	char *last = after && *after ? strdup(after) : NULL;
	if (!stream || (after && *after && !last)) {
		free(stream);
		free(last);
		return -ENOMEM;
	}
	stream->conn = conn;
	stream->prefix = prefix;
	stream->limits = *limits;
	stream->bytes = TEXT(PAGE_BYTES_MAX);
	stream->last = last;
	*ret = stream;
	return 0;
}

void object_stream_free(struct object_stream *stream)
{
	if (!stream)
		return;
	text_clear(&stream->bytes);
	free(stream->rows);
	free(stream->last);
	free(stream);
}

static int add_object(void *arg, const struct s3_listed *object)
{
	struct object_stream *stream = arg;
	const char *before =
		stream->n ? stream->bytes.data + stream->rows[stream->n - 1].key_at : stream->last;
	stream->is_in_disorder = before && strcmp(before, object->key) >= 0;
	if (stream->is_in_disorder)
		return -1;
	if (stream->n == stream->cap) {
		const size_t cap = stream->cap ? 2 * stream->cap : 1024;
		struct row *rows = realloc(stream->rows, cap * sizeof *rows);
		if (!rows)
			return -1;
		stream->rows = rows;
		stream->cap = cap;
	}
	struct row *row = &stream->rows[stream->n];
	row->size = object->size;
	row->modified_s = object->modified_s;
	row->key_at = stream->bytes.len;
	text_add_bytes(&stream->bytes, object->key, strlen(object->key) + 1);
	row->etag_at = stream->bytes.len;
	text_add_bytes(&stream->bytes, object->etag, strlen(object->etag) + 1);
	if (stream->bytes.error)
		return stream->bytes.error;
	stream->n++;
	return 0;
}

static enum outcome load_objects(struct object_stream *stream, struct problem *ret_problem)
{
	const struct s3_listing listing = {.prefix = stream->prefix,
		.after = stream->last ? stream->last : "",
		.each = add_object,
		.arg = stream};
	bool more = false;
	stream->n = stream->at = 0;
	text_reset(&stream->bytes);
	enum outcome o =
		s3_list_objects(stream->conn, &listing, &stream->limits, &more, ret_problem);
	if (stream->is_in_disorder) {
		problem_set(ret_problem,
			"the server does not list objects in byte order (after '%s')",
			quote(stream->last ? stream->last : "").text);
		return OUTCOME_UNSUPPORTED;
	}
	if (o == OUTCOME_OK && stream->n) { /* the next page begins after the last object */
		free(stream->last);
		stream->last = strdup(stream->bytes.data + stream->rows[stream->n - 1].key_at);
		o = stream->last ? OUTCOME_OK : OUTCOME_LOCAL;
	}
	if (o == OUTCOME_LOCAL)
		problem_set(ret_problem, "out of memory");
	stream->ended = !more;
	return o;
}

enum outcome object_stream_next(
	struct object_stream *stream, const struct object_row **ret, struct problem *ret_problem)
{
	while (stream->at == stream->n && !stream->ended) {
		const enum outcome o = load_objects(stream, ret_problem);
		if (o != OUTCOME_OK)
			return o;
	}
	if (stream->at == stream->n) {
		*ret = NULL;
		return OUTCOME_OK;
	}
	const struct row *row = &stream->rows[stream->at++];
	stream->current = (struct object_row){stream->bytes.data + row->key_at, row->size,
		stream->bytes.data + row->etag_at, row->modified_s};
	*ret = &stream->current;
	return OUTCOME_OK;
}

enum outcome object_read(
	const struct object_reading *reading, bool *ret_is_replaced, struct problem *ret_problem)
{
	const struct s3_object *object = reading->object;
	struct http_reply piece = {0};
	char etag[S3_ETAG_MAX + 1];
	enum outcome o = OUTCOME_OK;
	*ret_is_replaced = false;
	for (uint64_t at = 0; o == OUTCOME_OK && at < object->size; at += PIECE_BYTES) {
		const uint64_t left = object->size - at;
		const size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
		o = s3_get_range(reading->conn, reading->target, at, n, reading->limits, &piece,
			etag, ret_problem);
		*ret_is_replaced = o == OUTCOME_OK && strcmp(etag, object->etag) != 0;
		if (*ret_is_replaced)
			problem_set(ret_problem, "it was replaced while it was read");
		if (o == OUTCOME_OK &&
			(*ret_is_replaced || reading->each(reading->arg, piece.body.data, n)))
			o = OUTCOME_LOCAL;
	}
	http_reply_clear(&piece);
	return o;
}
