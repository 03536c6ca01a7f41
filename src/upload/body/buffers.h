/* The buffers through which files are read. Each worker has a small buffer of its own. A larger one
 * is lent to it for a task, as long as all of these together are within the memory that is allowed.
 * With the small one, a file is read in smaller pieces, and a small file twice. Thread-safe. */
#pragma once
#include "upload/body/body.h"
#include <stdatomic.h>

#define READER_OWN_BYTES (16U << 10)

struct buffers {
	size_t most_bytes; /* of one */
	_Atomic int64_t left_bytes;
};
/* Half of memory_bytes, shared by as many as may send large bodies at once; the other half is
 * libcurl's, as much for each. */
void buffers_init(struct buffers *buffers, uint64_t memory_bytes, unsigned at_once);

/* Makes the worker's own buffer. Returns 0 or -ENOMEM. */
int reader_init(struct reader *reader);
void reader_clear(struct reader *reader);

/* Lends a larger buffer for a task that reads this many bytes, if memory allows it. */
void buffers_lend(struct buffers *buffers, struct reader *reader, uint64_t bytes);
void buffers_take_back(struct buffers *buffers, struct reader *reader);
