/* Dates of replies, and times in an object's metadata: what is accepted is a time that can be
 * written and reads the same again. */
#include "base/clock.h"
#include "fuzz.h"
#include "s3/s3_request.h"
#include <errno.h>

static void through_iso(int64_t time_s)
{
	char iso[21], amz[17];
	ENSURE(time_s == -EINVAL || time_s >= 0);
	if (time_s < 0)
		return;
	clock_format_iso(time_s, iso);
	clock_format_amz(time_s, amz);
	ENSURE(strlen(iso) == 20 && strlen(amz) == 16);
	ENSURE(clock_parse_iso(iso) == time_s);
}

static void through_mtime(int64_t mtime_ns)
{
	char text[S3_MTIME_CHARS];
	s3_format_mtime(mtime_ns, text);
	ENSURE(s3_parse_mtime(text) == mtime_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *s = fuzz_string(data, size);
	through_iso(clock_parse_http_date(s));
	through_iso(clock_parse_iso(s));
	through_mtime(s3_parse_mtime(s));
	free(s);
	return 0;
}
