/* The queue: order, bounds, files whose marks are read again, parts, the end. */
#include "../check.h"
#include "base/clock.h"
#include "looker.h"
#include "upload/queue/queue.h"
#include <pthread.h>
#include <stdlib.h>
#include <uv.h>

static struct candidate *candidate(unsigned n)
{
	struct candidate *c = calloc(1, sizeof *c);
	c->size = n;
	return c;
}

static void add(struct queue *queue, unsigned from, size_t n)
{
	struct candidate *files[BLOCK_FILES];
	for (unsigned i = 0; i < n; i++)
		files[i] = candidate(from + i);
	CHECK(queue_add(queue, files, n));
}

/* A block comes out as its files, in order; then the queue ends. */
static void test_files(void)
{
	struct queue *queue;
	struct task task;
	CHECK_INT(queue_new(8, 16 << 20, QUEUE_BY_TURNS, &queue), 0);
	add(queue, 0, 3);
	queue_enter_phase(queue, QUEUE_COMPLETE);
	for (unsigned i = 0; i < 3; i++) {
		queue_take(queue, &task);
		CHECK_INT(task.kind, TASK_FILE);
		CHECK_INT((int64_t)task.file->size, i);
		free(task.file);
		queue_done(queue, &task);
	}
	queue_take(queue, &task);
	CHECK_INT(task.kind, TASK_END);
	queue_free(queue);
}

/* Gives a block of these files back, which are due at some time. */
static void add_later(struct queue *queue, unsigned from, size_t n, uint64_t due_ns)
{
	struct candidate *files[BLOCK_FILES];
	for (unsigned i = 0; i < n; i++)
		files[i] = candidate(from + i);
	queue_put_back_later(queue, files, n, due_ns);
}

/* Takes a check, and frees its files. Returns how many there were. */
static size_t take_check(struct queue *queue)
{
	struct task task;
	size_t n = 0;
	queue_take(queue, &task);
	CHECK_INT(task.kind, TASK_CHECK);
	for (struct block *next; task.blocks; task.blocks = next) {
		next = task.blocks->next;
		for (size_t i = 0; i < task.blocks->n; i++)
			free(task.blocks->files[i]);
		n += task.blocks->n;
		free(task.blocks);
	}
	queue_done(queue, &task);
	return n;
}

static void end_file(struct queue *queue, const struct task *task)
{
	free(task->file);
	queue_done(queue, task);
}

/* Files that came back are handed out to be checked, and begun again if they are ready. */
static void test_check_and_later(void)
{
	struct queue *queue;
	struct task task;
	CHECK_INT(queue_new(8, 16 << 20, QUEUE_BY_TURNS, &queue), 0);
	add_later(queue, 0, 2, 0);
	queue_enter_phase(queue, QUEUE_COMPLETE);
	queue_take(queue, &task);
	CHECK_INT(task.kind, TASK_CHECK);
	CHECK_INT((int64_t)task.blocks->n, 2);
	CHECK(!task.blocks->next);
	struct candidate *ready = task.blocks->files[0], *later = task.blocks->files[1];
	const uint64_t due = clock_boot_ns() + 50 * NS_PER_MS;
	queue_put_back_later(queue, &later, 1, due);
	queue_put_back_checked(queue, &ready, 1);
	free(task.blocks);
	queue_done(queue, &task);
	queue_take(queue, &task);
	CHECK_INT(task.kind, TASK_FILE);
	CHECK_INT((int64_t)task.file->size, 0);
	end_file(queue, &task);
	struct looker looker;
	looker_begin(&looker, queue);
	CHECK_INT((int64_t)take_check(queue), 1);
	CHECK(clock_boot_ns() >= due);
	looker_end(&looker);
	queue_take(queue, &task);
	CHECK_INT(task.kind, TASK_END);
	queue_free(queue);
}

