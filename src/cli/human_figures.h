/* Figures for people, returned by value: output_resultf(output, "%s done", human_count(n).text). */
#pragma once
#include <stdint.h>

struct figure {
	char text[48];
};
struct figure human_count(uint64_t n);       /* "1,204" */
struct figure human_bytes(uint64_t bytes);   /* "812 B", "4.0 KiB", "3.1 GiB" */
struct figure human_seconds(double seconds); /* "0.4 s", "12 s", "1:05", "2:03:04" (h:mm:ss) */
/* A rough age: "45 s", "12 min", "5 h", "3 days". */
struct figure human_age(uint64_t seconds);
/* A number of things; for "file": "1 file", "1,204 files". */
struct figure human_things(uint64_t n, const char *thing);
