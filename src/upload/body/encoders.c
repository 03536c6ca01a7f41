#include "upload/body/encoders.h"
#include "base/wait_until.h"
#include "upload/body/multipart_plan.h"
#include <errno.h>

#define MIB            (1ULL << 20)
#define BUFFER_MIN     (PART_BYTES_MIN + PART_BYTES_MIN / 4)
#define RANGE_MAX      (256 * MIB) /* more would be made again after a kill */
#define TENTHS_WANTED  9 /* of a buffer: some parts come out larger than the sample says */
#define OVER_SUBSCRIBE 2 /* while one part is sent another one is made */

uint64_t encoders_memory(uint64_t memory_bytes)
{
	return 2 * memory_bytes;
}

static uint64_t without_buffer(const struct encoding *encoding)
{
	return encoding_memory(encoding) + ENCODER_OWN_BYTES;
}

uint64_t encoders_least_memory(const struct encoding *encoding)
{
	return without_buffer(encoding) + BUFFER_MIN;
}

void encoders_init(struct encoders *encoders, const struct encoding *encoding,
	const struct encoders_limits *limits)
{
	const uint64_t wanted = limits->part_bytes + limits->part_bytes / 4;
	const uint64_t fit = limits->memory_bytes / encoders_least_memory(encoding);
	uint64_t most = limits->cpus * OVER_SUBSCRIBE;
	if (most > fit)
		most = fit;
	if (most > ENCODERS_MAX)
		most = ENCODERS_MAX;
	if (!most)
		most = 1;
	const uint64_t each = limits->memory_bytes / most, own = without_buffer(encoding);
	uint64_t buffer = each > own + BUFFER_MIN ? each - own : BUFFER_MIN;
	if (buffer > wanted)
		buffer = wanted;
	*encoders = (struct encoders){.buffer_bytes = (size_t)buffer, .most = (unsigned)most};
	uv_mutex_init(&encoders->locked.mutex);
	uv_cond_init(&encoders->locked.is_free);
}

void encoders_clear(struct encoders *encoders)
{
	if (!encoders->most)
		return;
	while (encoders->locked.n_free)
		encoder_free(encoders->locked.free[--encoders->locked.n_free]);
	uv_cond_destroy(&encoders->locked.is_free);
	uv_mutex_destroy(&encoders->locked.mutex);
}

/* The caller holds the mutex. */
static int take_encoder_locked(struct encoders *encoders, struct encoder **ret)
{
	if (encoders->locked.n_free) {
		*ret = encoders->locked.free[--encoders->locked.n_free];
		return 0;
	}
	if (encoders->locked.n_made == encoders->most)
		return -EAGAIN;
	const int error = encoder_new(encoders->buffer_bytes, ret);
	encoders->locked.n_made += !error;
	return error;
}

int encoders_take(
	struct encoders *encoders, bool (*is_over)(void *arg), void *arg, struct encoder **ret)
{
	int error;
	uv_mutex_lock(&encoders->locked.mutex);
	const enum waited waited =
		wait_until((error = take_encoder_locked(encoders, ret)) != -EAGAIN,
			.told = &encoders->locked.is_free, .mutex = &encoders->locked.mutex,
			.abandon = is_over, .arg = arg);
	uv_mutex_unlock(&encoders->locked.mutex);
	return waited == WAIT_MET ? error : -ECANCELED;
}

void encoders_give_back(struct encoders *encoders, struct encoder *encoder)
{
	if (!encoder)
		return;
	uv_mutex_lock(&encoders->locked.mutex);
	encoders->locked.free[encoders->locked.n_free++] = encoder;
	uv_cond_signal(&encoders->locked.is_free);
	uv_mutex_unlock(&encoders->locked.mutex);
}

uint64_t encoders_part_bytes(const struct encoders *encoders, uint64_t in, uint64_t out)
{
	const double made = (double)encoders->buffer_bytes * TENTHS_WANTED / 10;
	const double bytes = out && in > out ? made * (double)in / (double)out : made;
	const uint64_t whole = bytes < (double)RANGE_MAX ? (uint64_t)bytes / MIB * MIB : RANGE_MAX;
	return whole < PART_BYTES_MIN ? PART_BYTES_MIN : whole;
}
