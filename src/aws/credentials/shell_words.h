/* A command line cut into words as a POSIX shell would, without anything else a shell does: no
 * variables, no globs, no comments. Source: Python's shlex.split, which botocore uses. */
#pragma once

/* Cuts a line into words. *ret is a NULL-terminated vector with its strings in one block, which the
 * caller frees. 0, -ENOMEM, or -EINVAL with *ret_why where the line cannot be cut. */
int shell_words(const char *line, char ***ret, const char **ret_why);
