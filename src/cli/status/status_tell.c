/* Everything that `s3once status` prints, each to people or as JSON (docs/json.md), on standard
 * output line by line, or on a page that --watch draws anew as a whole. Called by status_command.c,
 * which finds out what there is to tell; nothing is read here. */
#include "cli/status/status_tell.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/quote.h"
#include "base/text.h"
#include "cli/human_figures.h"
#include "cli/json.h"
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define LISTED_MAX     10
#define LINE_BYTES_MAX (32U << 10)
#define PAGE_BYTES_MAX (1U << 20)
#define HOME           "\033[H"
#define ERASE_LINE     "\033[K"
#define ERASE_BELOW    "\033[J"

void status_page_begin(struct status_page *page)
{
	const struct terminal_size size = terminal_size(STDOUT_FILENO);
	page->rows = size.rows > 2 ? size.rows : 24;
	page->columns = size.columns;
	page->n = page->left_out = 0;
	page->lines.max = PAGE_BYTES_MAX;
	text_reset(&page->lines);
	text_add(&page->lines, HOME);
}

/* How many bytes of the line have room: UTF-8 is counted by its characters. */
static size_t fitting(const char *line, unsigned columns)
{
	size_t n = 0;
	for (unsigned used = 0; line[n]; n++) {
		const bool begins = ((unsigned char)line[n] & 0xc0) != 0x80;
		if (begins && used++ == columns)
			break;
	}
	return n;
}

void status_page_last(struct status_page *page, const char *line)
{
	text_add_bytes(&page->lines, line, fitting(line, page->columns));
	text_add(&page->lines, ERASE_LINE "\n");
	page->n++;
}

/* Three rows stay free for status_page_last(): the newline of the last line takes one, too. */
static void add_to_page(struct status_page *page, const char *line)
{
	if (page->n + 4 < page->rows)
		status_page_last(page, line);
	else
		page->left_out++;
}

int status_page_draw(const struct status_page *page)
{
	const int error = write_all(STDOUT_FILENO, page->lines.data, page->lines.len);
	return error ? error : write_all(STDOUT_FILENO, ERASE_BELOW, strlen(ERASE_BELOW));
}

void status_page_clear(struct status_page *page)
{
	text_clear(&page->lines);
}

static void put(struct status_view *view, const struct text *line)
{
	if (view->page)
		add_to_page(view->page, text_string(line));
	else
		output_result(view->output, text_string(line));
}

__attribute__((format(printf, 2, 3))) static void tell(
	struct status_view *view, const char *format, ...)
{
	struct text t = TEXT(LINE_BYTES_MAX);
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
	struct text t = TEXT(LINE_BYTES_MAX);
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
		json_t *object = json_event("store");
		json_set_bytes(object, "marks", view->marks);
		json_set_bytes(object, "table_id", settings->table_id);
		json_set_number(object, "shards", settings->shards);
		json_print(view->output, object);
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
		json_t *object = json_event("bucket");
		json_set_bytes(object, "bucket", view->space->bucket);
		json_set_number(object, "generation", row->generation);
		json_print(view->output, object);
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

static void set_optional(json_t *object, const char *name, const char *value)
{
	if (value)
		json_set_bytes(object, name, value);
	else
		json_object_set_new(object, name, json_null());
}

static json_t *version_json(const struct version *done)
{
	json_t *object = json_object();
	json_set_number(object, "bytes", done->size);
	json_object_set_new(object, "mtime_ns", json_integer(done->mtime_ns));
	json_set_bytes(object, "sum", done->sum);
	json_set_bytes(object, "etag", done->etag);
	return object;
}

static json_t *newer_json(const struct mark *mark)
{
	json_t *object = json_object();
	json_set_number(object, "bytes", mark->newer_size);
	json_object_set_new(object, "mtime_ns", json_integer(mark->newer_mtime_ns));
	return object;
}

/* outlook: what the next run will do, or NULL to leave it out. */
static void tell_mark_as_json(const struct status_view *view, const char *key,
	const struct mark *mark, const char *outlook)
{
	json_t *object = json_event("mark");
	json_set_bytes(object, "bucket", view->space->bucket);
	json_set_bytes(object, "key", key);
	json_set_bytes(object, "state", mark_state_name(mark->state));
	json_set_bytes(object, "session", mark->session);
	json_set_bytes(object, "claim", mark->claim);
	set_optional(object, "source", mark->source);
	json_object_set_new(object, "tries", json_integer(mark->tries));
	set_optional(object, "error", mark->error);
	json_set_time(object, "since", mark->at_s);
	set_optional(object, "upload_id", mark->upload.id);
	json_object_set_new(
		object, "last_done", mark->has_done ? version_json(&mark->done) : json_null());
	json_object_set_new(object, "newer", mark->has_newer ? newer_json(mark) : json_null());
	if (outlook)
		json_set_bytes(object, "outlook", outlook);
	json_print(view->output, object);
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
		tell_mark_as_json(view, key, mark, outlook);
		return;
	}
	char before[sizeof view->space->bucket + 8];
	snprintf(before, sizeof before, "s3://%s/", view->space->bucket);
	tell_escaped(view, before, key);
	if (mark->state == MARK_ABSENT) {
		tell(view,
			"  state     no mark for this key: with these marks, no upload of it has begun");
	} else {
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
	}
	tell(view, "  next run  %s", outlook);
}

