/* Threads of the program. They block all signals, so that only the main thread receives them. */
#pragma once
#include <signal.h>
#include <uv.h>

/* Starts a thread as uv_thread_create() does, with all signals blocked in it. Returns 0 or -errno.
 */
int thread_start(uv_thread_t *ret, uv_thread_cb run, void *arg);
/* Likewise for a thread that the program cannot do without. If the limit of threads is reached, it
 * retries for up to two seconds, in which other threads may end. */
int thread_start_patiently(uv_thread_t *ret, uv_thread_cb run, void *arg);

/* Detaches a thread, so that it need not be joined. libuv has no call for that. */
void thread_abandon(uv_thread_t thread);

/* Changes the calling thread's set of blocked signals, as sigprocmask(2) does for a process. libuv
 * has no call for that. */
void thread_mask_signals(int how, const sigset_t *set, sigset_t *ret_before);

/* Gives the calling thread the policy SCHED_BATCH: when it is woken, it does not interrupt another
 * thread, which saves context switches. This is for one of many threads that are woken often and do
 * little each time. Its share of the CPU stays the same. A policy that was chosen for the process
 * from outside stays. */
void thread_be_batch(void);
