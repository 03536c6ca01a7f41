/* The tables of a run's events and of its counters, and its events as JSON. push, run and watch
 * report all events, and proven those about proofs. people.c and metrics.c read the tables. An
 * event or a counter that is new in the library gets its line here, and nowhere else in src/cli. */
#include "cli/push/run_events.h"
#include "base/clock.h"
#include <string.h>

#define FILE_OF    (HAS_PATH | HAS_KEY)
#define LEFT_OUT   (HAS_PATH | IS_LEFT_OUT)
#define REMOVAL_OF (FILE_OF | HAS_BYTES | HAS_OBJECT | SHOWS_SIZE)

/* The name in JSON, the words for people, the traits, and from how many -v on people see it. */
const struct event_shape event_shapes[EVENT_SHAPES] = {
	[S3ONCE_EVENT_START] = {"start", NULL, HAS_RUN},
	[S3ONCE_EVENT_NOTE] = {"note", NULL, HAS_TEXT},
	[S3ONCE_EVENT_WARNING] = {"warning", NULL, HAS_TEXT},
	[S3ONCE_EVENT_UPLOADED] = {"uploaded", "uploaded", FILE_OF | HAS_BYTES | SHOWS_SIZE, 1},
	[S3ONCE_EVENT_ADOPTED] = {"adopted", "already in S3:", FILE_OF | HAS_BYTES, 1},
	[S3ONCE_EVENT_REFRESHED] = {"refreshed", "same content, new modification time:", FILE_OF,
		1},
	[S3ONCE_EVENT_SKIPPED] = {"skipped", "skipped", FILE_OF | IS_LEFT_OUT, 2},
	[S3ONCE_EVENT_OUTDATED] = {"outdated", "kept as it is in S3:", FILE_OF | HAS_TEXT},
	[S3ONCE_EVENT_PLANNED] = {"planned", "would upload", FILE_OF | HAS_BYTES | SHOWS_SIZE},
	[S3ONCE_EVENT_LINK] = {"link", "skipped symbolic link", LEFT_OUT | SHOWS_NO_KEY, 1},
	[S3ONCE_EVENT_WAITING] = {"waiting",
		"waits:", LEFT_OUT | HAS_TEXT | HAS_WAIT | SHOWS_NO_KEY, 1},
	[S3ONCE_EVENT_OVERSIZED] = {"oversized",
		"skipped, larger than --max-size:", LEFT_OUT | HAS_BYTES, 1},
	[S3ONCE_EVENT_UNDERSIZED] = {"undersized",
		"skipped, smaller than --min-size:", LEFT_OUT | HAS_BYTES, 1},
	[S3ONCE_EVENT_SPECIAL] = {"special", "skipped", LEFT_OUT | HAS_TEXT | SHOWS_NO_KEY, 1},
	[S3ONCE_EVENT_CHANGED] = {"refused", "", FILE_OF | HAS_TEXT | IS_ERROR},
	[S3ONCE_EVENT_HELD] = {"held", "", FILE_OF | HAS_TEXT | IS_ERROR},
	[S3ONCE_EVENT_FAILED] = {"failed", "", FILE_OF | HAS_TEXT | HAS_REPLY | IS_ERROR},
	[S3ONCE_EVENT_LEFT] = {"left", "not finished:", FILE_OF | HAS_BYTES | SHOWS_SIZE},
	[S3ONCE_EVENT_RETRY] = {"retry", "retrying", FILE_OF | HAS_TEXT, 1},
	[S3ONCE_EVENT_REMOVED] = {"removed", "removed", REMOVAL_OF, 1},
	[S3ONCE_EVENT_MOVED] = {"moved", "moved away", REMOVAL_OF, 1},
	[S3ONCE_EVENT_REMOVABLE] = {"removable", "would remove", REMOVAL_OF,
		.words_of_move = "would move away"},
	[S3ONCE_EVENT_KEPT] = {"kept", "not removed yet:", FILE_OF | HAS_TEXT,
		.words_of_move = "not moved yet:"},
	[S3ONCE_EVENT_NOT_REMOVED] = {"not_removed", "", FILE_OF | HAS_TEXT | HAS_REPLY | IS_ERROR},
	[S3ONCE_EVENT_PROVEN] = {"proven", "in S3:", FILE_OF | HAS_BYTES | HAS_OBJECT},
	[S3ONCE_EVENT_UNPROVEN] = {"unproven", "not in S3:", FILE_OF | HAS_TEXT},
	[S3ONCE_EVENT_EXCLUDED] = {"excluded",
		"left out by --exclude or --include:", LEFT_OUT | SHOWS_NO_KEY, 1},
	[S3ONCE_EVENT_MANIFEST] = {"manifest", NULL, HAS_KEY | HAS_BYTES | HAS_OBJECT},
	[S3ONCE_EVENT_MANIFEST_FAILED] = {"manifest_failed", "",
		HAS_KEY | HAS_TEXT | HAS_REPLY | IS_ERROR},
	[S3ONCE_EVENT_PROGRESS] = {"progress", NULL, HAS_COUNTS},
	[S3ONCE_EVENT_FATAL] = {"fatal", NULL, HAS_TEXT | HAS_REPLY | IS_ERROR},
};

