/* `s3once forget`: removes the marks of keys or below prefixes. It prints the forgotten marks, and
 * the kept ones with the reason. src/audit/forget.c decides which may be forgotten. */
#include "base/must_have.h"
#include "cli/audit/audit_command.h"
#include "cli/human_figures.h"
#include "cli/signals.h"
#include <stdlib.h>
#include <string.h>

struct forgetting {
	int only_missing, yes, dry_run;
	uint64_t older_than_ms;
	/* Used while the command runs: */
	struct command_frame *frame;
	struct audit_bucket bucket;
	struct fates fates;
	bool has_missed; /* not all that was to be forgotten is: an operand has no mark, or a mark
			    of it was kept */
};

static const struct option which_options[] = {
	FLAG("missing", offsetof(struct forgetting, only_missing),
		"only done marks whose object is gone; each object is checked right before"),
	VALUE("older-than", DURATION, offsetof(struct forgetting, older_than_ms), "AGE",
		"only marks that have not changed for AGE, such as 400d", .min = 1000),
	FLAG("yes", offsetof(struct forgetting, yes),
		"forget all marks below a prefix; without this, they are only shown", .letter = 'y',
		.removes = true),
	FLAG("dry-run", offsetof(struct forgetting, dry_run),
		"show what would be forgotten, and change nothing", .letter = 'n'),
	{NULL},
};

static const struct option_conflict conflicts[] = {
	{"yes", "dry-run", "one says to do it, the other one not to"},
	{NULL},
};

static const struct command forget_command = {
	.name = "forget",
	.operands = "s3://BUCKET[/KEY-OR-PREFIX]... | --job JOB",
	.takes = {1},
	.about = "Removes marks of files that are done or have failed: of a key, or of all keys\n"
		 "below a prefix. Changes no object. The next run that finds such a file checks\n"
		 "it again, and does not send content that S3 already has. A mark that a run\n"
		 "holds or changes meanwhile stays.\n",
	.groups = (const struct option_group[]){{"Which marks", which_options}, {NULL}},
	.shares = SHARES_JOB | SHARES_MARKS | SHARES_S3 | SHARES_SERVICES | SHARES_KEY_FILE |
		  SHARES_JSON,
	.conflicts = conflicts,
	.examples = "  s3once forget s3://my-bucket/photos/2024/a.jpg\n"
		    "  s3once forget --missing --yes s3://my-bucket/photos\n"
		    "  s3once forget --older-than 400d s3://my-bucket\n\n"
		    "Exit codes: 0 done, or shown; 1 not all of it; 2 usage; 3 setup.\n",
};

/* Returns the options by which marks are forgotten. only_show: they are only shown. */
static struct forget_options options_of(struct forgetting *f, bool only_show)
{
	return (struct forget_options){
		.clearing = {.place = f->bucket.place,
			.only_show = only_show,
			.reporter = {.report = fates_print, .arg = &f->fates}},
		.only_missing = f->only_missing,
		.older_than_s = f->older_than_ms / 1000,
	};
}

/* Forgets the mark of exactly this key. ABSENT: there is none. */
static enum outcome forget_one(struct forgetting *f, const char *key)
{
	const struct forget_options options = options_of(f, f->dry_run);
	const uint64_t kept_before = f->fates.counts[FATE_KEPT];
	const enum outcome o = forget_key(&options, &f->bucket.place.own, key, &f->frame->problem);
	f->has_missed |= f->fates.counts[FATE_KEPT] > kept_before;
	return o;
}

/* Forgets the marks below this key, or only shows them without --yes. */
static enum outcome forget_below(struct forgetting *f, const char *key)
{
	/* --dry-run excludes --yes. */
	const struct forget_options options = options_of(f, !f->yes);
	const uint64_t kept_before = f->fates.counts[FATE_KEPT], all_before = f->fates.all;
	const enum outcome o = forget_prefix(&options, url_prefix(key).text, &f->frame->problem);
	/* With --missing or --older-than, it is no error if all marks are kept, or if there are
	 * none. */
	if (f->only_missing || f->older_than_ms)
		return o;
	/* Marks that are only shown were not to be forgotten. */
	f->has_missed |= f->yes && f->fates.counts[FATE_KEPT] > kept_before;
	if (o == OUTCOME_OK && f->fates.all == all_before) {
		output_message(&f->frame->output,
			"error: there is no mark of s3://%s/%s, and none below it", f->fates.bucket,
			quote(key).text);
		f->has_missed = true;
	}
	return o;
}

