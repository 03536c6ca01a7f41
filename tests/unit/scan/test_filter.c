#include "../check.h"
#include "scan/filter/filter.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define RULES_MAX 4

/* Rules as on a command line: "+pattern" includes, "-pattern" excludes. */
static struct filter *make_filter(const char *const rules[RULES_MAX])
{
	struct filter *filter;
	if (!CHECK_INT(filter_new(&filter), 0))
		return NULL;
	for (size_t i = 0; i < RULES_MAX && rules[i]; i++)
		CHECK_INT(filter_add(filter, rules[i][0] == '+' ? FILTER_INCLUDE : FILTER_EXCLUDE,
				  rules[i] + 1),
			0);
	return filter;
}

static void test_files(void)
{
	static const struct {
		const char *rules[RULES_MAX];
		const char *path;
		bool want;
	} rows[] = {
		{{NULL}, "a", true},
		/* base names anywhere */
		{{"-*.tmp"}, "a.tmp", false},
		{{"-*.tmp"}, "x/y/a.tmp", false},
		{{"-*.tmp"}, "a.tmp.log", true},
		{{"-*.tmp"}, "a.tmp/log", false},
		{{"-a"}, "a", false},
		{{"-a"}, "b/a", false},
		{{"-a"}, "a/b", false},
		{{"-a"}, "x/a/b/c", false},
		{{"-a"}, "x/ab/c", true},
		{{"-a?c"}, "abc", false},
		{{"-a?c"}, "ac", true},
		{{"-a?c"},
			"a\xc3\xa4"
			"c",
			false},
		{{"-a?c"},
			"a\xff"
			"c",
			false},
		/* A surrogate is no character, so each of its bytes is one. */
		{{"-a?c"},
			"a\xed\xa0\x80"
			"c",
			true},
		{{"-*"}, "x/y", false},
		{{"-**"}, "x/y", false},
		{{"-.*"}, "x/.hidden", false},
		{{"-.*"}, "x/a.b", true},
		/* a leading slash anchors */
		{{"-/a"}, "a", false},
		{{"-/a"}, "b/a", true},
		{{"-/a"}, "a/b/c", false},
		{{"-/a"}, "b/a/c", true},
		{{"-/*"}, "a", false},
		{{"-/*"}, "a/b", false},
		{{"-/**"}, "a/b", false},
		{{"-/a/*.log"}, "a/x.log", false},
		{{"-/a/*.log"}, "a/b/x.log", true},
		{{"-/a/**.log"}, "a/b/x.log", false},
		{{"-/a/*.log"}, "b/a/x.log", true},
		/* another slash: the whole path or its tail */
		{{"-a/b"}, "a/b", false},
		{{"-a/b"}, "x/a/b", false},
		{{"-a/b"}, "xa/b", true},
		{{"-a/b"}, "a/b/c", false},
		{{"-a/b"}, "x/a/b/c/d", false},
		{{"-priv/*"}, "priv/deep/er/k", false},
		{{"-priv/*"}, "priv", true},
		{{"-priv/*"}, "private/k", true},
		{{"-a/?/c"}, "a/b/c", false},
		{{"-a?b/c"}, "a/b/c", true},
		/* two stars cross */
		{{"-a/**"}, "a/b/c", false},
		{{"-a/**"}, "x/a/b", false},
		{{"-a/**"}, "ab/c", true},
		{{"-a/**"}, "a", true},
		{{"-a/**/z"}, "a/z", false},
		{{"-a/**/z"}, "a/b/c/z", false},
		{{"-a/**/z"}, "a/bz", true},
		{{"-**/z"}, "z", false},
		{{"-**/z"}, "a/b/z", false},
		{{"-a**z"}, "x/abz", false},
		{{"-/a**z"}, "a/b/z", false},
		{{"-/**/b*/c"}, "a/bx/d/by/c", false},
		/* a trailing slash: a directory with all that is in it */
		{{"-a/"}, "a", true},
		{{"-a/"}, "a/b", false},
		{{"-a/"}, "x/a/b/c", false},
		{{"-/a/"}, "x/a/b", true},
		{{"-/a/"}, "a/b/c", false},
		{{"-a/b/"}, "x/a/b/c", false},
		{{"-a/b/"}, "a/b", true},
		{{"-*.d/"}, "x/init.d/s", false},
		{{"-.*/"}, ".git/config", false},
		{{"-.*/"}, ".profile", true},
		{{"-**/"}, "a/b", false},
		{{"-**/"}, "a", true},
		/* classes and escapes */
		{{"-[abc]"}, "b", false},
		{{"-[a-c]x"}, "cx", false},
		{{"-[a-c]x"}, "dx", true},
		{{"-[!a-c]x"}, "dx", false},
		{{"-[!a-c]x"}, "ax", true},
		{{"-[]]"}, "]", false},
		{{"-[!]]"}, "]", true},
		{{"-[a-]"}, "-", false},
		{{"-[\\]]"}, "]", false},
		{{"-[\xc3\xa0-\xc3\xb6]"}, "\xc3\xa4", false},
		{{"-/a[/]b"}, "a/b", true},
		{{"-/a[!x]b"}, "a/b", true},
		{{"-\\*"}, "*", false},
		{{"-\\*"}, "a", true},
		{{"-\\[a]"}, "[a]", false},
		{{"-a\\"}, "a\\", false},
		{{"-\\\\"}, "\\", false},
		/* the last match wins */
		{{"-*.log", "+keep.log"}, "x/keep.log", true},
		{{"-*.log", "+keep.log"}, "x/other.log", false},
		{{"-*.log", "+keep.log", "-/x/"}, "x/keep.log", false},
		{{"-logs/", "+/logs/keep"}, "logs/keep", true},
		{{"-logs/", "+/logs/keep"}, "logs/lose", false},
		{{"-logs", "+/logs/keep"}, "logs/keep/it", true},
		{{"-logs", "+/logs/keep", "-*.tmp"}, "logs/keep/it.tmp", false},
		{{"-logs", "+/logs/keep", "-*.tmp"}, "logs/keep/old.tmp/it", false},
		{{"-*", "+keep"}, "a/keep/b", true},
		{{"-*", "+keep"}, "a/keeper/b", false},
		{{"-/*", "+/*/"}, "a/b", true},
		{{"-/*", "+/*/"}, "a", false},
		{{"+keep", "-keep/a"}, "keep/a/b", false},
		/* an include first: all else is excluded */
		{{"+*.log"}, "a.log", true},
		{{"+*.log"}, "a.txt", false},
		{{"+*.log", "-debug.log"}, "x/debug.log", false},
		{{"+*.log", "-debug.log"}, "x/info.log", true},
		{{"+/a/"}, "a/b/c", true},
		{{"+/a/"}, "b", false},
		{{"+a"}, "x/a/b/c", true},
		{{"+a", "+b/c"}, "x/b/c/d", true},
		/* stars that would take a naive matcher for ever */
		{{"-*a*a*a*a*a*a*a*a*b"}, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			true},
		{{"-/**a/**a/**a/**a/**b"}, "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a", true},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct filter *filter = make_filter(rows[i].rules);
		if (!CHECK_INT(filter_wants_file(filter, rows[i].path), rows[i].want))
			fprintf(stderr, "\trow %zu: %s %s\n", i, rows[i].rules[0], rows[i].path);
		filter_free(filter);
	}
}

