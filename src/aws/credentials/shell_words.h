/* A command line cut into words as a POSIX shell would, without anything else a shell does: no
 * variables, no globs, no comments. Source: Python's shlex.split, which botocore uses. */
#pragma once

/* *ret is one block: a NULL-terminated vector and its strings; free it with free(). 0; -EINVAL with
 * *ret_why where it cannot be cut; -ENOMEM. */
int shell_words(const char *line, char ***ret, const char **ret_why);
