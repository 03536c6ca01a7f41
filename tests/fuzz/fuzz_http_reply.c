/* Header lines as the wire brings them: the first of a name is found, trimmed, whatever surrounds
 * it. */
#include "base/text.h"
#include "fuzz.h"
#include "http/http.h"
#include <ctype.h>

#define NAME "etag"

/* The first line of that name, read the plainest way: *ret is empty if there is none. */
static bool find_plainly(const char *lines, size_t n, struct text *ret)
{
	for (size_t i = 0, len, kept = 0; i < n && kept < HTTP_HEADERS_MAX; i += len + 1) {
		const char *line = lines + i, *end = memchr(line, '\n', n - i);
		len = end ? (size_t)(end - line) : n - i;
		if (!memchr(line, ':', len) || memchr(line, 0, len))
			continue;
		kept++;
		if (len <= strlen(NAME) || line[strlen(NAME)] != ':' ||
			strncasecmp(line, NAME, strlen(NAME)) != 0)
			continue;
		size_t from = strlen(NAME) + 1, to = len;
		while (from < to && strchr(" \t\r", line[from]))
			from++;
		while (to > from && strchr(" \t\r", line[to - 1]))
			to--;
		text_add_bytes(ret, line + from, to - from);
		return true;
	}
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 32U << 10) /* of 64 KiB, and what is over is left out */
		return 0;
	const char *lines = (const char *)data;
	struct text want = TEXT(size);
	struct http_reply reply = {0};
	for (int round = 0; round < 2; round++) { /* a reply is used again */
		http_reply_begin(&reply, 1024);
		for (size_t i = 0, len; i < size; i += len + 1) {
			const char *end = memchr(lines + i, '\n', size - i);
			len = end ? (size_t)(end - (lines + i)) : size - i;
			http_reply_add_header(&reply, lines + i, len);
		}
	}
	bool has = find_plainly(lines, size, &want);
	const char *value = http_reply_header(&reply, NAME);
	ENSURE(reply.n_headers <= HTTP_HEADERS_MAX && reply.headers.error == 0);
	ENSURE(has == (value != NULL));
	ENSURE(!has || strcmp(value, text_string(&want)) == 0);
	http_reply_clear(&reply);
	text_clear(&want);
	return 0;
}
