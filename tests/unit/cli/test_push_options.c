/* The options of push that a command line gives: what they become for the library, what is refused,
 * and when the target is a key. */
#include "../check.h"
#include "cli/push/push_options.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Splits a command line at its spaces and parses it. The words live until the next call. */
static int parse(const char *line, struct push_options *ret, struct problem *ret_problem)
{
	static char words[512], self[] = "push", *argv[32];
	char *rest = words;
	argv[0] = self;
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
	CHECK_INT(
		parse("--endpoint-url http://e --region r --profile p --ca-bundle c "
		      "--checksum sha256 --request-timeout 5s --bwlimit 1M --storage-class GLACIER "
		      "--metrics HTTP://h/m a s3://bucket",
			&o, &problem),
		0);
	CHECK_STRING(o.run.endpoint_url, "http://e");
	CHECK_STRING(o.run.region, "r");
	CHECK_STRING(o.run.profile, "p");
	CHECK_STRING(o.run.ca_bundle, "c");
	CHECK_STRING(o.run.checksum, "sha256");
	CHECK_INT(o.run.request_timeout_ms, 5000);
	CHECK_INT(o.run.n_rates, 1);
	CHECK(o.run.rates == o.rates && o.rates->bytes_per_second == 1 << 20);
	CHECK(o.run.n_settings == 1 && strcmp(o.run.settings->value, "GLACIER") == 0);
	CHECK(!o.metrics_file);
	CHECK_STRING(o.metrics_otlp, "HTTP://h/m");
	push_options_clear(&o);
	CHECK_INT(parse("--log-file /dev/null a s3://bucket", &o, &problem), 0);
	push_options_clear(&o);
	/* A dry run writes neither file, so that neither has to be one. */
	CHECK_INT(parse("-n --log-file / --metrics /. a s3://bucket", &o, &problem), 0);
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
		{"--log-file f --metrics f a s3://bucket", "name the same file"},
		{"--remove-even open a s3://bucket", "--delete-after removes: give that"},
		{"--delete-after --remove-even held a s3://bucket", "'held' is not one of"},
		{"-n --log-file f --metrics f a s3://bucket", "name the same file"},
		{"--log-file / a s3://bucket", "--log-file: / is a directory"},
		{"--metrics /dev/null a s3://bucket", "--metrics: /dev/null is no regular file"},
		{"--metrics / a s3://bucket", "--metrics: / is a directory"},
		{"--ping-url https:///p a s3://bucket", "--ping-url: this is not a URL"},
		{"--ping-url ftp://h/p a s3://bucket", "--ping-url: this is not a URL"},
		{"--metrics http:// a s3://bucket", "--metrics: this is not a URL"},
		{"--as k a b s3://bucket", "--as names the key of one file"},
		{"--as k a s3://bucket/p", "without PREFIX"},
		{"--as \xFF a s3://bucket", "--as: the name is not UTF-8"},
		{"--as s3://bucket/k a s3://bucket", "--as is the key alone"},
		{"--key s3://bucket/{path} a s3://bucket", "--key is the key alone"},
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

/* --delete-after and --move-to: which files are removed, and never too early. */
static void check_removal(void)
{
	static const struct {
		const char *line;
		bool removes;
		uint64_t after_s;
	} rows[] = {
		{"a s3://bucket", false, 0},
		{"--delete-after a s3://bucket", true, 0},
		{"--delete-after=7d a s3://bucket", true, 7 * 86400},
		{"--delete-after=1001ms a s3://bucket", true, 2},
		{"--delete-after=1000ms a s3://bucket", true, 1},
		{"--delete-after=no a s3://bucket", false, 0},
		{"--move-to /old a s3://bucket", true, 0},
		{"--move-to /old --delete-after=1h a s3://bucket", true, 3600},
		{"--move-to /old --delete-after=no a s3://bucket", true, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct push_options o;
		struct problem problem = {0};
		bool good = CHECK_INT(parse(rows[i].line, &o, &problem), 0);
		good &= CHECK_INT(o.run.removes, rows[i].removes);
		good &= CHECK_INT(o.run.remove_after_s, rows[i].after_s);
		if (!good)
			fprintf(stderr, "\t%s: %s\n", rows[i].line, problem.text);
		push_options_clear(&o);
	}
}

/* Whether the target of a command line is the key of its one file, and what is said of it. */
static void check_aim(void)
{
	static const struct {
		const char *line; /* in the folder of the test, which has a.txt, b, dir and d2 */
		const char *as, *prefix;
		const char *note; /* how it goes on somewhere; NULL: there is none */
	} rows[] = {
		{"a.txt s3://bkt/k.txt", "k.txt", "", "k.txt is taken as the key, not as a folder"},
		{"a.txt s3://bkt/p/k.TXT", "p/k.TXT", "", "is taken as the key"},
		{"a.txt s3://bkt/k.txt/", NULL, "k.txt/", NULL},
		{"a.txt s3://bkt/k", NULL, "k", NULL},
		{"a.txt s3://bkt/.txt", NULL, ".txt", NULL},
		{"a.txt s3://bkt/logs-1.2", NULL, "logs-1.2", NULL},
		{"a.txt s3://bkt/k.gz", NULL, "k.gz", "the key is k.gz/a.txt: end the URL with /"},
		{"b s3://bkt/wal/b", "wal/b", "", "wal/b is taken as the key, not as a folder"},
		{"./b s3://bkt/b", "b", "", "b is taken as the key"},
		{"b s3://bkt/wal/b/", NULL, "wal/b/", NULL},
		{"b s3://bkt/wal/bb", NULL, "wal/bb", NULL},
		{"dir s3://bkt/dir", NULL, "dir", NULL},
		{"b s3://bkt/k.txt", NULL, "k.txt", "the key is k.txt/b"},
		{"dir s3://bkt/k.txt", NULL, "k.txt", NULL},
		{"gone.txt s3://bkt/k.txt", NULL, "k.txt", NULL},
		{"dir s3://bkt/p", NULL, "p", NULL},
		{"dir d2 s3://bkt/p", NULL, "p",
			"directly below s3://bkt/p: dir/FILE gets the key p/FILE"},
		{"a.txt d2 s3://bkt", NULL, "",
			"directly below s3://bkt/: d2/FILE gets the key FILE"},
		{"a.txt b s3://bkt/p", NULL, "p", NULL},
		/* The keys are the user's own choice. */
		{"--as x a.txt s3://bkt", "x", "", NULL},
		{"--rotated a.txt s3://bkt/k.txt", NULL, "k.txt", NULL},
		{"--key {name} a.txt s3://bkt/k.txt", NULL, "k.txt", NULL},
		{"--exclude x dir d2 s3://bkt/p", NULL, "p", NULL},
	};
	char folder[] = "/tmp/test_push_options.XXXXXX", was[4096];
	if (!CHECK(mkdtemp(folder) != NULL) || !CHECK(getcwd(was, sizeof was) != NULL) ||
		!CHECK_INT(chdir(folder), 0))
		return;
	fclose(fopen("a.txt", "w"));
	fclose(fopen("b", "w"));
	CHECK_INT(mkdir("dir", 0700), 0);
	CHECK_INT(mkdir("d2", 0700), 0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct push_options o;
		struct problem problem = {0};
		bool good = CHECK_INT(parse(rows[i].line, &o, &problem), 0);
		if (good)
			push_options_decide_key(&o);
		good &= CHECK_STRING(o.run.as, rows[i].as);
		good &= CHECK_STRING(o.run.prefix, rows[i].prefix);
		good &= CHECK(rows[i].note ? o.note && strstr(o.note, rows[i].note) : !o.note);
		if (!good)
			fprintf(stderr, "\t%s: %s%s\n", rows[i].line, problem.text,
				o.note ? o.note : "");
		push_options_clear(&o);
	}
	unlink("a.txt");
	unlink("b");
	rmdir("dir");
	rmdir("d2");
	CHECK_INT(chdir(was), 0);
	CHECK_INT(rmdir(folder), 0);
}

int main(void)
{
	check_defaults();
	check_translated();
	check_removal();
	check_aim();
	check_refused();
	return check_result();
}
