/* The marks below a prefix as one sorted stream, for everything that goes through many of them:
 * verify, forget, gc, and status --depth. Each shard is queried by itself, page by page, and the
 * least key of all their pages comes next. The order of the objects' keys is made of that one, with
 * a few marks that wait. Nothing here writes, or reads a mark twice. */
#include "audit/mark_stream.h"
#include "scan/key/key.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A page holds at least so many, however many shards there are. */
#define PAGE_ROWS_MIN 20
#define WAITING_MAX   (KEY_BYTES_MAX + 2)

/* Where the query of a shard stands: rows[at..n) are the rest of its page. */
struct shard {
	struct mark_row **rows; /* each owned */
	size_t n, at, cap;
	char *last; /* the key after which the next page begins, owned; NULL: the first page */
	bool ended;
};

struct mark_stream {
	struct store_conn *conn;
	const struct mark_space *space;
	struct call_limits limits;
	struct mark_range range;
	char to[KEY_BYTES_MAX + 1];
	unsigned page_rows;
	/* In the order of objects: those that wait for their turn, falling by the object's key, so
	 * that the last one is the next; and the one that was read ahead of them, or NULL. */
	struct mark_row *waiting[WAITING_MAX], *ahead;
	size_t n_waiting;
	bool has_begun, has_ended;
	struct shard shards[];
};

/* Adds a string to the block that begins at *at, and moves on. */
static const char *place_string(char **at, const char *string)
{
	const size_t n = strlen(string) + 1;
	char *copy = memcpy(*at, string, n);
	*at += n;
	return copy;
}

struct mark_row *mark_row_new(const char *key, const struct mark *mark)
{
	const struct version *done = &mark->done;
	const size_t bytes = 2 * strlen(key) + 2 * strlen(mark->suffix) + strlen(done->etag) +
			     strlen(version_object_sum(done)) + strlen(done->parts_sum) +
			     strlen(done->version_id) + strlen(mark->session) +
			     strlen(mark->claim) + 9;
	struct mark_row *row = malloc(sizeof *row + bytes);
	if (!row)
		return NULL;
	char *at = (char *)(row + 1);
	*row = (struct mark_row){
		.key = place_string(&at, key),
		.state = mark->state,
		.has_done = mark->has_done,
		.etag_is_md5 = done->etag_is_md5,
		.has_newer = mark->has_newer,
		.file_bytes = done->size,
		.size = version_object_bytes(done),
		.part_bytes = done->object_bytes ? 0 : done->part_bytes,
		.etag = place_string(&at, done->etag),
		.sum = place_string(&at, version_object_sum(done)),
		.parts_sum = place_string(&at, done->parts_sum),
		.version_id = place_string(&at, done->version_id),
		.suffix = place_string(&at, mark->suffix),
		.session = place_string(&at, mark->session),
		.claim = place_string(&at, mark->claim),
		.has_upload = mark->upload.is_open,
		.at_s = mark->at_s,
	};
	row->object_key = row->key;
	if (*row->suffix) {
		row->object_key = at;
		stpcpy(stpcpy(at, key), mark->suffix);
	}
	return row;
}

const char *mark_row_teller(const struct mark_row *row)
{
	return row->is_of_manifest ? "the manifest" : "its mark";
}

bool mark_row_is_same(const struct mark_row *a, const struct mark_row *b)
{
	return a->state == b->state && strcmp(a->session, b->session) == 0 &&
	       strcmp(a->claim, b->claim) == 0 && strcmp(a->object_key, b->object_key) == 0 &&
	       a->size == b->size && strcmp(a->etag, b->etag) == 0 && strcmp(a->sum, b->sum) == 0;
}

