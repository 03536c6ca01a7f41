#include "cli/status/status_tell.h"
#include "base/clock.h"
#include "base/quote.h"
#include "base/text.h"
#include "cli/human_figures.h"
#include "cli/status/status_json.h"
#include <inttypes.h>
#include <string.h>

#define LISTED_MAX 10

static void put(struct status_view *view, const struct text *line)
{
	if (view->page)
		status_page_add(view->page, text_string(line));
	else
		output_result(view->output, text_string(line));
}

__attribute__((format(printf, 2, 3))) static void tell(
	struct status_view *view, const char *format, ...)
{
	struct text t = TEXT(32U << 10);
	va_list ap;
	va_start(ap, format);
	text_addfv(&t, format, ap);
	va_end(ap);
	put(view, &t);
	text_clear(&t);
}

/* What may be longer than quote() shows. */
static void tell_escaped(struct status_view *view, const char *before, const char *key)
{
	struct text t = TEXT(32U << 10);
	text_add(&t, before);
	text_add_escaped_string(&t, key);
	put(view, &t);
	text_clear(&t);
}

/* Seconds since the epoch as people read them; by value. */
struct moment {
	char text[24];
};

static struct moment moment(int64_t s)
{
	struct moment m = {"an unknown time"};
	if (s > 0)
		clock_format_iso(s, m.text);
	return m;
}

void status_tell_store(struct status_view *view, bool has_bucket)
{
	const struct store_settings *settings = &view->space->settings;
	if (view->json) {
		json_print(view->output, status_json_store(view->marks, settings));
		return;
	}
	tell(view, "marks: %s, %u shard%s, id %s", view->marks, settings->shards,
		settings->shards == 1 ? "" : "s", settings->table_id);
	if (!has_bucket)
		tell(view, "name a bucket to see what they hold: s3once status s3://BUCKET");
}

void status_tell_bucket(struct status_view *view, const struct bucket_row *row)
{
	if (view->json) {
		json_print(view->output, status_json_bucket(view->space->bucket, row));
		return;
	}
	struct text t = TEXT(2000);
	text_addf(&t, "bucket: %s", quote(view->space->bucket).text);
	if (row->generation)
		text_addf(&t, ", the marks of %u earlier %s of this name are set aside",
			row->generation, row->generation == 1 ? "bucket" : "buckets");
	tell(view, "%s", text_string(&t));
	text_clear(&t);
}

static void tell_version(struct status_view *view, const struct version *version)
{
	struct text size = TEXT(64);
	human_bytes(&size, version->size);
	tell(view, "  version   %s (%" PRIu64 " bytes), modified %s", text_string(&size),
		version->size, moment(version->mtime_ns / (int64_t)NS_PER_S).text);
	tell(view, "            %s, etag %s", quote(version->sum).text, quote(version->etag).text);
	text_clear(&size);
}

static const char *condition(const struct session_info *session)
{
	if (!session->is_open)
		return "ended";
	return session->is_gone ? "its process is gone" : "still open";
}

static void tell_claim(
	struct status_view *view, const struct mark *mark, const struct session_info *session)
{
	if (session)
		tell(view, "  by        %s, %s, begun %s", quote(session->owner).text,
			condition(session), moment(session->started_s).text);
	else if (mark->state == MARK_CLAIMED)
		tell(view, "  by        an uploader that ended long ago");
	tell(view, "  fence     session %s, claim %s", quote(mark->session).text,
		quote(mark->claim).text);
}

void status_tell_mark(struct status_view *view, const char *key, const struct mark *mark,
	const struct session_info *session)
{
	char outlook[400];
	status_outlook(mark, session, outlook, sizeof outlook);
	if (view->json) {
		json_print(view->output, status_json_mark(view->space->bucket, key, mark, outlook));
		return;
	}
	char before[sizeof view->space->bucket + 8];
	snprintf(before, sizeof before, "s3://%s/", view->space->bucket);
	tell_escaped(view, before, key);
	tell(view, "  state     %s since %s, tries %" PRId64, mark_state_name(mark->state),
		moment(mark->at_s).text, mark->tries);
	if (mark->error)
		tell_escaped(view, "  why       ", mark->error);
	tell_claim(view, mark, session);
	if (mark->source)
		tell(view, "  source    %s", quote(mark->source).text);
	if (mark->has_done)
		tell_version(view, &mark->done);
	if (mark->upload.id)
		tell(view, "  upload    %s", quote(mark->upload.id).text);
	tell(view, "  next run  %s", outlook);
}

void status_tell_absent(struct status_view *view, const char *key)
{
	const struct mark mark = {.state = MARK_ABSENT};
	char outlook[400], before[sizeof view->space->bucket + 8];
	status_outlook(&mark, NULL, outlook, sizeof outlook);
	if (view->json) {
		json_print(
			view->output, status_json_mark(view->space->bucket, key, &mark, outlook));
		return;
	}
	snprintf(before, sizeof before, "s3://%s/", view->space->bucket);
	tell_escaped(view, before, key);
	tell(view, "  state     no mark for this key: with these marks, no upload of it has begun");
	tell(view, "  next run  %s", outlook);
}

void status_tell_nothing(struct status_view *view, const char *prefix)
{
	struct text t = TEXT(32U << 10);
	view->sum = (struct status_counts){0};
	text_addf(&t, "s3://%s/", quote(view->space->bucket).text);
	text_add_escaped_string(&t, prefix);
	text_addf(
		&t, " at %s: these marks know of no file there", quote(view->space->service).text);
	if (!view->knows_bucket)
		text_add(&t, ", nor of the bucket: check its name, --endpoint-url, and whose marks "
			     "they are (--marks, --job)");
	put(view, &t);
	text_clear(&t);
}

