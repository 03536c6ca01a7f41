/* `s3once proven` reports whether files are done, so that they may be removed. The library proves
 * each file (s3once_push_prove()). This file finds the options, which are some of push's or those
 * of a job, and prints the answers. The options are always those of a dry run, so nothing is
 * changed. */
#include "base/log.h"
#include "base/must_have.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/human_figures.h"
#include "cli/open_marks.h"
#include "cli/other_tools.h"
#include "cli/push/people.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct proven_options {
	struct push_options push; /* first, as the groups of push want it */
	const char *source;
};

static const struct option which_options[] = {
	VALUE("source", STRING, offsetof(struct proven_options, source), "DIR",
		"they were uploaded as part of the SOURCE DIR\n[each by itself]",
		.only_once = true),
	{NULL},
};

/* The options of push that select the files, the place of their marks and objects, and the output.
 * All others are useless here, or rare enough to be given by a job. */
#define PICKED_MAX 8 /* the most options of one title */
static const struct picked {
	const char *title; /* title of the group; NULL: the options continue the group before */
	const char *names[PICKED_MAX];
} picked[] = {
	{NULL, {"as", "key", "rotated", "exclude", "include", "follow", "compress"}},
	{"Marks and services",
		{"marks", "endpoint-url", "region", "profile", "ca-bundle", "sse-c-key-file"}},
	{"Output", {"json", "verbose", "quiet"}},
};
enum { PICKED = sizeof picked / sizeof *picked };

/* The table of proven's options: its own ones, --job, and those that are picked from push. */
enum { OWN_GROUPS = 2 };
struct proven_table {
	struct option options[PICKED][PICKED_MAX + 1]; /* each ends with a NULL */
	struct option_group groups[OWN_GROUPS + PICKED + 1];
};

/* Makes the table. `asked` gets the argument of --job. */
static void make_table(struct job_asked *asked, struct proven_table *ret)
{
	*ret = (struct proven_table){.groups = {{"Which files", which_options},
					     {.options = job_asked_options, .values = asked}}};
	for (size_t i = 0; i < PICKED; i++) {
		const struct picked *from = &picked[i];
		for (size_t n = 0; n < PICKED_MAX && from->names[n]; n++) {
			struct option_match match;
			must_have(options_find(&push_own_command, from->names[n], &match) ? ret
											  : NULL);
			ret->options[i][n] = *match.option;
			/* An offset in a group of push begins at group->at, and here at 0. */
			ret->options[i][n].offset += match.group->at;
		}
		ret->groups[OWN_GROUPS + i] = (struct option_group){
			.title = from->title, .options = ret->options[i], .has_variables = true};
	}
}

static const struct command proven_command = {
	.name = "proven",
	.operands = "FILE... s3://BUCKET[/PREFIX] | --job JOB",
	.about = "Checks whether the content of each FILE, or of all files in a folder, is in S3:\n"
		 "its mark says done, its content has the checksum of the mark, and S3 has the\n"
		 "object now. Uploads nothing. Give the options of the upload that are listed\n"
		 "below; a job has them all. With a job and without FILE, checks its sources.\n",
	.conflicts = push_conflicts,
	.elsewhere = other_tools_options,
	.larger = &push_own_command,
	.examples =
		"  s3once proven /mnt/disk s3://my-bucket/disk && echo it may be erased\n"
		"  s3once proven --quiet --source /var/log /var/log/app.log.1 s3://my-logs/web1\n"
		"  s3once proven --job nginx /var/log/nginx/access.log.1 && rm …\n\n"
		"Exit codes: 0 all are in S3; 1 one is not; 2 usage; 3 the check could not be\n"
		"made.\n",
};

struct view {
	struct people people;
	const struct push_options *options;
	bool lists_proven;                           /* otherwise only files that are not in S3 */
	bool may_be_parts;                           /* of a folder that was uploaded */
	uint64_t proven, unproven, failed, excluded; /* files */
	uint64_t links, specials;
};

/* Returns whether an event is printed for people. */
static bool is_shown(const struct view *view, const struct s3once_event *event)
{
	switch (event->type) {
	case S3ONCE_EVENT_UNPROVEN:
	case S3ONCE_EVENT_FAILED:
	case S3ONCE_EVENT_FATAL:
	case S3ONCE_EVENT_WARNING:
		return true;
	case S3ONCE_EVENT_EXCLUDED:
		return view->options->verbose;
	case S3ONCE_EVENT_PROVEN:
		return view->lists_proven;
	default:
		return false;
	}
}

/* Counts the file of an event by its answer. */
static void count_event(struct view *view, const struct s3once_event *event)
{
	view->proven += event->type == S3ONCE_EVENT_PROVEN;
	view->unproven += event->type == S3ONCE_EVENT_UNPROVEN;
	view->failed += event->type == S3ONCE_EVENT_FAILED;
	view->excluded += event->type == S3ONCE_EVENT_EXCLUDED;
	view->links += event->type == S3ONCE_EVENT_LINK;
	view->specials += event->type == S3ONCE_EVENT_SPECIAL;
}

