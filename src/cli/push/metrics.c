/* Metrics for Prometheus as text: those of the last run of a job, in a file that node_exporter
 * collects, and those of all jobs, which `s3once watch` serves. The same metrics can be made a
 * request of OTLP/HTTP in JSON (opentelemetry-proto, ExportMetricsServiceRequest).
 *
 * push_command.c hands over each run that has ended. Of what an earlier run left, only the two
 * times that outlive a run are read back. A file that cannot be replaced stays whole. */
#include "cli/push/metrics.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/host_name.h"
#include "cli/push/run_events.h"
#include "cli/version_commit.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <uv.h>

#define LOCK_TRIES    100 /* with the pauses, two seconds */
#define LOCK_AGAIN_MS 20  /* pause between two tries */

static const struct metric_kind last_success = {"s3once_last_success_timestamp_seconds", "gauge",
	"Time at which a run ended last with every file in S3, verified."};
static const struct metric_kind last_run = {"s3once_last_run_timestamp_seconds", "gauge",
	"Time at which the last run ended, whatever its exit status."};
static const struct metric_kind exit_status = {
	"s3once_last_run_exit_status", "gauge", "Exit status of the last run."};
static const struct metric_kind duration = {
	"s3once_last_run_duration_seconds", "gauge", "How long the last run took."};
static const struct metric_kind oldest_unshipped = {"s3once_oldest_unshipped_timestamp_seconds",
	"gauge",
	"Time at which the oldest file was modified that is to be in S3 and is not. Missing if "
	"there is none."};
static const struct metric_kind oldest_waiting = {"s3once_oldest_waiting_timestamp_seconds",
	"gauge",
	"Time at which the oldest file was modified that waits for a later run, longer than "
	"--min-age asks for. Missing if there is none."};
static const struct metric_kind of_files = {
	"s3once_last_run_files", "gauge", "Files that the last run found, by their result."};
static const struct metric_kind of_bytes = {"s3once_last_run_bytes", "gauge",
	"Bytes of the files that the last run found, of those that need nothing more, and of what "
	"it sent."};
static const struct metric_kind of_requests = {
	"s3once_last_run_requests", "gauge", "Requests that the last run sent, by operation."};
static const struct metric_kind build_info = {
	"s3once_build_info", "gauge", "Version of the program that wrote this file, always 1."};

/* Returns the samples of a metric, which is added if it is not there yet. */
static struct text *find_or_add_samples(struct metrics *metrics, const struct metric_kind *kind)
{
	size_t i = 0;
	while (i < metrics->n && metrics->all[i].kind != kind)
		i++;
	assert(i < METRICS_MAX);
	if (i == metrics->n)
		metrics->all[metrics->n++] =
			(struct metric){.kind = kind, .samples = TEXT(METRICS_ANSWER_BYTES_MAX)};
	return &metrics->all[i].samples;
}

void metrics_add(struct metrics *metrics, const struct metric_kind *kind, const char *labels,
	const char *more, const char *format, ...)
{
	struct text *samples = find_or_add_samples(metrics, kind);
	va_list ap;
	text_addf(samples, "%s{%s%s%s} ", kind->name, labels, *more ? "," : "", more);
	va_start(ap, format);
	text_addfv(samples, format, ap);
	va_end(ap);
	text_add_char(samples, '\n');
}

void metrics_add_all(struct metrics *metrics, const struct metrics *more)
{
	for (size_t i = 0; i < more->n; i++)
		text_add(find_or_add_samples(metrics, more->all[i].kind),
			text_string(&more->all[i].samples));
}

void metrics_text(const struct metrics *metrics, struct text *ret)
{
	for (size_t i = 0; i < metrics->n; i++) {
		const struct metric *metric = &metrics->all[i];
		const char *name = metric->kind->name;
		text_addf(ret, "# HELP %s %s\n# TYPE %s %s\n%s", name, metric->kind->help, name,
			metric->kind->type, text_string(&metric->samples));
		if (metric->samples.error)
			ret->error = metric->samples.error;
	}
}

