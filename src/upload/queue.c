#include "upload/queue.h"
#include "base/clock.h"
#include "upload/opening.h"
#include "upload/seats.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct queue {
	pthread_mutex_t mutex;
	pthread_cond_t room; /* for the scan */
	_Atomic uint64_t moved_bytes;
	struct {
		struct openings openings;
		struct turns turns;
		struct seats seats;         /* workers without a job */
		struct queue_window window; /* but for idle_ns */
		unsigned busy;              /* jobs handed out and not done */
		unsigned retiring;          /* workers that are to end */
		bool flowing, complete, closed;
	} locked;
};

int queue_new(unsigned most, uint64_t part_bytes, struct queue **ret)
{
	struct queue *queue = calloc(1, sizeof *queue);
	if (!queue)
		return -ENOMEM;
	pthread_mutex_init(&queue->mutex, NULL);
	pthread_cond_init(&queue->room, NULL);
	turns_init(&queue->locked.turns, most, part_bytes);
	openings_init(&queue->locked.openings, &queue->locked.turns);
	*ret = queue;
	return 0;
}

void queue_free(struct queue *queue)
{
	if (!queue)
		return;
	openings_clear(&queue->locked.openings);
	turns_clear(&queue->locked.turns);
	pthread_cond_destroy(&queue->room);
	pthread_mutex_destroy(&queue->mutex);
	free(queue);
}

static size_t files_held(const struct queue *queue)
{
	return openings_files(&queue->locked.openings) + turns_files(&queue->locked.turns);
}

static bool is_ended(const struct queue *queue)
{
	return queue->locked.closed || (queue->locked.complete && !files_held(queue) &&
					       !queue->locked.turns.parts && !queue->locked.busy);
}

bool queue_add(struct queue *queue, struct candidate *const *files, size_t n, uint64_t read_ns)
{
	pthread_mutex_lock(&queue->mutex);
	while (!queue->locked.closed && files_held(queue) + n > QUEUE_FILES) {
		queue->locked.flowing = true;
		seats_call(&queue->locked.seats);
		pthread_cond_wait(&queue->room, &queue->mutex);
	}
	const bool open = !queue->locked.closed;
	if (open) {
		openings_add(
			&queue->locked.openings, files, n, &(struct block){.read_ns = read_ns});
		if (queue->locked.flowing)
			seats_call(&queue->locked.seats);
	}
	pthread_mutex_unlock(&queue->mutex);
	return open;
}

