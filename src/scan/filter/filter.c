/* Patterns of names, and rules made of them in the order in which --exclude and --include were
 * given. The scan tests each name, and watch each folder. Paths are only strings here; no file is
 * touched. No pattern takes exponential time, whatever its stars. */
#include "scan/filter/filter.h"
#include "base/files.h"
#include "base/text.h"
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the next character, and moves *s past it. A byte that begins no UTF-8 sequence is a
 * character of its own, above all code points. The NUL at the end is a character, too. */
static uint32_t next_character(const char **s)
{
	uint32_t code;
	size_t bytes = utf8_next(*s, UTF8_BYTES_MAX, &code);
	if (!bytes) {
		code = 0x110000U + (unsigned char)**s;
		bytes = 1;
	}
	*s += bytes;
	return code;
}

/* Reads the next character of a pattern, in which a backslash takes the one after it as it is. */
static uint32_t next_in_pattern(const char **p)
{
	if (**p == '\\' && (*p)[1] != '\0')
		++*p;
	return next_character(p);
}

/* Finds out whether a class contains c. p points after the '[' of the class. Returns a pointer
 * after its ']', or NULL if there is no ']'. A ']' that comes first is a member of the class. */
static const char *match_class(const char *p, uint32_t c, bool *ret_contains)
{
	bool negated = *p == '!';
	bool found = false;
	p += negated;
	for (const char *first = p; *p != ']' || p == first;) {
		if (*p == '\0')
			return NULL;
		uint32_t low = next_in_pattern(&p);
		uint32_t high = low;
		const bool is_range = p[0] == '-' && p[1] != ']' && p[1] != '\0';
		if (is_range) {
			p++;
			high = next_in_pattern(&p);
		}
		found |= low <= c && c <= high;
	}
	*ret_contains = found != negated;
	return p + 1;
}

bool glob_valid(const char *pattern)
{
	const char *p = pattern;
	while (p && *p != '\0') {
		bool ignored;
		if (*p == '\\' && p[1] != '\0')
			p += 2;
		else
			p = *p == '[' ? match_class(p + 1, 0, &ignored) : p + 1;
	}
	return p != NULL; /* NULL: a class is not closed */
}

/* Matches one item of the pattern, which is no star, with one character of the path. If they match,
 * moves after both. */
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
		p = match_class(p + 1, c, &same);
		same = same && c != '/';
	} else {
		same = next_in_pattern(&p) == c;
	}
	if (!same)
		return false;
	*pattern = p;
	*path = s;
	return true;
}

/* The place to continue after a mismatch: the pattern after a star, and the rest of the path that
 * the star has not yet taken. */
struct retry {
	const char *pattern, *path;
	bool whole_components; /* the star is "**" between slashes: it takes whole components */
};

/* '*', which stops at a slash, and '**', which crosses it. */
enum star { SINGLE_STAR, DOUBLE_STAR, STARS };

/* Lets the star of this retry take one more character or component. Returns false if it cannot take
 * more, or if there is no star yet. */
static bool retry_take_more(struct retry *retry, enum star star)
{
	if (!retry->pattern || *retry->path == '\0')
		return false;
	if (retry->whole_components) {
		const char *slash = strchr(retry->path, '/');
		retry->path = slash ? slash + 1 : retry->path;
		return slash != NULL;
	}
	if (*retry->path == '/' && star == SINGLE_STAR)
		return false;
	next_character(&retry->path);
	return true;
}

/* Moves *p past the star that it points to, and returns its kind. Sets *ret to the place to
 * continue after a mismatch: the star has taken nothing yet. `s` is the rest of the path. */
static enum star pass_star(const char *pattern, const char **p, const char *s, struct retry *ret)
{
	const enum star star = (*p)[1] == '*' ? DOUBLE_STAR : SINGLE_STAR;
	const bool begins_component = *p == pattern || (*p)[-1] == '/';
	*p += strspn(*p, "*");
	const bool whole_components = star == DOUBLE_STAR && begins_component && **p == '/';
	/* "**" and the slash after it together may also match nothing. */
	*p += whole_components;
	*ret = (struct retry){*p, s, whole_components};
	return star;
}

enum extent { WHOLE_PATH, PREFIX_OF_PATH };

/* Whether the pattern matches the path or, with PREFIX_OF_PATH, may match some path that begins
 * with this one. After a mismatch only the last '*' and the last '**' are tried again, since a
 * later star can take whatever an earlier one of its kind could have taken. */
static bool match(const char *pattern, const char *path, enum extent extent)
{
	/* The last star of each kind; its .pattern is NULL if there was none yet. */
	struct retry last[STARS] = {0};
	const char *p = pattern, *s = path;
	for (;;) {
		if (*s == '\0' && extent == PREFIX_OF_PATH)
			return true; /* the rest may match a continuation of the path */
		if (*p == '*') {
			struct retry retry;
			const enum star star = pass_star(pattern, &p, s, &retry);
			/* A '*' before this star need not be tried again. */
			last[SINGLE_STAR] = (struct retry){0};
			last[star] = retry;
			continue;
		}
		if (*p == '\0' && *s == '\0')
			return true;
		if (*p != '\0' && *s != '\0' && match_one(&p, &s))
			continue;
		/* The '*' takes more. If it cannot, the '**' does, and the '*' is forgotten. */
		enum star star = SINGLE_STAR;
		if (!retry_take_more(&last[SINGLE_STAR], SINGLE_STAR)) {
			if (!retry_take_more(&last[DOUBLE_STAR], DOUBLE_STAR))
				return false;
			last[SINGLE_STAR] = (struct retry){0};
			star = DOUBLE_STAR;
		}
		p = last[star].pattern;
		s = last[star].path;
	}
}

