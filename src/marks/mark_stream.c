/* Reads many marks of a bucket. struct mark_pages reads each shard separately, page by page. Runs
 * (known.c) use it, and so does witness.c, which searches for an object that proves that this is
 * the bucket of the marks. struct mark_stream makes one sorted stream of these pages, for verify,
 * forget, gc and status. The stream is sorted by the keys of the marks, or if its caller asks for
 * that, by the keys of the objects. A suffix makes the key of an object greater than that of its
 * mark. So such a mark waits until all marks whose objects have lesser keys were returned. Nothing
 * here writes. */
#include "marks/mark_stream.h"
#include "base/text.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The smallest page size of a stream, however many shards there are. */
#define PAGE_ROWS_MIN 20
#define WAITING_MAX   (KEY_BYTES_MAX + 2) /* more than ever wait, see by_object in mark_stream.h */

/* The position in a shard: rows[at..n) are the rest of its page. Zero: no page was read. */
struct shard {
	struct packed_mark **rows; /* each owned */
	size_t n, at, cap;
	char *last;     /* the key of the last mark that was read, owned */
	bool has_ended; /* the store has no more marks after this page */
};

struct mark_pages {
	struct mark_pages_options options;
	size_t passed; /* marks that were taken, or passed by mark_pages_seek() */
	struct shard shards[];
};

int mark_pages_new(const struct mark_pages_options *options, struct mark_pages **ret)
{
	const unsigned n = options->space->settings.shards;
	struct mark_pages *pages = calloc(1, sizeof *pages + n * sizeof *pages->shards);
	if (!pages)
		return -ENOMEM;
	pages->options = *options;
	*ret = pages;
	return 0;
}

static void empty_shard(struct shard *shard)
{
	while (shard->at < shard->n)
		free(shard->rows[shard->at++]);
	shard->n = shard->at = 0;
}

void mark_pages_free(struct mark_pages *pages)
{
	if (!pages)
		return;
	for (unsigned i = 0; i < pages->options.space->settings.shards; i++) {
		empty_shard(&pages->shards[i]);
		free(pages->shards[i].rows);
		free(pages->shards[i].last);
	}
	free(pages);
}

/* Adds a mark to the page of a shard. 0 or -ENOMEM. */
static int add_row(void *arg, const struct found_item *found)
{
	struct shard *shard = arg;
	if (shard->n == shard->cap) {
		const size_t cap = shard->cap ? 2 * shard->cap : 64;
		struct packed_mark **rows = realloc(shard->rows, cap * sizeof(void *));
		if (!rows)
			return -ENOMEM;
		shard->rows = rows;
		shard->cap = cap;
	}
	struct packed_mark *row = mark_pack(found);
	if (row)
		shard->rows[shard->n++] = row;
	return row ? 0 : -ENOMEM;
}

enum outcome mark_pages_load(struct mark_pages *pages, struct store_conn *conn, unsigned number,
	const char *from, const char *to, struct problem *ret_problem)
{
	struct shard *shard = &pages->shards[number];
	char partition[PARTITION_MAX];
	/* The page begins after the last mark that was read, unless `from` is further on. */
	const bool goes_on = shard->last && strcmp(shard->last, from) >= 0;
	const char *first = *from ? from : NULL; /* NULL: the first mark of the shard */
	const struct store_range range = {.pk = partition,
		.from = goes_on ? shard->last : first,
		.after = goes_on,
		.to = to,
		.max_items = pages->options.page_rows,
		.consistent = pages->options.is_consistent};
	bool more = false;
	mark_partition(pages->options.space, number, partition);
	empty_shard(shard);
	const enum outcome o = conn->store->ops->query(
		conn, &range, &pages->options.limits, add_row, shard, &more, ret_problem);
	if (o != OUTCOME_OK) {
		empty_shard(shard);
		return o;
	}
	shard->has_ended = !more || !shard->n; /* the page after an empty one would be the same */
	if (!shard->n)
		return OUTCOME_OK;
	free(shard->last);
	shard->last = strdup(shard->rows[shard->n - 1]->key);
	return shard->last ? OUTCOME_OK : outcome_no_memory(ret_problem);
}

enum outcome mark_pages_seek(struct mark_pages *pages, struct store_conn *conn, unsigned number,
	const char *from, const char *to, const struct packed_mark **ret,
	struct problem *ret_problem)
{
	struct shard *shard = &pages->shards[number];
	for (;;) {
		while (shard->at < shard->n && strcmp(shard->rows[shard->at]->key, from) < 0)
			free(mark_pages_take(pages, number));
		*ret = shard->at < shard->n ? shard->rows[shard->at] : NULL;
		if (*ret || shard->has_ended)
			return OUTCOME_OK;
		const enum outcome o = mark_pages_load(pages, conn, number, from, to, ret_problem);
		if (o != OUTCOME_OK)
			return o;
	}
}

