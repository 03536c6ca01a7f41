#include "scan/names.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void names_clear(struct names *names)
{
	free(names->bytes);
	free(names->at);
	*names = (struct names){0};
}

static int reserve_names(struct names *names, size_t more)
{
	if (names->len + more > UINT32_MAX)
		return -EOVERFLOW;
	if (names->len + more > names->cap) {
		size_t cap = 2 * (names->len + more) + 512;
		char *bytes = realloc(names->bytes, cap);
		if (!bytes)
			return -ENOMEM;
		names->bytes = bytes;
		names->cap = cap;
	}
	if (names->n == names->at_cap) {
		size_t cap = 2 * names->at_cap + 16;
		uint32_t *at = realloc(names->at, cap * sizeof *at);
		if (!at)
			return -ENOMEM;
		names->at = at;
		names->at_cap = cap;
	}
	return 0;
}

int names_add(struct names *names, char tag, const char *name, size_t len)
{
	int r = reserve_names(names, len + 2);
	if (r < 0)
		return r;
	names->at[names->n++] = (uint32_t)names->len;
	char *to = names->bytes + names->len;
	to[0] = tag;
	memcpy(to + 1, name, len);
	to[len + 1] = '\0';
	names->len += len + 2;
	return 0;
}

/* What stands at the end of a name when keys are compared: the NUL of a file is below every byte,
 * the '/' of a directory is where its contents go on. */
static int byte_at(const char *tagged, size_t i)
{
	unsigned char c = (unsigned char)tagged[1 + i];
	return c == '\0' && tagged[0] == NAMES_DIRECTORY ? '/' : c;
}

static int compare_names(const void *a, const void *b, void *bytes)
{
	const char *x = (const char *)bytes + *(const uint32_t *)a;
	const char *y = (const char *)bytes + *(const uint32_t *)b;
	size_t i = 1;
	while (x[i] != '\0' && x[i] == y[i])
		i++;
	return byte_at(x, i - 1) - byte_at(y, i - 1);
}

void names_sort(struct names *names)
{
	if (names->n > 1)
		qsort_r(names->at, names->n, sizeof *names->at, compare_names, names->bytes);
}

void names_unique(struct names *names)
{
	size_t kept = 0;
	for (size_t i = 0; i < names->n; i++) {
		if (kept && strcmp(names_get(names, kept - 1), names_get(names, i)) == 0)
			continue;
		names->at[kept++] = names->at[i];
	}
	names->n = kept;
}

const char *names_get(const struct names *names, size_t i)
{
	return names->bytes + names->at[i] + 1;
}

char names_tag(const struct names *names, size_t i)
{
	return names->bytes[names->at[i]];
}