bool glob_matches(const char *pattern, const char *path)
{
	return match(pattern, path, WHOLE_PATH);
}

bool glob_may_match_below(const char *pattern, const char *directory)
{
	char path[PATH_MAX + 1];
	size_t len = strlen(directory);
	/* Any path may be below the top. A path that is too long gets the safe answer. */
	if (len == 0 || len >= PATH_MAX)
		return true;
	memcpy(path, directory, len);
	path[len] = '/';
	path[len + 1] = '\0';
	return match(pattern, path, PREFIX_OF_PATH);
}

#define FILE_MAX_BYTES (16U << 20) /* the largest file of patterns */

struct rule {
	size_t added_by; /* number of the call of filter_add() or filter_add_rule(), from 0 */
	enum filter_effect effect;
	bool folders_only; /* does not match a file itself */
	bool base_name;    /* the pattern is for the last component only */
	bool has_matched;
	char *pattern; /* pattern for glob_matches(), for the base name or the whole path */
};

struct filter {
	struct rule *rules;
	size_t n, n_calls;
	bool has_left_out; /* a file, or a whole directory */
};

int filter_new(struct filter **ret)
{
	*ret = calloc(1, sizeof **ret);
	return *ret ? 0 : -ENOMEM;
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

/* Adds a rule to those of the present call. "x/", and "x/" followed by "**", become a rule for the
 * folder "x". A pattern that may match the tail of a path gets a component "**" in front. Returns
 * 0, -EINVAL for an invalid pattern, or -ENOMEM. */
static int add_pattern(struct filter *filter, enum filter_effect effect, const char *pattern)
{
	const bool is_anchored = pattern[0] == '/';
	const char *body = pattern + is_anchored;
	size_t len = strlen(body);
	const bool has_stars = len > 3 && strcmp(body + len - 3, "/**") == 0;
	const bool has_slash = len > 0 && body[len - 1] == '/';
	len -= has_stars ? strlen("/**") : has_slash ? strlen("/") : 0;
	if (len == 0 || !glob_valid(pattern))
		return -EINVAL;
	struct rule *rules = realloc(filter->rules, (filter->n + 1) * sizeof *rules);
	if (!rules)
		return -ENOMEM;
	filter->rules = rules;
	struct rule *rule = &rules[filter->n];
	const bool has_inner_slash = memchr(body, '/', len) != NULL;
	const bool may_match_tail = !is_anchored && has_inner_slash;
	*rule = (struct rule){.added_by = filter->n_calls,
		.effect = effect,
		.folders_only = has_stars || has_slash,
		.base_name = !is_anchored && !has_inner_slash};
	if (asprintf(&rule->pattern, "%s%.*s", may_match_tail ? "**/" : "", (int)len, body) < 0)
		return -ENOMEM;
	filter->n++;
	return 0;
}

int filter_add(struct filter *filter, enum filter_effect effect, const char *pattern)
{
	const int error = add_pattern(filter, effect, pattern);
	filter->n_calls += !error;
	return error;
}

/* Adds the pattern of a line, without the blanks around it, unless it is empty or a comment.
 * Returns the fault of the line, or NULL. *ret_error is 0, or -ENOMEM. */
static const char *add_line(struct filter *filter, char *line, int *ret_error)
{
	static const char blank[] = " \t\r\f\v";
	line += strspn(line, blank);
	size_t n = strlen(line);
	while (n && strchr(blank, line[n - 1]))
		line[--n] = '\0';
	if (!n || *line == '#' || *line == ';')
		return NULL;
	const bool is_of_git = *line == '!';
	const bool is_of_rsync = (*line == '+' || *line == '-') && strchr(blank, line[1]);
	if (is_of_git || is_of_rsync)
		return "a line has a pattern alone, without ! or + or - before it: what is "
		       "included has --include";
	const int error = add_pattern(filter, FILTER_EXCLUDE, line);
	*ret_error = error == -ENOMEM ? error : 0;
	return error == -EINVAL ? "the pattern is empty or has an unclosed [" : NULL;
}

/* Adds the patterns of a file. Returns 0, -ENOMEM, or -EINVAL with a sentence. */
static int add_file(struct filter *filter, const char *path, struct problem *ret_problem)
{
	struct text text = TEXT(FILE_MAX_BYTES);
	const char *fault = NULL;
	unsigned line_number = 0;
	int error = named_file_read(path, &text, NULL);
	if (error && error != -ENOMEM)
		error = problem_error(ret_problem, -EINVAL, "the patterns in %s cannot be read: %s",
			quote(path).text, named_file_error(error));
	/* strsep() takes a NUL byte for the end of the last line, and would skip the rest. */
	const char *end = text_string(&text) + text.len;
	char *line, *rest = text.data;
	rest += rest ? utf8_byte_order_mark(rest) : 0;
	while (!error && !fault && (line = strsep(&rest, "\n"))) {
		line_number++;
		const char *end_of_line = rest ? rest - 1 : end;
		const bool has_nul = line + strlen(line) != end_of_line;
		fault = has_nul ? "there is a NUL byte in it" : add_line(filter, line, &error);
	}
	if (fault)
		error = problem_error(
			ret_problem, -EINVAL, "%s:%u: %s", quote(path).text, line_number, fault);
	text_clear(&text);
	return error;
}

int filter_add_rule(
	struct filter *filter, const struct s3once_rule *rule, struct problem *ret_problem)
{
	int error;
	if (rule->kind == S3ONCE_RULE_EXCLUDE_FROM) {
		error = add_file(filter, rule->pattern, ret_problem);
		filter->n_calls += !error;
		return error;
	}
	error = filter_add(filter,
		rule->kind == S3ONCE_RULE_INCLUDE ? FILTER_INCLUDE : FILTER_EXCLUDE, rule->pattern);
	if (error == -EINVAL)
		problem_set(ret_problem, "the pattern \"%s\" is empty or has an unclosed [",
			quote(rule->pattern).text);
	return error;
}

enum path_kind { PATH_OF_FILE, PATH_OF_FOLDER };

/* Returns the number of the last rule that matches the path itself, or `above` if no later rule
 * does. Rules before the result are tried only until each has matched once, which is for
 * filter_has_matched(). */
static size_t last_match(struct filter *filter, const char *path, enum path_kind kind, size_t above)
{
	const char *name = path_name(path);
	size_t last = above;
	for (size_t number = filter->n; number > 0; number--) {
		struct rule *rule = &filter->rules[number - 1];
		const bool is_of_interest = number > last || !rule->has_matched;
		const bool applies = !rule->folders_only || kind == PATH_OF_FOLDER;
		if (!is_of_interest || !applies ||
			!glob_matches(rule->pattern, rule->base_name ? name : path))
			continue;
		rule->has_matched = true;
		last = number > last ? number : last;
	}
	return last;
}

size_t filter_enter(struct filter *filter, const char *folder, size_t above)
{
	return filter ? last_match(filter, folder, PATH_OF_FOLDER, above) : 0;
}

/* Returns filter_enter() for the folder that a path is in, beginning at the top. */
static size_t enter_folder_of(struct filter *filter, const char *path)
{
	char folder[PATH_MAX];
	size_t rule = 0;
	/* Files below a path that is too long cannot be opened anyway. */
	for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
		const size_t len = (size_t)(slash - path);
		if (len >= sizeof folder)
			break;
		if (len == 0)
			continue;
		memcpy(folder, path, len);
		folder[len] = '\0';
		rule = filter_enter(filter, folder, rule);
	}
	return rule;
}

