/* What `s3once verify` finds, told while it goes on and at its end: a line for each difference as
 * `rclone check --combined` writes them, or an event, and how far it is on a terminal. Called by
 * the threads of a comparison, one at a time. Which exit code follows is decided by
 * verify_command.c. */
#include "cli/audit/verify_view.h"
#include "base/quote.h"
#include "cli/human_figures.h"
#include "cli/json.h"
#include <string.h>
#include <unistd.h>

/* As `rclone check --combined` writes them. */
static const struct {
	char sign;
	const char *name;
} results[FINDINGS] = {
	[FINDING_SAME] = {'=', "same"},
	[FINDING_MISSING] = {'-', "missing"},
	[FINDING_DIFFERS] = {'*', "differs"},
	[FINDING_UNKNOWN] = {'+', "unknown"},
	[FINDING_ERROR] = {'!', "error"},
	[FINDING_AGED] = {' ', "aged"},
	[FINDING_UNFINISHED] = {' ', "unfinished"},
};

void verify_view_found(
	void *arg, enum finding finding, const char *key, const struct problem *problem)
{
	struct verify_view *view = arg;
	char sentence[PROBLEM_SENTENCE_MAX];
	if (finding == FINDING_SAME && !view->verbose)
		return;
	if (view->json) {
		json_t *object =
			json_set(json_event("object"), BYTES("result", results[finding].name),
				BYTES("bucket", view->bucket), BYTES("key", key));
		json_set_problem(object, problem);
		json_print(view->output, object);
		return;
	}
	output_tell(view->output, "%c %s", results[finding].sign, escaped(key).text);
	if (problem) {
		problem_format(problem, sentence, sizeof sentence);
		output_say(view->output, "%s%s: %s", finding == FINDING_ERROR ? "error: " : "",
			escaped(key).text, sentence);
	}
}

void verify_view_warned(void *arg, const struct problem *problem)
{
	struct verify_view *view = arg;
	if (view->json) {
		json_t *object = json_event("warning");
		json_set_problem(object, problem);
		json_print(view->output, object);
	} else {
		output_say(view->output, "warning: %s", problem->text);
	}
}

static void add_count(struct text *t, uint64_t n, const char *what)
{
	text_addf(t, ", %s %s", human_count(n).text, what);
}

void verify_view_progress(void *arg, const struct verify_counts *counts)
{
	struct verify_view *view = arg;
	struct text t = TEXT(1000);
	if (!view->draws)
		return;
	text_addf(&t, "%s listed", human_things(counts->listed, "object").text);
	add_count(&t, counts->of[FINDING_SAME],
		view->verify->place.store ? "as their marks say" : "as the manifest says");
	add_count(&t, counts->looked_at, "looked at");
	if (counts->bytes_read)
		text_addf(&t, ", %s read", human_bytes(counts->bytes_read).text);
	const unsigned columns = terminal_size(STDERR_FILENO).columns;
	if (t.len > columns)
		t.data[t.len = columns] = '\0';
	output_draw(view->output, text_string(&t));
	text_clear(&t);
}

static void say_end(struct verify_view *view, const struct verify_end *end)
{
	static const char *const ways[] = {"size and etag", "checksum or etag", "content"};
	const bool of_manifest = !view->verify->place.store;
	const uint64_t *of = end->counts.of, right = of[FINDING_SAME];
	const uint64_t unfinished = of[FINDING_UNFINISHED];
	struct text t = TEXT(4000);
	if (of[FINDING_MISSING] || of[FINDING_DIFFERS] || of[FINDING_UNKNOWN] ||
		of[FINDING_ERROR]) {
		add_count(&t, of[FINDING_MISSING], "missing");
		add_count(&t, of[FINDING_DIFFERS], of[FINDING_DIFFERS] == 1 ? "differs" : "differ");
		if (!of_manifest)
			add_count(&t, of[FINDING_UNKNOWN], "unknown to the marks");
		add_count(&t, of[FINDING_ERROR], "could not be compared");
	}
	if (of[FINDING_AGED])
		add_count(&t, of[FINDING_AGED], "without a mark are older than --keep-marks");
	output_say(view->output, "s3://%s/%s: %s %s %s, by %s%s", quote(view->bucket).text,
		escaped(view->prefix).text, human_things(right, "object").text,
		right == 1 ? "is as" : "are as",
		of_manifest  ? "the manifest says"
		: right == 1 ? "its mark says"
			     : "their marks say",
		ways[view->verify->by], text_string(&t));
	text_clear(&t);
	if (unfinished)
		output_say(view->output,
			"%s %s claimed or failed and not compared: s3once status shows more",
			human_things(unfinished, "file").text, unfinished == 1 ? "is" : "are");
	if (!end->is_complete && *end->after)
		output_say(view->output,
			"not all was looked at; the same command goes on with --after '%s'",
			escaped(end->after).text);
	else if (!end->is_complete)
		output_say(view->output, "not all was looked at");
}

static void json_end(struct verify_view *view, const struct verify_end *end,
	const struct problem *problem, int code)
{
	const struct service *service =
		view->verify->place.s3 ? s3_service(view->verify->place.s3) : NULL;
	const struct store *store = view->verify->place.store;
	json_t *object, *requests = json_object();
	unsigned long count;
	const char *kind;
	if (problem) {
		object = json_event("fatal");
		json_set_problem(object, problem);
		json_print(view->output, object);
	}
	object = json_set(json_event("verify"), BYTES("bucket", view->bucket),
		BYTES("prefix", view->prefix), NUMBER("listed", end->counts.listed));
	for (int i = 0; i < FINDINGS; i++)
		if (results[i].name)
			json_set_number(object, results[i].name, end->counts.of[i]);
	for (size_t i = 0; service && (kind = service_kind(service, i, &count)); i++)
		if (count)
			json_set_number(requests, kind, count);
	for (size_t i = 0; store && (kind = store->ops->kind(store, i, &count)); i++)
		if (count)
			json_set_number(requests, kind, count);
	json_print(view->output,
		json_set(object, NUMBER("looked_at", end->counts.looked_at),
			NUMBER("bytes_read", end->counts.bytes_read),
			BOOLEAN("complete", end->is_complete),
			BYTES("after", end->is_complete || !*end->after ? NULL : end->after),
			NODE("requests", requests), NUMBER("exit", code)));
}

void verify_view_end(struct verify_view *view, const struct verify_end *end,
	const struct problem *problem, int code)
{
	if (view->draws)
		output_draw(view->output, "");
	if (view->json)
		json_end(view, end, problem, code);
	else if (!problem || end->counts.listed)
		say_end(view, end);
}
