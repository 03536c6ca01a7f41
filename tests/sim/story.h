/* What happens in a world, line by line: when, who, what. Each line goes into a fingerprint, so
 * that two runs of a seed can be compared, and is shown where somebody wants to read it. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum story_use {
	STORY_UNHEARD,     /* only whether a promise is broken */
	STORY_FINGERPRINT, /* for story_fingerprint() */
	STORY_SHOWN
};
void story_begin(enum story_use use);
/* One line of what the running process, or the world, does. Bytes that a terminal would obey are
 * not in it, since all names in these worlds are plain. */
void story(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, of something that goes wrong there: it is counted. */
void story_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
unsigned story_faults(void);
/* A line that is only of interest with --requests; it goes into the fingerprint all the same. */
void story_detail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void story_show_details(bool shows);
uint64_t story_fingerprint(void);

/* A promise was broken: the world ends with this sentence. Only the first one counts. */
void story_break(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *story_broken(void); /* or NULL */
