/* Reading a file so that no version but the one that was opened ever becomes visible, and the
 * buffers through which it is read. */
#pragma once
#include "base/checksum.h"
#include "http/http.h"
#include "scan/scan.h"
#include "upload/progress/report.h"
#include <stdatomic.h>

struct encoding;

/* A range of an open file. */
struct range {
	int fd;
	uint64_t offset, bytes;
	const struct encoding *encoding; /* of what is sent of it; NULL: it is sent as it is */
	uint64_t least_bytes;            /* what is made of it is padded to at least so many */
};

/* What a thread digests ranges with, one after the other. Borrows what it points to. */
struct reader {
	struct digest digest; /* initialised and cleared by the owner */
	void *buffer;         /* what a range is read through */
	size_t buffer_bytes;
	void *own_buffer;           /* of reader_init() */
	bool (*abandon)(void *arg); /* asked after each read; NULL: never */
	void *arg;
};

/* Reads the range and computes `kinds` of it. Returns 0, -ESTALE if the file is shorter than that
 * by now, -ECANCELED if abandon() says so, -ENOMEM, or the error of the reading. */
int body_digest(
	struct reader *reader, unsigned kinds, const struct range *range, struct sums *ret_sums);

/* A range being sent. Its last bytes are handed over only if the file is still in `state`: else the
 * request ends unfinished and `error` is -ESTALE. Borrowed by the http_body until the request has
 * ended. */
struct body {
	struct range range;
	struct file_state state;
	uint64_t at; /* sent so far */
	int error;   /* why reading ended the request, or 0 */
	struct transfer transfer;
};
/* As http_body.read and http_body.rewind, of a struct body. */
long body_next(void *body, void *buffer, size_t n);
int body_rewind(void *body, uint64_t offset);

/* Whether an open file is still as it was: 0, -ESTALE, or the error of fstat. */
int body_unchanged(int fd, const struct file_state *state);

/* Each worker has a small buffer of its own. A larger one is lent to it for a task, as long as all
 * of these together are within the memory that is allowed. With the small one, a file is read in
 * smaller chunks, and a small file twice. Thread-safe. */
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
