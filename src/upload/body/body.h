/* Reading a file so that no version but the one that was opened ever becomes visible. */
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
	const struct encoding *encoding; /* of what is sent of it; NULL: it is sent as it is */
	uint64_t least_bytes;            /* what is made of it is padded to at least so many */
};

/* What a thread digests ranges with, one after the other. Borrows what it points to. */
struct reader {
	struct digest digest; /* initialised and cleared by the owner */
	void *buffer;         /* what a range is read through */
	size_t buffer_bytes;
	void *own_buffer;           /* of buffers.h */
	bool (*abandon)(void *arg); /* asked after each read; NULL: never */
	void *arg;
};

/* Reads the range and computes `kinds` of it. Returns 0, -ESTALE if the file is shorter than that
 * by now, -ECANCELED if abandon() says so, -ENOMEM, or the error of the reading. */
int body_digest(
	struct reader *reader, unsigned kinds, const struct range *range, struct sums *ret_sums);

/* Reads up to n bytes at the beginning of the range: how many, or -errno; -ESTALE where the file
 * has ended before. */
long body_read(const struct range *range, void *buffer, size_t n);

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
struct http_body body_stream(struct body *body);
/* The same from memory that holds the whole range: borrowed likewise. */
struct http_body body_memory(struct body *body, const void *memory);
/* A body of this range, whose bytes count as this file's. */
struct body body_of(const struct range *range, const struct file_state *state, struct share *share);

/* Whether an open file is still as it was: 0, -ESTALE, or the error of fstat. */
int body_unchanged(int fd, const struct file_state *state);
