/* Threads of ours: signals are the main thread's. */
#pragma once
#include <signal.h>
#include <uv.h>

/* uv_thread_create() with all signals blocked in the new thread. 0 or -errno. */
int thread_start(uv_thread_t *ret, uv_thread_cb run, void *arg);
/* The same for a thread that nothing goes on without. Where the limit of threads is reached, it
 * waits for up to two seconds until another thread has ended. */
int thread_start_patiently(uv_thread_t *ret, uv_thread_cb run, void *arg);

/* Nobody will join it. libuv has no call for that. */
void thread_abandon(uv_thread_t thread);

/* Which signals the calling thread blocks, as sigprocmask(2) has it for processes. libuv has no
 * call for that. */
void thread_mask_signals(int how, const sigset_t *set, sigset_t *ret_before);

/* The calling thread is one of many that are woken often and do a little each time. It does not
 * interrupt another one when it is woken (SCHED_BATCH), which saves switches. Its share of the CPU
 * stays the same, and a policy that somebody has chosen for the process is left alone. */
void thread_be_batch(void);
