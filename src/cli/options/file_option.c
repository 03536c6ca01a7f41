#include "cli/options/file_option.h"
#include "base/path.h"
#include "base/quote.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

static bool is_directory(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

int file_option_check(const struct file_option *option, struct problem *ret_problem)
{
	char *folder = path_folder(option->path);
	const bool is_there = folder && is_directory(folder);
	const bool is_taken = is_directory(option->path);
	if (!folder)
		problem_set(ret_problem, "out of memory");
	else if (!is_there)
		problem_set(ret_problem, "%s: the directory %s does not exist: make it, or %s",
			option->name, quote(folder).text, option->other);
	else if (is_taken)
		problem_set(ret_problem, "%s: %s is a directory: name a file in it, such as %s/%s",
			option->name, quote(option->path).text, quote(option->path).text,
			option->example);
	free(folder);
	return is_there && !is_taken ? 0 : -EINVAL;
}
