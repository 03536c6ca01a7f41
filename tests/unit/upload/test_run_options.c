/* Which options go together, what is their least and their most, and their defaults. */
#include "../check.h"
#include "base/clock.h"
#include "upload/body/encoder.h"
#include "upload/body/multipart_plan.h"
#include "upload/run_options.h"
#include <errno.h>

static const char *const one[] = {"a"};
static const struct s3once_rate rates[] = {{60, 8192}, {120, 0}},
				same_minute[] = {{60, 8192}, {60, 0}},
				falling[] = {{120, 8192}, {60, 0}}, slow[] = {{0, 8191}},
				late[] = {{1440, 8192}}, last[] = {{1439, 8192}};
static const struct s3once_rule rule[1];
static const struct s3once_setting gzip[] = {{"header", "Content-Encoding: gzip"}},
				   empty[] = {{"header", "Content-Encoding:"}};

static long read_nothing(void *arg, void *buffer, size_t n, char *ret_text, size_t size)
{
	(void)arg, (void)buffer, (void)n, (void)ret_text, (void)size;
	return 0;
}

#define MIB        (UINT64_C(1) << 20)
#define SOURCE     .sources = one, .n_sources = 1
#define BASE       SOURCE, .bucket = "b"
#define PIPE       BASE, .read = read_nothing
#define SIXTY_FOUR "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
static const struct {
	const char *says; /* NULL: these options are good */
	struct s3once_options options;
} rows[] = {
	{NULL, {BASE}},
	{"no source was given", {.sources = one, .bucket = "b"}},
	{"no source was given", {.n_sources = 1, .bucket = "b"}},
	{"no bucket was given", {SOURCE}},
	{"no bucket was given", {SOURCE, .bucket = ""}},
	{"--spool is about", {BASE, .spool = "d"}},
	{"give its key", {PIPE}},
	{"give its key",
		{.sources = one, .n_sources = 2, .bucket = "b", .read = read_nothing, .as = "k"}},
	{NULL, {PIPE, .as = "k"}},
	{NULL, {PIPE, .as = "k", .spool = "d"}},
	{NULL, {PIPE, .as = "k", .producer_id = SIXTY_FOUR}},
	{"at most 64 bytes", {PIPE, .as = "k", .producer_id = SIXTY_FOUR "5"}},
	{"is no file", {PIPE, .as = "k", .rotated = 1}},
	{"is no file", {PIPE, .as = "k", .key_template = "{name}"}},
	{"is no file", {PIPE, .as = "k", .files_from = "-"}},
	{"is no file", {PIPE, .as = "k", .follow = 1}},
	{"is no file", {PIPE, .as = "k", .min_age_ms = 1}},
	{"is no file", {PIPE, .as = "k", .max_bytes = 1}},
	{"is no file", {PIPE, .as = "k", .min_bytes = 1}},
	{"is no file", {PIPE, .as = "k", .final = 1}},
	{"is no file", {PIPE, .as = "k", .removes = 1}},
	{"is no file", {PIPE, .as = "k", .compare_content = 1}},
	{"is no file", {PIPE, .as = "k", .if_changed = S3ONCE_CHANGED_REPLACE}},
	{"is no file", {PIPE, .as = "k", .rules = rule, .n_rules = 1}},
	{"--as and --rotated", {BASE, .as = "k", .rotated = 1}},
	{NULL, {BASE, .as = "k"}},
	{NULL, {BASE, .rotated = 1}},
	{"so it needs --rotated", {BASE, .live = 1}},
	{NULL, {BASE, .live = 1, .rotated = 1}},
	{"in pieces is not removed", {BASE, .live = 1, .rotated = 1, .removes = 1}},
	{"a log that grows changes", {BASE, .live = 1, .rotated = 1, .max_bytes = 9}},
	{"a log that grows changes", {BASE, .live = 1, .rotated = 1, .min_bytes = 9}},
	{"--as and --key", {BASE, .as = "k", .key_template = "{name}"}},
	{NULL, {BASE, .folders = one, .n_folders = 1}},
	{"only where keys are paths", {BASE, .folders = one, .key_template = "{name}"}},
	{"only where keys are paths", {BASE, .folders = one, .rotated = 1}},
	{"only where keys are paths", {BASE, .folders = one, .files_from = "f"}},
	{"only where keys are paths", {BASE, .folders = one, .follow = 1}},
	{"--time-zone is for", {BASE, .time_zone = "UTC"}},
	{NULL, {BASE, .time_zone = "UTC", .key_template = "{name}"}},
	{NULL, {BASE, .time_zone = "UTC", .rates = rates, .n_rates = 2}},
	{"limits of bandwidth", {BASE, .rates = same_minute, .n_rates = 2}},
	{"limits of bandwidth", {BASE, .rates = falling, .n_rates = 2}},
	{"limits of bandwidth", {BASE, .rates = slow, .n_rates = 1}},
	{"limits of bandwidth", {BASE, .rates = late, .n_rates = 1}},
	{NULL, {BASE, .rates = last, .n_rates = 1}},
	{"--min-size is more", {BASE, .min_bytes = 6, .max_bytes = 5}},
	{NULL, {BASE, .min_bytes = 5, .max_bytes = 5}},
	{NULL, {BASE, .min_bytes = 5}},
	{NULL, {BASE, .concurrency = 1024}},
	{"at most 1,024", {BASE, .concurrency = 1025}},
	{"a part has from", {BASE, .part_bytes = 5 * MIB - 1}},
	{NULL, {BASE, .part_bytes = 5 * MIB}},
	{NULL, {BASE, .part_bytes = 5 * 1024 * MIB}},
	{"a part has from", {BASE, .part_bytes = 5 * 1024 * MIB + 1}},
	{"a lease lasts", {BASE, .lease_ms = 999}},
	{NULL, {BASE, .lease_ms = 1000}},
	{NULL, {BASE, .lease_ms = 86400000}},
	{"a lease lasts", {BASE, .lease_ms = 86400001}},
	{NULL, {BASE, .checksum = "AUTO"}},
	{NULL, {BASE, .checksum = "crc64nvme"}},
	{NULL, {BASE, .checksum = "md5"}},
	{"the checksum is none", {BASE, .checksum = "crc"}},
	{"the checksum is none", {BASE, .checksum = ""}},
	{"none are to be removed", {BASE, .move_to = "d"}},
	{NULL, {BASE, .move_to = "d", .removes = 1}},
	{NULL, {BASE, .removes = 1}},
	{NULL, {BASE, .follow = 1}},
	{"leave out --follow", {BASE, .removes = 1, .follow = 1}},
	{"--bucket same", {BASE, .bucket_is = S3ONCE_BUCKET_SAME}},
	{NULL, {BASE, .bucket_is = S3ONCE_BUCKET_SAME, .bucket_id_object = "k"}},
	{NULL, {BASE, .bucket_is = S3ONCE_BUCKET_NEW}},
	{"--compress", {BASE, .compress = "lha"}},
	{NULL, {BASE, .compress = "gzip"}},
	{NULL, {BASE, .compress = "gzip", .settings = gzip, .n_settings = 1}},
	{NULL, {BASE, .compress = "zstd", .settings = empty, .n_settings = 1}},
	{"--header Content-Encoding is zstd",
		{BASE, .compress = "zstd", .settings = gzip, .n_settings = 1}},
	{NULL, {BASE, .settings = gzip, .n_settings = 1}},
	{"needs at least --memory", {BASE, .compress = "zstd", .memory_bytes = MIB}},
	{NULL, {BASE, .memory_bytes = MIB}},
	{NULL, {BASE, .marks = "dynamodb:table"}},
	{"", {BASE, .marks = "nowhere:table"}},
	{"lacks an option", {BASE, .reserved = {1}}},
	{"lacks an option", {BASE, .reserved = {[15] = UINT64_C(1) << 63}}},
};

