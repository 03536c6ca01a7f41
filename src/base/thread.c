/* Thread functions that libuv lacks: starting a thread that receives no signals, waiting until the
 * host has room for another thread, and the scheduling policy for batch work. No other file calls
 * pthread or the scheduler. */
#include "base/thread.h"
#include <sched.h>

void thread_mask_signals(int how, const sigset_t *set, sigset_t *ret_before)
{
	pthread_sigmask(how, set, ret_before);
}

int thread_start(uv_thread_t *ret, uv_thread_cb run, void *arg)
{
	sigset_t all, before;
	sigfillset(&all);
	thread_mask_signals(SIG_SETMASK, &all, &before);
	const int error = uv_thread_create(ret, run, arg);
	thread_mask_signals(SIG_SETMASK, &before, NULL);
	return error;
}

int thread_start_patiently(uv_thread_t *ret, uv_thread_cb run, void *arg)
{
	int error = thread_start(ret, run, arg);
	for (int i = 0; error == UV_EAGAIN && i < 200; i++) { /* for two seconds */
		uv_sleep(10);
		error = thread_start(ret, run, arg);
	}
	return error;
}

void thread_abandon(uv_thread_t thread)
{
	pthread_detach(thread);
}

void thread_be_batch(void)
{
	const struct sched_param none = {0};
	if (sched_getscheduler(0) == SCHED_OTHER)
		sched_setscheduler(0, SCHED_BATCH, &none);
}
