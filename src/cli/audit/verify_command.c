/* `s3once verify`: checks whether the bucket has the objects of the marks, or of a run's manifest.
 * It changes nothing.
 *
 * This file reads the options, opens the marks and the bucket, and makes the exit code.
 * src/audit/verify.c compares, and calls on_found() for each finding. A difference is printed as a
 * line like those of `rclone check --combined`, or as an event. */
#include "audit/verify.h"
#include "base/clock.h"
#include "cli/audit/audit_command.h"
#include "cli/human_figures.h"
#include "cli/options/values.h"
#include "cli/signals.h"
#include <string.h>
#include <unistd.h>

#define WORKERS          8     /* if --concurrency is not given */
#define GIVE_UP_AFTER_MS 60000 /* if --give-up-after is not given */

struct verification {
	const char *subset, *manifest, *public_key;
	int head, download;
	unsigned verbose;
	uint64_t max_duration_ms, keep_marks_ms;
	/* Used while the command runs. Options set some members of `verify`. */
	struct command_frame *frame;
	struct s3_url url;
	struct url_prefix prefix;
	struct key_template *template; /* of --job, owned; NULL: it has none */
	struct url_prefix job_prefix;  /* of the target of --job */
	const char *named;             /* the name in the output: the prefix, or the only key */
	bool draws;                    /* progress is drawn on a terminal */
	uint64_t until_ns; /* the clock_boot_ns() at which --max-duration has passed; 0: never */
	struct verify verify;
	struct verify_end end;
};

#define FIELD(field) offsetof(struct verification, field)

static const struct option what_options[] = {
	FLAG("head", FIELD(head),
		"also send a HEAD for each object, and compare its checksum if S3 returns one"),
	FLAG("download", FIELD(download), "also read each object, and compare its content"),
	VALUE("manifest", STRING, FIELD(manifest), "RUN",
		"check the objects in the manifest of this run, by HEAD or --download, instead of the marks",
		.only_once = true),
	VALUE("public-key", STRING, FIELD(public_key), "FILE",
		"with --manifest: require its signature by this Ed25519 key (PEM)"),
	VALUE("subset", STRING, FIELD(subset), "N/T|P%|SIZE",
		"with --head or --download: check only the Nth of T parts of the keys, P percent, or objects of SIZE (10G) bytes in total; the same keys each time"),
	VALUE("after", STRING, FIELD(verify.range.after), "KEY",
		"begin after KEY, at which an earlier run ended"),
	VALUE("max-duration", DURATION, FIELD(max_duration_ms), "DUR",
		"end after DUR, and print the KEY for --after", .min = 1,
		.max = 366ULL * 24 * 3600 * 1000),
	VALUE("concurrency", NUMBER, FIELD(verify.workers), "N", "check at most N objects at once",
		.min = 1, .max = VERIFY_WORKERS_MAX, .standard = "8"),
	VALUE("give-up-after", DURATION, FIELD(verify.place.limits.patience_ms), "DUR",
		"wait for up to DUR for a service that throttles or cannot be reached",
		.standard = "1m", .max = 7ULL * 24 * 3600 * 1000),
	VALUE("keep-marks", DURATION, FIELD(keep_marks_ms), "AGE",
		"the AGE given to gc: older objects may lack a mark", .min = 1000),
	VALUE("bucket-id-object", STRING, FIELD(verify.id_object), "KEY",
		"the object that identifies the bucket has no mark"),
	{NULL},
};

static const struct option output_options[] = {
	VALUE("verbose", COUNT, FIELD(verbose), NULL, "also list objects without differences",
		.letter = 'v'),
	{NULL},
};

static const struct option_conflict conflicts[] = {
	{"head", "download", "--download does what --head does"},
	{"manifest", "marks", NULL}, /* S3ONCE_MARKS may be set, and is not used with --manifest */
	{"manifest", "after", "the lines of a manifest are in no order"},
	{"manifest", "bucket-id-object", "only what a manifest lists is compared"},
	{"manifest", "keep-marks", "a manifest is compared without marks"}, {NULL}};

