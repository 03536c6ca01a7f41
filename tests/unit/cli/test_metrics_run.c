/* The metrics of one run: each counter under its name, and which times of an earlier run are kept.
 */
#include "../check.h"
#include "base/clock.h"
#include "base/files.h"
#include "cli/push/metrics.h"
#include "upload/push_struct.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TARGET "target=\"s3://b/p\""

static char folder[] = "/tmp/test_metrics_run.XXXXXX", path[64];

/* Returns the value of a sample, or -1 if there is none. */
static double value_of(const char *text, const char *name, const char *labels)
{
	char begin[300];
	snprintf(begin, sizeof begin, "\n%s{%s} ", name, labels);
	const char *at = strstr(text, begin);
	return at ? atof(at + strlen(begin)) : -1;
}

static const char *kind(const struct store *store, size_t i, unsigned long *ret_count)
{
	static const char *const names[] = {"GetItem", "PutItem", "Query"};
	(void)store;
	*ret_count = i == 1 ? 0 : 71 + i;
	return i < 3 ? names[i] : NULL;
}

/* Each counter has another value, and its sample has that value. */
static void test_counters(void)
{
	static const struct store_ops ops = {.kind = kind};
	static const struct {
		const char *name, *labels;
		double value;
	} rows[] = {
		{"s3once_last_run_files", TARGET ",result=\"uploaded\"", 2},
		{"s3once_last_run_files", TARGET ",result=\"adopted\"", 3},
		{"s3once_last_run_files", TARGET ",result=\"refreshed\"", 4},
		{"s3once_last_run_files", TARGET ",result=\"skipped\"", 5},
		{"s3once_last_run_files", TARGET ",result=\"refused\"", 6},
		{"s3once_last_run_files", TARGET ",result=\"failed\"", 7},
		{"s3once_last_run_files", TARGET ",result=\"held\"", 8},
		{"s3once_last_run_files", TARGET ",result=\"waiting\"", 9},
		{"s3once_last_run_files", TARGET ",result=\"link\"", 10},
		{"s3once_last_run_files", TARGET ",result=\"special\"", 11},
		{"s3once_last_run_files", TARGET ",result=\"outdated\"", 12},
		{"s3once_last_run_files", TARGET ",result=\"oversized\"", 13},
		{"s3once_last_run_files", TARGET ",result=\"undersized\"", 14},
		{"s3once_last_run_files", TARGET ",result=\"unfinished\"", 16},
		/* They are no result of a file that was found. */
		{"s3once_last_run_files", TARGET ",result=\"links\"", -1},
		{"s3once_last_run_files", TARGET ",result=\"removed\"", -1},
		{"s3once_last_run_files", TARGET ",result=\"planned\"", -1},
		{"s3once_last_run_files", TARGET ",result=\"files\"", -1},
		{"s3once_last_run_bytes", TARGET ",kind=\"found\"", 21},
		{"s3once_last_run_bytes", TARGET ",kind=\"settled\"", 22},
		{"s3once_last_run_bytes", TARGET ",kind=\"sent\"", 23},
		{"s3once_last_run_requests", TARGET ",operation=\"GetItem\"", 71},
		{"s3once_last_run_requests", TARGET ",operation=\"PutItem\"", -1},
		{"s3once_last_run_requests", TARGET ",operation=\"Query\"", 73},
		{"s3once_last_run_exit_status", TARGET, 6},
		{"s3once_last_run_duration_seconds", TARGET, 1.5},
		{"s3once_oldest_unshipped_timestamp_seconds", TARGET, 1000},
		{"s3once_oldest_waiting_timestamp_seconds", TARGET, 2000},
		{"s3once_last_success_timestamp_seconds", TARGET, -1},
	};
	struct store store = {.ops = &ops};
	struct s3once_push *push = calloc(1, sizeof *push);
	const struct push_options options = {.run = {.bucket = "b", .prefix = "p"}};
	struct metrics metrics = {0};
	struct problem problem = {0};
	struct text text = TEXT(METRICS_BYTES_MAX);
	push->run.store = &store;
	push->counts = (struct s3once_counts){.found = 104 + 16,
		.uploaded = 2,
		.adopted = 3,
		.refreshed = 4,
		.skipped = 5,
		.changed = 6,
		.failed = 7,
		.held = 8,
		.waiting = 9,
		.links = 10,
		.special = 11,
		.outdated = 12,
		.oversized = 13,
		.undersized = 14,
		.planned = 0,
		.removed = 31,
		.bytes_found = 21,
		.bytes_settled = 22,
		.bytes_sent = 23,
		.bytes_uploaded = 24,
		.bytes_moved = 25,
		.seconds = 1.5,
		.scan_complete = 1,
		.oldest_unshipped_ns = 1000 * (int64_t)NS_PER_S + 999999999,
		.oldest_waiting_ns = 2000 * (int64_t)NS_PER_S};
	CHECK_INT(metrics_write(&options, &metrics, push, S3ONCE_EXIT_LIMIT, &problem), 0);
	metrics_text(&metrics, &text);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const double got = value_of(text_string(&text), rows[i].name, rows[i].labels);
		if (!CHECK(got >= rows[i].value && got <= rows[i].value))
			fprintf(stderr, "\t%s{%s}: got %f, want %f\n", rows[i].name, rows[i].labels,
				got, rows[i].value);
	}
	CHECK(value_of(text_string(&text), "s3once_last_run_timestamp_seconds", TARGET) >=
		(double)clock_wall_s() - 5);
	/* More was settled than was found so far. */
	push->counts.found = 9;
	CHECK_INT(metrics_write(&options, &metrics, push, S3ONCE_EXIT_LIMIT, &problem), 0);
	text_reset(&text);
	metrics_text(&metrics, &text);
	CHECK_INT(value_of(text_string(&text), "s3once_last_run_files",
			  TARGET ",result=\"unfinished\""),
		0);
	text_clear(&text);
	metrics_clear(&metrics);
	free(push);
}