#define AT(member) offsetof(struct s3once_counts, member)
/* The name in JSON, the member of the counts, the kind, and the words in the summary for people.
 * The summary has this order. */
const struct counter run_counters[] = {
	{"files", AT(found)},
	{"uploaded", AT(uploaded), COUNTS_IN_S3},
	{"skipped", AT(skipped), COUNTS_IN_S3, "already done"},
	{"outdated", AT(outdated), COUNTS_NOT_THERE, "changed and kept as they are in S3"},
	{"adopted", AT(adopted), COUNTS_IN_S3, "already in S3"},
	{"refreshed", AT(refreshed), COUNTS_IN_S3, "same content with a new modification time"},
	{"refused", AT(changed), COUNTS_NOT_THERE, "changed and not replaced"},
	{"failed", AT(failed), COUNTS_NOT_THERE, "failed"},
	{"held", AT(held), COUNTS_NOT_THERE, "held by other uploaders"},
	{"waiting", AT(waiting), COUNTS_LEFT_OUT, "waiting for a later run"},
	{"oversized", AT(oversized), COUNTS_LEFT_OUT, "larger than --max-size"},
	{"undersized", AT(undersized), COUNTS_LEFT_OUT, "smaller than --min-size"},
	{"links", AT(links), COUNTS_LEFT_OUT, "symbolic links skipped"},
	{"special", AT(special), COUNTS_LEFT_OUT,
		"sockets, named pipes, devices and own files skipped"},
	{"excluded", AT(excluded), COUNTS_SOMETHING, "left out by --exclude or --include"},
	{"planned", AT(planned)},
	{"left", AT(left)},
	{"removed", AT(removed), COUNTS_SOMETHING, "removed from this host"},
	{"moved", AT(moved), COUNTS_SOMETHING, "moved away"},
	{"kept", AT(kept), COUNTS_SOMETHING, "due, but kept for now"},
	{"not_removed", AT(not_removed), COUNTS_SOMETHING, "due, but not removed",
		"due, but not moved"},
	{"unproven", AT(unproven)},
	{"removable", AT(removable), COUNTS_SOMETHING, "would be removed", "would be moved away"},
	{"bytes_removed", AT(bytes_removed)},
	{"bytes", AT(bytes_uploaded)},
	{"bytes_sent", AT(bytes_sent)},
	{"bytes_moved", AT(bytes_moved)},
	{"bytes_found", AT(bytes_found)},
	{"bytes_settled", AT(bytes_settled)},
	{"bytes_under_way", AT(bytes_under_way)},
	{"bytes_kept", AT(bytes_kept)},
	{"bytes_resumed", AT(bytes_resumed)},
	{"bytes_left", AT(bytes_left)},
	{"claims_refused", AT(claims_refused)},
	{NULL},
};

