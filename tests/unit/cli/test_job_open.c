/* The source of an option's value in a job: the command line, its file or the environment. Also its
 * variables, its errors, and the values that a command about the job takes from it. */
#include "../check.h"
#include "base/log.h"
#include "cli/job/job.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/test_job_open.XXXXXX", tree[64];

/* The errors and warnings since the last call of write_job(). */
static struct text said = {.max = 1 << 16};

static void note_line(void *arg, enum log_level level, const char *line)
{
	(void)arg, (void)level;
	text_addf(&said, "%s\n", line);
}

static void write_file(const char *name, const char *content)
{
	char path[96];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	unlink(path);
	FILE *file = content ? fopen(path, "w") : NULL;
	if (file) {
		CHECK(fputs(content, file) >= 0);
		fclose(file);
	}
}

/* Writes the file of the job "j", with a source and a target behind these lines. */
static void write_job(const char *lines)
{
	char content[1000];
	snprintf(content, sizeof content, "%ssource = %s\ntarget = s3://bucket/p\n", lines, tree);
	write_file("j.conf", content);
	text_reset(&said);
}

/* Opens the job with these words on the command line. */
static int open_with(const char *line, struct job *ret)
{
	static char copy[200];
	static char *words[20];
	int n = 0;
	snprintf(copy, sizeof copy, "run %s", line);
	for (char *word, *rest = copy; (word = strsep(&rest, " "));)
		if (*word)
			words[n++] = word;
	words[n] = NULL;
	return job_open("j", JOB_RUN, n, words, ret);
}

