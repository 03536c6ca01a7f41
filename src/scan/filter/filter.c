#include "scan/filter/filter.h"
#include "scan/filter/glob.h"
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rule {
	bool include;
	bool directory; /* matches a directory and so all that is in it */
	bool base_name; /* the pattern is for the last component only */
	bool has_matched;
	char *pattern; /* for glob_matches against the base name or the whole path */
};

struct filter {
	struct rule *rules;
	size_t n;
};

int filter_new(struct filter **ret)
{
	struct filter *filter = calloc(1, sizeof *filter);
	if (!filter)
		return -ENOMEM;
	*ret = filter;
	return 0;
}

void filter_free(struct filter *filter)
{
	if (!filter)
		return;
	for (size_t i = 0; i < filter->n; i++)
		free(filter->rules[i].pattern);
	free(filter->rules);
	free(filter);
}

/* Brings the pattern into the form of struct rule: "x/" and its equal "x/" + "**" become a
 * directory rule x; one that matches the tail of a path gets a leading component "**". */
static int rule_init(struct rule *rule, bool include, const char *pattern)
{
	bool anchored = pattern[0] == '/';
	const char *body = pattern + anchored;
	size_t len = strlen(body);
	bool directory = false;
	if (len > 3 && strcmp(body + len - 3, "/**") == 0) {
		directory = true;
		len -= 3;
	} else if (len > 0 && body[len - 1] == '/') {
		directory = true;
		len--;
	}
	if (len == 0)
		return -EINVAL;
	bool inner_slash = memchr(body, '/', len) != NULL;
	bool base_name = !anchored && !inner_slash;
	const char *lead = !anchored && inner_slash ? "**/" : "";
	*rule = (struct rule){include, directory, base_name, false, NULL};
	if (asprintf(&rule->pattern, "%s%.*s", lead, (int)len, body) < 0)
		return -ENOMEM;
	return 0;
}

int filter_add(struct filter *filter, bool include, const char *pattern)
{
	if (!glob_valid(pattern))
		return -EINVAL;
	struct rule *rules = realloc(filter->rules, (filter->n + 1) * sizeof *rules);
	if (!rules)
		return -ENOMEM;
	filter->rules = rules;
	int r = rule_init(&rules[filter->n], include, pattern);
	filter->n += r == 0;
	return r;
}

static bool matches_path(const struct rule *rule, const char *path)
{
	const char *slash = rule->base_name ? strrchr(path, '/') : NULL;
	return glob_matches(rule->pattern, slash ? slash + 1 : path);
}

/* Whether the directory rule matches one of the directories that the first len bytes of path lie
 * in, or are. */
static bool matches_directory(const struct rule *rule, const char *path, size_t len)
{
	char directory[PATH_MAX];
	if (len >= sizeof directory)
		len = sizeof directory - 1;
	memcpy(directory, path, len);
	directory[len] = '\0';
	for (;;) {
		if (matches_path(rule, directory))
			return true;
		char *slash = strrchr(directory, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
}

static bool matches_file(const struct rule *rule, const char *path)
{
	if (!rule->directory)
		return matches_path(rule, path);
	const char *slash = strrchr(path, '/');
	return slash && matches_directory(rule, path, (size_t)(slash - path));
}

/* Rules before the one that decides are tried until they match for the first time. */
bool filter_wants_file(struct filter *filter, const char *relative)
{
	if (!filter || filter->n == 0)
		return true;
	bool is_decided = false, wants = !filter->rules[0].include;
	for (size_t i = filter->n; i-- > 0;) {
		struct rule *rule = &filter->rules[i];
		if ((is_decided && rule->has_matched) || !matches_file(rule, relative))
			continue;
		rule->has_matched = true;
		wants = is_decided ? wants : rule->include;
		is_decided = true;
	}
	return wants;
}

bool filter_has_matched(const struct filter *filter, size_t i)
{
	return filter->rules[i].has_matched;
}

/* Whether the rule matches every file below the directory. */
static bool covers(const struct rule *rule, const char *directory)
{
	if (rule->directory)
		return matches_directory(rule, directory, strlen(directory));
	return strcmp(rule->pattern, "**") == 0 ||
	       (rule->base_name && strcmp(rule->pattern, "*") == 0);
}

static bool may_match_below(const struct rule *rule, const char *directory)
{
	return rule->base_name || covers(rule, directory) ||
	       glob_may_match_below(rule->pattern, directory);
}

bool filter_prunes(struct filter *filter, const char *relative_directory)
{
	if (!filter || filter->n == 0)
		return false;
	for (size_t i = filter->n; i-- > 0;) {
		struct rule *rule = &filter->rules[i];
		if (rule->include && may_match_below(rule, relative_directory))
			return false;
		if (!rule->include && covers(rule, relative_directory))
			return rule->has_matched = true;
	}
	return filter->rules[0].include;
}