static void on_event(void *arg, const struct s3once_event *event)
{
	struct view *view = arg;
	count_event(view, event);
	if (view->options->json)
		json_print(view->people.output, json_of_event(view->options, event));
	/* Links and special files are printed even with --quiet, since the exit status does not
	 * show them. */
	if (event->type == S3ONCE_EVENT_LINK)
		output_message(view->people.output, "warning: %s is a symbolic link, and not in S3",
			escaped(event->path).text);
	if (event->type == S3ONCE_EVENT_SPECIAL)
		output_message(view->people.output, "warning: %s %s, and not in S3",
			escaped(event->path).text, event->text);
	if (is_shown(view, event))
		people_event(&view->people, event);
}

/* Returns whether one of n paths is a folder. */
static bool has_folder_in(char *const *paths, int n)
{
	struct stat st;
	for (int i = 0; i < n; i++)
		if (stat(paths[i], &st) == 0 && S_ISDIR(st.st_mode))
			return true;
	return false;
}

/* Prints the numbers of files as one sentence. */
static void print_sums(const struct view *view)
{
	const bool are_all_proven = !(view->unproven || view->failed || view->excluded);
	struct text others = TEXT(200);
	if (view->unproven)
		text_addf(&others, ", %s %s not", human_things(view->unproven, "file").text,
			view->unproven == 1 ? "is" : "are");
	if (view->failed)
		text_addf(&others, ", %s could not be checked",
			human_things(view->failed, "file").text);
	if (view->excluded)
		text_addf(&others, ", %s %s left out", human_things(view->excluded, "file").text,
			view->excluded == 1 ? "was" : "were");
	if (view->links)
		text_addf(&others,
			"; %s %s not in S3, since push skips %s unless --follow is given",
			human_things(view->links, "symbolic link").text,
			view->links == 1 ? "is" : "are", view->links == 1 ? "it" : "them");
	if (view->specials)
		text_addf(&others, "; %s %s no content",
			human_things(view->specials, "special file").text,
			view->specials == 1 ? "has" : "have");
	output_resultf(view->people.output, "%s%s %s in S3%s",
		are_all_proven && view->proven != 1 ? "all " : "",
		human_things(view->proven, "file").text, view->proven == 1 ? "is" : "are",
		text_string(&others));
	text_clear(&others);
}

/* Returns whether the options name a file of marks that does not exist; then the sentence says so.
 * If the marks cannot be parsed, s3once_push_new() will report it. */
static bool has_missing_marks(const struct s3once_options *options, struct problem *ret_problem)
{
	struct marks_place place;
	const char *spec = options->marks ? options->marks : "local";
	const bool is_parsed = marks_place_parse(spec, &place, ret_problem) == 0;
	const bool are_missing = is_parsed && marks_are_missing(&place, ret_problem);
	marks_place_clear(&place);
	return are_missing;
}

/* Reports the excluded files, and prints the numbers of all files if they were in a folder. */
static void report_totals(
	const struct view *view, const struct push_options *options, bool has_folder)
{
	if (view->excluded)
		output_message(view->people.output,
			"error: %s %s left out by --exclude or --include, and not looked for%s",
			human_things(view->excluded, "file").text,
			view->excluded == 1 ? "was" : "were",
			options->verbose ? "" : " (-v names each)");
	const bool has_files = view->proven || view->unproven || view->failed || view->excluded;
	const bool wants_words = !options->quiet && !options->json;
	if (has_files && has_folder && wants_words)
		print_sums(view);
	if (view->may_be_parts && view->unproven && !view->proven && wants_words)
		output_message(view->people.output,
			"check the keys above, the URL and --marks; if a file was uploaded as a part "
			"of a folder, give that folder with --source");
}

/* Proves files with the options of a run, and prints the answers. may_be_parts: each is a SOURCE of
 * its own here, and may have been uploaded as a part of another one. Returns the exit code. */
static int prove_files(struct command_frame *frame, struct push_options *options,
	char *const *files, int n, bool may_be_parts)
{
	/* A folder may have too many files to list those that are in S3, so these are only counted,
	 * except with -v. */
	const bool has_folder = has_folder_in(files, n);
	/* There is only one job, so lines do not name it. */
	struct push_options nameless = *options;
	nameless.job = NULL;
	nameless.verbose = 1; /* all errors that are alike are printed: each names another file */
	struct view view = {.people = {.output = &frame->output, .options = &nameless},
		.options = options,
		.lists_proven = !has_folder || options->verbose,
		.may_be_parts = may_be_parts};
	struct s3once_push *push;
	struct problem *problem = &frame->problem;
	if (has_missing_marks(&options->run, problem))
		return S3ONCE_EXIT_SETUP;
	/* These two are about uploading, and must have no effect here: a folder stands for all
	 * files in it, listed or not. */
	options->run.reupload = 0;
	options->run.files_from = NULL;
	options->run.report_skipped = 1; /* for LINK and SPECIAL events */
	options->run.callback = on_event;
	options->run.callback_arg = &view;
	const int r = s3once_push_new(&options->run, &push, problem->text, sizeof problem->text);
	if (r == -EINVAL)
		return S3ONCE_EXIT_USAGE;
	if (r)
		return problem_error(problem, S3ONCE_EXIT_SETUP, "out of memory");
	*problem->text = 0; /* events have reported the problem, so frame_end() prints nothing */
	const int code = (int)s3once_push_prove(push, (const char *const *)files, (size_t)n);
	s3once_push_free(push);
	people_clear(&view.people);
	report_totals(&view, options, has_folder);
	return code;
}

