/* Names and other text from outside, as part of a sentence: they are escaped, and cut so that they
 * leave room for the rest. */
#include "base/quote.h"
#include "base/text.h"
#include <stdio.h>
#include <string.h>

/* Escapes one character at a time, so that a text that is too long is cut between two characters.
 */
struct quoted quote_bytes(const char *s, size_t n)
{
	struct quoted quoted = {0};
	struct text escaped = TEXT(sizeof quoted.text - 4);
	size_t whole = 0;
	uint32_t code;
	for (size_t i = 0, length; i < n && !escaped.error; i += length) {
		length = utf8_next(s + i, n - i, &code);
		length = length ? length : 1;
		text_add_escaped(&escaped, s + i, length);
		if (!escaped.error)
			whole = escaped.len;
	}
	const char *end = escaped.error ? "..." : "";
	snprintf(quoted.text, sizeof quoted.text, "%.*s%s", (int)whole, text_string(&escaped), end);
	text_clear(&escaped);
	return quoted;
}

struct quoted quote(const char *s)
{
	return quote_bytes(s, strlen(s));
}

struct quoted quote_url(const char *url)
{
	const char *scheme = strstr(url, "://");
	const char *begin = scheme ? scheme + 3 : url, *at = strrchr(begin, '@');
	const char *query = begin + strcspn(begin, "?#");
	struct text shown = TEXT(strlen(url) + 16);
	text_add_bytes(&shown, url, (size_t)(begin - url));
	if (at)
		text_add(&shown, "***@");
	if (!at || at < query) { /* else a password may contain the '?' */
		begin = at ? at + 1 : begin;
		text_add_bytes(&shown, begin, (size_t)(query - begin));
	}
	if (*query)
		text_add(&shown, "?***");
	const struct quoted quoted = quote(text_string(&shown));
	text_clear(&shown);
	return quoted;
}
