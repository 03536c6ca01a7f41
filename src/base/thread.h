/* Threads of ours: signals are the main thread's. */
#pragma once
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

/* pthread_create() with all signals blocked in the new thread. 0 or -errno. */
int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);
/* The same for a thread that nothing goes on without. Where the limit of threads is reached, it
 * waits for up to two seconds until another thread has ended. */
int thread_start_patiently(pthread_t *ret, void *(*run)(void *arg), void *arg);

/* The calling thread is one of many that are woken often and do a little each time. It does not
 * interrupt another one when it is woken (SCHED_BATCH), which saves switches. Its share of the CPU
 * stays the same, and a policy that somebody has chosen for the process is left alone. */
void thread_be_batch(void);

/* Makes a condition variable that waits on the monotonic clock, which a step of the wall clock does
 * not touch. Destroyed by pthread_cond_destroy(). */
void thread_cond_init(pthread_cond_t *ret);
/* Waits at most ns nanoseconds, with the mutex held as for pthread_cond_wait(). False if the time
 * is over; true if it was woken, perhaps for no reason. The monotonic clock stands still while the
 * host sleeps. */
bool thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t ns);

/* Waits at most ns nanoseconds, on the same clock, until the semaphore can be taken, and takes it.
 * False if the time is over. */
bool thread_sem_wait(sem_t *semaphore, uint64_t ns);
