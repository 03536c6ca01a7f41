/* With more rows than can be remembered, each dead one is still recognised in the end. */
#include "base/clock.h"
#include "check.h"
#include "lease/observer.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROWS (OBSERVATIONS_MAX * 2 + 50)

static struct observer observer;
static bool over[ROWS];

/* All that are not over are looked at once, as whoever waits for them does. */
static unsigned look_at_all(uint64_t now_ns)
{
	unsigned n_over = 0;
	for (unsigned i = 0; i < ROWS; i++) {
		char name[ID_CHARS + 1];
		snprintf(name, sizeof name, "%032x", i);
		if (!over[i]) {
			struct observation *o = observer_find_or_add(&observer, name);
			over[i] = o->over = observer_note(o, "1", now_ns) >= 30 * NS_PER_S;
		}
		n_over += over[i];
	}
	return n_over;
}

static void test_many_rows_come_to_an_end(void)
{
	unsigned n_over = 0, seconds = 0;
	for (; n_over < ROWS && seconds < 300; seconds++)
		n_over = look_at_all((1000 + seconds) * NS_PER_S);
	CHECK_INT(n_over, ROWS);
}

/* A row that changes is seen anew; one that stands still keeps its place. */
static void test_unchanged_row_is_remembered(void)
{
	observer = (struct observer){0};
	observer_note(observer_find_or_add(&observer, "still"), "1", NS_PER_S);
	for (unsigned i = 0; i < ROWS; i++) {
		char name[ID_CHARS + 1];
		snprintf(name, sizeof name, "%032x", i);
		observer_note(observer_find_or_add(&observer, name), "1", (2 + i) * NS_PER_S);
	}
	CHECK_INT((int64_t)observer_note(
			  observer_find_or_add(&observer, "still"), "1", 60 * NS_PER_S),
		(int64_t)(59 * NS_PER_S));
	CHECK_INT((int64_t)observer_note(
			  observer_find_or_add(&observer, "still"), "2", 61 * NS_PER_S),
		0);
}

/* Observations of ended rows are dropped, and a time that this boot has not reached is not
 * believed. */
static void test_file_of_observations(void)
{
	static const char *const names[] = {"00000000000000000000000000000001",
		"00000000000000000000000000000002", "00000000000000000000000000000003"};
	char path[] = "/tmp/s3once-observer-XXXXXX";
	const int fd = mkstemp(path);
	const uint64_t now_ns = clock_boot_ns();
	if (!CHECK(fd >= 0))
		return;
	close(fd);
	observer = (struct observer){0};
	observer_note(observer_find_or_add(&observer, names[0]), names[0], now_ns / 2);
	observer_note(observer_find_or_add(&observer, names[1]), names[1], now_ns / 2);
	observer_find_or_add(&observer, names[1])->over = true;
	observer_note(
		observer_find_or_add(&observer, names[2]), names[2], now_ns + 3600 * NS_PER_S);
	observer_save(&observer, path);
	observer = (struct observer){0};
	observer_load(&observer, path);
	CHECK_INT(observer.n, 1);
	CHECK_STRING(observer.list[0].row, names[0]);
	CHECK_INT((int64_t)observer.list[0].since_ns, (int64_t)(now_ns / 2));
	/* The times of another boot, or of another time namespace, are of another clock. */
	char line[256];
	FILE *file = fopen(path, "r+");
	if (CHECK(file && fgets(line, sizeof line, file))) {
		line[0] = line[0] == '0' ? '1' : '0';
		rewind(file);
		fputs(line, file);
		fclose(file);
	}
	observer = (struct observer){0};
	observer_load(&observer, path);
	CHECK_INT(observer.n, 0);
	unlink(path);
}

int main(void)
{
	test_many_rows_come_to_an_end();
	test_unchanged_row_is_remembered();
	test_file_of_observations();
	return check_result();
}
