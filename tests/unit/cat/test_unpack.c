/* The content of an object that comes range by range: as it is, or decompressed. */
#include "../check.h"
#include "cat/unpack.h"
#include <errno.h>
#include <string.h>

/* printf 'one\ntwo\n' | gzip -n */
static const char packed[] = "\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\xcf\x4b\xe5\x2a\x29\xcf\xe7\x02\0"
			     "\xe6\x0b\xba\x12\x08\0\0\0";
#define PACKED sizeof packed - 1

static char got[200];
static size_t n_got;
static int stops_with; /* what the taker of the bytes returns */

static int take(void *arg, const unsigned char *bytes, size_t n)
{
	if (stops_with)
		return stops_with;
	if (CHECK(n_got + n < sizeof got))
		memcpy(got + n_got, bytes, n);
	n_got += n;
	return 0;
}

/* Unpacks the object, which comes in ranges of so many bytes, and an empty one at its end. */
static int unpack_all(const char *bytes, size_t n, size_t each)
{
	struct unpack u = {.take = take};
	struct problem problem = {0};
	int r = 0;
	n_got = 0;
	memset(got, 0, sizeof got);
	for (size_t at = 0; r == 0 && at <= n; at += each) {
		const size_t left = n - at;
		const struct read_range range = {
			(const unsigned char *)bytes + at, left < each ? left : each};
		r = unpack(&u, &range, &problem);
		if (left && left <= each && r == 0)
			r = unpack(&u, &(struct read_range){.n = 0}, &problem);
		if (left <= each)
			break;
	}
	unpack_clear(&u);
	CHECK_INT(r == -EBADMSG, strstr(problem.text, "it is damaged or cut off") != NULL);
	return r;
}

int main(void)
{
	static char twice[2 * (PACKED)], like[100] = "plain text";
	memcpy(twice, packed, PACKED);
	memcpy(twice + PACKED, packed, PACKED);
	memcpy(like + 10, packed, PACKED);
	for (size_t each = 4; each < 80; each++) {
		CHECK_INT(unpack_all(packed, PACKED, each), 0);
		CHECK_STRING(got, "one\ntwo\n");
		CHECK_INT(unpack_all(twice, 2 * (PACKED), each), 0);
		CHECK_STRING(got, "one\ntwo\none\ntwo\n");
		CHECK_INT(unpack_all(packed, PACKED - 1, each), -EBADMSG);
		CHECK_INT(unpack_all(twice, 2 * (PACKED)-1, each), -EBADMSG);
		/* Only its beginning says whether an object is compressed. */
		CHECK_INT(unpack_all(like, 10 + PACKED, each == 4 ? 10 : each), 0);
		CHECK_INT(n_got, 10 + PACKED);
		CHECK(memcmp(got, like, n_got) == 0);
	}
	CHECK_INT(unpack_all("", 0, 10), 0);
	CHECK_INT(n_got, 0);
	/* The consumer of the bytes can end it. */
	stops_with = -EPIPE;
	CHECK_INT(unpack_all(packed, PACKED, 10), -EPIPE);
	CHECK_INT(unpack_all(like, 30, 10), -EPIPE);
	return check_result();
}