static void test_prunes(void)
{
	static const struct {
		const char *rules[RULES_MAX];
		const char *directory;
		bool want;
	} rows[] = {
		{{NULL}, "a", false},
		{{"-a/"}, "a", true},
		{{"-a/"}, "x/a", true},
		{{"-a/"}, "b", false},
		{{"-/a/"}, "x/a", false},
		{{"-a/**"}, "a", true},
		{{"-a/*"}, "a", false},
		{{"-*"}, "a", true},
		{{"-**"}, "a", true},
		{{"-/**"}, "a", true},
		{{"-/*"}, "a", true},
		{{"-*.log"}, "a.log", true},
		{{"-*.log"}, "a.log/b", true},
		{{"-*.log"}, "a", false},
		{{"-a"}, "a", true},
		{{"-a/*"}, "a/b", true},
		{{"-a/b"}, "x/a/b", true},
		{{"-*.log", "+b"}, "a.log", false},
		{{"-*.log", "+b", "-*"}, "a.log", true},
		{{"+a"}, "a", false},
		{{"+a"}, "a/b", false},
		{{"+/a"}, "a/b", false},
		{{"+/a"}, "b", true},
		{{"+a", "-b"}, "a/b", true},
		{{"-a/", "+keep"}, "a", false},
		{{"-a/", "+/a/keep"}, "a", false},
		{{"-a/", "+/b/keep"}, "a", true},
		{{"-a/", "+b/keep"}, "a", false},
		{{"-a/", "+/a/", "-a/"}, "a", true},
		{{"+/a/"}, "a", false},
		{{"+/a/"}, "a/b/c", false},
		{{"+/a/"}, "b", true},
		{{"+/a/b/*.log"}, "a", false},
		{{"+/a/b/*.log"}, "a/b", false},
		{{"+/a/b/*.log"}, "a/c", true},
		{{"+*.log"}, "a", false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct filter *filter = make_filter(rows[i].rules);
		if (!CHECK_INT(filter_prunes(filter, rows[i].directory), rows[i].want))
			fprintf(stderr, "\trow %zu: %s %s\n", i, rows[i].rules[0],
				rows[i].directory);
		filter_free(filter);
	}
}

static void test_malformed(void)
{
	static const char *const patterns[] = {
		"", "/", "//", "[", "a[", "a[]", "[!]", "x/[a-", "[a\\]", "[!"};
	struct filter *filter = make_filter((const char *const[RULES_MAX]){NULL});
	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
		if (!CHECK_INT(filter_add(filter, FILTER_INCLUDE, patterns[i]), -EINVAL))
			fprintf(stderr, "\t%s\n", patterns[i]);
	CHECK(filter_wants_file(filter, "a"));
	CHECK(filter_wants_file(NULL, "a") && !filter_prunes(NULL, "a"));
	filter_free(filter);
	filter_free(NULL);
}

/* What glob_matches() promises, by trying everything. */
static bool tries_all(const char *start, const char *p, const char *s)
{
	if (*p == '\0')
		return *s == '\0';
	if (*p != '*') {
		bool same = *s != '\0' && (*p == '?' ? *s != '/' : *p == *s);
		return same && tries_all(start, p + 1, s + 1);
	}
	const char *behind = p + strspn(p, "*");
	bool crosses = behind - p > 1;
	bool components = crosses && (p == start || p[-1] == '/') && *behind == '/';
	for (const char *t = s;; t++) {
		bool here = !components || t == s || t[-1] == '/';
		if (here && tries_all(start, behind + components, t))
			return true;
		if (*t == '\0' || (*t == '/' && !crosses))
			return false;
	}
}

static uint32_t random_state = 1;

static void random_string(const char *alphabet, size_t max, char *ret)
{
	size_t n = 0;
	do {
		random_state = random_state * 1664525U + 1013904223U;
		ret[n++] = alphabet[(random_state >> 16) % strlen(alphabet)];
	} while (n < max && (random_state >> 28) != 0);
	ret[n] = '\0';
}

static void test_against_reference(void)
{
	size_t matched = 0;
	for (int i = 0; i < 200000; i++) {
		char pattern[16], path[12];
		random_string("ab/**?", 10, pattern);
		random_string("aab/", 9, path);
		bool want = tries_all(pattern, pattern, path);
		matched += want;
		if (!CHECK_INT(glob_matches(pattern, path), want))
			fprintf(stderr, "\t%s %s\n", pattern, path);
	}
	CHECK(matched > 1000);
}

/* filter_wants_file() as a walk asks it: folder by folder. */
static bool wants_by_steps(struct filter *filter, const char *path)
{
	char folder[32];
	size_t rule = 0;
	for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
		snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
		rule = filter_enter(filter, folder, rule);
	}
	return filter_wants_file_in(filter, path, rule);
}

