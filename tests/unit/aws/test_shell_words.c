/* Words as Python's shlex.split(line) gives them. */
#include "aws/credentials/credentials_providers.h"
#include "check.h"
#include <errno.h>
#include <stdlib.h>

static const struct {
	const char *line, *words; /* each word in [] ; NULL: an error */
} rows[] = {
	{"", ""},
	{"  \t\r\n ", ""},
	{"a", "[a]"},
	{" /usr/bin/helper --for 'my bucket'\t-x ", "[/usr/bin/helper][--for][my bucket][-x]"},
	{"a\\ b c\\\\d \\'", "[a b][c\\d][']"},
	{"\"a \\\" b\" \"\\n \\\\\" '\\'", "[a \" b][\\n \\][\\]"},
	{"x'y'\"z\"w", "[xyzw]"},
	{"'' \"\" a''", "[][][a]"},
	{"$HOME `id` *.c #no ;|&", "[$HOME][`id`][*.c][#no][;|&]"},
	{"a\nb", "[a][b]"},
	{"'open", NULL},
	{"\"open\\\"", NULL},
	{"end\\", NULL},
};

int main(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char **words = NULL, got[200] = "";
		const char *why = NULL;
		int error = shell_words(rows[i].line, &words, &why);
		if (!rows[i].words) {
			CHECK_INT(error, -EINVAL);
			CHECK(why != NULL);
			continue;
		}
		if (!CHECK_INT(error, 0))
			continue;
		for (size_t w = 0; words[w]; w++)
			snprintf(got + strlen(got), sizeof got - strlen(got), "[%s]", words[w]);
		CHECK_STRING(got, rows[i].words);
		free(words);
	}
	return check_result();
}
