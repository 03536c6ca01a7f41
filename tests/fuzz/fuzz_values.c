/* Values of options: a number is the number that was written, and shown it reads the same. And the
 * sums in an object's metadata: shown they read the same. */
#include "cli/options/values.h"
#include "fuzz.h"
#include "s3/s3_request.h"
#include <ctype.h>
#include <errno.h>
#include <string.h>

typedef int reader(const char *s, uint64_t *ret, struct problem *ret_problem);
typedef void shower(struct text *t, uint64_t n);

static void read_value(const char *s, reader *read_it, shower *show, uint64_t largest_unit)
{
	uint64_t n = 0, again = 0;
	struct problem problem = {0};
	if (read_it(s, &n, &problem) < 0) {
		ENSURE(problem.text[0] && n == 0);
		return;
	}
	ENSURE(isdigit((unsigned char)*s));
	errno = 0;
	char *rest;
	uint64_t digits = strtoull(s, &rest, 10);
	ENSURE(errno == 0);
	if (strpbrk(rest, "0123456789")) /* of several units */
		ENSURE(n >= digits);
	else
		ENSURE(digits ? n % digits == 0 && n / digits <= largest_unit : n == 0);
	if (!show)
		return;
	struct text text = TEXT(64);
	show(&text, n);
	ENSURE(text.error == 0 && read_it(text_string(&text), &again, &problem) == 0);
	ENSURE(again == n);
	text_clear(&text);
}

static void read_sums(const char *s)
{
	struct sums sums, again;
	char text[S3_SUMS_CHARS];
	s3_parse_sums(s, &sums);
	ENSURE(sums.kinds < 1U << CHECKSUMS);
	for (unsigned i = 0; i < CHECKSUMS; i++) {
		s3_format_sums(&sums, (enum checksum)i, text);
		s3_parse_sums(text, &again);
		ENSURE(again.kinds == (sums.kinds & (DIGEST_OF(i) | DIGEST_MD5)));
		ENSURE(!(again.kinds & DIGEST_OF(i)) ||
			sums_equal(&sums, &again, (enum checksum)i));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *s = fuzz_string(data, size);
	read_value(s, value_number, NULL, 1);
	read_value(s, value_duration, value_show_duration, 24 * 3600 * 1000);
	read_value(s, value_size, value_show_size, 1ULL << 40);
	read_sums(s);
	free(s);
	return 0;
}
