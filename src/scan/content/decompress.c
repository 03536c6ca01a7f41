#include "scan/content/decompress.h"
#include "scan/content/decompress_format.h"
#include <errno.h>
#include <stdlib.h>

int decompress_new(const void *first, size_t n, struct decompress **ret)
{
	const struct decompress_format *format = decompress_format_of(first, n);
	if (!format)
		return -ENOENT;
	struct decompress *d = calloc(1, sizeof *d);
	if (!d)
		return -ENOMEM;
	d->format = format;
	d->is_initialised = format->init(d);
	if (!d->is_initialised) {
		free(d);
		return -ENOMEM;
	}
	*ret = d;
	return 0;
}

void decompress_free(struct decompress *d)
{
	if (d && d->is_initialised)
		d->format->clear(d);
	free(d);
}

bool decompress_is_whole(const struct decompress *d)
{
	return d->has_ended;
}

static int step_error(enum decompress_step step, struct problem *ret_problem)
{
	switch (step) {
	case STEP_DAMAGED:
		return -EBADMSG;
	case STEP_NO_MEMORY:
		return -ENOMEM;
	case STEP_TOO_LARGE:
		problem_set(ret_problem,
			"needs more than %u MiB of memory to be decompressed; compress it with a "
			"smaller window (without zstd --long, xz with a smaller dictionary)",
			DECOMPRESS_MEMORY_MAX >> 20);
		return -EFBIG;
	default:
		return 0;
	}
}

int decompress_run(
	struct decompress *d, struct decompress_io *io, bool last, struct problem *ret_problem)
{
	for (;;) {
		const size_t in = io->in_bytes, out = io->out_bytes;
		if (d->has_ended && in && d->format->restart && !d->format->restart(d))
			return -ENOMEM;
		if (d->has_ended && !in) /* nothing is pending behind an end */
			return 0;
		enum decompress_step step = d->format->run(d, io, last);
		int error = step_error(step, ret_problem);
		if (error)
			return error;
		d->has_ended = step == STEP_END;
		if (!io->out_bytes)
			return 1;
		if (io->in_bytes == in && io->out_bytes == out && step == STEP_MORE)
			return 0; /* it waits for input */
	}
}
