/* The metrics of the last run of a job, for Prometheus: a file that node_exporter collects, or a
 * text that `s3once watch` answers with, merged from those of its jobs. push_command.c hands over
 * each run that has ended. What an earlier run left is read back only for the two times that
 * outlive a run; a file that cannot be replaced stays whole. */
#include "cli/push/metrics.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/quote.h"
#include "base/text.h"
#include "cli/options/values.h"
#include "cli/push/run_events.h"
#include "cli/version_commit.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#define FILE_BYTES_MAX (256U << 10)
#define LOCK_TURNS     100
#define LOCK_TURN_MS   20

#define LAST_SUCCESS "s3once_last_success_timestamp_seconds"
#define OLDEST       "s3once_oldest_unshipped_timestamp_seconds"

static const char HELP[] = "# HELP ";

struct writing {
	struct text text;
	struct text labels; /* those of each sample */
};

/* The text of a metric is the same in all files, as the collector wants it. */
static void begin_metric(struct writing *w, const char *name, const char *help)
{
	text_addf(&w->text, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

/* `more` has further labels, or is "". */
static void add_labels(struct writing *w, const char *name, const char *more)
{
	text_addf(&w->text, "%s{%s%s%s} ", name, text_string(&w->labels), *more ? "," : "", more);
}

static void add_number(struct writing *w, const char *name, const char *more, uint64_t value)
{
	add_labels(w, name, more);
	text_addf(&w->text, "%" PRIu64 "\n", value);
}

static void add_time(struct writing *w, const char *name, const char *help, int64_t seconds)
{
	begin_metric(w, name, help);
	add_labels(w, name, "");
	text_addf(&w->text, "%" PRId64 "\n", seconds);
}

static void add_label_value(struct text *t, const char *bytes)
{
	struct text readable = TEXT(FILE_BYTES_MAX);
	/* A label is text, so that other bytes are escaped. */
	if (utf8_valid(bytes, strlen(bytes)))
		text_add(&readable, bytes);
	else
		text_add_escaped(&readable, bytes, strlen(bytes));
	for (const char *at = text_string(&readable); *at; at++) {
		if (*at == '\n') {
			text_add(t, "\\n");
			continue;
		}
		if (*at == '\\' || *at == '"')
			text_add_char(t, '\\');
		text_add_char(t, *at);
	}
	text_clear(&readable);
}

void metrics_add_labels(struct text *t, const char *job, const char *bucket, const char *prefix)
{
	if (job) {
		text_add(t, "job=\"");
		add_label_value(t, job);
		text_add(t, "\",");
	}
	text_add(t, "target=\"s3://");
	add_label_value(t, bucket);
	text_add(t, *prefix ? "/" : "");
	add_label_value(t, prefix);
	text_add_char(t, '"');
}

/* The value of a metric with exactly these labels in the text of an earlier file. */
static bool find_time(const char *text, const char *name, const char *labels, int64_t *ret)
{
	struct text begin = TEXT(FILE_BYTES_MAX);
	text_addf(&begin, "\n%s{%s} ", name, labels);
	const char *at = begin.error ? NULL : strstr(text, text_string(&begin));
	const bool is_there = at && sscanf(at + begin.len, "%" SCNd64, ret) == 1;
	text_clear(&begin);
	return is_there;
}

/* What cannot be read has nothing to keep. */
static void read_earlier(const struct metrics_run *run, struct text *ret)
{
	text_add_char(ret, '\n');
	if (run->path)
		named_file_read(run->path, ret, NULL);
	else if (run->text)
		text_add(ret, text_string(run->text));
}

static void add_files(struct writing *w, const struct s3once_counts *c)
{
	const uint64_t settled = s3once_counts_settled(c);
	static const char name[] = "s3once_last_run_files";
	begin_metric(w, name, "Files that the last run found, by what became of them.");
	for (const struct counter *counter = run_counters; counter->name; counter++) {
		/* What the metrics have always called otherwise than JSON does. */
		const bool is_links = counter->offset == offsetof(struct s3once_counts, links);
		char label[64];
		snprintf(label, sizeof label, "result=\"%s\"", is_links ? "link" : counter->name);
		if (counter->kind != COUNTS_SOMETHING)
			add_number(w, name, label, counter_value(counter, c));
	}
	add_number(w, name, "result=\"unfinished\"", c->found > settled ? c->found - settled : 0);
}

static void add_bytes(struct writing *w, const struct s3once_counts *c)
{
	static const char name[] = "s3once_last_run_bytes";
	begin_metric(w, name,
		"Bytes of the files that the last run found, of those that need nothing more, and "
		"of what it sent.");
	add_number(w, name, "kind=\"found\"", c->bytes_found);
	add_number(w, name, "kind=\"settled\"", c->bytes_settled);
	add_number(w, name, "kind=\"sent\"", c->bytes_sent);
}

static void add_requests(struct writing *w, const struct s3once_push *push)
{
	static const char name[] = "s3once_last_run_requests";
	const char *kind;
	uint64_t count;
	begin_metric(w, name, "Requests that the last run sent, by operation.");
	for (size_t i = 0; (kind = s3once_push_requests(push, i, &count)); i++) {
		char label[96];
		snprintf(label, sizeof label, "operation=\"%s\"", kind);
		if (count)
			add_number(w, name, label, count);
	}
}

/* A run that did not see all files does not know the oldest one, so what the run before knew stays.
 */
static void add_oldest(struct writing *w, const struct metrics_run *run, const char *earlier)
{
	static const char help[] =
		"Time at which the oldest file was modified that is to be in S3 and is not. "
		"Missing if there is none.";
	const struct s3once_counts *c = run->push ? s3once_push_counts(run->push) : NULL;
	int64_t oldest = INT64_MAX, before = 0;
	if (c && c->oldest_unshipped_ns != INT64_MAX)
		oldest = c->oldest_unshipped_ns / (int64_t)NS_PER_S;
	if (!(c && c->scan_complete && !run->is_partial) &&
		find_time(earlier, OLDEST, text_string(&w->labels), &before) && before < oldest)
		oldest = before;
	if (oldest != INT64_MAX)
		add_time(w, OLDEST, help, oldest);
}

static void add_last_run(struct writing *w, const struct metrics_run *run, const char *earlier)
{
	const struct s3once_counts *c = run->push ? s3once_push_counts(run->push) : NULL;
	const int64_t now_s = clock_wall_ns() / (int64_t)NS_PER_S;
	int64_t success = now_s;
	if (run->exit_code == S3ONCE_EXIT_OK ||
		find_time(earlier, LAST_SUCCESS, text_string(&w->labels), &success))
		add_time(w, LAST_SUCCESS,
			"Time at which a run ended last with every file in S3, verified.", success);
	add_time(w, "s3once_last_run_timestamp_seconds",
		"Time at which the last run ended, whatever its exit status.", now_s);
	begin_metric(w, "s3once_last_run_exit_status", "Exit status of the last run.");
	add_number(w, "s3once_last_run_exit_status", "", (uint64_t)run->exit_code);
	begin_metric(w, "s3once_last_run_duration_seconds", "How long the last run took.");
	add_labels(w, "s3once_last_run_duration_seconds", "");
	text_addf(&w->text, "%.3f\n", c ? c->seconds : 0);
	add_oldest(w, run, earlier);
	if (!c)
		return;
	add_files(w, c);
	add_bytes(w, c);
	add_requests(w, run->push);
}

static void add_build(struct writing *w)
{
	char label[128];
	snprintf(label, sizeof label, "version=\"%s\",commit=\"%s\"", s3once_version(),
		VERSION_COMMIT);
	begin_metric(
		w, "s3once_build_info", "Version of the program that wrote this file, always 1.");
	add_number(w, "s3once_build_info", label, 1);
}

static int fill_file(int fd, const struct text *text)
{
	const int error = write_all(fd, text->data, text->len);
	if (error)
		return error;
	return fchmod(fd, 0644) || fsync(fd) ? -errno : 0;
}

/* The collector never reads a file that is half written, since its name has another ending until it
 * is whole. */
static int replace(const char *path, const struct text *text)
{
	char *temporary;
	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	const int fd = mkostemp(temporary, O_CLOEXEC);
	int error = fd < 0 ? -errno : fill_file(fd, text);
	if (fd >= 0 && close(fd) && !error)
		error = -errno;
	if (!error && rename(temporary, path))
		error = -errno;
	if (error && fd >= 0)
		unlink(temporary);
	free(temporary);
	return error;
}

/* Runs that end together read and replace the file one after the other, so that none of them puts
 * back what another one has replaced. The lock is the folder's, since the file is another one each
 * time. Who does not get it in two seconds, or may not read the folder, goes without. Returns a
 * descriptor to close, or -1. */
static int lock_folder(const char *path)
{
	char *folder = path_folder(path);
	const int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	free(folder);
	for (int turn = 0; fd >= 0 && turn < LOCK_TURNS; turn++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
			break;
		uv_sleep(LOCK_TURN_MS);
	}
	return fd;
}

int metrics_check(const char *path, struct problem *ret_problem)
{
	const struct file_option option = {.name = "--metrics-file",
		.path = path,
		.example = "s3once.prom",
		.other = "name the one that node_exporter reads"};
	struct stat st;
	const int error = file_option_check(&option, ret_problem);
	if (error || stat(path, &st) || S_ISREG(st.st_mode))
		return error;
	problem_set(ret_problem,
		"--metrics-file: %s is not a regular file, and would be replaced by one: name another "
		"one",
		quote(path).text);
	return -EINVAL;
}

int metrics_write(const struct metrics_run *run, struct problem *ret_problem)
{
	struct writing w = {.text = TEXT(FILE_BYTES_MAX), .labels = TEXT(FILE_BYTES_MAX)};
	struct text earlier = TEXT(FILE_BYTES_MAX);
	const int lock = run->path ? lock_folder(run->path) : -1;
	metrics_add_labels(&w.labels, run->job, run->bucket, run->prefix);
	read_earlier(run, &earlier);
	add_last_run(&w, run, text_string(&earlier));
	add_build(&w);
	int error = w.text.error;
	if (run->text && !error) {
		text_reset(run->text);
		text_add(run->text, text_string(&w.text));
	}
	if (run->path && !error)
		error = replace(run->path, &w.text);
	if (lock >= 0)
		close(lock);
	if (error && run->path)
		problem_set(ret_problem,
			"--metrics-file: cannot write %s: %s; the file is as it was",
			quote(run->path).text, strerror(-error));
	text_clear(&earlier);
	text_clear(&w.labels);
	text_clear(&w.text);
	return error;
}

static size_t line_length(const char *line)
{
	const char *end = strchr(line, '\n');
	return end ? (size_t)(end - line) + 1 : strlen(line);
}

static bool is_help(const char *line)
{
	return strncmp(line, HELP, strlen(HELP)) == 0;
}

/* "# HELP NAME ", with the blank at its end. */
static size_t name_length(const char *help)
{
	return strlen(HELP) + strcspn(help + strlen(HELP), " ") + 1;
}

/* The line that describes the same metric in another text, or NULL. */
static const char *find_metric(const char *text, const char *help)
{
	for (const char *line = text; *line; line += line_length(line))
		if (is_help(line) && strncmp(line, help, name_length(help)) == 0)
			return line;
	return NULL;
}

/* The samples behind the two lines that describe a metric. */
static void add_samples(const char *help, struct text *ret)
{
	const char *begin = help + line_length(help), *end;
	begin += line_length(begin);
	for (end = begin; *end && !is_help(end);)
		end += line_length(end);
	text_add_bytes(ret, begin, (size_t)(end - begin));
}

void metrics_merge(const char *const *texts, size_t n, struct text *ret)
{
	for (size_t i = 0; i < n; i++)
		for (const char *line = texts[i]; *line; line += line_length(line)) {
			if (!is_help(line) || find_metric(text_string(ret), line))
				continue;
			const char *type = line + line_length(line);
			text_add_bytes(ret, line, line_length(line) + line_length(type));
			for (size_t j = i; j < n && !ret->error; j++) {
				const char *same = find_metric(texts[j], line);
				if (same)
					add_samples(same, ret);
			}
		}
}
