/* Prints the output of `s3once status`, for people or as JSON (docs/json.md). The lines go to
 * standard output, or to a page that --watch redraws as a whole. status_command.c reads the marks
 * and calls these functions; nothing is read here. */
#include "cli/status/status_print.h"
#include "base/clock.h"
#include "cli/human_figures.h"
#include "marks/job_row.h"
#include <inttypes.h>
#include <unistd.h>

#define LISTED_MAX     10 /* the most failed and the most changed files listed without -v */
#define LINE_BYTES_MAX (32U << 10)
#define PAGE_BYTES_MAX (1U << 20)
#define HOME           "\033[H"
#define ERASE_LINE     "\033[K"

void status_page_begin(struct status_page *page)
{
	const struct terminal_size size = terminal_size(STDOUT_FILENO);
	/* A terminal of one or two rows has no room for anything, so the size is assumed to be
	 * 24. */
	page->rows = size.rows > 2 ? size.rows : 24;
	page->columns = size.columns;
	page->n = page->left_out = 0;
	page->lines.max = PAGE_BYTES_MAX;
	text_reset(&page->lines);
}

void status_page_add(struct status_page *page, const char *line)
{
	size_t n = 0;
	/* Cuts the line at the width of the terminal. It counts characters of UTF-8, not bytes. */
	for (unsigned used = 0; line[n]; n++) {
		const bool begins_character = ((unsigned char)line[n] & 0xc0) != 0x80;
		if (begins_character && used++ == page->columns)
			break;
	}
	text_add(&page->lines, page->n++ ? ERASE_LINE "\n" : HOME);
	text_add_bytes(&page->lines, line, n);
}

/* Four rows of the page stay free: three for the last lines, which status_page_add() adds (the sum
 * of a table, how many lines had no room, the time), and one for the newline after them. */
void status_put(void *arg, const char *line)
{
	struct status_view *view = arg;
	struct status_page *page = view->page;
	if (!page)
		output_result(&view->frame->output, line);
	else if (page->n + 4 < page->rows)
		status_page_add(page, line);
	else
		page->left_out++;
}

/* Prints a line for people, printf style. */
__attribute__((format(printf, 2, 3))) static void print_line(
	struct status_view *view, const char *format, ...)
{
	struct text t = TEXT(LINE_BYTES_MAX);
	va_list ap;
	va_start(ap, format);
	text_addfv(&t, format, ap);
	va_end(ap);
	status_put(view, text_string(&t));
	text_clear(&t);
}

/* Prints the sentence that a mark keeps, in which names are escaped already. */
static void print_reason(struct status_view *view, const char *indent, const char *reason)
{
	struct text t = TEXT(LINE_BYTES_MAX);
	text_add(&t, indent);
	text_add_escaped_again(&t, reason);
	status_put(view, text_string(&t));
	text_clear(&t);
}

/* A time for people, which moment() returns by value, for use within a call. */
struct moment {
	char text[24];
};

/* `s` is in seconds since 1970. 0 or less: unknown. */
static struct moment moment(int64_t s)
{
	struct moment m = {"an unknown time"};
	if (s > 0)
		clock_format_iso(s, m.text);
	return m;
}

void status_print_store(struct status_view *view, bool has_bucket)
{
	const struct store_settings *settings = &view->space->settings;
	struct process self;
	char machine[MACHINE_CHARS + 1];
	process_self(&self);
	machine_id(machine);
	machine[JOB_MACHINE_CHARS] = '\0';
	if (view->frame->json) {
		const char *from = settings->copied_from;
		json_print(&view->frame->output,
			json_set(json_event("store"),
				BYTES("marks", text_string(&view->frame->marks_name)),
				BYTES("table_id", settings->table_id),
				NUMBER("shards", settings->shards),
				BYTES("copied_from", *from ? from : NULL),
				TIME("copied_at", settings->copied_s), BYTES("host", self.host),
				BYTES("machine", *machine ? machine : NULL)));
		return;
	}
	print_line(view, "marks: %s, %s, id %s", text_string(&view->frame->marks_name),
		human_things(settings->shards, "shard").text, settings->table_id);
	if (*settings->copied_from)
		print_line(view,
			"these marks were used on %s before, and on this machine since %s: what was "
			"uploaded there is replaced only by --if-changed=replace-any",
			quote(settings->copied_from).text, moment(settings->copied_s).text);
	if (!has_bucket && *machine)
		print_line(view,
			"this host: %s@%s, as s3once fleet names it if others share its name",
			quote(self.host).text, machine);
	if (!has_bucket)
		print_line(view, "name a bucket to see what they hold: s3once status s3://BUCKET");
}