void status_tell_nothing(struct status_view *view, const char *prefix)
{
	struct text t = TEXT(LINE_BYTES_MAX);
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
		tell_mark_as_json(view, key, mark, NULL);
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
	if (view->json) {
		json_t *object = json_event("session");
		json_set_bytes(object, "session", session->id);
		json_set_number(object, "claims", session->claims);
		json_object_set_new(object, "known", json_boolean(session->known));
		set_optional(object, "owner", session->known ? session->info.owner : NULL);
		json_object_set_new(
			object, "open", json_boolean(session->known && session->info.is_open));
		json_object_set_new(
			object, "gone", json_boolean(session->known && session->info.is_gone));
		json_set_time(object, "started", session->known ? session->info.started_s : 0);
		json_set_time(object, "expires", session->known ? session->info.expires_s : 0);
		json_set_number(object, "lease_ms",
			session->known ? session->info.lease_ns / NS_PER_MS : 0);
		json_print(view->output, object);
		return;
	}
	human_things(&claims, session->claims, "file");
	if (session->known)
		tell(view, "claimed: %s by %s, %s, begun %s", text_string(&claims),
			quote(session->info.owner).text, condition(&session->info),
			moment(session->info.started_s).text);
	else
		tell(view, "claimed: %s by an uploader that ended long ago", text_string(&claims));
	text_clear(&claims);
}

static void set_counts(json_t *object, const struct status_counts *counts)
{
	json_set_number(object, "done", counts->done);
	json_set_number(object, "claimed", counts->claimed);
	json_set_number(object, "failed", counts->failed);
	json_set_number(object, "changed", counts->changed);
	json_set_number(object, "unreadable", counts->unreadable);
	json_set_number(object, "bytes", counts->bytes_done);
}

static void tell_sum_as_json(
	const struct status_view *view, const char *prefix, const struct status_counts *counts)
{
	json_t *object = json_event("status");
	json_set_bytes(object, "service", view->space->service);
	json_set_bytes(object, "bucket", view->space->bucket);
	json_set_bytes(object, "prefix", prefix);
	set_counts(object, counts);
	json_print(view->output, object);
}

static void tell_counts(
	struct status_view *view, const char *prefix, const struct status_counts *counts)
{
	struct text t = TEXT(4096);
	if (view->json) {
		tell_sum_as_json(view, prefix, counts);
		return;
	}
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
	if (!view->json && counts->failed > view->failed_told)
		tell(view, "and %" PRIu64 " failed files more: -v lists them all",
			counts->failed - view->failed_told);
	if (!view->json && counts->changed > view->changed_told)
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
	struct text t = TEXT(LINE_BYTES_MAX);
	if (view->json) {
		json_t *object = json_event("folder");
		json_set_bytes(object, "bucket", view->space->bucket);
		json_set_bytes(object, "prefix", folder);
		set_counts(object, counts);
		json_print(view->output, object);
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
	struct text t = TEXT(LINE_BYTES_MAX);
	view->sum = *counts;
	if (view->json) {
		tell_sum_as_json(view, prefix, counts);
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
