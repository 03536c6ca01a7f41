#include "scan/content/content_range.h"
#include "base/checksum.h"
#include "base/text.h"
#include "base/write_all.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

static int peek(const struct digest *digest, char ret_id[static CONTENT_ID_CHARS + 1])
{
	struct sums sums;
	const int error = digest_peek(digest, &sums);
	if (!error)
		hex_encode(sums.sha256, sizeof sums.sha256, ret_id);
	return error;
}

struct points {
	struct digest digest;
	struct content_point *points;
	size_t n, next;
};

/* Fills the points that lie where the digest is. */
static int fill_points(struct points *p)
{
	int error = 0;
	for (; !error && p->next < p->n && p->points[p->next].at == p->digest.sums.bytes;
		p->next++) {
		error = peek(&p->digest, p->points[p->next].id);
		p->points[p->next].is_there = !error;
	}
	return error;
}

static int begin_points(void *arg)
{
	struct points *p = arg;
	p->next = 0;
	for (size_t i = 0; i < p->n; i++)
		p->points[i].is_there = false;
	const int error = digest_restart(&p->digest, DIGEST_SHA256);
	return error ? error : fill_points(p);
}

static int take_points(void *arg, const unsigned char *bytes, size_t n)
{
	struct points *p = arg;
	int error = 0;
	while (!error && n) {
		const uint64_t left =
			p->next < p->n ? p->points[p->next].at - p->digest.sums.bytes : n;
		const size_t now = left < n ? (size_t)left : n;
		digest_update(&p->digest, bytes, now);
		bytes += now;
		n -= now;
		error = fill_points(p);
	}
	return error;
}

int content_points(const struct content *content, struct content_point *points, size_t n,
	uint64_t *ret_size, struct problem *ret_problem)
{
	struct points p = {.points = points, .n = n};
	int r = digest_init(&p.digest, DIGEST_SHA256);
	if (r < 0)
		return r;
	const struct content_sink sink = {begin_points, take_points, &p};
	r = content_read(content, &sink, ret_problem);
	*ret_size = p.digest.sums.bytes;
	digest_clear(&p.digest);
	return r;
}

struct copying {
	struct points points; /* the ends of the range */
	struct digest digest; /* of the range */
	const struct content_range *range;
	uint64_t at;
};

static int begin_range(void *arg)
{
	struct copying *c = arg;
	c->at = 0;
	if (c->range->copy_fd >= 0 &&
		(ftruncate(c->range->copy_fd, 0) < 0 || lseek(c->range->copy_fd, 0, SEEK_SET) < 0))
		return -errno;
	const int error = digest_restart(&c->digest, DIGEST_SHA256);
	return error ? error : begin_points(&c->points);
}

static int take_range(void *arg, const unsigned char *bytes, size_t n)
{
	struct copying *c = arg;
	const uint64_t from = c->range->from, to = c->range->to, at = c->at;
	const size_t wanted = to - at < n ? (size_t)(to - at) : n,
		     skipped = from <= at           ? 0
			       : from - at < wanted ? (size_t)(from - at)
						    : wanted;
	int error = take_points(&c->points, bytes, wanted);
	digest_update(&c->digest, bytes + skipped, wanted - skipped);
	if (!error && c->range->copy_fd >= 0)
		error = write_all(c->range->copy_fd, bytes + skipped, wanted - skipped);
	c->at += wanted;
	return error ? error : c->at == to;
}

int content_range(const struct content *content, const struct content_range *range,
	struct content_range_ids *ret, struct problem *ret_problem)
{
	struct content_point ends[] = {{.at = range->from}, {.at = range->to}};
	struct copying c = {.points = {.points = ends, .n = 2}, .range = range};
	int r = digest_init(&c.points.digest, DIGEST_SHA256);
	if (r < 0)
		return r;
	r = digest_init(&c.digest, DIGEST_SHA256);
	if (r < 0) {
		digest_clear(&c.points.digest);
		return r;
	}
	const struct content_sink sink = {begin_range, take_range, &c};
	r = content_read(content, &sink, ret_problem);
	if (r == 0 && !ends[1].is_there)
		r = -ESTALE;
	if (r == 0)
		r = peek(&c.digest, ret->range);
	memcpy(ret->before, ends[0].id, sizeof ret->before);
	memcpy(ret->until, ends[1].id, sizeof ret->until);
	digest_clear(&c.points.digest);
	digest_clear(&c.digest);
	return r;
}
