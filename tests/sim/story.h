/* The story of a world, line by line: time, process, event. Each line goes into a fingerprint, so
 * that two runs of a seed can be compared, and may be printed. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum story_use {
	STORY_UNHEARD,     /* only broken promises count */
	STORY_FINGERPRINT, /* for story_fingerprint() */
	STORY_SHOWN
};
void story_begin(enum story_use use);
/* Adds a line about the running process, or about the world. It needs no escaping, since all names
 * in these worlds are plain. */
void story(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a fault, which is counted. */
void story_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
unsigned story_faults(void);
/* Adds a line that is printed only with --requests, but always goes into the fingerprint. */
void story_detail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void story_show_details(bool shows);
uint64_t story_fingerprint(void);

/* Reports a broken promise: the world ends with this sentence. Only the first one counts. */
void story_break(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *story_broken(void); /* that sentence, or NULL */
