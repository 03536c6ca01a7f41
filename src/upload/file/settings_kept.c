#include "upload/file/settings_kept.h"
#include "base/log.h"
#include "base/quote.h"
#include "s3/s3_kept.h"
#include "upload/file/worker.h"

#define ATTEMPTS 3 /* the file is in already, so that nobody should wait long for this */

static void warn(const struct worker *worker, const struct file *file, enum s3_kept kind,
	const struct s3_kept_look *look)
{
	static const char *const lacks[] = {
		[S3_KEPT_CLASS] = "is stored as",
		[S3_KEPT_METADATA] = "does not have all of this metadata",
		[S3_KEPT_TAGS] = "does not have all of these tags",
	};
	const char *name = s3_kept_settings[kind];
	const bool is_class = kind == S3_KEPT_CLASS;
	const char *value = is_class ? s3_headers_value(file->target.headers, name) : NULL;
	struct problem problem;
	problem_set(&problem,
		"the server ignored --%s%s%s: the object of %s %s%s%s; leave the option out, or "
		"use a server that keeps it (only this object was looked at)",
		name, value ? " " : "", value ? value : "", quote(file->candidate->path).text,
		lacks[kind], is_class ? " " : "", is_class ? quote(look->storage_class).text : "");
	report_run(&worker->run->report, S3ONCE_EVENT_WARNING, &problem);
}

void settings_look(struct worker *worker, const struct file *file)
{
	struct run *run = worker->run;
	struct s3_kept_look look;
	struct problem problem = {0};
	unsigned asked = s3_kept_asked(file->target.headers);
	if (!asked || s3_is_aws(run->s3))
		return;
	asked &= ~atomic_fetch_or(&run->settings_looked_at, asked);
	if (!asked)
		return;
	struct call_limits limits = run_limits(run);
	limits.attempts = ATTEMPTS;
	limits.patience_ms = 0;
	s3_look_at_kept(worker->s3, &file->target, asked, &limits, &look, &problem);
	for (unsigned kind = 0; kind < S3_KEPT_KINDS; kind++) {
		if (look.lacks & S3_KEPT_BIT(kind))
			warn(worker, file, (enum s3_kept)kind, &look);
		else if (look.unknown & S3_KEPT_BIT(kind))
			log_info("whether the server keeps --%s could not be looked at: %s",
				s3_kept_settings[kind], problem.text);
	}
}
