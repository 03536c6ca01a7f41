#include "cli/push/people.h"
#include "base/text.h"
#include "cli/human_figures.h"
#include <string.h>

static const char marks_note[] =
	"marks are this host's only; --marks dynamodb:TABLE shares them between hosts";

/* How each kind of event is told. */
static const struct {
	const char *words; /* before the path */
	unsigned verbose;  /* told from this many -v on */
	bool is_error;     /* on stderr, even when quiet */
} tellings[] = {
	[S3ONCE_EVENT_UPLOADED] = {"uploaded", 1, false},
	[S3ONCE_EVENT_ADOPTED] = {"already in S3:", 1, false},
	[S3ONCE_EVENT_REFRESHED] = {"same content, new modification time:", 1, false},
	[S3ONCE_EVENT_SKIPPED] = {"skipped", 2, false},
	[S3ONCE_EVENT_OUTDATED] = {"kept as it is in S3:", 0, false},
	[S3ONCE_EVENT_PLANNED] = {"would upload", 0, false},
	[S3ONCE_EVENT_LINK] = {"skipped symbolic link", 1, false},
	[S3ONCE_EVENT_OVERSIZED] = {"skipped, larger than --max-size:", 1, false},
	[S3ONCE_EVENT_UNDERSIZED] = {"skipped, smaller than --min-size:", 1, false},
	[S3ONCE_EVENT_YOUNG] = {"skipped, younger than --min-age or still written to:", 1, false},
	[S3ONCE_EVENT_SPECIAL] = {"skipped", 1, false},
	[S3ONCE_EVENT_CHANGED] = {"", 0, true},
	[S3ONCE_EVENT_HELD] = {"", 0, true},
	[S3ONCE_EVENT_FAILED] = {"", 0, true},
	[S3ONCE_EVENT_REMOVED] = {"removed", 1, false},
	[S3ONCE_EVENT_MOVED] = {"moved away", 1, false},
	[S3ONCE_EVENT_KEPT] = {"not removed yet:", 0, false},
	[S3ONCE_EVENT_NOT_REMOVED] = {"", 0, true},
	[S3ONCE_EVENT_REMOVABLE] = {"would remove", 0, false},
	[S3ONCE_EVENT_RETRY] = {"retrying", 1, false},
	[S3ONCE_EVENT_MANIFEST_FAILED] = {"", 0, true},
};

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

void people_add_job(struct text *t, const struct people *people)
{
	if (people->job) {
		text_add_escaped_string(t, people->job);
		text_add(t, ": ");
	}
}

/* Adds "PATH -> s3://BUCKET/KEY (SIZE): sentence", as far as the event has these. */
static void add_file(struct text *t, const struct people *people, const struct s3once_event *event)
{
	text_add_escaped_string(t, event->path);
	if (*event->key && event->type != S3ONCE_EVENT_LINK && event->type != S3ONCE_EVENT_YOUNG &&
		event->type != S3ONCE_EVENT_SPECIAL) {
		text_addf(t, " -> s3://%s/", people->bucket);
		text_add_escaped_string(t, event->key);
	}
	if (event->type == S3ONCE_EVENT_UPLOADED || event->type == S3ONCE_EVENT_PLANNED ||
		event->type == S3ONCE_EVENT_REMOVED || event->type == S3ONCE_EVENT_MOVED ||
		event->type == S3ONCE_EVENT_REMOVABLE) {
		text_add(t, " (");
		human_bytes(t, event->bytes);
		text_add_char(t, ')');
	}
	if (*event->text) {
		text_add(t, ": ");
		add_sentence(t, event);
	}
}

/* Whether an error is printed: with -v all are, and otherwise the first of each kind. */
static bool is_printed(struct people *people, const struct s3once_event *event)
{
	struct text t = TEXT(PEOPLE_LINE_BYTES_MAX);
	text_add(&t, event->text);
	if (*event->code)
		text_addf(&t, " (%s)", event->code);
	const bool is_among_first = alike_add(&people->errors, text_string(&t));
	text_clear(&t);
	return is_among_first || people->verbose;
}

static void tell_error(struct people *people, const struct s3once_event *event)
{
	if (!is_printed(people, event))
		return;
	struct text t = TEXT(PEOPLE_LINE_BYTES_MAX);
	text_add(&t, "error: ");
	if (*event->path) {
		text_add_escaped_string(&t, event->path);
		text_add(&t, ": ");
	} else {
		people_add_job(&t, people);
	}
	add_sentence(&t, event);
	output_say(people->output, "%s", text_string(&t));
	text_clear(&t);
}

static void tell_file(struct people *people, const struct s3once_event *event)
{
	struct text t = TEXT(PEOPLE_LINE_BYTES_MAX);
	text_addf(&t, "%s ", tellings[event->type].words);
	add_file(&t, people, event);
	output_result(people->output, text_string(&t));
	text_clear(&t);
}

/* A file that another uploader holds is not an error while the run waits for it. The first one is
 * told, and with -v all are. */
static void tell_waiting(struct people *people, const struct s3once_event *event)
{
	struct text t = TEXT(PEOPLE_LINE_BYTES_MAX);
	add_file(&t, people, event);
	if (!people->quiet && (people->verbose || !people->has_said_waiting))
		output_say(people->output, "waiting: %s", text_string(&t));
	people->has_said_waiting = true;
	text_clear(&t);
}

static void tell_start(struct people *people, const struct s3once_event *event)
{
	if (people->quiet)
		return;
	if (people->makes_marks)
		output_say(people->output, "%s", marks_note);
	else if (people->verbose)
		output_say(people->output, "marks: %s", event->text);
}

static void tell_about_file(struct people *people, const struct s3once_event *event)
{
	if (event->type == S3ONCE_EVENT_PLANNED)
		people->planned_bytes += event->bytes;
	if (event->type == S3ONCE_EVENT_HELD && !people->gives_up_held)
		tell_waiting(people, event);
	else if (tellings[event->type].is_error &&
		 !(event->type == S3ONCE_EVENT_CHANGED && people->skip_changed))
		tell_error(people, event);
	else if (people->verbose >= tellings[event->type].verbose && !people->only_stderr &&
		 !people->quiet)
		tell_file(people, event);
}

/* Whether an earlier run of this job has said so. */
static bool was_said(struct people *people, const char *sentence)
{
	struct text *said = people->said;
	if (!said || strstr(text_string(said), sentence))
		return said != NULL;
	text_add(said, sentence);
	text_add_char(said, '\n');
	return false;
}

void people_event(struct people *people, const struct s3once_event *event)
{
	switch (event->type) {
	case S3ONCE_EVENT_START:
		tell_start(people, event);
		break;
	case S3ONCE_EVENT_WARNING:
		people->has_warned = true;
		if (!was_said(people, event->text))
			output_say(people->output, "warning: %s", event->text);
		break;
	case S3ONCE_EVENT_NOTE:
		if (!people->quiet && !was_said(people, event->text))
			output_say(people->output, "note: %s", event->text);
		break;
	case S3ONCE_EVENT_FATAL:
		tell_error(people, event);
		break;
	case S3ONCE_EVENT_MANIFEST: /* the summary names it */
	case S3ONCE_EVENT_PROGRESS:
	case S3ONCE_EVENT_SUMMARY:
		break;
	default:
		tell_about_file(people, event);
	}
}
