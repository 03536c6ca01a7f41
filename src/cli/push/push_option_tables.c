#include "cli/push/push_options.h"
#include <string.h>

#define RUN(field) offsetof(struct push_options, run.field)
#define OWN(field) offsetof(struct push_options, field)

static const char *const if_changed_names[] = {
	[S3ONCE_CHANGED_FAIL] = "fail",
	[S3ONCE_CHANGED_REPLACE] = "replace",
	[S3ONCE_CHANGED_SKIP] = "skip",
	NULL,
};

static const char *const if_grown_names[] = {
	[S3ONCE_GROWN_AUTO] = "auto",
	[S3ONCE_GROWN_WHOLE] = "whole",
	[S3ONCE_GROWN_TAIL] = "tail",
	[S3ONCE_GROWN_FAIL] = "fail",
	NULL,
};

static const struct option what_options[] = {
	{.name = "as",
		.type = OPTION_STRING,
		.offset = RUN(as),
		.argument = "KEY",
		.help = "use KEY as the whole key of a SOURCE that is one file"},
	{.name = "key",
		.type = OPTION_STRING,
		.offset = RUN(key_template),
		.argument = "TEMPLATE",
		.help = "make keys of {path} {dir} {name} {stem} {ext} {family}\n"
			"{mtime:%Y/%m/%d} {id:8} {host} {fqdn} {env:NAME}",
		.standard = "{path}; with --rotated, a name with time and id"},
	{.name = "time-zone",
		.type = OPTION_STRING,
		.offset = RUN(time_zone),
		.argument = "ZONE",
		.help = "the time zone of {mtime:…} in --key and of the times\n"
			"of --bwlimit, such as Europe/Berlin",
		.standard = "UTC"},
	{.name = "rotated",
		.type = OPTION_FLAG,
		.offset = RUN(rotated),
		.help = "upload logs that rotate once, whatever their number\n"
			"and compression are, and leave out what is still\n"
			"written"},
	{.name = "rotated-pattern",
		.type = OPTION_STRING,
		.offset = RUN(rotated_pattern),
		.argument = "REGEX",
		.help = "what rotation adds to a name, where that is neither a\n"
			"number nor a date as usual"},
	{.name = "live",
		.type = OPTION_FLAG,
		.offset = RUN(live),
		.help = "upload also what is in live logs, to the end of their\n"
			"last line; what is new later is an object of its own"},
	{.name = "if-grown",
		.type = OPTION_CHOICE,
		.offset = RUN(if_grown),
		.argument = "auto|whole|tail|fail",
		.help = "if a rotated log has grown since then: upload all of\n"
			"it, upload what is new, or report an error; auto is\n"
			"tail with --live, else whole",
		.standard = "auto",
		.choices = if_grown_names},
	{.name = "files-from",
		.type = OPTION_STRING,
		.offset = RUN(files_from),
		.argument = "FILE",
		.help = "upload only the files that FILE lists (- for standard\n"
			"input), one per line, relative to the one SOURCE"},
	{.name = "null",
		.letter = '0',
		.type = OPTION_FLAG,
		.offset = RUN(nul_separated),
		.help = "read NUL-separated names from --files-from"},
	{.name = "exclude",
		.type = OPTION_EXCLUDE,
		.offset = OWN(rules),
		.argument = "PATTERN",
		.help = "exclude files that match; * stops at /, ** does not;\n"
			"of several rules the last that matches wins"},
	{.name = "include",
		.type = OPTION_INCLUDE,
		.offset = OWN(rules),
		.argument = "PATTERN",
		.help = "include files that match; if the first rule includes,\n"
			"everything else is excluded"},
	{.name = "min-age",
		.type = OPTION_DURATION,
		.offset = OWN(min_age_ms),
		.argument = "DUR",
		.help = "skip files modified less than DUR ago; the next run\n"
			"uploads them"},
	{.name = "max-size",
		.type = OPTION_SIZE,
		.offset = RUN(max_bytes),
		.argument = "SIZE",
		.help = "skip files larger than SIZE",
		.least = 1,
		.most = 1ULL << 60},
	{.name = "min-size",
		.type = OPTION_SIZE,
		.offset = RUN(min_bytes),
		.argument = "SIZE",
		.help = "skip files smaller than SIZE",
		.most = 1ULL << 60},
	{.name = "follow",
		.type = OPTION_FLAG,
		.offset = RUN(follow),
		.help = "follow symbolic links [they are skipped and counted]"},
	{NULL},
};