/* Which of the three places has the last word, of each kind of option. */
static void test_precedence(void)
{
	static const char *const names[] = {
		"S3ONCE_MIN_AGE", "S3ONCE_DRY_RUN", "S3ONCE_IF_CHANGED", "S3ONCE_MARKS"};
	static const struct {
		const char *environment[4], *lines, *words;
		uint64_t min_age_ms;
		int dry_run, if_changed;
		const char *marks;
	} rows[] = {
		{{NULL}, "", "", 0, 0, 0, NULL},
		{{"1s", "yes", "skip", "sqlite:/e"}, "", "", 1000, 1, S3ONCE_CHANGED_SKIP,
			"sqlite:/e"},
		{{NULL}, "min-age = 2s\ndry-run = yes\nif-changed = skip\nmarks = sqlite:/f\n", "",
			2000, 1, S3ONCE_CHANGED_SKIP, "sqlite:/f"},
		{{NULL}, "", "--min-age 3s -n --if-changed=skip --marks sqlite:/w", 3000, 1,
			S3ONCE_CHANGED_SKIP, "sqlite:/w"},
		{{"1s", "yes", "skip", "sqlite:/e"},
			"min-age = 2s\ndry-run = no\nif-changed = replace\nmarks = sqlite:/f\n", "",
			2000, 0, S3ONCE_CHANGED_REPLACE, "sqlite:/f"},
		{{NULL}, "min-age = 2s\nif-changed = replace\nmarks = sqlite:/f\n",
			"--min-age 3s --if-changed=skip --marks sqlite:/w", 3000, 0,
			S3ONCE_CHANGED_SKIP, "sqlite:/w"},
		{{"1s", NULL, "replace", "sqlite:/e"}, "",
			"--min-age 3s --if-changed=skip --marks sqlite:/w", 3000, 0,
			S3ONCE_CHANGED_SKIP, "sqlite:/w"},
		{{"1s", "no", "replace", "sqlite:/e"}, "min-age = 2s\nmarks = sqlite:/f\n",
			"--min-age 3s -n", 3000, 1, S3ONCE_CHANGED_REPLACE, "sqlite:/f"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct job job;
		write_job(rows[i].lines);
		for (size_t j = 0; j < 4; j++)
			if (rows[i].environment[j])
				setenv(names[j], rows[i].environment[j], 1);
		bool good = CHECK_INT(open_with(rows[i].words, &job), 0);
		good &= CHECK_INT(job.options.run.min_age_ms, rows[i].min_age_ms);
		good &= CHECK_INT(job.options.run.dry_run, rows[i].dry_run);
		good &= CHECK_INT(job.options.run.if_changed, rows[i].if_changed);
		good &= CHECK_STRING(job.options.run.marks, rows[i].marks);
		if (!good)
			fprintf(stderr, "\trow %zu: %s\n", i, text_string(&said));
		job_close(&job);
		for (size_t j = 0; j < 4; j++)
			unsetenv(names[j]);
	}
}

/* Values of lists and settings add up: first those of the environment, then those of the file, then
 * those of the command line. */
static void test_lists(void)
{
	static const char *const patterns[] = {"e", "f1", "f2", "w"}, *const values[] = {
									      "a=e", "a=f", "a=w"};
	struct job job;
	setenv("S3ONCE_EXCLUDE", "e", 1);
	setenv("S3ONCE_METADATA", "a=e", 1);
	write_job("exclude = f1\nexclude = f2\nmetadata = a=f\n");
	CHECK_INT(open_with("--exclude w --metadata a=w", &job), 0);
	if (CHECK_INT(job.options.run.n_rules, 4) && CHECK_INT(job.options.run.n_settings, 3)) {
		for (size_t i = 0; i < 4; i++)
			CHECK_STRING(job.options.run.rules[i].pattern, patterns[i]);
		for (size_t i = 0; i < 3; i++)
			CHECK_STRING(job.options.run.settings[i].value, values[i]);
	}
	CHECK(!job_is_overridden(&job, "exclude"));
	job_close(&job);
	unsetenv("S3ONCE_EXCLUDE");
	unsetenv("S3ONCE_METADATA");
}

/* The line that sets an option, and the words that take its place, by another option, too. */
static void test_lines(void)
{
	struct job job;
	write_job("# a comment\nmin-age = 2s\nlease = 30s\nquiet = yes\n");
	CHECK_INT(open_with("-v --min-age 3s", &job), 0);
	CHECK(job_is_overridden(&job, "min-age"));
	CHECK(!job_line_of(&job, "min-age"));
	CHECK(!job_is_overridden(&job, "lease"));
	CHECK(job_line_of(&job, "lease") && job_line_of(&job, "lease")->number == 3);
	CHECK(!job_line_of(&job, "grace"));
	CHECK(job_is_overridden(&job, "quiet"));
	CHECK_INT(job.options.quiet, 0);
	CHECK_INT(job.options.verbose, 1);
	CHECK_INT(job.options.run.lease_ms, 30000);
	CHECK_INT(job.n_sources, 1);
	CHECK_STRING(job.target, "s3://bucket/p");
	CHECK_STRING(job.options.job, "j");
	job_close(&job);
}

/* Every error is reported with its line, and none of them is fatal for those that follow. */
static void test_errors(void)
{
	static const struct {
		const char *lines, *words;
		unsigned errors;
		const char *says;
	} rows[] = {
		{"min-age = 1s\nmin-age = 2s\n", "", 1,
			"j.conf:2: min-age: line 1 says it already"},
		{"min-age = 1s\nmin-age = 2s\n", "--min-age 3s", 1,
			"j.conf:2: min-age: line 1 says it already"},
		{"exclude = a\nexclude = a\n", "", 0, ""},
		{"min-age = soon\n", "", 1, "j.conf:1: min-age: 'soon' is not a duration"},
		/* A value is checked also where another one takes its place. */
		{"min-age = soon\n", "--min-age 3s", 1, "j.conf:1: min-age: 'soon'"},
		{"source = here\n", "", 1, "j.conf:1: source: 'here' is not an absolute path"},
		{"target = s3://other\n", "", 1, "target: there is one before"},
		{"mn-age = 1s\n", "", 1, "j.conf:1: unknown name 'mn-age'; did you mean min-age?"},
		{"sourc = /x\n", "", 1, "did you mean source?"},
		{"help = yes\n", "", 1, "j.conf:1: unknown name 'help'; there are"},
		{"nonsense\nlease = 1x\ngrace = 1x\n", "", 3, "j.conf:3: grace:"},
		{"quiet = yes\nverbose = yes\n", "", 1, "j.conf:2: quiet and verbose contradict"},
		{"quiet = no\nverbose = yes\n", "", 0, ""},
		{"follow = yes\n", "--delete-after", 1,
			"j.conf:1: --delete-after and follow contradict each other"},
		{"delete-after = no\nfollow = yes\n", "", 0, ""},
		{"min-size = 2G\nmax-size = 1G\n", "", 1, "j.conf:1: "},
		{"min-size = 2G\n", "--max-size 1G", 1, ""},
		{"header = X-Bad: 1\n", "", 1, "j.conf:1: header: S3 knows no header"},
		{"exclude = [\n", "", 1, "j.conf:1: exclude"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct job job;
		write_job(rows[i].lines);
		bool good = CHECK_INT(open_with(rows[i].words, &job), rows[i].errors ? -EINVAL : 0);
		good &= CHECK_INT(job.errors, rows[i].errors);
		good &= CHECK(strstr(text_string(&said), rows[i].says) != NULL);
		if (!good)
			fprintf(stderr, "\trow %zu: %s\n", i, text_string(&said));
		job_close(&job);
	}
}

/* The unit's variables during a run of the job, and when they are set. */
static void test_variables(void)
{
	struct job job;
	char credentials[96];
	snprintf(credentials, sizeof credentials, "%s/j.credentials", folder);
	write_job("");
	write_file("j.env", "AWS_REGIONAL=x\nAWS_REGION=eu-west-3\nAWS_PROFILE=of-job\n"
			    "S3ONCE_MIN_AGE=4s\nS3ONCE_OPTIONS=-v\n");
	write_file("j.credentials", "");
	setenv("AWS_PROFILE", "of-user", 1);
	CHECK_INT(open_with("", &job), 0);
	CHECK_INT(job.options.run.min_age_ms, 4000);
	CHECK(strstr(text_string(&said), "S3ONCE_OPTIONS is for the systemd unit alone"));
	CHECK_STRING(getenv("AWS_REGION"), NULL);
	job_set_variables(&job);
	CHECK_STRING(getenv("AWS_REGION"), "eu-west-3");
	CHECK_STRING(getenv("AWS_REGIONAL"), "x");
	CHECK_STRING(getenv("AWS_PROFILE"), "of-user");
	CHECK_STRING(getenv("AWS_SHARED_CREDENTIALS_FILE"), credentials);
	CHECK_STRING(getenv("S3ONCE_OPTIONS"), NULL);
	job_unset_variables(&job);
	CHECK_STRING(getenv("AWS_REGION"), NULL);
	CHECK_STRING(getenv("AWS_PROFILE"), "of-user");
	CHECK_STRING(getenv("AWS_SHARED_CREDENTIALS_FILE"), NULL);
	job_close(&job);
	unsetenv("AWS_PROFILE");
	/* NAME.env may name other credentials. */
	write_file("j.env", "AWS_SHARED_CREDENTIALS_FILE=/other\n");
	CHECK_INT(open_with("", &job), 0);
	job_set_variables(&job);
	CHECK_STRING(getenv("AWS_SHARED_CREDENTIALS_FILE"), "/other");
	job_close(&job);
	/* A job that is given by its path has no unit. */
	char path[96];
	static char self[] = "run";
	char *const argv[] = {self, NULL};
	snprintf(path, sizeof path, "%s/j.conf", folder);
	CHECK_INT(job_open(path, JOB_RUN, 1, argv, &job), 0);
	CHECK_STRING(job.name, "j");
	CHECK_INT(job.variables.n, 0);
	job_close(&job);
	/* The name of the file is that of the job, which has one. */
	CHECK_INT(job_open("j.conf", JOB_RUN, 1, argv, &job), 0);
	CHECK_STRING(job.name, "j");
	CHECK_INT(job.variables.n, 1);
	job_close(&job);
	write_file("j.env", NULL);
	write_file("j.credentials", NULL);
}

/* Both variables stand in for a file that is not there, as they are, without quotes taken off. */
static void test_without_file(void)
{
	struct job job;
	write_file("j.conf", NULL);
	text_reset(&said);
	CHECK_INT(open_with("", &job), -EINVAL);
	CHECK(strstr(text_string(&said), "there is no such file"));
	CHECK(!strstr(text_string(&said), "did you mean"));
	job_close(&job);
	/* A similar name in the folder that S3ONCE_JOBS names is proposed. */
	write_file("ji.conf", "");
	text_reset(&said);
	CHECK_INT(open_with("", &job), -EINVAL);
	CHECK(strstr(text_string(&said), "did you mean ji?"));
	job_close(&job);
	write_file("ji.conf", NULL);
	setenv("S3ONCE_SOURCE", tree, 1);
	setenv("S3ONCE_TARGET", "", 1);
	text_reset(&said);
	CHECK_INT(open_with("", &job), -EINVAL);
	CHECK(strstr(text_string(&said), "there is no such file"));
	job_close(&job);
	setenv("S3ONCE_TARGET", "s3://bucket/\"q\"", 1);
	CHECK_INT(open_with("--min-age 3s", &job), 0);
	CHECK_STRING(job.target, "s3://bucket/\"q\"");
	CHECK_INT(job.options.run.min_age_ms, 3000);
	job_close(&job);
	/* The file counts if it is there. */
	write_job("");
	CHECK_INT(open_with("", &job), 0);
	CHECK_STRING(job.target, "s3://bucket/p");
	job_close(&job);
	unsetenv("S3ONCE_SOURCE");
	unsetenv("S3ONCE_TARGET");
}

/* The list of paths is read by the run alone, since it may be standard input. */
static void test_list_is_not_read(void)
{
	struct job job;
	int ends[2];
	char first = 0;
	CHECK_INT(pipe(ends), 0);
	CHECK_INT(write(ends[1], "a\n", 2), 2);
	CHECK_INT(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
	close(ends[0]);
	close(ends[1]);
	write_job("");
	CHECK_INT(open_with("--files-from -", &job), 0);
	CHECK_STRING(job.options.run.files_from, "-");
	CHECK_INT(read(STDIN_FILENO, &first, 1), 1);
	CHECK_INT(first, 'a');
	job_close(&job);
}

/* A command about the job takes from it what its own words do not say. */
static void test_asked(void)
{
	static const struct {
		bool has_words, has_url;
	} rows[] = {{false, false}, {true, true}, {true, false}};
	static char url[] = "s3://mine/k", word[] = "word";
	write_job("marks = sqlite:/j\nendpoint-url = http://j\nregion = rj\nprofile = pj\n"
		  "ca-bundle = /cj\nchecksum = sha256\nrequest-timeout = 7s\n"
		  "storage-class = GLACIER\n");
	write_file("j.env", "AWS_REGION=eu-west-3\n");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct job_asked asked = {.name = "j"};
		const bool has_words = rows[i].has_words;
		struct access access = {0};
		char *operands[] = {rows[i].has_url ? url : word, NULL, NULL};
		if (has_words)
			access = (struct access){.marks = "sqlite:/w",
				.aws = {.endpoint_url = "http://w",
					.region = "rw",
					.profile = "pw",
					.ca_bundle = "/cw",
					.checksum = "md5",
					.request_timeout_ms = 1000}};
		CHECK_INT(job_asked_open(&asked, &access, 1, operands), rows[i].has_url ? 1 : 2);
		CHECK_STRING(operands[1], rows[i].has_url ? NULL : "s3://bucket/p");
		CHECK_STRING(access.marks, has_words ? "sqlite:/w" : "sqlite:/j");
		CHECK_STRING(access.aws.endpoint_url, has_words ? "http://w" : "http://j");
		CHECK_STRING(access.aws.region, has_words ? "rw" : "rj");
		CHECK_STRING(access.aws.profile, has_words ? "pw" : "pj");
		CHECK_STRING(access.aws.ca_bundle, has_words ? "/cw" : "/cj");
		CHECK_STRING(access.aws.checksum, has_words ? "md5" : "sha256");
		CHECK_INT(access.aws.request_timeout_ms, has_words ? 1000 : 7000);
		CHECK_STRING(job_asked_setting(&asked, "storage-class"), "GLACIER");
		CHECK_STRING(job_asked_setting(&asked, "acl"), NULL);
		/* No run follows. The variables are there until the job is closed. */
		CHECK_INT(asked.job.options.run.dry_run, 1);
		CHECK_STRING(getenv("AWS_REGION"), "eu-west-3");
		job_close(&asked.job);
		CHECK_STRING(getenv("AWS_REGION"), NULL);
	}
	write_file("j.env", NULL);
	struct job_asked none = {.name = NULL};
	struct access access = {0};
	CHECK_INT(job_asked_open(&none, &access, 1, NULL), 1);
	CHECK_STRING(job_asked_setting(&none, "storage-class"), NULL);
	job_close(&none.job);
}

/* The exit code of several jobs: the worst one, in this order. */
static void test_worse_code(void)
{
	static const int order[] = {143, 130, 129, 5, 3, 2, 1, 6, 4, 0};
	const size_t n = sizeof order / sizeof *order;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			CHECK_INT(jobs_worse_code(order[i], order[j]), order[i < j ? i : j]);
}

int main(void)
{
	static const char *const unwanted[] = {"AWS_REGION", "AWS_PROFILE", "AWS_REGIONAL",
		"AWS_SHARED_CREDENTIALS_FILE", "S3ONCE_MARKS", "S3ONCE_OPTIONS", "S3ONCE_SOURCE",
		"S3ONCE_TARGET"};
	for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++)
		unsetenv(unwanted[i]);
	if (!CHECK(mkdtemp(folder) != NULL))
		return check_result();
	snprintf(tree, sizeof tree, "%s/tree", folder);
	CHECK_INT(mkdir(tree, 0700), 0);
	setenv("S3ONCE_JOBS", folder, 1);
	setenv("HOME", folder, 1);
	log_set_sink(note_line, NULL);
	test_precedence();
	test_lists();
	test_lines();
	test_errors();
	test_variables();
	test_without_file();
	test_list_is_not_read();
	test_asked();
	test_worse_code();
	log_set_sink(NULL, NULL);
	text_clear(&said);
	write_file("j.conf", NULL);
	rmdir(tree);
	CHECK_INT(rmdir(folder), 0);
	return check_result();
}
