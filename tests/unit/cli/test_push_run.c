/* The exit code of a run, and to whom it is told: by the result of the library, a signal, a pass
 * that gives way, and what was lost of the output and the metrics. The library, the output, the
 * metrics and the notifier are fakes. Each row has a process of its own, since signals are counted
 * for good. */
#include "../check.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/push/notifier.h"
#include "cli/push/push_command.h"
#include "upload/push_struct.h"
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct row {
	const char *name;
	enum s3once_exit ended;
	int code;        /* of push_run() */
	const char *log; /* what was told to whom: see the fakes */
	/* The run: with -q, --json, --metrics FILE, --on-success, as a pass of a service, and as
	 * one over some folders. */
	const char *options;
	int new_error; /* of s3once_push_new() */
	int signal;    /* that comes during the run */
	bool wants_to_give_way;
	bool is_lost, is_lost_late; /* output: before the end is told, and at the end */
	bool is_metrics_lost;
	int whole_code;
	bool gave_way;
	uint64_t repeats_age_s; /* the pipe is done already, for so long */
} rows[] = {
	{"all is well", 0, 0, ""},
	{"files have failed", 1, 1, ""},
	{"stopped by a limit", S3ONCE_EXIT_LIMIT, 6, ""},
	{"stopped by a signal", S3ONCE_EXIT_STOPPED, 143, "stop ", "q", .signal = SIGTERM},
	/* A signal that came too late has stopped nothing. */
	{"done in spite of a signal", 0, 0, "stop ", "q", .signal = SIGTERM},
	{"invalid", 0, 2, "", .new_error = -EINVAL},
	{"no memory", 0, 3, "", .new_error = -ENOMEM},

	{"lost output", 0, 1, "", .is_lost_late = true},
	{"lost output after a failure", 3, 3, "", .is_lost_late = true},
	{"lost output of a run that left files to others", 4, 1, "", .is_lost_late = true},
	{"lost output at a limit", 6, 6, "", .is_lost_late = true},

	{"metrics", 0, 0, "m0 ", "m"},
	{"metrics of a failure", 3, 3, "m3 ", "m"},
	{"metrics of a run that never began", 0, 2, "m2 ", "m", .new_error = -EINVAL},
	{"metrics of a dry run", 0, 0, "", "md"},
	{"lost metrics", 0, 1, "m0 ", "m", .is_metrics_lost = true},
	{"lost metrics of a run that left files to others", 4, 1, "m4 ", "m",
		.is_metrics_lost = true},
	{"lost metrics after a failure", 5, 5, "m5 ", "m", .is_metrics_lost = true},

	{"notified", 0, 0, "begin end0 ", "n"},
	{"notified of a failure", 1, 1, "begin end1 ", "n"},
	{"notified of a run that never began", 0, 2, "event end2 ", "n", .new_error = -EINVAL},
	{"notified of a dry run", 0, 0, "", "nd"},
	/* Earlier losses are reported, and later ones are not. */
	{"notified of lost output", 0, 1, "begin event end1 ", "n", .is_lost = true,
		.is_lost_late = true},
	{"notified before output was lost", 0, 1, "begin end0 ", "n", .is_lost_late = true},
	{"notified of lost metrics", 0, 1, "begin m0 event end1 ", "nm", .is_metrics_lost = true},

	{"a pass", 0, 0, "m0 ", "p"},
	{"a pass that never began", 0, 2, "m2 ", "p", .new_error = -EINVAL},
	{"a pass that fails", 3, 3, "m3 ", "p"},
	{"a notified pass", 0, 0, "m0 end0 ", "pn"},
	{"a pass over some folders is not notified", 0, 0, "m0 ", "pfn"},
	/* Its success does not hide that the last pass over all files has failed. */
	{"a pass over some folders after a failure", 0, 0, "m3 ", "pf", .whole_code = 3},
	{"a pass over some folders that fails", 1, 1, "m1 ", "pf", .whole_code = 3},
	{"a pass over all files after a failure", 0, 0, "m0 ", "p", .whole_code = 3},
	{"a pass that gives way", S3ONCE_EXIT_STOPPED, 6, "stop ", "pmn", .wants_to_give_way = true,
		.gave_way = true},
	{"a pass that was to give way, and was done before", 0, 0, "stop m0 end0 ", "pn",
		.wants_to_give_way = true},
	{"a pass that a signal stops", S3ONCE_EXIT_STOPPED, 143, "stop m143 end143 ", "pnq",
		.signal = SIGTERM},

	{"of another night", 0, 0, "say ", "", .repeats_age_s = 86400},
	{"of another night, quiet", 0, 0, "say ", "q", .repeats_age_s = 86400},
	{"tried again", 0, 0, "say ", "", .repeats_age_s = 60},
	{"tried again, quiet", 0, 0, "", "q", .repeats_age_s = 60},
	{"of another night, and failed", 1, 1, "", "", .repeats_age_s = 86400},
};
static const struct row *now;

