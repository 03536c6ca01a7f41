#include "upload/feed_tell.h"
#include "base/clock.h"
#include "base/quote.h"

void feed_tell_entry(struct run *run, const struct scan_entry *entry)
{
	static const enum s3once_event_type types[] = {
		[SCAN_PROBLEM] = S3ONCE_EVENT_FAILED,
		[SCAN_LINK] = S3ONCE_EVENT_LINK,
		[SCAN_YOUNG] = S3ONCE_EVENT_YOUNG,
		[SCAN_SPECIAL] = S3ONCE_EVENT_SPECIAL,
	};
	const uint64_t bytes = entry->kind == SCAN_YOUNG ? entry->size : 0;
	const struct report_file about = {entry->path, entry->key, bytes};
	const bool has_problem = entry->kind == SCAN_PROBLEM || entry->kind == SCAN_SPECIAL;
	report_found(&run->report, 1, bytes);
	report_file(&run->report, types[entry->kind], &about, has_problem ? &entry->problem : NULL);
	if (entry->kind == SCAN_YOUNG)
		report_unshipped(&run->report, entry->mtime_ns);
}

void feed_tell_left_out(
	struct run *run, const struct scan_entry *entry, enum s3once_event_type event)
{
	const struct report_file about = {entry->path, entry->key, entry->size};
	report_found(&run->report, 1, 0);
	report_file(&run->report, event, &about, NULL);
}

void feed_tell_future(struct run *run, const struct scan_entry *entry)
{
	struct problem problem;
	char when[32];
	clock_format_iso(entry->mtime_ns / (int64_t)NS_PER_S, when);
	problem_set(&problem,
		"%s was last modified in the future (%s); the age of such files is counted from "
		"the last change of their inode (ctime)",
		quote(entry->path).text, when);
	report_run(&run->report, S3ONCE_EVENT_WARNING, &problem);
}

/* An --exclude may well find nothing to leave out, but an --include stands for something. */
void feed_tell_unmatched(struct run *run)
{
	const struct s3once_options *o = &run->options;
	for (size_t i = 0; run->filter && i < o->n_rules; i++) {
		struct problem problem;
		if (filter_has_matched(run->filter, i))
			continue;
		problem_set(&problem, "--%s %s matches nothing: check the pattern",
			o->rules[i].include ? "include" : "exclude",
			quote(o->rules[i].pattern).text);
		report_run(&run->report,
			o->rules[i].include ? S3ONCE_EVENT_WARNING : S3ONCE_EVENT_NOTE, &problem);
	}
}

void feed_tell_empty(struct run *run, const bool *has_found)
{
	const struct s3once_options *o = &run->options;
	for (size_t i = 0; i < o->n_sources; i++) {
		struct problem problem;
		if (has_found[i] || !scan_source_is_directory(run->scan, i))
			continue;
		problem_set(&problem, "there are no files in %s%s", quote(o->sources[i]).text,
			run->filter ? " but those that --exclude and --include leave out" : "");
		report_run(&run->report, S3ONCE_EVENT_WARNING, &problem);
	}
}
