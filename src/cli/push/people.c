/* Prints the report of a run for people, where JSON was not asked for: a line for each file to
 * which something happened, the first few of similar errors, and finally the summary. The commands
 * push, run, watch and proven pass the events of the library to it. The tables of run_events.c say
 * what is printed for which event. Lines go through output.h, and names and texts are escaped
 * first. */
#include "cli/push/people.h"
#include "base/checksum.h"
#include "base/clock.h"
#include "cli/human_figures.h"
#include "store/store.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES_MAX (32U << 10)
#define ALIKE_PRINTED  3 /* errors of a kind, before the others of it are only counted */

/* Whether this error, which is counted here, is among the first ones with its sentence. Digits in
 * it do not matter, since a different part, size or time is not a different kind of error. Also
 * true if there is no room for another kind, so that such errors are all printed. */
static bool is_among_first_alike(struct alike *alike, const char *sentence)
{
	uint64_t hash = FNV_EMPTY;
	for (const char *at = sentence; *at; at++)
		if (*at < '0' || *at > '9') /* no digit */
			hash = fnv_add(hash, at, 1);
	for (size_t i = 0; i < alike->n; i++)
		if (alike->kinds[i].hash == hash)
			return ++alike->kinds[i].count <= ALIKE_PRINTED;
	if (alike->n < ALIKE_KINDS)
		alike->kinds[alike->n++] =
			(struct alike_kind){.hash = hash, .count = 1, .sentence = strdup(sentence)};
	return true;
}

void people_clear(struct people *people)
{
	for (size_t i = 0; i < people->errors.n; i++)
		free(people->errors.kinds[i].sentence);
	people->errors = (struct alike){0};
}

/* Adds "sentence (Code, request id X)", as far as these are known. */
static void add_sentence(struct text *t, const struct s3once_event *event)
{
	text_add(t, event->text);
	if (*event->code)
		text_addf(t, " (%s", event->code);
	if (*event->request_id)
		text_addf(t, "%srequest id %s", *event->code ? ", " : " (", event->request_id);
	if (*event->code || *event->request_id)
		text_add_char(t, ')');
}

/* Adds "NAME: " if the run is that of a job. */
static void add_job(struct text *t, const struct people *people)
{
	if (people->options->job)
		text_addf(t, "%s: ", escaped(people->options->job).text);
}

/* Adds "PATH -> s3://BUCKET/KEY (SIZE): sentence", as far as the event has these. */
static void add_file(struct text *t, const struct people *people, const struct s3once_event *event)
{
	const unsigned traits = event_shapes[event->type].traits;
	text_add_escaped_string(t, event->path);
	if (*event->key && !(traits & SHOWS_NO_KEY))
		text_addf(
			t, " -> s3://%s/%s", people->options->run.bucket, escaped(event->key).text);
	if (traits & SHOWS_SIZE)
		text_addf(t, " (%s)", human_bytes(event->bytes).text);
	if (*event->text) {
		text_add(t, ": ");
		add_sentence(t, event);
	}
}

/* Returns whether no run of this job has printed this sentence before, and notes it as printed.
 * `printed` is NULL if this is the only run: then each sentence is new. */
static bool note_if_new(struct text *printed, const char *sentence)
{
	/* Whole lines are compared, since one sentence may contain another. */
	struct text line = TEXT(LINE_BYTES_MAX);
	text_addf(&line, "\n%s\n", sentence);
	const bool is_new = !printed || !strstr(text_string(printed), text_string(&line));
	if (printed && is_new)
		text_add(printed, text_string(&line));
	text_clear(&line);
	return is_new;
}

/* Prints an error, or a warning of a file that is left to another uploader, unless an earlier pass
 * of this service has printed it. Without -v only the first few errors of each kind are printed. */
