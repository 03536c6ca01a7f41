/* The body of one request. A range of a file is read, and compressed if requested, so that its
 * length and checksums are known before it is sent. send.c sends a file as one payload, multipart.c
 * a part. file_open.c digests without sending. This file does not know marks or S3. */
#include "upload/file/payload.h"
#include "upload/file/file.h"
#include "upload/file/worker.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum encoder_output { DIGEST_ONLY, DIGEST_AND_KEEP };

/* Takes the whole output of an encoder that was begun, and digests it. With DIGEST_AND_KEEP, the
 * encoder keeps the output as well, as far as it has room. Returns 0 or -errno. */
static int drain_encoder(struct reader *reader, struct encoder *encoder, unsigned kinds,
	enum encoder_output use, struct sums *ret)
{
	const void *bytes;
	long n = digest_restart(&reader->digest, kinds);
	if (n < 0)
		return (int)n;
	while ((n = encoder_next(encoder, &bytes)) > 0) {
		if (reader->abandon && reader->abandon(reader->arg))
			return -ECANCELED;
		digest_update(&reader->digest, bytes, (size_t)n);
		if (use == DIGEST_AND_KEEP)
			encoder_keep(encoder, bytes, (size_t)n);
	}
	if (n == 0)
		digest_finish(&reader->digest, ret);
	return (int)n;
}

/* Computes the digests of a range by a buffer of its own. The reader's buffer may hold the body
 * that is about to be sent. Returns 0 or -errno. */
static int digest_aside(
	struct reader *reader, unsigned kinds, const struct range *range, struct sums *ret)
{
	unsigned char buffer[READER_OWN_BYTES];
	void *const lent = reader->buffer;
	const size_t lent_bytes = reader->buffer_bytes;
	reader->buffer = buffer;
	reader->buffer_bytes = sizeof buffer;
	const int error = body_digest(reader, kinds, range, ret);
	reader->buffer = lent;
	reader->buffer_bytes = lent_bytes;
	return error;
}

/* A worker that waits for an encoder depends on the workers that hold one, so its wait is no sign
 * of life. Therefore the wait calls run_is_over(). run_poll_is_over() would give such a sign. */
int range_digest(struct worker *worker, struct encoder *held, unsigned kinds,
	const struct range *range, struct sums *ret)
{
	struct encoders *encoders = &worker->run->bodies.encoders;
	struct encoder *encoder = held;
	if (!range->encoding)
		return digest_aside(&worker->reader, kinds, range, ret);
	int error = held ? 0 : encoders_take(encoders, run_is_over, worker->run, &encoder);
	if (!error) /* 0: no digests of the input, only of the output */
		error = encoder_begin(encoder, range, 0);
	if (!error)
		error = drain_encoder(&worker->reader, encoder, kinds, DIGEST_ONLY, ret);
	if (!held)
		encoders_give_back(encoders, encoder);
	return error;
}

/* Sets *ret to the next bytes of an encoded body, which are valid until the next call. If the
 * output was not kept, compresses more of the range when all that was made is sent. Returns their
 * number, at most n, 0 at the end, or -errno. */
static long next_encoded(struct payload *payload, size_t n, const void **ret)
{
	if (!payload->n_next && !payload->kept) {
		const void *bytes;
		const long made = encoder_next(payload->encoder, &bytes);
		if (made < 0)
			return made;
		if (!made && payload->body.at < payload->body_sums.bytes)
			return -ESTALE; /* the file has changed: its output has become shorter */
		payload->next = bytes;
		payload->n_next = (size_t)made;
	}
	*ret = payload->next;
	return (long)(n < payload->n_next ? n : payload->n_next);
}

/* Advances by n bytes, which were sent or skipped. */
static void advance_body(struct payload *payload, size_t n)
{
	payload->next += n;
	payload->n_next -= n;
	payload->body.at += n;
}

/* http_body.read of a compressed body that is not sent from http_body.memory. The last bytes leave
 * only if the file has not changed. */
