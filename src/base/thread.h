/* Threads of ours: signals are the main thread's. */
#pragma once
#include <pthread.h>

/* pthread_create() with all signals blocked in the new thread. 0 or -errno. */
int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);
