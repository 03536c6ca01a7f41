/* The order of turns: small files, large ones, and the parts of open uploads. */
#include "../check.h"
#include "upload/queue/queue.h"
#include <stdlib.h>
#include <string.h>

#define PART (16ULL << 20)

static void add(struct turns *turns, uint64_t size, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct candidate *file = calloc(1, sizeof *file);
		file->size = size;
		turns_add(turns, file);
	}
}

static size_t files_of(const struct turns *turns)
{
	size_t n = 0;
	for (size_t i = 0; i < LINES; i++)
		n += turns->lines[i].n;
	return n;
}

static void clear(struct turns *turns)
{
	for (struct candidate *file; (file = turns_pop_any(turns));)
		free(file);
}

/* The next task: "s"mall, "w"hole, "f"ile to be split, "p"art, "-" none. */
static char take(struct turns *turns, struct task *ret)
{
	if (!turns_take(turns, ret))
		return '-';
	if (ret->kind == TASK_PART)
		return 'p';
	const uint64_t size = ret->file->size;
	free(ret->file);
	return size > PART ? 'f' : size > S3ONCE_SMALL_BYTES_MAX ? 'w' : 's';
}

/* One task after the other, each done before the next. */
static const char *one_by_one(struct turns *turns, size_t n)
{
	static char text[300];
	struct task task;
	for (size_t i = 0; i < n; i++) {
		text[i] = take(turns, &task);
		if (text[i] == 'p')
			task.parts->under_way--;
		if (text[i] != '-')
			turns_done(turns, &task);
	}
	text[n] = 0;
	return text;
}

/* A huge file and many small ones: of many workers one sends its parts, the others the files. */
static void test_small_beside_parts(void)
{
	struct turns turns;
	struct parts parts;
	struct task tasks[8];
	turns_init(&turns, 8, PART);
	turns.max_large = 1;
	turns_open_parts(&turns, &parts, 10000);
	add(&turns, 1000, 100);
	CHECK_INT(take(&turns, &tasks[0]), 'p');
	for (int i = 1; i < 8; i++)
		CHECK_INT(take(&turns, &tasks[i]), 's');
	turns_done(&turns, &tasks[3]);
	CHECK_INT(take(&turns, &tasks[3]), 's');
	turns_done(&turns, &tasks[0]);
	CHECK_INT(take(&turns, &tasks[0]), 'p');
	clear(&turns);
}

/* However many large bodies the line takes: half of the workers are the small files'. */
static void test_half(void)
{
	struct turns turns;
	struct parts parts;
	struct task task;
	unsigned n = 0;
	turns_init(&turns, 8, PART);
	turns.max_large = 8;
	turns_open_parts(&turns, &parts, 10000);
	add(&turns, 1000, 100);
	for (int i = 0; i < 8; i++)
		n += take(&turns, &task) == 'p';
	CHECK_INT(n, 4);
	clear(&turns);
}

static void test_one_worker(void)
{
	struct turns turns;
	struct parts parts;
	turns_init(&turns, 1, PART);
	turns_open_parts(&turns, &parts, 10000);
	add(&turns, 1000, 120);
	const char *order = one_by_one(&turns, 130);
	CHECK(strspn(order, "s") == 50 && order[50] == 'p');
	CHECK(strspn(order + 51, "s") == 50 && order[101] == 'p');
	CHECK_STRING(order + 102, "ssssssssssssssssssss"
				  "pppppppp");
	clear(&turns);
}

/* Parts and files that are large themselves, and several uploads. */
static void test_large(void)
{
	struct turns turns;
	struct parts one, two;
	struct task task;
	turns_init(&turns, 8, PART);
	turns_open_parts(&turns, &one, 10);
	add(&turns, 5 << 20, 3);
	CHECK_STRING(one_by_one(&turns, 8), "pwpwpwpp");
	turns_open_parts(&turns, &two, 2);
	struct parts *order[4];
	for (int i = 0; i < 4; i++) {
		CHECK_INT(take(&turns, &task), 'p');
		order[i] = task.parts;
		turns_done(&turns, &task);
	}
	CHECK(order[0] == &one && order[1] == &two && order[2] == &one && order[3] == &two);
	clear(&turns);
}

