/* Names and words of others in sentences: a person sees them without being steered by them, and
 * what does not fit is cut between characters. */
#include "base/problem.h"
#include "base/text.h"
#include "fuzz.h"
#include <stdbool.h>

static bool steers(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7F || strncmp(s, "\xE2\x80\xAE", 3) == 0)
			return true;
	return false;
}

static void show(const char *bytes, size_t n)
{
	struct text shown = TEXT(4 * n + 1);
	text_add_escaped(&shown, bytes, n);
	ENSURE(shown.error == 0 && !steers(text_string(&shown)));
	ENSURE(utf8_valid(text_string(&shown), shown.len));
	struct quoted quoted = quote_bytes(bytes, n);
	ENSURE(memchr(quoted.text, 0, sizeof quoted.text) && !steers(quoted.text));
	ENSURE(utf8_valid(quoted.text, strlen(quoted.text)));
	text_clear(&shown);
}

static void tell(const char *s)
{
	struct problem problem;
	char shown[700], little[8];
	problem_set(&problem, "%s", s);
	problem_prefix(&problem, "%.200s", s);
	ENSURE(memchr(problem.text, 0, sizeof problem.text));
	if (utf8_valid(s, strlen(s)) && strlen(s) <= 200)
		ENSURE(utf8_valid(problem.text, strlen(problem.text)));
	snprintf(problem.code, sizeof problem.code, "%.63s", s);
	problem_format(&problem, shown, sizeof shown);
	problem_format(&problem, little, sizeof little);
	ENSURE(memchr(shown, 0, sizeof shown) && memchr(little, 0, sizeof little));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *s = fuzz_string(data, size);
	show((const char *)data, size);
	tell(s);
	free(s);
	return 0;
}
