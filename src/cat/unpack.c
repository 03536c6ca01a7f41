/* Unpacks an object, for comparing it (log_plan.c) and for printing it (log_cat.c). */
#include "cat/unpack.h"
#include <errno.h>
#include <stdlib.h>

#define OUT_BYTES (256U << 10)

static int unpack_compressed(
	struct unpack *u, const struct read_range *range, struct problem *ret_problem)
{
	struct decompress *d = &u->decompress;
	int r;
	d->in = range->bytes;
	d->in_bytes = (unsigned)range->n;
	do {
		d->out = u->out;
		d->out_bytes = OUT_BYTES;
		r = decompress(d, range->n == 0, ret_problem);
		const size_t n = OUT_BYTES - d->out_bytes;
		const int stop = r >= 0 && n ? u->take(u->arg, u->out, n) : 0;
		if (stop)
			return stop;
	} while (r > 0);
	/* An object has to end with a complete member or frame. */
	if (r == 0 && range->n == 0 && !d->has_ended)
		r = -EBADMSG;
	if (r == -EBADMSG)
		problem_set(ret_problem, "it cannot be decompressed: it is damaged or cut off");
	return r;
}

int unpack(struct unpack *u, const struct read_range *range, struct problem *ret_problem)
{
	if (!u->has_begun) {
		/* The first bytes of the first range decide the format of the whole object. */
		u->has_begun = true;
		const enum format format = format_of(range->bytes, range->n);
		if (format)
			u->out = malloc(OUT_BYTES);
		if (format && (!u->out || decompress_begin(&u->decompress, format)))
			return problem_error(ret_problem, -ENOMEM, "out of memory");
	}
	if (u->decompress.format)
		return unpack_compressed(u, range, ret_problem);
	/* In pieces as small as those of a compressed object, since take() may keep a copy of the
	 * last one: log_cat.c. */
	for (size_t at = 0, n; at < range->n; at += n) {
		n = range->n - at < OUT_BYTES ? range->n - at : OUT_BYTES;
		const int stop = u->take(u->arg, range->bytes + at, n);
		if (stop)
			return stop;
	}
	return 0;
}

void unpack_clear(struct unpack *u)
{
	decompress_clear(&u->decompress);
	free(u->out);
	u->out = NULL;
}