void queue_flow(struct queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	queue->locked.flowing = true;
	seats_call(&queue->locked.seats);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_complete(struct queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	queue->locked.flowing = queue->locked.complete = true;
	seats_call(&queue->locked.seats);
	pthread_mutex_unlock(&queue->mutex);
}

/* True if more large bodies may go at once than before. */
static bool look_at_line(struct queue *queue)
{
	struct turns *turns = &queue->locked.turns;
	return bulk_look(
		&turns->bulk, clock_boot_ns(), atomic_load(&queue->moved_bytes), turns->under_way);
}

static bool has_place(const struct queue *queue)
{
	return queue->locked.busy < queue->locked.turns.workers;
}

/* Whether a worker that is woken finds a job, as far as it can be told without a look. */
static bool has_more(const struct queue *queue)
{
	return queue->locked.flowing && has_place(queue) &&
	       (turns_has(&queue->locked.turns) ||
		       (queue->locked.openings.waiting.n &&
			       openings_want_block(&queue->locked.openings)));
}

static bool retires(struct queue *queue, struct job *ret)
{
	if (!queue->locked.retiring)
		return false;
	queue->locked.retiring--;
	ret->kind = JOB_RETIRE;
	return true;
}

/* Each worker that goes to work calls the next one if there is more to do, so that no more are
 * woken than find a job. At the end each calls the next one, too. */
static void pass_on(struct queue *queue)
{
	if (is_ended(queue) || queue->locked.retiring || has_more(queue))
		seats_call(&queue->locked.seats);
	else
		seats_keep_watch(&queue->locked.seats);
}

void queue_take(struct queue *queue, struct job *ret)
{
	*ret = (struct job){.kind = JOB_END};
	pthread_mutex_lock(&queue->mutex);
	while (!is_ended(queue) && !retires(queue, ret)) {
		uint64_t wait_ns = NS_PER_S / 5;
		const bool taken = queue->locked.flowing && has_place(queue) &&
				   (openings_take(&queue->locked.openings, ret, &wait_ns) ||
					   turns_take(&queue->locked.turns, ret));
		const bool has_more_room = look_at_line(queue);
		if (taken) {
			queue->locked.busy++;
			ret->begun_ns = clock_boot_ns();
			if (ret->kind == JOB_FILE && ret->file->leads)
				ret->leads = ret->file->block;
			pthread_cond_signal(&queue->room);
			break;
		}
		if (!has_more_room)
			seats_wait(&queue->locked.seats, &queue->mutex, wait_ns, has_place(queue));
	}
	pass_on(queue);
	pthread_mutex_unlock(&queue->mutex);
}

static void count(struct queue_window *window, const struct job *job)
{
	window->warm += job->is_first;
	const bool is_small = job->kind == JOB_FILE && !job->is_bulk && !job->opens;
	if (!is_small || job->is_first || job->begun_ns < window->counts_from_ns)
		return;
	window->files++;
	window->files_ns += clock_boot_ns() - job->begun_ns;
	window->read_ns += job->read_ns;
}

void queue_done(struct queue *queue, const struct job *job)
{
	pthread_mutex_lock(&queue->mutex);
	queue->locked.busy--;
	turns_done(&queue->locked.turns, job);
	count(&queue->locked.window, job);
	const bool has_rest = /* in case it was not claimed */
		job->leads && openings_finish(&queue->locked.openings, job->leads);
	if (has_rest || is_ended(queue))
		seats_call(&queue->locked.seats);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_set_level(struct queue *queue, unsigned level)
{
	pthread_mutex_lock(&queue->mutex);
	queue->locked.turns.workers = level;
	if (has_more(queue))
		seats_call(&queue->locked.seats);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_retire(struct queue *queue, unsigned n)
{
	pthread_mutex_lock(&queue->mutex);
	queue->locked.retiring += n;
	seats_call(&queue->locked.seats);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_window(struct queue *queue, struct queue_window *ret)
{
	pthread_mutex_lock(&queue->mutex);
	const struct turns *turns = &queue->locked.turns;
	const bool has_bulk =
		turns->under_way || turns->parts || turns->whole.n || turns->split.n || turns->open;
	*ret = queue->locked.window;
	ret->idle_ns = seats_idle_ns(&queue->locked.seats, clock_boot_ns());
	ret->bulk = has_bulk ? turns->bulk.at_once : 0;
	pthread_mutex_unlock(&queue->mutex);
}

void queue_begin_window(struct queue *queue, bool is_like_before)
{
	const uint64_t now_ns = clock_boot_ns();
	pthread_mutex_lock(&queue->mutex);
	struct queue_window *window = &queue->locked.window;
	*window = (struct queue_window){.began_ns = now_ns,
		.counts_from_ns = is_like_before ? window->counts_from_ns : now_ns,
		.warm = window->warm};
	seats_begin_window(&queue->locked.seats, now_ns);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_moved(struct queue *queue, uint64_t bytes)
{
	atomic_fetch_add(&queue->moved_bytes, bytes);
}

void queue_cut(struct queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	bulk_cut(&queue->locked.turns.bulk, clock_boot_ns(), atomic_load(&queue->moved_bytes));
	pthread_mutex_unlock(&queue->mutex);
}

void queue_ready(struct queue *queue, struct candidate *const *files, size_t n)
{
	pthread_mutex_lock(&queue->mutex);
	openings_begin(&queue->locked.openings, files, n);
	queue->locked.openings.checking--;
	seats_call(&queue->locked.seats);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_later(
	struct queue *queue, struct candidate *const *files, size_t n, uint64_t not_before_ns)
{
	if (!n)
		return;
	pthread_mutex_lock(&queue->mutex);
	openings_add(
		&queue->locked.openings, files, n, &(struct block){.not_before_ns = not_before_ns});
	seats_call_watcher(&queue->locked.seats);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_again(struct queue *queue, struct candidate *file, uint64_t not_before_ns)
{
	pthread_mutex_lock(&queue->mutex);
	openings_add(&queue->locked.openings, &file, 1,
		&(struct block){.not_before_ns = not_before_ns, .last = true});
	seats_call_watcher(&queue->locked.seats);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_shared(struct queue *queue, struct candidate *const *files, size_t n)
{
	pthread_mutex_lock(&queue->mutex);
	queue->locked.openings.has_company = true;
	if (n)
		openings_add(&queue->locked.openings, files, n, &(struct block){.last = true});
	pthread_mutex_unlock(&queue->mutex);
}

void queue_claimed(struct queue *queue, const struct candidate *file)
{
	if (!file->leads)
		return;
	pthread_mutex_lock(&queue->mutex);
	if (openings_finish(&queue->locked.openings, file->block))
		seats_call(&queue->locked.seats);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_contested(struct queue *queue, unsigned serial)
{
	pthread_mutex_lock(&queue->mutex);
	queue->locked.openings.has_company = true;
	openings_put_back(&queue->locked.openings, serial);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_open_parts(struct queue *queue, struct parts *parts, unsigned n)
{
	pthread_mutex_lock(&queue->mutex);
	turns_open(&queue->locked.turns, parts, n);
	seats_call(&queue->locked.seats);
	pthread_mutex_unlock(&queue->mutex);
}

bool queue_part_ended(struct queue *queue, struct parts *parts, bool give_up)
{
	pthread_mutex_lock(&queue->mutex);
	parts->under_way--;
	if (give_up)
		turns_give_up(&queue->locked.turns, parts);
	bool last = parts->next_index == parts->end_index && !parts->under_way;
	if (last)
		turns_close(&queue->locked.turns);
	pthread_mutex_unlock(&queue->mutex);
	return last;
}

void queue_close(struct queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	queue->locked.closed = true;
	seats_call(&queue->locked.seats);
	pthread_cond_broadcast(&queue->room);
	pthread_mutex_unlock(&queue->mutex);
}

struct parts *queue_leftover(struct queue *queue)
{
	struct parts *parts = queue->locked.turns.parts;
	if (parts)
		queue->locked.turns.parts = parts->next;
	return parts;
}

int64_t queue_oldest_ns(const struct queue *queue)
{
	const int64_t waiting = openings_oldest_ns(&queue->locked.openings),
		      ready = turns_oldest_ns(&queue->locked.turns);
	return waiting < ready ? waiting : ready;
}
