#include "scan/filter/glob.h"
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* One character; a byte that begins no UTF-8 sequence stands for itself, above all code points. */
static uint32_t next_character(const char **s)
{
	const unsigned char *c = (const unsigned char *)*s;
	size_t more = c[0] < 0xC2 ? 0 : c[0] < 0xE0 ? 1 : c[0] < 0xF0 ? 2 : c[0] < 0xF5 ? 3 : 0;
	uint32_t code = more ? c[0] & (0x3FU >> more) : c[0];
	for (size_t i = 1; i <= more; i++) {
		if ((c[i] & 0xC0) != 0x80) {
			more = 0;
			break;
		}
		code = code << 6 | (c[i] & 0x3FU);
	}
	*s += 1 + more;
	return more || c[0] < 0x80 ? code : 0x110000U + c[0];
}

static uint32_t next_in_class(const char **p)
{
	if (**p == '\\' && (*p)[1] != '\0')
		++*p;
	return next_character(p);
}

/* p is behind the '['. Returns what follows the ']', or NULL if there is none. */
static const char *class_contains(const char *p, uint32_t c, bool *ret_contains)
{
	bool negated = *p == '!';
	bool found = false;
	p += negated;
	for (const char *first = p; *p != ']' || p == first;) {
		if (*p == '\0')
			return NULL;
		uint32_t low = next_in_class(&p);
		uint32_t high = low;
		if (p[0] == '-' && p[1] != ']' && p[1] != '\0') {
			p++;
			high = next_in_class(&p);
		}
		found |= low <= c && c <= high;
	}
	*ret_contains = found != negated;
	return p + 1;
}

bool glob_valid(const char *pattern)
{
	for (const char *p = pattern; *p != '\0';) {
		bool ignored;
		if (*p == '\\' && p[1] != '\0')
			p += 2;
		else if (*p != '[')
			p++;
		else if (!(p = class_contains(p + 1, 0, &ignored)))
			return false;
	}
	return true;
}

/* Matches one item of the pattern that is not a star against one character, and moves both. */
static bool match_one(const char **pattern, const char **path)
{
	const char *p = *pattern;
	const char *s = *path;
	uint32_t c = next_character(&s);
	bool same = false;
	if (*p == '?') {
		same = c != '/';
		p++;
	} else if (*p == '[') {
		p = class_contains(p + 1, c, &same);
		same = same && c != '/';
	} else {
		same = next_in_class(&p) == c;
	}
	if (!same)
		return false;
	*pattern = p;
	*path = s;
	return true;
}

/* Where to go on after a mismatch: the pattern behind a star, and the path that the star has not
 * yet taken. */
struct retry {
	const char *pattern, *path;
	bool whole_components; /* of a component "**": it takes whole components only */
};

/* Lets the star take one more character (or component). False if it cannot. */
static bool retry_take_more(struct retry *retry, bool crosses)
{
	if (!retry->pattern || *retry->path == '\0')
		return false;
	if (retry->whole_components) {
		const char *slash = strchr(retry->path, '/');
		if (!slash)
			return false;
		retry->path = slash + 1;
		return true;
	}
	if (*retry->path == '/' && !crosses)
		return false;
	next_character(&retry->path);
	return true;
}

/* Two places to retry from are enough: what an earlier star could take instead, a later one of the
 * same kind can take as well, and '**' can take what '*' can. With prefix: whether a path that goes
 * on behind this one may match. */
static bool match(const char *pattern, const char *path, bool prefix)
{
	struct retry star = {0}, star_star = {0};
	const char *start = pattern;
	const char *p = pattern;
	const char *s = path;
	for (;;) {
		if (prefix && *s == '\0')
			return true;
		if (*p == '*') {
			bool crosses = p[1] == '*';
			bool component = crosses && (p == start || p[-1] == '/');
			while (*p == '*')
				p++;
			bool whole = component && *p == '/';
			struct retry here = {p + whole, s, whole};
			if (crosses) {
				star_star = here;
				star = (struct retry){0};
			} else {
				star = here;
			}
			p = here.pattern;
			continue;
		}
		if (*p == '\0' && *s == '\0')
			return true;
		if (*p != '\0' && *s != '\0' && match_one(&p, &s))
			continue;
		if (retry_take_more(&star, false)) {
			p = star.pattern;
			s = star.path;
		} else if (retry_take_more(&star_star, true)) {
			p = star_star.pattern;
			s = star_star.path;
			star = (struct retry){0};
		} else {
			return false;
		}
	}
}

bool glob_matches(const char *pattern, const char *path)
{
	return match(pattern, path, false);
}

bool glob_may_match_below(const char *pattern, const char *directory)
{
	char path[PATH_MAX + 1];
	size_t len = strlen(directory);
	if (len == 0 || len >= PATH_MAX)
		return true;
	memcpy(path, directory, len);
	path[len] = '/';
	path[len + 1] = '\0';
	return match(pattern, path, true);
}
