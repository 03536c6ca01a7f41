/* The body of a request: how it is read and sent, and how a file that changes meanwhile is noticed.
 */
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

#define BYTES 40000 /* of a file that fits no buffer of a reader */

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

/* A body that is compressed while it is sent takes from the limit of bandwidth what leaves, and no
 * more. Nothing waits: who would have to is let go with nothing. */
static void test_bandwidth(struct worker *worker, struct file *file)
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
	CHECK_INT(payload.http.rewind(payload.http.arg, 0), 0);
	CHECK_INT(payload.http.read(payload.http.arg, again, sizeof again), -ECANCELED);
	CHECK_INT(payload.body.error, -ECANCELED);
	payload.body.error = 0;
	CHECK_INT(payload.http.rewind(payload.http.arg, 50), 0); /* which sends nothing */
	bandwidth_toggle(bandwidth);
	CHECK_INT(payload.http.read(payload.http.arg, again, sizeof again), n - 50);
	CHECK(memcmp(sent + 50, again, (size_t)n - 50) == 0);
	payload_end(worker, &payload);
}

/* A worker with a file of BYTES random bytes, whose encoders keep so many. */
struct reading {
	struct run *run;
	struct worker worker;
	struct file file;
	struct encoding encoding;
	unsigned char content[BYTES];
};

static bool begin(struct reading *r, size_t kept_bytes)
{
	char path[] = "/tmp/payload-XXXXXX";
	struct problem problem;
	*r = (struct reading){.run = calloc(1, sizeof *r->run)};
	r->worker.run = r->run;
	CHECK_INT(encoding_parse("zstd", &r->encoding, &problem), 0);
	const struct s3once_options options = {
		.memory_bytes = encoders_min_memory(&r->encoding), .part_bytes = 16 << 20};
	encoders_init(&r->run->bodies.encoders, &r->encoding, &options, 1);
	r->run->bodies.encoders.buffer_bytes = kept_bytes;
	CHECK_INT(getrandom(r->content, BYTES, 0), BYTES);
	r->file.fd = mkstemp(path);
	CHECK_INT(write(r->file.fd, r->content, BYTES), BYTES);
	unlink(path);
	CHECK_INT(reader_init(&r->worker.reader), 0);
	return CHECK_INT(file_state_of(r->file.fd, &r->file.state), 0);
}

static void end(struct reading *r)
{
	reader_clear(&r->worker.reader);
	encoders_clear(&r->run->bodies.encoders);
	close(r->file.fd);
	free(r->run);
}

/* A range of the file, which is compressed or not. */
static struct payload_request request_of(
	const struct reading *r, uint64_t offset, uint64_t bytes, bool is_encoded)
{
	return (struct payload_request){.range = {.fd = r->file.fd,
						.offset = offset,
						.bytes = bytes,
						.encoding = is_encoded ? &r->encoding : NULL},
		.kinds = DIGEST_CRC32C,
		.input_kinds = DIGEST_SHA256};
}

/* Writes another byte into the file. With `hides`, the file counts as unchanged. */
static void change(struct reading *r, off_t at, bool hides)
{
	const unsigned char other = r->content[at] ^ 1;
	CHECK_INT(pwrite(r->file.fd, &other, 1, at), 1);
	if (hides)
		CHECK_INT(file_state_of(r->file.fd, &r->file.state), 0);
}

/* The body that is sent has the checksums that go before it, wherever it is sent from. */
static bool has_its_sums(struct payload *payload)
{
	static unsigned char sent[2 * BYTES];
	uint64_t n = 0;
	struct sums sums;
	if (payload->http.memory) {
		n = payload->http.bytes;
		memcpy(sent, payload->http.memory, n);
	}
	while (!payload->http.memory && n < payload->http.bytes) {
		const long got = payload->http.read(payload->http.arg, sent + n, 7000);
		if (!CHECK(got > 0))
			return false;
		n += (uint64_t)got;
	}
	return CHECK_INT(digest_bytes(DIGEST_CRC32C, sent, n, &sums), 0) &&
	       CHECK_INT(payload->body_sums.bytes, n) &&
	       CHECK(sums_equal(&sums, &payload->body_sums, CHECKSUM_CRC32C));
}

