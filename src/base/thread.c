#include "base/thread.h"
#include "base/clock.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <uv.h>

int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(ret, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -error;
}

int thread_start_patiently(pthread_t *ret, void *(*run)(void *arg), void *arg)
{
	const struct timespec step = {.tv_nsec = 10 * (long)NS_PER_MS};
	int error = thread_start(ret, run, arg);
	for (int i = 0; error == -EAGAIN && i < 200; i++) {
		nanosleep(&step, NULL);
		error = thread_start(ret, run, arg);
	}
	return error;
}

void thread_be_batch(void)
{
	const struct sched_param none = {0};
	if (sched_getscheduler(0) == SCHED_OTHER)
		sched_setscheduler(0, SCHED_BATCH, &none);
}

/* libuv's condition variables are those of pthread on the monotonic clock. */
_Static_assert(
	_Generic((uv_cond_t *)0, pthread_cond_t * : 1, default : 0), "uv_cond_t is pthread's");

void thread_cond_init(pthread_cond_t *ret)
{
	if (uv_cond_init(ret))
		abort(); /* as every use of it would */
}

bool thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t ns)
{
	return !uv_cond_timedwait(cond, mutex, ns);
}

bool thread_sem_wait(sem_t *semaphore, uint64_t ns)
{
	struct timespec end;
	clock_gettime(CLOCK_MONOTONIC, &end);
	const uint64_t end_ns = (uint64_t)end.tv_nsec + ns;
	end.tv_sec += (time_t)(end_ns / NS_PER_S);
	end.tv_nsec = (long)(end_ns % NS_PER_S);
	int error;
	do
		error = sem_clockwait(semaphore, CLOCK_MONOTONIC, &end);
	while (error && errno == EINTR);
	return !error;
}
