/* The tables of push's options, which a job's file and the commands run, watch and proven have,
 * too. The name, the type and the help of an option are only here. options.h parses and prints
 * them, and push_options.c hands the values to the library. Tests compare a manual page and the
 * completion with these tables. */
#include "cli/other_tools.h"
#include "cli/push/push_options.h"

#define RUN(field) offsetof(struct push_options, run.field)
#define OWN(field) offsetof(struct push_options, field)
#define SETTING(option, word, text, ...)                                                           \
	VALUE(option, SETTING, OWN(settings), word, text, __VA_ARGS__)

/* In the order of enum s3once_bucket_is, enum s3once_if_changed, and the bits of enum
 * s3once_remove_even. */
static const char *const bucket_names[] = {"known", "new", "same", NULL};
static const char *const if_changed_names[] = {"fail", "replace", "skip", "replace-any", NULL};
static const char *const remove_even_names[] = {"linked", "open", "foreign", NULL};

static const struct option what_options[] = {
	VALUE("as", STRING, RUN(as), "KEY",
		"use KEY as the whole key of a SOURCE that is one file"),
	VALUE("key", STRING, RUN(key_template), "TEMPLATE",
		"make keys of {path} {dir} {name} {stem} {ext} {family} {mtime:%Y/%m/%d} {id:8} "
		"{host} {fqdn} {env:NAME} {namespace} {pod} {container}",
		.standard = "{path}; with --rotated, a name with time and id",
		.brief = "make keys of {name} {mtime:%Y/%m/%d} {host} and others"),
	VALUE("time-zone", STRING, RUN(time_zone), "ZONE",
		"the time zone of {mtime:…} in --key and of --bwlimit, such as Europe/Berlin",
		.standard = "UTC"),
	VALUE("files-from", STRING, RUN(files_from), "FILE",
		"upload only the files that FILE lists (- for standard input), in lines or with "
		"NUL bytes between, relative to the one SOURCE",
		.only_once = true, .brief = "upload only the files that FILE lists (- for stdin)"),
	VALUE("exclude", EXCLUDE, OWN(rules), "PATTERN",
		"exclude files and folders that match; * stops at /, ** does not; the last rule "
		"that matches wins",
		.brief = "exclude what matches, such as '*.tmp' or .git"),
	VALUE("include", INCLUDE, OWN(rules), "PATTERN",
		"include files and folders that match; if the first rule includes, everything else is excluded"),
	VALUE("exclude-from", EXCLUDE_FROM, OWN(rules), "FILE",
		"exclude what matches the patterns in FILE, one a line; # begins a comment"),
	VALUE("min-age", DURATION, RUN(min_age_ms), "DUR",
		"skip files modified less than DUR ago; the next run uploads them",
		.brief = "skip files modified less than DUR ago"),
	VALUE("max-size", SIZE, RUN(max_bytes), "SIZE", "skip files larger than SIZE", .min = 1,
		.max = 1ULL << 60),
	VALUE("min-size", SIZE, RUN(min_bytes), "SIZE", "skip files smaller than SIZE",
		.max = 1ULL << 60),
	FLAG("follow", RUN(follow), "follow symbolic links [they are skipped and counted]"),
	FLAG("one-file-system", RUN(one_file_system),
		"skip directories below a SOURCE where another file system is mounted",
		.letter = 'x'),
	{NULL},
};

static const struct option log_options[] = {
	FLAG("rotated", RUN(rotated),
		"upload each rotated log once, even if it is renumbered or compressed, and skip "
		"logs that are still being written",
		.brief = "upload rotated logs, each of them once"),
	FLAG("live", RUN(live),
		"also upload live logs, up to the end of their last line; lines that are added "
		"later become objects of their own"),
	{NULL},
};

static const struct option pipe_options[] = {
	VALUE("spool", STRING, RUN(spool), "DIR",
		"keep the output in DIR until KEY is done, so that another run can resume"),
	{NULL},
};