static void print_error(struct people *people, const struct s3once_event *event)
{
	const struct s3once_options *run = &people->options->run;
	/* The path of a pipe is only the name of its command, so a pipe is named by its key. */
	const char *name = run->read ? run->as : event->path;
	struct text t = TEXT(LINE_BYTES_MAX);
	text_add(&t, event->text);
	if (*event->code)
		text_addf(&t, " (%s)", event->code);
	/* Errors are alike by sentence and code: each has another path and another request id. */
	const bool is_among_first = is_among_first_alike(&people->errors, text_string(&t));
	text_reset(&t);
	text_add(&t, event->type == S3ONCE_EVENT_HELD ? "warning: " : "error: ");
	if (*event->path)
		text_addf(&t, "%s: ", escaped(name).text);
	else /* it is about the whole run */
		add_job(&t, people);
	add_sentence(&t, event);
	if ((is_among_first || people->options->verbose) &&
		note_if_new(people->printed_errors, text_string(&t)))
		output_message(people->output, "%s", text_string(&t));
	text_clear(&t);
}

/* Prints an event about a file. An error is printed in any case, and anything else only if -v was
 * given as often as its shape demands. */
static void print_file_event(struct people *people, const struct s3once_event *event)
{
	const struct push_options *options = people->options;
	const struct event_shape *shape = &event_shapes[event->type];
	struct text t = TEXT(LINE_BYTES_MAX);
	/* A file that another uploader holds is not an error while the run waits for it. */
	const bool is_waited_for = event_is_waited_for(options, event);
	const bool is_wanted = shape->words && options->verbose >= shape->verbosity &&
			       !options->json && !options->quiet;
	if (event->type == S3ONCE_EVENT_PLANNED)
		people->planned_bytes += event->bytes;
	if (is_waited_for) {
		/* The first such file is printed, and with -v every one. */
		add_file(&t, people, event);
		if (!options->quiet && (options->verbose || !people->has_said_waiting))
			output_message(people->output, "waiting: %s", text_string(&t));
		people->has_said_waiting = true;
	} else if (shape->traits & IS_ERROR) {
		print_error(people, event);
	} else if (is_wanted) {
		const bool is_of_move = options->run.move_to && shape->words_of_move;
		text_addf(&t, "%s ", is_of_move ? shape->words_of_move : shape->words);
		add_file(&t, people, event);
		output_result(people->output, text_string(&t));
	}
	text_clear(&t);
}

/* Prints where the marks are that this run makes. */
static void print_marks_place(struct people *people)
{
	struct marks_place place;
	struct problem ignored;
	if (marks_place_parse("local", &place, &ignored) == 0)
		output_message(people->output,
			"this host remembers its uploads in %s; --marks dynamodb:TABLE shares them",
			escaped(place.path).text);
	marks_place_clear(&place);
}

void people_event(struct people *people, const struct s3once_event *event)
{
	const struct push_options *options = people->options;
	if (event->type == S3ONCE_EVENT_START) {
		if (options->note && !options->quiet &&
			note_if_new(people->printed_warnings, options->note))
			output_message(people->output, "note: %s", options->note);
		if (people->makes_marks && !options->quiet)
			print_marks_place(people);
		else if (options->verbose && !options->quiet)
			output_message(people->output, "marks: %s", event->text);
	} else if (event->type == S3ONCE_EVENT_WARNING) { /* even with --quiet */
		people->has_warned = true;
		if (note_if_new(people->printed_warnings, event->text))
			output_message(people->output, "warning: %s", event->text);
	} else if (event->type == S3ONCE_EVENT_NOTE) {
		if (!options->quiet && note_if_new(people->printed_warnings, event->text))
			output_message(people->output, "note: %s", event->text);
	} else if (event->type < EVENT_SHAPES) {
		print_file_event(people, event);
	}
}

/* Adds what a run that is no dry run would do with the files after their upload. Files that are in
 * S3 already have events of their own in a dry run. */
static void add_removal(struct text *t, const struct s3once_options *run)
{
	if (!run->removes)
		return;
	text_add(t, ", and then ");
	if (run->move_to)
		text_addf(t, "move them below %s", escaped(run->move_to).text);
	else
		text_add(t, "remove them from this host");
	if (run->remove_after_s)
		text_addf(t, ", once they have been there for %s",
			human_age(run->remove_after_s).text);
}

/* Adds how many of the wanted files are in S3: "all 3 files are in", or "2 of 3 files are verified
 * to be in". `there` is the number of those that are. */