static const struct option_elsewhere elsewhere[] = {
	{"local", "s3once push --dry-run --compare-content DIR s3://BUCKET/PREFIX, with "
		  "the options of the upload, reads the files of this host and compares "
		  "them with the marks"},
	{"repair", "s3once push --reupload --compare-content DIR s3://BUCKET/PREFIX, with "
		   "the options of the upload, sends again what is missing"},
	{NULL}};

static const struct command verify_command = {
	.name = "verify",
	.operands = "s3://BUCKET[/KEY-OR-PREFIX] | --job JOB",
	.takes = {1, 1},
	.about = "Compares the bucket with the marks: lists the bucket, and checks whether each\n"
		 "file that is done has its object, with its size and etag. Prints a line for\n"
		 "each difference, with - for a missing object, * for one that differs, + for one\n"
		 "without a mark, and ! for one that could not be checked. Changes nothing.\n",
	.groups = (const struct option_group[]){{"What is compared", what_options}, {NULL}},
	.shares = SHARES_JOB | SHARES_MARKS | SHARES_S3 | SHARES_SERVICES | SHARES_KEY_FILE |
		  SHARES_JSON,
	.output_options = output_options,
	.conflicts = conflicts,
	.elsewhere = elsewhere,
	.examples = "  s3once verify s3://my-bucket/photos\n"
		    "  s3once verify --download --subset 1/7 --max-duration 4h s3://my-bucket\n"
		    "  s3once verify --manifest RUN --public-key run.pem s3://my-bucket/photos\n\n"
		    "Exit codes: 0 no differences; 1 there are differences; 2 usage; 3 the check\n"
		    "could not be made; 6 --max-duration ended it, without differences so far.\n",
};

/* Reads the value of --subset: a SIZE, P% or N/T. False with a sentence. */
static bool read_subset(const char *given, struct verify_subset *ret, struct problem *ret_problem)
{
	char digits[24];
	uint64_t size = 0, number = 0, parts = 0;
	const size_t n = strcspn(given, "/%"); /* length of the number, or of a SIZE */
	const char *rest = given + n; /* the rest after the number: "%" or "/T"; "" for a SIZE */
	snprintf(digits, sizeof digits, "%.*s", (int)n, given);
	const bool is_number = n < sizeof digits && value_number(digits, &number, NULL) == 0;
	const bool is_size = !*rest && value_size(given, &size, NULL) == 0 && size;
	const bool is_percentage =
		is_number && strcmp(rest, "%") == 0 && number >= 1 && number <= 100;
	const bool is_part = is_number && *rest == '/' &&
			     value_number(rest + 1, &parts, NULL) == 0 && number >= 1 &&
			     number <= parts && parts <= 1000000;
	if (is_size) {
		*ret = (struct verify_subset){.bytes = size};
	} else if (is_percentage) {
		*ret = (struct verify_subset){.to = number, .of = 100};
	} else if (is_part) {
		*ret = (struct verify_subset){.from = number - 1, .to = number, .of = parts};
	} else {
		problem_set(ret_problem,
			"--subset: '%s' is neither a part (1/7), nor a percentage (5%%), nor a size (10G)",
			quote(given).text);
		return false;
	}
	return true;
}

/* Reads the operand and checks the options, before any service is opened. False with a sentence. */
static bool read_operand(struct verification *v)
{
	struct problem *problem = &v->frame->problem;
	if (url_parse(v->frame->operands[0], &v->url, problem) < 0)
		return false;
	v->prefix = url_prefix(v->url.key);
	const char *prefix = v->prefix.text, *after = v->verify.range.after;
	const bool looks_at_objects = v->head || v->download || v->manifest;
	if (v->public_key && !v->manifest)
		problem_set(problem, "--public-key checks a manifest: give --manifest, too");
	else if (v->subset && !looks_at_objects)
		problem_set(problem, "--subset goes with --head or --download");
	else if (after && strncmp(after, prefix, strlen(prefix)) != 0)
		problem_set(problem, "--after '%s' is not a key below %s", quote(after).text,
			quote(v->frame->operands[0]).text);
	else
		return !v->subset || read_subset(v->subset, &v->verify.subset, problem);
	return false;
}

