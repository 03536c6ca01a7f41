/* Reads a file in chunks, for its checksums and for a request, and lends the workers the buffers
 * for that. If the file changes meanwhile, the request ends before its body is whole. payload.c
 * sends the bytes, and compare.c digests them. file_handle_read_error() (file_open.c) decides what
 * to do about a file that has changed. */
#include "upload/body/body.h"
#include "base/files.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

/* The size of the largest buffer. Larger ones would be no faster, and malloc would get new pages
 * from the kernel for each of them. */
#define BUFFER_MAX_BYTES (64U << 10)

/* read_at() reads all n bytes, or fails with -ESTALE if the file has become shorter. */
int body_digest(
	struct reader *reader, unsigned kinds, const struct range *range, struct sums *ret_sums)
{
	int error = digest_restart(&reader->digest, kinds);
	for (uint64_t at = 0; !error && at < range->bytes;) {
		const uint64_t left = range->bytes - at;
		const size_t n = left < reader->buffer_bytes ? (size_t)left : reader->buffer_bytes;
		const ssize_t r = read_at(range->fd, reader->buffer, n, range->offset + at);
		if (r < 0)
			return (int)r;
		if (reader->abandon && reader->abandon(reader->arg))
			return -ECANCELED;
		digest_update(&reader->digest, reader->buffer, n);
		at += n;
	}
	if (!error)
		digest_finish(&reader->digest, ret_sums);
	return error;
}

int body_check_unchanged(int fd, const struct file_state *state)
{
	struct file_state now;
	struct statx fresh;
	/* Network file systems cache size and times for seconds. This makes them ask their server,
	 * so that the next call returns present values. */
	statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &fresh);
	int error = file_state_of(fd, &now);
	return error ? error : file_state_equal(&now, state) ? 0 : -ESTALE;
}

/* Returns the number of bytes put into the buffer: at most n, and 0 at the end of the body. Returns
 * -errno, which is also in body->error, to end the request. */
long body_next(void *arg, void *buffer, size_t n)
{
	struct body *body = arg;
	const uint64_t left = body->range.bytes - body->at;
	const size_t wanted = left < n ? (size_t)left : n;
	const struct file_progress *progress = body->transfer.progress;
	size_t allowed = wanted;
	if (progress && wanted)
		allowed = bandwidth_take(progress->bandwidth, wanted, &progress->user);
	if (wanted && !allowed) /* the wait for bandwidth was ended, since the run is over */
		return body->error = -ECANCELED;
	const long got = read_at(body->range.fd, buffer, allowed, body->range.offset + body->at);
	if (got < 0)
		return body->error = (int)got;
	/* If these are the last bytes of the body, they are not handed over yet. Without them the
	 * body cannot become an object, so now the file is checked for changes. */
	const int error =
		(uint64_t)got == left ? body_check_unchanged(body->range.fd, &body->state) : 0;
	if (error)
		return body->error = error;
	body->at += (uint64_t)got;
	return got;
}

/* The offset is always 0, since both curl and call.c send a body from its beginning again. So all
 * bytes that have left are taken back from the progress. */
int body_rewind(void *arg, uint64_t offset)
{
	struct body *body = arg;
	transfer_undo(&body->transfer);
	body->at = offset;
	return 0;
}

void buffers_init(struct buffers *buffers, uint64_t memory_bytes, unsigned n_bodies)
{
	const uint64_t half = memory_bytes / 2, each = half / n_bodies;
	buffers->max_bytes = each < READER_OWN_BYTES   ? READER_OWN_BYTES
			     : each > BUFFER_MAX_BYTES ? BUFFER_MAX_BYTES
						       : (size_t)each;
	atomic_init(&buffers->left_bytes, (int64_t)half);
}

int reader_init(struct reader *reader)
{
	reader->buffer = reader->own_buffer = malloc(READER_OWN_BYTES);
	reader->buffer_bytes = READER_OWN_BYTES;
	return reader->own_buffer ? digest_init(&reader->digest, 0) : -ENOMEM;
}

void reader_clear(struct reader *reader)
{
	digest_clear(&reader->digest);
	free(reader->own_buffer);
}

void buffers_lend(struct buffers *buffers, struct reader *reader, uint64_t wanted)
{
	const size_t bytes = wanted < buffers->max_bytes ? (size_t)wanted : buffers->max_bytes;
	void *buffer = NULL;
	/* The bytes are reserved first, because of other threads, and given back below if there
	 * were too few, or no memory. */
	if (atomic_fetch_sub(&buffers->left_bytes, (int64_t)bytes) >= (int64_t)bytes)
		buffer = malloc(bytes);
	if (!buffer) {
		atomic_fetch_add(&buffers->left_bytes, (int64_t)bytes);
		return;
	}
	reader->buffer = buffer;
	reader->buffer_bytes = bytes;
}

void buffers_take_back(struct buffers *buffers, struct reader *reader)
{
	if (reader->buffer == reader->own_buffer)
		return;
	free(reader->buffer);
	atomic_fetch_add(&buffers->left_bytes, (int64_t)reader->buffer_bytes);
	reader->buffer = reader->own_buffer;
	reader->buffer_bytes = READER_OWN_BYTES;
}