static void add_share(struct text *t, uint64_t there, uint64_t wanted,
	const struct s3once_counts *c, int exit_code)
{
	const bool is_all = there == wanted && exit_code == S3ONCE_EXIT_OK;
	const bool may_say_all = is_all && c->scan_complete && wanted != 1;
	text_addf(t, "%s%s", may_say_all ? "all " : "", human_count(there).text);
	if (there != wanted)
		text_addf(t, " of %s", human_count(wanted).text);
	text_add(t, wanted == 1 ? " file is" : " files are");
	text_add(t, is_all ? " in" : " verified to be in");
}

/* Adds the files that were not brought up to date: outdated ones, and those left for later. */
static void add_rest(struct text *t, const struct s3once_counts *c)
{
	if (c->outdated)
		text_addf(t, "; %s %s (--if-changed=skip)", human_count(c->outdated).text,
			c->outdated == 1 ? "has changed since and stays as it was uploaded"
					 : "have changed since and stay as they were uploaded");
	if (c->left)
		text_addf(t, "; %s (%s) %s left for the next run",
			human_things(c->left, "file").text, human_bytes(c->bytes_left).text,
			c->left == 1 ? "is" : "are");
	if (!c->scan_complete)
		text_add(t, "; the run ended before all files were listed");
}

/* Adds how the run ended, such as "all 3 files are in s3://BUCKET", or "2 of 3 files are verified
 * to be in s3://BUCKET". */
static void add_result(
	struct text *t, const struct people *people, const struct s3once_counts *c, int exit_code)
{
	/* The removal has found out that the unproven ones are not in S3, or cannot be known to be.
	 */
	const uint64_t there = counters_sum(c, COUNTS_IN_S3) - c->unproven;
	const uint64_t wanted = c->found - counters_sum(c, COUNTS_LEFT_OUT);
	const bool found_none = !wanted && c->scan_complete;
	const struct s3once_options *run = &people->options->run;
	add_job(t, people);
	if (run->dry_run)
		text_addf(t, "dry run: would upload %s (%s) to",
			human_things(c->planned, "file").text,
			human_bytes(people->planned_bytes).text);
	else if (found_none && c->waiting)
		text_addf(t, "%s%s %s for a later run, and none is ready for",
			c->waiting == 1 ? "" : "all ", human_things(c->waiting, "file").text,
			c->waiting == 1 ? "waits" : "wait");
	else if (found_none)
		text_add(t, "found no files for");
	else
		add_share(t, there, wanted, c, exit_code);
	/* The key of the one file, unless `compress` may add a suffix to it. */
	const char *key = run->as && !run->compress ? run->as : run->prefix;
	text_addf(t, " s3://%s%s%s", run->bucket, *key ? "/" : "", escaped(key).text);
	if (run->dry_run && c->planned)
		add_removal(t, run);
	add_rest(t, c);
}

/* Adds the bytes that the run has sent, and the counters that are not 0. A dry run has sent none.
 */
static void add_counts(struct text *t, const struct people *people, const struct s3once_counts *c)
{
	const bool is_dry = people->options->run.dry_run;
	if (!is_dry)
		text_addf(t, "uploaded %s (%s) in %s", human_count(c->uploaded).text,
			human_bytes(c->bytes_uploaded).text, human_seconds(c->seconds).text);
	/* The rate is that of sending. Unlike bytes_uploaded, bytes_moved includes the content that
	 * was sent of unfinished files, and not the parts that S3 already had. */
	if (!is_dry && c->seconds > 0.5 && c->bytes_moved)
		text_addf(t, ", %s/s",
			human_bytes((uint64_t)((double)c->bytes_moved / c->seconds)).text);
	if (!is_dry && c->bytes_resumed)
		text_addf(t, "; S3 already had %s of it in parts",
			human_bytes(c->bytes_resumed).text);
	if (!is_dry && c->bytes_kept)
		text_addf(t, "; S3 keeps %s of unfinished files, and the next run %s",
			human_bytes(c->bytes_kept).text,
			people->options->is_command && !people->options->run.spool
				? "starts the command again, whose output --spool would keep"
				: "continues from there");
	for (const struct counter *counter = run_counters; counter->name; counter++) {
		const uint64_t n = counter_value(counter, c);
		const bool is_of_move = people->options->run.move_to && counter->words_of_move;
		if (counter->words && n)
			text_addf(t, "%s%s %s", t->len ? "; " : "",
				is_of_move ? counter->words_of_move : counter->words,
				human_count(n).text);
	}
}

