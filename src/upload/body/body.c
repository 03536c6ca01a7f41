#include "upload/body/body.h"
#include <errno.h>
#include <unistd.h>

/* As pread(2), but goes on after signals; 0 bytes where some were expected is a file cut short. */
static ssize_t read_at(int fd, void *buffer, size_t n, uint64_t offset)
{
	ssize_t got;
	do
		got = pread(fd, buffer, n, (off_t)offset);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got == 0 && n ? -ESTALE : got;
}

long body_read(const struct range *range, void *buffer, size_t n)
{
	return read_at(range->fd, buffer, n, range->offset);
}

int body_digest(
	struct reader *reader, unsigned kinds, const struct range *range, struct sums *ret_sums)
{
	int error = digest_restart(&reader->digest, kinds);
	for (uint64_t at = 0; !error && at < range->bytes;) {
		uint64_t left = range->bytes - at;
		ssize_t got = read_at(range->fd, reader->buffer,
			left < reader->buffer_bytes ? (size_t)left : reader->buffer_bytes,
			range->offset + at);
		if (got < 0)
			return (int)got;
		if (reader->abandon && reader->abandon(reader->arg))
			return -ECANCELED;
		digest_update(&reader->digest, reader->buffer, (size_t)got);
		at += (uint64_t)got;
	}
	if (!error)
		digest_finish(&reader->digest, ret_sums);
	return error;
}

int body_unchanged(int fd, const struct file_state *state)
{
	struct file_state now;
	int error = file_state_of(fd, &now);
	return error ? error : file_state_equal(&now, state) ? 0 : -ESTALE;
}

static long stream_read(void *arg, void *buffer, size_t n)
{
	struct body *body = arg;
	const uint64_t left = body->range.bytes - body->at;
	n = left < n ? (size_t)left : n;
	const struct share *share = body->transfer.share;
	if (share && n && !(n = bandwidth_take(share->bandwidth, n, &share->user)))
		return body->error = -ECANCELED;
	ssize_t got = read_at(body->range.fd, buffer, n, body->range.offset + body->at);
	if (got >= 0 && (uint64_t)got == left) {
		int error = body_unchanged(body->range.fd, &body->state);
		if (error)
			got = error;
	}
	if (got < 0)
		body->error = (int)got;
	else
		body->at += (uint64_t)got;
	return got;
}

static int stream_rewind(void *arg, uint64_t offset)
{
	struct body *body = arg;
	transfer_undo(&body->transfer);
	body->at = offset;
	return 0;
}

static void stream_moved(void *arg, uint64_t n)
{
	struct body *body = arg;
	transfer_moved(&body->transfer, n);
}

struct http_body body_stream(struct body *body)
{
	return (struct http_body){
		.bytes = body->range.bytes,
		.read = stream_read,
		.rewind = stream_rewind,
		.moved = stream_moved,
		.arg = body,
	};
}

struct http_body body_memory(struct body *body, const void *memory)
{
	struct http_body stream = body_stream(body);
	stream.memory = memory;
	stream.read = NULL;
	return stream;
}

struct body body_of(const struct range *range, const struct file_state *state, struct share *share)
{
	return (struct body){.range = *range,
		.state = *state,
		.transfer = {.share = share,
			.whole_bytes = range->bytes,
			.content_bytes = range->bytes,
			.is_large = range->bytes > SMALL_BYTES_MAX}};
}
