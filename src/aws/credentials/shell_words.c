#include "aws/credentials/shell_words.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Copies the quoted part that begins at s, which is its quote, to *to; returns what follows it, or
 * NULL if it does not end. */
static const char *copy_quoted(const char *s, char **to)
{
	char quote = *s++;
	for (; *s && *s != quote; s++) {
		if (quote == '"' && *s == '\\' && (s[1] == '"' || s[1] == '\\'))
			s++;
		*(*to)++ = *s;
	}
	return *s ? s + 1 : NULL;
}

/* Copies one word; returns what follows it, or NULL with *ret_why. */
static const char *copy_word(const char *s, char *to, char **ret_end, const char **ret_why)
{
	while (s && *s && !is_space(*s)) {
		if (*s == '\'' || *s == '"') {
			s = copy_quoted(s, &to);
			*ret_why = "a quotation does not end";
		} else if (*s == '\\' && !s[1]) {
			s = NULL;
			*ret_why = "it ends in a backslash";
		} else {
			s += *s == '\\';
			*to++ = *s++;
		}
	}
	*to++ = 0;
	*ret_end = to;
	return s;
}

int shell_words(const char *line, char ***ret, const char **ret_why)
{
	/* As many words as characters, and the strings after them. */
	size_t most = strlen(line) / 2 + 2, bytes = strlen(line) + 2;
	char **words = malloc(most * sizeof *words + bytes);
	if (!words)
		return -ENOMEM;
	char *to = (char *)(words + most);
	size_t n = 0;
	for (const char *s = line;;) {
		while (is_space(*s))
			s++;
		if (!*s)
			break;
		words[n++] = to;
		s = copy_word(s, to, &to, ret_why);
		if (!s) {
			free(words);
			return -EINVAL;
		}
	}
	words[n] = NULL;
	*ret = words;
	return 0;
}
