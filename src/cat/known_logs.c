/* The recently met logs of a family. With them, log_plan.c finds the place of each object. */
#include "cat/known_logs.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void clear_log(struct known_log *log)
{
	free(log->ranges);
	*log = (struct known_log){.n = 0};
}

void known_logs_clear(struct known_logs *known)
{
	while (known->n)
		clear_log(&known->logs[--known->n]);
}

struct known_log *known_logs_find_continued(struct known_logs *known, uint64_t start)
{
	for (size_t i = 0; start && i < known->n; i++)
		if (known->logs[i].end == start)
			return &known->logs[i];
	const bool may_be = start && known->n && known->logs->end == LENGTH_UNKNOWN;
	return may_be ? known->logs : NULL;
}

int known_logs_add(struct known_logs *known, struct known_log *log, const struct log_range *range)
{
	struct known_log latest = {.start = range->start};
	size_t place; /* the logs before this index move up by one, to make room at logs[0] */
	if (log) {
		place = (size_t)(log - known->logs);
		latest = *log;
	} else if (known->n < KNOWN_LOGS_MAX) {
		place = known->n++;
	} else { /* the log that was met longest ago is dropped */
		place = KNOWN_LOGS_MAX - 1;
		clear_log(&known->logs[place]);
	}
	memmove(known->logs + 1, known->logs, place * sizeof *known->logs);
	known->logs[0] = latest;
	struct log_range *ranges = reallocarray(latest.ranges, latest.n + 1, sizeof *latest.ranges);
	if (!ranges)
		return -ENOMEM;
	ranges[latest.n] = *range;
	known->logs[0].ranges = ranges;
	known->logs[0].n = latest.n + 1;
	known->logs[0].end = range->end;
	memcpy(known->logs[0].table, range->table, sizeof known->logs[0].table);
	return 0;
}

bool known_log_may_repeat(const struct known_log *log, const struct log_range *object)
{
	/* Marks know the pieces of their logs, so they never upload the beginning of a known log
	 * again: this is another log. */
	if (object->start == 0 && strcmp(object->table, log->table) == 0)
		return false;
	/* An object with exactly the range of this log is another log of the same length. If this
	 * log had been uploaded again, it would have the same key, and so be the same object. */
	if (log->n == 1 && object->start == log->start && object->end == log->end)
		return false;
	const bool overlaps = object->start < log->end && object->end > log->start;
	return overlaps && log->end != LENGTH_UNKNOWN;
}
