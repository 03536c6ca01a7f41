/* `s3once forget`: removes marks. */
#include "audit/bucket_known.h"
#include "audit/forget.h"
#include "base/quote.h"
#include "cli/audit/audit_setup.h"
#include "cli/audit/fate_tell.h"
#include "cli/commands.h"
#include "cli/human_figures.h"
#include "cli/job/job_asked.h"
#include "cli/json.h"
#include "cli/signals.h"
#include "scan/key/key.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct forget_command {
	struct access access;
	struct job_asked job;
	int only_missing, yes, dry_run, json;
	uint64_t older_than_ms;
};

static const struct option which_options[] = {
	{.name = "missing",
		.type = OPTION_FLAG,
		.offset = offsetof(struct forget_command, only_missing),
		.help = "only marks that say done, whose object is gone; each\n"
			"is looked for right before"},
	{.name = "older-than",
		.type = OPTION_DURATION,
		.offset = offsetof(struct forget_command, older_than_ms),
		.argument = "AGE",
		.help = "only marks that have not changed for AGE, such as 400d",
		.least = 1000},
	{.name = "yes",
		.letter = 'y',
		.type = OPTION_FLAG,
		.offset = offsetof(struct forget_command, yes),
		.help = "forget all marks below a prefix; without it they are\n"
			"only shown"},
	{.name = "dry-run",
		.letter = 'n',
		.type = OPTION_FLAG,
		.offset = offsetof(struct forget_command, dry_run),
		.help = "show what would be forgotten, and change nothing"},
	{NULL},
};

static const struct option output_options[] = {
	{.name = "json",
		.type = OPTION_FLAG,
		.offset = offsetof(struct forget_command, json),
		.help = "one event a line on standard output, as JSON"},
	{.name = "help", .letter = 'h', .type = OPTION_HELP, .help = "print this and exit"},
	{NULL},
};

static const struct option_conflict conflicts[] = {
	{"yes", "dry-run", "one says to do it, the other one not to"},
	{NULL},
};

enum { GROUPS = 3 + ACCESS_GROUPS };

static struct command forget_command(
	struct option_group groups[static GROUPS], struct forget_command *values)
{
	groups[0] = (struct option_group){"Which marks", which_options, values};
	groups[1] = (struct option_group){NULL, job_asked_options, &values->job};
	access_groups(&values->access, groups + 2);
	groups[2 + ACCESS_GROUPS] = (struct option_group){"Output", output_options, values};
	return (struct command){
		.name = "forget",
		.operands = "s3://BUCKET[/KEY-OR-PREFIX]... | --job JOB",
		.about =
			"Removes marks of files that are done or have failed: of a key, or of all keys\n"
			"below a prefix. No object is changed. A file whose mark is forgotten is looked\n"
			"at again by the next run that finds it; what S3 holds already is not sent again.\n"
			"Runs may go on meanwhile: a mark that one of them holds or changes stays.\n",
		.groups = groups,
		.n_groups = GROUPS,
		.conflicts = conflicts,
		.examples =
			"  s3once forget s3://my-bucket/photos/2024/a.jpg\n"
			"  s3once forget --missing --yes s3://my-bucket/photos\n"
			"  s3once forget --older-than 400d s3://my-bucket\n"
			"\n"
			"Exit codes: 0 done, or shown; 1 not all of it; 2 usage; 3 the marks or the\n"
			"bucket cannot be used. More: man s3once-forget\n",
	};
}

/* What the operands are worked through with. */
struct forgetting {
	const struct forget_command *values;
	struct audit_setup setup;
	struct audit_hand hand;
	struct fate_view view;
	bool has_missed; /* a key that was asked for has no mark, or its mark was kept */
};

static struct forget_options options_of(struct forgetting *f, bool only_show)
{
	return (struct forget_options){
		.place = f->setup.place,
		.only_missing = f->values->only_missing,
		.older_than_s = f->values->older_than_ms / 1000,
		.only_show = only_show,
		.teller = {fate_tell, &f->view},
	};
}

static uint64_t told_so_far(const struct forgetting *f)
{
	uint64_t n = 0;
	for (int fate = 0; fate < FATES; fate++)
		n += fate_count(&f->view, (enum mark_fate)fate);
	return n;
}

/* A prefix as push makes it: "logs" stands for "logs/". */
static enum outcome forget_below(struct forgetting *f, const char *key, struct problem *ret_problem)
{
	const struct forget_options options = options_of(f, !f->values->yes);
	const uint64_t before = told_so_far(f);
	struct text prefix = TEXT(2048);
	key_add_base(&prefix, key);
	enum outcome o = OUTCOME_LOCAL;
	if (prefix.error)
		problem_set(ret_problem, "out of memory");
	else
		o = forget_prefix(&options, text_string(&prefix), ret_problem);
	text_clear(&prefix);
	const bool selects = options.only_missing || options.older_than_s;
	if (o == OUTCOME_OK && told_so_far(f) == before && !selects) {
		output_say(f->view.output,
			"error: there is no mark of s3://%s/%s, and none below it", f->view.bucket,
			quote(key).text);
		f->has_missed = true;
	}
	return o;
}

static enum outcome forget_operand(
	struct forgetting *f, const char *key, struct problem *ret_problem)
{
	const struct forget_options options = options_of(f, f->values->dry_run);
	const uint64_t kept = fate_count(&f->view, FATE_KEPT);
	enum outcome o = OUTCOME_ABSENT;
	if (*key && key[strlen(key) - 1] != '/')
		o = forget_key(&options, &f->hand, key, ret_problem);
	if (fate_count(&f->view, FATE_KEPT) > kept)
		f->has_missed = true;
	return o == OUTCOME_ABSENT ? forget_below(f, key, ret_problem) : o;
}