void metrics_clear(struct metrics *metrics)
{
	while (metrics->n)
		text_clear(&metrics->all[--metrics->n].samples);
}

/* Adds the value of a label, escaped as Prometheus wants it. */
static void add_label_value(struct text *t, const char *bytes)
{
	struct text readable = TEXT(METRICS_BYTES_MAX);
	/* The file has to be UTF-8, but the names of files and keys may have other bytes. */
	if (utf8_valid(bytes, strlen(bytes)))
		text_add(&readable, bytes);
	else
		text_add_escaped(&readable, bytes, strlen(bytes));
	for (const char *at = text_string(&readable); *at; at++) {
		if (*at == '\n' || *at == '\\' || *at == '"')
			text_add_char(t, '\\');
		text_add_char(t, *at == '\n' ? 'n' : *at);
	}
	text_clear(&readable);
}

void metrics_add_labels(struct text *t, const struct push_options *options)
{
	const char *prefix = options->run.prefix;
	if (options->job) {
		text_add(t, "job=\"");
		add_label_value(t, options->job);
		text_add(t, "\",");
	}
	text_add(t, "target=\"s3://");
	add_label_value(t, options->run.bucket);
	text_add(t, *prefix ? "/" : "");
	add_label_value(t, prefix);
	text_add_char(t, '"');
}

static void add_attribute(json_t *attributes, const char *key, const char *value)
{
	json_array_append_new(
		attributes, json_pack("{s:s, s:{s:s}}", "key", key, "value", "stringValue", value));
}

/* Reads one label, key="value", and removes the escapes of add_label_value(). Returns what is after
 * it. */
static const char *read_label(const char *at, struct text *key, struct text *value)
{
	const size_t n = strcspn(at, "=");
	text_add_bytes(key, at, n);
	for (at += n + strlen("=\""); *at && *at != '"'; at++) {
		const bool is_escaped = *at == '\\' && at[1];
		if (is_escaped)
			at++; /* skips the backslash */
		text_add_char(value, (is_escaped && *at == 'n') ? '\n' : *at);
	}
	return at + 1; /* after the '"' */
}

/* Makes a data point of OTLP of one line of samples, "name{key="value",key="value"} value". The
 * caller owns the reference. */
static json_t *read_point(const char *line, const char *now_ns)
{
	json_t *attributes = json_array();
	const char *at = strchr(line, '{') + 1; /* metrics_add() has written a '{' and a '}' */
	while (*at != '}') {
		struct text key = TEXT(METRICS_BYTES_MAX), value = TEXT(METRICS_BYTES_MAX);
		at = read_label(at, &key, &value);
		if (*at == ',') /* another label follows */
			at++;
		/* A receiver that makes labels for Prometheus uses `job` for the service. So our
		 * label `job` is sent as `exported_job`, as Prometheus itself renames it where it
		 * has a `job` of its own. */
		const bool is_job = strcmp(text_string(&key), "job") == 0;
		add_attribute(attributes, is_job ? "exported_job" : text_string(&key),
			text_string(&value));
		text_clear(&key);
		text_clear(&value);
	}
	return json_pack("{s:o, s:s, s:f}", "attributes", attributes, "timeUnixNano", now_ns,
		"asDouble", strtod(at + 1, NULL));
}