/* Whether the pattern alone matches a file at this path. */
static bool matches_file(const char *pattern, const char *path)
{
	struct filter *filter = make_filter((const char *const[RULES_MAX]){NULL});
	const bool matches =
		filter_add(filter, FILTER_INCLUDE, pattern) == 0 && filter_wants_file(filter, path);
	filter_free(filter);
	return matches;
}

/* A pattern that matches a folder's name matches all files in the folder. */
static void test_matches_what_is_in_a_folder(void)
{
	size_t matched = 0;
	for (int i = 0; i < 100000; i++) {
		char pattern[12], folder[8], path[20], name[8];
		random_string("ab/*?", 6, pattern);
		random_string("aab/", 5, folder);
		random_string("ab", 3, name);
		snprintf(path, sizeof path, "%s/%s", folder, name);
		if (folder[0] == '/' || !matches_file(pattern, folder))
			continue;
		matched++;
		if (!CHECK(matches_file(pattern, path)))
			fprintf(stderr, "\t%s %s\n", pattern, path);
	}
	CHECK(matched > 1000);
}

static void test_prunes_nothing_wanted(void)
{
	size_t pruned = 0;
	for (int i = 0; i < 100000; i++) {
		char patterns[3][12], rules[3][16], directory[8], path[32], name[8];
		struct filter *filter;
		CHECK_INT(filter_new(&filter), 0);
		for (int k = 0; k < 3; k++) {
			random_string("ab/**", 6, patterns[k]);
			random_string("+-", 1, rules[k]);
			int r = filter_add(filter,
				rules[k][0] == '+' ? FILTER_INCLUDE : FILTER_EXCLUDE, patterns[k]);
			CHECK(r == 0 || r == -EINVAL);
		}
		random_string("ab", 2, directory);
		random_string("ab/ab", 5, name);
		snprintf(path, sizeof path, "%s/%s", directory, name);
		const bool wants = filter_wants_file(filter, path);
		CHECK_INT(wants_by_steps(filter, path), wants);
		if (filter_prunes(filter, directory)) {
			pruned++;
			if (!CHECK(!wants))
				fprintf(stderr, "\t%c%s %c%s %c%s %s\n", rules[0][0], patterns[0],
					rules[1][0], patterns[1], rules[2][0], patterns[2], path);
		}
		filter_free(filter);
	}
	CHECK(pruned > 1000);
}

