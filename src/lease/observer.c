/* Measures for how long the rows of others have not changed. Observations are kept in memory, and
 * in a file between runs of one boot. Sessions (marks/session.c) and locks (lock/lock_observe.c)
 * judge by them. Only the elapsed time of this host counts, not the wall clock. */
#include "lease/observer.h"
#include "base/clock.h"
#include "base/files.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_BYTES (64U << 10)

/* Whether `a` is to be evicted rather than `b`. An observation of a session that is over, or one
 * that has no version yet, is worth nothing. The row that has not changed for longest is worth
 * most, since the wait for it is nearest to its end. If the least recently used observation were
 * evicted instead, too many rows would displace each other, and no wait would ever end. */
static bool is_worth_less(const struct observation *a, const struct observation *b)
{
	const uint64_t a_since = (a->over || !a->since_ns) ? UINT64_MAX : a->since_ns;
	const uint64_t b_since = (b->over || !b->since_ns) ? UINT64_MAX : b->since_ns;
	return a_since > b_since;
}

struct observation *observer_find_or_add(struct observer *observer, const char *row)
{
	struct observation *least_useful = &observer->list[0];
	for (unsigned i = 0; i < observer->n; i++) {
		struct observation *o = &observer->list[i];
		if (strcmp(o->row, row) == 0)
			return o;
		if (is_worth_less(o, least_useful))
			least_useful = o;
	}
	struct observation *o =
		observer->n < OBSERVATIONS_MAX ? &observer->list[observer->n++] : least_useful;
	*o = (struct observation){0};
	snprintf(o->row, sizeof o->row, "%s", row);
	return o;
}

uint64_t observer_note(struct observation *o, const char *version, uint64_t now_ns)
{
	/* since_ns shows whether a version was noted, since the version of a foreign row may be
	 * "". */
	if (!o->since_ns || strcmp(o->version, version) != 0) {
		snprintf(o->version, sizeof o->version, "%s", version);
		o->since_ns = now_ns;
	}
	/* since_ns is later than now_ns if another process has noted the version and written the
	 * file since our reply arrived. */
	return now_ns > o->since_ns ? now_ns - o->since_ns : 0;
}

/* Writes the boot id and the time namespace. Two processes have the same boot clock only if both
 * are the same. "?" stands for one that is not known. */
static void identify_clock(char ret[static 128])
{
	char boot[37], space[64];
	clock_boot_id(boot);
	read_link("/proc/self/ns/time", space, sizeof space);
	snprintf(ret, 128, "%s %s", *boot ? boot : "?", *space ? space : "?");
}

/* Whether no other user has made the file. */
static bool is_our_file(int fd)
{
	struct stat st;
	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

/* Reads the first line of the file, which names a boot clock. Returns whether that is the clock of
 * this process, so that the times in the file can be compared with it. */
static bool begins_with_our_clock(FILE *file)
{
	char mine[128], line[256];
	identify_clock(mine);
	const size_t n = strlen(mine);
	const bool is_known = *mine != '?'; /* without the boot id, the clock may be any */
	return is_known && fgets(line, sizeof line, file) && strncmp(line, mine, n) == 0 &&
	       line[n] == '\n';
}

void observer_load(struct observer *observer, const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!file)
		return;
	char line[256];
	const uint64_t now = clock_boot_ns();
	const bool counts = is_our_file(fd) && begins_with_our_clock(file);
	while (counts && observer->n < OBSERVATIONS_MAX && fgets(line, sizeof line, file)) {
		struct observation o = {0};
		const int n = sscanf(
			line, "%32[0-9a-f] %32[0-9a-f] %" SCNu64, o.row, o.version, &o.since_ns);
		if (n == 3 && o.since_ns <= now)
			observer->list[observer->n++] = o;
	}
	fclose(file);
}

int observer_save(const struct observer *observer, const char *path)
{
	char mine[128];
	struct text lines = TEXT(FILE_MAX_BYTES);
	identify_clock(mine);
	text_addf(&lines, "%s\n", mine);
	for (unsigned i = 0; i < observer->n; i++) {
		const struct observation *o = &observer->list[i];
		if (!o->over && *o->version)
			text_addf(&lines, "%s %s %" PRIu64 "\n", o->row, o->version, o->since_ns);
	}
	/* The file need not outlive this boot, so it is not synced. */
	const int error =
		lines.error ? -ENOMEM
			    : replace_file(path, lines.data, lines.len, 0600, REPLACE_UNSYNCED);
	text_clear(&lines);
	return error;
}