void status_print_bucket(struct status_view *view, const struct bucket_row *row)
{
	const char *bucket = view->space->bucket;
	if (view->frame->json) {
		json_print(&view->frame->output,
			json_set(json_event("bucket"), BYTES("bucket", bucket),
				NUMBER("generation", row->generation)));
	} else if (row->generation) {
		print_line(view,
			"bucket: %s, the marks of %u earlier %s of this name are set aside",
			quote(bucket).text, row->generation,
			row->generation == 1 ? "bucket" : "buckets");
	} else {
		print_line(view, "bucket: %s", quote(bucket).text);
	}
}

/* Returns a version of a file as JSON, with the two members that every version has. */
static json_t *version_json(uint64_t bytes, int64_t mtime_ns)
{
	return json_set(json_object(), NUMBER("bytes", bytes), NUMBER("mtime_ns", mtime_ns));
}

/* Prints a mark as an event. `outlook` is the next run's action; NULL: it is omitted. */
static void print_mark_as_json(const struct status_view *view, const char *key,
	const struct mark *mark, const char *outlook)
{
	const struct version *done = &mark->done;
	json_t *last_done = json_null();
	if (mark->has_done)
		last_done =
			json_set(version_json(done->size, done->mtime_ns), BYTES("sum", done->sum),
				BYTES("etag", done->etag), BYTES("source", mark->source));
	json_t *object = json_set(json_event("mark"), BYTES("bucket", view->space->bucket),
		BYTES("key", key), BYTES("state", mark_state_name(mark->state)),
		BYTES("session", mark->session), BYTES("claim", mark->claim),
		BYTES("source", mark_source(mark)), NUMBER("tries", mark->tries),
		BYTES("error", mark->error), TIME("since", mark->at_s),
		BYTES("upload_id", mark->upload.id), NODE("last_done", last_done),
		NODE("newer", mark->has_newer ? version_json(mark->newer_size, mark->newer_mtime_ns)
					      : json_null()));
	if (outlook)
		json_set_bytes(object, "outlook", outlook);
	json_print(&view->frame->output, object);
}

/* Returns words for people about whether the run of a session is over. */
static const char *session_words(const struct status_view *view, const struct session_info *session)
{
	if (!session->is_open)
		return "ended";
	if (session->is_gone)
		return "its process is gone";
	return session_is_at_work(session, store_time_s(view->frame->marks.conn->store))
		       ? "still open"
		       : "silent for longer than its lease";
}

const char *status_outlook(const struct mark *mark, const struct session_info *session)
{
	switch (mark->state) {
	case MARK_ABSENT:
	case MARK_FORGOTTEN:
		break;
	case MARK_DONE:
		return mark->has_newer
			       ? "the file has changed since: see --if-changed"
			       : "the next run skips it, unless the file has changed by then";
	case MARK_FAILED:
		return mark->upload.id ? "the next run retries it, and sends only the parts that "
					 "the server does not list if the file is the same"
				       : "the next run retries it";
	case MARK_CLAIMED:
		if (!session || !session->is_open)
			return "its uploader has ended, so the next run takes it over at once";
		if (session->is_gone)
			return "its uploader's process on this host is gone, so the next run on "
			       "this host takes it over at once";
		return "the next run waits until its uploader is done, or takes it over when "
		       "that uploader has sent no heartbeat for a whole lease (at once if it "
		       "ran on the same host and has ended)";
	case MARK_UNREADABLE:
		return "it is damaged, or was written by a later version of s3once: the next "
		       "run of this version does not change it, and reports the file";
	}
	return "the next run uploads it if it finds a file for it, unless S3 "
	       "holds the same content already";
}

