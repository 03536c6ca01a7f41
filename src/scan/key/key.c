/* Checks every key, whether it comes from a path, a template or the command line, and makes the
 * sentence about two files that have the same key. source_key.c makes the key. Nothing here reads
 * files or sends requests. */
#include "scan/key/key.h"
#include <string.h>

void key_add_base(struct text *key, const char *prefix)
{
	size_t len = strlen(prefix);
	text_add_bytes(key, prefix, len);
	if (len > 0 && prefix[len - 1] != '/')
		text_add_char(key, '/');
}

bool key_valid(const char *key, size_t len, struct problem *ret_problem)
{
	if (len == 0)
		return problem_error(ret_problem, false, "the key is empty");
	if (len > KEY_BYTES_MAX)
		return problem_error(ret_problem, false,
			"the key would have %zu bytes, and S3 allows %d; use a shorter name or "
			"prefix, or exclude it",
			len, KEY_BYTES_MAX);
	if (!utf8_valid(key, len))
		return problem_error(ret_problem, false,
			"the name is not UTF-8, so it cannot be a key; rename it or exclude it");
	for (const unsigned char *c = (const unsigned char *)key, *end = c + len; c < end; c++) {
		const bool is_control = *c < 0x20 && *c != '\t' && *c != '\n' && *c != '\r';
		/* In UTF-8, U+FFFE is EF BF BE, and U+FFFF is EF BF BF. The low byte of the code
		 * point is the last byte | 0x40. Two bytes always follow EF in valid UTF-8. */
		if (is_control || (*c == 0xEF && c[1] == 0xBF && c[2] >= 0xBE))
			return problem_error(ret_problem, false,
				"the name contains the character U+%04X, which XML does not allow, "
				"so it cannot be a key; rename it or exclude it",
				is_control ? *c : 0xFF00U | c[2] | 0x40U);
	}
	return true;
}

void collision_explain(const char *key, const char *path, const char *other_path,
	const char *remedy, struct problem *ret)
{
	if (strcmp(path, other_path) == 0) {
		problem_set(ret,
			"two SOURCEs contain this file, with the key %s: give only one of them",
			quote(key).text);
		return;
	}
	problem_set(ret, "two files have the key %s: %s and %s; %s", quote(key).text,
		quote(path).text, quote(other_path).text, remedy);
}
