#include "cli/audit/fate_tell.h"
#include "base/quote.h"
#include "base/text.h"
#include "cli/human_figures.h"
#include "cli/json.h"
#include <string.h>

#define LINE_BYTES_MAX (32U << 10)

/* The events of --json, and what people read before the name. */
static const struct {
	const char *event, *words;
} fates[FATES] = {
	[FATE_FORGOTTEN] = {"forgotten", "forgotten"},
	[FATE_FORGETTABLE] = {"forgettable", "would be forgotten"},
	[FATE_ABORTED] = {"aborted", "upload aborted"},
	[FATE_ABORTABLE] = {"abortable", "upload would be aborted"},
	[FATE_KEPT] = {"kept", "kept"},
	[FATE_DAMAGED] = {"damaged", "damaged"},
	[FATE_FAILED] = {"failed", "error"},
};

static void tell_json(struct fate_view *view, const struct mark_told *told)
{
	static const struct problem none;
	const struct problem *problem = told->problem ? told->problem : &none;
	json_t *object = json_event(fates[told->fate].event);
	json_set_bytes(object, "bucket", view->bucket);
	json_set_bytes(object, "key", told->key);
	json_set_bytes(object, "object", told->object);
	json_set_bytes(object, "state", mark_state_name(told->state));
	if (told->fate == FATE_ABORTED || told->fate == FATE_ABORTABLE)
		json_set_bytes(object, "upload_id", told->upload_id);
	if (told->fate == FATE_KEPT || told->fate == FATE_FAILED)
		json_set_bytes(object, "text", told->problem ? problem->text : told->why);
	if (told->fate == FATE_FAILED) {
		json_set_bytes(object, "code", problem->code);
		json_set_bytes(object, "request_id", problem->request_id);
	}
	json_print(view->output, object);
}

void fate_tell(void *arg, const struct mark_told *told)
{
	struct fate_view *view = arg;
	struct text t = TEXT(LINE_BYTES_MAX);
	atomic_fetch_add(&view->counts[told->fate], 1);
	if (view->json)
		tell_json(view, told);
	text_addf(&t, "%s: s3://%s/", fates[told->fate].words, view->bucket);
	text_add_escaped_string(&t, told->key);
	if (told->fate == FATE_FAILED)
		text_addf(&t, ": %s", told->problem->text);
	else if (*told->why)
		text_addf(&t, ": %s", told->why);
	if (told->fate == FATE_FAILED)
		output_say(view->output, "%s", text_string(&t));
	else if (!view->json)
		output_result(view->output, text_string(&t));
	text_clear(&t);
}

uint64_t fate_count(const struct fate_view *view, enum mark_fate fate)
{
	return atomic_load(&view->counts[fate]);
}