/* Prints the state of a mark that is there, its claim, and the version that is done. */
static void print_mark_for_people(
	struct status_view *view, const struct mark *mark, const struct session_info *session)
{
	const struct version *done = &mark->done;
	print_line(view, "  state     %s since %s, tries %" PRId64, mark_state_name(mark->state),
		moment(mark->at_s).text, mark->tries);
	if (mark->error)
		print_reason(view, "  why       ", mark->error);
	if (session)
		print_line(view, "  by        %s, %s, begun %s", quote(session->owner).text,
			session_words(view, session), moment(session->started_s).text);
	else if (mark->state == MARK_CLAIMED) /* the row of its session was removed */
		print_line(view, "  by        an uploader that ended long ago");
	print_line(view, "  fence     session %s, claim %s", quote(mark->session).text,
		quote(mark->claim).text);
	if (mark_source(mark))
		print_line(view, "  source    %s", quote(mark_source(mark)).text);
	if (mark->has_done) {
		print_line(view, "  version   %s (%" PRIu64 " bytes), modified %s",
			human_bytes(done->size).text, done->size,
			moment(done->mtime_ns / (int64_t)NS_PER_S).text);
		print_line(view, "            %s, etag %s", quote(done->sum).text,
			quote(done->etag).text);
	}
	if (mark->upload.id)
		print_line(view, "  upload    %s", quote(mark->upload.id).text);
}

void status_print_mark(struct status_view *view, const char *key, const struct mark *mark,
	const struct session_info *session)
{
	const char *outlook = status_outlook(mark, session);
	if (view->frame->json) {
		print_mark_as_json(view, key, mark, outlook);
		return;
	}
	print_line(view, "s3://%s/%s", view->space->bucket, escaped(key).text);
	if (mark->state == MARK_ABSENT)
		print_line(view,
			"  state     no mark for this key: with these marks, no upload of it has begun");
	else
		print_mark_for_people(view, mark, session);
	print_line(view, "  next run  %s", outlook);
}

void status_print_nothing(struct status_view *view, const char *prefix)
{
	view->sum = (struct status_counts){0};
	print_line(view, "s3://%s/%s at %s: these marks know of no file there%s",
		quote(view->space->bucket).text, escaped(prefix).text,
		quote(view->space->service).text,
		view->knows_bucket
			? ""
			: ", nor of the bucket: check its name, --endpoint-url, and whose marks "
			  "they are (--marks, --job)");
}

void status_print_unfinished(struct status_view *view, const char *key, const struct mark *mark)
{
	/* A done mark is listed only because its file has changed since. */
	const bool has_changed = mark->state == MARK_DONE;
	const bool is_claimed = mark->state == MARK_CLAIMED;
	uint64_t *printed = has_changed ? &view->printed_changed : &view->printed_failed;
	if (view->frame->json) {
		print_mark_as_json(view, key, mark, NULL);
		return;
	}
	if (is_claimed && view->verbose) {
		print_line(view, "claimed: %s", escaped(key).text);
		if (mark_source(mark))
			print_line(view, "         from %s", quote(mark_source(mark)).text);
	}
	/* Otherwise claims are shown by their sessions alone, and damaged marks by their number. */
	const bool is_listed = has_changed || mark->state == MARK_FAILED;
	const bool has_room = *printed < LISTED_MAX || view->verbose;
	if (!is_listed || !has_room)
		return;
	++*printed; /* status_print_omitted() reports the rest */
	print_line(view, "%s: %s", has_changed ? "changed" : "failed", escaped(key).text);
	if (has_changed)
		print_line(view,
			"         the file is of %s now and was of %s when it was uploaded",
			moment(mark->newer_mtime_ns / (int64_t)NS_PER_S).text,
			moment(mark->done.mtime_ns / (int64_t)NS_PER_S).text);
	else
		print_reason(view, "        ", mark->error ? mark->error : "no reason kept");
}

void status_print_session(struct status_view *view, const char *id, uint64_t claims,
	const struct session_info *session)
{
	static const struct session_info none;
	const struct session_info *known = session ? session : &none;
	const struct figure files = human_things(claims, "file");
	if (view->frame->json)
		json_print(&view->frame->output,
			json_set(json_event("session"), BYTES("session", id),
				NUMBER("claims", claims), BOOLEAN("known", session != NULL),
				BYTES("owner", session ? session->owner : NULL),
				BOOLEAN("open", known->is_open), BOOLEAN("gone", known->is_gone),
				TIME("started", known->started_s),
				TIME("expires", known->expires_s),
				NUMBER("lease_ms", known->lease_ns / NS_PER_MS)));
	else if (session)
		print_line(view, "claimed: %s by %s, %s, begun %s", files.text,
			quote(session->owner).text, session_words(view, session),
			moment(session->started_s).text);
	else
		print_line(view, "claimed: %s by an uploader that ended long ago", files.text);
}