/* The marks of all files that are due are read together, and those of no others. */
static void test_one_check_of_all(void)
{
	struct queue *queue;
	struct task task;
	CHECK_INT(queue_new(8, 16 << 20, QUEUE_BY_TURNS, &queue), 0);
	for (unsigned i = 0; i < 7; i++)
		add_later(queue, 0, i + 1, 1 + i);
	add(queue, 0, 1); /* is due after those */
	add_later(queue, 0, 1, clock_boot_ns() + 3600 * NS_PER_S);
	queue_enter_phase(queue, QUEUE_FLOWS);
	CHECK_INT((int64_t)take_check(queue), 1 + 2 + 3 + 4 + 5 + 6 + 7);
	queue_take(queue, &task);
	CHECK_INT(task.kind, TASK_FILE);
	end_file(queue, &task);
	queue_enter_phase(queue, QUEUE_CLOSED);
	queue_free(queue);
}

/* A file that failed is begun again after those that did not, though it is due. */
static void test_again(void)
{
	struct queue *queue;
	struct task task;
	CHECK_INT(queue_new(8, 16 << 20, QUEUE_BY_TURNS, &queue), 0);
	add(queue, BLOCK_FILES, 1);
	queue_enter_phase(queue, QUEUE_COMPLETE);
	queue_take(queue, &task);
	queue_put_back_later(queue, &task.file, 1, clock_boot_ns());
	queue_done(queue, &task);
	add(queue, 0, BLOCK_FILES);
	/* Its mark is read before the last files of the block, since few of them are left then. */
	for (unsigned i = 0; i < BLOCK_FILES / 3; i++) {
		queue_take(queue, &task);
		CHECK_INT(task.kind, TASK_FILE);
		end_file(queue, &task);
	}
	queue_enter_phase(queue, QUEUE_CLOSED);
	queue_free(queue);
}

/* Files that were due long ago go before those that the scan finds now. */
static void test_due_before_the_scan(void)
{
	struct queue *queue;
	CHECK_INT(queue_new(8, 16 << 20, QUEUE_BY_TURNS, &queue), 0);
	for (unsigned i = 0; i < 3; i++)
		add(queue, i, 1);
	add_later(queue, 7, 1, 1);
	queue_enter_phase(queue, QUEUE_COMPLETE);
	CHECK_INT((int64_t)take_check(queue), 1);
	queue_free(queue);
}

/* The rest of a block in which another uploader was met comes back a moment later, and the next
 * block is opened by a file whose mark is read first. */
static void test_contested(void)
{
	struct queue *queue;
	struct task task;
	CHECK_INT(queue_new(8, 16 << 20, QUEUE_BY_TURNS, &queue), 0);
	add(queue, 0, 10);
	queue_enter_phase(queue, QUEUE_FLOWS);
	queue_take(queue, &task);
	CHECK(!task.file->needs_mark_read);
	queue_put_back_block(queue, task.file->block_serial);
	end_file(queue, &task);
	const uint64_t contested_ns = clock_boot_ns();
	add(queue, 20, 2);
	queue_take(queue, &task);
	CHECK_INT((int64_t)task.file->size, 20);
	CHECK(task.file->needs_mark_read);
	end_file(queue, &task);
	queue_take(queue, &task);
	CHECK_INT((int64_t)task.file->size, 21);
	CHECK(!task.file->needs_mark_read);
	end_file(queue, &task);
	struct looker looker;
	looker_begin(&looker, queue);
	CHECK_INT((int64_t)take_check(queue), 9);
	CHECK(clock_boot_ns() - contested_ns > NS_PER_S / 2);
	looker_end(&looker);
	queue_enter_phase(queue, QUEUE_COMPLETE);
	queue_take(queue, &task);
	CHECK_INT(task.kind, TASK_END);
	queue_free(queue);
}