/* A run after an earlier one, which wrote these times. */
enum { NONE = -1, NOW = -2 };
static const struct row {
	const char *name;
	int earlier_success, earlier_oldest; /* seconds, or NONE */
	int code;
	bool never_began, has_seen_all, is_partial;
	int oldest, repeats; /* of this run; NONE, and 0 */
	int success, want_oldest;
} rows[] = {
	{"first", NONE, NONE, 0, false, true, false, NONE, 0, NOW, NONE},
	{"first, which fails", NONE, NONE, 1, false, true, false, 500, 0, NONE, 500},
	{"success", 100, 50, 0, false, true, false, NONE, 0, NOW, NONE},
	{"failure", 100, 50, 1, false, true, false, 500, 0, 100, 500},
	{"failure that shows no file", 100, 50, 3, false, true, false, NONE, 0, 100, NONE},
	{"not all seen", 100, 50, 6, false, false, false, NONE, 0, 100, 50},
	{"not all seen, a younger one", 100, 50, 6, false, false, false, 500, 0, 100, 50},
	{"not all seen, an older one", 100, 50, 6, false, false, false, 40, 0, 100, 40},
	{"not all seen, none before", 100, NONE, 6, false, false, false, 40, 0, 100, 40},
	{"not all seen, none at all", 100, NONE, 6, false, false, false, NONE, 0, 100, NONE},
	{"some folders", 100, 50, 0, false, true, true, NONE, 0, NOW, 50},
	{"some folders, a younger one", 100, 50, 1, false, true, true, 500, 0, 100, 50},
	{"some folders, an older one", 100, 50, 1, false, true, true, 40, 0, 100, 40},
	{"never began", 100, 50, 3, true, false, false, NONE, 0, 100, 50},
	{"never began, nothing before", NONE, NONE, 3, true, false, false, NONE, 0, NONE, NONE},
	{"a pipe of an earlier run", 100, NONE, 0, false, true, false, NONE, 300, 300, NONE},
	{"a pipe of an earlier run, and a failure", 100, NONE, 1, false, true, false, NONE, 300,
		100, NONE},
	{"a pipe of an earlier run, and the first failure", NONE, NONE, 1, false, true, false, NONE,
		300, NONE, NONE},
};

static void add_time(struct metrics *metrics, const char *name, const char *labels, int time_s)
{
	static const struct metric_kind success = {"s3once_last_success_timestamp_seconds", "gauge",
						"."},
					oldest = {"s3once_oldest_unshipped_timestamp_seconds",
						"gauge", "."};
	if (time_s != NONE)
		metrics_add(metrics, *name == 's' ? &success : &oldest, labels, "", "%d", time_s);
}

/* The earlier run's times are in the file or, without a file, in *metrics. Those of other jobs and
 * targets are beside them in the way. */
