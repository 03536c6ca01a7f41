#include "../check.h"
#include "cli/job/job.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct job_file parse(const char *bytes, size_t n)
{
	struct job_file file = {0};
	job_file_parse(bytes, n, &file);
	return file;
}

static void check_lines(void)
{
	static const struct {
		const char *line, *name, *value, *wrong; /* wrong: how the sentence begins */
	} rows[] = {
		{"a=b", "a", "b", NULL},
		{"  a b\t=  c d \t\r", "a b", "c d", NULL},
		{"a = b = c", "a", "b = c", NULL},
		{"a =", "a", "", NULL},
		{"a = b;c # d", "a", "", "a comment has its own line"},
		{"a =# d", "a", "", "a comment has its own line"},
		{"a = # d", "a", "", "a comment has its own line"},
		{"a = b#c; d", "a", "b#c; d", NULL},
		{"a = \" b # c \"", "a", " b # c ", NULL},
		{"a = 'it is \"so\"'", "a", "it is \"so\"", NULL},
		{"a = \"\"", "a", "", NULL},
		{"a = b \"c\"", "a", "b \"c\"", NULL},
		{"a = \"b", "a", "", "a value that begins with a quote"},
		{"a = \"b\" c", "a", "", "a value that begins with a quote"},
		{"a = \"b\"c\"", "a", "", "a value that begins with a quote"},
		{"a = '", "a", "", "a value that begins with a quote"},
		{"a = b\\", "a", "b\\", NULL},
		{"a", "", "", "this is not name = value"},
		{" = a", "", "", "there is no name"},
		{"[a]", "", "", "a job has no [sections]"},
		{"\xEF\xBB\xBF"
		 "a=b",
			"a", "b", NULL},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct job_file file = parse(rows[i].line, strlen(rows[i].line));
		const struct job_line *line = file.lines;
		bool ok = CHECK_INT(file.n, 1) && CHECK_INT(line->number, 1);
		if (rows[i].wrong)
			ok = ok && CHECK(line->wrong && strncmp(line->wrong, rows[i].wrong,
								strlen(rows[i].wrong)) == 0);
		else
			ok = ok && CHECK(!line->wrong) && CHECK_STRING(line->name, rows[i].name) &&
			     CHECK_STRING(line->value, rows[i].value);
		if (!ok)
			fprintf(stderr, "\tin row %zu: %s\n", i, rows[i].line);
		job_file_clear(&file);
	}
}

static void check_numbers(void)
{
	static const char text[] = "\n# one\n;two\n \t\r\na=1\n\nb\n\0c=2\nd=3";
	struct job_file file = parse(text, sizeof text - 1);
	if (CHECK_INT(file.n, 4)) {
		CHECK_INT(file.lines[0].number, 5);
		CHECK_INT(file.lines[1].number, 7);
		CHECK(file.lines[1].wrong);
		CHECK_INT(file.lines[2].number, 8);
		CHECK_STRING(file.lines[2].wrong, "there is a NUL byte in it");
		CHECK_INT(file.lines[3].number, 9);
		CHECK_STRING(file.lines[3].value, "3");
	}
	job_file_clear(&file);
	file = parse("", 0);
	CHECK_INT(file.n, 0);
	job_file_clear(&file);
}

/* A file of n bytes with this mode; the caller removes it. */
static void write_file(const char *path, size_t n, mode_t mode)
{
	FILE *stream = fopen(path, "w");
	for (size_t i = 0; stream && i < n; i++)
		putc(i % 80 == 79 ? '\n' : '#', stream);
	CHECK(stream && !fclose(stream) && !chmod(path, mode));
}

static void check_loading(void)
{
	char path[] = "/tmp/job-file-XXXXXX";
	struct job_file file = {0};
	struct problem problem;
	close(mkstemp(path));
	write_file(path, 1 << 20, 0644);
	CHECK_INT(job_file_load(path, &file, &problem), 0);
	job_file_clear(&file);
	write_file(path, (1 << 20) + 1, 0644);
	CHECK_INT(job_file_load(path, &file, &problem), -EFBIG);
	CHECK_STRING(problem.text, "it is larger than 1 MiB, which no job is");
	write_file(path, 10, 0646);
	CHECK_INT(job_file_load(path, &file, &problem), geteuid() == 0 ? -EPERM : 0);
	CHECK(!problem.text[0] == (geteuid() != 0));
	job_file_clear(&file);
	unlink(path);
	CHECK_INT(job_file_load(path, &file, &problem), -ENOENT);
	CHECK_STRING(problem.text, "it cannot be read: No such file or directory");
	CHECK_INT(job_file_load("/tmp", &file, &problem), -EISDIR);
}

int main(void)
{
	check_lines();
	check_numbers();
	check_loading();
	return check_result();
}