/* Reads the template of the keys of --job, if it has fields of the host and the marks are in a
 * file. Then objects of other hosts have no mark, and are no difference. A table has the marks of
 * all hosts. False with a sentence. */
static bool read_template(struct verification *v)
{
	const struct push_options *job = &v->frame->job.job.options; /* zeros without --job */
	const struct key_template_options options = {
		.text = job->run.key_template, .names_families = job->run.rotated != 0};
	struct s3_url target;
	if (!options.text || v->frame->place.is_dynamodb)
		return true;
	if (url_parse(v->frame->job.job.target, &target, &v->frame->problem) < 0 ||
		key_template_new(&options, &v->template, &v->frame->problem))
		return false;
	v->job_prefix = url_prefix(target.key);
	const bool is_bucket = strcmp(target.bucket, v->url.bucket) == 0;
	if (is_bucket && key_template_names_host(v->template))
		v->verify.template = v->template;
	v->verify.job_prefix = v->job_prefix.text;
	return true;
}

/* Returns whether a signal or --max-duration ends the requests. */
static bool is_stopped(void *arg)
{
	const struct verification *v = arg;
	return signals_came() || (v->until_ns && clock_boot_ns() >= v->until_ns);
}

/* Each finding as the output shows it. */
static const struct {
	char sign;        /* before the key, as `rclone check --combined` has it */
	const char *name; /* in JSON */
	/* The words behind a number in the last line for people, such as "3 differ (*)"; NULL: that
	 * line does not count the finding. */
	const char *words;
	const char *words_of_one; /* in place of `words` if the number is 1; NULL: `words` fit */
} results[FINDINGS] = {
	[FINDING_SAME] = {'=', "same"},
	[FINDING_MISSING] = {'-', "missing", "missing (-)"},
	[FINDING_DIFFERS] = {'*', "differs", "differ (*)", "differs (*)"},
	[FINDING_UNKNOWN] = {'+', "unknown", "unknown to the marks (+)"},
	[FINDING_ERROR] = {'!', "error", "could not be compared (!)"},
	[FINDING_UNSENT] = {'!', "unsent", "not sent"},
	[FINDING_AGED] = {' ', "aged", "without a mark are older than --keep-marks"},
	[FINDING_ELSEWHERE] = {' ', "of_other_hosts", "of other hosts"},
	[FINDING_UNFINISHED] = {' ', "unfinished"},
};

/* Prints a finding. */
static void on_found(
	void *arg, enum finding finding, const char *key, const struct problem *problem)
{
	const struct verification *v = arg;
	char sentence[PROBLEM_SENTENCE_MAX];
	if (finding == FINDING_SAME && !v->verbose)
		return;
	frame_print(v->frame,
		json_set_problem(
			json_set(json_event("object"), BYTES("result", results[finding].name),
				BYTES("bucket", v->url.bucket), BYTES("key", key)),
			problem),
		"%c %s", results[finding].sign, escaped(key).text);
	if (problem && !v->frame->json) {
		problem_format(problem, sentence, sizeof sentence);
		output_message(&v->frame->output, "%s%s: %s",
			finding == FINDING_ERROR ? "error: " : "", escaped(key).text, sentence);
	}
}

/* Prints a property of the server that limits the comparison. */
static void on_warning(void *arg, const struct problem *problem)
{
	const struct verification *v = arg;
	struct output *output = &v->frame->output;
	if (v->frame->json)
		json_print(output, json_set_problem(json_event("warning"), problem));
	else
		output_message(output, "warning: %s", problem->text);
}

/* Adds ", N of these". */
static void add_count(struct text *t, uint64_t n, const char *what)
{
	text_addf(t, ", %s %s", human_count(n).text, what);
}