static const struct option removal_options[] = {
	{.name = "delete-after",
		.type = OPTION_AGE,
		.offset = OWN(delete_after_ms),
		.argument = "[=AGE]",
		.help = "remove files that are in S3, proven once more right\n"
			"before; with AGE once they have been there so long"},
	{.name = "move-to",
		.type = OPTION_STRING,
		.offset = RUN(move_to),
		.argument = "DIR",
		.help = "move them below DIR instead, on the same file system"},
	{.name = "delete-linked",
		.type = OPTION_FLAG,
		.offset = RUN(remove_linked),
		.help = "also files that have other names (hard links)"},
	{.name = "delete-open",
		.type = OPTION_FLAG,
		.offset = RUN(remove_open),
		.help = "also files that are open for writing"},
	{.name = "delete-foreign",
		.type = OPTION_FLAG,
		.offset = RUN(remove_foreign),
		.help = "also files of another user than their folder's owner\n"
			"and the SOURCE's"},
	{NULL},
};

static const struct option how_options[] = {
	{.name = "if-changed",
		.type = OPTION_CHOICE,
		.offset = RUN(if_changed),
		.argument = "fail|replace|skip",
		.help = "if a file has changed since it was uploaded: report an\n"
			"error, overwrite the object, or leave it",
		.standard = "fail",
		.choices = if_changed_names},
	{.name = "wait",
		.type = OPTION_FLAG,
		.offset = OWN(wait),
		.help = "wait for files that other uploaders hold [default]"},
	{.name = "no-wait",
		.type = OPTION_FLAG,
		.offset = RUN(no_wait),
		.help = "do not wait for them, and exit with 4"},
	{.name = "reupload",
		.type = OPTION_FLAG,
		.offset = RUN(reupload),
		.help = "look at the objects of files that were uploaded before\n"
			"too, and upload those that are not there"},
	{.name = "compare-content",
		.type = OPTION_FLAG,
		.offset = RUN(compare_content),
		.help = "read files that were uploaded before too: one with\n"
			"other content has changed, also if its size and time\n"
			"have not"},
	{.name = "new-bucket",
		.type = OPTION_FLAG,
		.offset = RUN(new_bucket),
		.help = "the bucket was deleted and created again, or is\n"
			"another one than the marks are about: begin with no\n"
			"marks for it"},
	{.name = "same-bucket",
		.type = OPTION_FLAG,
		.offset = RUN(same_bucket),
		.help = "the bucket is the one that the marks are about,\n"
			"although their objects are gone: believe the marks"},
	{.name = "bucket-id-object",
		.type = OPTION_STRING,
		.offset = RUN(bucket_id_object),
		.argument = "KEY",
		.help = "keep a small object under KEY, which identifies the\n"
			"bucket even if all other objects are gone"},
	{.name = "dry-run",
		.letter = 'n',
		.type = OPTION_FLAG,
		.offset = RUN(dry_run),
		.help = "change nothing, print what would be uploaded"},
	{.name = "trust-conditions",
		.type = OPTION_FLAG,
		.offset = RUN(trust_conditions),
		.help = "send no HEAD before each upload: this server honours\n"
			"If-None-Match, as AWS does"},
	{NULL},
};

static const struct option lease_options[] = {
	{.name = "lease",
		.type = OPTION_DURATION,
		.offset = RUN(lease_ms),
		.argument = "DUR",
		.help = "let other hosts take over DUR after the last\n"
			"heartbeat",
		.standard = "30s",
		.least = 1000,
		.most = 24 * 3600 * 1000},
	{.name = "heartbeat",
		.type = OPTION_DURATION,
		.offset = RUN(heartbeat_ms),
		.argument = "DUR",
		.help = "send a heartbeat every DUR, at most half the lease",
		.standard = "a fifth of it",
		.least = 100,
		.most = 12 * 3600 * 1000},
	{NULL},
};

