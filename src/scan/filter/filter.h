/* --exclude and --include, as rules in order, and the patterns they consist of. */
#pragma once
#include "base/problem.h"
#include "s3once/push.h"
#include <stdbool.h>
#include <stddef.h>

/* '*' and '?' stop at '/', '**' crosses it, [a-z] and [!a-z] are classes, and '\' takes the next
 * character as it is.
 *
 * A pattern without '/' (except at its end) matches the base name anywhere. A leading '/' anchors
 * the pattern at the source. A pattern with another '/' matches the whole relative path, or its
 * tail after any '/'. A pattern that matches a folder matches everything in it. A pattern with a
 * trailing '/' matches only folders.
 *
 * The last rule that matches a file or a folder above it decides. A file that no rule matches is
 * excluded if the first rule is an include, and included otherwise. */
struct filter;
int filter_new(struct filter **ret); /* 0 or -ENOMEM */
void filter_free(struct filter *filter);
/* The effect of a rule on the paths that it matches. */
enum filter_effect {
	FILTER_EXCLUDE,
	FILTER_INCLUDE,
};
/* 0, -ENOMEM, or -EINVAL for a pattern that is empty or has an unclosed '['. */
int filter_add(struct filter *filter, enum filter_effect effect, const char *pattern);
/* Adds a rule of a user, which may be a file of patterns. Returns 0, -ENOMEM, or -EINVAL with a
 * sentence, which names the file and the line. */
int filter_add_rule(
	struct filter *filter, const struct s3once_rule *rule, struct problem *ret_problem);
/* Whether a file at this path relative to its source is to be uploaded. */
bool filter_wants_file(struct filter *filter, const char *relative);
/* Whether a folder may be skipped whole: no file below it can be wanted. */
bool filter_prunes(struct filter *filter, const char *folder);

/* The same for a walk, which enters a folder once, and asks about each name in it.
 *
 * filter_enter() returns the number, from 1, of the last rule that matches the folder or one above
 * it; 0: none. `above` is this number for the folder that it is in; 0 at the top. The two questions
 * take the number for the folder of the file, and for the folder itself. */
size_t filter_enter(struct filter *filter, const char *folder, size_t above);
bool filter_wants_file_in(struct filter *filter, const char *relative, size_t folder_rule);
bool filter_prunes_entered(struct filter *filter, const char *folder, size_t rule);

/* Whether the i-th rule that was added, from 0, has matched any path of the calls above. The
 * patterns of a file are one rule. */
bool filter_has_matched(const struct filter *filter, size_t i);
/* Whether the calls above have excluded any path. */
bool filter_has_left_out(const struct filter *filter);

/* Whether the pattern is well formed: every '[' closed. */
bool glob_valid(const char *pattern);

/* Whether the whole path matches: '*' and '?' stop at '/', '**' crosses it, a component "**" also
 * matches none ("a/" followed by "**" and "/b" matches "a/b"), [a-z] and [!a-z] are classes of
 * characters, '\' takes the next character as it is. The pattern is valid. */
bool glob_matches(const char *pattern, const char *path);

/* Whether some path that begins with the directory and a '/' may match. It may return true where
 * none does, but never false where one does. "" is the top. */
bool glob_may_match_below(const char *pattern, const char *directory);