/* Reasons for which files wait: the word in JSON, and the advice of wait_advice(). */
static const struct {
	const char *word, *advice;
} waits[S3ONCE_WAITS] = {
	[S3ONCE_WAIT_NONE] = {"", ""},
	[S3ONCE_WAIT_YOUNG] = {"young", ""},
	[S3ONCE_WAIT_LIVE] = {"live", "--live sends its lines before it is rotated"},
	[S3ONCE_WAIT_NO_LINE] = {"no_line", "--final sends what there is"},
	[S3ONCE_WAIT_COMPRESSING] = {"compressing", "check whether its compressor still runs"},
	[S3ONCE_WAIT_COPY] = {"copy", "check whether its rotation has ended"},
	[S3ONCE_WAIT_UNFINISHED] = {"unfinished", "rename it if it is a log, or exclude it"},
	[S3ONCE_WAIT_CHANGED] = {"changed", ""},
	[S3ONCE_WAIT_FAMILY] = {"family", "-v names each file"},
};

const char *wait_advice(enum s3once_wait why)
{
	return waits[why].advice;
}

/* Limits of the number of requests: the word in JSON, and the end of a sentence for people. */
static const struct {
	const char *word, *sentence;
} limits[] = {
	[S3ONCE_LIMITED_BY_FILES] = {"files", "there were too few files to need more"},
	[S3ONCE_LIMITED_BY_CEILING] = {"ceiling", "which is the limit of --concurrency"},
	[S3ONCE_LIMITED_BY_LATENCY] = {"latency",
		"limited by latency: the services and the marks did not answer more of them sooner"},
	[S3ONCE_LIMITED_BY_THROTTLING] = {"throttling", "limited by throttling"},
	[S3ONCE_LIMITED_BY_CPU] = {"cpu", "limited by this host's CPUs"},
	[S3ONCE_LIMITED_BY_DISK] = {"disk", "limited by the disk that the files are read from"},
	[S3ONCE_LIMITED_BY_MEMORY] = {"memory", "limited by --memory"},
	[S3ONCE_LIMITED_BY_DESCRIPTORS] = {"descriptors",
		"limited by the file descriptors: raise ulimit -Hn"},
	[S3ONCE_LIMITED_BY_THREADS] = {"threads",
		"limited by the threads that could be started: raise ulimit -u and -v or the container's limit of processes"},
	[S3ONCE_LIMITED_BY_BANDWIDTH] = {"bandwidth",
		"limited by the bandwidth limit of --bwlimit"},
};
enum { LIMITS = sizeof limits / sizeof *limits };

const char *limit_sentence(enum s3once_limited_by limit)
{
	return (size_t)limit < LIMITS ? limits[limit].sentence : "";
}

uint64_t counter_value(const struct counter *counter, const struct s3once_counts *counts)
{
	return *(const uint64_t *)(const void *)((const char *)counts + counter->offset);
}

uint64_t counters_sum(const struct s3once_counts *counts, enum counter_kind kind)
{
	uint64_t sum = 0;
	for (const struct counter *counter = run_counters; counter->name; counter++)
		sum += counter->kind == kind ? counter_value(counter, counts) : 0;
	return sum;
}

bool counts_repeat_a_night(const struct s3once_counts *counts)
{
	return counts->repeats_s && counts->repeats_age_s >= S3ONCE_REPEATS_LONG_S;
}

bool event_is_waited_for(const struct push_options *options, const struct s3once_event *event)
{
	return event->type == S3ONCE_EVENT_HELD && !options->run.no_wait && !options->run.dry_run;
}

static void set_counts(json_t *object, const struct s3once_counts *c)
{
	for (const struct counter *counter = run_counters; counter->name; counter++)
		json_set(object, NUMBER(counter->name, counter_value(counter, c)));
	json_set(object, NUMBER("in_flight", c->in_flight), NUMBER("concurrency", c->concurrency),
		BYTES("limited_by",
			(size_t)c->limited_by < LIMITS ? limits[c->limited_by].word : ""),
		BOOLEAN("scan_complete", c->scan_complete), NODE("seconds", json_real(c->seconds)));
}