/* A file of patterns excludes: one pattern a line, without the blanks around it. */
static void test_files_of_patterns(void)
{
	static const struct {
		const char *content;
		size_t n;            /* bytes of it; 0: it is a text */
		const char *problem; /* behind the file's name; NULL: "a" and "b c" are excluded */
	} rows[] = {
		{"a\nb c\n", 0, NULL},
		{"a\nb c", 0, NULL},
		{"  a \t\r\n\n# d\n;d\n \t\nb c\r\n", 0, NULL},
		{"a\n!d\n", 0,
			":2: a line has a pattern alone, without ! or + or - before it: what is "
			"included has --include"},
		{"+ d\n", 0,
			":1: a line has a pattern alone, without ! or + or - before it: what is "
			"included has --include"},
		{"a\nb c\n- d\n", 0,
			":3: a line has a pattern alone, without ! or + or - before it: "
			"what is included has --include"},
		{"a\nb c\n[x\n", 0, ":3: the pattern is empty or has an unclosed ["},
		{"a\nb\0c\n", 6, ":2: there is a NUL byte in it"},
		{"a\nb c\n\0", 7, ":3: there is a NUL byte in it"},
	};
	char path[] = "/tmp/patterns-XXXXXX";
	const int fd = mkstemp(path);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct filter *filter = make_filter((const char *const[RULES_MAX]){NULL});
		const size_t n = rows[i].n ? rows[i].n : strlen(rows[i].content);
		struct problem problem = {.text = ""};
		char want[300] = "";
		CHECK_INT(ftruncate(fd, 0), 0);
		CHECK_INT(pwrite(fd, rows[i].content, n, 0), (int64_t)n);
		const struct s3once_rule rule = {S3ONCE_RULE_EXCLUDE_FROM, path};
		if (rows[i].problem)
			snprintf(want, sizeof want, "%s%s", path, rows[i].problem);
		bool good = CHECK_INT(filter_add_rule(filter, &rule, &problem),
				    rows[i].problem ? -EINVAL : 0) &&
			    CHECK_STRING(problem.text, want);
		if (!rows[i].problem)
			good &= CHECK(!filter_wants_file(filter, "x/a") &&
				      !filter_wants_file(filter, "b c") &&
				      filter_wants_file(filter, "d"));
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
		filter_free(filter);
	}
	close(fd);
	unlink(path);
	struct filter *filter = make_filter((const char *const[RULES_MAX]){NULL});
	struct problem problem;
	CHECK_INT(filter_add_rule(
			  filter, &(struct s3once_rule){S3ONCE_RULE_EXCLUDE_FROM, path}, &problem),
		-EINVAL);
	CHECK(strstr(problem.text, " cannot be read: ") != NULL);
	CHECK_INT(
		filter_add_rule(filter, &(struct s3once_rule){S3ONCE_RULE_INCLUDE, "[x"}, &problem),
		-EINVAL);
	CHECK_STRING(problem.text, "the pattern \"[x\" is empty or has an unclosed [");
	filter_free(filter);
}

/* Each rule notes that it has matched, also where a later one decides. */
static void test_matched_patterns(void)
{
	static const struct {
		const char *path; /* with a '/' at its end, a directory that may be pruned */
		bool matched[3];
	} rows[] = {{"x", {false, false, false}}, {"a.log", {true, false, false}},
		{"keep.log", {true, true, false}}, {"d/", {false, false, true}},
		{"d/keep.log", {true, true, true}}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct filter *filter =
			make_filter((const char *const[RULES_MAX]){"-*.log", "+keep.log", "-d/"});
		char path[20];
		const size_t n = strlen(rows[i].path);
		snprintf(path, sizeof path, "%s", rows[i].path);
		if (path[n - 1] == '/') {
			path[n - 1] = '\0';
			CHECK(filter_prunes(filter, path));
		} else {
			filter_wants_file(filter, path);
		}
		for (size_t k = 0; k < 3; k++)
			if (!CHECK_INT(filter_has_matched(filter, k), rows[i].matched[k]))
				fprintf(stderr, "\trule %zu and %s\n", k, rows[i].path);
		filter_free(filter);
	}
}

int main(void)
{
	test_files();
	test_prunes();
	test_malformed();
	test_files_of_patterns();
	test_matched_patterns();
	test_against_reference();
	test_matches_what_is_in_a_folder();
	test_prunes_nothing_wanted();
	return check_result();
}