/* One small file of each block is handed out, and the others once that is claimed, or ended. */
static void test_one_opens_the_block(void)
{
	struct queue *queue;
	struct task first, second, next;
	CHECK_INT(queue_new(8, 16 << 20, QUEUE_BY_TURNS, &queue), 0);
	add(queue, S3ONCE_SMALL_BYTES_MAX, 3); /* the others are a little larger */
	add(queue, 0, 2);
	queue_enter_phase(queue, QUEUE_COMPLETE);
	queue_take(queue, &first);
	queue_take(queue, &second);
	CHECK(first.file->block_serial != second.file->block_serial);
	CHECK(first.file->size == 0 || first.file->size == S3ONCE_SMALL_BYTES_MAX);
	CHECK(second.file->size == 0 || second.file->size == S3ONCE_SMALL_BYTES_MAX);
	const bool is_small = second.file->size == 0;
	end_file(queue, is_small ? &second : &first);
	queue_take(queue, &next);
	CHECK_INT((int64_t)next.file->size, 1);
	end_file(queue, &next);
	queue_release_rest(queue, is_small ? first.file : second.file);
	queue_take(queue, &next);
	CHECK_INT((int64_t)next.file->size, S3ONCE_SMALL_BYTES_MAX + 1);
	end_file(queue, &next);
	end_file(queue, is_small ? &first : &second);
	queue_enter_phase(queue, QUEUE_CLOSED);
	queue_free(queue);
}

/* A queue that spreads hands out a file of each block before a second one of any. */
static void test_spread(void)
{
	struct queue *queue;
	unsigned n_blocks = 0;
	unsigned serials[3] = {0};
	if (!CHECK_INT(queue_new(1, 16 << 20, QUEUE_BY_TURNS, &queue), 0))
		return;
	for (unsigned i = 0; i < 3; i++)
		add(queue, i * BLOCK_FILES, BLOCK_FILES);
	queue_enter_phase(queue, QUEUE_COMPLETE);
	queue_set_spreading(queue, true);
	for (unsigned i = 0; i < 3; i++) {
		struct task task;
		CHECK(queue_has_due_block(queue));
		queue_take(queue, &task);
		for (unsigned k = 0; k < n_blocks; k++)
			CHECK(task.file->block_serial != serials[k]);
		serials[n_blocks++] = task.file->block_serial;
		end_file(queue, &task);
	}
	CHECK(!queue_has_due_block(queue));
	queue_free(queue);
}

/* The request for the claim hangs. The rest of the block does not wait for its end. */
static void test_claim_hangs(void)
{
	struct queue *queue;
	struct task first, next;
	CHECK_INT(queue_new(8, 16 << 20, QUEUE_BY_TURNS, &queue), 0);
	add(queue, 0, BLOCK_FILES);
	queue_enter_phase(queue, QUEUE_COMPLETE);
	queue_take(queue, &first);
	CHECK_INT((int64_t)first.file->size, 0);
	struct looker looker;
	looker_begin(&looker, queue);
	queue_take(queue, &next);
	looker_end(&looker);
	CHECK_INT(next.kind, TASK_FILE);
	if (next.kind == TASK_FILE)
		end_file(queue, &next);
	queue_release_rest(queue, first.file);
	end_file(queue, &first);
	queue_enter_phase(queue, QUEUE_CLOSED);
	queue_free(queue);
}

static void take_and_end_part(
	struct queue *queue, struct parts *want, enum part_result result, bool is_last)
{
	struct task task;
	queue_take(queue, &task);
	if (!CHECK_INT(task.kind, TASK_PART))
		return;
	CHECK(task.parts == want);
	CHECK(queue_end_part(queue, task.parts, result) == is_last);
	queue_done(queue, &task);
}

