/* Problems: sentences about a failure that can be copied and kept, and names as part of such a
 * sentence. */
#include "base/problem.h"
#include "base/text.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Removes the bytes of a character that snprintf has cut in the middle. At most three of its four
 * bytes can be left. */
static void end_at_character(char *s)
{
	size_t n = strlen(s);
	for (int i = 0; i < 3 && n && !utf8_valid(s, n); i++)
		s[--n] = 0;
}

__attribute__((format(printf, 1, 0))) static struct problem format_problem(
	const char *format, va_list ap)
{
	struct problem ret = {0};
	vsnprintf(ret.text, sizeof ret.text, format, ap);
	end_at_character(ret.text);
	return ret;
}

int problem_error(struct problem *p, int error, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	if (p)
		*p = format_problem(format, ap);
	va_end(ap);
	return error;
}

struct problem problem_of(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	const struct problem ret = format_problem(format, ap);
	va_end(ap);
	return ret;
}

void problem_prefix(struct problem *p, const char *format, ...)
{
	if (!p)
		return;
	va_list ap;
	va_start(ap, format);
	const struct problem words = format_problem(format, ap), before = *p;
	va_end(ap);
	const int n = snprintf(p->text, sizeof p->text, "%s: %s", words.text, before.text);
	if ((size_t)n >= sizeof p->text)
		end_at_character(p->text);
}

void problem_format(const struct problem *p, char *ret, size_t size)
{
	struct text t = TEXT(PROBLEM_SENTENCE_MAX);
	text_add(&t, p->text[0] ? p->text : "unknown error");
	const bool has_code = p->code[0] || p->status;
	if (p->code[0])
		text_addf(&t, " (%s", p->code);
	else if (p->status)
		text_addf(&t, " (HTTP status %d", p->status);
	if (p->request_id[0])
		text_addf(&t, "%srequest id %s", has_code ? ", " : " (", p->request_id);
	if (has_code || p->request_id[0])
		text_add_char(&t, ')');
	snprintf(ret, size, "%s", text_string(&t));
	end_at_character(ret);
	text_clear(&t);
}

/* Escapes one character at a time, so that a text that is too long is cut between two characters.
 */
struct quoted quote_bytes(const char *s, size_t n)
{
	struct quoted quoted = {0};
	struct text escaped = TEXT(sizeof quoted.text - 4); /* leaves room for "..." and the NUL */
	size_t whole = 0; /* bytes of `escaped` up to the end of the last whole character */
	uint32_t code;
	for (size_t i = 0, length; i < n && !escaped.error; i += length) {
		length = utf8_next(s + i, n - i, &code);
		length = length ? length : 1; /* 0 for a byte that is not UTF-8 */
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
	const char *host = at ? at + 1 : begin, *query = begin + strcspn(begin, "?#");
	/* 16: for the stars and the characters beside them */
	struct text shown = TEXT(strlen(url) + 16);
	text_add_bytes(&shown, url, (size_t)(begin - url));
	if (at) /* a user and a password come before it */
		text_add(&shown, "***@");
	/* If the '?' is before the '@', it may belong to the password, and no host is shown. */
	if (host <= query)
		text_add_bytes(&shown, host, (size_t)(query - host));
	if (*query)
		text_add(&shown, "?***");
	const struct quoted quoted = quote(text_string(&shown));
	text_clear(&shown);
	return quoted;
}
