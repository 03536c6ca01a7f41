/* `s3once push`. It uses the library by include/s3once/push.h alone. The runs of `s3once run` and
 * the passes of `s3once watch` are made here as well (push_command.h). Events go to people.h,
 * run_events.h, progress_line.h, metrics.h, service_notify.h and notifier.h. None of these may hold
 * up the thread that reports an event. */
#include "cli/push/push_command.h"
#include "base/clock.h"
#include "base/thread.h"
#include "cli/commands.h"
#include "cli/human_figures.h"
#include "cli/push/notifier.h"
#include "cli/push/people.h"
#include "cli/push/service_notify.h"
#include "cli/signals.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define WIDE_COLUMNS     100    /* from here on, a second line shows the largest file */
#define LOOK_INTERVAL_MS 200    /* where progress is drawn, or a pass may give way */
#define STATUS_COLUMNS   200    /* of the status line that systemd shows */
#define STALL_MS         60000  /* output_options.stall_ms; its warning says "a minute" */
#define END_MS           300000 /* output_options.end_ms */
#define JSON_INTERVAL_MS 1000
#define JSON_INTERVAL_S  0.9 /* a little less than JSON_INTERVAL_MS: ticks are not exact */

/* All that a run's events are reported with. */
struct push_view {
	struct output output;
	struct people people;
	bool draws;
	bool progress_is_json; /* progress is printed as events of JSON, too */
	struct service_notify service;
	struct progress progress;
	struct text line;
	double json_progress_s;   /* when progress was last printed as JSON */
	struct push_pass *pass;   /* NULL: this is the only run */
	struct s3once_push *push; /* while it runs */
	bool is_asked_to_end;     /* pass->gives_way() returned true, and is not called again */
	bool gave_way;            /* the run has ended because it was asked to */
	bool notifies;            /* a notification of the run was asked for */
	struct notifier notifier;
	struct metrics metrics; /* of a run that is no pass, for notifier.h */
};

/* Prints the progress as an event, about once a second. */
static void print_progress_as_json(struct push_view *view, const struct s3once_event *event)
{
	const struct s3once_counts *counts = event->counts;
	if (counts->seconds - view->json_progress_s < JSON_INTERVAL_S)
		return;
	view->json_progress_s = counts->seconds;
	const double percent = progress_percent(&view->progress, counts);
	const double left = counts->seconds_left;
	json_print(&view->output,
		json_set(json_of_event(view->people.options, event),
			NODE("percent", percent < 0 ? json_null() : json_real(percent)),
			NUMBER("bytes_per_second", counts->bytes_per_second),
			NODE("seconds_left", left < 0 ? json_null() : json_real(left))));
}

/* Shows how far the run is: on the terminal, to systemd and as JSON. If the pass is to give way,
 * the run is asked to end, as by a signal. */
static void show_progress(struct push_view *view, const struct s3once_event *event)
{
	const struct s3once_counts *counts = event->counts;
	if (view->pass && !view->is_asked_to_end &&
		view->pass->gives_way(view->pass->arg, counts)) {
		view->is_asked_to_end = true;
		s3once_push_stop(view->push);
	}
	progress_take_in(&view->progress, counts);
	if (view->draws) {
		/* One column stays free, since some terminals wrap after a full line. */
		const unsigned columns = terminal_size(STDERR_FILENO).columns - 1;
		progress_line(&view->progress, counts, columns, &view->line);
		if (columns >= WIDE_COLUMNS && *event->path)
			progress_add_largest(
				&view->line, event->path, event->bytes_done, event->bytes, columns);
		output_draw(&view->output, text_string(&view->line));
	}
	if (view->service.socket) {
		progress_line(&view->progress, counts, STATUS_COLUMNS, &view->line);
		service_notify_progress(&view->service, counts, text_string(&view->line));
	}
	if (view->progress_is_json)
		print_progress_as_json(view, event);
}

/* Whether the event is about an excluded or skipped file. */
static bool is_about_left_out(const struct s3once_event *event)
{
	return event->type < EVENT_SHAPES && (event_shapes[event->type].traits & IS_LEFT_OUT);
}

