#include "cli/audit/verify_options.h"
#include "base/quote.h"
#include "cli/options/values.h"
#include <errno.h>
#include <string.h>

#define REPORT_ALONE "the report is compared as a whole, and S3 is not asked"
#define FIELD(field) offsetof(struct verify_options, field)

static const struct option what_options[] = {
	{.name = "head",
		.type = OPTION_FLAG,
		.offset = FIELD(head),
		.help = "ask for each object, too: compares the checksum that\n"
			"S3 keeps, if it keeps one"},
	{.name = "download",
		.type = OPTION_FLAG,
		.offset = FIELD(download),
		.help = "read each object, too, and compare its content"},
	{.name = "manifest",
		.type = OPTION_STRING,
		.offset = FIELD(manifest),
		.argument = "RUN",
		.help = "compare the objects that the manifest of this run\n"
			"lists with the bucket, by HEAD or --download; without\n"
			"marks"},
	{.name = "public-key",
		.type = OPTION_STRING,
		.offset = FIELD(public_key),
		.argument = "FILE",
		.help = "with --manifest: it has to be signed by this Ed25519\n"
			"key (PEM)"},
	{.name = "batch-report",
		.type = OPTION_SETTING,
		.offset = FIELD(reports),
		.argument = "FILE",
		.help = "compare the checksums in the completion report of S3\n"
			"Batch Operations, its manifest.json or a CSV file of\n"
			"it, with the marks; may be repeated"},
	{.name = "subset",
		.type = OPTION_STRING,
		.offset = FIELD(subset),
		.argument = "N/T|P%|SIZE",
		.help = "with --head or --download: only of the Nth of T parts\n"
			"of the keys, of P percent, or of as many as have SIZE\n"
			"(10G) bytes in total; the same keys each time"},
	{.name = "after",
		.type = OPTION_STRING,
		.offset = FIELD(after),
		.argument = "KEY",
		.help = "begin after KEY, where an earlier run has ended"},
	{.name = "max-duration",
		.type = OPTION_DURATION,
		.offset = FIELD(max_duration_ms),
		.argument = "DUR",
		.help = "end after DUR, and say where to go on",
		.least = 1,
		.most = 366ULL * 24 * 3600 * 1000},
	{.name = "concurrency",
		.type = OPTION_NUMBER,
		.offset = FIELD(workers),
		.argument = "N",
		.help = "ask for or read at most N objects at once",
		.least = 1,
		.most = VERIFY_WORKERS_MAX,
		.standard = "8"},
	{.name = "give-up-after",
		.type = OPTION_DURATION,
		.offset = FIELD(give_up_after_ms),
		.argument = "DUR",
		.help = "wait for up to DUR for a service that throttles or\n"
			"cannot be reached",
		.standard = "1m",
		.most = 7ULL * 24 * 3600 * 1000},
	{.name = "sse-c-key-file",
		.type = OPTION_STRING,
		.offset = FIELD(key_file),
		.argument = "FILE",
		.help = "the key that the objects are encrypted with (SSE-C)"},
	{.name = "keep-marks",
		.type = OPTION_DURATION,
		.offset = FIELD(keep_marks_ms),
		.argument = "AGE",
		.help = "as given to gc: an object that is older than AGE may\n"
			"lack a mark",
		.least = 1000},
	{.name = "bucket-id-object",
		.type = OPTION_STRING,
		.offset = FIELD(id_object),
		.argument = "KEY",
		.help = "the object that identifies the bucket has no mark"},
	{NULL},
};

static const struct option output_options[] = {
	{.name = "json",
		.type = OPTION_FLAG,
		.offset = FIELD(json),
		.help = "one event a line on standard output, as JSON"},
	{.name = "verbose",
		.letter = 'v',
		.type = OPTION_COUNT,
		.offset = FIELD(verbose),
		.help = "list objects that are right, too"},
	{.name = "no-progress",
		.type = OPTION_FLAG,
		.offset = FIELD(no_progress),
		.help = "show no progress on a terminal"},
	{.name = "help", .letter = 'h', .type = OPTION_HELP, .help = "print this and exit"},
	{NULL},
};