struct packed_mark *mark_pages_take(struct mark_pages *pages, unsigned number)
{
	struct shard *shard = &pages->shards[number];
	pages->passed++;
	return shard->rows[shard->at++];
}

size_t mark_pages_passed(const struct mark_pages *pages)
{
	return pages->passed;
}

struct mark_stream {
	struct store_conn *conn;
	struct mark_pages *pages;
	struct mark_range range;
	char to[KEY_BYTES_MAX + 1]; /* the last key that can begin with the prefix */
	/* For the order of objects. `waiting` are the marks that wait for their turn, the one with
	 * the largest object first, so that the last one is next. `ahead` is the mark that was read
	 * after them, or NULL. */
	struct packed_mark *waiting[WAITING_MAX], *ahead;
	size_t n_waiting;
	bool has_begun;
	bool has_ended; /* there are no more marks to be read */
};

/* Makes the largest key that begins with a prefix: it is filled up with the greatest character,
 * U+10FFFF, to the greatest length of a key. Returns false if the prefix is longer than any key. */
static bool last_key_with_prefix(const char *prefix, char ret[static KEY_BYTES_MAX + 1])
{
	/* The greatest character of each length in UTF-8. */
	static const char *const greatest[] = {
		"", "\x7F", "\xDF\xBF", "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF"};
	size_t n = strlen(prefix), bytes;
	if (n > KEY_BYTES_MAX)
		return false;
	memcpy(ret, prefix, n + 1);
	for (; n < KEY_BYTES_MAX; n += bytes) {
		bytes = KEY_BYTES_MAX - n < 4 ? KEY_BYTES_MAX - n : 4;
		strcpy(ret + n, greatest[bytes]);
	}
	return true;
}

int mark_stream_new(struct store_conn *conn, const struct mark_space *space,
	const struct mark_range *range, const struct call_limits *limits, struct mark_stream **ret)
{
	const unsigned rows = MARK_STREAM_ROWS / space->settings.shards;
	const struct mark_pages_options options = {.space = space,
		.limits = *limits,
		.page_rows = rows < PAGE_ROWS_MIN ? PAGE_ROWS_MIN : rows};
	struct mark_stream *stream = calloc(1, sizeof *stream);
	if (!stream || mark_pages_new(&options, &stream->pages)) {
		free(stream);
		return -ENOMEM;
	}
	stream->conn = conn;
	stream->range = *range;
	if (!range->after)
		stream->range.after = "";
	/* If the prefix is too long for a key, there is nothing to read. */
	stream->has_begun = stream->has_ended = !last_key_with_prefix(range->prefix, stream->to);
	*ret = stream;
	return 0;
}

void mark_stream_free(struct mark_stream *stream)
{
	if (!stream)
		return;
	while (stream->n_waiting)
		free(stream->waiting[--stream->n_waiting]);
	free(stream->ahead);
	mark_pages_free(stream->pages);
	free(stream);
}

/* Returns the next mark in the order of keys. The first marks of all shards are compared, and the
 * one with the least key is taken. If that is the mark of the key `after`, it is skipped, and the
 * next one is taken. */
static enum outcome next_by_key(
	struct mark_stream *stream, struct packed_mark **ret, struct problem *ret_problem)
{
	const char *after = stream->range.after, *prefix = stream->range.prefix;
	const char *from = strcmp(after, prefix) >= 0 ? after : prefix;
	const unsigned shards = stream->pages->options.space->settings.shards;
	if (stream->has_ended) {
		*ret = NULL;
		return OUTCOME_OK;
	}
	for (;;) {
		const struct packed_mark *first = NULL, *row;
		unsigned shard = 0;
		for (unsigned i = 0; i < shards; i++) {
			const enum outcome o = mark_pages_seek(stream->pages, stream->conn, i, from,
				stream->to, &row, ret_problem);
			if (o != OUTCOME_OK)
				return o;
			if (row && (!first || strcmp(row->key, first->key) < 0)) {
				first = row;
				shard = i;
			}
		}
		*ret = first ? mark_pages_take(stream->pages, shard) : NULL;
		if (!*ret || strcmp((*ret)->key, after) != 0)
			return OUTCOME_OK;
		free(*ret);
	}
}

/* Inserts a mark into the list of waiting marks. If there are too many, frees it and returns
 * -EMSGSIZE. */
