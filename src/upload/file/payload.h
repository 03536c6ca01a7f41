/* The body of one request: a file or a part of one, as it is or encoded. It is read and digested
 * before it is sent, since its length and checksums go before it. */
#pragma once
#include "upload/body/encoder.h"
#include "upload/file/file.h"

struct payload_asked {
	struct range range;
	unsigned kinds;      /* digests of what is sent */
	unsigned read_kinds; /* digests of the range's content, where that is something else */
};
struct payload {
	struct sums sums;      /* of what is to be sent */
	struct sums read;      /* of the content, if it is encoded */
	struct body body;      /* its transfer and its error */
	struct http_body http; /* to be sent; points into this struct */
	/* The rest is payload.c's. */
	uint64_t whole_most; /* under a limit of bandwidth a larger body takes its bytes as they
				leave */
	struct encoder *encoder;
	const unsigned char
		*kept; /* all of what is made of the range; NULL: it is made once more */
	const unsigned char *next;
	size_t n_next;
};
/* Reads a range of the file, and makes ret->http. The range's encoding and the worker's buffer are
 * borrowed until payload_end(). Returns 0; -ESTALE if the file has changed, or another error of
 * body_digest(): then, too, payload_end() follows. */
int payload_read(struct worker *worker, struct file *file, const struct payload_asked *asked,
	struct payload *ret);
/* Waits for bandwidth. Returns whether the limits of the run still allow the payload to be sent. */
bool payload_may_leave(struct worker *worker, struct payload *payload);
/* To be called once or more. */
void payload_end(struct worker *worker, struct payload *payload);

/* Computes the digests of what is sent of a range, without sending it. `held` is the encoder that
 * the caller has, or NULL. Returns as payload_read(). */
int range_digest(struct worker *worker, struct encoder *held, unsigned kinds,
	const struct range *range, struct sums *ret);
