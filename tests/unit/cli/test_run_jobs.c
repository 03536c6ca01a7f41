/* `s3once run` with several jobs: which of them are run, with which variables, and the exit code.
 * push_run() is a fake that notes the job and answers as the test says. */
#include "../check.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/push/push_command.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/test_run_jobs.XXXXXX";

static const struct row {
	const char *jobs;  /* and the options of the command line */
	int codes[3];      /* of a, b and c */
	const char *lines; /* more of the file of b */
	const char *ran;   /* each job, and the value of VARIABLE, which only a sets */
	int code;
	const char *says;
} rows[] = {
	{"a b c", {0, 0, 0}, "", "a=of-a b= c= ", 0},
	{"b a", {0, 0, 0}, "", "b= a=of-a ", 0},
	/* A job that fails does not keep the next ones from running. */
	{"a b c", {1, 0, 0}, "", "a=of-a b= c= ", 1},
	{"a b c", {5, 3, 1}, "", "a=of-a b= c= ", 5},
	{"a b c", {1, 3, 4}, "", "a=of-a b= c= ", 3},
	{"a b c", {4, 6, 0}, "", "a=of-a b= c= ", 6},
	/* A signal does. */
	{"a b c", {0, 143, 0}, "", "a=of-a b= ", 143},
	{"a b c", {130, 0, 0}, "", "a=of-a ", 130},
	{"a a", {0, 0, 0}, "", "a=of-a a=of-a ", 0},
	/* All files are checked before the first job begins. */
	{"a b", {0, 0, 0}, "nonsense\n", "", 2, "b.conf:1: this is not name = value"},
	{"a gone", {0, 0, 0}, "", "", 2, "there is no such file"},
	{"a b", {0, 0, 0}, "files-from = -\n", "", 2, "--files-from - is for one job"},
	{"b", {0, 0, 0}, "files-from = -\n", "b= ", 0},
	{"--metrics=/tmp/m.prom a b", {0, 0, 0}, "", "", 2, "both write --metrics"},
	{"--metrics=/tmp/m.prom a", {0, 0, 0}, "", "a=of-a ", 0},
	{"", {0, 0, 0}, "", "", 2, "name a job"},
};
static const struct row *now;
static struct text ran = {.max = 1 << 12}, said = {.max = 1 << 16};

int push_run(struct push_options *options, struct push_pass *pass)
{
	const char *value = getenv("VARIABLE");
	text_addf(&ran, "%s=%s ", options->job, value ? value : "");
	CHECK(!pass);
	return now->codes[*options->job - 'a'];
}

static void note_line(void *arg, enum log_level level, const char *line)
{
	(void)arg, (void)level;
	text_addf(&said, "%s\n", line);
}

/* Writes a file of the jobs. NULL: it is removed. */
static void put(const char *name, const char *before, const char *content)
{
	char path[96];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *file = content ? fopen(path, "w") : NULL;
	if (file) {
		CHECK(fprintf(file, "%s%s", before, content) >= 0);
		fclose(file);
	} else {
		unlink(path);
	}
}

int main(void)
{
	char content[200];
	if (!CHECK(mkdtemp(folder) != NULL))
		return check_result();
	snprintf(content, sizeof content, "source = %s\ntarget = s3://bucket\n", folder);
	put("a.conf", "", content);
	put("c.conf", "", content);
	put("a.env", "", "VARIABLE=of-a\n");
	setenv("S3ONCE_JOBS", folder, 1);
	unsetenv("VARIABLE");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char words[100], *argv[10] = {(char[]){"run"}}, *rest = words;
		int argc = 1;
		now = &rows[i];
		put("b.conf", now->lines, content);
		snprintf(words, sizeof words, "%s", now->jobs);
		for (char *word; (word = strsep(&rest, " "));)
			if (*word)
				argv[argc++] = word;
		log_set_sink(note_line, NULL);
		bool good = CHECK_INT(run_main(argc, argv), now->code);
		log_set_sink(NULL, NULL);
		good &= CHECK_STRING(text_string(&ran), now->ran);
		good &= CHECK(
			now->says ? strstr(text_string(&said), now->says) != NULL : !said.len);
		good &= CHECK_STRING(getenv("VARIABLE"), NULL);
		if (!good)
			fprintf(stderr, "\trow %zu: %s\n", i, text_string(&said));
		text_reset(&ran);
		text_reset(&said);
	}
	put("a.conf", "", NULL);
	put("a.env", "", NULL);
	put("b.conf", "", NULL);
	put("c.conf", "", NULL);
	CHECK_INT(rmdir(folder), 0);
	text_clear(&ran);
	text_clear(&said);
	return check_result();
}
