/* The clock of a run: what counts as progress, what as time without it, and when it is over. */
#include "../check.h"
#include "aws/progress_clock.h"
#include "base/clock.h"
#include "base/log.h"
#include <unistd.h>

#define LIMIT_MS   60
#define REQUEST_MS 40
#define SHARE(ms)  ((uint64_t)(ms)*NS_PER_MS)

static struct progress_clock begin(void)
{
	struct progress_clock clock;
	progress_init(&clock);
	progress_set_limit(&clock, LIMIT_MS, REQUEST_MS);
	progress_poll_is_over(&clock); /* the time counts from here on */
	return clock;
}

/* Asks as often as a run does, until the clock is over, or for this long. Meanwhile `happens`. */
static bool is_over_within(
	struct progress_clock *clock, uint64_t ms, void (*happens)(struct progress_clock *clock))
{
	const uint64_t end_ns = clock_boot_ns() + SHARE(ms);
	while (!progress_poll_is_over(clock) && clock_boot_ns() < end_ns) {
		if (happens)
			happens(clock);
		usleep(5000);
	}
	return progress_poll_is_over(clock);
}

/* After how many ms it is over, of those that were counted. */
static uint64_t over_after_ms(struct progress_clock *clock)
{
	CHECK(is_over_within(clock, 60000, NULL));
	return progress_still_ns(clock, NULL) / NS_PER_MS;
}

static const struct problem refused = {.text = "refused"}, answered = {.text = "no", .status = 500};

/* A request that is under way is not cut off: it fails by itself, and the limit begins then. */
static void test_limits(void)
{
	struct problem why;
	struct progress_clock clock = begin();
	CHECK(!is_over_within(&clock, 3 * (LIMIT_MS + REQUEST_MS), NULL)); /* nobody waits */
	progress_begin_wait(&clock, "PutObject");
	CHECK(!is_over_within(&clock, 3 * (LIMIT_MS + REQUEST_MS), NULL));
	progress_still_ns(&clock, &why);
	CHECK_STRING(why.text, "there is no answer to PutObject yet");
	const uint64_t silent_ms = progress_still_ns(&clock, NULL) / NS_PER_MS;
	CHECK(silent_ms >= LIMIT_MS + REQUEST_MS);
	progress_failed(&clock, "PutObject", &refused);
	CHECK(over_after_ms(&clock) >= silent_ms + LIMIT_MS);
	progress_clear(&clock);
	clock = begin();
	progress_failed(&clock, "PutObject", &answered);
	CHECK(over_after_ms(&clock) >= LIMIT_MS + REQUEST_MS);
	progress_clear(&clock);
	clock = begin();
	progress_failed(&clock, "PutObject", &answered);
	progress_failed(&clock, "HeadObject", &refused);
	const uint64_t ms = over_after_ms(&clock);
	CHECK(ms >= LIMIT_MS);
	progress_still_ns(&clock, &why);
	CHECK_STRING(why.text, "refused"); /* the last one */
	progress_made(&clock);
	CHECK(progress_poll_is_over(&clock)); /* it stays so */
	progress_clear(&clock);
}

static void test_a_wait_that_ends(void)
{
	struct progress_clock clock = begin();
	progress_begin_wait(&clock, "PutObject");
	progress_begin_wait(&clock, "PutObject");
	progress_end_wait(&clock);
	is_over_within(&clock, LIMIT_MS, NULL);
	CHECK(progress_still_ns(&clock, NULL) > 0);
	progress_clear(&clock);
	clock = begin();
	progress_begin_wait(&clock, "PutObject");
	progress_end_wait(&clock);
	CHECK(!is_over_within(&clock, 3 * (LIMIT_MS + REQUEST_MS), NULL));
	progress_clear(&clock);
	progress_begin_wait(NULL, "PutObject"); /* a call of no run */
	progress_end_wait(NULL);
	progress_failed(NULL, "PutObject", &refused);
	progress_answered(NULL, "PutObject");
}

static void one_fails(struct progress_clock *clock)
{
	progress_failed(clock, "PutObject", &refused);
}