char *metrics_otlp(const struct metrics *metrics)
{
	char now_ns[24], host[HOST_NAME_BYTES];
	struct problem no_name;
	json_t *list = json_array(), *about = json_array();
	snprintf(now_ns, sizeof now_ns, "%lld", (long long)clock_wall_ns());
	for (size_t i = 0; i < metrics->n; i++) {
		const struct metric *metric = &metrics->all[i];
		json_t *points = json_array();
		const char *line = text_string(&metric->samples);
		for (; *line; line = strchr(line, '\n') + 1)
			json_array_append_new(points, read_point(line, now_ns));
		json_array_append_new(list,
			json_pack("{s:s, s:s, s:{s:o}}", "name", metric->kind->name, "description",
				metric->kind->help, "gauge", "dataPoints", points));
	}
	add_attribute(about, "service.name", "s3once");
	add_attribute(about, "service.version", s3once_version());
	if (host_name_short(host, &no_name) == 0) {
		add_attribute(about, "service.instance.id", host);
		add_attribute(about, "host.name", host);
	}
	return json_line(json_pack("{s:[{s:{s:o}, s:[{s:{s:s}, s:o}]}]}", "resourceMetrics",
		"resource", "attributes", about, "scopeMetrics", "scope", "name", "s3once",
		"metrics", list));
}

/* Finds the value of a metric with exactly these labels in the text of an earlier file. Returns
 * false, and leaves *ret as it is, if there is none. */
static bool find_time(const char *text, const char *name, const char *labels, int64_t *ret)
{
	struct text begin = TEXT(METRICS_BYTES_MAX);
	text_addf(&begin, "\n%s{%s} ", name, labels);
	const char *at = begin.error ? NULL : strstr(text, text_string(&begin));
	const bool is_there = at && sscanf(at + begin.len, "%" SCNd64, ret) == 1;
	text_clear(&begin);
	return is_there;
}

/* Adds the counts of files, bytes and requests of a run. */
static void add_counts(struct metrics *m, const char *labels, const struct s3once_push *push,
	const struct s3once_counts *c)
{
	const uint64_t settled = s3once_counts_settled(c);
	const char *kind;
	uint64_t count;
	char label[96];
	for (const struct counter *counter = run_counters; counter->name; counter++) {
		/* The metrics say "link" where JSON says "links". Both names are documented. */
		const bool is_links = counter->offset == offsetof(struct s3once_counts, links);
		snprintf(label, sizeof label, "result=\"%s\"", is_links ? "link" : counter->name);
		if (counter->kind != COUNTS_SOMETHING)
			metrics_add(
				m, &of_files, labels, label, "%" PRIu64, counter_value(counter, c));
	}
	metrics_add(m, &of_files, labels, "result=\"unfinished\"", "%" PRIu64,
		c->found > settled ? c->found - settled : 0);
	metrics_add(m, &of_bytes, labels, "kind=\"found\"", "%" PRIu64, c->bytes_found);
	metrics_add(m, &of_bytes, labels, "kind=\"settled\"", "%" PRIu64, c->bytes_settled);
	metrics_add(m, &of_bytes, labels, "kind=\"sent\"", "%" PRIu64, c->bytes_sent);
	for (size_t i = 0; (kind = s3once_push_requests(push, i, &count)); i++) {
		snprintf(label, sizeof label, "operation=\"%s\"", kind);
		if (count)
			metrics_add(m, &of_requests, labels, label, "%" PRIu64, count);
	}
}

/* Returns the time of the oldest file that is not in S3, in seconds since 1970; INT64_MAX: there is
 * none. A run that did not see all files may not know of the oldest one, so the older of its time
 * and that of the run before stays. */
static int64_t find_oldest_unshipped(
	const struct s3once_counts *c, bool is_partial, const char *labels, const char *earlier)
{
	const bool saw_all = c && c->scan_complete && !is_partial;
	int64_t oldest = INT64_MAX, before = INT64_MAX;
	if (c && c->oldest_unshipped_ns != INT64_MAX)
		oldest = c->oldest_unshipped_ns / (int64_t)NS_PER_S;
	if (!saw_all)
		find_time(earlier, oldest_unshipped.name, labels, &before);
	return before < oldest ? before : oldest;
}

/* Adds all metrics of a run that has ended. is_partial: the run looked only at some folders.
 * `earlier` is the text that metrics_text() made of the metrics of the run before. */
