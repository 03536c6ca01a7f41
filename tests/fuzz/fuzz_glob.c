/* Patterns against a naive matcher. The first line is the pattern, all others are paths. */
#include "fuzz.h"
#include "scan/filter/filter.h"
#include <limits.h>

/* The sets that ASCII needs; the matcher's characters are code points. */
static bool is_plain(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s >= 0x80)
			return false;
	return true;
}

static char unquoted(const char **p)
{
	*p += **p == '\\' && (*p)[1];
	return *(*p)++;
}

static bool in_class(const char **p, char c)
{
	bool negated = *++*p == '!', found = false;
	*p += negated;
	for (bool first = true; **p != ']' || first; first = false) {
		char low = unquoted(p), high = low;
		if (**p == '-' && (*p)[1] != ']' && (*p)[1]) {
			++*p;
			high = unquoted(p);
		}
		found = found || (low <= c && c <= high);
	}
	++*p;
	return found != negated && c != '/';
}

/* By its definition, trying everything; steps bounds how much. */
static bool naive(const char *start, const char *p, const char *s, unsigned *steps)
{
	if (*steps == 0 || --*steps == 0)
		return false;
	if (*p == '*') {
		const char *rest = p + strspn(p, "*");
		bool crosses = p[1] == '*';
		if (crosses && (p == start || p[-1] == '/') && *rest == '/') {
			for (const char *at = s, *slash; at; at = slash ? slash + 1 : NULL) {
				if (naive(start, rest + 1, at, steps))
					return true;
				slash = strchr(at, '/');
			}
			return false;
		}
		for (const char *at = s;; at++) {
			if (naive(start, rest, at, steps))
				return true;
			if (!*at || (*at == '/' && !crosses))
				return false;
		}
	}
	if (!*p || !*s)
		return *p == *s;
	bool same = *p == '?' ? p++, *s != '/' : *p == '[' ? in_class(&p, *s) : unquoted(&p) == *s;
	return same && naive(start, p, s + 1, steps);
}

static void match(const char *pattern, const char *path)
{
	unsigned steps = 20000;
	if (!glob_valid(pattern))
		return;
	bool matches = glob_matches(pattern, path);
	if (is_plain(pattern) && is_plain(path)) {
		bool expected = naive(pattern, pattern, path, &steps);
		ENSURE(steps == 0 || matches == expected);
	}
	char directory[PATH_MAX];
	for (const char *slash = path; matches && (slash = strchr(slash, '/')); slash++) {
		snprintf(directory, sizeof directory, "%.*s", (int)(slash - path), path);
		ENSURE(glob_may_match_below(pattern, directory));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 2000)
		return 0;
	char *text = fuzz_string(data, size), *lines = text;
	const char *pattern = strsep(&lines, "\n");
	for (const char *path; (path = strsep(&lines, "\n"));)
		match(pattern, path);
	free(text);
	return 0;
}