static void other_is_answered(struct progress_clock *clock)
{
	progress_answered(clock, "HeadObject");
}

static void both_happen(struct progress_clock *clock)
{
	one_fails(clock);
	other_is_answered(clock);
}

/* Whatever happens meanwhile, and whether it keeps the clock from being over. */
static const struct {
	void (*before)(struct progress_clock *clock), (*happens)(struct progress_clock *clock);
	bool is_over;
} cases[] = {
	{one_fails, NULL, true},
	{one_fails, progress_made, false},
	{one_fails, progress_note_local_work, false},
	{one_fails, one_fails, true},
	{one_fails, both_happen, true},
	/* The answers to others are no progress while this kind fails. */
	{one_fails, other_is_answered, true},
	{other_is_answered, other_is_answered, false},
};

static void test_which_events_are_progress(void)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct progress_clock clock = begin();
		progress_begin_wait(&clock, "PutObject");
		cases[i].before(&clock);
		const uint64_t ms = cases[i].is_over ? 60000 : 3 * (LIMIT_MS + REQUEST_MS);
		if (!CHECK(is_over_within(&clock, ms, cases[i].happens) == cases[i].is_over))
			fprintf(stderr, "\tcase %zu\n", i);
		progress_clear(&clock);
	}
}

/* A kind that is answered well does not fail any more, but that is no progress yet. */
static void test_a_kind_that_recovers(void)
{
	struct progress_clock clock = begin();
	progress_set_limit(&clock, 600000, REQUEST_MS); /* it is not over, however slow this is */
	progress_failed(&clock, "PutObject", &refused);
	usleep(50000);
	progress_poll_is_over(&clock);
	const uint64_t still_ns = progress_still_ns(&clock, NULL);
	CHECK(still_ns >= SHARE(40));
	progress_answered(&clock, "PutObject");
	progress_poll_is_over(&clock);
	CHECK(progress_still_ns(&clock, NULL) >= still_ns);
	progress_answered(&clock, "PutObject");
	usleep(30000);
	progress_poll_is_over(&clock);
	CHECK_INT(progress_still_ns(&clock, NULL), 0);
	progress_clear(&clock);
}

/* More kinds than there is room for take each other's places, and none is taken for good. */
static void test_many_kinds(void)
{
	struct progress_clock clock = begin();
	char kind[16];
	for (unsigned i = 0; i < 3 * PROGRESS_KINDS; i++) {
		snprintf(kind, sizeof kind, "kind %u", i);
		progress_failed(&clock, kind, &refused);
	}
	CHECK(is_over_within(&clock, 60000, other_is_answered));
	progress_clear(&clock);
}

/* A host that slept has not tried anything: a gap counts as a second at most. */
static void test_a_gap(void)
{
	struct progress_clock clock;
	progress_init(&clock);
	progress_set_limit(&clock, 1100, 1);
	progress_poll_is_over(&clock);
	progress_failed(&clock, "PutObject", &refused);
	usleep(1300000);
	CHECK(!progress_poll_is_over(&clock));
	CHECK_INT(progress_still_ns(&clock, NULL), NS_PER_S);
	progress_clear(&clock);
}

/* No limit is shorter than a request may take, up to the time after which a line says why. */
static void test_least(void)
{
	struct progress_clock clock;
	progress_init(&clock);
	progress_set_limit(&clock, 1, 2000);
	CHECK_INT(clock.limit_ns, 2 * NS_PER_S);
	progress_set_limit(&clock, 1, 60000);
	CHECK_INT(clock.limit_ns, PROGRESS_SAY_NS);
	progress_set_limit(&clock, 30000, 60000);
	CHECK_INT(clock.limit_ns, 30 * NS_PER_S);
	progress_clear(&clock);
}

int main(void)
{
	test_limits();
	test_a_wait_that_ends();
	test_which_events_are_progress();
	test_a_kind_that_recovers();
	test_many_kinds();
	test_a_gap();
	test_least();
	return check_result();
}
