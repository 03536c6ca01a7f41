/* Reads files for requests, so that only the opened version of a file can become visible. Also
 * lends the buffers for reading. */
#pragma once
#include "base/checksum.h"
#include "http/http.h"
#include "scan/scan.h"
#include "upload/progress/report.h"

struct encoding;

/* A range of an open file. */
struct range {
	int fd;
	uint64_t offset, bytes;
	/* the encoding in which the range is sent; NULL: it is sent as it is */
	const struct encoding *encoding;
	uint64_t pad_to_bytes; /* the compressed bytes are padded to at least this length */
};

/* The state of one thread that reads and digests ranges, one after the other. */
struct reader {
	struct digest digest; /* initialised by reader_init() */
	void *buffer;         /* buffer for reading: own_buffer, or a larger one that is lent */
	size_t buffer_bytes;
	void *own_buffer;           /* made by reader_init() */
	bool (*abandon)(void *arg); /* called after each read; true ends the reading. NULL: never */
	void *arg;                  /* argument of abandon() */
};

/* Reads the range and computes its digests `kinds`. Returns 0, -ESTALE if the file is shorter than
 * the range by now, -ECANCELED if abandon() returned true, -ENOMEM, -ENOTSUP if OpenSSL does not
 * offer one of the digests, or the error of reading. */
int body_digest(
	struct reader *reader, unsigned kinds, const struct range *range, struct sums *ret_sums);

/* A range that is being sent. Its last bytes are handed over only if the file is still in `state`.
 * Otherwise the request ends unfinished, and `error` is -ESTALE. The request's http_body borrows
 * the struct until the request has ended. */
struct body {
	struct range range;
	struct file_state state;
	uint64_t at; /* bytes sent so far */
	int error;   /* the error of reading that ended the request, or 0 */
	struct transfer transfer;
};
/* http_body.read and http_body.rewind of a struct body. */
long body_next(void *body, void *buffer, size_t n);
int body_rewind(void *body, uint64_t offset);

/* Returns 0 if an open file is still in this state, -ESTALE if it has changed, or the error of
 * fstat. */
int body_check_unchanged(int fd, const struct file_state *state);

/* Each worker has a small buffer of its own. For a task it is lent a larger one, as long as all
 * larger buffers together fit into the allowed memory. With only its own buffer, a worker reads in
 * smaller chunks, and reads a file that does not fit into the buffer twice: once for its checksums,
 * and once while it is sent. Thread-safe. */
#define READER_OWN_BYTES (16U << 10)

struct buffers {
	size_t max_bytes; /* the largest buffer */
	/* Bytes that may still be lent; briefly negative while a thread tries to take more. */
	_Atomic int64_t left_bytes;
};
/* Shares half of memory_bytes among the n_bodies (> 0) large bodies that may be sent at once. The
 * other half is for libcurl's buffers, which are as large. */
void buffers_init(struct buffers *buffers, uint64_t memory_bytes, unsigned n_bodies);

/* Makes the worker's own buffer. Returns 0 or -ENOMEM. The caller calls reader_clear() in both
 * cases. */
int reader_init(struct reader *reader);
void reader_clear(struct reader *reader);

/* Lends the reader a larger buffer for a task that reads this many bytes. If memory does not allow
 * that, the reader keeps its own buffer. */
void buffers_lend(struct buffers *buffers, struct reader *reader, uint64_t wanted);
/* Does nothing if the reader has its own buffer. */
void buffers_take_back(struct buffers *buffers, struct reader *reader);