/* Whether these places, where an option was set (enum set_in), include the command line. */
static bool is_on_command_line(unsigned places)
{
	return (places & SET_IN_WORDS) != 0;
}

/* Sets *ret to the options about marks and services that the command line has. Returns false if it
 * also has an option that cannot be combined with --job. */
static bool take_access_options(
	const struct command_frame *frame, const struct push_options *given, struct access *ret)
{
	/* All that the command line may have besides. */
	static const char *const others[] = {"job", "quiet", "verbose", "json"};
	const struct {
		const char *option, **to, *value;
	} about_access[] = {
		{"marks", &ret->marks, given->access.marks},
		{"endpoint-url", &ret->aws.endpoint_url, given->access.aws.endpoint_url},
		{"region", &ret->aws.region, given->access.aws.region},
		{"profile", &ret->aws.profile, given->access.aws.profile},
		{"ca-bundle", &ret->aws.ca_bundle, given->access.aws.ca_bundle},
	};
	unsigned n_given = 0, n_allowed = 0;
	for (size_t i = 0; i < OPTIONS_MAX; i++)
		n_given += is_on_command_line(frame->given[i]);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		n_allowed += is_on_command_line(options_set_in(&frame->parsed, others[i]));
	for (size_t i = 0; i < sizeof about_access / sizeof *about_access; i++)
		if (is_on_command_line(options_set_in(&frame->parsed, about_access[i].option))) {
			n_allowed++;
			*about_access[i].to = about_access[i].value;
		}
	return n_given == n_allowed;
}

/* Proves files of a job. A job's file has all options. The command line adds only those about the
 * places of marks and services, which override the job's, and about the output. Returns the exit
 * code. */
static int prove_of_job(struct command_frame *frame, const struct push_options *given)
{
	struct job *job = &frame->job.job;
	struct push_options *options = &job->options;
	struct access access = {0}; /* job_asked_open() sets what the command line does not */
	if (!take_access_options(frame, given, &access))
		return problem_error(&frame->problem, S3ONCE_EXIT_USAGE,
			"the job says which files are meant and how they were uploaded: beside "
			"--job, only options about marks, services and output go");
	if (given->quiet)
		log_set_level(LOG_ERROR);
	const int n = job_asked_open(&frame->job, &access, frame->n_operands, frame->operands);
	if (n < 0)
		return S3ONCE_EXIT_USAGE;
	if (n == frame->n_operands) /* an operand is an s3:// URL, so the job's target was not added
				     */
		return problem_error(&frame->problem, S3ONCE_EXIT_USAGE,
			"the job says where files are uploaded: beside --job, name each FILE");
	options->json |= given->json;
	options->quiet = given->quiet;
	options->verbose = given->verbose;
	push_options_set_access(options, &access);
	char *const *files = frame->n_operands ? frame->operands : job->operands;
	const int n_files = frame->n_operands ? frame->n_operands : (int)job->n_sources;
	return prove_files(frame, options, files, n_files, false);
}

/* Proves the files of a job, or those that the command line names with the options of a push.
 * Returns the exit code. */
static int prove(struct command_frame *frame, struct proven_options *options)
{
	char **operands = frame->operands;
	struct problem *problem = &frame->problem;
	if (frame->job.name)
		return prove_of_job(frame, &options->push);
	if (frame->n_operands < 2)
		return problem_error(
			problem, S3ONCE_EXIT_USAGE, "name a FILE and s3://BUCKET, or give --job");
	/* With --source DIR, DIR is the only source. Without it, each FILE is a source. */
	char *source = (char *)(uintptr_t)options->source;
	char *of_source[] = {source, operands[frame->n_operands - 1]};
	options->push.run.dry_run = 1;
	if (push_options_complete(&options->push, source ? 2 : frame->n_operands,
		    source ? of_source : operands, problem) < 0)
		return S3ONCE_EXIT_USAGE;
	push_options_decide_key(&options->push);
	return prove_files(frame, &options->push, operands, frame->n_operands - 1, !source);
}

int proven_main(int argc, char **argv)
{
	struct proven_options options = {0};
	struct proven_table table;
	struct command command = proven_command;
	/* S3ONCE_EXIT_FILES means that a file is not in S3, so lost output has another code. The
	 * command has no SHARES_JOB, since prove_of_job() opens the job itself. */
	struct command_frame frame = {
		.command = &command, .values = &options, .unprinted_code = S3ONCE_EXIT_SETUP};
	make_table(&frame.job, &table);
	command.groups = table.groups;
	push_options_init(&options.push);
	if (frame_begin(&frame, argc, argv))
		frame.code = prove(&frame, &options);
	const int code = frame_end(&frame);
	push_options_clear(&options.push);
	return code;
}
