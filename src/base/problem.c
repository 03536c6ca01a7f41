/* What went wrong, as a sentence that can be copied and kept. */
#include "base/problem.h"
#include "base/text.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Removes the bytes of a character that snprintf has cut in the middle. */
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
	const bool has_more = p->code[0] || p->status;
	if (p->code[0])
		text_addf(&t, " (%s", p->code);
	else if (p->status)
		text_addf(&t, " (HTTP status %d", p->status);
	if (p->request_id[0])
		text_addf(&t, "%srequest id %s", has_more ? ", " : " (", p->request_id);
	if (has_more || p->request_id[0])
		text_add_char(&t, ')');
	snprintf(ret, size, "%s", text_string(&t));
	end_at_character(ret);
	text_clear(&t);
}
