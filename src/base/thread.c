#include "base/thread.h"
#include "base/clock.h"
#include <sched.h>
#include <signal.h>

int thread_start(uv_thread_t *ret, uv_thread_cb run, void *arg)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const int error = uv_thread_create(ret, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

int thread_start_patiently(uv_thread_t *ret, uv_thread_cb run, void *arg)
{
	int error = thread_start(ret, run, arg);
	for (int i = 0; error == UV_EAGAIN && i < 200; i++) {
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

bool thread_cond_wait(uv_cond_t *cond, uv_mutex_t *mutex, uint64_t ns)
{
	return !uv_cond_timedwait(cond, mutex, ns);
}

int thread_sem_init(struct thread_sem *ret)
{
	ret->value = 0;
	int error = uv_mutex_init(&ret->mutex);
	if (!error && (error = uv_cond_init(&ret->posted)))
		uv_mutex_destroy(&ret->mutex);
	return error;
}

void thread_sem_destroy(struct thread_sem *semaphore)
{
	uv_cond_destroy(&semaphore->posted);
	uv_mutex_destroy(&semaphore->mutex);
}

void thread_sem_post(struct thread_sem *semaphore)
{
	uv_mutex_lock(&semaphore->mutex);
	semaphore->value++;
	uv_cond_signal(&semaphore->posted); /* who is woken may destroy it once it is unlocked */
	uv_mutex_unlock(&semaphore->mutex);
}

bool thread_sem_wait(struct thread_sem *semaphore, uint64_t ns)
{
	const uint64_t end_ns = uv_hrtime() + ns;
	uv_mutex_lock(&semaphore->mutex);
	for (uint64_t now_ns; !semaphore->value && (now_ns = uv_hrtime()) < end_ns;)
		uv_cond_timedwait(&semaphore->posted, &semaphore->mutex, end_ns - now_ns);
	const bool taken = semaphore->value;
	semaphore->value -= taken;
	uv_mutex_unlock(&semaphore->mutex);
	return taken;
}