static void test_contradictions(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct s3once_options all;
		struct problem problem = {0};
		const int r = run_options_complete(&rows[i].options, &all, &problem);
		bool good = CHECK_INT(r, rows[i].says ? -EINVAL : 0);
		good &= !rows[i].says || CHECK(*problem.text && strstr(problem.text, rows[i].says));
		if (!good)
			fprintf(stderr, "\trow %zu: %s\n", i, problem.text);
	}
}

/* The least memory for a compressor is that of one encoder. */
static void test_least_memory(void)
{
	struct s3once_options options = {BASE, .compress = "zstd:3"}, all;
	struct encoding encoding;
	struct problem problem;
	CHECK_INT(encoding_parse(options.compress, &encoding, &problem), 0);
	const uint64_t least = encoders_min_memory(&encoding);
	options.memory_bytes = (least + ENCODERS_MEMORY_TIMES - 1) / ENCODERS_MEMORY_TIMES;
	CHECK_INT(run_options_complete(&options, &all, &problem), 0);
	options.memory_bytes--;
	CHECK_INT(run_options_complete(&options, &all, &problem), -EINVAL);
}

/* A time that a caller means to be endless is still a time when it is counted in ns. */
static void test_endless_times(void)
{
	const struct s3once_options given = {BASE, .request_timeout_ms = UINT64_MAX,
		.grace_ms = UINT64_MAX, .give_up_after_ms = UINT64_MAX,
		.max_duration_ms = UINT64_MAX};
	struct s3once_options all;
	struct problem problem = {0};
	CHECK_INT(run_options_complete(&given, &all, &problem), 0);
	CHECK_INT(all.request_timeout_ms, CLOCK_SPAN_MAX_MS);
	CHECK_INT(all.grace_ms, CLOCK_SPAN_MAX_MS);
	CHECK_INT(all.give_up_after_ms, CLOCK_SPAN_MAX_MS);
	CHECK_INT(all.max_duration_ms, CLOCK_SPAN_MAX_MS);
}