static void test_source_of_the_body(void)
{
	enum from { BUFFER, KEPT, PIECES };
	static const struct {
		const char *name;
		bool is_encoded, is_limited;
		size_t kept_bytes;
		uint64_t offset, bytes;
		enum from from;
		bool holds_encoder;
	} rows[] = {
		{"plain, as large as the buffer", false, false, 0, 3, READER_OWN_BYTES, BUFFER,
			false},
		{"plain, larger than the buffer", false, false, 0, 3, READER_OWN_BYTES + 1, PIECES,
			false},
		{"plain, and nothing", false, false, 0, 0, 0, BUFFER, false},
		{"compressed, fits the buffer", true, false, BYTES, 5, 9000, BUFFER, false},
		{"compressed, the encoder keeps it", true, false, 2 * BYTES, 5, 30000, KEPT, true},
		{"compressed, no encoder keeps it", true, false, 20000, 5, 30000, PIECES, true},
		{"compressed, limited, and small", true, true, BYTES, 5, 9000, BUFFER, false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct reading r;
		struct payload payload;
		struct sums input, held;
		if (!begin(&r, rows[i].kept_bytes))
			return;
		r.file.progress.bandwidth = rows[i].is_limited ? limit() : NULL;
		r.file.progress.user = hasty;
		const struct payload_request request =
			request_of(&r, rows[i].offset, rows[i].bytes, rows[i].is_encoded);
		bool good = CHECK_INT(payload_read(&r.worker, &r.file, &request, &payload), 0);
		const enum from from = !payload.http.memory                            ? PIECES
				       : payload.http.memory == r.worker.reader.buffer ? BUFFER
										       : KEPT;
		good &= CHECK_INT(from, rows[i].from);
		good &= CHECK_INT(payload.encoder != NULL, rows[i].holds_encoder);
		/* Only a body in memory takes its bandwidth again when it is sent again. */
		good &= CHECK_INT(payload.http.may_send_again != NULL, from != PIECES);
		good &= has_its_sums(&payload);
		good &= CHECK_INT(payload.http.rewind(payload.http.arg, 0), 0);
		if (from == PIECES && !rows[i].is_limited) { /* a request that is cut off */
			char some[100];
			good &= CHECK(payload.http.read(payload.http.arg, some, sizeof some) > 0);
			good &= CHECK_INT(payload.http.rewind(payload.http.arg, 0), 0);
		}
		good &= has_its_sums(&payload);
		CHECK_INT(digest_bytes(
				  DIGEST_SHA256, r.content + rows[i].offset, rows[i].bytes, &input),
			0);
		if (rows[i].is_encoded)
			good &= CHECK(sums_equal(&input, &payload.input_sums, CHECKSUM_SHA256));
		/* The same body, digested only: by the encoder that is held, if one is. */
		good &= CHECK_INT(range_digest(&r.worker, payload.encoder, DIGEST_CRC32C,
					  &request.range, &held),
			0);
		good &= CHECK(sums_equal(&held, &payload.body_sums, CHECKSUM_CRC32C));
		good &= CHECK_INT(payload.encoder != NULL, rows[i].holds_encoder);
		payload_end(&r.worker, &payload);
		payload_end(&r.worker, &payload);
		good &= CHECK_INT(
			r.run->bodies.encoders.locked.n_free, r.run->bodies.encoders.locked.n_made);
		if (!good)
			fprintf(stderr, "\t%s\n", rows[i].name);
		bandwidth_free(r.file.progress.bandwidth);
		end(&r);
	}
}

/* The last bytes of a compressed body do not leave if the file has changed meanwhile, nor does a
 * body that has become shorter when it is compressed once more. */
static void test_changed_while_compressed(void)
{
	static unsigned char sent[2 * BYTES];
	for (int is_shorter = 0; is_shorter < 2; is_shorter++) {
		struct reading r;
		struct payload payload;
		long n = 0;
		uint64_t all = 0;
		if (!begin(&r, KEPT_BYTES))
			return;
		const struct payload_request request = request_of(&r, 0, BYTES, true);
		CHECK_INT(payload_read(&r.worker, &r.file, &request, &payload), 0);
		if (is_shorter) {
			memset(sent, 0, BYTES);
			CHECK_INT(pwrite(r.file.fd, sent, BYTES, 0), BYTES);
		} else {
			change(&r, BYTES - 1, false);
		}
		CHECK_INT(payload.http.rewind(payload.http.arg, 0), 0);
		while ((n = payload.http.read(payload.http.arg, sent, 1000)) > 0)
			all += (uint64_t)n;
		CHECK_INT(n, -ESTALE);
		CHECK_INT(payload.body.error, -ESTALE);
		CHECK(all < payload.body_sums.bytes);
		CHECK_INT(payload_find_error(&r.worker, &r.file, &payload, OUTCOME_LOST), -ESTALE);
		payload_end(&r.worker, &payload);
		end(&r);
	}
}

/* Two readings are compared by any digest that the first one has. The buffer, which may hold a body
 * that is about to be sent, stays as it is. */
static void test_second_reading(void)
{
	static const unsigned kinds[] = {
		DIGEST_CRC32C, DIGEST_MD5, DIGEST_SHA256, DIGEST_MD5 | DIGEST_CRC32C};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct reading r;
		struct sums first;
		if (!begin(&r, KEPT_BYTES))
			return;
		struct reader *reader = &r.worker.reader;
		struct range range = request_of(&r, 1000, 30000, true).range;
		void *const buffer = reader->buffer;
		CHECK_INT(digest_bytes(kinds[i], r.content + 1000, 30000, &first), 0);
		memset(buffer, 'b', READER_OWN_BYTES);
		CHECK_INT(payload_confirm(&r.worker, &r.file, &range, &first), 0);
		CHECK(reader->buffer == buffer && reader->buffer_bytes == READER_OWN_BYTES);
		CHECK(memchr(buffer, 'b', 1) &&
			memcmp(buffer, (char *)buffer + 1, READER_OWN_BYTES - 1) == 0);
		/* Another content behind the range, or before it, is another state of the file. */
		change(&r, 31000, false);
		CHECK_INT(payload_confirm(&r.worker, &r.file, &range, &first), -ESTALE);
		CHECK_INT(file_state_of(r.file.fd, &r.file.state), 0);
		CHECK_INT(payload_confirm(&r.worker, &r.file, &range, &first), 0);
		/* Another content of the range, which the state does not show. */
		change(&r, 30999, true);
		CHECK_INT(payload_confirm(&r.worker, &r.file, &range, &first), -ESTALE);
		CHECK(reader->buffer == buffer && reader->buffer_bytes == READER_OWN_BYTES);
		end(&r);
	}
}

