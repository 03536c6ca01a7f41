#include "../check.h"
#include "s3once/push.h"

/* Each way in which a run finishes with a file is a bit of its own. */
int main(void)
{
	const struct s3once_counts counts = {.uploaded = 1,
		.adopted = 2,
		.refreshed = 4,
		.skipped = 8,
		.outdated = 16,
		.changed = 32,
		.failed = 64,
		.held = 128,
		.waiting = 256,
		.oversized = 512,
		.undersized = 1024,
		.links = 2048,
		.special = 4096,
		.planned = 8192,
		.found = 1 << 20,
		.removed = 1 << 20,
		.moved = 1 << 20,
		.kept = 1 << 20,
		.not_removed = 1 << 20,
		.unproven = 1 << 20,
		.removable = 1 << 20,
		.in_flight = 1 << 20};
	CHECK_INT(s3once_counts_settled(&counts), 16383);
	CHECK_INT(s3once_counts_settled(&(struct s3once_counts){0}), 0);
	return check_result();
}
