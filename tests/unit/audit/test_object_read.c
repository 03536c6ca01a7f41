/* The content of an object, range by range: what it is added to, and what ends it. The S3 server is
 * a script. */
#include "audit.h"
#include "audit/object_read.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANGE_BYTES (4U << 20)
#define PART(etag, content)                                                                        \
	AUDIT_STEP("206", "Content-Length: 3\r\nETag: \"" etag "\"\r\n", content)

/* Reads an object of `size` bytes whose HEAD has shown the etag e1. *ret_sha256 is the hash of what
 * was read. */
static enum outcome read_object(struct audit *audit, uint64_t size, int fd, bool *ret_is_replaced,
	unsigned char ret_sha256[static 32])
{
	struct digest digest;
	struct sums sums;
	struct s3_object object = {.size = size, .etag = "e1"};
	const struct s3_target target = {.key = "k"};
	const struct object_reading reading = {.conn = audit->s3_conn,
		.target = &target,
		.object = &object,
		.limits = &no_limits,
		.digest = &digest,
		.fd = fd};
	CHECK_INT(digest_init(&digest, DIGEST_SHA256), 0);
	const enum outcome o = object_read(&reading, ret_is_replaced, &audit->problem);
	digest_finish(&digest, &sums);
	digest_clear(&digest);
	memcpy(ret_sha256, sums_bytes(&sums, CHECKSUM_SHA256), 32);
	return o;
}

static void check_hash(const unsigned char *hash, const void *content, size_t n)
{
	struct sums sums;
	CHECK_INT(digest_bytes(DIGEST_SHA256, content, n, &sums), 0);
	CHECK_INT(memcmp(hash, sums_bytes(&sums, CHECKSUM_SHA256), 32), 0);
}

static void test_one_range(void)
{
	static const struct {
		struct script_step step;
		const char *file; /* NULL: one in memory; "": none */
		enum outcome outcome;
		bool is_replaced;
		const char *said;
	} rows[] = {
		{PART("e1", "abc"), "", OUTCOME_OK, false, NULL},
		{PART("e1", "abc"), NULL, OUTCOME_OK, false, NULL},
		{PART("e1", "abc"), "/dev/full", OUTCOME_LOCAL, false, "No space left on device"},
		{PART("e2", "abc"), NULL, OUTCOME_LOCAL, true, "it was replaced while it was read"},
		{AUDIT_ERROR("403", "AccessDenied"), NULL, OUTCOME_DENIED, false, NULL},
		{AUDIT_ABSENT, NULL, OUTCOME_ABSENT, false, NULL},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct audit audit;
		unsigned char hash[32];
		char written[4] = "";
		bool is_replaced = !rows[i].is_replaced;
		if (!audit_begin(&audit, &rows[i].step, 1))
			return;
		const int fd = !rows[i].file   ? memfd_create("object", MFD_CLOEXEC)
			       : *rows[i].file ? open(rows[i].file, O_RDWR | O_CLOEXEC)
					       : -1;
		CHECK_INT(read_object(&audit, 3, fd, &is_replaced, hash), rows[i].outcome);
		CHECK_INT(is_replaced, rows[i].is_replaced);
		if (rows[i].said && !CHECK(strstr(audit.problem.text, rows[i].said)))
			fprintf(stderr, "\tgot %s\n", audit.problem.text);
		const bool is_read = rows[i].outcome == OUTCOME_OK;
		if (is_read)
			check_hash(hash, "abc", 3);
		if (!rows[i].file)
			CHECK_INT(pread(fd, written, 3, 0), is_read ? 3 : 0);
		CHECK_STRING(written, (is_read && !rows[i].file) ? "abc" : "");
		audit_asked(&audit, "GET ");
		if (fd >= 0)
			close(fd);
		audit_end(&audit);
	}
}

/* Every byte is read once, in order. */
static void test_ranges(void)
{
	static const char head[] =
		"HTTP/1.1 206 OK\r\nContent-Length: 4194304\r\nETag: \"e1\"\r\n\r\n";
	char *reply = malloc(sizeof head + RANGE_BYTES);
	strcpy(reply, head);
	memset(reply + sizeof head - 1, 'x', RANGE_BYTES);
	reply[sizeof head - 1 + RANGE_BYTES] = '\0';
	const struct script_step steps[] = {{reply, .close = true}, PART("e1", "abc")};
	struct audit audit;
	unsigned char hash[32];
	bool is_replaced = true;
	if (audit_begin(&audit, steps, 2)) {
		CHECK_INT(read_object(&audit, RANGE_BYTES + 3, -1, &is_replaced, hash), OUTCOME_OK);
		CHECK(!is_replaced);
		char *content = malloc(RANGE_BYTES + 3);
		memset(content, 'x', RANGE_BYTES);
		memcpy(content + RANGE_BYTES, "abc", 3);
		check_hash(hash, content, RANGE_BYTES + 3);
		free(content);
		audit_asked(&audit, "GET GET ");
		CHECK(strstr(audit.aws.server.requests[0].head, "ange: bytes=0-4194303\r\n"));
		CHECK(strstr(audit.aws.server.requests[1].head, "ange: bytes=4194304-4194306\r\n"));
		audit_end(&audit);
	}
	free(reply);
}

int main(void)
{
	test_one_range();
	test_ranges();
	return check_result();
}
