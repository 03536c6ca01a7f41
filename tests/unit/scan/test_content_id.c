#include "../check.h"
#include "scan/content/content.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* A shell command applied to the plain content, the file $P. */
struct row {
	const char *command;
	bool is_plain; /* its id is that of $P; else that of its own bytes */
};

static const struct row rows[] = {
	{"cat $P", true},
	{"gzip -c $P", true},
	{"gzip -nc9 $P", true},
	{"bzip2 -c $P", true},
	{"xz -c $P", true},
	{"xz -9c --check=crc32 $P", true},
	{"zstd -qc $P", true},
	{"zstd -qc -19 --no-check $P", true},
	{"lz4 -qc $P", true},
	{"lz4 -qc -BD -9 $P", true},
	/* one content in several members */
	{"head -c 70000 $P | gzip -c; tail -c +70001 $P | gzip -c", true},
	{"head -c 70000 $P | bzip2 -c; tail -c +70001 $P | bzip2 -c", true},
	{"head -c 70000 $P | xz -c; printf '\\0\\0\\0\\0'; tail -c +70001 $P | xz -c", true},
	{"head -c 70000 $P | zstd -qc; tail -c +70001 $P | zstd -qc", true},
	{"head -c 70000 $P | lz4 -qc; tail -c +70001 $P | lz4 -qc", true},
	{"printf '\\120\\052\\115\\030\\3\\0\\0\\0abc'; zstd -qc $P", true}, /* skippable */
	/* truncated */
	{"gzip -c $P | head -c -1", false},
	{"gzip -c $P | head -c 3", false},
	{"gzip -c $P | head -c 20", false},
	{"bzip2 -c $P | head -c -1", false},
	{"xz -c $P | head -c -1", false},
	{"zstd -qc $P | head -c -1", false},
	{"lz4 -qc $P | head -c -1", false},
	{"zstd -qc $P; zstd -qc $P | head -c 5", false},
	/* followed by something else */
	{"gzip -c $P; printf x", false},
	{"gzip -c $P; printf '\\0'", false},
	{"bzip2 -c $P; printf x", false},
	{"xz -c $P; printf '\\0'", false},
	{"zstd -qc $P; printf x", false},
	{"lz4 -qc $P; printf x", false},
	{"gzip -c $P; cat $P", false},
	/* damaged: the checksum at its end */
	{"gzip -c $P | head -c -8; printf '\\0\\0\\0\\0'; gzip -c $P | tail -c 4", false},
	/* it only begins alike */
	{"printf '\\037\\213\\010 is no gzip'", false},
	{"printf 'BZh91AY is no bzip2, but a line'", false},
	{"printf 'BZh'", false},
	{"printf '\\375'", false},
	{":", false},
};

static void id_of(const char *path, char ret[CONTENT_ID_CHARS + 1])
{
	struct problem problem = {.text = ""};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!CHECK(fd >= 0))
		return;
	const struct content content = {.fd = fd, .size = (uint64_t)lseek(fd, 0, SEEK_END)};
	CHECK_INT(content_id(&content, ret, &problem), 0);
	close(fd);
}

/* The first line that the command prints. */
static void run(const char *command, char *ret, size_t size)
{
	char line[600];
	snprintf(line, sizeof line, "set -e; P=plain; %s", command);
	FILE *pipe = popen(line, "re"); // NOLINT(cert-env33-c): fixed commands
	if (!CHECK(pipe != NULL))
		return;
	if (!fgets(ret, (int)size, pipe))
		*ret = '\0';
	CHECK_INT(pclose(pipe), 0);
}

static void run_quietly(const char *command)
{
	char line[200];
	run(command, line, sizeof line);
}

static void test_formats(void)
{
	char plain[CONTENT_ID_CHARS + 1] = "";
	run("seq 1 60000 >$P; sha256sum $P", plain, sizeof plain);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char own[CONTENT_ID_CHARS + 1] = "", got[CONTENT_ID_CHARS + 1] = "", command[500];
		snprintf(command, sizeof command, "{ %s; } >tested; sha256sum tested",
			rows[i].command);
		run(command, own, sizeof own);
		id_of("tested", got);
		if (!CHECK_STRING(got, rows[i].is_plain ? plain : own))
			fprintf(stderr, "\tof %s\n", rows[i].command);
	}
	run_quietly("rm -f plain tested");
}

static void test_size(void)
{
	char id[CONTENT_ID_CHARS + 1], want[CONTENT_ID_CHARS + 1] = "";
	struct problem problem = {.text = ""};
	run("printf abcdef >tested; printf abc | sha256sum", want, sizeof want);
	int fd = open("tested", O_RDONLY | O_CLOEXEC);
	struct content content = {.fd = fd, .size = 3};
	CHECK_INT(content_id(&content, id, &problem), 0);
	CHECK_STRING(id, want);
	content.size = 7;
	CHECK_INT(content_id(&content, id, &problem), -ESTALE);
	close(fd);
	run_quietly("rm tested");
}

static bool is_over(void *arg)
{
	unsigned *left = arg;
	return !(*left)--;
}

static void test_ends(void)
{
	char id[CONTENT_ID_CHARS + 1];
	struct problem problem = {.text = ""};
	run_quietly("truncate -s 100M tested; gzip tested");
	int fd = open("tested.gz", O_RDONLY | O_CLOEXEC);
	unsigned left = 3;
	const struct content content = {.fd = fd,
		.size = (uint64_t)lseek(fd, 0, SEEK_END),
		.abandon = is_over,
		.arg = &left};
	CHECK_INT(content_id(&content, id, &problem), -ECANCELED);
	close(fd);
	run_quietly("rm tested.gz");
}

static void test_too_large(void)
{
	char id[CONTENT_ID_CHARS + 1];
	struct problem problem = {.text = ""};
	run_quietly("seq 1 9 | zstd -qc --long=30 --zstd=wlog=30 --no-content-size >tested");
	int fd = open("tested", O_RDONLY | O_CLOEXEC);
	const struct content content = {.fd = fd, .size = (uint64_t)lseek(fd, 0, SEEK_END)};
	CHECK_INT(content_id(&content, id, &problem), -EFBIG);
	CHECK(strstr(problem.text, "more than 128 MiB of memory") != NULL);
	close(fd);
	run_quietly("rm tested");
}

int main(void)
{
	char directory[] = "/tmp/content-XXXXXX";
	if (!CHECK(mkdtemp(directory) && chdir(directory) == 0))
		return check_result();
	test_formats();
	test_size();
	test_ends();
	test_too_large();
	CHECK_INT(rmdir(directory), 0);
	return check_result();
}
