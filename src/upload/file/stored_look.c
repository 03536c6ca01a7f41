#include "upload/file/stored_look.h"
#include "base/log.h"
#include "base/quote.h"
#include "s3/s3_kept.h"
#include "upload/file/worker.h"
#include <ctype.h>
#include <string.h>

#define ATTEMPTS 3 /* the file is in already, so that nobody should wait long for its settings */

/* The characters of a key that a URL has to encode. Those that are not ASCII count as one. */
struct characters {
	uint64_t of[2];
};

static struct characters characters_of(const char *key)
{
	struct characters set = {0};
	for (const char *at = key; *at; at++) {
		const unsigned c = (unsigned char)*at & 0x80 ? 0 : (unsigned char)*at;
		if (!isalnum((int)c) && (!c || !strchr("-._~/", (int)c)))
			set.of[c / 64] |= UINT64_C(1) << c % 64;
	}
	return set;
}

static bool are_new(struct stored_seen *seen, const struct characters *set)
{
	return (set->of[0] & ~atomic_load(&seen->characters[0])) ||
	       (set->of[1] & ~atomic_load(&seen->characters[1]));
}

static void note(struct stored_seen *seen, const struct characters *set)
{
	atomic_fetch_or(&seen->characters[0], set->of[0]);
	atomic_fetch_or(&seen->characters[1], set->of[1]);
}

static const char *lack_of(enum s3_kept kind)
{
	switch (kind) {
	case S3_KEPT_METADATA:
		return "does not have all of this metadata";
	case S3_KEPT_TAGS:
		return "does not have all of these tags";
	case S3_KEPT_LOCK_MODE:
	case S3_KEPT_LOCK_UNTIL:
	case S3_KEPT_LOCK_HOLD:
		return "does not show it, or these credentials lack s3:GetObjectRetention and "
		       "s3:GetObjectLegalHold";
	default:
		return "does not have this value";
	}
}

static void warn(const struct worker *worker, const struct file *file, enum s3_kept kind,
	const struct s3_kept_look *look)
{
	const char *name = s3_kept_setting(kind);
	const bool is_class = kind == S3_KEPT_CLASS;
	const char *value = is_class ? s3_headers_value(file->target.headers, name) : NULL;
	struct problem problem;
	problem_set(&problem,
		"the server ignored --%s%s%s: the object of %s %s%s; leave the option out, or use a "
		"server that keeps it (of the objects sent %s, only this one was looked at)",
		name, value ? " " : "", value ? value : "", quote(file->candidate->path).text,
		is_class ? "is stored as " : lack_of(kind),
		is_class ? quote(look->storage_class).text : "",
		file->sent_part_bytes ? "in parts" : "whole");
	report_run(&worker->run->report, S3ONCE_EVENT_WARNING, &problem);
}

static void tell_settings(const struct worker *worker, const struct file *file,
	const struct s3_kept_look *look, const struct problem *problem)
{
	const unsigned reported = atomic_fetch_or(&worker->run->stored.lacks, look->lacks);
	for (unsigned kind = 0; kind < S3_KEPT_KINDS; kind++) {
		if (look->lacks & ~reported & S3_KEPT_BIT(kind))
			warn(worker, file, (enum s3_kept)kind, look);
		else if (look->unknown & S3_KEPT_BIT(kind))
			log_info("whether the server keeps --%s could not be looked at: %s",
				s3_kept_setting((enum s3_kept)kind), problem->text);
	}
}

enum step stored_nowhere(struct worker *worker, struct file *file)
{
	struct problem problem;
	problem_set(&problem,
		"uploaded, but there is no object %s: somebody deleted it, or the server stored it "
		"under another key, perhaps in place of another object (s3once doctor tries keys "
		"with unusual characters; s3once verify --head shows what else differs)",
		quote(file->target.key).text);
	return file_fail(worker, file, &problem);
}

/* Without s3:GetObject nobody can see it. The reply to the upload has to do then. */
static enum step not_allowed(
	struct worker *worker, const struct file *file, const struct problem *why)
{
	struct problem problem = *why;
	problem_prefix(&problem,
		"whether the object %s is found under its key cannot be seen without s3:GetObject "
		"(s3once doctor tries such keys)",
		quote(file->target.key).text);
	report_run(&worker->run->report, S3ONCE_EVENT_WARNING, &problem);
	return STEP_NEXT;
}

enum step stored_look(struct worker *worker, struct file *file)
{
	struct run *run = worker->run;
	struct stored_seen *seen = &run->stored;
	const struct characters set = characters_of(file->target.key);
	struct s3_kept_look look;
	struct problem problem = {0};
	if (s3_is_aws(run->s3))
		return STEP_NEXT;
	unsigned asked = s3_kept_asked(file->target.headers);
	asked &= ~atomic_fetch_or(&seen->settings[file->sent_part_bytes != 0], asked);
	const bool has_new = are_new(seen, &set);
	if (!asked && !has_new)
		return STEP_NEXT;
	struct call_limits limits = run_limits(run);
	if (!has_new) {
		limits.attempts = ATTEMPTS;
		limits.patience_ms = 0;
	}
	s3_look_at_kept(worker->s3, &file->target, asked, &limits, &look, &problem);
	if (look.head == OUTCOME_ABSENT)
		return stored_nowhere(worker, file);
	tell_settings(worker, file, &look, &problem);
	if (look.head == OUTCOME_OK || look.head == OUTCOME_DENIED)
		note(seen, &set);
	if (!has_new || look.head == OUTCOME_OK)
		return STEP_NEXT;
	return look.head == OUTCOME_DENIED ? not_allowed(worker, file, &problem)
					   : file_outcome(worker, file, look.head, &problem);
}
