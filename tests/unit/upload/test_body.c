/* Reading a file: a version that is no longer the one opened never gets through. */
#include "../check.h"
#include "upload/body/body.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static char path[] = "/tmp/s3once-body-XXXXXX";

static int make(const char *content, struct file_state *ret)
{
	strcpy(path, "/tmp/s3once-body-XXXXXX");
	int fd = mkstemp(path);
	CHECK(write(fd, content, strlen(content)) == (ssize_t)strlen(content));
	CHECK_INT(file_state_of(fd, ret), 0);
	return fd;
}

static long read_all(struct body *body, char *ret, size_t chunk)
{
	const uint64_t bytes = body->range.bytes;
	size_t at = 0;
	while (at < bytes) {
		size_t n = bytes - at < chunk ? bytes - at : chunk;
		long got = body_next(body, ret + at, n);
		if (got < 0)
			return got;
		at += (size_t)got;
	}
	return (long)at;
}

static void test_unchanged(void)
{
	struct file_state state;
	char got[32];
	int fd = make("hello world", &state);
	struct body body = {.range = {fd, 6, 5}, .state = state};
	CHECK_INT(read_all(&body, got, 2), 5);
	CHECK(memcmp(got, "world", 5) == 0);
	CHECK_INT(body_rewind(&body, 0), 0);
	CHECK_INT(read_all(&body, got, 5), 5);
	close(fd);
	unlink(path);
}

/* Written to after the first byte was sent: the last byte is not handed over. */
static void test_changed(void)
{
	struct file_state state;
	char got[32];
	int fd = make("hello world", &state);
	struct body body = {.range = {fd, 0, 11}, .state = state};
	CHECK_INT(body_next(&body, got, 5), 5);
	CHECK(pwrite(fd, "W", 1, 6) == 1);
	CHECK_INT(body_next(&body, got, 6), -ESTALE);
	CHECK_INT(body.error, -ESTALE);
	CHECK_INT(body_check_unchanged(fd, &state), -ESTALE);
	close(fd);
	unlink(path);
}

static void test_replaced_and_cut(void)
{
	struct file_state state;
	char got[32];
	struct sums sums;
	struct reader reader = {.buffer = got, .buffer_bytes = 3};
	int fd = make("hello world", &state);
	unlink(path); /* as a rename over it does: the open file lives on, but is another than the
			 name's */
	CHECK_INT(body_check_unchanged(fd, &state), -ESTALE);
	CHECK_INT(ftruncate(fd, 4), 0);
	digest_init(&reader.digest, DIGEST_CRC32C);
	const struct range range = {fd, 0, 11};
	CHECK_INT(body_digest(&reader, DIGEST_CRC32C, &range, &sums), -ESTALE);
	digest_clear(&reader.digest);
	close(fd);
}

/* A buffer that was lent comes back with its bytes, and the reader has its own one again. If too
 * few bytes are left, nothing is lent, and none of them are lost. */
static void test_buffers(void)
{
	struct buffers buffers;
	struct reader reader;
	buffers_init(&buffers, 4 * READER_OWN_BYTES, 1);
	const int64_t all = atomic_load(&buffers.left_bytes);
	CHECK_INT(reader_init(&reader), 0);
	buffers_lend(&buffers, &reader, UINT64_MAX);
	CHECK(reader.buffer != reader.own_buffer && reader.buffer_bytes > READER_OWN_BYTES);
	CHECK_INT(atomic_load(&buffers.left_bytes), all - (int64_t)reader.buffer_bytes);
	buffers_take_back(&buffers, &reader);
	CHECK(reader.buffer == reader.own_buffer);
	CHECK_INT(reader.buffer_bytes, READER_OWN_BYTES);
	CHECK_INT(atomic_load(&buffers.left_bytes), all);
	atomic_store(&buffers.left_bytes, 5);
	buffers_lend(&buffers, &reader, UINT64_MAX);
	CHECK(reader.buffer == reader.own_buffer);
	CHECK_INT(atomic_load(&buffers.left_bytes), 5);
	reader_clear(&reader);
}

int main(void)
{
	test_buffers();
	test_unchanged();
	test_changed();
	test_replaced_and_cut();
	return check_result();
}