/* Adds "3 files are waiting, the oldest for 2 days (may still be written to), such as PATH". */
static void add_waiting(struct text *t, const struct s3once_waiting *waiting, uint64_t age_s)
{
	const bool is_one = waiting->files == 1;
	text_addf(t, "%s %s", human_things(waiting->files, "file").text,
		!is_one                           ? "are waiting"
		: waiting->oldest_ns == INT64_MAX ? "is waiting"
						  : "has been waiting");
	if (waiting->oldest_ns != INT64_MAX)
		text_addf(t, "%s for %s", is_one ? "" : ", the oldest", human_age(age_s).text);
	text_addf(t, " (%s)%s ", waiting->text, is_one ? ":" : ", such as");
	text_add_escaped_string(t, waiting->path);
}

enum wait_length { WAITS_LONG, WAITS_SHORTLY };

/* Returns whether a line about these files is to be printed, and notes it as printed. The passes of
 * a service print only warnings, which are about files that wait for long, and each of them once.
 */
static bool note_wait_if_new(
	struct people *people, const struct s3once_waiting *w, enum wait_length length)
{
	const bool is_service = people->printed_warnings != NULL;
	if (length == WAITS_SHORTLY)
		return !is_service;
	/* The age is no part of this text, since it differs each time. */
	struct text t = TEXT(LINE_BYTES_MAX);
	text_addf(&t, "%s %s", w->text, w->path);
	const bool is_new = note_if_new(people->printed_warnings, text_string(&t));
	text_clear(&t);
	return is_new;
}

/* Prints a line about the files that wait for one reason, the oldest for age_s. Files that wait for
 * long cause a warning, which is printed even with --quiet. */
static void print_wait(struct people *people, const struct s3once_waiting *w, const char *advice,
	uint64_t age_s, enum wait_length length)
{
	const struct push_options *options = people->options;
	if (!note_wait_if_new(people, w, length))
		return;
	struct text t = TEXT(LINE_BYTES_MAX);
	add_waiting(&t, w, age_s);
	if (length == WAITS_LONG) {
		people->has_warned = true;
		output_message(people->output, "warning: %s%s%s", text_string(&t),
			*advice ? "; " : "", advice);
	} else if (!options->quiet && !options->json) {
		output_result(people->output, text_string(&t));
	}
	text_clear(&t);
}

/* Prints a line for each reason for which files wait so long. Files that are younger than
 * --min-age, for which they wait as was asked for, never count as waiting for long. A pass over
 * some folders prints nothing. */
static void print_waiting(
	struct people *people, const struct s3once_push *push, enum wait_length length)
{
	if (people->options->run.folders)
		return;
	for (int why = 0; why < S3ONCE_WAITS; why++) {
		const struct s3once_waiting *w = s3once_push_waiting(push, (enum s3once_wait)why);
		/* Files that are all empty have no age: oldest_ns is INT64_MAX, and age_s is 0. */
		const int64_t age_ns = clock_wall_ns() - (w->oldest_ns > 0 ? w->oldest_ns : 0);
		const uint64_t age_s = age_ns > 0 ? (uint64_t)age_ns / NS_PER_S : 0;
		const bool is_long = age_s > S3ONCE_WAITS_LONG_S && why != S3ONCE_WAIT_YOUNG;
		if (w->files && length == (is_long ? WAITS_LONG : WAITS_SHORTLY))
			print_wait(people, w, wait_advice((enum s3once_wait)why), age_s, length);
	}
}

/* Prints why the run ended before all was done, with --quiet. Without it, this was printed when the
 * run learnt of the limit or the signal. */
