/* What a watch tells Prometheus of itself, besides the metrics of its passes. */
#include "cli/watch/watch_metrics.h"
#include "base/log.h"
#include "base/quote.h"
#include "cli/push/metrics.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LABELS_BYTES_MAX 8192
#define JOB_BYTES_MAX    (512U << 10)

static void add_metric(struct text *t, const char *name, const char *type, const char *help)
{
	text_addf(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void add_labels(const struct job *job, struct text *ret)
{
	const struct s3once_options *o = &job->options.run;
	metrics_add_labels(ret, job->name, o->bucket, o->prefix);
}

static void add_passes(const struct watched_sums *sums, const char *labels, struct text *ret)
{
	static const char name[] = "s3once_watch_passes_total";
	add_metric(ret, name, "counter",
		"Passes since the service began, over all files or over some folders.");
	text_addf(ret, "%s{%s,over=\"all\"} %" PRIu64 "\n", name, labels, sums->whole);
	text_addf(ret, "%s{%s,over=\"some\"} %" PRIu64 "\n", name, labels,
		sums->passes - sums->whole);
}

static void add_sums(const struct watched *job, struct text *ret)
{
	struct watched_sums sums = {0};
	struct text labels = TEXT(LABELS_BYTES_MAX);
	watched_add(job, &sums);
	add_labels(watched_job(job), &labels);
	const struct {
		const char *name, *type, *help;
		uint64_t value;
	} metrics[] = {
		{"s3once_watch_folders", "gauge", "Folders whose changes the kernel tells of.",
			sums.folders},
		{"s3once_watch_failed_passes_total", "counter",
			"Passes since the service began that ended with another exit status than 0.",
			sums.failed},
		{"s3once_watch_uploaded_files_total", "counter",
			"Files that were uploaded since the service began.", sums.files},
		{"s3once_watch_uploaded_bytes_total", "counter", "Bytes of these files.",
			sums.bytes},
	};
	add_passes(&sums, text_string(&labels), ret);
	for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
		add_metric(ret, metrics[i].name, metrics[i].type, metrics[i].help);
		text_addf(ret, "%s{%s} %" PRIu64 "\n", metrics[i].name, text_string(&labels),
			metrics[i].value);
	}
	text_clear(&labels);
}

void watch_metrics(struct watched *const *jobs, size_t n, struct text *ret)
{
	struct text *texts = calloc(n, sizeof *texts);
	const char **strings = calloc(n, sizeof *strings);
	for (size_t i = 0; texts && strings && i < n; i++) {
		texts[i] = TEXT(JOB_BYTES_MAX);
		text_add(&texts[i], watched_metrics(jobs[i]));
		add_sums(jobs[i], &texts[i]);
		strings[i] = text_string(&texts[i]);
	}
	if (texts && strings)
		metrics_merge(strings, n, ret);
	for (size_t i = 0; texts && i < n; i++)
		text_clear(&texts[i]);
	free(strings);
	free(texts);
}

bool watch_metrics_clash(const struct job *a, const struct job *b)
{
	struct text labels = TEXT(LABELS_BYTES_MAX), others = TEXT(LABELS_BYTES_MAX);
	add_labels(a, &labels);
	add_labels(b, &others);
	const bool clash = strcmp(text_string(&labels), text_string(&others)) == 0;
	if (clash)
		log_error(
			"watch: --metrics-listen: two jobs are called %s and have the same target, so "
			"that their metrics could not be told from each other: rename one of the files",
			quote(a->name).text);
	text_clear(&labels);
	text_clear(&others);
	return clash;
}