static const struct option effort_options[] = {
	{.name = "retries",
		.type = OPTION_NUMBER,
		.offset = OWN(retries),
		.argument = "N",
		.help = "retry a failed request up to N times\n"
			"[8, or AWS_MAX_ATTEMPTS less one]",
		.most = 100},
	{.name = "give-up-after",
		.type = OPTION_DURATION,
		.offset = OWN(give_up_after_ms),
		.argument = "DUR",
		.help = "at the end of the run, retry for up to DUR the files\n"
			"that failed by throttling, server errors or lost\n"
			"connections",
		.standard = "5m",
		.most = 7ULL * 24 * 3600 * 1000},
	{.name = "grace",
		.type = OPTION_DURATION,
		.offset = OWN(grace_ms),
		.argument = "DUR",
		.help = "after a signal, let what is under way finish for up\n"
			"to DUR",
		.standard = "10s",
		.most = 24 * 3600 * 1000},
	{.name = "concurrency",
		.type = OPTION_NUMBER,
		.offset = RUN(concurrency),
		.argument = "N",
		.help = "send up to N requests at once; a run finds out how\n"
			"many are worth while",
		.standard = "1024",
		.least = 1,
		.most = 1024},
	{.name = "memory",
		.type = OPTION_SIZE,
		.offset = RUN(memory_bytes),
		.argument = "SIZE",
		.help = "use up to SIZE for buffers and bodies",
		.standard = "24MiB",
		.least = 1 << 20,
		.most = 1ULL << 40},
	{.name = "part-size",
		.type = OPTION_SIZE,
		.offset = RUN(part_bytes),
		.argument = "SIZE",
		.help = "send larger files in parts of SIZE; it grows where a\n"
			"file would need over 10,000 parts",
		.standard = "16MiB",
		.least = 5 << 20,
		.most = 5ULL << 30},
	{NULL},
};

static const struct option limit_options[] = {
	{.name = "bwlimit",
		.type = OPTION_STRING,
		.offset = OWN(bwlimit),
		.argument = "RATE",
		.help = "send up to RATE bytes a second, such as 20M, with all\n"
			"runs of this user on this host; by time of day:\n"
			"'08:00,2M 19:00,off'; SIGUSR2 lifts and restores it"},
	{.name = "max-duration",
		.type = OPTION_DURATION,
		.offset = RUN(max_duration_ms),
		.argument = "DUR",
		.help = "begin nothing new after DUR, and exit with 6",
		.least = 1000,
		.most = 365ULL * 24 * 3600 * 1000},
	{.name = "max-transfer",
		.type = OPTION_SIZE,
		.offset = RUN(max_transfer_bytes),
		.argument = "SIZE",
		.help = "begin nothing new once SIZE was sent, and exit with 6",
		.least = 1,
		.most = 1ULL << 60},
	{.name = "io-idle",
		.type = OPTION_FLAG,
		.offset = OWN(io_idle),
		.help = "read files only when nobody else uses the disk"},
	{NULL},
};

static const struct option output_options[] = {
	{.name = "json",
		.type = OPTION_FLAG,
		.offset = OWN(json),
		.help = "print one event per line to standard output, as JSON"},
	{.name = "verbose",
		.letter = 'v',
		.type = OPTION_COUNT,
		.offset = OWN(verbose),
		.help = "print each file that is uploaded, each symbolic link\n"
			"that is skipped, and each error of those that are\n"
			"alike; -vv: also files that are skipped; -vvv: also\n"
			"requests"},
	{.name = "quiet",
		.letter = 'q',
		.type = OPTION_FLAG,
		.offset = OWN(quiet),
		.help = "print only errors and warnings, and a last line if\n"
			"there were any; for cron"},
	{.name = "no-progress",
		.type = OPTION_FLAG,
		.offset = OWN(no_progress),
		.help = "do not show progress"},
	{.name = "manifest",
		.type = OPTION_FLAG,
		.offset = RUN(manifest),
		.help = "at the end, store a list of the files that are in S3\n"
			"below PREFIX/_s3once/runs/"},
	{.name = "sign",
		.type = OPTION_STRING,
		.offset = RUN(sign_key_file),
		.argument = "KEYFILE",
		.help = "sign the manifest with the private Ed25519 key of this\n"
			"PEM file"},
	{.name = "log-file",
		.type = OPTION_STRING,
		.offset = OWN(log_file),
		.argument = "FILE",
		.help = "append what would be printed to FILE instead, with\n"
			"times; with --json, the events"},
	{.name = "metrics-file",
		.type = OPTION_STRING,
		.offset = OWN(metrics_file),
		.argument = "FILE",
		.help = "write how the run ended to FILE, for the textfile\n"
			"collector of Prometheus's node_exporter"},
	{.name = "help", .letter = 'h', .type = OPTION_HELP, .help = "print this help and exit"},
	{NULL},
};

