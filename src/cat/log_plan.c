/* Decides about the printing of a log: the order of its objects, the bytes missing between them,
 * and those uploaded twice because marks were lost. known_logs.h has the rules. */
#include "cat/log_plan.h"
#include "base/clock.h"
#include "cat/unpack.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A comparison of an object's content with a log that it may repeat. */
struct comparison {
	const struct known_log *log;
	uint64_t at;    /* offset in the log */
	size_t i;       /* the log's range at this offset, or the next one; log->n: none is left */
	size_t n_equal; /* ranges that have proved to have the same bytes */
	struct digest digest; /* digest of the bytes since the last boundary of a range */
};

/* Returns the next boundary: the offset at which ranges[i] starts or ends. */
static uint64_t next_boundary(const struct comparison *c)
{
	if (c->i == c->log->n)
		return UINT64_MAX;
	const struct log_range *range = &c->log->ranges[c->i];
	return c->at < range->start ? range->start : range->end;
}

/* Called when c->at has reached next_boundary(). Compares the range if it ends there, and begins
 * the digest of the bytes after it. Returns 0, -ECANCELED if the range differs, or
 * -errno. */
static int pass_boundary(struct comparison *c)
{
	const struct log_range *range = &c->log->ranges[c->i];
	char id[2 * sizeof(((struct sums *)0)->sha256) + 1];
	struct sums sums;
	if (c->at == range->end) {
		digest_finish(&c->digest, &sums);
		hex_encode(sums.sha256, sizeof sums.sha256, id);
		if (*range->id && strcmp(range->id, id) != 0)
			return -ECANCELED;
		c->n_equal += *range->id != '\0';
		c->i++;
	}
	return digest_restart(&c->digest, DIGEST_SHA256);
}

/* Digests n bytes of the object's content, and compares each range of the log at its end. It is the
 * `take` of unpack(). Returns 0, -ECANCELED if a range differs, or -errno. */
static int compare_bytes(void *arg, const unsigned char *bytes, size_t n)
{
	struct comparison *c = arg;
	int r = 0;
	while (r == 0 && n) {
		const uint64_t left = next_boundary(c) - c->at;
		const size_t taken = left < n ? (size_t)left : n;
		digest_update(&c->digest, bytes, taken);
		c->at += taken;
		bytes += taken;
		n -= taken;
		if (taken == left)
			r = pass_boundary(c);
	}
	return r;
}

/* Reads the object to its end, and compares its content with the log. *ret_last has the sums of the
 * bytes after the last boundary. Returns 0, -ECANCELED if a range differs, or
 * another -errno if the object cannot be read. */
static int read_and_compare(struct read_ahead *ahead, const struct log_object *object,
	struct comparison *c, struct sums *ret_last)
{
	struct unpack u = {.take = compare_bytes, .arg = c};
	struct read_range range;
	struct problem ignored;
	int r = digest_restart(&c->digest, DIGEST_SHA256);
	read_ahead_begin(ahead, object, 1);
	do {
		if (r == 0 && read_ahead_next(ahead, object, &range, &ignored) != OUTCOME_OK)
			r = -EIO;
		if (r == 0)
			r = unpack(&u, &range, &ignored);
	} while (r == 0 && range.n);
	if (r == 0)
		digest_finish(&c->digest, ret_last);
	unpack_clear(&u);
	digest_clear(&c->digest);
	return r;
}

/* Reads the object, and compares it with the log. If it repeats the log, sets
 * object->repeated_bytes, and sets *ret_rest to the range after the log in it, if there is any.
 * Otherwise returns false, also if the object cannot be read. */
static bool object_repeats_log(struct read_ahead *ahead, struct log_object *object,
	const struct known_log *log, struct log_range *ret_rest)
{
	struct comparison c = {.log = log, .at = object->range.start};
	struct sums sums; /* if the object is longer than the log: of its bytes after the log */
	/* The object has only a part of a range that begins before it, so the first range that can
	 * be compared is the next one. */
	while (c.i < log->n && log->ranges[c.i].start < c.at)
		c.i++;
	const int error = read_and_compare(ahead, object, &c, &sums);
	/* Two logs may be equal, see known_log_may_repeat(). */
	const bool is_equal = log->n == 1 && object->range.start == log->start && c.at == log->end;
	if (error || !c.n_equal || is_equal)
		return false;
	object->repeated_bytes = c.at <= log->end ? REPEATS_ALL : log->end - object->range.start;
	*ret_rest = object->range;
	ret_rest->start = log->end;
	ret_rest->end = c.at;
	hex_encode(sums.sha256, sizeof sums.sha256, ret_rest->id);
	return true;
}

