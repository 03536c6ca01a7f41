#include "../check.h"
#include "base/checksum.h"
#include "base/text.h"
#include "scan/content/content.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define PLAIN_BYTES 200000 /* several readings */

/* A shell command applied to the plain content, the file "plain". */
static const char *const commands[] = {
	"cat plain",
	"gzip -c plain",
	"xz -0c plain",
	"zstd -qc plain",
	"head -c 70000 plain | gzip -c; tail -c +70001 plain | gzip -c",
};

static unsigned char plain[PLAIN_BYTES];

static void run(const char *command)
{
	CHECK_INT(system(command), 0); // NOLINT(cert-env33-c): fixed commands
}

static void make_plain(void)
{
	for (size_t i = 0; i < sizeof plain; i++)
		plain[i] = (unsigned char)(i * i / 7 + i / 251);
	const int fd = open("plain", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK_INT(write(fd, plain, sizeof plain), sizeof plain);
	close(fd);
}

static struct content content_of(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	return (struct content){.fd = fd, .size = (uint64_t)lseek(fd, 0, SEEK_END)};
}

static void id_of(const unsigned char *bytes, size_t n, char ret[static CONTENT_ID_CHARS + 1])
{
	struct digest digest;
	struct sums sums;
	CHECK_INT(digest_init(&digest, DIGEST_SHA256), 0);
	digest_update(&digest, bytes, n);
	digest_finish(&digest, &sums);
	hex_encode(sums.sha256, sizeof sums.sha256, ret);
	digest_clear(&digest);
}

static void check_id(const char *got, uint64_t from, uint64_t to)
{
	char want[CONTENT_ID_CHARS + 1];
	id_of(plain + from, to - from, want);
	if (!CHECK_STRING(got, want))
		fprintf(stderr, "\tof the bytes from %" PRIu64 " to %" PRIu64 "\n", from, to);
}

/* Those of other bytes are not there, nor those behind the content's end. */
static void check_prefixes(const struct content *content)
{
	static const uint64_t at[] = {0, 1, 1, 65535, 65536, 65537, 199999, 200000, 200001};
	enum { N = sizeof at / sizeof *at };
	struct content_prefix prefixes[N];
	char ids[N][CONTENT_ID_CHARS + 1];
	for (size_t n = 0; n <= N; n++) {
		struct content_measured found;
		struct problem problem = {.text = ""};
		uint64_t longest = 0;
		for (size_t i = 0; i < n; i++) {
			id_of(plain, at[i] < PLAIN_BYTES ? at[i] : PLAIN_BYTES, ids[i]);
			ids[i][0] ^= (i % 3 == 1); /* another id */
			prefixes[i] = (struct content_prefix){at[i], ids[i], i % 2};
		}
		CHECK_INT(content_measure(content, prefixes, n, &found, &problem), 0);
		CHECK_INT(found.bytes, PLAIN_BYTES);
		check_id(found.id, 0, PLAIN_BYTES);
		check_id(found.first, 0, CONTENT_EDGE_BYTES);
		for (size_t i = 0; i < n; i++) {
			const bool is_there = i % 3 != 1 && at[i] <= PLAIN_BYTES;
			CHECK_INT(prefixes[i].is_there, is_there);
			longest = is_there ? at[i] : longest;
		}
		check_id(found.rest, longest, PLAIN_BYTES);
	}
}

/* The copy is written over what a former one has left. */
static void check_range(const struct content *content, uint64_t from, uint64_t to, int copy_fd)
{
	static unsigned char copied[PLAIN_BYTES + 1];
	const struct content_range range = {from, to, copy_fd};
	char id[CONTENT_ID_CHARS + 1];
	struct problem problem = {.text = ""};
	if (!CHECK_INT(content_copy(content, &range, id, &problem), 0))
		return;
	check_id(id, from, to);
	CHECK_INT(pread(copy_fd, copied, sizeof copied, 0), to - from);
	CHECK(memcmp(copied, plain + from, to - from) == 0);
}

static void test_formats(void)
{
	static const uint64_t ranges[][2] = {{0, PLAIN_BYTES}, {0, 0}, {5, 6}, {65536, 131072},
		{65535, 65537}, {PLAIN_BYTES, PLAIN_BYTES}, {199999, PLAIN_BYTES}};
	const int copy_fd = open("copy", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		char command[200];
		snprintf(command, sizeof command, "{ %s; } >tested", commands[i]);
		run(command);
		const struct content content = content_of("tested");
		check_prefixes(&content);
		for (size_t j = 0; j < sizeof ranges / sizeof *ranges; j++)
			check_range(&content, ranges[j][0], ranges[j][1], copy_fd);
		close(content.fd);
	}
	close(copy_fd);
}

/* Its bytes are the content, not what was decompressed until that showed. */
static void test_compressed_in_part(void)
{
	struct problem problem = {.text = ""};
	char want[CONTENT_ID_CHARS + 1], id[CONTENT_ID_CHARS + 1], first[2];
	run("{ gzip -c plain; printf x; } >tested");
	const struct content content = content_of("tested");
	const int copy_fd = open("copy", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	const struct content_range range = {0, 2, copy_fd};
	id_of((const unsigned char *)"\037\213", 2, want);
	CHECK_INT(content_copy(&content, &range, id, &problem), 0);
	CHECK_STRING(id, want);
	CHECK_INT(lseek(copy_fd, 0, SEEK_END), 2);
	CHECK_INT(pread(copy_fd, first, sizeof first, 0), 2);
	CHECK(memcmp(first, "\037\213", 2) == 0);
	char id_of_plain[CONTENT_ID_CHARS + 1];
	struct content_prefix prefixes[] = {{2, want, false}, {70000, id_of_plain, true}};
	struct content_measured found;
	id_of(plain, 70000, id_of_plain);
	CHECK_INT(content_measure(&content, prefixes, 2, &found, &problem), 0);
	CHECK(prefixes[0].is_there && !prefixes[1].is_there && found.bytes == content.size);
	close(copy_fd);
	close(content.fd);
}

/* From each end of a log that is kept, what follows has the same ids as if all of it was read. */
static void test_measured_further(void)
{
	static const uint64_t ends[] = {0, 1, 63, 64, 65, 70000, PLAIN_BYTES - 1, PLAIN_BYTES};
	struct problem problem = {.text = ""};
	const struct content content = content_of("plain");
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		struct content known = content;
		struct content_measured before, after;
		known.size = ends[i];
		CHECK_INT(content_measure(&known, NULL, 0, &before, &problem), 0);
		CHECK_INT((long long)before.sha256.bytes, (long long)(ends[i] / 64 * 64));
		char first[CONTENT_ID_CHARS + 1];
		CHECK_INT(content_first(&content, ends[i], first), 0);
		check_id(first, 0, ends[i] < CONTENT_EDGE_BYTES ? ends[i] : CONTENT_EDGE_BYTES);
		CHECK_STRING(before.first, first);
		struct content_prefix prefix = {.bytes = ends[i], .id = before.id};
		CHECK_INT(content_measure_more(&content, &before.sha256, &prefix, &after), 0);
		CHECK(prefix.is_there && after.bytes == PLAIN_BYTES);
		check_id(after.id, 0, PLAIN_BYTES);
		check_id(after.rest, ends[i], PLAIN_BYTES);
		CHECK_INT((long long)after.sha256.bytes, PLAIN_BYTES / 64 * 64);
		prefix.id = after.id;
		CHECK_INT(content_measure_more(&content, &before.sha256, &prefix, &after), 0);
		CHECK_INT(prefix.is_there, ends[i] == PLAIN_BYTES);
	}
	close(content.fd);
}

/* A byte that is changed shows in the edges if it is among the first or the last ones. */
static void test_edges(void)
{
	static const struct {
		uint64_t at;
		bool shows;
	} bytes[] = {{0, true}, {65535, true}, {65536, false}, {100000 - 65537, true},
		{150000 - 65537, false}, {150000 - 65536, true}, {149999, true}, {150000, false}};
	char before[CONTENT_ID_CHARS + 1], after[CONTENT_ID_CHARS + 1];
	run("cp plain changed");
	const int fd = open("changed", O_RDWR | O_CLOEXEC);
	const struct content content = {.fd = fd, .size = PLAIN_BYTES};
	CHECK_INT(content_edges(&content, 150000, before), 0);
	for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
		const unsigned char other = plain[bytes[i].at] ^ 1;
		CHECK_INT(pwrite(fd, &other, 1, (off_t)bytes[i].at), 1);
		CHECK_INT(content_edges(&content, 150000, after), 0);
		CHECK_INT(strcmp(before, after) != 0, bytes[i].shows);
		CHECK_INT(pwrite(fd, plain + bytes[i].at, 1, (off_t)bytes[i].at), 1);
	}
	CHECK_INT(content_edges(&content, PLAIN_BYTES + 1, after), -ESTALE);
	close(fd);
}

