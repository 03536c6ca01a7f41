/* libuv's threads, mutexes, conditions, semaphores, once and keys, on the simulation's tasks. src
 * is linked with these instead of libuv's own.
 *
 * Their state is in the first bytes of libuv's types, and is initially all zeros. */
#include "kernel.h"
#include "kernel_fd.h"
#include "machines.h"
#include <stdlib.h>
#include <string.h>
#include <uv.h>

struct lock {
	uint32_t owner; /* the task that holds it, or 0 */
	uint32_t depth; /* for a recursive mutex */
};
struct semaphore {
	uint32_t count;
};

static void lock_take(struct lock *lock)
{
	const uint32_t self = task_self();
	if (!self)
		return; /* outside of the world there is no other task */
	task_point();
	while (lock->owner && lock->owner != self)
		task_wait(lock, TASK_FOREVER);
	if (lock->owner == self && !lock->depth)
		abort(); /* a thread would wait for itself */
	lock->owner = self;
	task_holds(&lock->owner);
}

static void lock_release(struct lock *lock)
{
	if (!task_self())
		return;
	task_released(&lock->owner);
	lock->owner = 0;
	task_wake_all(lock);
	task_point();
}

static uint64_t after(uint64_t ns)
{
	return ns > TASK_FOREVER - world_now_ns() ? TASK_FOREVER : world_now_ns() + ns;
}

static bool wait_for(const void *cond, struct lock *lock, uint64_t until_ns)
{
	task_released(&lock->owner);
	lock->owner = 0;
	task_wake_all(lock);
	const bool is_woken = task_wait(cond, until_ns);
	lock_take(lock);
	return is_woken;
}

int uv_mutex_init(uv_mutex_t *mutex)
{
	memset(mutex, 0, sizeof *mutex);
	return 0;
}

int uv_mutex_init_recursive(uv_mutex_t *mutex)
{
	abort(); /* src uses none */
}

void uv_mutex_destroy(uv_mutex_t *mutex)
{
}

void uv_mutex_lock(uv_mutex_t *mutex)
{
	lock_take((struct lock *)mutex);
}

int uv_mutex_trylock(uv_mutex_t *mutex)
{
	struct lock *lock = (struct lock *)mutex;
	task_point();
	if (lock->owner)
		return UV_EBUSY;
	lock_take(lock);
	return 0;
}

void uv_mutex_unlock(uv_mutex_t *mutex)
{
	lock_release((struct lock *)mutex);
}

int uv_cond_init(uv_cond_t *cond)
{
	memset(cond, 0, sizeof *cond);
	return 0;
}

void uv_cond_destroy(uv_cond_t *cond)
{
}

void uv_cond_signal(uv_cond_t *cond)
{
	task_wake_one(cond);
}

void uv_cond_broadcast(uv_cond_t *cond)
{
	task_wake_all(cond);
}

void uv_cond_wait(uv_cond_t *cond, uv_mutex_t *mutex)
{
	wait_for(cond, (struct lock *)mutex, TASK_FOREVER);
}

int uv_cond_timedwait(uv_cond_t *cond, uv_mutex_t *mutex, uint64_t timeout_ns)
{
	return wait_for(cond, (struct lock *)mutex, after(timeout_ns)) ? 0 : UV_ETIMEDOUT;
}

int uv_sem_init(uv_sem_t *semaphore, unsigned value)
{
	memset(semaphore, 0, sizeof *semaphore);
	((struct semaphore *)semaphore)->count = value;
	return 0;
}

void uv_sem_destroy(uv_sem_t *semaphore)
{
}

void uv_sem_post(uv_sem_t *semaphore)
{
	((struct semaphore *)semaphore)->count++;
	task_wake_all(semaphore);
	task_point();
}

static bool semaphore_take(uv_sem_t *semaphore, uint64_t until_ns)
{
	struct semaphore *s = (struct semaphore *)semaphore;
	task_point();
	while (!s->count)
		if (!task_wait(s, until_ns) && !s->count)
			return false;
	s->count--;
	return true;
}

void uv_sem_wait(uv_sem_t *semaphore)
{
	semaphore_take(semaphore, TASK_FOREVER);
}

int uv_sem_trywait(uv_sem_t *semaphore)
{
	return semaphore_take(semaphore, 0) ? 0 : UV_EAGAIN;
}

/* The first word says whether it was done. While it is under way, it has the number of the task. */
void uv_once(uv_once_t *guard, void (*run)(void))
{
	if (*guard)
		return;
	run(); /* functions that src runs once do not wait */
	*guard = 1;
}

struct begun {
	uv_thread_cb run;
	void *arg;
};

static void run_thread(void *arg)
{
	const struct begun begun = *(struct begun *)arg;
	struct machine_process *process = task_process();
	free(arg);
	begun.run(begun.arg);
	if (process)
		process->n_threads--;
}

int uv_thread_create(uv_thread_t *ret, uv_thread_cb run, void *arg)
{
	struct machine_process *process = task_process();
	if (process && kernel_hooks.threads_most && process->n_threads >= kernel_hooks.threads_most)
		return UV_EAGAIN;
	struct begun *begun = malloc(sizeof *begun);
	if (!begun)
		return UV_ENOMEM;
	*begun = (struct begun){run, arg};
	if (process)
		process->n_threads++;
	*ret = task_start(process, run_thread, begun);
	task_point();
	return 0;
}

int uv_thread_create_ex(
	uv_thread_t *ret, const uv_thread_options_t *options, uv_thread_cb run, void *arg)
{
	return uv_thread_create(ret, run, arg);
}

int uv_thread_join(uv_thread_t *thread)
{
	task_join((uint32_t)*thread);
	return 0;
}

uv_thread_t uv_thread_self(void)
{
	return task_self();
}

int uv_thread_equal(const uv_thread_t *a, const uv_thread_t *b)
{
	return *a == *b;
}

int __wrap_pthread_detach(unsigned long thread)
{
	return 0;
}
