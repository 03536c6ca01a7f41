/* libuv's loop with its timers and asyncs, and its functions about time and the host, on the
 * simulation's tasks. */
#include "kernel.h"
#include "machines.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define HANDLES_MAX 64

struct sim_loop {
	uv_handle_t
		*handles[HANDLES_MAX]; /* open handles, in the order in which they were started */
	size_t n;
	unsigned timers_begun;
	bool is_stopped;
};

enum { IS_CLOSING = 1, IS_ACTIVE = 2, IS_UNREFERENCED = 4 };

static struct sim_loop *inside(const uv_loop_t *loop)
{
	return loop->internal_fields;
}

static uint64_t now_ms(void)
{
	const struct machine_process *process = task_process();
	return (process ? machine_monotonic_ns(process->machine) : world_now_ns()) / 1000000;
}

int uv_loop_init(uv_loop_t *loop)
{
	memset(loop, 0, sizeof *loop);
	loop->internal_fields = calloc(1, sizeof(struct sim_loop));
	return loop->internal_fields ? 0 : UV_ENOMEM;
}

int uv_loop_close(uv_loop_t *loop)
{
	if (inside(loop)->n)
		return UV_EBUSY;
	free(loop->internal_fields);
	loop->internal_fields = NULL;
	return 0;
}

static void add(uv_loop_t *loop, uv_handle_t *handle, uv_handle_type type)
{
	struct sim_loop *sim = inside(loop);
	handle->loop = loop;
	handle->type = type;
	handle->flags = 0;
	handle->close_cb = NULL;
	if (sim->n == HANDLES_MAX)
		abort();
	sim->handles[sim->n++] = handle;
}

int uv_async_init(uv_loop_t *loop, uv_async_t *async, uv_async_cb callback)
{
	add(loop, (uv_handle_t *)async, UV_ASYNC);
	async->async_cb = callback;
	async->pending = 0;
	async->flags |= IS_ACTIVE;
	return 0;
}

int uv_async_send(uv_async_t *async)
{
	async->pending = 1;
	task_wake_all(async->loop);
	task_point();
	return 0;
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *timer)
{
	add(loop, (uv_handle_t *)timer, UV_TIMER);
	return 0;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb callback, uint64_t timeout, uint64_t repeat)
{
	if (timer->flags & IS_CLOSING || !callback)
		return UV_EINVAL;
	timer->timer_cb = callback;
	timer->timeout = now_ms() + timeout;
	timer->repeat = repeat;
	timer->start_id = inside(timer->loop)->timers_begun++;
	timer->flags |= IS_ACTIVE;
	return 0;
}

int uv_timer_stop(uv_timer_t *timer)
{
	timer->flags &= ~(unsigned)IS_ACTIVE;
	return 0;
}

int uv_timer_again(uv_timer_t *timer)
{
	if (!timer->timer_cb)
		return UV_EINVAL;
	if (timer->repeat)
		uv_timer_start(timer, timer->timer_cb, timer->repeat, timer->repeat);
	return 0;
}

int uv_is_active(const uv_handle_t *handle)
{
	return (handle->flags & IS_ACTIVE) != 0;
}

int uv_is_closing(const uv_handle_t *handle)
{
	return (handle->flags & IS_CLOSING) != 0;
}

void uv_unref(uv_handle_t *handle)
{
	handle->flags |= IS_UNREFERENCED;
}

void uv_ref(uv_handle_t *handle)
{
	handle->flags &= ~(unsigned)IS_UNREFERENCED;
}

void uv_close(uv_handle_t *handle, uv_close_cb callback)
{
	handle->close_cb = callback;
	handle->flags = (handle->flags & ~(unsigned)IS_ACTIVE) | IS_CLOSING;
}

void uv_stop(uv_loop_t *loop)
{
	inside(loop)->is_stopped = true;
}

uint64_t uv_now(const uv_loop_t *loop)
{
	return now_ms();
}

void uv_update_time(uv_loop_t *loop)
{
}

static uv_timer_t *first_due(const struct sim_loop *sim)
{
	uv_timer_t *first = NULL;
	for (size_t i = 0; i < sim->n; i++) {
		uv_timer_t *timer = (uv_timer_t *)sim->handles[i];
		if (timer->type == UV_TIMER && timer->flags & IS_ACTIVE &&
			(!first || timer->timeout < first->timeout ||
				(timer->timeout == first->timeout &&
					timer->start_id < first->start_id)))
			first = timer;
	}
	return first;
}