/* The lines, and how the output was begun, of a run that test_view() begins. */
static struct {
	bool is_wanted;
	bool can_draw;
	struct output_options options;
	struct text results, messages, drawn;
	const struct metrics *metrics; /* those that metrics_write() got */
} seen = {.results = {.max = 1 << 14}, .messages = {.max = 1 << 12}, .drawn = {.max = 1 << 12}};

static struct text told = {.max = 1 << 12};
static struct s3once_push *the_push;
static const struct s3once_options *the_options;

int s3once_push_new(
	const struct s3once_options *options, struct s3once_push **ret, char *ret_text, size_t size)
{
	snprintf(ret_text, size, "why");
	the_options = options;
	if (now->new_error)
		return now->new_error;
	*ret = the_push = calloc(1, sizeof **ret);
	the_push->counts.oldest_unshipped_ns = INT64_MAX;
	the_push->counts.uploaded = 7;
	return 0;
}

/* Reports an event of each kind that is not printed in every run, after one second of it. */
static void report_events(struct s3once_counts *counts)
{
	static const enum s3once_event_type types[] = {S3ONCE_EVENT_START, S3ONCE_EVENT_WARNING,
		S3ONCE_EVENT_FAILED, S3ONCE_EVENT_LINK, S3ONCE_EVENT_HELD};
	static const char *const texts[] = {"sqlite:/marks.db", "late", "why", "", "held"};
	counts->seconds = 1;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		const struct s3once_event event = {.type = types[i],
			.path = types[i] >= S3ONCE_EVENT_UPLOADED ? "f" : "",
			.key = "",
			.text = texts[i],
			.code = "",
			.request_id = ""};
		the_options->callback(the_options->callback_arg, &event);
	}
}

enum s3once_exit s3once_push_run(struct s3once_push *push)
{
	struct s3once_counts *counts = &push->counts;
	const struct s3once_event event = {
		.type = S3ONCE_EVENT_PROGRESS, .path = "", .key = "", .text = "", .counts = counts};
	CHECK(push == the_push);
	if (seen.is_wanted)
		report_events(counts);
	the_options->callback(the_options->callback_arg, &event);
	counts->seconds += seen.is_wanted ? 0.2 : 0;
	the_options->callback(the_options->callback_arg, &event);
	if (now->signal)
		raise(now->signal);
	counts->repeats_s = now->repeats_age_s ? 1000 : 0;
	counts->repeats_age_s = now->repeats_age_s;
	return now->ended;
}

const struct s3once_counts *s3once_push_counts(const struct s3once_push *push)
{
	return &push->counts;
}

void s3once_push_stop(struct s3once_push *push)
{
	CHECK(push == the_push);
	text_add(&told, "stop ");
}

void s3once_push_toggle_bandwidth(struct s3once_push *push)
{
	(void)push;
}

void s3once_push_free(struct s3once_push *push)
{
	free(push);
}

const struct s3once_waiting *s3once_push_waiting(
	const struct s3once_push *push, enum s3once_wait why)
{
	static const struct s3once_waiting none = {.oldest_ns = INT64_MAX, .path = "", .text = ""};
	(void)push, (void)why;
	return &none;
}

const char *s3once_push_manifest(const struct s3once_push *push)
{
	(void)push;
	return "";
}

const char *s3once_push_limit(const struct s3once_push *push)
{
	(void)push;
	return "";
}

const char *s3once_push_requests(const struct s3once_push *push, size_t i, uint64_t *ret_count)
{
	(void)push, (void)i, (void)ret_count;
	return NULL;
}

const char *s3once_version(void)
{
	return "1";
}

void output_init(struct output *output, const struct output_options *options)
{
	(void)output;
	seen.options = *options;
}

void output_print(struct output *output, int fd, const char *format, ...)
{
	char line[2000];
	va_list ap;
	va_start(ap, format);
	vsnprintf(line, sizeof line, format, ap);
	va_end(ap);
	(void)output, (void)fd;
	text_addf(&seen.messages, "%s\n", line);
	if (strstr(line, " is in S3 already, since "))
		text_add(&told, "say ");
}

void output_result(struct output *output, const char *line)
{
	(void)output;
	text_addf(&seen.results, "%s\n", line);
}