/* Sets the range of an object by its name, the listing and its metadata. */
static void set_range(struct log_object *object)
{
	const struct s3_meta *meta = &object->head.meta;
	struct log_range *range = &object->range;
	range->start = object->by_name.offset;
	if (*meta->encoding)
		range->end = range->start + meta->content_bytes;
	/* A log that was compressed before it was uploaded has an unknown length. */
	else if (*object->by_name.suffix)
		range->end = LENGTH_UNKNOWN;
	else
		range->end = range->start + object->size;
	memcpy(range->id, meta->content_id, sizeof range->id);
	memcpy(range->table, meta->table_id, sizeof range->table);
}

/* Returns the offset from which bytes are missing before an object that continues no known log. The
 * object is taken for a piece of the latest log that ends before `start`; 0: there is no such log.
 */
static uint64_t find_gap_start(const struct known_logs *known, uint64_t start)
{
	for (size_t i = 0; i < known->n; i++)
		if (known->logs[i].end < start)
			return known->logs[i].end;
	return 0;
}

/* Sets gap_start and repeated_bytes of an object: it continues a known log, or repeats bytes of
 * one, or neither. Then adds its range to the known logs. Returns 0 or -ENOMEM. */
static int plan_object(
	struct known_logs *known, struct read_ahead *ahead, struct log_object *object)
{
	const uint64_t start = object->range.start;
	struct log_range rest;
	struct known_log *log = known_logs_find_continued(known, start);
	object->gap_start = start; /* nothing is missing */
	object->repeated_bytes = 0;
	if (log || !log_object_is_read(object))
		return known_logs_add(known, log, &object->range);
	for (size_t i = 0; i < known->n; i++) {
		log = &known->logs[i];
		if (!known_log_may_repeat(log, &object->range) ||
			!object_repeats_log(ahead, object, log, &rest))
			continue;
		const bool has_rest = object->repeated_bytes != REPEATS_ALL;
		return has_rest ? known_logs_add(known, log, &rest) : 0;
	}
	object->gap_start = find_gap_start(known, start);
	return known_logs_add(known, NULL, &object->range);
}

/* Returns the time of the last write to the log, as the metadata or else the name have it. */
static int64_t written_ns(const struct log_object *object)
{
	const int64_t mtime_ns = object->head.meta.mtime_ns;
	return mtime_ns ? mtime_ns : object->by_name.time_s * (int64_t)NS_PER_S;
}

/* For qsort(): compares objects by their last line, and those of the same time by their offset in
 * the log. */
static int compare_order(const void *a, const void *b)
{
	const struct log_object *x = a, *y = b;
	if (x->by_name.time_s != y->by_name.time_s)
		return x->by_name.time_s < y->by_name.time_s ? -1 : 1;
	if (written_ns(x) != written_ns(y))
		return written_ns(x) < written_ns(y) ? -1 : 1;
	if (x->range.start != y->range.start)
		return x->range.start < y->range.start ? -1 : 1;
	return strcmp(x->key, y->key);
}

static bool has_same_time(const struct log_object *a, const struct log_object *b)
{
	return a->by_name.time_s == b->by_name.time_s && written_ns(a) == written_ns(b);
}

/* Chooses the object that is planned next, and swaps it with objects[0]. The n objects are sorted
 * by time. Among those of the earliest time, one that continues a known log is chosen, since the
 * last piece of a log comes before the next log. */
static void choose_first(struct known_logs *known, struct log_object *objects, size_t n)
{
	for (size_t i = 0; i < n && has_same_time(&objects[i], &objects[0]); i++)
		if (known_logs_find_continued(known, objects[i].range.start)) {
			const struct log_object chosen = objects[i];
			objects[i] = objects[0];
			objects[0] = chosen;
			return;
		}
}

int log_plan(struct known_logs *known, struct read_ahead *ahead, struct log_object *objects,
	size_t n, struct problem *ret_problem)
{
	for (size_t i = 0; i < n; i++)
		set_range(&objects[i]);
	qsort(objects, n, sizeof *objects, compare_order);
	for (size_t i = 0; i < n; i++) {
		choose_first(known, objects + i, n - i);
		if (plan_object(known, ahead, &objects[i]))
			return problem_error(ret_problem, -ENOMEM, "out of memory");
	}
	return 0;
}