static void on_event(void *arg, const struct s3once_event *event)
{
	struct push_view *view = arg;
	const struct push_options *options = view->people.options;
	if (view->pass && event->type == S3ONCE_EVENT_WAITING)
		view->pass->waits(view->pass->arg, event->path);
	/* For a pass of s3once watch, push_run() asks for the events of all files that are left
	 * out, since the pass needs WAITING. They are printed only with -v. */
	if (view->pass && is_about_left_out(event) && !options->verbose)
		return;
	if (event->type == S3ONCE_EVENT_PROGRESS) {
		show_progress(view, event);
		return;
	}
	if (event_is_waited_for(options, event))
		view->progress.waits = true;
	people_event(&view->people, event);
	if (view->notifies)
		notifier_event(&view->notifier, event);
	/* push_run() prints the summary itself, with the exit code of the command. */
	if (options->json && event->type != S3ONCE_EVENT_SUMMARY)
		json_print(&view->output, json_of_event(options, event));
}

/* Whether the options ask for notifications of this run. */
static bool wants_notification(const struct push_options *options)
{
	const bool has_receiver = options->ping_url || options->on_success || options->on_failure ||
				  options->metrics_otlp;
	/* A pass of s3once watch over some folders alone is not reported. */
	const bool is_over_all_files = !options->run.folders;
	return has_receiver && is_over_all_files && !options->run.dry_run;
}

static void view_init(
	struct push_view *view, const struct push_options *options, struct push_pass *pass)
{
	*view = (struct push_view){
		.progress_is_json = options->json,
		.draws = terminal_can_draw(STDERR_FILENO) && !options->quiet,
		.line = TEXT(1024),
		.pass = pass,
		.notifies = wants_notification(options),
		.notifier = {.options = options, .output = &view->output},
		.people = {.output = &view->output,
			.options = options,
			.printed_warnings = pass ? &pass->printed_warnings : NULL,
			.printed_errors = pass ? &pass->printed_errors : NULL,
			.makes_marks = !options->run.marks && !marks_own_are_there()},
	};
	service_notify_init(&view->service);
	output_init(&view->output,
		&(struct output_options){
			.log_file = options->run.dry_run ? NULL : options->run.log_file,
			.logs_results_alone = options->json,
			.stall_ms = STALL_MS,
			.end_ms = END_MS});
	static const enum log_level levels[] = {LOG_WARNING, LOG_NOTE, LOG_INFO, LOG_DEBUG};
	log_set_level(
		options->quiet ? LOG_URGENT : levels[options->verbose < 3 ? options->verbose : 3]);
}

/* Returns the exit code of a run that would end with this code, but has lost output or metrics:
 * S3ONCE_EXIT_FILES in place of S3ONCE_EXIT_OK and S3ONCE_EXIT_HELD, which would say that nothing
 * failed. Any other code stays, since it already says that files have failed, or why the run did
 * not get to its end. */
static int code_after_loss(int code)
{
	return (code == S3ONCE_EXIT_OK || code == S3ONCE_EXIT_HELD) ? S3ONCE_EXIT_FILES : code;
}

/* Adds an error that is not an event of the library to those in a notification. */
static void notify_of_error(struct push_view *view, const char *sentence)
{
	const struct s3once_event event = {
		.type = S3ONCE_EVENT_FATAL, .text = sentence, .code = "", .request_id = ""};
	if (view->notifies)
		notifier_event(&view->notifier, &event);
}

/* Writes the metrics of a run to *metrics, unless it is NULL, and to the file of --metrics. The run
 * has ended; or it never began, in which case push is NULL. A dry run writes none. Returns code, or
 * the exit code for a loss if the file could not be written. */
static int write_metrics(struct push_view *view, const struct push_options *options,
	struct metrics *metrics, const struct s3once_push *push, int code)
{
	struct problem problem;
	const bool is_wanted = options->metrics_file || metrics;
	if (options->run.dry_run || !is_wanted)
		return code;
	/* Only passes have run.folders. One that succeeds must not hide that the last pass over all
	 * files failed. */
	const bool is_over_folders = options->run.folders != NULL;
	const int shown =
		(is_over_folders && code == S3ONCE_EXIT_OK) ? view->pass->whole_code : code;
	/* Without a file, metrics for which there is no room are silently omitted. */
	const int error = metrics_write(options, metrics, push, shown, &problem);
	if (!error || !options->metrics_file)
		return code;
	output_message(&view->output, "error: %s", problem.text);
	notify_of_error(view, problem.text);
	return code_after_loss(code);
}

