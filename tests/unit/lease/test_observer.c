/* What is seen of more rows than are remembered: each dead one still comes to its end. */
#include "base/clock.h"
#include "check.h"
#include "lease/observer.h"
#include <stdio.h>

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
			struct observation *o = observer_of(&observer, name);
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
static void test_what_stands_still_is_kept(void)
{
	observer = (struct observer){0};
	observer_note(observer_of(&observer, "still"), "1", NS_PER_S);
	for (unsigned i = 0; i < ROWS; i++) {
		char name[ID_CHARS + 1];
		snprintf(name, sizeof name, "%032x", i);
		observer_note(observer_of(&observer, name), "1", (2 + i) * NS_PER_S);
	}
	CHECK_INT((int64_t)observer_note(observer_of(&observer, "still"), "1", 60 * NS_PER_S),
		(int64_t)(59 * NS_PER_S));
	CHECK_INT((int64_t)observer_note(observer_of(&observer, "still"), "2", 61 * NS_PER_S), 0);
}

int main(void)
{
	test_many_rows_come_to_an_end();
	test_what_stands_still_is_kept();
	return check_result();
}
