/* Whether this host has the threads and descriptors that libuv needs: it aborts the process where
 * it is refused them. */
#pragma once
#include <stdbool.h>

/* The descriptors of a loop. */
bool threads_loop_has_descriptors(void);
/* Starts n threads with the stacks of libuv's pool, all alive at once, and ends them. The number
 * that could be started. They have the caller's signal mask. */
unsigned threads_try(unsigned n);
