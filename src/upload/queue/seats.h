/* The workers that wait for a task. Whoever has waited least is called first: its connections are
 * the freshest, and those that are not needed stay where they are. One of them, the watcher, wakes
 * by itself when something may have become due; all others sleep until they are called. Used under
 * the queue's mutex. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct seat;
struct seats {
	struct seat *top;     /* all but the watcher */
	struct seat *watcher; /* or NULL */
	/* How long workers sat here for want of a task since the window began, but for those that
	 * still do. */
	uint64_t idle_ns, window_ns;
};

/* Waits with the mutex held, as uv_cond_wait() does, until the worker is called, or if it is
 * the watcher for at most wait_ns. Then it has to look for a task again. lacks_tasks: it waits for
 * want of a task, not because enough are under way. */
void seats_wait(struct seats *seats, uv_mutex_t *mutex, uint64_t wait_ns, bool lacks_tasks);
/* Wakes one, if there is one. */
void seats_call(struct seats *seats);
/* What becomes due when has changed: the watcher looks again. */
void seats_call_watcher(struct seats *seats);
/* A worker leaves with a task: if it was the watcher, another one takes its place. */
void seats_keep_watch(struct seats *seats);
/* The idle time since the window began, and that of a new window from now on. */
uint64_t seats_idle_ns(const struct seats *seats, uint64_t now_ns);
void seats_begin_window(struct seats *seats, uint64_t now_ns);
