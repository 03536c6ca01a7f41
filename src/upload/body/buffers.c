#include "upload/body/buffers.h"
#include <errno.h>
#include <stdlib.h>

/* What is read at a time. With more of it nothing is faster, and malloc takes pages from the kernel
 * for each job. */
#define MOST_BYTES (64U << 10)

void buffers_init(struct buffers *buffers, uint64_t memory_bytes, unsigned at_once)
{
	const uint64_t half = memory_bytes / 2, each = half / at_once;
	buffers->most_bytes = each < READER_OWN_BYTES ? READER_OWN_BYTES
			      : each > MOST_BYTES     ? MOST_BYTES
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
	const size_t bytes = wanted < buffers->most_bytes ? (size_t)wanted : buffers->most_bytes;
	if (bytes <= READER_OWN_BYTES)
		return;
	void *buffer = NULL;
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
