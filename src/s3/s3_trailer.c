/* Sends a body in chunks, digests it meanwhile, and sends the checksum after it. s3_request_body()
 * uses it if put->trailing is set. The bytes come unchanged from the caller's read(), which may
 * refuse the last ones. */
#include "s3/s3_trailer.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* AWS wants chunks of at least 8 KiB. In larger ones fewer readings are cut in two. */
#define CHUNK_BYTES (1U << 20)

/* Returns the number of bytes that frame a chunk: its length in hex, and two line ends. */
static size_t frame_bytes_of(uint64_t chunk_bytes)
{
	return (size_t)snprintf(NULL, 0, "%" PRIx64 "\r\n\r\n", chunk_bytes);
}

/* Returns the number of bytes that are sent in place of the body, as s3_trailer.h shows them. */
static uint64_t framed_bytes(const struct s3_trailer *trailer)
{
	const struct checksum_kind *kind = &checksum_kinds[trailer->checksum];
	const uint64_t bytes = trailer->inner.bytes;
	const uint64_t full_chunks = bytes / CHUNK_BYTES, rest = bytes % CHUNK_BYTES;
	const size_t base64_bytes = (kind->bytes + 2) / 3 * 4;
	return bytes + full_chunks * frame_bytes_of(CHUNK_BYTES) +
	       (rest ? frame_bytes_of(rest) : 0) + strlen("0\r\n") + strlen(kind->header) +
	       strlen(":") + base64_bytes + strlen("\r\n\r\n");
}

/* Begins the next chunk, or, after the last one, finishes the checksum. Makes the frame for it,
 * which first ends the chunk before. */
static void begin_frame(struct s3_trailer *trailer)
{
	const char *end = trailer->read_bytes ? "\r\n" : "";
	const uint64_t left = trailer->inner.bytes - trailer->read_bytes;
	char base64[CHECKSUM_BASE64_MAX + 1];
	int n;
	trailer->chunk_left = left < CHUNK_BYTES ? left : CHUNK_BYTES;
	if (left) {
		n = snprintf(trailer->frame, sizeof trailer->frame, "%s%" PRIx64 "\r\n", end,
			trailer->chunk_left);
	} else {
		digest_finish(trailer->digest, trailer->trailing->sums);
		checksum_to_base64(trailer->checksum,
			sums_bytes(trailer->trailing->sums, trailer->checksum), base64);
		n = snprintf(trailer->frame, sizeof trailer->frame, "%s0\r\n%s:%s\r\n\r\n", end,
			checksum_kinds[trailer->checksum].header, base64);
		trailer->has_ended = true;
	}
	trailer->frame_bytes = (size_t)n;
	trailer->frame_sent = 0;
}

/* Reads up to n of the next bytes of the body. Returns their number, or a negative number. */
static long read_inner(struct s3_trailer *trailer, void *buffer, size_t n)
{
	const struct http_body *inner = &trailer->inner;
	if (!inner->memory)
		return inner->read(inner->arg, buffer, n);
	memcpy(buffer, (const char *)inner->memory + trailer->read_bytes, n);
	return (long)n;
}

/* Implements http_body.read for the framed body. */
static long trailer_read(void *arg, void *buffer, size_t n)
{
	struct s3_trailer *trailer = arg;
	char *out = buffer;
	size_t done = 0;
	while (done < n) {
		const size_t room = n - done;
		const size_t frame_left = trailer->frame_bytes - trailer->frame_sent;
		if (frame_left) {
			const size_t copied = frame_left < room ? frame_left : room;
			memcpy(out + done, trailer->frame + trailer->frame_sent, copied);
			trailer->frame_sent += copied;
			done += copied;
			continue;
		}
		if (trailer->has_ended)
			break;
		if (!trailer->chunk_left) {
			begin_frame(trailer);
			continue;
		}
		const size_t wanted =
			trailer->chunk_left < room ? (size_t)trailer->chunk_left : room;
		const long got = read_inner(trailer, out + done, wanted);
		if (got <= 0)
			return got;
		digest_update(trailer->digest, out + done, (size_t)got);
		trailer->read_bytes += (uint64_t)got;
		trailer->chunk_left -= (uint64_t)got;
		done += (size_t)got;
	}
	return (long)done;
}

/* Implements http_body.rewind for the framed body. Only offset 0 is asked for: each attempt begins
 * anew (send_once() in call.c). */
static int trailer_rewind(void *arg, uint64_t offset)
{
	struct s3_trailer *trailer = arg;
	const struct http_body *inner = &trailer->inner;
	if (offset)
		return -EINVAL;
	trailer->read_bytes = trailer->reported_bytes = trailer->chunk_left = 0;
	trailer->frame_bytes = trailer->frame_sent = 0;
	trailer->has_ended = false;
	trailer->trailing->sums->kinds = 0;
	const int error = digest_restart(trailer->digest, trailer->trailing->kinds);
	if (error || !inner->rewind)
		return error;
	return inner->rewind(inner->arg, 0);
}

/* Implements http_body.moved for the framed body. The few bytes of the frames are reported as bytes
 * of the body, but in all no more than the body has. */
static void trailer_moved(void *arg, uint64_t n)
{
	struct s3_trailer *trailer = arg;
	const struct http_body *inner = &trailer->inner;
	const uint64_t unreported = inner->bytes - trailer->reported_bytes;
	const uint64_t reported = n < unreported ? n : unreported;
	trailer->reported_bytes += reported;
	if (inner->moved)
		inner->moved(inner->moved_arg, reported);
}

struct http_body s3_trailer_begin(
	struct s3_trailer *ret, const struct s3_put *put, struct digest *digest)
{
	*ret = (struct s3_trailer){.inner = *put->body,
		.digest = digest,
		.trailing = put->trailing,
		.checksum = put->checksum};
	return (struct http_body){.bytes = framed_bytes(ret),
		.read = trailer_read,
		.rewind = trailer_rewind,
		.arg = ret,
		.moved = trailer_moved,
		.moved_arg = ret};
}