/* A body whose checksum S3 refuses is read again: the file may have changed without a trace. A body
 * in memory, and one that trails, is what was digested, and no other refusal says anything. */
static void test_error_of_a_body(void)
{
	static const struct {
		const char *name;
		bool is_encoded, trails, is_small, has_changed;
		enum outcome outcome;
		int error;
	} rows[] = {
		{"changed", false, false, false, true, OUTCOME_BAD_DIGEST, -ESTALE},
		{"not changed", false, false, false, false, OUTCOME_BAD_DIGEST, 0},
		{"taken", false, false, false, true, OUTCOME_OK, 0},
		{"another error", false, false, false, true, OUTCOME_TRANSIENT, 0},
		{"in memory", false, false, true, true, OUTCOME_BAD_DIGEST, 0},
		{"trails", false, true, false, true, OUTCOME_BAD_DIGEST, 0},
		{"compressed, and changed", true, false, false, true, OUTCOME_BAD_DIGEST, -ESTALE},
		{"compressed, not changed", true, false, false, false, OUTCOME_BAD_DIGEST, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct reading r;
		struct payload payload;
		if (!begin(&r, KEPT_BYTES))
			return;
		struct payload_request request =
			request_of(&r, 10, rows[i].is_small ? 100 : 30000, rows[i].is_encoded);
		request.digests_while_sent = rows[i].trails;
		CHECK_INT(payload_read(&r.worker, &r.file, &request, &payload), 0);
		CHECK_INT(payload.trailing.kinds, rows[i].trails ? DIGEST_CRC32C : 0);
		if (rows[i].has_changed)
			change(&r, 20, true);
		if (!CHECK_INT(payload_find_error(&r.worker, &r.file, &payload, rows[i].outcome),
			    rows[i].error))
			fprintf(stderr, "\t%s\n", rows[i].name);
		payload.body.error = -EIO; /* the error of reading comes first */
		CHECK_INT(payload_find_error(&r.worker, &r.file, &payload, rows[i].outcome), -EIO);
		payload_end(&r.worker, &payload);
		end(&r);
	}
}

/* A file that changes while it is read is not sent; and the reading ends with the run. */
static void test_abandoned(void)
{
	for (int is_encoded = 0; is_encoded < 2; is_encoded++) {
		struct reading r;
		struct payload payload;
		struct sums sums;
		if (!begin(&r, KEPT_BYTES))
			return;
		const struct payload_request request = request_of(&r, 0, BYTES, is_encoded);
		change(&r, 0, false);
		CHECK_INT(payload_read(&r.worker, &r.file, &request, &payload), -ESTALE);
		payload_end(&r.worker, &payload);
		r.worker.reader.abandon = at_once;
		CHECK_INT(payload_read(&r.worker, &r.file, &request, &payload), -ECANCELED);
		payload_end(&r.worker, &payload);
		CHECK_INT(range_digest(&r.worker, NULL, DIGEST_MD5, &request.range, &sums),
			-ECANCELED);
		CHECK_INT(
			r.run->bodies.encoders.locked.n_free, r.run->bodies.encoders.locked.n_made);
		end(&r);
	}
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
		.memory_bytes = encoders_min_memory(&encoding), .part_bytes = 16 << 20};
	encoders_init(&run->bodies.encoders, &encoding, &options, 1);
	run->bodies.encoders.buffer_bytes = KEPT_BYTES;
	CHECK_INT(reader_init(&worker.reader), 0);
	if (CHECK_INT(make(&file), 0))
		test_bandwidth(&worker, &file);
	reader_clear(&worker.reader);
	encoders_clear(&run->bodies.encoders);
	bandwidth_free(file.progress.bandwidth);
	close(file.fd);
	test_source_of_the_body();
	test_changed_while_compressed();
	test_second_reading();
	test_error_of_a_body();
	test_abandoned();
	free(run);
	return check_result();
}
