#include "scan/key/key.h"
#include "scan/scan.h"
#include <string.h>

void key_add_base(struct text *key, const char *prefix)
{
	size_t len = strlen(prefix);
	text_add_bytes(key, prefix, len);
	if (len > 0 && prefix[len - 1] != '/')
		text_add_char(key, '/');
}

bool key_last_below(const char *prefix, char *ret)
{
	static const char *const greatest[] = {
		"", "\x7F", "\xDF\xBF", "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF"};
	size_t n = strlen(prefix), bytes;
	if (n > KEY_BYTES_MAX)
		return false;
	memcpy(ret, prefix, n + 1);
	for (; n < KEY_BYTES_MAX; n += bytes) {
		bytes = KEY_BYTES_MAX - n < 4 ? KEY_BYTES_MAX - n : 4;
		strcpy(ret + n, greatest[bytes]);
	}
	return true;
}

/* The first byte of a character that XML 1.0 cannot carry, or NULL. The bytes are UTF-8. */
static const unsigned char *find_unfit(const char *key, size_t len)
{
	const unsigned char *c = (const unsigned char *)key;
	for (const unsigned char *end = c + len; c < end; c++) {
		if (*c < 0x20 && *c != '\t' && *c != '\n' && *c != '\r')
			return c;
		/* U+FFFE and U+FFFF */
		if (*c == 0xEF && c[1] == 0xBF && c[2] >= 0xBE)
			return c;
	}
	return NULL;
}

bool key_valid(const char *key, size_t len, struct problem *ret_problem)
{
	if (len == 0) {
		problem_set(ret_problem, "the key is empty");
		return false;
	}
	if (len > KEY_BYTES_MAX) {
		problem_set(ret_problem,
			"the key would have %zu bytes, and S3 allows %d; use a shorter name or "
			"prefix, or exclude it",
			len, KEY_BYTES_MAX);
		return false;
	}
	if (!utf8_valid(key, len)) {
		problem_set(ret_problem,
			"the name is not UTF-8, so it cannot be a key; rename it or exclude it");
		return false;
	}
	const unsigned char *unfit = find_unfit(key, len);
	if (!unfit)
		return true;
	unsigned code = *unfit < 0x20 ? *unfit : 0xFF00U | unfit[2] | 0x40U;
	problem_set(ret_problem,
		"the name contains the character U+%04X, which XML does not allow, so it "
		"cannot be a key; rename it or exclude it",
		code);
	return false;
}
