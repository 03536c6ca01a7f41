#include "base/nearest.h"
#include <string.h>

static unsigned least_of_three(unsigned a, unsigned b, unsigned c)
{
	unsigned least = a < b ? a : b;
	return least < c ? least : c;
}

/* Levenshtein's distance of two short names. */
static unsigned distance(const char *a, const char *b)
{
	enum { MAX = 40 };
	unsigned row[MAX + 1];
	size_t n = strlen(b);
	if (n > MAX || strlen(a) > MAX)
		return MAX;
	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned diagonal = row[0];
		row[0] = i;
		for (unsigned j = 1; j <= n; j++) {
			unsigned above = row[j];
			row[j] = least_of_three(
				above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[n];
}

const char *nearest_name(const char *given, const char *const *names, size_t n)
{
	const char *nearest = NULL;
	unsigned best = 3;
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(given);
		unsigned d = len >= 3 && strncmp(names[i], given, len) == 0
				     ? 0
				     : distance(given, names[i]);
		if (d < best && d < strlen(names[i])) {
			best = d;
			nearest = names[i];
		}
	}
	return nearest;
}