/* Returns a new event of a run, with its job. */
static json_t *run_event(const struct push_options *options, const char *name)
{
	json_t *object = json_event(name);
	if (options->job)
		json_set_bytes(object, "job", options->job);
	return object;
}

/* Sets marks_shared and dry_run, which only the first and the last event of a run have. */
static void set_kind_of_run(json_t *object, const struct push_options *options)
{
	const char *marks = options->run.marks;
	/* Several hosts may use a table. */
	json_set(object, BOOLEAN("marks_shared", marks && strncmp(marks, "dynamodb:", 9) == 0),
		BOOLEAN("dry_run", options->run.dry_run));
}

json_t *json_of_event(const struct push_options *options, const struct s3once_event *event)
{
	if (event->type >= EVENT_SHAPES)
		return NULL;
	const struct event_shape *shape = &event_shapes[event->type];
	json_t *object = run_event(options, shape->name);
	if (shape->traits & HAS_RUN) {
		json_set(object, BYTES("version", s3once_version()),
			BYTES("bucket", options->run.bucket), BYTES("prefix", options->run.prefix),
			BYTES("marks",
				event->text)); /* the text of START is the place of the marks */
		set_kind_of_run(object, options);
	}
	if (shape->traits & HAS_PATH)
		json_set_bytes(object, "path", event->path);
	if (shape->traits & HAS_KEY)
		json_set_bytes(object, "key", event->key);
	if (shape->traits & HAS_BYTES)
		json_set(object, NUMBER("bytes", event->bytes));
	if (shape->traits & HAS_OBJECT)
		json_set(object, BYTES("version_id", event->version_id), BYTES("etag", event->etag),
			BYTES("checksum", event->checksum));
	if (shape->traits & HAS_TEXT)
		json_set_bytes(object, "text", event->text);
	if (shape->traits & HAS_WAIT)
		json_set(object, BYTES("reason", waits[event->wait].word),
			TIME("modified", event->mtime_ns / (int64_t)NS_PER_S));
	if (shape->traits & HAS_REPLY)
		json_set(
			object, BYTES("code", event->code), BYTES("request_id", event->request_id));
	if (shape->traits & HAS_COUNTS)
		set_counts(object, event->counts);
	return object;
}

/* Returns an array with an object for each reason for which files wait. */
static json_t *waits_json(const struct s3once_push *push)
{
	json_t *list = json_array();
	for (int why = 0; why < S3ONCE_WAITS; why++) {
		const struct s3once_waiting *w = s3once_push_waiting(push, (enum s3once_wait)why);
		const int64_t oldest_s =
			w->oldest_ns == INT64_MAX ? 0 : w->oldest_ns / (int64_t)NS_PER_S;
		if (w->files)
			json_array_append_new(
				list, json_set(json_object(), BYTES("reason", waits[why].word),
					      BYTES("text", w->text), NUMBER("files", w->files),
					      TIME("oldest", oldest_s), BYTES("path", w->path)));
	}
	return list;
}

json_t *json_summary(
	const struct push_options *options, const struct s3once_push *push, int exit_code)
{
	json_t *requests = json_object();
	uint64_t count;
	const char *kind;
	json_t *object = json_set(run_event(options, "summary"), NUMBER("exit", exit_code));
	set_kind_of_run(object, options);
	if (push) {
		set_counts(object, s3once_push_counts(push));
		json_set(object, NODE("waits", waits_json(push)));
	}
	/* repeats_s is the time at which an earlier run uploaded the pipe of this one. */
	json_set(object, TIME("uploaded_before", push ? s3once_push_counts(push)->repeats_s : 0));
	for (size_t i = 0; push && (kind = s3once_push_requests(push, i, &count)); i++)
		if (count)
			json_set(requests, NUMBER(kind, count));
	const char *manifest = push ? s3once_push_manifest(push) : "";
	return json_set(
		object, NODE("requests", requests), BYTES("manifest", *manifest ? manifest : NULL));
}