static const struct option removal_options[] = {
	VALUE("delete-after", AGE, OWN(delete_after_ms), "[=AGE]",
		"remove files that are in S3, after another check; with AGE, only those that have "
		"been done that long",
		.removes = true, .brief = "remove files that are proven to be in S3"),
	VALUE("move-to", STRING, RUN(move_to), "DIR",
		"move them below DIR instead, on the same file system", .removes = true),
	VALUE("remove-even", SET, RUN(remove_even), "linked|open|foreign",
		"also remove files that have other names (linked), are open for writing, or belong "
		"neither to the owner of their folder nor to that of the SOURCE (foreign); a list: "
		"linked,open",
		.removes = true, .choices = remove_even_names),
	{NULL},
};

static const struct option how_options[] = {
	VALUE("if-changed", CHOICE, RUN(if_changed), "fail|replace|skip|replace-any",
		"if a file has changed since its upload: report an error, overwrite the object if these marks "
		"uploaded it, leave it, or overwrite it whoever uploaded it",
		.standard = "fail", .choices = if_changed_names,
		.brief = "what to do with a file that changed after its upload"),
	FLAG("no-wait", RUN(no_wait),
		"do not wait for files that other uploaders hold, and exit with 4"),
	FLAG("reupload", RUN(reupload),
		"also check the objects of files that were uploaded before, and upload those that "
		"are missing"),
	FLAG("compare-content", RUN(compare_content),
		"also read files that were uploaded before, to find changes that their size and "
		"time do not show"),
	VALUE("bucket", CHOICE, RUN(bucket_is), "known|new|same",
		"new: the bucket was deleted and created again, or is not the one of the marks, so "
		"begin without marks for it; same: it is the bucket of the marks, although their "
		"objects are gone, so trust the marks",
		.standard = "known", .choices = bucket_names),
	VALUE("bucket-id-object", STRING, RUN(bucket_id_object), "KEY",
		"keep an object under KEY that identifies the bucket even if all others are gone"),
	FLAG("final", RUN(final),
		"upload everything now, before this host goes away: also young files and live "
		"logs, the oldest and smallest files first; nothing is removed"),
	FLAG("dry-run", RUN(dry_run), "change nothing, print what would be uploaded", .letter = 'n',
		.brief = ""),
	{NULL},
};

static const struct option object_options[] = {
	SETTING("storage-class", "CLASS", "STANDARD_IA, GLACIER, … or a class of the server's own",
		.brief = ""),
	SETTING("acl", "ACL", "private, public-read, bucket-owner-full-control, …"),
	SETTING("tag", "KEY=VALUE", "add a tag; may be repeated, up to ten times"),
	SETTING("metadata", "KEY=VALUE", "add user metadata; may be repeated"),
	SETTING("content-type", "TYPE", "such as text/plain; --rules sets it by pattern"),
	SETTING("header", "NAME:VALUE",
		"send another header for uploads, such as 'Cache-Control: "
		"max-age=3600'; may be repeated; 'Content-Encoding: gzip' with --compress gzip "
		"replaces the suffix"),
	SETTING("sse", "KIND", "encrypt on the server: AES256, aws:kms or aws:kms:dsse"),
	SETTING("sse-kms-key-id", "ID", "use this KMS key"),
	SETTING("sse-c-key-file", "FILE",
		"encrypt with the key in FILE (SSE-C): 32 bytes, or their base64"),
	SETTING("object-lock", "MODE:TIME",
		"retain objects in GOVERNANCE or COMPLIANCE mode, for days from the beginning of "
		"the run (GOVERNANCE:400d) or until a time (COMPLIANCE:2030-12-31T23:59:59Z)"),
	VALUE("compress", STRING, RUN(compress), "zstd|gzip[:LEVEL]",
		"compress files that are not compressed yet, and add .zst or .gz to their keys",
		.brief = "compress files that are not compressed yet"),
	VALUE("rules", STRING, RUN(rules_file), "FILE",
		"read these options for files that match a pattern, as in rules.example; "
		"options given here take precedence",
		.only_once = true),
	{NULL},
};

static const struct option lease_options[] = {
	VALUE("lease", DURATION, RUN(lease_ms), "DUR",
		"others may take over DUR after the last heartbeat;\na lease has five heartbeats",
		.standard = "30s", .min = 1000, .max = 24 * 3600 * 1000),
	{NULL},
};