/* Draws the progress of the comparison, on one line of the terminal. */
static void on_progress(void *arg, const struct verify_counts *counts)
{
	const struct verification *v = arg;
	struct output *output = &v->frame->output;
	struct text t = TEXT(1000);
	if (!v->draws)
		return;
	text_addf(&t, "%s listed", human_things(counts->listed, "object").text);
	add_count(&t, counts->of[FINDING_SAME],
		v->verify.place.store ? "as their marks say" : "as the manifest says");
	add_count(&t, counts->looked_at, "looked at");
	if (counts->bytes_read)
		text_addf(&t, ", %s read", human_bytes(counts->bytes_read).text);
	const unsigned columns = terminal_size(STDERR_FILENO).columns;
	if (t.len > columns)
		t.data[columns] = '\0'; /* the line must not wrap */
	output_draw(output, text_string(&t));
	text_clear(&t);
}

/* Prints where an incomplete comparison goes on. A key that would need quoting in a shell is
 * printed by --json only. */
static void print_rest(struct output *output, const char *after)
{
	const bool is_word = !strchr(after, '\'') && strcmp(escaped(after).text, after) == 0;
	if (!*after)
		output_message(output, "not everything was checked");
	else
		output_message(output,
			"not everything was checked; to go on, run the same command with "
			"--after %s%s%s",
			is_word ? "'" : "and the key that --json prints", is_word ? after : "",
			is_word ? "'" : "");
}

/* Prints the result of the comparison for people. */
static void print_end_for_people(const struct verification *v)
{
	const struct verify_end *end = &v->end;
	struct output *output = &v->frame->output;
	/* In the order of enum verify_by. */
	static const char *const ways[] = {"size and etag", "checksum or etag", "content"};
	const bool of_manifest = !v->verify.place.store;
	const uint64_t *counts = end->counts.of; /* by finding */
	const uint64_t right = counts[FINDING_SAME], unfinished = counts[FINDING_UNFINISHED];
	const char *source = of_manifest  ? "the manifest says"
			     : right == 1 ? "its mark says"
					  : "their marks say";
	struct text t = TEXT(4000);
	for (int i = 0; i < FINDINGS; i++) {
		const bool has_own_words = counts[i] == 1 && results[i].words_of_one;
		if (results[i].words && counts[i])
			add_count(&t, counts[i],
				has_own_words ? results[i].words_of_one : results[i].words);
	}
	output_message(output, "s3://%s/%s: %s %s %s, by %s%s", quote(v->url.bucket).text,
		escaped(v->named).text, human_things(right, "object").text,
		right == 1 ? "is as" : "are as", source, ways[v->verify.by], text_string(&t));
	if (unfinished)
		output_message(output,
			"%s %s being uploaded, and not compared: s3once status shows by whom",
			human_things(unfinished, "file").text, unfinished == 1 ? "is" : "are");
	if (counts[FINDING_MISSING] && !of_manifest)
		output_message(output,
			"push with --reupload uploads missing objects again, if their "
			"files are still there");
	text_clear(&t);
	if (!end->is_complete)
		print_rest(output, end->after);
}

/* Prints events: the problem that has ended the comparison, if there is one, and the result. */
static void print_end_as_json(const struct verification *v, const struct problem *problem, int code)
{
	const struct verify_end *end = &v->end;
	struct output *output = &v->frame->output;
	const struct service *service = v->verify.place.s3 ? s3_service(v->verify.place.s3) : NULL;
	const struct store *store = v->verify.place.store;
	json_t *requests = json_object();
	unsigned long count;
	const char *kind;
	if (problem)
		json_print(output, json_set_problem(json_event("fatal"), problem));
	json_t *object = json_set(json_event("verify"), BYTES("bucket", v->url.bucket),
		BYTES("prefix", v->named), NUMBER("listed", end->counts.listed));
	for (int i = 0; i < FINDINGS; i++)
		if (results[i].name) /* FINDING_NOTHING has none */
			json_set(object, NUMBER(results[i].name, end->counts.of[i]));
	for (size_t i = 0; service && (kind = service_kind(service, i, &count)); i++)
		if (count)
			json_set(requests, NUMBER(kind, count));
	for (size_t i = 0; store && (kind = store->ops->kind(store, i, &count)); i++)
		if (count)
			json_set(requests, NUMBER(kind, count));
	json_print(output,
		json_set(object, NUMBER("looked_at", end->counts.looked_at),
			NUMBER("bytes_read", end->counts.bytes_read),
			BOOLEAN("complete", end->is_complete),
			BYTES("after", end->is_complete || !*end->after ? NULL : end->after),
			NODE("requests", requests), NUMBER("exit", code)));
}