/* Whether a path is included if the rule with this number, counted from 1, decides it. 0: no rule
 * matches the path; then it gets the opposite of the first rule. The filter has at least one rule.
 */
static bool includes(const struct filter *filter, size_t rule)
{
	return rule ? filter->rules[rule - 1].effect == FILTER_INCLUDE
		    : filter->rules[0].effect == FILTER_EXCLUDE;
}

bool filter_wants_file_in(struct filter *filter, const char *relative, size_t folder_rule)
{
	if (!filter || filter->n == 0)
		return true;
	const size_t rule = last_match(filter, relative, PATH_OF_FILE, folder_rule);
	const bool wants = includes(filter, rule);
	filter->has_left_out |= !wants;
	return wants;
}

bool filter_wants_file(struct filter *filter, const char *relative)
{
	return filter_wants_file_in(
		filter, relative, filter ? enter_folder_of(filter, relative) : 0);
}

bool filter_has_left_out(const struct filter *filter)
{
	return filter->has_left_out;
}

bool filter_has_matched(const struct filter *filter, size_t i)
{
	bool has_matched = false;
	for (size_t k = 0; k < filter->n; k++)
		has_matched |= filter->rules[k].added_by == i && filter->rules[k].has_matched;
	return has_matched;
}

/* A file below the folder is wanted if the folder's rule includes, or if a later include matches
 * the file or a folder in between. */
bool filter_prunes_entered(struct filter *filter, const char *folder, size_t rule)
{
	if (!filter || filter->n == 0 || includes(filter, rule))
		return false;
	for (size_t i = rule; i < filter->n; i++) {
		const struct rule *later = &filter->rules[i];
		if (later->effect == FILTER_INCLUDE &&
			(later->base_name || glob_may_match_below(later->pattern, folder)))
			return false;
	}
	filter->has_left_out = true;
	return true;
}

bool filter_prunes(struct filter *filter, const char *folder)
{
	const size_t above = filter ? enter_folder_of(filter, folder) : 0;
	return filter_prunes_entered(filter, folder, filter_enter(filter, folder, above));
}