static const struct option effort_options[] = {
	VALUE("give-up-after", DURATION, RUN(give_up_after_ms), "DUR",
		"retry files that failed by throttling, server errors or lost connections, after "
		"the other files, for up to DUR",
		.standard = "5m", .max = 7ULL * 24 * 3600 * 1000, .for_zero = 1),
	VALUE("grace", DURATION, RUN(grace_ms), "DUR",
		"after a signal, let uploads under way finish for up\nto DUR", .standard = "10s",
		.max = 24 * 3600 * 1000, .for_zero = 1),
	VALUE("concurrency", NUMBER, RUN(concurrency), "N",
		"send at most N requests at once; the run finds the best number up to that",
		.standard = "1024", .min = 1, .max = 1024),
	VALUE("memory", SIZE, RUN(memory_bytes), "SIZE", "use up to SIZE for buffers and bodies",
		.standard = "24MiB", .min = 1 << 20, .max = 1ULL << 40),
	VALUE("part-size", SIZE, RUN(part_bytes), "SIZE",
		"send larger files in parts of SIZE, or in larger parts if there would be more than "
		"10,000",
		.standard = "16MiB", .min = 5 << 20, .max = 5ULL << 30),
	{NULL},
};

static const struct option limit_options[] = {
	VALUE("bwlimit", STRING, OWN(bwlimit), "RATE",
		"send up to RATE bytes a second, such as 20M, with all runs of this user on "
		"this host; by time of day: '08:00,2M 19:00,off'; SIGUSR2 lifts and restores it",
		.brief = "send up to RATE bytes a second, such as 20M"),
	VALUE("max-duration", DURATION, RUN(max_duration_ms), "DUR",
		"begin nothing new after DUR, and exit with 6", .min = 1000,
		.max = 365ULL * 24 * 3600 * 1000),
	VALUE("max-transfer", SIZE, RUN(max_transfer_bytes), "SIZE",
		"begin nothing new once SIZE was sent, and exit with 6", .min = 1,
		.max = 1ULL << 60),
	{NULL},
};

static const struct option output_options[] = {
	FLAG("json", OWN(json), "print one event per line to standard output, as JSON",
		.brief = ""),
	VALUE("verbose", COUNT, OWN(verbose), NULL,
		"print each file that is uploaded, each link that is skipped, and each of several "
		"similar errors; -vv: also files that are skipped; -vvv: also requests",
		.letter = 'v', .brief = "print each file that is uploaded; -vv, -vvv: more"),
	FLAG("quiet", OWN(quiet),
		"print only errors and warnings, and a last line if there were any; for cron",
		.letter = 'q', .brief = "print only errors and warnings; for cron"),
	FLAG("manifest", RUN(manifest),
		"at the end, store a list of the files that are in S3 below PREFIX/_s3once/runs/"),
	VALUE("sign", STRING, RUN(sign_key_file), "KEYFILE",
		"store a manifest, signed with the private Ed25519 key of this PEM file"),
	VALUE("log-file", STRING, RUN(log_file), "FILE",
		"append the output to FILE, with times, instead of printing it; with --json, the "
		"events"),
	VALUE("metrics", STRING, OWN(metrics), "FILE",
		"write the result of the run to FILE, for Prometheus's textfile collector, or send it "
		"by OTLP/HTTP to a URL such as http://127.0.0.1:4318/v1/metrics",
		.is_secret = true),
	VALUE("ping-url", STRING, OWN(ping_url), "URL",
		"request URL/start when the run begins, and send the summary to URL or URL/fail "
		"when it ends, as healthchecks.io expects it",
		.is_secret = true),
	VALUE("on-success", STRING, OWN(on_success), "COMMAND",
		"run sh -c COMMAND after exit status 0, for up to a minute, with the summary on its "
		"standard input",
		.is_secret = true),
	VALUE("on-failure", STRING, OWN(on_failure), "COMMAND",
		"the same after exit status 1, 2, 3 or 5", .is_secret = true),
	{NULL},
};