static const struct option watch_options[] = {
	{.name = "full-scan",
		.type = OPTION_DURATION,
		.offset = OWN(whole_scan_ms),
		.argument = "DUR",
		.help = "look at all files every DUR, whatever the kernel has\n"
			"told",
		.standard = "10m",
		.least = 1000,
		.most = 24 * 3600 * 1000},
	{.name = "metrics-listen",
		.type = OPTION_STRING,
		.offset = OWN(metrics_listen),
		.argument = "ADDRESS",
		.help = "answer Prometheus at http://ADDRESS/metrics, such as\n"
			"127.0.0.1:14469; a port alone is one of 127.0.0.1"},
	{NULL},
};

static const struct option_conflict conflicts[] = {
	{"wait", "no-wait", NULL},
	{"quiet", "verbose", NULL},
	{"dry-run", "reupload", "what --reupload finds is uploaded at once"},
	{"as", "key", "--as names the key of exactly one file"},
	{"delete-after", "follow", "what is reached through symbolic links is not removed"},
	{"move-to", "follow", "what is reached through symbolic links is not moved"},
	{"as", "files-from", "--as names the key of exactly one file"},
	{"as", "exclude", "--as names the key of exactly one file"},
	{"as", "include", "--as names the key of exactly one file"},
	{NULL},
};

struct command push_command(
	struct option_group groups[static PUSH_GROUPS], struct push_options *options)
{
	struct access *access = options ? &options->access : NULL;
	const struct option_group filled[PUSH_GROUPS] = {
		{"What to upload", what_options, options},
		{"How", how_options, options},
		{"Files that are in S3", removal_options, options},
		{"Objects", push_object_options, options},
		{"Marks and lease", access_marks_options, access},
		{NULL, lease_options, options},
		{"Services", access_s3_options, access},
		{NULL, access_dynamodb_options, access},
		{NULL, access_options, access},
		{NULL, access_checksum_options, access},
		{"Effort", effort_options, options},
		{"Limits", limit_options, options},
		{"Output", output_options, options},
	};
	memcpy(groups, filled, sizeof filled);
	return (struct command){
		.name = "push",
		.operands = "SOURCE... s3://BUCKET[/PREFIX]",
		.about =
			"Uploads each file exactly once. The files of a SOURCE directory go below PREFIX, and\n"
			"a SOURCE file becomes PREFIX/NAME. A file that was uploaded before is skipped.\n"
			"DUR is written as in 30s, 5min or 1h30m; SIZE as in 64M or 64MiB.\n",
		.groups = groups,
		.n_groups = PUSH_GROUPS,
		.conflicts = conflicts,
		.examples =
			"  s3once push /srv/photos s3://my-bucket/photos\n"
			"  s3once push --exclude '*.tmp' --min-age 1m logs s3://my-bucket/logs\n"
			"  s3once push --marks dynamodb:s3once /data s3://my-bucket\n"
			"\n"
			"Exit codes: 0 all files are in S3, verified; 1 some are not; 2 usage; 3 setup\n"
			"(credentials, bucket, table, service); 4 other uploaders hold files; 5 the\n"
			"lease was lost; 6 a limit ended the run; 129, 130, 143 stopped by a signal.\n"
			"More: man s3once-push\n",
	};
}

struct command job_command(
	struct option_group groups[static JOB_GROUPS], struct push_options *options)
{
	struct command command = push_command(groups, options);
	groups[PUSH_GROUPS] = (struct option_group){"Watching", watch_options, options};
	command.n_groups = JOB_GROUPS;
	return command;
}
