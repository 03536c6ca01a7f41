#include "upload/threads.h"
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

/* As libuv gives the threads of its pool, whatever ulimit -s says. */
#define POOL_STACK_BYTES (8U << 20)

bool threads_loop_has_descriptors(void)
{
	int ends[4]; /* epoll, eventfd, and a pipe for signals */
	if (pipe(ends))
		return false;
	const bool has = !pipe(ends + 2);
	for (int i = 0; i < (has ? 4 : 2); i++)
		close(ends[i]);
	return has;
}

static void wait_for_end(void *end)
{
	uv_sem_wait(end);
}

unsigned threads_try(unsigned n)
{
	const uv_thread_options_t options = {UV_THREAD_HAS_STACK_SIZE, POOL_STACK_BYTES};
	uv_thread_t *threads = calloc(n, sizeof *threads);
	unsigned started = 0;
	uv_sem_t end;
	if (!threads || uv_sem_init(&end, 0)) {
		free(threads);
		return 0;
	}
	while (started < n && !uv_thread_create_ex(&threads[started], &options, wait_for_end, &end))
		started++;
	for (unsigned i = 0; i < started; i++)
		uv_sem_post(&end);
	for (unsigned i = 0; i < started; i++)
		uv_thread_join(&threads[i]);
	uv_sem_destroy(&end);
	free(threads);
	return started;
}
