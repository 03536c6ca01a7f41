#include "scan/key/time_format.h"
#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define CONVERSIONS "YmdHMSjyCGgVUWbBheaAuwIpFTDRzZs%"

struct time_format {
	locale_t c;
};

static int refuse(const char *format, const char *conversion, struct problem *ret_problem)
{
	struct text shown = TEXT(1024), help = TEXT(1024);
	text_add_escaped(&shown, format, strnlen(format, 100));
	const unsigned char c = (unsigned char)conversion[0];
	const char other = (char)(islower(c) ? toupper(c) : tolower(c));
	if (isalpha(c) && strchr(CONVERSIONS, other))
		text_addf(&help, "there is no %%%c; did you mean %%%c?", c, other);
	else if (isalnum(c))
		text_addf(&help, "there is no %%%c", c);
	else
		text_add(&help, "a % is followed by no conversion");
	text_add(&help,
		help.data[help.len - 1] == '?' ? "" : "; the most common are %Y %m %d %H %M %S");
	problem_set(
		ret_problem, "{mtime:%s} of --key: %s", text_string(&shown), text_string(&help));
	text_clear(&shown);
	text_clear(&help);
	return -EINVAL;
}

int time_format_check(const char *format, struct problem *ret_problem)
{
	bool has_conversion = false;
	for (const char *p = format; *p; p++) {
		if (*p != '%')
			continue;
		if (!*++p || !strchr(CONVERSIONS, *p))
			return refuse(format, p, ret_problem);
		has_conversion |= *p != '%';
	}
	if (has_conversion)
		return 0;
	problem_set(ret_problem,
		"{mtime:…} of --key needs a format as of strftime(3), such as {mtime:%%Y/%%m/%%d}");
	return -EINVAL;
}

int time_format_new(struct time_format **ret)
{
	struct time_format *times = malloc(sizeof *times);
	if (!times)
		return -ENOMEM;
	times->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (times->c == (locale_t)0) {
		free(times);
		return -ENOMEM;
	}
	*ret = times;
	return 0;
}

void time_format_free(struct time_format *times)
{
	if (!times)
		return;
	freelocale(times->c);
	free(times);
}

/* %s of strftime() would take the time for one of the process's own zone. */
void time_format_add(const struct time_format *times, const char *format, const struct tm *tm,
	int64_t wall_s, struct text *t)
{
	for (const char *p = format; *p; p++) {
		if (*p != '%') {
			text_add_char(t, *p);
		} else if (*++p == 's') {
			text_addf(t, "%lld", (long long)wall_s);
		} else {
			char made[64];
			const char conversion[] = {'%', *p, '\0'};
			text_add_bytes(
				t, made, strftime_l(made, sizeof made, conversion, tm, times->c));
		}
	}
}
