/* The last lines of a run. */
#include "base/text.h"
#include "cli/human_figures.h"
#include "cli/push/people.h"
#include <string.h>

static void add_target(struct text *t, const struct people *people)
{
	text_addf(t, "s3://%s", people->bucket);
	if (*people->prefix)
		text_add_char(t, '/');
	text_add_escaped_string(t, people->prefix);
}

/* Files that are known to be in S3. */
static uint64_t in_s3(const struct s3once_counts *c)
{
	return c->uploaded + c->adopted + c->refreshed + c->skipped;
}

/* The last line of the summary, which says how the run ended. */
static void add_verdict(
	struct text *t, const struct people *people, const struct s3once_counts *c, int exit_code)
{
	uint64_t there = in_s3(c);
	uint64_t wanted =
		c->found - c->links - c->young - c->oversized - c->undersized - c->special;
	people_add_job(t, people);
	if (people->dry_run) {
		text_add(t, "dry run: would upload ");
		human_things(t, c->planned, "file");
		text_add(t, " (");
		human_bytes(t, people->planned_bytes);
		text_add(t, ") to ");
	} else if (!wanted && c->scan_complete) {
		text_add(t, "found no files for ");
	} else {
		if (there == wanted && c->scan_complete && exit_code == 0)
			text_add(t, wanted == 1 ? "" : "all ");
		human_count(t, there);
		if (there != wanted) {
			text_add(t, " of ");
			human_count(t, wanted);
		}
		if (there == wanted && exit_code == 0)
			text_add(t, wanted == 1 ? " file is in " : " files are in ");
		else
			text_add(t, wanted == 1 ? " file is verified to be in "
						: " files are verified to be in ");
	}
	add_target(t, people);
	if (c->outdated) {
		text_add(t, "; ");
		human_count(t, c->outdated);
		text_add(t, c->outdated == 1
				    ? " has changed since and stays as it was uploaded"
				    : " have changed since and stay as they were uploaded");
		text_add(t, " (--if-changed=skip)");
	}
	if (!c->scan_complete)
		text_add(t, "; the run ended before all files were listed");
}

static void add_uploaded(struct text *t, const struct s3once_counts *c)
{
	text_add(t, "uploaded ");
	human_count(t, c->uploaded);
	text_add(t, " (");
	human_bytes(t, c->bytes_uploaded);
	text_add(t, ") in ");
	human_seconds(t, c->seconds);
	if (c->seconds > 0.5 && c->bytes_moved) {
		text_add(t, ", ");
		human_bytes(t, (uint64_t)((double)c->bytes_moved / c->seconds));
		text_add(t, "/s");
	}
	if (c->bytes_kept) {
		text_add(t, "; S3 keeps ");
		human_bytes(t, c->bytes_kept);
		text_add(t, " of unfinished files, and the next run continues from there");
	}
}

static void add_counts(struct text *t, const struct people *people, const struct s3once_counts *c)
{
	const struct {
		const char *words;
		uint64_t n;
	} counts[] = {
		{"uploaded before and not looked at again", c->skipped},
		{"changed and kept as they are in S3", c->outdated},
		{"already in S3", c->adopted},
		{"same content with a new modification time", c->refreshed},
		{"changed and not replaced", c->changed},
		{"failed", c->failed},
		{"held by other uploaders", c->held},
		{"younger than --min-age or still written to", c->young},
		{"larger than --max-size", c->oversized},
		{"smaller than --min-size", c->undersized},
		{"symbolic links skipped", c->links},
		{"sockets, named pipes and devices skipped", c->special},
		{"removed from this host", c->removed},
		{"moved away", c->moved},
		{"due, but kept for now", c->kept},
		{"due, but not removed", c->not_removed},
		{"would be removed", c->removable},
	};
	if (!people->dry_run)
		add_uploaded(t, c);
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		if (!counts[i].n)
			continue;
		text_addf(t, "%s%s ", t->len ? "; " : "", counts[i].words);
		human_count(t, counts[i].n);
	}
}

static void tell_unprinted(struct people *people)
{
	for (size_t i = 0; i < people->errors.n && !people->verbose; i++) {
		const char *sentence = people->errors.kinds[i].sentence;
		const uint64_t n = alike_unprinted(&people->errors, i);
		struct text count = TEXT(64);
		human_count(&count, n);
		if (n)
			output_say(people->output,
				"error: %s more %s the same error: %s (-v names each)",
				text_string(&count), n == 1 ? "file has" : "files have",
				sentence ? sentence : "");
		text_clear(&count);
	}
}

