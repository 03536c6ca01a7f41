/* A body that is compressed while it is sent takes from the limit of bandwidth what leaves, and no
 * more. */
#include "../check.h"
#include "upload/file/payload.h"
#include "upload/file/worker.h"
#include "upload/progress/bandwidth.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define RATE          8192 /* of this, 200 ms are 1638 bytes: so much may leave at once */
#define CONTENT_BYTES 100  /* of which a little more is made: it cannot be compressed */
#define KEPT_BYTES    50   /* less than that: it is made again while it is sent */
#define TIMES         10   /* that it is sent: less than may leave at once */

static bool at_once(void *arg)
{
	return true;
}

static const struct bandwidth_user hasty = {at_once, NULL};

static int make(struct file *file)
{
	char path[] = "/tmp/payload-XXXXXX";
	unsigned char content[CONTENT_BYTES];
	CHECK_INT(getrandom(content, sizeof content, 0), sizeof content);
	file->fd = mkstemp(path);
	CHECK_INT(write(file->fd, content, sizeof content), sizeof content);
	unlink(path);
	return file_state_of(file->fd, &file->state);
}

static struct bandwidth *limit(void)
{
	static const struct s3once_rate rate = {0, RATE};
	struct bandwidth *bandwidth = NULL;
	struct problem problem;
	const struct s3once_options options = {.rates = &rate, .n_rates = 1};
	CHECK_INT(bandwidth_new(&options, &bandwidth, &problem), 0);
	return bandwidth;
}

/* Nothing waits: who would have to is let go with nothing. */
static void test_of(struct worker *worker, struct file *file)
{
	static char sent[RATE], again[RATE];
	struct bandwidth *bandwidth = file->progress.bandwidth;
	struct payload payload;
	const struct payload_request asked = {
		.range = {.fd = file->fd, .bytes = CONTENT_BYTES, .encoding = file->encoding},
		.kinds = DIGEST_CRC32C};
	CHECK_INT(payload_read(worker, file, &asked, &payload), 0);
	CHECK(!payload.http.memory && payload.body_sums.bytes > CONTENT_BYTES);
	long n = 0;
	for (unsigned i = 0; i < TIMES; i++) {
		CHECK_INT(payload.http.rewind(payload.http.arg, 0), 0);
		n = payload.http.read(payload.http.arg, sent, sizeof sent);
		CHECK_INT(n, (int64_t)payload.body_sums.bytes);
	}
	while (bandwidth_take(bandwidth, RATE, &hasty))
		;
	CHECK_INT(payload.http.rewind(payload.http.arg, 50), 0); /* which sends nothing */
	bandwidth_toggle(bandwidth);
	CHECK_INT(payload.http.read(payload.http.arg, again, sizeof again), n - 50);
	CHECK(memcmp(sent + 50, again, (size_t)n - 50) == 0);
	payload_end(worker, &payload);
}

int main(void)
{
	struct run *run = calloc(1, sizeof *run);
	struct worker worker = {.run = run};
	struct encoding encoding;
	struct problem problem;
	struct file file = {.progress = {.bandwidth = limit(), .user = hasty}};
	CHECK_INT(encoding_parse("zstd", &encoding, &problem), 0);
	file.encoding = &encoding;
	const struct s3once_options options = {
		.memory_bytes = encoders_least_memory(&encoding), .part_bytes = 16 << 20};
	encoders_init(&run->bodies.encoders, &encoding, &options, 1);
	run->bodies.encoders.buffer_bytes = KEPT_BYTES;
	CHECK_INT(reader_init(&worker.reader), 0);
	if (CHECK_INT(make(&file), 0))
		test_of(&worker, &file);
	reader_clear(&worker.reader);
	encoders_clear(&run->bodies.encoders);
	bandwidth_free(file.progress.bandwidth);
	close(file.fd);
	free(run);
	return check_result();
}
