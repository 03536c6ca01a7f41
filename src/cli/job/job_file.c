/* The syntax of a job's file, and of the file with the variables of its unit, which are split into
 * lines "name = value". This file does not know the meaning of names. */
#include "base/files.h"
#include "base/must_have.h"
#include "base/text.h"
#include "cli/job/job.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX_BYTES (1U << 20)

void job_file_clear(struct job_file *file)
{
	free(file->text);
	free(file->lines);
	*file = (struct job_file){0};
}

/* Sets the value of a line, or the reason why it cannot be read. A value may be in quotes. */
static void read_value(char *value, struct job_line *line)
{
	line->value = value;
	if (*value == '"' || *value == '\'') {
		char *end = strchr(value + 1, *value);
		const bool ends_line = end && !end[1];
		if (ends_line) {
			*end = 0;
			line->value = value + 1;
		} else {
			line->wrong = "a value that begins with a quote ends with the same quote, "
				      "and has none in between";
		}
		return;
	}
	/* A comment after a value is refused: it would become part of the value without notice, and
	 * a pattern, for example, would match nothing. */
	for (const char *at = value; (at = strchr(at, '#')); at++)
		if (at == value || text_is_blank(at[-1]))
			line->wrong = "a comment has its own line; or put the value in quotes";
}

/* Splits the text of one line in place. If the line cannot be read, `wrong` is the reason. */
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
	line.name = text_trim(text);
	read_value(text_trim(equals + 1), &line);
	return line;
}

void job_file_parse(const char *bytes, size_t n, struct job_file *ret)
{
	size_t max_lines = 1; /* number of lines, including a last one without '\n' */
	for (size_t i = 0; i < n; i++)
		max_lines += bytes[i] == '\n';
	*ret = (struct job_file){.text = must_have(malloc(n + 1)),
		.lines = must_have(calloc(max_lines, sizeof *ret->lines))};
	memcpy(ret->text, bytes, n);
	ret->text[n] = 0;
	char *next = ret->text, *end = ret->text + n;
	next += utf8_byte_order_mark(next);
	for (unsigned number = 1; next < end; number++) {
		char *start = next, *stop = memchr(start, '\n', (size_t)(end - start));
		stop = stop ? stop : end;
		next = stop + 1;
		*stop = 0;
		const bool has_nul = strlen(start) != (size_t)(stop - start);
		char *text = text_trim(start);
		if (has_nul)
			ret->lines[ret->n++] =
				(struct job_line){number, "", "", "there is a NUL byte in it"};
		else if (*text && *text != '#' && *text != ';')
			ret->lines[ret->n++] = read_line(number, text);
	}
}

/* If this process is root's, refuses a file that other users may write. They could make root read
 * any file, and upload it to any place. Returns 0, or -EPERM with a sentence. */
static int check_owner(const char *path, const struct stat *st, struct problem *problem)
{
	if (geteuid() != 0)
		return 0;
	const bool group_may_write = st->st_mode & S_IWGRP && st->st_gid != 0;
	if (st->st_uid != 0)
		problem_set(problem,
			"it belongs to another user (uid %u), and root would do what that user "
			"writes into it; run: chown root %s",
			(unsigned)st->st_uid, quote(path).text);
	else if (st->st_mode & S_IWOTH || group_may_write)
		problem_set(problem,
			"others than root may write it (mode %03o), and root would do what they "
			"write into it; run: chmod go-w %s",
			(unsigned)st->st_mode & 0777, quote(path).text);
	else
		return 0;
	return -EPERM;
}

int job_file_load(const char *path, struct job_file *ret, struct problem *ret_problem)
{
	struct text text = TEXT(FILE_MAX_BYTES);
	struct stat st;
	int error = named_file_read(path, &text, &st);
	if (error == -EFBIG)
		problem_set(ret_problem, "it is larger than 1 MiB, which no job is");
	else if (error)
		problem_set(ret_problem, "it cannot be read: %s", named_file_error(error));
	else
		error = check_owner(path, &st, ret_problem);
	if (!error)
		job_file_parse(text_string(&text), text.len, ret);
	text_clear(&text);
	return error;
}

#define HOST_JOBS "/etc/s3once"

/* The folder that S3ONCE_JOBS names; NULL: none. */
static const char *chosen_folder(void)
{
	const char *folder = getenv("S3ONCE_JOBS");
	return folder && *folder ? folder : NULL;
}

/* The folder of this user's own jobs, with its NUL; false: there is none. */
static bool find_own_folder(char ret[static PATH_MAX])
{
	const char *folder = getenv("XDG_CONFIG_HOME"), *below = "/s3once";
	if (geteuid() == 0 || chosen_folder())
		return false;
	if (!folder || *folder != '/') { /* XDG ignores a relative path */
		folder = getenv("HOME");
		below = "/.config/s3once";
	}
	return folder && *folder == '/' &&
	       snprintf(ret, PATH_MAX, "%s%s", folder, below) < PATH_MAX;
}

static char *join_path(const char *folder, const char *name, const char *ending)
{
	char *path;
	return must_have(asprintf(&path, "%s/%s%s", folder, name, ending) < 0 ? NULL : path);
}

char *job_own_path(const char *name)
{
	char own[PATH_MAX];
	return find_own_folder(own) ? join_path(own, name, JOB_SUFFIX) : NULL;
}

#define JOBS_MAX 1000 /* in a folder; further ones are not proposed */

/* Adds the names of the jobs in a folder, which need not exist. The caller frees each name. */
static void add_jobs(const char *folder, char **names, size_t *n)
{
	const size_t ending = strlen(JOB_SUFFIX);
	DIR *dir = opendir(folder);
	const struct dirent *each;
	for (size_t i = 0; dir && i < JOBS_MAX && (each = readdir(dir)); i++) {
		const size_t length = strlen(each->d_name);
		if (length > ending && strcmp(each->d_name + length - ending, JOB_SUFFIX) == 0)
			names[(*n)++] = must_have(strndup(each->d_name, length - ending));
	}
	if (dir)
		closedir(dir);
}

char *job_nearest(const char *name)
{
	char *names[2 * JOBS_MAX], own[PATH_MAX];
	const char *folder = chosen_folder();
	size_t n = 0;
	if (find_own_folder(own))
		add_jobs(own, names, &n);
	add_jobs(folder ? folder : HOST_JOBS, names, &n);
	const char *nearest = nearest_name(name, (const char *const *)names, n);
	char *ret = nearest ? must_have(strdup(nearest)) : NULL;
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	return ret;
}

char *job_path(const char *name, const char *ending)
{
	const char *folder = chosen_folder();
	char own[PATH_MAX];
	struct stat st;
	/* Whatever the ending, the folder is the one that has NAME.conf. */
	char *file = find_own_folder(own) ? join_path(own, name, JOB_SUFFIX) : NULL;
	if (file && !lstat(file, &st)) /* a link to nowhere is an error, not the job of the host */
		folder = own;
	free(file);
	return join_path(folder ? folder : HOST_JOBS, name, ending);
}
