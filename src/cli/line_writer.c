/* Where the lines of output.c end: in the file of --log-file, or on standard output and error. They
 * are written by who has them, or by a thread, with a bound on what waits for it. push_options.c
 * asks before a run whether the file can be made. No line is held back, and the file is never cut
 * or renamed, which is logrotate's to do. A reader that takes nothing costs lines and not the run:
 * with the thread every wait ends, after a minute for room, five minutes at the end, or a second
 * once a signal came. */
#include "cli/line_writer.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/quote.h"
#include "base/thread.h"
#include "base/wait_until.h"
#include "cli/options/values.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODE       0640 /* less what the umask takes away */
#define SIGN_BYTES 4096 /* written at once where that is a sign of life */

struct log_file {
	char *path;
	int fd; /* -1: it is not open */
	dev_t dev;
	ino_t ino;
	bool is_cut;   /* the last line may be there in part */
	bool is_wrong; /* the last line could not be written, and that was said */
	int error;     /* of the first line that could not be written */
};

static int check_folder(const char *path, struct problem *ret_problem)
{
	char *folder = path_folder(path);
	int error = 0;
	if (!folder) {
		problem_set(ret_problem, "out of memory");
		error = -EINVAL;
	} else if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS)) {
		problem_set(ret_problem,
			"--log-file: %s cannot be made: %s: allow it to this user, or name a file "
			"in another directory",
			quote(path).text, strerror(errno));
		error = -EINVAL;
	}
	free(folder);
	return error;
}

int log_file_check(const char *path, struct problem *ret_problem)
{
	const struct file_option option = {.name = "--log-file",
		.path = path,
		.example = "s3once.log",
		.other = "name a file in another one"};
	struct stat st;
	if (file_option_check(&option, ret_problem))
		return -EINVAL;
	if (stat(path, &st))
		return check_folder(path, ret_problem);
	if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
		problem_set(ret_problem,
			"--log-file: %s is neither a file nor a device: name a file, or leave the "
			"option out and redirect the output",
			quote(path).text);
	else if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS))
		problem_set(ret_problem,
			"--log-file: %s cannot be written: %s: allow it to this user, or name "
			"another file",
			quote(path).text, strerror(errno));
	else
		return 0;
	return -EINVAL;
}

int log_file_new(const char *path, struct log_file **ret)
{
	struct log_file *file = calloc(1, sizeof *file);
	char *copy = strdup(path);
	if (!file || !copy) {
		free(file);
		free(copy);
		return -ENOMEM;
	}
	*file = (struct log_file){.path = copy, .fd = -1};
	*ret = file;
	return 0;
}

void log_file_free(struct log_file *file)
{
	if (!file)
		return;
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	free(file);
}

/* The path no longer leads to the file that is open. */
static bool has_moved(const struct log_file *file)
{
	struct stat st;
	return stat(file->path, &st) ? errno == ENOENT
				     : st.st_dev != file->dev || st.st_ino != file->ino;
}

/* If the path cannot be opened again, the file that is open stays in use. Without O_NONBLOCK,
 * opening a FIFO that somebody has put there would wait. */
static int open_current(struct log_file *file)
{
	struct stat st;
	if (file->fd >= 0 && !has_moved(file))
		return 0;
	const int fd = open(file->path,
		O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, MODE);
	if (fd < 0 || fstat(fd, &st)) {
		const int error = -errno;
		if (fd >= 0)
			close(fd);
		return file->fd >= 0 ? 0 : error;
	}
	if (file->fd >= 0)
		close(file->fd);
	file->fd = fd;
	file->dev = st.st_dev;
	file->ino = st.st_ino;
	file->is_cut = false;
	return 0;
}

static int append(struct log_file *file, const char *line, size_t n)
{
	int error = open_current(file);
	if (!error && file->is_cut)
		error = write_all(file->fd, "\n", 1);
	if (error)
		return error;
	error = write_all(file->fd, line, n);
	file->is_cut = error != 0;
	return error;
}

static int log_file_write(struct log_file *file, const char *line, size_t n)
{
	const int error = append(file, line, n);
	if (error && !file->is_wrong)
		dprintf(STDERR_FILENO,
			"s3once: error: --log-file: cannot write to %s: %s; lines are printed "
			"instead until it can be written again\n",
			quote(file->path).text, strerror(-error));
	file->is_wrong = error != 0;
	if (error && !file->error)
		file->error = error;
	return error;
}

int log_file_error(const struct log_file *file)
{
	return file->error;
}

int piece_write(
	const struct output_piece *piece, struct log_file *log, void (*wrote)(void *arg), void *arg)
{
	const bool is_logged = piece->is_logged && log_file_write(log, piece->bytes, piece->n) == 0;
	if (is_logged && wrote)
		wrote(arg);
	for (size_t at = 0; !is_logged && at < piece->n;) {
		const size_t rest = piece->n - at;
		const ssize_t n = write(piece->fd, piece->bytes + at,
			wrote && rest > SIGN_BYTES ? SIGN_BYTES : rest);
		const int error = n < 0 ? -errno : 0;
		if (error == -EAGAIN)
			poll(&(struct pollfd){.fd = piece->fd, .events = POLLOUT}, 1, -1);
		if (error == -EAGAIN || error == -EINTR)
			continue;
		if (wrote)
			wrote(arg);
		if (error)
			return piece->fd == STDOUT_FILENO ? error : 0;
		at += (size_t)n;
	}
	return 0;
}

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

static void note_piece(void *arg)
{
	struct output_queue *queue = arg;
	uv_mutex_lock(&queue->mutex);
	queue->locked.taken_ns = clock_boot_ns();
	queue->locked.stalled = false;
	uv_mutex_unlock(&queue->mutex);
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
		const struct output_piece piece = {line->fd, line->is_logged, line->bytes, line->n};
		const int error =
			failed ? 0 : piece_write(&piece, queue->options.log, note_piece, queue);
		uv_mutex_lock(&queue->mutex);
		if (error && !queue->locked.fate.error)
			queue->locked.fate.error = error;
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
