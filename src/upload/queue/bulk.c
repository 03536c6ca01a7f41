#include "upload/queue/bulk.h"
#include "base/clock.h"

/* A window is long enough for its rate to mean something, on a slow line as on a fast one. */
#define WINDOW_LEAST_NS    (200 * NS_PER_MS)
#define WINDOW_LEAST_BYTES (4U << 20)
#define WINDOW_MOST_NS     (5 * NS_PER_S)

#define WORTH           1.1 /* times the rate before */
#define PAUSE_FIRST_NS  (10 * NS_PER_S)
#define PAUSE_MOST_NS   (320 * NS_PER_S)
#define PAUSE_UNUSED_NS NS_PER_S
#define PAUSE_CUT_NS    (5 * NS_PER_S)
#define CUT_TOGETHER_NS (2 * NS_PER_S)

static void begin_window(struct bulk *bulk, uint64_t now_ns, uint64_t moved_bytes)
{
	bulk->window_ns = now_ns;
	bulk->window_bytes = moved_bytes;
}

static void set_level(struct bulk *bulk, unsigned at_once)
{
	bulk->at_once = at_once < bulk->most ? at_once : bulk->most;
	bulk->is_settling = true;
}

void bulk_init(struct bulk *bulk, unsigned most)
{
	*bulk = (struct bulk){.most = most, .proven = 1, .pause_ns = PAUSE_FIRST_NS};
	set_level(bulk, 1);
}

/* The number doubles until that did not help once. */
static void begin_trial(struct bulk *bulk)
{
	const unsigned n = bulk->proven;
	set_level(bulk, bulk->was_in_vain ? n + n / 4 + 1 : 2 * n);
}

static void end_trial(struct bulk *bulk, uint64_t now_ns, double rate, bool was_used)
{
	if (rate >= WORTH * bulk->proven_rate) {
		bulk->proven = bulk->at_once;
		bulk->proven_rate = rate;
		bulk->pause_ns = PAUSE_FIRST_NS;
		begin_trial(bulk);
		return;
	}
	/* Two fill the gaps in which one is read and answered, though no window shows it. */
	if (bulk->proven < 2)
		bulk->proven = bulk->most < 2 ? bulk->most : 2;
	set_level(bulk, bulk->proven);
	if (!was_used) { /* there were not so many: that says nothing of the line */
		bulk->next_trial_ns = now_ns + PAUSE_UNUSED_NS;
		return;
	}
	bulk->was_in_vain = true;
	bulk->next_trial_ns = now_ns + bulk->pause_ns;
	bulk->pause_ns = 2 * bulk->pause_ns < PAUSE_MOST_NS ? 2 * bulk->pause_ns : PAUSE_MOST_NS;
}

bool bulk_look(struct bulk *bulk, uint64_t now_ns, uint64_t moved_bytes, unsigned under_way)
{
	const uint64_t ns = now_ns - bulk->window_ns, bytes = moved_bytes - bulk->window_bytes;
	const unsigned before = bulk->at_once;
	if (!under_way && !bytes) /* nothing large is there: time without a meaning */
		begin_window(bulk, now_ns, moved_bytes);
	if (ns < WINDOW_LEAST_NS || (bytes < WINDOW_LEAST_BYTES && ns < WINDOW_MOST_NS))
		return false;
	begin_window(bulk, now_ns, moved_bytes);
	const double rate = (double)bytes / (double)ns * (double)NS_PER_S;
	if (bulk->is_settling) {
		bulk->is_settling = false;
	} else if (bulk->at_once > bulk->proven) {
		end_trial(bulk, now_ns, rate, under_way >= bulk->at_once);
	} else {
		/* Lines waver: a trial has to do better than good times did. */
		bulk->proven_rate =
			rate > bulk->proven_rate ? rate : (rate + bulk->proven_rate) / 2;
		if (bytes && bulk->proven < bulk->most && now_ns >= bulk->next_trial_ns)
			begin_trial(bulk);
	}
	return bulk->at_once > before;
}

void bulk_cut(struct bulk *bulk, uint64_t now_ns, uint64_t moved_bytes)
{
	if (bulk->cut_ns && now_ns - bulk->cut_ns < CUT_TOGETHER_NS)
		return;
	bulk->cut_ns = now_ns;
	bulk->proven = bulk->at_once > 1 ? bulk->at_once / 2 : 1;
	bulk->proven_rate = 0;
	bulk->next_trial_ns = now_ns + PAUSE_CUT_NS;
	set_level(bulk, bulk->proven);
	begin_window(bulk, now_ns, moved_bytes);
}