static void test_refused(void)
{
	struct problem problem = {.text = ""};
	char id[CONTENT_ID_CHARS + 1];
	struct content content = content_of("plain");
	const int copy_fd = open("copy", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct content_range range = {10, PLAIN_BYTES + 1, copy_fd};
	CHECK_INT(content_copy(&content, &range, id, &problem), -ESTALE);
	range.from = range.to;
	CHECK_INT(content_copy(&content, &range, id, &problem), -ESTALE);
	const int unwritable = open("plain", O_RDONLY | O_CLOEXEC);
	range = (struct content_range){10, 20, unwritable};
	CHECK_INT(content_copy(&content, &range, id, &problem), -EINVAL);
	close(unwritable);
	content.size++; /* the file is shorter by now */
	range = (struct content_range){10, PLAIN_BYTES + 1, copy_fd};
	CHECK_INT(content_copy(&content, &range, id, &problem), -ESTALE);
	struct content_measured found;
	CHECK_INT(content_measure(&content, NULL, 0, &found, &problem), -ESTALE);
	close(copy_fd);
	close(content.fd);
}

int main(void)
{
	char directory[] = "/tmp/range-XXXXXX";
	if (!CHECK(mkdtemp(directory) && chdir(directory) == 0))
		return check_result();
	make_plain();
	test_formats();
	test_compressed_in_part();
	test_measured_further();
	test_edges();
	test_refused();
	run("rm -f plain tested copy changed");
	CHECK_INT(rmdir(directory), 0);
	return check_result();
}