static void test_defaults(void)
{
	struct s3once_options all;
	struct problem problem = {0};
	CHECK_INT(run_options_complete(&(struct s3once_options){BASE}, &all, &problem), 0);
	CHECK_STRING(all.prefix, "");
	CHECK_STRING(all.marks, "local");
	CHECK_INT(all.concurrency, 1024);
	CHECK_INT(all.memory_bytes, 24 * MIB);
	CHECK_INT(all.part_bytes, PART_BYTES_DEFAULT);
	CHECK_INT(all.request_timeout_ms, 60000);
	CHECK_INT(all.grace_ms, 10000);
	CHECK_INT(all.give_up_after_ms, 300000);
	CHECK_INT(all.lease_ms, 30000);
	CHECK(!all.manifest && !all.max_transfer_bytes && !all.max_duration_ms);
	const struct s3once_options given = {BASE, .prefix = "p", .marks = "sqlite:/m",
		.concurrency = 3, .memory_bytes = 4, .part_bytes = 6 * MIB, .request_timeout_ms = 5,
		.grace_ms = 6, .give_up_after_ms = 7, .lease_ms = 2000, .min_age_ms = 8,
		.removes = 1, .move_to = "d", .sign_key_file = "f"};
	CHECK_INT(run_options_complete(&given, &all, &problem), 0);
	CHECK_INT(all.manifest, 1); /* that is what is signed */
	all.manifest = 0;
	CHECK_INT(memcmp(&all, &given, sizeof all), 0);
	/* The host is about to end: young files go, too, and nothing is removed any more. */
	struct s3once_options final = given;
	final.final = 1;
	final.manifest = 1;
	final.sign_key_file = NULL;
	CHECK_INT(run_options_complete(&final, &all, &problem), 0);
	CHECK(!all.min_age_ms && !all.removes && !all.move_to && all.manifest);
}

int main(void)
{
	test_contradictions();
	test_least_memory();
	test_endless_times();
	test_defaults();
	return check_result();
}