/* A few files are begun beside one that has parts for ever, and no more than a few. */
static void test_opening(void)
{
	struct turns turns;
	struct parts parts[4];
	struct task tasks[4];
	turns_init(&turns, 64, PART);
	turns.max_large = 1;
	add(&turns, PART + 1, 10);
	for (int i = 0; i < 4; i++)
		CHECK_INT(take(&turns, &tasks[i]), 'f');
	CHECK_INT(take(&turns, &tasks[0]), '-');
	for (int i = 0; i < 4; i++) {
		turns_open_parts(&turns, &parts[i], 3);
		turns_done(&turns, &(struct task){.begins_upload = true});
	}
	CHECK_STRING(one_by_one(&turns, 3), "ppp");
	turns_drop_parts(&turns, &parts[0]);
	turns.uploads_open--;
	CHECK_STRING(one_by_one(&turns, 1), "f");
	clear(&turns);
}

/* Of three uploads, the one that is given up gets no more parts, and the others get all of theirs,
 * in turn. */
static void test_given_up(void)
{
	for (size_t given_up = 0; given_up < 3; given_up++) {
		struct turns turns;
		struct parts parts[3];
		struct task task;
		turns_init(&turns, 8, PART);
		for (size_t i = 0; i < 3; i++)
			turns_open_parts(&turns, &parts[i], 2);
		turns_drop_parts(&turns, &parts[given_up]);
		for (size_t i = 0; i < 6; i++) {
			if (i % 3 == given_up)
				continue;
			CHECK_INT(take(&turns, &task), 'p');
			CHECK(task.parts == &parts[i % 3] && task.index == i / 3);
			turns_done(&turns, &task);
		}
		CHECK_INT(take(&turns, &task), '-');
	}
}

static void test_remove_block(void)
{
	struct turns turns;
	struct candidate *removed[BLOCK_FILES];
	turns_init(&turns, 4, PART);
	add(&turns, 1, 5);
	add(&turns, 2 << 20, 5);
	add(&turns, PART + 1, 5);
	CHECK_INT((int64_t)files_of(&turns), 15);
	const size_t n = turns_remove_block(&turns, 0, removed);
	CHECK_INT((int64_t)n, 15);
	CHECK_INT((int64_t)files_of(&turns), 0);
	for (size_t i = 0; i < n; i++)
		turns_add(&turns, removed[i]);
	CHECK_INT((int64_t)files_of(&turns), 15);
	clear(&turns);
}

static void add_aged(struct turns *turns, uint64_t size, int64_t mtime_ns)
{
	struct candidate *file = calloc(1, sizeof *file);
	file->size = size;
	file->mtime_ns = mtime_ns;
	turns_add(turns, file);
}

/* Before a host ends: small files by age, large ones by size, one in parts after the other. */
static void test_ranked(void)
{
	struct turns turns;
	struct parts parts;
	struct task task;
	turns_init(&turns, 8, PART);
	turns.is_ranked = true;
	const uint64_t large[] = {PART + 2, 3 << 20, PART + 1, 2 << 20};
	for (size_t i = 0; i < 4; i++)
		add_aged(&turns, large[i], 1);
	for (int64_t i = 0; i < 100; i++)
		add_aged(&turns, 1000, 1 + i * 37 % 100);
	add_aged(&turns, 5, -7);
	int64_t last_ns = INT64_MIN;
	for (int i = 0; i < 101; i++) {
		CHECK(turns_take(&turns, &task) && task.kind == TASK_FILE);
		CHECK(task.file->mtime_ns >= last_ns && task.file->size <= S3ONCE_SMALL_BYTES_MAX);
		last_ns = task.file->mtime_ns;
		free(task.file);
		turns_done(&turns, &task);
	}
	const uint64_t wanted[] = {2 << 20, 3 << 20, PART + 1};
	for (size_t i = 0; i < 3; i++) {
		CHECK(turns_take(&turns, &task) && task.kind == TASK_FILE);
		CHECK_INT(task.file->size, wanted[i]);
		free(task.file);
		if (i == 2) {
			CHECK(!turns_has(&turns)); /* it is being opened */
			turns_open_parts(&turns, &parts, 2);
		}
		turns_done(&turns, &task);
	}
	CHECK_STRING(one_by_one(&turns, 4), "ppf-");
	clear(&turns);
}

int main(void)
{
	test_small_beside_parts();
	test_half();
	test_one_worker();
	test_large();
	test_opening();
	test_given_up();
	test_remove_block();
	test_ranked();
	return check_result();
}