/* Says that nothing was read of the pipe, since its key is done. If the object is of another night,
 * this is said even with --quiet: whoever runs a dump each night takes 0 for a new backup. */
static void report_repeat(struct push_view *view, const struct push_options *options,
	const struct s3once_counts *counts)
{
	const bool is_old = counts_repeat_a_night(counts);
	char when[32];
	if (options->quiet && !is_old)
		return;
	clock_format_iso(counts->repeats_s, when);
	output_message(&view->output, "%s: %s is in S3 already, since %s (%s ago): %s%s",
		is_old ? "warning" : "note", quote(options->run.as).text, when,
		human_age(counts->repeats_age_s).text,
		options->is_command ? "the command was not started"
				    : "nothing was read from standard input",
		is_old ? ", and nothing new was stored; for one object a night, put the date into "
			 "the key, such as db/$(date +%F).dump"
		       : "");
}

#define STOPPING                                                                                   \
	"s3once: stopping; uploads under way may finish within --grace, and a second signal ends " \
	"them at once\n"

/* Runs the push to its end, and sets view->gave_way. Returns the exit code, which code_after_loss()
 * may still change. A signal decides the exit code only if it cut the run short. If the run was
 * stopped without a signal, pass->gives_way() asked for it, and the exit code is that of a limit.
 */
static int run_to_end(
	struct push_view *view, const struct push_options *options, struct s3once_push *push)
{
	if (view->notifies && !view->pass) /* a service notifies only how its passes have ended */
		notifier_begin(&view->notifier);
	/* A newline ends the progress line, if one is drawn. */
	const char *message = view->draws ? "\n" STOPPING : STOPPING;
	signals_stop_run(push, options->quiet ? "" : message);
	view->push = push;
	const enum s3once_exit ended = s3once_push_run(push);
	const int signal = signals_end_run();
	view->gave_way = ended == S3ONCE_EXIT_STOPPED && !signal;
	output_draw(&view->output, ""); /* removes the progress line */
	if (ended == S3ONCE_EXIT_OK && s3once_push_counts(push)->repeats_s)
		report_repeat(view, options, s3once_push_counts(push));
	if (ended != S3ONCE_EXIT_STOPPED)
		return (int)ended;
	return signal ? S3ONCE_EXIT_STOPPED + signal : S3ONCE_EXIT_LIMIT;
}

/* Notifies others of the end of the run, with the exit code that it returns: that of a loss if
 * output was lost so far. */
static int notify_of_end(struct push_view *view, const struct s3once_push *push,
	const struct metrics *metrics, int code)
{
	if (output_has_failed(&view->output)) {
		code = code_after_loss(code);
		notify_of_error(view,
			"standard output or the file of --log-file cannot be written: standard "
			"error has the reason");
	}
	notifier_end(&view->notifier, push, metrics, code);
	return code;
}

/* Makes the run, and runs it to its end. Returns the exit code, which code_after_loss() may still
 * change. If the run could not be made, *ret stays as it is, and the error was printed. */
static int make_and_run(
	struct push_view *view, struct push_options *options, struct s3once_push **ret)
{
	char sentence[PROBLEM_SENTENCE_MAX];
	const bool looks_often = view->draws || view->pass;
	const bool looks_once_a_second = view->progress_is_json || view->service.socket;
	options->run.job = options->job;
	options->run.callback = on_event;
	options->run.callback_arg = view;
	options->run.progress_interval_ms = looks_often           ? LOOK_INTERVAL_MS
					    : looks_once_a_second ? JSON_INTERVAL_MS
								  : 0;
	const int r = s3once_push_new(&options->run, ret, sentence, sizeof sentence);
	if (r == -EINVAL) {
		output_message(&view->output, "error: %s: %s", options->job ? options->job : "push",
			sentence);
		notify_of_error(view, sentence);
		return S3ONCE_EXIT_USAGE;
	}
	if (r < 0) {
		output_message(&view->output, "error: out of memory");
		return S3ONCE_EXIT_SETUP;
	}
	return run_to_end(view, options, *ret);
}

