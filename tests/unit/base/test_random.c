#include "../check.h"
#include "base/random.h"

int main(void)
{
	char a[ID_CHARS + 1], b[ID_CHARS + 1];
	random_id(a);
	random_id(b);
	CHECK_INT(strspn(a, "0123456789abcdef"), ID_CHARS);
	CHECK_INT(strlen(a), ID_CHARS);
	CHECK(strcmp(a, b) != 0);

	CHECK_INT(random_below(0), 0);
	CHECK_INT(random_below(1), 0);
	unsigned seen[7] = {0};
	for (int i = 0; i < 7000; i++) {
		uint64_t value = random_below(7);
		if (CHECK(value < 7))
			seen[value]++;
	}
	for (size_t i = 0; i < 7; i++)
		CHECK(seen[i] > 700 && seen[i] < 1300); /* 10 standard deviations */
	CHECK(random_below(UINT64_MAX) < UINT64_MAX);
	return check_result();
}