static void add_run(struct metrics *m, const struct s3once_push *push, bool is_partial,
	int exit_code, const char *labels, const char *earlier)
{
	const struct s3once_counts *c = push ? s3once_push_counts(push) : NULL;
	const int64_t now_s = clock_wall_s();
	const int64_t oldest = find_oldest_unshipped(c, is_partial, labels, earlier);
	char build[128];
	/* The last success is that of this run, or else the last one that is known. */
	int64_t success_s = now_s;
	bool has_success = exit_code == S3ONCE_EXIT_OK;
	if (!has_success)
		has_success = find_time(earlier, last_success.name, labels, &success_s);
	else if (c && c->repeats_s) /* an earlier run has uploaded the pipe of this run */
		success_s = c->repeats_s;
	if (has_success)
		metrics_add(m, &last_success, labels, "", "%" PRId64, success_s);
	metrics_add(m, &last_run, labels, "", "%" PRId64, now_s);
	metrics_add(m, &exit_status, labels, "", "%d", exit_code);
	metrics_add(m, &duration, labels, "", "%.3f", c ? c->seconds : 0);
	if (oldest != INT64_MAX)
		metrics_add(m, &oldest_unshipped, labels, "", "%" PRId64, oldest);
	if (c && c->oldest_waiting_ns != INT64_MAX)
		metrics_add(m, &oldest_waiting, labels, "", "%" PRId64,
			c->oldest_waiting_ns / (int64_t)NS_PER_S);
	if (c)
		add_counts(m, labels, push, c);
	snprintf(build, sizeof build, "version=\"%s\",commit=\"%s\"", s3once_version(),
		VERSION_COMMIT);
	metrics_add(m, &build_info, labels, build, "1");
}

/* Locks the folder of the metrics file, so that runs that end together read and replace the file
 * one after the other. Otherwise one run could put back a time that another one has just replaced.
 * The file itself cannot be locked, since each run replaces it. A run that does not get the lock
 * within two seconds, or may not read the folder, goes on without the lock. Returns a descriptor to
 * close, or -1. */
static int lock_folder(const char *path)
{
	char *folder = path_folder(path);
	const int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	free(folder);
	for (int tries = 0; fd >= 0 && tries < LOCK_TRIES; tries++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
			break;
		uv_sleep(LOCK_AGAIN_MS);
	}
	return fd;
}

int metrics_write(const struct push_options *options, struct metrics *metrics,
	const struct s3once_push *push, int exit_code, struct problem *ret_problem)
{
	struct text text = TEXT(METRICS_BYTES_MAX), earlier = text, labels = text; /* all empty */
	struct metrics made = {0};
	const char *path = options->metrics_file;
	const int lock = path ? lock_folder(path) : -1;
	metrics_add_labels(&labels, options);
	text_add_char(&earlier, '\n'); /* find_time() wants one before each line */
	/* If an earlier file cannot be read, its times are lost. */
	if (path)
		named_file_read(path, &earlier, NULL);
	else if (metrics)
		metrics_text(metrics, &earlier);
	const bool is_partial = options->run.folders != NULL;
	add_run(&made, push, is_partial, exit_code, text_string(&labels), text_string(&earlier));
	metrics_text(&made, &text);
	int error = text.error;
	if (path && !error)
		error = replace_file(path, text.data, text.len, 0644, REPLACE_SYNCED);
	if (lock >= 0)
		close(lock);
	if (error && path)
		problem_set(ret_problem, "--metrics: cannot write %s: %s; %s", quote(path).text,
			strerror(-error),
			error == -ENOENT ? "make its directory, or name the one that node_exporter "
					   "reads"
					 : "the file is as it was");
	/* *metrics is also replaced if the file could not be written, since it may be served and
	 * sent. */
	if (metrics && !text.error) {
		metrics_clear(metrics);
		metrics_add_all(metrics, &made);
	}
	metrics_clear(&made);
	text_clear(&earlier);
	text_clear(&labels);
	text_clear(&text);
	return error;
}
