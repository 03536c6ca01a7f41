/* Figures as people read them. */
#pragma once
#include "base/text.h"
#include <stdint.h>

void human_count(struct text *t, uint64_t n);     /* "1,204" */
void human_bytes(struct text *t, uint64_t bytes); /* "812 B", "4.0 KiB", "3.1 GiB" */
void human_seconds(
	struct text *t, double seconds); /* "0.4 s", "12 s", "1:05", "2:03:04" (h:mm:ss) */
/* How long ago something was, roughly: "45 s", "12 min", "5 h", "3 days". */
void human_age(struct text *t, uint64_t seconds);
/* Of a "file": "1 file", "1,204 files". */
void human_things(struct text *t, uint64_t n, const char *thing);
