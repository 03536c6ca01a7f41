/* The body of one request: a file or a part of one. It is sent as it is or encoded, which means
 * compressed during its upload. The file is read and digested before the body is sent, since the
 * length and the checksums of the body precede it in the request. */
#pragma once
#include "upload/body/encoder.h"
#include "upload/file/file.h"

struct payload_request {
	struct range range;
	unsigned kinds;       /* digests of the sent bytes */
	unsigned input_kinds; /* digests of the range itself, if it is encoded */
	/* `kinds` are computed while the range is sent, for a checksum that trails. Not if it is
	 * encoded. */
	bool digests_while_sent;
};
struct payload {
	struct sums body_sums;  /* checksums of the body; if they trail, known once it was sent */
	struct sums input_sums; /* checksums of the range itself, if it is encoded */
	struct body body;       /* reads the bytes that are sent, and has the error of that */
	struct http_body http;  /* to be sent; points into this struct */
	struct s3_trailing trailing; /* the trailer with the checksum; kinds: 0 if there is none */
	/* Only payload.c uses the members below. */
	/* Bandwidth is taken at once for a body up to this length, and in pieces, while it is sent,
	 * for a larger one. */
	uint64_t max_at_once_bytes;
	struct encoder *encoder;
	/* The encoder's whole output. NULL: it does not fit, and is made again while it is sent. */
	const unsigned char *kept;
	const unsigned char *next; /* the output that is sent next, if `http` has no memory */
	size_t n_next;             /* the length of `next` */
};
/* Makes ret->http, the body of a request, from a range of the file. Reads and digests the range
 * first, unless its checksum is sent after the body (request->digests_while_sent): then it is
 * computed while the body is sent. Borrows the range's encoding and the worker's buffer until
 * payload_end(), which has to follow even after an error. Returns 0, -ESTALE if the file has
 * changed, or another error of body_digest(). */
int payload_read(struct worker *worker, struct file *file, const struct payload_request *request,
	struct payload *ret);
/* Reads the range of the file again, and compares it with `first`, the sums of the first reading,
 * of which there is at least one. Two equal readings of a whole file, one after the other, prove
 * that it had this content at the moment between them. Returns 0, -ESTALE if the content or the
 * state of the file differs, or another error of body_digest(). */
int payload_confirm(struct worker *worker, const struct file *file, const struct range *range,
	const struct sums *first);
/* Returns the error of reading that ended the request, or -ESTALE if the server has received other
 * bytes (`outcome`) because the file has changed since it was digested, or 0. */
int payload_find_error(struct worker *worker, const struct file *file,
	const struct payload *payload, enum outcome outcome);
/* Counts the payload toward --max-transfer, and waits for bandwidth if it is in memory. Returns
 * false if it must not be sent, since the limit is reached or the run is over. */
bool payload_wait_to_send(struct worker *worker, struct payload *payload);
/* Returns the checksums of the range itself, encoded or not. Borrowed from the payload. */
const struct sums *payload_range_sums(const struct payload *payload);
/* Gives back the encoder. May be called more than once. */
void payload_end(struct worker *worker, struct payload *payload);

/* Computes the digests of the body that a range becomes, without sending it. If the range is to be
 * encoded, uses `held`, an encoder that the caller has taken, which forgets what it has kept. If
 * `held` is NULL, takes one for this call. Returns 0, or an error of body_digest(). */
int range_digest(struct worker *worker, struct encoder *held, unsigned kinds,
	const struct range *range, struct sums *ret);