void output_draw(struct output *output, const char *line)
{
	(void)output;
	text_addf(&seen.drawn, "%s\n", line);
}

bool output_has_failed(struct output *output)
{
	(void)output;
	return now->is_lost;
}

int output_finish(struct output *output)
{
	(void)output;
	return now->is_lost_late ? -EPIPE : 0;
}

struct escaped escaped(const char *s)
{
	struct escaped e;
	snprintf(e.text, sizeof e.text, "%s", s);
	return e;
}

bool terminal_can_draw(int fd)
{
	(void)fd;
	return seen.can_draw;
}

struct terminal_size terminal_size(int fd)
{
	(void)fd;
	return (struct terminal_size){24, 80};
}

void notifier_begin(struct notifier *notifier)
{
	(void)notifier;
	text_add(&told, "begin ");
}

void notifier_event(struct notifier *notifier, const struct s3once_event *event)
{
	(void)notifier;
	CHECK(seen.is_wanted || event->type == S3ONCE_EVENT_FATAL);
	text_add(&told, "event ");
}

void notifier_end(struct notifier *notifier, const struct s3once_push *push,
	const struct metrics *metrics, int code)
{
	(void)notifier, (void)metrics;
	CHECK(push == the_push);
	text_addf(&told, "end%d ", code);
}

void notifier_clear(struct notifier *notifier)
{
	(void)notifier;
}

int metrics_write(const struct push_options *options, struct metrics *metrics,
	const struct s3once_push *push, int exit_code, struct problem *ret_problem)
{
	(void)options;
	CHECK(push == the_push);
	seen.metrics = metrics;
	text_addf(&told, "m%d ", exit_code);
	return now->is_metrics_lost ? problem_error(ret_problem, -EIO, "lost") : 0;
}

void metrics_clear(struct metrics *metrics)
{
	(void)metrics;
}

static bool gives_way(void *arg, const struct s3once_counts *counts)
{
	(void)arg, (void)counts;
	return now->wants_to_give_way;
}

static void on_waiting(void *arg, const char *path)
{
	(void)arg, (void)path;
}

static bool check_row(void)
{
	static const char *const some[] = {"/a"};
	const char *with = now->options ? now->options : "";
	const bool is_pass = strchr(with, 'p');
	struct push_options options;
	struct push_pass pass = {.waits = on_waiting,
		.gives_way = gives_way,
		.whole_code = now->whole_code,
		.printed_warnings = TEXT(1000),
		.printed_errors = TEXT(1000),
		.ret_gave_way = true, /* of the pass before */
		.ret_counts.uploaded = 9};
	push_options_init(&options);
	options.run.bucket = "b";
	options.run.prefix = "";
	options.run.as = "db.dump";
	options.quiet = strchr(with, 'q') != NULL;
	options.run.dry_run = strchr(with, 'd') != NULL;
	options.run.folders = strchr(with, 'f') ? some : NULL;
	options.metrics_file = strchr(with, 'm') ? "/metrics" : NULL;
	options.on_success = strchr(with, 'n') ? "true" : NULL;
	bool good = CHECK_INT(push_run(&options, is_pass ? &pass : NULL), now->code);
	good &= CHECK_STRING(text_string(&told), now->log);
	if (is_pass) {
		good &= CHECK_INT(pass.ret_gave_way, now->gave_way);
		good &= CHECK_INT(pass.ret_counts.uploaded, now->new_error ? 0 : 7);
	}
	text_clear(&pass.printed_warnings);
	text_clear(&pass.printed_errors);
	text_clear(&told);
	return good;
}

static unsigned count_of(const struct text *t, const char *part)
{
	unsigned n = 0;
	for (const char *at = text_string(t); (at = strstr(at, part)); at++)
		n++;
	return n;
}

static void note_level(void *arg, enum log_level level, const char *line)
{
	(void)line;
	*(enum log_level *)arg = level;
}

/* The last level whose messages are printed. */
static enum log_level level_now(void)
{
	enum log_level last = LOG_ERROR;
	log_set_sink(note_level, &last);
	for (enum log_level level = LOG_ERROR; level <= LOG_DEBUG; level++)
		log_message(level, "a line");
	log_set_sink(NULL, NULL);
	return last;
}

/* How a run is shown, by its options: d is a dry run, j --json, l --log-file, m metrics by OTLP, p
 * a pass, s --marks, t a terminal, and v -v. */
