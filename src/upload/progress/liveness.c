#include "upload/progress/liveness.h"
#include "base/clock.h"

void liveness_sign(struct liveness *liveness)
{
	atomic_store(&liveness->seen_ns, clock_boot_ns());
}

void liveness_begin(struct liveness *liveness)
{
	liveness_sign(liveness);
	atomic_fetch_add(&liveness->tasks, 1);
}

void liveness_end(struct liveness *liveness)
{
	liveness_sign(liveness);
	atomic_fetch_sub(&liveness->tasks, 1);
}

bool liveness_is_lost(const struct liveness *liveness, uint64_t ns)
{
	const uint64_t seen_ns = atomic_load(&liveness->seen_ns), now_ns = clock_boot_ns();
	return atomic_load(&liveness->tasks) && now_ns > seen_ns && now_ns - seen_ns >= ns;
}