static void print_early_end(struct people *people, const struct s3once_push *push, int exit_code)
{
	const int signal = exit_code - S3ONCE_EXIT_STOPPED;
	const char *name = signal == SIGTERM  ? "SIGTERM"
			   : signal == SIGINT ? "SIGINT"
			   : signal == SIGHUP ? "SIGHUP"
					      : NULL;
	const char *limit = s3once_push_limit(push);
	struct text t = TEXT(LINE_BYTES_MAX);
	add_job(&t, people);
	if (name)
		output_message(people->output, "note: %sstopped by %s; the next run %s",
			text_string(&t), name,
			people->options->run.read ? "begins again" : "goes on");
	else if (*limit)
		output_message(people->output, "note: %s%s", text_string(&t), limit);
	text_clear(&t);
}

/* Prints, for each kind of error, how many were not printed. */
static void print_more_alike(const struct people *people)
{
	for (size_t i = 0; i < people->errors.n; i++) {
		const struct alike_kind *kind = &people->errors.kinds[i];
		if (kind->count <= ALIKE_PRINTED)
			continue;
		const uint64_t n = kind->count - ALIKE_PRINTED;
		output_message(people->output,
			"error: %s more %s the same error: %s (-v names each)", human_count(n).text,
			n == 1 ? "file has" : "files have", kind->sentence ? kind->sentence : "");
	}
}

/* Prints the summary in one line, with --quiet. */
static void print_short_summary(struct people *people, const struct s3once_push *push,
	const struct text *result, const struct text *counts, int exit_code)
{
	if (exit_code != S3ONCE_EXIT_OK)
		print_early_end(people, push, exit_code);
	output_message(people->output, "%s%s%s", text_string(result), counts->len ? "; " : "",
		text_string(counts));
}

/* Prints the summary in several lines. */
static void print_whole_summary(struct people *people, const struct s3once_push *push,
	const struct text *result, const struct text *counts)
{
	const struct s3once_counts *c = s3once_push_counts(push);
	const char *manifest = s3once_push_manifest(push);
	output_result(people->output, text_string(result));
	if (counts->len)
		output_result(people->output, text_string(counts));
	if (people->options->verbose && c->concurrency)
		output_resultf(people->output, "up to %u requests at once; %s", c->concurrency,
			limit_sentence(c->limited_by));
	print_waiting(people, push, WAITS_SHORTLY);
	if (*manifest)
		output_resultf(people->output, "manifest: s3://%s/%s", people->options->run.bucket,
			escaped(manifest).text);
}

void people_summary(struct people *people, const struct s3once_push *push, int exit_code)
{
	const struct s3once_counts *c = s3once_push_counts(push);
	const bool is_success = exit_code == S3ONCE_EXIT_OK;
	/* A wrong setup kept the run from beginning. That error was printed, and there is nothing
	 * to sum up. */
	const bool never_began =
		exit_code == S3ONCE_EXIT_SETUP && !counters_sum(c, COUNTS_IN_S3) && !c->bytes_sent;
	/* Nothing happened in this run. Only one of many runs of a job has
	 * people->printed_warnings. */
	const bool is_idle = people->printed_warnings && is_success && !c->uploaded &&
			     !c->adopted && !c->refreshed && !c->removed && !c->moved;
	if (!people->options->verbose) /* with -v, each error was printed */
		print_more_alike(people);
	print_waiting(people, push, WAITS_LONG);
	/* With --quiet there is a summary only if something is wrong, and in one line: cron mails
	 * whatever is printed. */
	const bool is_quiet_success = people->options->quiet && is_success && !people->has_warned;
	if (people->options->json || never_began || is_idle || is_quiet_success)
		return;
	struct text result = TEXT(LINE_BYTES_MAX), counts = TEXT(LINE_BYTES_MAX);
	add_result(&result, people, c, exit_code);
	add_counts(&counts, people, c); /* may add nothing, in a dry run */
	if (people->options->quiet)
		print_short_summary(people, push, &result, &counts, exit_code);
	else
		print_whole_summary(people, push, &result, &counts);
	text_clear(&result);
	text_clear(&counts);
}