static void test_view(void)
{
	static const struct {
		const char *options;
		unsigned interval_ms;
		unsigned progress, links; /* events of JSON */
		const char *draws;        /* part of a drawn line; NULL: none is drawn */
		bool says_marks;          /* where the marks are that this run makes */
		enum log_level level;
		const char *log_file;
	} views[] = {
		{"", 0, 0, 0, NULL, true, LOG_WARNING, NULL},
		{"s", 0, 0, 0, NULL, false, LOG_WARNING, NULL},
		{"l", 0, 0, 0, NULL, true, LOG_WARNING, "/log"},
		{"ld", 0, 0, 0, NULL, true, LOG_WARNING, NULL},
		{"m", 0, 0, 0, NULL, true, LOG_WARNING, NULL},
		{"j", 1000, 1, 1, NULL, true, LOG_WARNING, NULL},
		{"t", 200, 0, 0, "waiting for another uploader", true, LOG_WARNING, NULL},
		{"td", 200, 0, 0, "in flight", true, LOG_WARNING, NULL},
		{"p", 200, 0, 0, NULL, true, LOG_WARNING, NULL},
		{"pj", 200, 1, 0, NULL, true, LOG_WARNING, NULL},
		{"pjv", 200, 1, 1, NULL, true, LOG_NOTE, NULL},
		{"vv", 0, 0, 0, NULL, true, LOG_INFO, NULL},
		{"vvv", 0, 0, 0, NULL, true, LOG_DEBUG, NULL},
		{"vvvv", 0, 0, 0, NULL, true, LOG_DEBUG, NULL},
	};
	static const struct row plain_run = {.name = "shown"};
	now = &plain_run;
	seen.is_wanted = true;
	setenv("XDG_STATE_HOME", "/nowhere", 1);
	for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
		const char *with = views[i].options;
		struct push_options options;
		struct push_pass pass = {.waits = on_waiting,
			.gives_way = gives_way,
			.printed_warnings = TEXT(1000),
			.printed_errors = TEXT(1000)};
		struct push_pass *is_pass = strchr(with, 'p') ? &pass : NULL;
		push_options_init(&options);
		options.run.bucket = "b";
		options.run.prefix = "";
		options.run.dry_run = strchr(with, 'd') != NULL;
		options.run.marks = strchr(with, 's') ? "sqlite:/marks.db" : NULL;
		options.run.log_file = strchr(with, 'l') ? "/log" : NULL;
		options.json = strchr(with, 'j') != NULL;
		options.metrics_otlp = strchr(with, 'm') ? "http://h/" : NULL;
		for (const char *c = with; *c; c++)
			options.verbose += *c == 'v';
		seen.can_draw = strchr(with, 't') != NULL;
		seen.metrics = NULL;
		bool good = CHECK_INT(push_run(&options, is_pass), 0);
		good &= CHECK_INT(options.run.progress_interval_ms, views[i].interval_ms);
		good &= CHECK_STRING(seen.options.log_file, views[i].log_file);
		good &= CHECK(seen.options.logs_results_alone == (strchr(with, 'j') != NULL));
		good &= CHECK_INT(
			count_of(&seen.results, "\"event\":\"progress\""), views[i].progress);
		good &= CHECK_INT(count_of(&seen.results, "\"event\":\"link\""), views[i].links);
		good &= CHECK(count_of(&seen.drawn, views[i].draws ? views[i].draws : "\n") ==
			      (views[i].draws ? 2 : count_of(&seen.drawn, "\n")));
		good &= CHECK((count_of(&seen.messages, "this host remembers") != 0) ==
			      views[i].says_marks);
		good &= CHECK_INT(level_now(), views[i].level);
		good &= CHECK((seen.metrics != NULL) == (is_pass || strchr(with, 'm')));
		if (is_pass) {
			good &= CHECK(seen.metrics == &pass.metrics);
			good &= CHECK(strstr(text_string(&pass.printed_warnings), "late"));
			good &= CHECK(strstr(text_string(&pass.printed_errors), "why"));
			good &= CHECK(!strstr(text_string(&pass.printed_warnings), "why"));
		}
		if (!good)
			fprintf(stderr, "\tview \"%s\"\n", with);
		text_clear(&pass.printed_warnings);
		text_clear(&pass.printed_errors);
		text_clear(&seen.results);
		text_clear(&seen.messages);
		text_clear(&seen.drawn);
		text_clear(&told);
	}
}

int main(void)
{
	unsetenv("NOTIFY_SOCKET");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int status = 0;
		now = &rows[i];
		const pid_t child = fork();
		if (child == 0)
			_exit(check_row() && !check_failed ? 0 : 1);
		CHECK_INT(waitpid(child, &status, 0), child);
		if (!CHECK_INT(status, 0))
			fprintf(stderr, "\trow %zu: %s\n", i, now->name);
	}
	test_view();
	return check_result();
}