int push_run(struct push_options *options, struct push_pass *pass)
{
	struct push_view view;
	struct s3once_push *push = NULL; /* stays NULL if the run never began: it has no counts */
	if (pass) {
		pass->ret_counts = (struct s3once_counts){0};
		pass->ret_gave_way = false;
		options->run.report_skipped = 1; /* reports WAITING, too, for pass->waits() */
	}
	view_init(&view, options, pass);
	/* Where the metrics of the run are kept; NULL: nowhere but in --metrics. */
	struct metrics *metrics = pass                    ? &pass->metrics
				  : options->metrics_otlp ? &view.metrics
							  : NULL;
	int code = make_and_run(&view, options, &push);
	if (!view.gave_way)
		code = write_metrics(&view, options, metrics, push, code);
	if (push && pass) {
		pass->ret_counts = *s3once_push_counts(push);
		pass->ret_gave_way = view.gave_way;
	}
	if (push && !view.gave_way)
		people_summary(&view.people, push, code);
	people_clear(&view.people);
	if (push && options->json)
		json_print(&view.output, json_summary(options, push, code));
	if (view.notifies && !view.gave_way)
		code = notify_of_end(&view, push, metrics, code);
	notifier_clear(&view.notifier);
	metrics_clear(&view.metrics);
	s3once_push_free(push);
	text_clear(&view.line);
	return output_finish(&view.output) == 0 ? code : code_after_loss(code);
}

/* Notes the option that has taken the word right before the only operand for its value. No other
 * word can be there: options come before the first operand. */
static void note_taken_word(
	const struct command_frame *frame, int argc, struct push_options *options)
{
	if (frame->n_operands != 1) /* the SOURCE is there */
		return;
	/* The words in question are "push … --OPTION VALUE OPERAND". */
	for (int i = 3; i < argc; i++) {
		char *option = frame->words[i - 2], *value = frame->words[i - 1];
		const bool is_operand = frame->words[i] == frame->operands[0];
		if (is_operand && *value != '-' && strncmp(option, "--", 2) == 0) {
			options->taking_option = option;
			options->taken_word = value;
		}
	}
}

/* Whether a word that is no option follows an s3:// URL, and no -- is before it: the word may be a
 * COMMAND, whose options were read as those of push. */
static bool lacks_dashes(const struct command_frame *frame)
{
	char **word = frame->words + 1;
	while (word[0] && strcmp(word[0], "--") != 0 && !url_is_s3(word[0]))
		word++;
	return word[0] && url_is_s3(word[0]) && word[1] && *word[1] != '-';
}

int push_main(int argc, char **argv)
{
	struct push_options options;
	struct command_frame frame = {
		.command = &push_own_command, .values = &options, .has_own_output = true};
	struct pipe_input pipe = {0};
	sigset_t none;
	/* Blocks nothing more, and reads which signals are blocked. */
	sigemptyset(&none);
	thread_mask_signals(SIG_BLOCK, &none, &pipe.mask);
	push_options_init(&options);
	options.pipe = &pipe;
	const bool goes_on = frame_begin(&frame, argc, argv);
	push_options_warn_of_variables();
	if (goes_on) {
		note_taken_word(&frame, argc, &options);
		/* s3://BUCKET/KEY -- COMMAND... */
		options.is_command = frame.before_dashes == 1 && url_is_s3(argv[0]);
	}
	if (goes_on &&
		push_options_complete(&options, frame.n_operands, argv, &frame.problem) == 0) {
		push_options_decide_key(&options);
		frame.code = push_run(&options, NULL);
	} else if (goes_on) {
		options_name_variable(&frame.parsed, &frame.problem);
	}
	if (!goes_on && frame.code == S3ONCE_EXIT_USAGE && lacks_dashes(&frame))
		problem_set(&frame.problem, "%s", COMMAND_BEHIND_DASHES);
	push_options_clear(&options);
	return frame_end(&frame);
}