void status_print_omitted(struct status_view *view, const struct status_counts *counts)
{
	if (view->frame->json)
		return;
	if (counts->of[STATUS_FAILED] > view->printed_failed)
		print_line(view, "and %" PRIu64 " failed files more: -v lists them all",
			counts->of[STATUS_FAILED] - view->printed_failed);
	if (counts->of[STATUS_CHANGED] > view->printed_changed)
		print_line(view, "and %" PRIu64 " changed files more: -v lists them all",
			counts->of[STATUS_CHANGED] - view->printed_changed);
}

void status_print_head(struct status_view *view)
{
	if (!view->frame->json)
		print_line(view, "%12s %11s %9s %9s %9s  %s", "done", "size", "claimed", "failed",
			"changed", "folder");
}

static void print_counts_as_json(const struct status_view *view, const char *prefix,
	const uint64_t of[static STATUS_COUNTS], enum counts_of which)
{
	/* In the order of enum status_count. */
	static const char *const names[STATUS_COUNTS] = {
		"done", "claimed", "failed", "changed", "unreadable", "bytes"};
	const bool is_sum = which == COUNTS_OF_SUM;
	json_t *object = json_event(is_sum ? "status" : "folder");
	if (is_sum)
		json_set_bytes(object, "service", view->space->service);
	json_set(object, BYTES("bucket", view->space->bucket), BYTES("prefix", prefix));
	for (int i = 0; i < STATUS_COUNTS; i++)
		json_set(object, NUMBER(names[i], of[i]));
	json_print(&view->frame->output, object);
}

/* Adds a row of the table of folders. */
static void add_row(struct text *t, const struct status_view *view, const char *prefix,
	const uint64_t of[static STATUS_COUNTS], enum counts_of which)
{
	text_addf(t, "%12s %11s %9s %9s %9s  ", human_count(of[STATUS_DONE]).text,
		human_bytes(of[STATUS_BYTES]).text, human_count(of[STATUS_CLAIMED]).text,
		human_count(of[STATUS_FAILED]).text, human_count(of[STATUS_CHANGED]).text);
	if (which == COUNTS_OF_SUM)
		text_addf(t, "s3://%s/", quote(view->space->bucket).text);
	text_add_escaped_string(t, prefix);
}

/* Adds the sentence about all marks below the prefix. It omits numbers that are 0: files that
 * failed before they had a mark are not counted, so "failed 0" would be misleading. */
static void add_sentence(struct text *t, const struct status_view *view, const char *prefix,
	const uint64_t of[static STATUS_COUNTS])
{
	const struct mark_space *space = view->space;
	text_addf(t, "s3://%s/%s at %s: done %s (%s)", space->bucket, quote(prefix).text,
		quote(space->service).text, human_things(of[STATUS_DONE], "file").text,
		human_bytes(of[STATUS_BYTES]).text);
	if (of[STATUS_CLAIMED])
		text_addf(t, ", claimed %s", human_count(of[STATUS_CLAIMED]).text);
	if (of[STATUS_FAILED])
		text_addf(t, ", failed %s", human_count(of[STATUS_FAILED]).text);
	if (of[STATUS_CHANGED])
		text_addf(t, ", changed since %s", human_count(of[STATUS_CHANGED]).text);
}

void status_print_counts(struct status_view *view, const char *prefix,
	const struct status_counts *counts, enum counts_of which)
{
	const bool is_sum = which == COUNTS_OF_SUM;
	const uint64_t *of = counts->of, unreadable = of[STATUS_UNREADABLE];
	struct text t = TEXT(LINE_BYTES_MAX);
	if (is_sum)
		view->sum = *counts;
	if (view->frame->json) {
		print_counts_as_json(view, prefix, of, which);
		return;
	}
	if (view->depth)
		add_row(&t, view, prefix, of, which);
	else
		add_sentence(&t, view, prefix, of);
	if (unreadable) /* the table has no column for these */
		text_addf(&t, ", %sof a later version of s3once %s", view->depth ? "and " : "",
			human_count(unreadable).text);
	/* The sum of a table is one of the last lines of the page, for which there is room. */
	if (view->page && view->depth && is_sum)
		status_page_add(view->page, text_string(&t));
	else
		status_put(view, text_string(&t));
	text_clear(&t);
}
