/* The thread that writes a push's lines, and the bound on what waits for it. output.c adds lines
 * and waits for the last one at the end. A reader that takes nothing costs lines and not the run,
 * and every wait here ends: after a minute for room, five minutes at the end, or a second once a
 * signal came. */
#include "cli/output_queue.h"
#include "base/clock.h"
#include "base/thread.h"
#include "base/wait_until.h"
#include "cli/log_file.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE_BYTES 4096 /* written at once: each is a sign of life */

struct queued_line {
	struct queued_line *next;
	int fd;
	bool is_logged;
	size_t n;
	char bytes[];
};

struct output_queue {
	struct output_queue_options options;
	uv_thread_t writer;
	uv_mutex_t mutex;
	uv_cond_t added, taken;
	struct {
		struct queued_line *first, **end;
		size_t bytes;      /* of the lines in the list and the one that is being written */
		uint64_t taken_ns; /* when the reader last took something, or had nothing to take */
		bool stalled, finishing, abandoned;
		struct output_fate fate;
	} locked;
};

/* A reader that went away is an error of standard output only: nobody can be told that standard
 * error is gone. */
static void note_piece(struct output_queue *queue, const struct queued_line *line, ssize_t n)
{
	const int error = errno;
	uv_mutex_lock(&queue->mutex);
	if (n < 0 && line->fd == STDOUT_FILENO && !queue->locked.fate.error)
		queue->locked.fate.error = -error;
	queue->locked.taken_ns = clock_boot_ns();
	queue->locked.stalled = false;
	uv_mutex_unlock(&queue->mutex);
}

static void write_line(struct output_queue *queue, const struct queued_line *line)
{
	if (line->is_logged && log_file_write(queue->options.log, line->bytes, line->n) == 0) {
		note_piece(queue, line, (ssize_t)line->n);
		return;
	}
	for (size_t at = 0; at < line->n;) {
		const size_t rest = line->n - at;
		const ssize_t n =
			write(line->fd, line->bytes + at, rest < PIECE_BYTES ? rest : PIECE_BYTES);
		if (n < 0 && errno == EAGAIN)
			poll(&(struct pollfd){.fd = line->fd, .events = POLLOUT}, 1, -1);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		note_piece(queue, line, n);
		if (n < 0)
			return;
		at += (size_t)n;
	}
}

static struct queued_line *take_locked(struct output_queue *queue)
{
	wait_until(queue->locked.first || queue->locked.finishing, .told = &queue->added,
		.mutex = &queue->mutex);
	struct queued_line *line = queue->locked.first;
	if (line)
		queue->locked.first = line->next;
	if (!queue->locked.first)
		queue->locked.end = &queue->locked.first;
	return line;
}

static void destroy_queue(struct output_queue *queue)
{
	uv_cond_destroy(&queue->added);
	uv_cond_destroy(&queue->taken);
	uv_mutex_destroy(&queue->mutex);
	free(queue);
}

static void write_lines(void *arg)
{
	struct output_queue *queue = arg;
	struct queued_line *line;
	uv_mutex_lock(&queue->mutex);
	while ((line = take_locked(queue))) {
		const bool failed =
			queue->locked.fate.error && line->fd == STDOUT_FILENO && !line->is_logged;
		uv_mutex_unlock(&queue->mutex);
		if (!failed)
			write_line(queue, line);
		uv_mutex_lock(&queue->mutex);
		queue->locked.bytes -= line->n;
		uv_cond_broadcast(&queue->taken);
		free(line);
	}
	const bool is_left_to_us = queue->locked.abandoned;
	uv_mutex_unlock(&queue->mutex);
	if (is_left_to_us)
		destroy_queue(queue);
}

int output_queue_start(const struct output_queue_options *options, struct output_queue **ret)
{
	struct output_queue *queue = calloc(1, sizeof *queue);
	if (!queue)
		return -ENOMEM;
	queue->options = *options;
	queue->locked.end = &queue->locked.first;
	uv_mutex_init(&queue->mutex);
	uv_cond_init(&queue->added);
	uv_cond_init(&queue->taken);
	const int error = thread_start(&queue->writer, write_lines, queue);
	if (error)
		destroy_queue(queue);
	else
		*ret = queue;
	return error;
}

static bool stands_still_locked(const struct output_queue *queue, uint64_t ms)
{
	const struct output_queue_options *o = &queue->options;
	const uint64_t most_ms = o->is_hurried() && o->hurry_ms < ms ? o->hurry_ms : ms;
	return clock_boot_ns() - queue->locked.taken_ns >= most_ms * NS_PER_MS;
}

/* Waits until at most this many bytes are on their way. False: the reader has stood still for ms.
 */
static bool await_locked(struct output_queue *queue, size_t bytes, uint64_t ms)
{
	wait_until(queue->locked.bytes <= bytes || stands_still_locked(queue, ms),
		.told = &queue->taken, .mutex = &queue->mutex, .deadline_ns = UINT64_MAX);
	return queue->locked.bytes <= bytes;
}

static bool has_room_locked(struct output_queue *queue, int fd, size_t n, bool may_wait)
{
	const size_t most = queue->options.bytes_max;
	const size_t others = n < most ? most - n : 0;
	if (queue->locked.bytes <= others)
		return true;
	if (!may_wait || queue->locked.stalled)
		return false;
	if (await_locked(queue, others, queue->options.stall_ms))
		return true;
	if (!queue->locked.stalled) {
		queue->locked.stalled = true;
		queue->options.stalled(fd);
	}
	return false;
}

void output_queue_add(struct output_queue *queue, const struct output_piece *piece, bool may_wait)
{
	const size_t n = piece->n;
	struct queued_line *line = malloc(sizeof *line + n);
	if (line) {
		*line = (struct queued_line){
			.fd = piece->fd, .is_logged = piece->is_logged, .n = n};
		memcpy(line->bytes, piece->bytes, n);
	}
	uv_mutex_lock(&queue->mutex);
	if (!queue->locked.bytes)
		queue->locked.taken_ns = clock_boot_ns();
	if (line && has_room_locked(queue, piece->fd, n, may_wait)) {
		*queue->locked.end = line;
		queue->locked.end = &line->next;
		queue->locked.bytes += n;
		uv_cond_signal(&queue->added);
		line = NULL;
	} else {
		queue->locked.fate.lines_lost++;
	}
	uv_mutex_unlock(&queue->mutex);
	free(line);
}

bool output_queue_is_empty(struct output_queue *queue)
{
	uv_mutex_lock(&queue->mutex);
	const bool empty = !queue->locked.bytes;
	uv_mutex_unlock(&queue->mutex);
	return empty;
}

struct output_fate output_queue_finish(struct output_queue *queue)
{
	uv_mutex_lock(&queue->mutex);
	const bool written = await_locked(queue, 0, queue->options.end_ms);
	struct output_fate fate = queue->locked.fate;
	for (struct queued_line *line = queue->locked.first; line; line = line->next)
		fate.lines_lost++;
	fate.lines_lost += !written; /* the one that is being written */
	queue->locked.finishing = true;
	queue->locked.abandoned = !written;
	if (!written)
		thread_abandon(queue->writer);
	uv_cond_signal(&queue->added);
	uv_thread_t writer = queue->writer;
	uv_mutex_unlock(&queue->mutex);
	if (written) {
		uv_thread_join(&writer);
		destroy_queue(queue);
	}
	return fate;
}