int mark_stream_new(struct store_conn *conn, const struct mark_space *space,
	const struct mark_range *range, const struct call_limits *limits, struct mark_stream **ret)
{
	const unsigned shards = space->settings.shards;
	struct mark_stream *stream = calloc(1, sizeof *stream + shards * sizeof *stream->shards);
	if (!stream)
		return -ENOMEM;
	stream->conn = conn;
	stream->space = space;
	stream->limits = *limits;
	stream->range = *range;
	if (!range->after)
		stream->range.after = "";
	stream->page_rows = MARK_STREAM_ROWS / shards;
	if (stream->page_rows < PAGE_ROWS_MIN)
		stream->page_rows = PAGE_ROWS_MIN;
	const bool has_any = key_last_below(range->prefix, stream->to);
	for (unsigned i = 0; i < shards; i++)
		stream->shards[i].ended = !has_any;
	*ret = stream;
	return 0;
}

static void empty_shard(struct shard *shard)
{
	while (shard->at < shard->n)
		free(shard->rows[shard->at++]);
	shard->n = shard->at = 0;
}

void mark_stream_free(struct mark_stream *stream)
{
	if (!stream)
		return;
	while (stream->n_waiting)
		free(stream->waiting[--stream->n_waiting]);
	free(stream->ahead);
	for (unsigned i = 0; i < stream->space->settings.shards; i++) {
		empty_shard(&stream->shards[i]);
		free(stream->shards[i].rows);
		free(stream->shards[i].last);
	}
	free(stream);
}

static enum outcome out_of_memory(struct problem *ret_problem)
{
	problem_set(ret_problem, "out of memory");
	return OUTCOME_LOCAL;
}

static struct mark_row *row_of_item(const char *key, const struct item *item, int *ret_error)
{
	struct mark mark;
	*ret_error = mark_from_item(item, &mark);
	if (*ret_error)
		return NULL;
	struct mark_row *row = mark_row_new(key, &mark);
	mark_clear(&mark);
	*ret_error = row ? 0 : -ENOMEM;
	return row;
}

static int add_mark_row(void *arg, const char *pk, const char *sk, const struct item *item)
{
	struct shard *shard = arg;
	int error;
	(void)pk;
	if (shard->n == shard->cap) {
		const size_t cap = shard->cap ? 2 * shard->cap : 64;
		struct mark_row **rows = realloc(shard->rows, cap * sizeof(void *));
		if (!rows)
			return -ENOMEM;
		shard->rows = rows;
		shard->cap = cap;
	}
	struct mark_row *row = row_of_item(sk, item, &error);
	if (row)
		shard->rows[shard->n++] = row;
	return error;
}

/* The first key that the shard's next page may have. */
static void begin_page(
	const struct mark_stream *stream, const struct shard *shard, struct store_range *range)
{
	const bool goes_on = shard->last || strcmp(stream->range.after, stream->range.prefix) >= 0;
	const char *after = shard->last ? shard->last : stream->range.after;
	range->from = goes_on ? after : stream->range.prefix;
	range->after = goes_on;
	if (!*range->from) {
		range->from = NULL;
		range->after = false;
	}
}

static enum outcome load_marks(
	struct mark_stream *stream, unsigned number, struct problem *ret_problem)
{
	struct shard *shard = &stream->shards[number];
	char partition[PARTITION_MAX];
	struct store_range range = {.pk = partition, .to = stream->to, .most = stream->page_rows};
	bool more = false;
	mark_partition(stream->space, number, partition);
	begin_page(stream, shard, &range);
	empty_shard(shard);
	const enum outcome o = stream->conn->store->ops->query(
		stream->conn, &range, &stream->limits, add_mark_row, shard, &more, ret_problem);
	if (o != OUTCOME_OK)
		return o;
	shard->ended = !more || !shard->n;
	if (!shard->n)
		return OUTCOME_OK;
	free(shard->last);
	shard->last = strdup(shard->rows[shard->n - 1]->key);
	return shard->last ? OUTCOME_OK : out_of_memory(ret_problem);
}