static int add_waiting(struct mark_stream *stream, struct packed_mark *row)
{
	size_t at = stream->n_waiting;
	if (at == WAITING_MAX) {
		free(row);
		return -EMSGSIZE;
	}
	for (; at && strcmp(stream->waiting[at - 1]->object_key, row->object_key) < 0; at--)
		stream->waiting[at] = stream->waiting[at - 1];
	stream->waiting[at] = row;
	stream->n_waiting++;
	return 0;
}

/* Lets a mark wait if its object is above `after`. The others are not part of the stream. Returns 0
 * or -errno. */
static int add_beginning(void *arg, const struct found_item *found)
{
	struct mark_stream *stream = arg;
	struct packed_mark *row = mark_pack(found);
	if (row && strcmp(row->object_key, stream->range.after) > 0)
		return add_waiting(stream, row);
	free(row);
	return row ? 0 : -ENOMEM;
}

/* Reads the marks whose keys are beginnings of `after`. They are not in the range, but the keys of
 * their objects, which have a suffix more, may be above `after`: with after "app.log.1", the mark
 * "app.log" has the object "app.log.gz". */
static enum outcome read_beginnings(struct mark_stream *stream, struct problem *ret_problem)
{
	const char *after = stream->range.after;
	const size_t n = strlen(after), n_prefix = strlen(stream->range.prefix);
	char key[KEY_BYTES_MAX + 1], partition[PARTITION_MAX];
	/* If `after` does not begin with the prefix, none of its beginnings does. */
	if (n > KEY_BYTES_MAX || strncmp(after, stream->range.prefix, n_prefix) != 0)
		return OUTCOME_OK;
	enum outcome o = OUTCOME_OK;
	for (size_t bytes = n_prefix ? n_prefix : 1; o == OUTCOME_OK && bytes <= n; bytes++) {
		if (!utf8_valid(after, bytes)) /* cut within a character: not a key */
			continue;
		memcpy(key, after, bytes);
		key[bytes] = '\0';
		const struct item_key one = mark_key(stream->pages->options.space, key, partition);
		o = stream->conn->store->ops->get_many(stream->conn, &one, 1,
			&stream->pages->options.limits, add_beginning, stream, ret_problem);
	}
	return o;
}

/* Whether the first waiting mark can be returned now, in the order of the objects' keys. The marks
 * that do not wait yet have keys >= ahead->key, and object keys >= their own keys. So none of them
 * can come before an object key <= ahead->key. */
static bool is_turn_of_waiting(const struct mark_stream *stream)
{
	if (!stream->n_waiting)
		return false;
	assert(stream->has_ended || stream->ahead);
	const struct packed_mark *first = stream->waiting[stream->n_waiting - 1];
	return stream->has_ended || strcmp(first->object_key, stream->ahead->key) <= 0;
}

/* Makes sure that stream->ahead is the next mark in the order of keys, or NULL at the end. */
static enum outcome read_ahead(struct mark_stream *stream, struct problem *ret_problem)
{
	enum outcome o = OUTCOME_OK;
	if (!stream->has_begun)
		o = read_beginnings(stream, ret_problem);
	stream->has_begun = true;
	if (o != OUTCOME_OK || stream->ahead || stream->has_ended)
		return o;
	o = next_by_key(stream, &stream->ahead, ret_problem);
	stream->has_ended = o == OUTCOME_OK && !stream->ahead;
	return o;
}

/* Returns the next mark in the order of the objects' keys. A mark whose object has a suffix waits
 * until all marks with smaller objects were returned. */
static enum outcome next_by_object(
	struct mark_stream *stream, struct packed_mark **ret, struct problem *ret_problem)
{
	for (;;) {
		const enum outcome o = read_ahead(stream, ret_problem);
		if (o != OUTCOME_OK)
			return o;
		if (is_turn_of_waiting(stream)) {
			*ret = stream->waiting[--stream->n_waiting];
			return OUTCOME_OK;
		}
		struct packed_mark *next = stream->ahead;
		stream->ahead = NULL;
		/* This is the end, or a mark without a suffix, which need not wait: waiting marks
		 * have larger objects, or it would be their turn. */
		if (!next || next->object_key == next->key) {
			*ret = next;
			return OUTCOME_OK;
		}
		if (add_waiting(stream, next) < 0)
			return outcome_error(
				ret_problem, OUTCOME_LOCAL, "too many marks stand for one object");
	}
}

enum outcome mark_stream_next(
	struct mark_stream *stream, struct packed_mark **ret, struct problem *ret_problem)
{
	return (stream->range.by_object ? next_by_object : next_by_key)(stream, ret, ret_problem);
}