/* Uploads take turns; exactly one caller is told that a part was the last one. */
static void test_parts(void)
{
	struct queue *queue;
	struct task task;
	struct parts one, two;
	CHECK_INT(queue_new(8, 16 << 20, QUEUE_BY_TURNS, &queue), 0);
	queue_enter_phase(queue, QUEUE_FLOWS);
	queue_open_parts(queue, &one, 2);
	queue_open_parts(queue, &two, 3);
	queue_enter_phase(queue, QUEUE_COMPLETE); /* which does not end a queue that has parts */
	take_and_end_part(queue, &one, PART_STORED, false);
	take_and_end_part(queue, &two, PART_STORED, false);
	take_and_end_part(queue, &one, PART_STORED, true);
	take_and_end_part(
		queue, &two, PART_FAILED, true); /* given up: its last part is not handed out */
	queue_take(queue, &task);
	CHECK_INT(task.kind, TASK_END);
	queue_free(queue);
}

/* Sends an upload of n parts, at_once of which are under way at the same time. The i-th part to end
 * gives the upload up if bit i of give_ups is set. Returns whether nothing of it is left. */
static bool upload_is_closed(struct queue *queue, unsigned n, unsigned at_once, unsigned give_ups)
{
	struct parts parts;
	struct task tasks[4];
	struct queue_figures figures;
	unsigned taken = 0;
	bool is_given_up = false, is_good = true, is_last = false;
	queue_open_parts(queue, &parts, n);
	for (unsigned ended = 0; is_good && !is_last; ended++) {
		while (taken < n && taken < ended + at_once && !is_given_up)
			queue_take(queue, &tasks[taken++]);
		queue_read_figures(queue, &figures);
		is_good = CHECK(figures.has_large) && CHECK_INT(figures.large, taken - ended);
		const bool gives_up = give_ups >> ended & 1;
		is_given_up |= gives_up;
		is_last = queue_end_part(queue, &parts, gives_up ? PART_FAILED : PART_STORED);
		const bool is_all = ended + 1 == taken && (is_given_up || taken == n);
		is_good = CHECK(is_last == is_all) && is_good;
		queue_done(queue, &tasks[ended]);
	}
	queue_read_figures(queue, &figures);
	return is_good && CHECK(!figures.has_large) && CHECK_INT(figures.large, 0);
}

/* However an upload ends, nothing large is under way then, and its place is free for the next. */
static void test_every_end_of_an_upload(void)
{
	struct queue *queue;
	struct task task;
	bool is_good = true;
	CHECK_INT(queue_new(8, 16 << 20, QUEUE_BY_TURNS, &queue), 0);
	queue_enter_phase(queue, QUEUE_FLOWS);
	for (unsigned n = 1; n <= 4; n++)
		for (unsigned at_once = 1; at_once <= n; at_once++)
			for (unsigned give_ups = 0; is_good && give_ups < 1U << n; give_ups++) {
				is_good = upload_is_closed(queue, n, at_once, give_ups);
				if (!is_good)
					fprintf(stderr, "\t%u parts, %u at once, give-ups %#x\n", n,
						at_once, give_ups);
			}
	add(queue, (16 << 20) + 1, 1);
	if (is_good) { /* otherwise it might have to wait */
		queue_take(queue, &task);
		CHECK_INT(task.kind, TASK_FILE);
		end_file(queue, &task);
	}
	queue_enter_phase(queue, QUEUE_CLOSED);
	queue_free(queue);
}

static void test_close_leaves_parts(void)
{
	struct queue *queue;
	struct task task;
	struct parts parts;
	CHECK_INT(queue_new(8, 16 << 20, QUEUE_BY_TURNS, &queue), 0);
	queue_enter_phase(queue, QUEUE_FLOWS);
	queue_open_parts(queue, &parts, 3);
	queue_take(queue, &task);
	queue_enter_phase(queue, QUEUE_CLOSED);
	CHECK(!queue_end_part(queue, &parts, PART_STORED));
	queue_done(queue, &task);
	queue_take(queue, &task);
	CHECK_INT(task.kind, TASK_END);
	CHECK(queue_pop_upload(queue) == &parts);
	CHECK(queue_pop_upload(queue) == NULL);
	queue_free(queue);
}

#define MANY 20000