static long encoded_read(void *arg, void *buffer, size_t n)
{
	struct payload *payload = arg;
	struct body *body = &payload->body;
	const struct file_progress *progress = body->transfer.progress;
	const void *bytes;
	const long ready = next_encoded(payload, n, &bytes); /* number of bytes, 0, or -errno */
	if (ready <= 0)
		return body->error = (int)ready;
	n = bandwidth_take(progress->bandwidth, (size_t)ready, &progress->user);
	if (!n) /* the wait for bandwidth was ended, since the run is over */
		return body->error = -ECANCELED;
	memcpy(buffer, bytes, n);
	advance_body(payload, n);
	if (body->at == payload->body_sums.bytes)
		body->error = body_check_unchanged(body->range.fd, &body->state);
	return body->error ? body->error : (long)n;
}

/* http_body.rewind of a compressed body that is not sent from http_body.memory. The body is sent
 * again from the byte `offset`, which may be any, although only 0 occurs (body_rewind()). If the
 * encoder has not kept its output, the range is compressed again from its beginning, and the bytes
 * before `offset` are skipped. */
static int encoded_rewind(void *arg, uint64_t offset)
{
	struct payload *payload = arg;
	transfer_undo(&payload->body.transfer);
	if (payload->kept) {
		payload->body.at = offset;
		payload->next = payload->kept + offset;
		payload->n_next = payload->body_sums.bytes - offset;
		return 0;
	}
	const void *skipped;
	payload->body.at = payload->n_next = 0;
	long n = encoder_begin(payload->encoder, &payload->body.range, 0);
	while (n >= 0 && payload->body.at < offset) {
		n = next_encoded(payload, offset - payload->body.at, &skipped);
		if (n > 0)
			advance_body(payload, (size_t)n);
	}
	return n < 0 ? (int)n : 0;
}

/* Sets payload->http to send a range that was compressed, whose output is payload->kept. Returns 0
 * or -errno. */
static int provide_encoded(
	struct worker *worker, const struct payload_request *request, struct payload *payload)
{
	struct reader *reader = &worker->reader;
	const uint64_t bytes = payload->body_sums.bytes;
	/* If the encoder could not keep the output, the range is compressed once more while it is
	 * sent. encoded_read() hands out pieces, and takes the bandwidth of each. */
	const bool is_made_again = !payload->kept;
	const bool goes_in_pieces = is_made_again || bytes > payload->max_at_once_bytes;
	if (goes_in_pieces) {
		payload->next = payload->kept;
		payload->n_next = payload->kept ? bytes : 0;
		payload->http.read = encoded_read;
		payload->http.rewind = encoded_rewind;
		payload->http.arg = payload;
		return is_made_again ? encoder_begin(payload->encoder, &request->range, 0) : 0;
	}
	if (bytes > reader->buffer_bytes) {
		/* Too large for the reader's buffer: the body is sent from that of the encoder, so
		 * the worker keeps the encoder until payload_end(). */
		payload->http.memory = payload->kept;
		return 0;
	}
	/* The body is sent from the reader's buffer, so that other workers can use the encoder. */
	payload->http.memory = memcpy(reader->buffer, payload->kept, bytes);
	payload_end(worker, payload);
	return 0;
}

/* Compresses the range into the body. Returns 0 or -errno. The caller's payload_end() gives the
 * encoder back in any case. */
static int read_encoded(
	struct worker *worker, const struct payload_request *request, struct payload *payload)
{
	struct reader *reader = &worker->reader;
	struct encoders *encoders = &worker->run->bodies.encoders;
	int error = encoders_take(encoders, run_is_over, worker->run, &payload->encoder);
	if (!error)
		error = encoder_begin(payload->encoder, &request->range, request->input_kinds);
	if (!error)
		error = drain_encoder(reader, payload->encoder, request->kinds, DIGEST_AND_KEEP,
			&payload->body_sums);
	if (error)
		return error;
	const uint64_t bytes = payload->body_sums.bytes;
	payload->input_sums = *encoder_input_sums(payload->encoder);
	payload->http.bytes = payload->body.transfer.body_bytes = bytes;
	payload->kept = encoder_kept(payload->encoder);
	return provide_encoded(worker, request, payload);
}

/* Waits for the bandwidth of a whole body that is in memory. Other bodies take theirs while they
 * are read. Returns false if the run is over. */
static bool take_bandwidth(void *arg)
{
	const struct body *body = arg;
	const struct file_progress *progress = body->transfer.progress;
	return bandwidth_take_all(progress->bandwidth, body->transfer.body_bytes, &progress->user);
}

