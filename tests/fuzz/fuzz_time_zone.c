/* Files of the tz database, whatever their bytes: an offset is of hours, and local time is UTC and
 * the offset. */
#include "base/time_zone.h"
#include "fuzz.h"

static void ask(const struct time_zone *zone, int64_t wall_s)
{
	struct tm tm;
	if (time_zone_local(zone, wall_s, &tm))
		return;
	ENSURE(tm.tm_gmtoff > -100000 && tm.tm_gmtoff < 100000);
	ENSURE(tm.tm_zone && strlen(tm.tm_zone) < 65536);
	const long offset_s = tm.tm_gmtoff;
	ENSURE(timegm(&tm) == wall_s + offset_s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct time_zone *zone;
	struct time_zone_rule rule;
	static const int64_t times[] = {
		0, -1, 1774746000, 4102444800, 253402200000, -253402200000, INT64_MAX, INT64_MIN};
	if (time_zone_parse(data, size, &zone) == 0) {
		for (size_t i = 0; i < sizeof times / sizeof *times; i++)
			ask(zone, times[i]);
		free(zone);
	}
	char *s = fuzz_string(data, size);
	if (time_zone_rule_parse(s, &rule))
		for (int64_t t = -4000000000; t < 5000000000; t += 12345678)
			ENSURE(time_zone_rule_at(&rule, t)->name[2]);
	free(s);
	return 0;
}
