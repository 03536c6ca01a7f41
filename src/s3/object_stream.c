/* Reads the listing of a bucket as a stream. A page of the listing is kept as a linked list. If a
 * server does not list in byte order, the stream ends with UNSUPPORTED where the order is wrong.
 * The objects before that point are right. */
#include "s3/object_stream.h"
#include <stdlib.h>
#include <string.h>

/* An object of the page. */
struct row {
	struct row *next;
	struct s3_listed object;
	char key[];
};

struct object_stream {
	struct s3_conn *conn;
	const char *prefix;
	struct call_limits limits;
	struct row *current;      /* the row that was handed out last; NULL: none */
	struct row *first, **end; /* the rows that were not handed out yet */
	/* The last key that was listed, after which the next page begins. It is borrowed from its
	 * row, which is kept until the next page was read. Before the first page, it is the `after`
	 * of object_stream_new(). */
	const char *last;
	/* `ended`: the last page was read. `is_in_disorder`: the server has listed a key that is
	 * not greater than the key before it. */
	bool ended, is_in_disorder;
};

struct object_stream *object_stream_new(struct s3_conn *conn, const char *prefix, const char *after,
	const struct call_limits *limits)
{
	struct object_stream *stream = calloc(1, sizeof *stream);
	if (!stream)
		return NULL;
	stream->conn = conn;
	stream->prefix = prefix;
	stream->limits = *limits;
	stream->end = &stream->first;
	stream->last = after ? after : "";
	return stream;
}

/* Frees the current row, and makes the next one current. */
static void advance_row(struct object_stream *stream)
{
	free(stream->current);
	stream->current = stream->first;
	if (stream->first)
		stream->first = stream->first->next;
	if (!stream->first)
		stream->end = &stream->first;
}

void object_stream_free(struct object_stream *stream)
{
	if (!stream)
		return;
	while (stream->current || stream->first)
		advance_row(stream);
	free(stream);
}

/* Adds a listed object to the page. Returns 0, or -1 to end the listing: is_in_disorder was set, or
 * memory has run out. The rows of the objects before it stay, and are freed with the stream. */
static int add_object(void *arg, const struct s3_listed *object)
{
	struct object_stream *stream = arg;
	const size_t key_bytes = strlen(object->key) + 1;
	stream->is_in_disorder = strcmp(stream->last, object->key) >= 0;
	struct row *row = stream->is_in_disorder ? NULL : malloc(sizeof *row + key_bytes);
	if (!row)
		return -1;
	row->next = NULL;
	row->object = *object;
	row->object.key = memcpy(row->key, object->key, key_bytes);
	*stream->end = row;
	stream->end = &row->next;
	stream->last = row->object.key;
	return 0;
}

bool object_stream_needs_page(const struct object_stream *stream)
{
	return !stream->first && !stream->ended;
}

enum outcome object_stream_next(
	struct object_stream *stream, const struct s3_listed **ret, struct problem *ret_problem)
{
	/* s3_list_objects() refuses an empty page that is not the last one, so one page suffices.
	 */
	if (object_stream_needs_page(stream)) {
		const struct s3_listing listing = {.prefix = stream->prefix,
			.after = stream->last,
			.each = add_object,
			.arg = stream};
		bool more = false;
		const enum outcome o = s3_list_objects(
			stream->conn, &listing, &stream->limits, &more, ret_problem);
		if (stream->is_in_disorder)
			return outcome_error(ret_problem, OUTCOME_UNSUPPORTED,
				"the server does not list objects in byte order (after '%s')",
				quote(listing.after).text);
		if (o == OUTCOME_LOCAL) /* add_object() found no memory for an object */
			return outcome_no_memory(ret_problem);
		if (o != OUTCOME_OK)
			return o;
		stream->ended = !more;
	}
	advance_row(stream);
	*ret = stream->current ? &stream->current->object : NULL;
	return OUTCOME_OK;
}