struct command verify_command(
	struct option_group groups[static VERIFY_GROUPS], struct verify_options *options)
{
	static const struct option_conflict conflicts[] = {
		{"head", "download", "--download does what --head does"},
		{"manifest", "marks", "a manifest is compared without marks"},
		{"manifest", "after", "the lines of a manifest are in no order"},
		{"manifest", "bucket-id-object", "only what a manifest lists is compared"},
		{"manifest", "keep-marks", "a manifest is compared without marks"},
		{"batch-report", "head", REPORT_ALONE}, {"batch-report", "download", REPORT_ALONE},
		{"batch-report", "manifest", "a report is compared with the marks"},
		{"batch-report", "subset", REPORT_ALONE}, {"batch-report", "after", REPORT_ALONE},
		{"batch-report", "concurrency", REPORT_ALONE},
		{"batch-report", "sse-c-key-file", REPORT_ALONE}, {NULL}};
	static const struct option_elsewhere elsewhere[] = {
		{"local", "s3once push --dry-run --compare-content DIR s3://BUCKET/PREFIX, with "
			  "the options of the upload, reads the files of this host and compares "
			  "them with the marks"},
		{"repair", "s3once push --reupload --compare-content DIR s3://BUCKET/PREFIX, with "
			   "the options of the upload, sends again what is missing"},
		{NULL}};
	groups[0] = (struct option_group){"What is compared", what_options, options};
	groups[1] = (struct option_group){NULL, job_asked_options, &options->job};
	access_groups(&options->access, groups + 2);
	groups[2 + ACCESS_GROUPS] = (struct option_group){"Output", output_options, options};
	return (struct command){
		.name = "verify",
		.operands = "s3://BUCKET[/KEY-OR-PREFIX] | --job JOB",
		.about =
			"Compares what is in the bucket with the marks: lists the bucket, and looks whether\n"
			"each file that is done is there with its size and etag. Prints a line for each\n"
			"difference, with - for a missing object, * for one that differs, + for one without\n"
			"a mark, and ! for what could not be checked. Changes nothing.\n",
		.groups = groups,
		.n_groups = VERIFY_GROUPS,
		.conflicts = conflicts,
		.elsewhere = elsewhere,
		.examples =
			"  s3once verify s3://my-bucket/photos\n"
			"  s3once verify --download --subset 1/7 --max-duration 4h s3://my-bucket\n"
			"  s3once verify --manifest RUN --public-key run.pem s3://my-bucket/photos\n"
			"  s3once verify --batch-report job-1/manifest.json s3://my-bucket/photos\n"
			"\n"
			"Exit codes: 0 all is right; 1 there are differences; 2 usage; 3 it cannot be known;\n"
			"6 --max-duration ended it, and what was looked at is right. More: man s3once-verify\n",
	};
}

static int bad_subset(const char *given, struct problem *ret_problem)
{
	problem_set(ret_problem,
		"--subset: '%s' is neither a part, such as 1/7, nor a percentage, such as 5%%, nor "
		"a size, such as 10G",
		quote(given).text);
	return -EINVAL;
}

int verify_subset_read(const char *given, struct verify_subset *ret, struct problem *ret_problem)
{
	char number[24];
	uint64_t a, b;
	const size_t n = strcspn(given, "/%");
	if (!given[n] && value_size(given, &a, NULL) == 0 && a) {
		*ret = (struct verify_subset){.bytes = a};
		return 0;
	}
	if (!n || n >= sizeof number)
		return bad_subset(given, ret_problem);
	memcpy(number, given, n);
	number[n] = '\0';
	if (value_number(number, &a, NULL) < 0)
		return bad_subset(given, ret_problem);
	if (strcmp(given + n, "%") == 0 && a >= 1 && a <= 100) {
		*ret = (struct verify_subset){.to = a, .of = 100};
		return 0;
	}
	if (given[n] != '/' || value_number(given + n + 1, &b, NULL) < 0 || a < 1 || a > b ||
		b > 1000000)
		return bad_subset(given, ret_problem);
	*ret = (struct verify_subset){.from = a - 1, .to = a, .of = b};
	return 0;
}