/* Digests the range, so that its checksums are known before it is sent. */
static int read_plain(
	struct worker *worker, const struct payload_request *request, struct payload *payload)
{
	struct reader *reader = &worker->reader;
	const uint64_t bytes = request->range.bytes;
	/* A range that fits the buffer is read once, and sent from there. A larger one is read now,
	 * and again while it is sent. So is one whose bandwidth is taken in pieces, which
	 * body_next() does. */
	if (bytes > reader->buffer_bytes || bytes > payload->max_at_once_bytes)
		payload->http.read = body_next;
	else
		payload->http.memory = reader->buffer;
	return body_digest(reader, request->kinds, &request->range, &payload->body_sums);
}

/* Leaves the digests to body_next(). The range is not read before it is sent. */
static void digest_while_sent(const struct payload_request *request, struct payload *payload)
{
	payload->http.read = body_next;
	payload->trailing =
		(struct s3_trailing){.kinds = request->kinds, .sums = &payload->body_sums};
	payload->body_sums.bytes = request->range.bytes;
}

int payload_read(struct worker *worker, struct file *file, const struct payload_request *request,
	struct payload *ret)
{
	const struct range *range = &request->range;
	const uint64_t bytes = range->bytes;
	int error = 0;
	*ret = (struct payload){
		.max_at_once_bytes = file->progress.bandwidth ? BANDWIDTH_WHOLE_BYTES : UINT64_MAX,
		.body = {.range = *range,
			.state = file->state,
			.transfer = {.progress = &file->progress,
				.body_bytes = bytes,
				.content_bytes = bytes,
				.is_large = bytes > S3ONCE_SMALL_BYTES_MAX}}};
	ret->http = (struct http_body){.bytes = bytes,
		.rewind = body_rewind,
		.arg = &ret->body,
		.moved = transfer_moved,
		.moved_arg = &ret->body.transfer};
	if (range->encoding)
		error = read_encoded(worker, request, ret);
	else if (request->digests_while_sent)
		digest_while_sent(request, ret);
	else
		error = read_plain(worker, request, ret);
	/* A body in memory that is sent again takes its bandwidth again. */
	ret->http.may_send_again = ret->http.memory ? take_bandwidth : NULL;
	/* The file must not have changed while it was read. */
	return error ? error : body_check_unchanged(file->fd, &file->state);
}

int payload_confirm(struct worker *worker, const struct file *file, const struct range *range,
	const struct sums *first)
{
	const struct range plain = {
		.fd = range->fd, .offset = range->offset, .bytes = range->bytes};
	struct sums again;
	unsigned kind = 0; /* one kind is enough: the first that `first` has */
	while (kind < CHECKSUMS && !(first->kinds & DIGEST_OF(kind)))
		kind++;
	assert(kind < CHECKSUMS);
	/* Cached pages of a file on a network file system are read from the server again. */
	posix_fadvise(plain.fd, (off_t)plain.offset, (off_t)plain.bytes, POSIX_FADV_DONTNEED);
	const int error = digest_aside(&worker->reader, DIGEST_OF(kind), &plain, &again);
	if (error)
		return error;
	if (!sums_equal(&again, first, (enum checksum)kind))
		return -ESTALE;
	return body_check_unchanged(file->fd, &file->state);
}

int payload_find_error(struct worker *worker, const struct file *file,
	const struct payload *payload, enum outcome outcome)
{
	const struct range *range = &payload->body.range;
	const int error = payload->body.error;
	/* A body in memory, or one that trails, is what was digested. */
	if (error || outcome != OUTCOME_BAD_DIGEST || payload->http.memory ||
		payload->trailing.kinds)
		return error;
	return payload_confirm(worker, file, range, payload_range_sums(payload));
}

bool payload_wait_to_send(struct worker *worker, struct payload *payload)
{
	if (worker->options->max_transfer_bytes &&
		!run_may_send_body(worker->run, payload->body_sums.bytes))
		return false;
	return !payload->http.memory || take_bandwidth(&payload->body);
}

const struct sums *payload_range_sums(const struct payload *payload)
{
	return payload->body.range.encoding ? &payload->input_sums : &payload->body_sums;
}

void payload_end(struct worker *worker, struct payload *payload)
{
	encoders_give_back(&worker->run->bodies.encoders, payload->encoder);
	payload->encoder = NULL;
}