static bool test_kept(const struct row *row, const char *job, bool has_file)
{
	const struct push_options options = {.job = job,
		.metrics_file = has_file ? path : NULL,
		.run = {.bucket = "b",
			.prefix = "p",
			.folders = row->is_partial ? (const char *[]){"x"} : NULL}};
	const char *labels = job ? "job=\"j\"," TARGET : TARGET;
	struct s3once_push *push = calloc(1, sizeof *push);
	struct metrics metrics = {0};
	struct problem problem = {0};
	struct text text = TEXT(METRICS_BYTES_MAX);
	push->counts = (struct s3once_counts){.scan_complete = row->has_seen_all,
		.repeats_s = row->repeats,
		.oldest_waiting_ns = INT64_MAX,
		.oldest_unshipped_ns =
			row->oldest == NONE ? INT64_MAX : row->oldest * (int64_t)NS_PER_S};
	add_time(&metrics, "success", job ? TARGET : "job=\"j\"," TARGET, 7);
	add_time(&metrics, "success", labels, row->earlier_success);
	add_time(&metrics, "oldest", job ? "job=\"k\"," TARGET : "target=\"s3://b/p2\"", 7);
	add_time(&metrics, "oldest", labels, row->earlier_oldest);
	metrics_text(&metrics, &text);
	if (has_file) {
		CHECK_INT(replace_file(path, text.data, text.len, 0600, REPLACE_UNSYNCED), 0);
		metrics_clear(&metrics);
		/* Its other value is older than the file. */
		add_time(&metrics, "success", labels, 9);
		add_time(&metrics, "oldest", labels, 9);
	}
	CHECK_INT(metrics_write(
			  &options, &metrics, row->never_began ? NULL : push, row->code, &problem),
		0);
	text_reset(&text);
	text_add_char(&text, '\n');
	metrics_text(&metrics, &text);
	const double success =
		value_of(text_string(&text), "s3once_last_success_timestamp_seconds", labels);
	bool good = row->success == NOW ? CHECK(success >= (double)clock_wall_s() - 5)
					: CHECK_INT(success, row->success);
	good = CHECK_INT(value_of(text_string(&text), "s3once_oldest_unshipped_timestamp_seconds",
				 labels),
		       row->want_oldest) &&
	       good;
	good = CHECK_INT(value_of(text_string(&text), "s3once_last_run_exit_status", labels),
		       row->code) &&
	       good;
	good = CHECK_INT(value_of(text_string(&text), "s3once_oldest_waiting_timestamp_seconds",
				 labels),
		       NONE) &&
	       good;
	if (has_file) {
		struct text in_file = TEXT(METRICS_BYTES_MAX);
		struct stat st = {0};
		text_add_char(&in_file, '\n');
		CHECK_INT(named_file_read(path, &in_file, NULL), 0);
		good = CHECK_STRING(text_string(&in_file), text_string(&text)) && good;
		good = CHECK_INT(stat(path, &st), 0) && good;
		good = CHECK_INT(st.st_mode & 0777, 0644) && good;
		text_clear(&in_file);
	}
	text_clear(&text);
	metrics_clear(&metrics);
	free(push);
	return good;
}

/* A file that cannot be written is an error, and what is served is of this run all the same. */
static void test_no_file(void)
{
	const struct push_options options = {
		.metrics_file = "/dev/null/x", .run = {.bucket = "b", .prefix = ""}};
	struct metrics metrics = {0};
	struct problem problem = {0};
	struct text text = TEXT(METRICS_BYTES_MAX);
	CHECK(metrics_write(&options, &metrics, NULL, 4, &problem) < 0);
	CHECK(strstr(problem.text, "--metrics: cannot write /dev/null/x: ") != NULL);
	metrics_text(&metrics, &text);
	CHECK_INT(value_of(text_string(&text), "s3once_last_run_exit_status", "target=\"s3://b\""),
		4);
	text_clear(&text);
	metrics_clear(&metrics);
}

/* Labels are escaped for Prometheus, and are read back for OTLP. */
static void test_labels(void)
{
	static const struct {
		const char *job, *prefix, *labels;
	} names[] = {
		{NULL, "", "target=\"s3://b\""},
		{NULL, "a/", "target=\"s3://b/a/\""},
		{"j", "p", "job=\"j\",target=\"s3://b/p\""},
		{"a\"b\\c", "x\ny", "job=\"a\\\"b\\\\c\",target=\"s3://b/x\\ny\""},
		{"\303\244", "p", "job=\"\303\244\",target=\"s3://b/p\""},
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const struct push_options options = {
			.job = names[i].job, .run = {.bucket = "b", .prefix = names[i].prefix}};
		struct text labels = TEXT(1000);
		metrics_add_labels(&labels, &options);
		CHECK_STRING(text_string(&labels), names[i].labels);
		text_clear(&labels);
	}
}

int main(void)
{
	if (!CHECK(mkdtemp(folder) != NULL))
		return check_result();
	snprintf(path, sizeof path, "%s/m.prom", folder);
	test_counters();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (unsigned k = 0; k < 4; k++)
			if (!test_kept(&rows[i], k % 2 ? "j" : NULL, k / 2))
				fprintf(stderr, "\t%s: %s, %s\n", rows[i].name,
					k % 2 ? "a job" : "no job", k / 2 ? "a file" : "no file");
	test_no_file();
	test_labels();
	unlink(path);
	CHECK_INT(rmdir(folder), 0);
	return check_result();
}
