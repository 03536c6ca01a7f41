#include "upload/run_job.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/quote.h"
#include "lease/process.h"
#include "marks/job_row.h"
#include <string.h>

#define PATIENCE_NS (3 * NS_PER_S)

/* A directory by its path, files by their folder, since each night's files have other names. What
 * is not there goes by the name that was given. */
static void add_source(struct text *t, const struct run *run, size_t i)
{
	const char *path = scan_source_path(run->scan, i);
	const bool is_folder_of_file =
		path != run->options.sources[i] && !scan_source_is_directory(run->scan, i);
	struct text name = TEXT(8192);
	text_addf(&name, "%s%s ", path, is_folder_of_file ? "/*" : "");
	/* Files of one folder come one after the other. */
	if (t->len < name.len || strcmp(t->data + t->len - name.len, text_string(&name)) != 0)
		text_add(t, text_string(&name));
	text_clear(&name);
}

static void add_target(struct text *t, const struct run *run)
{
	const char *prefix = run->options.prefix;
	text_addf(t, "s3://%s", run->options.bucket);
	if (prefix && *prefix)
		text_addf(t, "/%s", prefix);
}

static void make_key(const struct run *run, struct job_key *ret)
{
	struct process self;
	struct text name = TEXT(32U << 10);
	process_self(&self);
	if (run->options.job)
		text_add(&name, run->options.job);
	for (size_t i = 0; !run->options.job && i < run->options.n_sources; i++)
		add_source(&name, run, i);
	if (!run->options.job)
		add_target(&name, run);
	job_key_make(self.host, text_string(&name), ret);
	text_clear(&name);
}

void run_job_begin(struct run *run, struct store_conn *conn, struct call_limits limits)
{
	limits.deadline_ns = clock_boot_ns() + PATIENCE_NS;
	struct job_key key;
	struct problem problem = {0};
	if (run->options.folders)
		return;
	make_key(run, &key);
	if (job_row_begin(conn, &key, session_id(run->session), &limits, &problem) != OUTCOME_OK)
		log_info("s3once fleet does not show this run while it lasts: %s", problem.text);
}

static void warn_of_row(struct run *run, const struct problem *problem)
{
	char sentence[PROBLEM_SENTENCE_MAX];
	struct problem said;
	problem_format(problem, sentence, sizeof sentence);
	problem_set(&said,
		"s3once fleet does not show how this run ended, since the row of its job cannot be "
		"written: %s",
		sentence);
	report_run(&run->report, S3ONCE_EVENT_WARNING, &said);
}

void run_job_end(
	struct run *run, struct store_conn *conn, const char *session, enum s3once_exit exit)
{
	const struct s3once_counts counts = report_get(&run->report);
	const struct call_limits limits = {.deadline_ns = clock_boot_ns() + PATIENCE_NS};
	struct text target = TEXT(8192), readable = TEXT(32U << 10);
	struct text failures = TEXT(REPORT_FAILURES_MAX + 1);
	struct job_key key;
	struct problem problem = {0}, error;
	if (run->options.folders)
		return;
	make_key(run, &key);
	add_target(&target, run);
	text_add_escaped_string(&readable, text_string(&target));
	report_last_error(&run->report, &error);
	report_failures(&run->report, &failures);
	const struct job_end end = {.target = text_string(&readable),
		.session = session,
		.error = exit == S3ONCE_EXIT_OK ? "" : error.text,
		.failures = exit == S3ONCE_EXIT_OK ? "" : text_string(&failures),
		.exit = (int)exit,
		.uploaded = counts.uploaded,
		.failed = counts.failed + counts.changed + counts.not_removed,
		.bytes = counts.bytes_uploaded};
	const enum outcome o = job_row_end(conn, &key, &end, &limits, &problem);
	/* Why the services cannot be used has been said then. */
	if (o != OUTCOME_OK && exit == S3ONCE_EXIT_SETUP)
		log_info("the row of this job cannot be written: %s", problem.text);
	else if (o != OUTCOME_OK)
		warn_of_row(run, &problem);
	text_clear(&target);
	text_clear(&readable);
	text_clear(&failures);
}