static enum outcome next_by_key(
	struct mark_stream *stream, struct mark_row **ret, struct problem *ret_problem)
{
	struct shard *least = NULL;
	for (unsigned i = 0; i < stream->space->settings.shards; i++) {
		struct shard *shard = &stream->shards[i];
		if (shard->at == shard->n && !shard->ended) {
			const enum outcome o = load_marks(stream, i, ret_problem);
			if (o != OUTCOME_OK)
				return o;
		}
		if (shard->at < shard->n && (!least || strcmp(shard->rows[shard->at]->key,
							       least->rows[least->at]->key) < 0))
			least = shard;
	}
	*ret = least ? least->rows[least->at++] : NULL;
	return OUTCOME_OK;
}

static int wait_for_turn(struct mark_stream *stream, struct mark_row *row)
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

static int add_beginning(void *arg, const char *pk, const char *sk, const struct item *item)
{
	struct mark_stream *stream = arg;
	int error;
	(void)pk;
	struct mark_row *row = row_of_item(sk, item, &error);
	if (row && strcmp(row->object_key, stream->range.after) > 0)
		return wait_for_turn(stream, row);
	free(row);
	return error;
}

/* Marks that the range leaves out although their objects are above `after`: their keys are
 * beginnings of it. */
static enum outcome read_beginnings(struct mark_stream *stream, struct problem *ret_problem)
{
	const char *after = stream->range.after;
	const size_t n = strlen(after), least = strlen(stream->range.prefix);
	char key[KEY_BYTES_MAX + 1], partition[PARTITION_MAX];
	if (n > KEY_BYTES_MAX || strncmp(after, stream->range.prefix, least) != 0)
		return OUTCOME_OK;
	enum outcome o = OUTCOME_OK;
	for (size_t bytes = least ? least : 1; o == OUTCOME_OK && bytes <= n; bytes++) {
		if (!utf8_valid(after, bytes))
			continue;
		memcpy(key, after, bytes);
		key[bytes] = '\0';
		mark_partition(
			stream->space, mark_shard(key, stream->space->settings.shards), partition);
		const struct item_key one = {partition, key};
		o = stream->conn->store->ops->get_many(
			stream->conn, &one, 1, &stream->limits, add_beginning, stream, ret_problem);
	}
	return o;
}

/* The first that waits has its turn once no mark to come can have a smaller object: each has a
 * larger key than the one that was read ahead, and no object's key is below its mark's. */
static bool has_turn(const struct mark_stream *stream)
{
	if (!stream->n_waiting)
		return false;
	const struct mark_row *first = stream->waiting[stream->n_waiting - 1];
	return stream->has_ended || strcmp(first->object_key, stream->ahead->key) <= 0;
}

static enum outcome next_by_object(
	struct mark_stream *stream, struct mark_row **ret, struct problem *ret_problem)
{
	enum outcome o = OUTCOME_OK;
	if (!stream->has_begun)
		o = read_beginnings(stream, ret_problem);
	stream->has_begun = true;
	for (; o == OUTCOME_OK; stream->ahead = NULL) {
		if (!stream->ahead && !stream->has_ended) {
			o = next_by_key(stream, &stream->ahead, ret_problem);
			stream->has_ended = o == OUTCOME_OK && !stream->ahead;
		}
		if (o == OUTCOME_OK && has_turn(stream)) {
			*ret = stream->waiting[--stream->n_waiting];
			return OUTCOME_OK;
		}
		if (o == OUTCOME_OK && (!stream->ahead || !*stream->ahead->suffix)) {
			*ret = stream->ahead;
			stream->ahead = NULL;
			return OUTCOME_OK;
		}
		if (o == OUTCOME_OK && wait_for_turn(stream, stream->ahead) < 0) {
			problem_set(ret_problem, "too many marks stand for one object");
			o = OUTCOME_LOCAL;
		}
	}
	return o;
}

enum outcome mark_stream_next(
	struct mark_stream *stream, struct mark_row **ret, struct problem *ret_problem)
{
	return (stream->range.by_object ? next_by_object : next_by_key)(stream, ret, ret_problem);
}