/* Whether the comparison came to its end and there was nothing to compare. */
static bool found_nothing(const struct verification *v)
{
	/* Behind --after there may be nothing, and a manifest may be empty. */
	const bool may_be_empty = v->verify.range.after || v->manifest;
	/* Listed objects and findings. An object of another host would count as both. */
	uint64_t all = v->end.counts.listed - 2 * v->end.counts.of[FINDING_ELSEWHERE];
	for (int i = 0; i < FINDING_NOTHING; i++)
		all += v->end.counts.of[i];
	return v->end.is_complete && !all && !may_be_empty;
}

/* Returns the exit code of a comparison that did not fail. */
static int code_of_findings(const struct verification *v)
{
	const uint64_t *counts = v->end.counts.of; /* by finding */
	const bool has_difference = counts[FINDING_MISSING] || counts[FINDING_DIFFERS] ||
				    counts[FINDING_UNKNOWN] || counts[FINDING_ERROR] ||
				    counts[FINDING_UNSENT];
	if (has_difference || found_nothing(v))
		return S3ONCE_EXIT_FILES;
	return v->end.is_complete ? S3ONCE_EXIT_OK : S3ONCE_EXIT_LIMIT;
}

/* Prints the result of the comparison, and returns the exit code. `failure` is the exit code if the
 * comparison failed because of `why`; 0: it did not. A stop is no failure. */
static int print_end(struct verification *v, int failure, const struct problem *why)
{
	struct problem *problem = &v->frame->problem;
	const int signal = signals_restore();
	int code = failure ? failure : code_of_findings(v);
	*problem = failure ? *why : (struct problem){0};
	if (!failure && found_nothing(v))
		problem_set(problem,
			v->end.counts.of[FINDING_ELSEWHERE]
				? "there is no mark of %s or below, and all objects there are of "
				  "other hosts: check --marks and the name of this host"
				: "there is no mark of %s, and no mark or object below: check it "
				  "and --marks",
			quote(v->frame->operands[0]).text);
	if (signal && !v->end.is_complete) /* otherwise the signal came too late to matter */
		code = S3ONCE_EXIT_STOPPED + signal;
	const bool has_problem = *problem->text != '\0';
	if (v->draws)
		output_draw(&v->frame->output, ""); /* removes the progress line */
	if (v->frame->json)
		print_end_as_json(v, has_problem ? problem : NULL, code);
	else if (!has_problem || v->end.counts.listed) /* otherwise the problem is enough */
		print_end_for_people(v);
	return code;
}

/* Compares the bucket with the marks below the prefix. If the key of the URL is that of a mark or
 * of the object of a mark, only that mark is compared, as in `status`. */
static enum outcome compare_marks(
	struct verification *v, const struct audit_conns *own, struct problem *ret_problem)
{
	/* A key that is "" or ends in a '/' is the prefix itself, and names no one mark. */
	const bool may_be_mark = strcmp(v->prefix.text, v->url.key) != 0;
	if (may_be_mark) {
		const enum outcome o =
			verify_one(&v->verify, own, v->url.key, &v->end, ret_problem);
		if (o != OUTCOME_ABSENT) {
			v->named = v->url.key;
			return o;
		}
	}
	return verify_run(&v->verify, &v->end, ret_problem);
}

/* Compares the bucket with the marks, and returns the exit code. First S3 has to show that this is
 * the bucket that the marks know: in another bucket of this name, every object would be missing or
 * different. */