/* Forgets the mark of this key or, if there is no such mark, the marks below the key. A key that is
 * "" or ends in a slash can only be a prefix. */
static enum outcome forget_operand(struct forgetting *f, const char *key)
{
	const bool may_be_mark = *key && key[strlen(key) - 1] != '/';
	const enum outcome o = may_be_mark ? forget_one(f, key) : OUTCOME_ABSENT;
	return o == OUTCOME_ABSENT ? forget_below(f, key) : o;
}

/* Prints the number of marks with each fate. */
static void print_counts(struct forgetting *f)
{
	static const enum mark_fate which[] = {
		FATE_FORGOTTEN, FATE_FORGETTABLE, FATE_KEPT, FATE_FAILED};
	const struct fates *fates = &f->fates;
	const struct figure forgettable = human_things(fates->counts[FATE_FORGETTABLE], "mark");
	struct text t = TEXT(400);
	text_addf(&t, "forgot %s, kept %s",
		human_things(fates->counts[FATE_FORGOTTEN], "mark").text,
		human_count(fates->counts[FATE_KEPT]).text);
	if (fates->counts[FATE_FAILED])
		text_addf(&t, ", errors %s", human_count(fates->counts[FATE_FAILED]).text);
	if (fates->counts[FATE_FORGETTABLE])
		text_addf(&t, "; %s would be forgotten%s", forgettable.text,
			f->dry_run ? "" : " with --yes");
	frame_print(f->frame, fates_json(fates, "forget", which, 4), "%s", text_string(&t));
	text_clear(&t);
}

/* Forgets the marks of all operands, prints the sums, and returns the exit code. */
static int forget_all(struct forgetting *f, const struct s3_url *urls)
{
	struct command_frame *frame = f->frame;
	const bool needs_s3 = f->only_missing;
	f->fates.bucket = urls->bucket;
	signals_count("s3once: stopping\n");
	bool ok = needs_s3 ? audit_open(frame, urls->bucket, &f->bucket)
			   : audit_open_marks(frame, urls->bucket, &f->bucket);
	if (ok && needs_s3)
		ok = audit_check_bucket(&f->bucket.place, &f->bucket.place.own, &frame->problem) ==
		     OUTCOME_OK;
	for (int i = 0; i < frame->n_operands && ok; i++)
		ok = forget_operand(f, urls[i].key) == OUTCOME_OK;
	const int signal = signals_restore();
	if (ok || signal || f->fates.all)
		print_counts(f);
	return audit_exit_code(frame, ok, signal, f->has_missed || f->fates.counts[FATE_FAILED]);
}

/* Reads all operands, which have to be of one bucket. False: the frame has the problem. */
static bool read_urls(struct command_frame *frame, struct s3_url *ret_urls)
{
	for (int i = 0; i < frame->n_operands; i++) {
		if (url_parse(frame->operands[i], &ret_urls[i], &frame->problem) < 0)
			return false;
		if (strcmp(ret_urls[i].bucket, ret_urls[0].bucket) != 0) {
			problem_set(&frame->problem,
				"'%s' is in another bucket than '%s': name one",
				quote(frame->operands[i]).text, quote(frame->operands[0]).text);
			return false;
		}
	}
	return true;
}

int forget_main(int argc, char **argv)
{
	struct forgetting f = {0};
	struct command_frame frame = {.command = &forget_command, .values = &f};
	/* There are fewer operands than words, and --job may add one. */
	struct s3_url *urls = must_have(calloc((size_t)argc + 1, sizeof *urls));
	f.frame = f.fates.frame = &frame;
	if (frame_begin(&frame, argc, argv) && read_urls(&frame, urls) &&
		frame_choose_marks(&frame, f.dry_run ? MARKS_READ : MARKS_WRITTEN))
		frame.code = forget_all(&f, urls);
	free(urls);
	return frame_end(&frame);
}
