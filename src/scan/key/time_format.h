/* Formats of strftime(3) that mean the same on every host and in every locale. */
#pragma once
#include "base/problem.h"
#include "base/text.h"
#include <stdint.h>
#include <time.h>

/* Whether the format has at least one conversion, and only those of C99 that no locale changes, or
 * %s. 0, or -EINVAL with a sentence. */
int time_format_check(const char *format, struct problem *ret_problem);

/* What formatting needs: the C locale, whatever the process's is. Read-only once made. */
struct time_format;
int time_format_new(struct time_format **ret); /* 0 or -ENOMEM */
void time_format_free(struct time_format *times);
/* Adds the time in this format, which is valid. wall_s is the same time for %s. */
void time_format_add(const struct time_format *times, const char *format, const struct tm *tm,
	int64_t wall_s, struct text *t);