static void tell_changed(struct status_view *view, const char *key, const struct mark *mark)
{
	if (view->changed_told >= LISTED_MAX && !view->verbose)
		return;
	view->changed_told++;
	tell_escaped(view, "changed: ", key);
	tell(view, "         the file is of %s now and was of %s when it was uploaded",
		moment(mark->newer_mtime_ns / (int64_t)NS_PER_S).text,
		moment(mark->done.mtime_ns / (int64_t)NS_PER_S).text);
}

void status_tell_unfinished(struct status_view *view, const char *key, const struct mark *mark)
{
	if (view->json) {
		json_print(view->output, status_json_mark(view->space->bucket, key, mark, NULL));
		return;
	}
	if (mark->state == MARK_DONE) {
		tell_changed(view, key, mark);
		return;
	}
	if (mark->state != MARK_FAILED || (view->failed_told >= LISTED_MAX && !view->verbose))
		return;
	view->failed_told++;
	tell_escaped(view, "failed: ", key);
	tell_escaped(view, "        ", mark->error ? mark->error : "no reason kept");
}

static void tell_session(struct status_view *view, const struct status_session *session)
{
	struct text claims = TEXT(64);
	human_things(&claims, session->claims, "file");
	if (session->known)
		tell(view, "claimed: %s by %s, %s, begun %s", text_string(&claims),
			quote(session->info.owner).text, condition(&session->info),
			moment(session->info.started_s).text);
	else
		tell(view, "claimed: %s by an uploader that ended long ago", text_string(&claims));
	text_clear(&claims);
}

static void tell_counts(
	struct status_view *view, const char *prefix, const struct status_counts *counts)
{
	struct text t = TEXT(4096);
	text_addf(&t, "s3://%s/%s at %s: done ", view->space->bucket, quote(prefix).text,
		quote(view->space->service).text);
	human_things(&t, counts->done, "file");
	text_add(&t, " (");
	human_bytes(&t, counts->bytes_done);
	text_add(&t, "), claimed ");
	human_count(&t, counts->claimed);
	text_add(&t, ", failed ");
	human_count(&t, counts->failed);
	text_add(&t, ", changed since ");
	human_count(&t, counts->changed);
	if (counts->unreadable) {
		text_add(&t, ", of a later version of s3once ");
		human_count(&t, counts->unreadable);
	}
	tell(view, "%s", text_string(&t));
	text_clear(&t);
}

void status_tell_counts(
	struct status_view *view, const char *prefix, const struct status_summary *summary)
{
	const struct status_counts *counts = &summary->counts;
	view->sum = *counts;
	if (view->json) {
		for (size_t i = 0; i < summary->n_sessions; i++)
			json_print(view->output, status_json_session(&summary->sessions[i]));
		json_print(view->output, status_json_counts(view->space, prefix, counts));
		return;
	}
	if (counts->failed > view->failed_told)
		tell(view, "and %" PRIu64 " failed files more: -v lists them all",
			counts->failed - view->failed_told);
	if (counts->changed > view->changed_told)
		tell(view, "and %" PRIu64 " changed files more: -v lists them all",
			counts->changed - view->changed_told);
	for (size_t i = 0; i < summary->n_sessions; i++)
		tell_session(view, &summary->sessions[i]);
	tell_counts(view, prefix, counts);
}

void status_tell_head(struct status_view *view)
{
	if (!view->json)
		tell(view, "%12s %11s %9s %9s %9s  %s", "done", "size", "claimed", "failed",
			"changed", "folder");
}

static void add_column(
	struct text *t, int width, uint64_t n, void (*figure)(struct text *, uint64_t))
{
	struct text column = TEXT(64);
	figure(&column, n);
	text_addf(t, "%*s ", width, text_string(&column));
	text_clear(&column);
}

static void add_row(struct text *t, const struct status_counts *counts)
{
	add_column(t, 12, counts->done, human_count);
	add_column(t, 11, counts->bytes_done, human_bytes);
	add_column(t, 9, counts->claimed, human_count);
	add_column(t, 9, counts->failed, human_count);
	add_column(t, 9, counts->changed, human_count);
	text_add_char(t, ' ');
}

static void add_unreadable(struct text *t, const struct status_counts *counts)
{
	if (!counts->unreadable)
		return;
	text_add(t, ", and of a later version of s3once ");
	human_count(t, counts->unreadable);
}

void status_tell_folder(
	struct status_view *view, const char *folder, const struct status_counts *counts)
{
	struct text t = TEXT(32U << 10);
	if (view->json) {
		json_print(view->output, status_json_folder(view->space->bucket, folder, counts));
		return;
	}
	add_row(&t, counts);
	text_add_escaped_string(&t, folder);
	add_unreadable(&t, counts);
	put(view, &t);
	text_clear(&t);
}

void status_tell_sum(
	struct status_view *view, const char *prefix, const struct status_counts *counts)
{
	struct text t = TEXT(32U << 10);
	view->sum = *counts;
	if (view->json) {
		json_print(view->output, status_json_counts(view->space, prefix, counts));
		return;
	}
	add_row(&t, counts);
	text_addf(&t, "s3://%s/", quote(view->space->bucket).text);
	text_add_escaped_string(&t, prefix);
	add_unreadable(&t, counts);
	if (view->page)
		status_page_last(view->page, text_string(&t));
	else
		output_result(view->output, text_string(&t));
	text_clear(&t);
}
