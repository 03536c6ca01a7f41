/* A body that is followed by its checksum: what is sent is taken apart again, by pieces of any
 * length, also if it is sent once more from its beginning. */
#include "../check.h"
#include "s3/s3_trailer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (1U << 20)
#define MOST_BYTES  (2 * CHUNK_BYTES + 5)

static unsigned char content[MOST_BYTES], sent[MOST_BYTES + 1000], joined[MOST_BYTES];

/* The body itself, which is read in pieces of at most 30,000 bytes. */
struct inner {
	uint64_t bytes, at, moved;
};

static long read_some(void *arg, void *buffer, size_t n)
{
	struct inner *inner = arg;
	const uint64_t left = inner->bytes - inner->at;
	const size_t some = n < 30000 ? n : 30000, got = left < some ? (size_t)left : some;
	memcpy(buffer, content + inner->at, got);
	inner->at += got;
	return (long)got;
}

static int rewind_inner(void *arg, uint64_t offset)
{
	struct inner *inner = arg;
	inner->at = offset;
	inner->moved = 0;
	return 0;
}

static void note_moved(void *arg, uint64_t n)
{
	((struct inner *)arg)->moved += n;
}

/* Joins the chunks of n bytes. Returns what follows the last one, and sets *ret_bytes. */
static const char *join(const char *at, size_t *ret_bytes)
{
	char *end;
	*ret_bytes = 0;
	for (size_t chunk; (chunk = strtoul(at, &end, 16)); at = end + 2 + chunk + 2) {
		memcpy(joined + *ret_bytes, end + 2, chunk);
		*ret_bytes += chunk;
		CHECK(memcmp(end + 2 + chunk, "\r\n", 2) == 0);
		CHECK(chunk >= 8192 || strtoul(end + 2 + chunk + 2, NULL, 16) == 0);
	}
	return end + 2;
}

static void check_sent(const struct http_body *body, size_t piece)
{
	size_t n = 0;
	CHECK_INT(body->rewind(body->arg, 0), 0);
	while (n < body->bytes) {
		const size_t left = body->bytes - n;
		const long got = body->read(body->arg, sent + n, left < piece ? left : piece);
		if (!CHECK(got > 0))
			return;
		n += (size_t)got;
	}
	sent[n] = '\0';
}

/* Sends it as far as `most` bytes, in vain: what was read and told before it is sent again does not
 * count. */
static void send_in_vain(const struct http_body *body, struct sums *sums, size_t most)
{
	size_t n = 0;
	CHECK_INT(body->rewind(body->arg, 0), 0);
	while (n < most) {
		const long got = body->read(body->arg, sent + n, most - n);
		if (!CHECK(got > 0))
			return;
		n += (size_t)got;
	}
	body->moved(body->moved_arg, most);
	CHECK_INT(body->rewind(body->arg, 0), 0);
	CHECK_INT((int)sums->kinds, 0);
}

static void test_frame(void)
{
	static const uint64_t lengths[] = {1, 65536, CHUNK_BYTES - 1, CHUNK_BYTES, MOST_BYTES};
	static const size_t pieces[] = {17, 1000, 65536, MOST_BYTES};
	static const enum checksum kinds[] = {
		CHECKSUM_CRC32C, CHECKSUM_CRC64NVME, CHECKSUM_SHA1, CHECKSUM_SHA256};
	struct digest digest = {0};
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		for (size_t j = 0; j < sizeof pieces / sizeof *pieces; j++) {
			const enum checksum kind = kinds[j];
			struct inner inner = {.bytes = lengths[i]};
			struct sums sums = {0}, want;
			char base64[CHECKSUM_BASE64_MAX + 1], trailer[100];
			const struct http_body inside = {.bytes = lengths[i],
				.read = read_some,
				.rewind = rewind_inner,
				.arg = &inner,
				.moved = note_moved,
				.moved_arg = &inner};
			const struct s3_trailing trailing = {
				.kinds = DIGEST_OF(kind) | DIGEST_CRC32C, .sums = &sums};
			const struct s3_put put = {
				.body = &inside, .trailing = &trailing, .checksum = kind};
			struct s3_trailer state;
			size_t bytes;
			const struct http_body body = s3_trailer_begin(&state, &put, &digest);
			send_in_vain(&body, &sums, 4);
			send_in_vain(&body, &sums, (size_t)body.bytes);
			check_sent(&body, pieces[j]);
			const char *rest = join((const char *)sent, &bytes);
			CHECK_INT((long long)bytes, (long long)lengths[i]);
			CHECK(memcmp(joined, content, bytes) == 0);
			CHECK_INT(digest_bytes(trailing.kinds, content, bytes, &want), 0);
			checksum_to_base64(kind, sums_bytes(&want, kind), base64);
			snprintf(trailer, sizeof trailer, "%s:%s\r\n\r\n",
				checksum_kinds[kind].header, base64);
			CHECK_STRING(rest, trailer);
			CHECK(sums.kinds == want.kinds && sums.bytes == bytes);
			CHECK(sums_equal(&sums, &want, CHECKSUM_CRC32C));
			body.moved(body.moved_arg, body.bytes - 3);
			body.moved(body.moved_arg, 3);
			CHECK_INT((long long)inner.moved, (long long)lengths[i]);
		}
	digest_clear(&digest);
}

static long read_nothing(void *arg, void *buffer, size_t n)
{
	return -5;
}

static void test_unreadable_body(void)
{
	struct digest digest = {0};
	struct sums sums = {0};
	const struct http_body inside = {.bytes = 10, .read = read_nothing};
	const struct s3_trailing trailing = {.kinds = DIGEST_CRC32C, .sums = &sums};
	const struct s3_put put = {
		.body = &inside, .trailing = &trailing, .checksum = CHECKSUM_CRC32C};
	struct s3_trailer state;
	const struct http_body body = s3_trailer_begin(&state, &put, &digest);
	CHECK_INT(body.rewind(body.arg, 0), 0);
	CHECK_INT((int)body.read(body.arg, sent, 100), -5);
	CHECK_INT((int)sums.kinds, 0);
	digest_clear(&digest);
}

int main(void)
{
	for (size_t i = 0; i < sizeof content; i++)
		content[i] = (unsigned char)(i * 2654435761U >> 13);
	test_frame();
	test_unreadable_body();
	return check_result();
}
