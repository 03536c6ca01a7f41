#include "story.h"
#include "machines.h"
#include "tasks.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct {
	enum story_use use;
	bool shows_details;
	unsigned faults;
	uint64_t fingerprint;
	char broken[1024];
} state;

void story_begin(enum story_use use)
{
	state.use = use;
	state.fingerprint = 0xcbf29ce484222325U;
	*state.broken = 0;
	state.faults = 0;
}

void story_show_details(bool shows)
{
	state.shows_details = shows;
}

__attribute__((format(printf, 2, 0))) static void tell(bool shows, const char *format, va_list ap)
{
	if (state.use == STORY_UNHEARD)
		return;
	char line[1200], *at = line;
	const struct machine_process *process = task_process();
	const uint64_t ms = world_now_ns() / 1000000;
	at += snprintf(line, 100, "%4" PRIu64 ":%02" PRIu64 ":%02" PRIu64 ".%03" PRIu64 "  %-14s ",
		ms / 3600000, ms / 60000 % 60, ms / 1000 % 60, ms % 1000,
		process ? process->name : "world");
	vsnprintf(at, sizeof line - (size_t)(at - line), format, ap);
	for (const char *c = line; *c; c++)
		state.fingerprint = (state.fingerprint ^ (unsigned char)*c) * 0x100000001b3U;
	if (shows && state.use == STORY_SHOWN)
		puts(line);
}

void story(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	tell(true, format, ap);
	va_end(ap);
}

void story_fault(const char *format, ...)
{
	va_list ap;
	state.faults++;
	va_start(ap, format);
	tell(true, format, ap);
	va_end(ap);
}

unsigned story_faults(void)
{
	return state.faults;
}

void story_detail(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	tell(state.shows_details, format, ap);
	va_end(ap);
}

uint64_t story_fingerprint(void)
{
	return state.fingerprint;
}

void story_break(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	if (!*state.broken) {
		vsnprintf(state.broken, sizeof state.broken, format, ap);
		story("BROKEN: %s", state.broken);
	}
	va_end(ap);
}

const char *story_broken(void)
{
	return *state.broken ? state.broken : NULL;
}
