/* --exclude and --include: the last rule that matches decides, as if each were alone; a rule that
 * matches a folder matches what is in it; and a folder that is pruned holds nothing that is wanted.
 * Lines: "+PATTERN" and "-PATTERN" are rules, all others paths. The same bytes are also a file of
 * patterns. */
#include "fuzz.h"
#include "scan/filter/filter.h"
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#define RULES_MAX 64

struct rules {
	struct filter *all;
	struct filter *alone[RULES_MAX]; /* each as an include: it wants what the rule matches */
	bool include[RULES_MAX];
	size_t n;
};

static void add(struct rules *rules, bool include, const char *pattern)
{
	int error = filter_add(rules->all, include ? FILTER_INCLUDE : FILTER_EXCLUDE, pattern);
	const char *body = pattern + (*pattern == '/');
	bool empty = !*body || strcmp(body, "/") == 0;
	ENSURE(error == (glob_valid(pattern) && !empty ? 0 : -EINVAL));
	if (error)
		return;
	rules->include[rules->n] = include;
	ENSURE(filter_new(&rules->alone[rules->n]) == 0);
	ENSURE(filter_add(rules->alone[rules->n++], FILTER_INCLUDE, pattern) == 0);
}

static bool expected(const struct rules *rules, const char *path)
{
	for (size_t i = rules->n; i-- > 0;)
		if (filter_wants_file(rules->alone[i], path))
			return rules->include[i];
	return rules->n == 0 || !rules->include[0];
}

/* Asks about a path, and about each folder above it as a walk does. */
static void ask(const struct rules *rules, const char *path)
{
	char folder[PATH_MAX];
	const bool wanted = filter_wants_file(rules->all, path);
	size_t rule = 0;
	ENSURE(wanted == expected(rules, path));
	for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
		snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
		for (size_t i = 0; i < rules->n; i++)
			ENSURE(!filter_wants_file(rules->alone[i], folder) ||
				filter_wants_file(rules->alone[i], path));
		rule = filter_enter(rules->all, folder, rule);
		const bool prunes = filter_prunes(rules->all, folder);
		ENSURE(prunes == filter_prunes_entered(rules->all, folder, rule));
		ENSURE(!wanted || !prunes);
	}
	ENSURE(wanted == filter_wants_file_in(rules->all, path, rule));
}

/* The bytes as a file of patterns: they are added, or the sentence says what is wrong with them. */
static void add_as_file(const uint8_t *data, size_t size)
{
	struct filter *filter;
	struct problem problem = {0};
	char path[] = "/tmp/fuzz_filter.XXXXXX";
	const int fd = mkstemp(path);
	ENSURE(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
	ENSURE(filter_new(&filter) == 0);
	const struct s3once_rule rule = {.kind = S3ONCE_RULE_EXCLUDE_FROM, .pattern = path};
	const int error = filter_add_rule(filter, &rule, &problem);
	ENSURE((error == 0 || error == -EINVAL) && !error == !problem.text[0]);
	if (error == 0)
		ENSURE(filter_wants_file(filter, "a/b") || filter_has_matched(filter, 0));
	filter_free(filter);
	unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 2000)
		return 0;
	add_as_file(data, size);
	char *text = fuzz_string(data, size), *lines = text;
	struct rules rules = {0};
	ENSURE(filter_new(&rules.all) == 0);
	for (char *line; (line = strsep(&lines, "\n"));)
		if ((*line == '+' || *line == '-') && rules.n < RULES_MAX)
			add(&rules, *line == '+', line + 1);
		else if (*line && *line != '/')
			ask(&rules, line);
	for (size_t i = 0; i < rules.n; i++)
		filter_free(rules.alone[i]);
	filter_free(rules.all);
	free(text);
	return 0;
}
