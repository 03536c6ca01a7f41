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

#define LINE_BYTES_MAX (32U << 10)

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

static void set_problem(json_t *object, const struct problem *problem)
{
	json_set_bytes(object, "text", problem ? problem->text : "");
	json_set_bytes(object, "code", problem ? problem->code : "");
	json_set_bytes(object, "request_id", problem ? problem->request_id : "");
}

static void json_found(struct verify_view *view, enum finding finding, const char *key,
	const struct problem *problem)
{
	json_t *object = json_event("object");
	json_set_bytes(object, "result", results[finding].name);
	json_set_bytes(object, "bucket", view->bucket);
	json_set_bytes(object, "key", key);
	set_problem(object, problem);
	json_print(view->output, object);
}

void verify_view_found(
	void *arg, enum finding finding, const char *key, const struct problem *problem)
{
	struct verify_view *view = arg;
	struct text t = TEXT(LINE_BYTES_MAX);
	if (finding == FINDING_SAME && !view->verbose)
		return;
	if (view->json) {
		json_found(view, finding, key, problem);
		return;
	}
	text_addf(&t, "%c ", results[finding].sign);
	text_add_escaped(&t, key, strlen(key));
	output_result(view->output, text_string(&t));
	if (problem) {
		char sentence[PROBLEM_SENTENCE_MAX];
		problem_format(problem, sentence, sizeof sentence);
		text_reset(&t);
		text_add_escaped(&t, key, strlen(key));
		output_say(view->output, "%s%s: %s", finding == FINDING_ERROR ? "error: " : "",
			text_string(&t), sentence);
	}
	text_clear(&t);
}

void verify_view_warned(void *arg, const struct problem *problem)
{
	struct verify_view *view = arg;
	if (view->json) {
		json_t *object = json_event("warning");
		set_problem(object, problem);
		json_print(view->output, object);
	} else {
		output_say(view->output, "warning: %s", problem->text);
	}
}

static void add_count(struct text *t, uint64_t n, const char *what)
{
	text_add(t, ", ");
	human_count(t, n);
	text_addf(t, " %s", what);
}

void verify_view_progress(void *arg, const struct verify_counts *counts)
{
	struct verify_view *view = arg;
	struct text t = TEXT(1000);
	if (!view->draws)
		return;
	human_things(&t, counts->listed, "object");
	text_add(&t, " listed");
	add_count(&t, counts->of[FINDING_SAME],
		view->of_manifest ? "as the manifest says" : "as their marks say");
	add_count(&t, counts->looked_at, "looked at");
	if (counts->bytes_read) {
		text_add(&t, ", ");
		human_bytes(&t, counts->bytes_read);
		text_add(&t, " read");
	}
	const unsigned columns = terminal_size(STDERR_FILENO).columns;
	if (t.len > columns)
		t.data[t.len = columns] = '\0';
	output_draw(view->output, text_string(&t));
	text_clear(&t);
}

static uint64_t differences(const struct verify_counts *counts)
{
	return counts->of[FINDING_MISSING] + counts->of[FINDING_DIFFERS] +
	       counts->of[FINDING_UNKNOWN] + counts->of[FINDING_ERROR];
}

static void add_place(struct text *t, const struct verify_view *view)
{
	text_addf(t, "s3://%s/", quote(view->bucket).text);
	text_add_escaped(t, view->prefix, strlen(view->prefix));
}

static void say_result(struct verify_view *view, const struct verify_end *end)
{
	static const char *const ways[] = {"size and etag", "checksum or etag", "content"};
	struct text t = TEXT(LINE_BYTES_MAX);
	const struct verify_counts *counts = &end->counts;
	const uint64_t right = counts->of[FINDING_SAME], other = counts->of[FINDING_DIFFERS];
	add_place(&t, view);
	text_add(&t, ": ");
	human_things(&t, right, "object");
	text_addf(&t, " %s %s, by %s", right == 1 ? "is as" : "are as",
		view->of_manifest ? "the manifest says"
		: right == 1      ? "its mark says"
				  : "their marks say",
		ways[view->by]);
	if (differences(counts)) {
		add_count(&t, counts->of[FINDING_MISSING], "missing");
		add_count(&t, other, other == 1 ? "differs" : "differ");
		if (!view->of_manifest)
			add_count(&t, counts->of[FINDING_UNKNOWN], "unknown to the marks");
		add_count(&t, counts->of[FINDING_ERROR], "could not be compared");
	}
	if (counts->of[FINDING_AGED])
		add_count(
			&t, counts->of[FINDING_AGED], "without a mark are older than --keep-marks");
	output_say(view->output, "%s", text_string(&t));
	text_clear(&t);
}

static void say_rest(struct verify_view *view, const struct verify_end *end)
{
	struct text t = TEXT(LINE_BYTES_MAX);
	const uint64_t unfinished = end->counts.of[FINDING_UNFINISHED];
	if (unfinished) {
		human_things(&t, unfinished, "file");
		output_say(view->output,
			"%s %s claimed or failed and not compared: s3once status shows more",
			text_string(&t), unfinished == 1 ? "is" : "are");
		text_reset(&t);
	}
	if (!end->is_complete && *end->after) {
		text_add_escaped(&t, end->after, strlen(end->after));
		output_say(view->output,
			"not all was looked at; the same command goes on with --after '%s'",
			text_string(&t));
	} else if (!end->is_complete) {
		output_say(view->output, "not all was looked at");
	}
	text_clear(&t);
}

static void set_requests(json_t *object, const struct verify *verify)
{
	json_t *requests = json_object();
	const struct service *service = verify->s3 ? s3_service(verify->s3) : NULL;
	const struct store *store = verify->store;
	unsigned long count;
	const char *kind;
	for (size_t i = 0; service && (kind = service_kind(service, i, &count)); i++)
		if (count)
			json_set_number(requests, kind, count);
	for (size_t i = 0; store && (kind = store->ops->kind(store, i, &count)); i++)
		if (count)
			json_set_number(requests, kind, count);
	json_object_set_new(object, "requests", requests);
}

static void json_end(struct verify_view *view, const struct verify_told *told)
{
	const struct verify_end *end = told->end;
	json_t *object;
	if (told->problem) {
		object = json_event("fatal");
		set_problem(object, told->problem);
		json_print(view->output, object);
	}
	object = json_event("verify");
	json_set_bytes(object, "bucket", view->bucket);
	json_set_bytes(object, "prefix", view->prefix);
	json_set_number(object, "listed", end->counts.listed);
	for (int i = 0; i < FINDINGS; i++)
		if (results[i].name)
			json_set_number(object, results[i].name, end->counts.of[i]);
	json_set_number(object, "looked_at", end->counts.looked_at);
	json_set_number(object, "bytes_read", end->counts.bytes_read);
	json_object_set_new(object, "complete", json_boolean(end->is_complete));
	if (end->is_complete || !*end->after)
		json_object_set_new(object, "after", json_null());
	else
		json_set_bytes(object, "after", end->after);
	set_requests(object, told->verify);
	json_set_number(object, "exit", (uint64_t)told->code);
	json_print(view->output, object);
}

void verify_view_end(struct verify_view *view, const struct verify_told *told)
{
	if (view->draws)
		output_draw(view->output, "");
	if (view->json) {
		json_end(view, told);
		return;
	}
	if (told->problem && !told->end->counts.listed)
		return;
	say_result(view, told->end);
	say_rest(view, told->end);
}