static void *worker(void *arg)
{
	struct queue *queue = arg;
	size_t taken = 0;
	for (;;) {
		struct task task;
		queue_take(queue, &task);
		if (task.kind == TASK_END)
			return (void *)taken;
		if (task.kind == TASK_CHECK) {
			for (struct block *next; task.blocks; task.blocks = next) {
				next = task.blocks->next;
				queue_put_back_checked(queue, task.blocks->files, task.blocks->n);
				free(task.blocks);
			}
		} else {
			free(task.file);
			taken++;
		}
		queue_done(queue, &task);
	}
}

/* More files than the queue holds, several workers: each file is taken once, and all end. */
static void test_threads(void)
{
	struct queue *queue;
	pthread_t threads[4];
	size_t taken = 0;
	CHECK_INT(queue_new(8, 16 << 20, QUEUE_BY_TURNS, &queue), 0);
	for (size_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, worker, queue);
	for (unsigned i = 0; i < MANY; i += BLOCK_FILES)
		add(queue, i, BLOCK_FILES);
	queue_enter_phase(queue, QUEUE_COMPLETE);
	for (size_t i = 0; i < 4; i++) {
		void *n;
		pthread_join(threads[i], &n);
		taken += (size_t)n;
	}
	CHECK_INT((int64_t)taken, MANY);
	queue_free(queue);
}

/* Which tasks a worker gets while it has one. It gets no second one with a mark, and the queue has
 * not ended before both are done. */
static void test_ahead(void)
{
	static const struct {
		const char *name;
		bool is_marked, needs_mark_read, is_large, is_closed, retires;
		unsigned level;
		bool is_taken;
	} rows[] = {
		{"the next one", .level = 8, .is_taken = true},
		{"at the level", .level = 1, .is_taken = true},
		{"above the level", .level = 0},
		{"with a mark", .is_marked = true, .level = 8},
		{"another uploader may have it", .needs_mark_read = true, .level = 8},
		{"a large one", .is_large = true, .level = 8},
		{"the queue is closed", .is_closed = true, .level = 8},
		{"a worker has to end", .retires = true, .level = 8},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct queue *queue;
		struct task first, ahead = {0}, last;
		struct candidate *files[2] = {candidate(1), candidate(2)};
		CHECK_INT(queue_new(8, 16 << 20, QUEUE_BY_TURNS, &queue), 0);
		if (rows[i].is_large)
			files[1]->size = S3ONCE_SMALL_BYTES_MAX + 1;
		if (rows[i].is_marked)
			files[1]->mark_state = MARK_DONE;
		CHECK(queue_add(queue, files, 2));
		queue_enter_phase(queue, QUEUE_COMPLETE);
		queue_take(queue, &first);
		queue_release_rest(queue, first.file);
		files[1]->needs_mark_read = rows[i].needs_mark_read;
		queue_set_level(queue, rows[i].level, 0);
		if (rows[i].is_closed)
			queue_enter_phase(queue, QUEUE_CLOSED);
		if (rows[i].retires)
			queue_retire_workers(queue, 1);
		bool good = CHECK(queue_take_ahead(queue, &ahead) == rows[i].is_taken);
		first.has_follower = rows[i].is_taken;
		end_file(queue, &first);
		if (rows[i].is_taken) {
			struct queue_figures figures;
			good &= CHECK(ahead.file == files[1]);
			queue_read_figures(queue, &figures);
			good &= CHECK(!figures.is_idle);
			end_file(queue, &ahead);
			queue_take(queue, &last);
			good &= CHECK_INT(last.kind, TASK_END);
		}
		if (!good)
			fprintf(stderr, "\t%s\n", rows[i].name);
		queue_free(queue);
	}
}

int main(void)
{
	test_files();
	test_check_and_later();
	test_one_check_of_all();
	test_again();
	test_due_before_the_scan();
	test_contested();
	test_one_opens_the_block();
	test_spread();
	test_claim_hangs();
	test_parts();
	test_every_end_of_an_upload();
	test_close_leaves_parts();
	test_ahead();
	test_threads();
	return check_result();
}