/* Cron mails whatever is printed. So with --quiet there is one line, and only if something is
 * wrong. */
static void tell_in_one_line(
	struct people *people, const struct s3once_counts *counts, int exit_code)
{
	struct text verdict = TEXT(PEOPLE_LINE_BYTES_MAX), t = TEXT(PEOPLE_LINE_BYTES_MAX);
	add_verdict(&verdict, people, counts, exit_code);
	add_counts(&t, people, counts);
	output_say(people->output, "%s%s%s", text_string(&verdict), t.len ? "; " : "",
		text_string(&t));
	text_clear(&verdict);
	text_clear(&t);
}

static const char *limit_sentence(enum s3once_limited_by limit)
{
	static const char *const sentences[] = {
		[S3ONCE_LIMITED_BY_FILES] = "there were too few files to need more",
		[S3ONCE_LIMITED_BY_CEILING] = "which is the limit of --concurrency",
		[S3ONCE_LIMITED_BY_LATENCY] =
			("limited by latency: the services and the marks did not answer more of "
			 "them sooner"),
		[S3ONCE_LIMITED_BY_THROTTLING] = "limited by throttling",
		[S3ONCE_LIMITED_BY_CPU] = "limited by this host's CPUs",
		[S3ONCE_LIMITED_BY_DISK] = "limited by the disk that the files are read from",
		[S3ONCE_LIMITED_BY_MEMORY] = "limited by --memory",
		[S3ONCE_LIMITED_BY_DESCRIPTORS] =
			"limited by the file descriptors: raise ulimit -Hn",
		[S3ONCE_LIMITED_BY_THREADS] =
			("limited by the threads that could be started: raise ulimit -u and -v or "
			 "the container's limit of processes"),
		[S3ONCE_LIMITED_BY_BANDWIDTH] = "limited by the bandwidth limit of --bwlimit",
	};
	return (size_t)limit < sizeof sentences / sizeof *sentences ? sentences[limit] : "";
}

static void tell_concurrency(struct people *people, const struct s3once_counts *c)
{
	struct text t = TEXT(1024);
	text_addf(
		&t, "up to %u requests at once; %s", c->concurrency, limit_sentence(c->limited_by));
	output_result(people->output, text_string(&t));
	text_clear(&t);
}

static void tell_manifest(struct people *people, const char *key)
{
	struct text t = TEXT(PEOPLE_LINE_BYTES_MAX);
	if (!*key)
		return;
	text_addf(&t, "manifest: s3://%s/", people->bucket);
	text_add_escaped_string(&t, key);
	output_result(people->output, text_string(&t));
	text_clear(&t);
}

static void tell_in_full(struct people *people, const struct s3once_counts *counts, int exit_code)
{
	struct text t = TEXT(PEOPLE_LINE_BYTES_MAX);
	add_verdict(&t, people, counts, exit_code);
	output_result(people->output, text_string(&t));
	text_reset(&t);
	add_counts(&t, people, counts);
	if (t.len)
		output_result(people->output, text_string(&t));
	text_clear(&t);
	if (people->verbose && counts->concurrency)
		tell_concurrency(people, counts);
}

static bool has_something_happened(const struct s3once_counts *c, int exit_code)
{
	return exit_code != S3ONCE_EXIT_OK || c->uploaded || c->adopted || c->refreshed ||
	       c->removed || c->moved;
}

void people_summary(struct people *people, const struct people_end *end)
{
	const struct s3once_counts *counts = end->counts;
	const int exit_code = end->exit_code;
	/* What keeps a run from beginning was printed, and there is nothing to sum up. */
	const bool never_began =
		exit_code == S3ONCE_EXIT_SETUP && !in_s3(counts) && !counts->bytes_sent;
	tell_unprinted(people);
	alike_clear(&people->errors);
	const bool is_idle = people->said && !has_something_happened(counts, exit_code);
	if (people->only_stderr || never_began || is_idle)
		return;
	if (!people->quiet) {
		tell_in_full(people, counts, exit_code);
		tell_manifest(people, end->manifest);
	} else if (exit_code != S3ONCE_EXIT_OK || people->has_warned) {
		tell_in_one_line(people, counts, exit_code);
	}
}