static void fire_timers(struct sim_loop *sim)
{
	const uint64_t now = now_ms();
	uv_timer_t *timer;
	while ((timer = first_due(sim)) && timer->timeout <= now) {
		uv_timer_stop(timer);
		uv_timer_again(timer);
		timer->timer_cb(timer);
	}
}

static bool call_asyncs(struct sim_loop *sim)
{
	bool any = false;
	for (size_t i = 0; i < sim->n; i++) {
		uv_async_t *async = (uv_async_t *)sim->handles[i];
		if (async->type == UV_ASYNC && async->pending && async->flags & IS_ACTIVE) {
			async->pending = 0;
			async->async_cb(async);
			any = true;
		}
	}
	return any;
}

static void close_handles(struct sim_loop *sim)
{
	for (size_t i = 0; i < sim->n;) {
		uv_handle_t *handle = sim->handles[i];
		if (!(handle->flags & IS_CLOSING)) {
			i++;
			continue;
		}
		memmove(sim->handles + i, sim->handles + i + 1,
			(--sim->n - i) * sizeof *sim->handles);
		if (handle->close_cb)
			handle->close_cb(handle);
	}
}

static bool is_alive(const struct sim_loop *sim)
{
	for (size_t i = 0; i < sim->n; i++)
		if (sim->handles[i]->flags & IS_CLOSING ||
			(sim->handles[i]->flags & IS_ACTIVE &&
				!(sim->handles[i]->flags & IS_UNREFERENCED)))
			return true;
	return false;
}

int uv_run(uv_loop_t *loop, uv_run_mode mode)
{
	struct sim_loop *sim = inside(loop);
	while (is_alive(sim) && !sim->is_stopped) {
		task_point();
		fire_timers(sim);
		const bool any = call_asyncs(sim);
		close_handles(sim);
		if (any || !is_alive(sim) || sim->is_stopped || mode == UV_RUN_NOWAIT)
			continue;
		const uv_timer_t *next = first_due(sim);
		const uint64_t now = now_ms();
		task_wait(loop, !next ? TASK_FOREVER
				: next->timeout <= now
					? world_now_ns()
					: world_now_ns() + (next->timeout - now) * 1000000);
		if (mode != UV_RUN_DEFAULT)
			break;
	}
	sim->is_stopped = false;
	return is_alive(sim);
}

uint64_t uv_hrtime(void)
{
	struct timespec now;
	__wrap_clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int uv_random(uv_loop_t *loop, uv_random_t *request, void *ret, size_t n, unsigned flags,
	uv_random_cb callback)
{
	if (callback)
		abort(); /* src uses no later version */
	__wrap_getrandom(ret, n, 0);
	return 0;
}

uv_pid_t uv_os_getpid(void)
{
	return __wrap_getpid();
}

int uv_os_gethostname(char *ret, size_t *size)
{
	char name[64];
	__wrap_gethostname(name, sizeof name);
	if (strlen(name) >= *size)
		return UV_ENOBUFS;
	strcpy(ret, name);
	*size = strlen(name);
	return 0;
}

void uv_sleep(unsigned ms)
{
	__wrap_usleep(ms * 1000);
}

unsigned uv_available_parallelism(void)
{
	return 4;
}

uint64_t uv_get_constrained_memory(void)
{
	return 0;
}

uint64_t uv_get_total_memory(void)
{
	return 4ULL << 30;
}

uint64_t uv_get_free_memory(void)
{
	return 4ULL << 30;
}

int uv_resident_set_memory(size_t *ret)
{
	*ret = 64U << 20;
	return 0;
}

const char *uv_strerror(int error)
{
	return strerror(-error);
}

/* As if the process got a hundredth of a processor. */
int uv_getrusage(uv_rusage_t *ret)
{
	const uint64_t us = world_now_ns() / 10000;
	memset(ret, 0, sizeof *ret);
	ret->ru_utime.tv_sec = (long)(us / 1000000);
	ret->ru_utime.tv_usec = (long)(us % 1000000);
	return 0;
}