static void tell_counts(struct forgetting *f)
{
	const uint64_t forgotten = fate_count(&f->view, FATE_FORGOTTEN);
	const uint64_t forgettable = fate_count(&f->view, FATE_FORGETTABLE);
	const uint64_t kept = fate_count(&f->view, FATE_KEPT);
	const uint64_t failed = fate_count(&f->view, FATE_FAILED);
	struct text t = TEXT(400);
	if (f->values->json) {
		json_t *object = json_event("forget");
		json_set_number(object, "forgotten", forgotten);
		json_set_number(object, "forgettable", forgettable);
		json_set_number(object, "kept", kept);
		json_set_number(object, "failed", failed);
		json_print(f->view.output, object);
		return;
	}
	text_add(&t, "forgot ");
	human_things(&t, forgotten, "mark");
	text_add(&t, ", kept ");
	human_count(&t, kept);
	if (failed) {
		text_add(&t, ", errors ");
		human_count(&t, failed);
	}
	if (forgettable) {
		text_add(&t, "; ");
		human_things(&t, forgettable, "mark");
		text_add(&t, f->values->dry_run ? " would be forgotten"
						: " would be forgotten with --yes");
	}
	output_result(f->view.output, text_string(&t));
	text_clear(&t);
}

static bool is_stopped(void *arg)
{
	(void)arg;
	return signals_came() > 0;
}

static int open_all(
	struct forgetting *f, const struct audit_wanted *wanted, struct problem *ret_problem)
{
	int r = audit_setup_open(wanted, &f->setup, ret_problem);
	f->setup.place.limits = (struct call_limits){.abandon = is_stopped};
	if (!r && (r = audit_hand_open(&f->setup.place, &f->hand)))
		problem_set(ret_problem, "out of memory");
	if (!r && wanted->needs_s3 &&
		bucket_is_known(&f->setup.place, &f->hand, ret_problem) != OUTCOME_OK)
		r = -EIO;
	return r;
}

static int forget_all(const struct forget_command *values, const struct marks_place *place,
	const struct s3_url *urls, int n)
{
	struct output output;
	struct problem problem = {0};
	struct forgetting f = {
		.values = values, .view = {&output, urls->bucket, values->json, {0}}};
	const struct audit_wanted wanted = {
		&values->access, place, urls->bucket, values->only_missing};
	output_init(&output);
	signals_count("s3once: stopping\n");
	bool ok = open_all(&f, &wanted, &problem) == 0;
	for (int i = 0; i < n && ok; i++)
		ok = forget_operand(&f, urls[i].key, &problem) == OUTCOME_OK;
	const int stopped_by = signals_restore();
	if (ok || stopped_by)
		tell_counts(&f);
	int code = f.has_missed || fate_count(&f.view, FATE_FAILED) ? S3ONCE_EXIT_FILES
								    : S3ONCE_EXIT_OK;
	if (output_finish(&output) < 0)
		code = S3ONCE_EXIT_FILES;
	if (!ok)
		code = stopped_by ? S3ONCE_EXIT_STOPPED + stopped_by
				  : command_fail("forget", S3ONCE_EXIT_SETUP, &problem);
	audit_hand_clear(&f.hand);
	audit_setup_close(&f.setup);
	return code;
}

/* Reads the operands and the place. 0, or the exit code with a sentence. */
static int read_options_of_forget(const struct forget_command *values, int n, char **operands,
	struct s3_url *ret_urls, struct marks_place *ret_place, struct problem *ret_problem)
{
	if (n == 0)
		problem_set(
			ret_problem, "name what is to be forgotten: s3://BUCKET/KEY, or a prefix");
	for (int i = 0; i < n; i++) {
		if (url_parse(operands[i], &ret_urls[i], ret_problem) < 0)
			return S3ONCE_EXIT_USAGE;
		if (strcmp(ret_urls[i].bucket, ret_urls[0].bucket) != 0) {
			problem_set(ret_problem,
				"'%s' is in another bucket than '%s': one bucket "
				"at a time",
				quote(operands[i]).text, quote(operands[0]).text);
			return S3ONCE_EXIT_USAGE;
		}
	}
	if (n == 0)
		return S3ONCE_EXIT_USAGE;
	return marks_place_chosen(&values->access, values->dry_run, ret_place, ret_problem);
}

int forget_main(int argc, char **argv)
{
	struct forget_command values = {0};
	struct option_group groups[GROUPS];
	struct command command = forget_command(groups, &values);
	struct problem problem = {0};
	struct marks_place place = {0};
	int n = options_parse(&command, argc, argv, &problem);
	if (n >= 0)
		n = job_asked_open(&values.job, &values.access, n, argv, &problem);
	if (n == -ECANCELED) {
		options_help(&command, stdout);
		return S3ONCE_EXIT_OK;
	}
	struct s3_url *urls = calloc((size_t)argc, sizeof *urls);
	int code = n < 0 ? S3ONCE_EXIT_USAGE : S3ONCE_EXIT_SETUP;
	if (n >= 0 && urls)
		code = read_options_of_forget(&values, n, argv, urls, &place, &problem);
	else if (n >= 0)
		problem_set(&problem, "out of memory");
	code = code ? command_fail("forget", code, &problem) : forget_all(&values, &place, urls, n);
	marks_place_clear(&place);
	job_asked_close(&values.job);
	free(urls);
	return code;
}
