#include "../check.h"
#include "cli/push/push_options.h"
#include <errno.h>
#include <stdlib.h>

/* Splits a command line at its spaces and parses it. The words live until the next call. */
static int parse(const char *line, struct push_options *ret, struct problem *ret_problem)
{
	static char words[512];
	char *argv[32] = {(char[]){"push"}}, *rest = words;
	int argc = 1;
	snprintf(words, sizeof words, "%s", line);
	for (char *word; (word = strsep(&rest, " "));)
		argv[argc++] = word;
	unsigned given[OPTIONS_MAX] = {0};
	const struct command command = {
		.groups = push_groups, .conflicts = push_conflicts, .values = ret, .given = given};
	push_options_init(ret);
	const int r = options_parse(&command, argc, argv, ret_problem);
	return r < 0 ? r : push_options_complete(ret, r, argv, ret_problem);
}

static void check_defaults(void)
{
	struct push_options o;
	struct problem problem;
	CHECK_INT(parse("dir s3://bucket/p", &o, &problem), 0);
	CHECK_INT(o.run.n_sources, 1);
	CHECK_STRING(o.run.bucket, "bucket");
	CHECK_STRING(o.run.prefix, "p");
	CHECK_INT(o.run.grace_ms, 0); /* the default of the library */
	CHECK_INT(o.run.if_changed, S3ONCE_CHANGED_FAIL);
	CHECK(!o.run.marks && !o.run.report_skipped);
	push_options_clear(&o);
}

static void check_translated(void)
{
	struct push_options o;
	struct problem problem;
	CHECK_INT(parse("--grace 0s --min-age 1500ms --if-changed=skip -v --exclude a -n "
			"--marks sqlite:m --no-wait --lease 4s -- a b s3://bucket",
			  &o, &problem),
		0);
	CHECK_INT(o.run.n_sources, 2);
	CHECK_INT(o.run.grace_ms, 1);
	CHECK_INT(o.run.min_age_ms, 1500);
	CHECK_INT(o.run.if_changed, S3ONCE_CHANGED_SKIP);
	CHECK_INT(o.run.n_rules, 1);
	CHECK_STRING(o.run.marks, "sqlite:m");
	CHECK(o.run.dry_run && o.run.no_wait && o.run.report_skipped);
	push_options_clear(&o);
}

static void check_refused(void)
{
	static const struct {
		const char *line, *says;
	} rows[] = {
		{"--json", "nothing to do"},
		{"s3://bucket", "nothing to upload"},
		{"a b", "the last argument says where to: 'b'"},
		{"a s3://Bad", "'s3://Bad': a bucket's name"},
		{"s3://one s3://two", "a SOURCE is on this host"},
		{" s3://bucket", "a SOURCE is empty"},
		{"--as k a b s3://bucket", "--as names the key of one file"},
		{"--as k a s3://bucket/p", "without PREFIX"},
		{"--as \xFF a s3://bucket", "--as: the name is not UTF-8"},
		{"--as k --files-from f a s3://bucket", "contradict"},
		{"--as k --exclude x a s3://bucket", "contradict"},
		{"--files-from f a b s3://bucket", "one SOURCE"},
		{"-q -v a s3://bucket", "contradict"},
		{"--lease 0s a s3://bucket", "too small"},
		{"--request-timeout 0s a s3://bucket", "too small"},
		{"--concurrency 0 a s3://bucket", "too small"},
		{"--part-size 1M a s3://bucket", "too small: at least 5MiB"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct push_options o;
		struct problem problem = {0};
		CHECK_INT(parse(rows[i].line, &o, &problem), -EINVAL);
		if (!CHECK(strstr(problem.text, rows[i].says)))
			fprintf(stderr, "\t%s: %s\n", rows[i].line, problem.text);
		push_options_clear(&o);
	}
}

int main(void)
{
	check_defaults();
	check_translated();
	check_refused();
	return check_result();
}
