#include "cli/status/status_watch.h"
#include "base/clock.h"
#include "cli/human_figures.h"
#include "cli/output.h"
#include <errno.h>
#include <unistd.h>
#include <uv.h>

#define LINE_BYTES_MAX 512

/* What a look has found. */
struct found {
	uint64_t at_ns; /* 0: there was no look yet */
	uint64_t done, bytes;
};

static void add_rate(struct text *t, const struct found *before, const struct found *now)
{
	const double seconds = (double)(now->at_ns - before->at_ns) / (double)NS_PER_S;
	const uint64_t files = now->done > before->done ? now->done - before->done : 0;
	const uint64_t bytes = now->bytes > before->bytes ? now->bytes - before->bytes : 0;
	text_add(t, ", ");
	human_things(t, files, "file");
	text_add(t, " (");
	human_bytes(t, bytes);
	text_addf(t, ") done since the last look, %.1f files/s, ", (double)files / seconds);
	human_bytes(t, (uint64_t)((double)bytes / seconds));
	text_add(t, "/s");
}

/* The line that says when the look was, and what has changed since the one before. */
static void add_about(struct text *t, const struct found *before, const struct found *now)
{
	char time[21];
	clock_format_iso(clock_wall_ns() / (int64_t)NS_PER_S, time);
	text_add(t, time);
	if (before->at_ns && now->at_ns > before->at_ns)
		add_rate(t, before, now);
}

static void show(struct status_view *view, const struct text *about)
{
	if (!view->page) {
		if (!view->json)
			output_result(view->output, text_string(about));
		return;
	}
	if (view->page->left_out) {
		struct text t = TEXT(LINE_BYTES_MAX);
		human_count(&t, view->page->left_out);
		text_add(&t, " lines more have no room here");
		status_page_last(view->page, text_string(&t));
		text_clear(&t);
	}
	status_page_last(view->page, text_string(about));
	if (status_page_draw(view->page) < 0)
		view->output->locked.error = -EPIPE;
}

enum outcome status_watch(const struct status_watch *watch, struct problem *ret_problem)
{
	struct status_view *view = watch->view;
	struct status_page page = {0};
	struct found before = {0};
	enum outcome o;
	view->page = !view->json && terminal_can_draw(STDOUT_FILENO) ? &page : NULL;
	for (;;) {
		struct text about = TEXT(LINE_BYTES_MAX);
		if (view->page)
			status_page_begin(view->page);
		view->failed_told = view->changed_told = 0;
		o = watch->look(watch->arg, ret_problem);
		if (o != OUTCOME_OK)
			break;
		const struct found now = {clock_boot_ns(), view->sum.done, view->sum.bytes_done};
		add_about(&about, &before, &now);
		show(view, &about);
		text_clear(&about);
		if (view->output->locked.error)
			break;
		before = now;
		uv_sleep((unsigned)watch->interval_ms);
	}
	status_page_clear(&page);
	view->page = NULL;
	return o;
}