static const struct option watch_options[] = {
	VALUE("full-scan", DURATION, OWN(whole_scan_ms), "DUR",
		"scan all files every DUR, in addition to the events of the kernel",
		.standard = "10m", .min = 1000, .max = 24 * 3600 * 1000),
	VALUE("metrics-listen", STRING, OWN(metrics_listen), "ADDRESS",
		"serve metrics to Prometheus at http://ADDRESS/metrics, such as 127.0.0.1:14469; a "
		"port alone means 127.0.0.1"),
	VALUE("drain", DURATION, OWN(drain_ms), "DUR",
		"after SIGTERM, upload waiting files as with --final, for up to DUR and the "
		"--grace after it",
		.standard = "30s", .max = 24 * 3600 * 1000),
	{NULL},
};

/* Pairs of options alone. What one option demands of another is in check_demands()
 * (push_options.c), and what the library refuses is in upload/run_options.c. */
const struct option_conflict push_conflicts[] = {
	{"quiet", "verbose", NULL},
	{"dry-run", "reupload",
		"what --reupload finds is uploaded at once; s3once verify shows which objects are gone"},
	{"as", "key", "--as names the key of exactly one file"},
	{"delete-after", "follow", "what is reached through symbolic links is not removed"},
	{"move-to", "follow", "what is reached through symbolic links is not moved"},
	{"as", "files-from", "--as names the key of exactly one file"},
	{"as", "exclude", "--as names the key of exactly one file"},
	{"as", "include", "--as names the key of exactly one file"},
	{"as", "exclude-from", "--as names the key of exactly one file"},
	{NULL},
};

#define ACCESS offsetof(struct push_options, access)
/* The groups that push shares with the other commands that upload. The output comes after them. */
#define GROUPS                                                                                     \
	{"Files", what_options, 0, true}, {"Logs", log_options, 0, true},                          \
		{"Run", how_options, 0, true}, {"Removal", removal_options, 0, true},              \
		{"Objects", object_options, 0, true},                                              \
		{"Marks", access_marks_options, ACCESS, true}, {NULL, lease_options, 0, true},     \
		{"Services", access_s3_options, ACCESS, true},                                     \
		{NULL, access_options, ACCESS, true},                                              \
		{NULL, access_timeout_options, ACCESS, true},                                      \
		{NULL, access_checksum_options, ACCESS, true},                                     \
		{"Effort", effort_options, 0, true},                                               \
	{                                                                                          \
		"Limits", limit_options, 0, true                                                   \
	}

const struct option_group push_groups[PUSH_GROUPS] = {
	GROUPS,
	{"Output", output_options, 0, true},
	{NULL},
};

const struct option_group job_groups[] = {
	GROUPS,
	{"Watching", watch_options, 0, true},
	{"Output", output_options, 0, true},
	{NULL},
};

static const struct option_group own_groups[] = {
	GROUPS,
	{"Pipes", pipe_options},
	{"Output", output_options, 0, true},
	{NULL},
};

const struct command push_own_command = {
	.name = "push",
	.has_first_screen = true,
	.operands = "SOURCE... s3://BUCKET[/PREFIX]\n"
		    "       s3once push [OPTIONS] - s3://BUCKET/KEY\n"
		    "       s3once push [OPTIONS] s3://BUCKET/KEY -- COMMAND...",
	.about = "Uploads each file exactly once. The files of a SOURCE directory go below\n"
		 "PREFIX, and a SOURCE file becomes PREFIX/NAME. A file that was uploaded before\n"
		 "is skipped. DUR is written as in 30s, 5min or 1h30m; SIZE as in 64M or 64MiB.\n",
	.groups = own_groups,
	.conflicts = push_conflicts,
	.elsewhere = other_tools_options,
	.examples =
		"  s3once push /srv/photos s3://my-bucket/photos\n"
		"  s3once push --exclude '*.tmp' --min-age 1m logs s3://my-bucket/logs\n"
		"  s3once push --marks dynamodb:s3once /data s3://my-bucket\n"
		"  s3once push s3://my-bucket/db.dump -- pg_dump db\n\n"
		"Exit codes: 0 all files are in S3, verified; 1 some are not; 2 usage; 3 setup\n"
		"(credentials, bucket, table, service); 4 other uploaders hold files; 5 the\n"
		"lease was lost; 6 a limit ended the run; 129, 130, 143 stopped by a signal.\n",
};

const struct command job_command = {
	.name = "push",
	.groups = job_groups,
	.conflicts = push_conflicts,
	.elsewhere = other_tools_options,
};
