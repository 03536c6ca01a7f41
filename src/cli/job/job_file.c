/* The text of a job's file, cut into lines "name = value". job.c reads the lines by the table of
 * options, and job_asked.c reads the variables of a unit by the same syntax. What a name means is
 * not known here. Root is protected from files that others may write, since they would say what it
 * does. */
#include "cli/job/job_file.h"
#include "base/files.h"
#include "base/quote.h"
#include "base/text.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX_BYTES (1U << 20)
#define BOM            "\xEF\xBB\xBF"

void job_file_free(struct job_file *file)
{
	if (!file)
		return;
	free(file->text);
	free(file->lines);
	free(file);
}

/* What a value in quotes comes to, cut in place. */
static const char *unquote(char *value, struct job_line *line)
{
	char *end = strchr(value + 1, *value);
	if (!end || end[1]) {
		line->wrong = "a value that begins with a quote ends with the same quote, and has "
			      "none in between";
		return value;
	}
	*end = 0;
	return value + 1;
}

/* A comment after a value would become part of the value without notice, so that a pattern would
 * match nothing. */
static bool has_comment(const char *value)
{
	for (const char *at = value; (at = strchr(at, '#')); at++)
		if (at == value || text_is_blank(at[-1]))
			return true;
	return false;
}

static struct job_line read_line(unsigned number, char *text)
{
	struct job_line line = {.number = number, .name = "", .value = ""};
	char *equals = strchr(text, '=');
	if (*text == '[')
		line.wrong = "a job has no [sections]; write name = value";
	else if (!equals)
		line.wrong = "this is not name = value; a flag is written as name = yes";
	else if (equals == text)
		line.wrong = "there is no name before the =";
	if (line.wrong)
		return line;
	*equals = 0;
	char *value = text_trim(equals + 1);
	line.name = text_trim(text);
	line.value = value;
	if (*value == '"' || *value == '\'')
		line.value = unquote(value, &line);
	else if (has_comment(value))
		line.wrong = "a comment has a line of its own; if the # is meant, put the value in "
			     "quotes";
	return line;
}

static int add(struct job_file *file, size_t *cap, struct job_line line)
{
	if (file->n == *cap) {
		*cap = *cap ? 2 * *cap : 32;
		struct job_line *grown = realloc(file->lines, *cap * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		file->lines = grown;
	}
	file->lines[file->n++] = line;
	return 0;
}

static int cut_into_lines(struct job_file *file, size_t n)
{
	char *next = file->text, *end = file->text + n;
	size_t cap = 0;
	int error = 0;
	if (n >= strlen(BOM) && memcmp(next, BOM, strlen(BOM)) == 0)
		next += strlen(BOM);
	for (unsigned number = 1; !error && next < end; number++) {
		char *start = next, *stop = memchr(start, '\n', (size_t)(end - start));
		stop = stop ? stop : end;
		next = stop + 1;
		*stop = 0;
		const bool has_nul = strlen(start) != (size_t)(stop - start);
		char *text = text_trim(start);
		if (has_nul)
			error = add(file, &cap,
				(struct job_line){number, "", "", "there is a NUL byte in it"});
		else if (*text && *text != '#' && *text != ';')
			error = add(file, &cap, read_line(number, text));
	}
	return error;
}

int job_file_parse(const char *bytes, size_t n, struct job_file **ret)
{
	struct job_file *file = calloc(1, sizeof *file);
	if (!file)
		return -ENOMEM;
	file->text = malloc(n + 1);
	int error = file->text ? 0 : -ENOMEM;
	if (!error) {
		memcpy(file->text, bytes, n);
		file->text[n] = 0;
		error = cut_into_lines(file, n);
	}
	if (error)
		job_file_free(file);
	else
		*ret = file;
	return error;
}

/* Whoever can write the file can make root read any file, and upload it to any place. */
static int check_owner(const char *path, const struct stat *st, struct problem *problem)
{
	if (geteuid() != 0)
		return 0;
	if (st->st_uid != 0)
		problem_set(problem,
			"it belongs to another user (uid %u), and root would do what that user "
			"writes into it; run: chown root %s",
			(unsigned)st->st_uid, quote(path).text);
	else if (st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && st->st_gid != 0))
		problem_set(problem,
			"others than root may write it (mode %03o), and root would do what they "
			"write into it; run: chmod go-w %s",
			(unsigned)st->st_mode & 0777, quote(path).text);
	else
		return 0;
	return -EPERM;
}

static int read_all(int fd, struct text *text)
{
	char buf[4096];
	ssize_t n;
	while (!text->error && (n = read(fd, buf, sizeof buf)) != 0)
		if (n > 0)
			text_add_bytes(text, buf, (size_t)n);
		else if (errno != EINTR)
			return -errno;
	return text->error;
}

static int read_file(const char *path, int fd, struct text *text, struct problem *problem)
{
	struct stat st;
	if (fstat(fd, &st))
		return -errno;
	const int error = check_owner(path, &st, problem);
	return error ? error : read_all(fd, text);
}

int job_file_load(const char *path, struct job_file **ret, struct problem *ret_problem)
{
	struct text text = TEXT(FILE_MAX_BYTES);
	ret_problem->text[0] = 0;
	const int fd = named_file_open(path);
	int error = fd < 0 ? fd : read_file(path, fd, &text, ret_problem);
	if (fd >= 0)
		close(fd);
	if (!error)
		error = job_file_parse(text_string(&text), text.len, ret);
	text_clear(&text);
	if (error == -EMSGSIZE)
		problem_set(ret_problem, "it is larger than 1 MiB, which no job is");
	else if (error && !ret_problem->text[0])
		problem_set(ret_problem, "it cannot be read: %s", named_file_error(error));
	return error;
}