static int verify_marks(struct verification *v)
{
	struct verify *verify = &v->verify;
	struct audit_bucket bucket = {0};
	struct problem problem = {0};
	if (!audit_open(v->frame, v->url.bucket, &bucket))
		return S3ONCE_EXIT_SETUP;
	bucket.place.limits = verify->place.limits;
	verify->place = bucket.place;
	verify->headers = v->frame->headers;
	signals_count("s3once: stopping\n");
	enum outcome o = audit_check_bucket(&bucket.place, &bucket.place.own, &problem);
	if (o == OUTCOME_OK)
		o = compare_marks(v, &bucket.place.own, &problem);
	else if (o == OUTCOME_ABANDONED)
		/* It was stopped. verify_run() notices that at once, and sets v->end. */
		o = verify_run(verify, &v->end, &problem);
	return print_end(v, o == OUTCOME_OK ? 0 : S3ONCE_EXIT_SETUP, &problem);
}

/* Fetches the manifest, checks its signature if a key was given, and compares the bucket with it.
 * Returns the exit code. */
static int verify_by_manifest(struct verification *v)
{
	struct audit_bucket bucket = {0};
	struct problem problem = {0};
	struct text key = TEXT(2048);
	bool is_wrong = false; /* the manifest is damaged, or not signed by the key */
	int fd = -1;
	signals_count("s3once: stopping\n");
	if (!audit_open_manifests(v->frame, &v->url, v->public_key, &bucket)) {
		signals_restore();
		EVP_PKEY_free(bucket.public_key);
		return S3ONCE_EXIT_SETUP;
	}
	bucket.manifests.limits = v->verify.place.limits;
	v->verify.place.s3 = bucket.place.s3;
	v->verify.place.own = bucket.place.own;
	v->verify.headers = v->frame->headers;
	enum outcome o = manifest_find(&bucket.manifests, v->manifest, &key, &problem);
	if (o == OUTCOME_OK)
		o = manifest_open(&bucket.manifests, text_string(&key), bucket.public_key, &fd,
			&is_wrong, &problem);
	if (o == OUTCOME_OK) {
		o = verify_manifest(&v->verify, v->url.bucket, fd, &v->end, &is_wrong, &problem);
		close(fd);
		if (is_wrong)
			problem_prefix(&problem, "the manifest %s", quote(text_string(&key)).text);
	}
	/* The outcome is ABANDONED if a stop came before the first object was compared. After a
	 * stop, print_end() makes the code. */
	const bool has_failed = o != OUTCOME_OK && o != OUTCOME_ABANDONED;
	const int failure = is_wrong ? S3ONCE_EXIT_FILES : S3ONCE_EXIT_SETUP;
	const int code = print_end(v, has_failed ? failure : 0, &problem);
	text_clear(&key);
	EVP_PKEY_free(bucket.public_key);
	return code;
}

int verify_main(int argc, char **argv)
{
	struct verification v = {.verify.workers = WORKERS,
		.verify.place.limits.patience_ms = GIVE_UP_AFTER_MS,
		.verify.visitor = {.found = on_found,
			.warned = on_warning,
			.progress = on_progress,
			.arg = &v}};
	struct command_frame frame = {.command = &verify_command, .values = &v};
	v.frame = &frame;
	if (!frame_begin(&frame, argc, argv))
		return frame_end(&frame);
	/* The command line takes precedence over the file of the job. Without a job, its options
	 * are zeros. */
	if (!v.verify.id_object)
		v.verify.id_object = frame.job.job.options.run.bucket_id_object;
	if (!read_operand(&v) || (!v.manifest && !frame_choose_marks(&frame, MARKS_READ)) ||
		!read_template(&v))
		return frame_end(&frame);
	v.named = v.verify.range.prefix = v.prefix.text;
	v.draws = terminal_can_draw(STDERR_FILENO);
	if (v.max_duration_ms)
		v.until_ns = clock_boot_ns() + v.max_duration_ms * NS_PER_MS;
	v.verify.place.limits.abandon = is_stopped;
	v.verify.place.limits.abandon_arg = &v;
	v.verify.keep_marks_s = v.keep_marks_ms / 1000;
	v.verify.by = v.download             ? VERIFY_BY_DOWNLOAD
		      : v.head || v.manifest ? VERIFY_BY_HEAD
					     : VERIFY_BY_LISTING;
	frame.code = v.manifest ? verify_by_manifest(&v) : verify_marks(&v);
	key_template_free(v.template);
	return frame_end(&frame);
}
