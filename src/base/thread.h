/* Threads of ours: signals are the main thread's. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* uv_thread_create() with all signals blocked in the new thread. 0 or -errno. */
int thread_start(uv_thread_t *ret, uv_thread_cb run, void *arg);
/* The same for a thread that nothing goes on without. Where the limit of threads is reached, it
 * waits for up to two seconds until another thread has ended. */
int thread_start_patiently(uv_thread_t *ret, uv_thread_cb run, void *arg);

/* Nobody will join it. libuv has no call for that. */
void thread_abandon(uv_thread_t thread);

/* The calling thread is one of many that are woken often and do a little each time. It does not
 * interrupt another one when it is woken (SCHED_BATCH), which saves switches. Its share of the CPU
 * stays the same, and a policy that somebody has chosen for the process is left alone. */
void thread_be_batch(void);

/* Waits at most ns nanoseconds, with the mutex held as for uv_cond_wait(). False if the time is
 * over; true if it was woken, perhaps for no reason. The monotonic clock stands still while the
 * host sleeps. */
bool thread_cond_wait(uv_cond_t *cond, uv_mutex_t *mutex, uint64_t ns);

/* A semaphore that begins with 0. That of libuv cannot be waited for with a limit of time. */
struct thread_sem {
	uv_mutex_t mutex;
	uv_cond_t posted;
	unsigned value;
};
int thread_sem_init(struct thread_sem *ret); /* 0 or -errno */
void thread_sem_destroy(struct thread_sem *semaphore);
void thread_sem_post(struct thread_sem *semaphore);
/* Waits at most ns nanoseconds, on the same clock, until the semaphore can be taken, and takes it.
 * False if the time is over. */
bool thread_sem_wait(struct thread_sem *semaphore, uint64_t ns);
