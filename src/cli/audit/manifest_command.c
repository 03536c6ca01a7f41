/* `s3once manifest`: lists the manifests of runs, and prints their entries in formats that other
 * programs read. It needs no marks. src/audit/manifest_fetch.c finds and fetches manifests, and
 * src/manifest makes a line of an entry. This file goes through the entries, and counts those that
 * could not be printed. */
#include "base/clock.h"
#include "cli/audit/audit_command.h"
#include "manifest/manifest_entry.h"
#include "manifest/manifest_file.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

struct printing {
	const char *since, *public_key;
	int format, uploaded;
	/* Used while the command runs: */
	struct command_frame *frame;
	struct audit_bucket bucket;
	struct url_prefix base;
	struct text line;
	uint64_t found;   /* manifests */
	uint64_t damaged; /* manifests that are damaged or not signed by the key */
	uint64_t lacking; /* entries that lack a value needed by the format */
	/* The last manifest could not be printed since it is damaged or not signed by the key. */
	bool is_wrong;
};

#define FIELD(field) offsetof(struct printing, field)

static const struct option manifest_what_options[] = {
	VALUE("since", STRING, FIELD(since), "DATE",
		"the manifests of runs that began on DATE (2026-11-22, UTC) or later, instead of one RUN"),
	FLAG("uploaded", FIELD(uploaded), "only objects that the runs themselves have uploaded"),
	VALUE("format", CHOICE, FIELD(format), "FORMAT",
		"json, sha256sum, sha1sum, md5sum, s3-batch or s3-batch-versions",
		.standard = "json", .choices = manifest_format_names),
	VALUE("public-key", STRING, FIELD(public_key), "FILE",
		"check the signature of each manifest first, by the Ed25519 key of this PEM file"),
	{NULL},
};

static const struct command manifest_command = {
	.name = "manifest",
	.operands = "[RUN] s3://BUCKET[/PREFIX] | [RUN] --job JOB",
	.takes = {1, 2},
	.about = "Prints the manifests of runs (push --manifest), for people and other programs.\n"
		 "RUN is a run's name or the key of its manifest. Without RUN and --since, prints\n"
		 "the keys of all manifests below PREFIX, which is the prefix of the runs.\n",
	.groups = (const struct option_group[]){{"What is printed", manifest_what_options}, {NULL}},
	.shares = SHARES_JOB | SHARES_S3 | SHARES_SERVICES | SHARES_KEY_FILE,
	.examples =
		"  s3once manifest s3://my-bucket/photos\n"
		"  s3once manifest --since 2026-11-22 --format s3-batch s3://my-bucket/photos\n\n"
		"Exit codes: 0 all is printed; 1 an entry lacks what the format needs, or a\n"
		"manifest is damaged; 2 usage; 3 it cannot be read.\n",
};

/* Prints an entry in the chosen format. If entries cannot be printed, only the first one is
 * reported, and the others are counted. */
static void print_entry(struct printing *printing, const struct manifest_reader *reader,
	const struct manifest_entry *entry)
{
	const enum manifest_format format = (enum manifest_format)printing->format;
	struct problem problem;
	if (printing->uploaded && strcmp(entry->event, "uploaded") != 0)
		return;
	if (format == MANIFEST_JSON) {
		output_result(&printing->frame->output, manifest_reader_line(reader));
		return;
	}
	text_reset(&printing->line);
	if (strcmp(entry->bucket, printing->bucket.manifests.bucket) != 0) {
		problem_set(&problem, "it is an object of bucket %s", quote(entry->bucket).text);
	} else if (manifest_add_list_line(
			   format, entry, printing->base.text, &printing->line, &problem)) {
		output_result(&printing->frame->output, text_string(&printing->line));
		return;
	}
	if (!printing->lacking++)
		output_message(&printing->frame->output, "error: %s: %s", quote(entry->key).text,
			problem.text);
}

/* Fetches the manifest that has this key in the bucket, and prints its entries. If it is damaged,
 * or not signed by bucket.public_key, printing->is_wrong is set and the outcome is not OK. Entries
 * up to the damage are printed. */
static enum outcome print_manifest(void *arg, const char *key, struct problem *ret_problem)
{
	struct printing *printing = arg;
	struct manifest_reader *reader = NULL;
	struct manifest_entry entry;
	int fd = -1;
	printing->found++;
	printing->is_wrong = false;
	const enum outcome o = manifest_open(&printing->bucket.manifests, key,
		printing->bucket.public_key, &fd, &printing->is_wrong, ret_problem);
	if (o != OUTCOME_OK)
		return o;
	int r = manifest_reader_new(fd, &reader, ret_problem);
	while (r >= 0 && (r = manifest_reader_next(reader, &entry, ret_problem)) > 0)
		print_entry(printing, reader, &entry);
	manifest_reader_free(reader);
	close(fd);
	if (r >= 0) /* 0: the end was reached */
		return OUTCOME_OK;
	problem_prefix(ret_problem, "the manifest %s", quote(key).text);
	printing->is_wrong = r == -EBADMSG;
	return OUTCOME_LOCAL;
}

/* Prints one of several manifests. A manifest that is damaged, or not signed by
 * bucket.public_key, is reported and counted, and OK is returned, so that the others are printed.
 */
static enum outcome print_one_of_many(void *arg, const char *key, struct problem *ret_problem)
{
	struct printing *printing = arg;
	char sentence[PROBLEM_SENTENCE_MAX];
	const enum outcome o = print_manifest(arg, key, ret_problem);
	if (o == OUTCOME_OK || !printing->is_wrong)
		return o;
	problem_format(ret_problem, sentence, sizeof sentence);
	output_message(&printing->frame->output, "error: manifest: %s", sentence);
	printing->damaged++;
	return OUTCOME_OK;
}

/* Prints the key of a manifest, and counts the manifest. */
static enum outcome print_key(void *arg, const char *key, struct problem *ret_problem)
{
	struct printing *printing = arg;
	printing->found++;
	output_result(&printing->frame->output, key);
	return OUTCOME_OK;
}

/* Prints the manifest of one RUN, or with --since all manifests since that day. With neither,
 * prints the keys of all manifests. Returns the exit code. */
static int print_all(struct printing *printing, const char *run)
{
	const struct manifest_place *place = &printing->bucket.manifests;
	struct output *output = &printing->frame->output;
	struct problem *problem = &printing->frame->problem;
	struct text key = TEXT(2048);
	enum outcome o;
	if (run) {
		o = manifest_find(place, run, &key, problem);
		if (o == OUTCOME_OK)
			o = print_manifest(printing, text_string(&key), problem);
		text_clear(&key);
	} else {
		o = manifest_list(place, printing->since,
			printing->since ? print_one_of_many : print_key, printing, problem);
	}
	if (o == OUTCOME_OK && !printing->found)
		output_message(output,
			"note: no such manifest is below s3://%s/%s: give the prefix of the runs, "
			"which store manifests if push has --manifest",
			place->bucket, quote(place->prefix).text);
	/* print_entry() has reported the first one. */
	if (printing->lacking > 1)
		output_message(output, "error: %llu more objects are left out for such a reason",
			(unsigned long long)printing->lacking - 1);
	if (o != OUTCOME_OK)
		return printing->is_wrong ? S3ONCE_EXIT_FILES : S3ONCE_EXIT_SETUP;
	*problem = (struct problem){0}; /* the problem of a manifest that was reported already */
	return printing->lacking || printing->damaged ? S3ONCE_EXIT_FILES : S3ONCE_EXIT_OK;
}

/* Returns whether this is a day of the calendar, as it is written in the keys of manifests. A day
 * such as 2026-02-30 is parsed as another day, and so formatted differently. */
static bool is_date(const char *s)
{
	char midnight[32], again[21];
	/* With the ten characters of a date, it has 20. */
	if (snprintf(midnight, sizeof midnight, "%sT00:00:00Z", s) != 20)
		return false;
	const int64_t time_s = clock_parse_iso(midnight);
	if (time_s < 0)
		return false;
	clock_format_iso(time_s, again);
	return strcmp(again, midnight) == 0;
}

/* Checks the combination of options and operands. False with a sentence. */
static bool check_usage(const struct printing *printing)
{
	const bool has_run = printing->frame->n_operands == 2; /* RUN and the URL */
	const bool lists_keys = !has_run && !printing->since;
	const bool needs_entries = printing->format || printing->uploaded || printing->public_key;
	struct problem *problem = &printing->frame->problem;
	if (has_run && printing->since)
		problem_set(problem, "--since stands for several runs: leave RUN out");
	else if (printing->since && !is_date(printing->since))
		problem_set(problem, "--since %s is not a date, such as 2026-11-22",
			quote(printing->since).text);
	else if (lists_keys && needs_entries)
		problem_set(problem, "name one RUN, or give --since DATE");
	else
		return true;
	return false;
}

int manifest_main(int argc, char **argv)
{
	struct printing printing = {.line = TEXT(MANIFEST_LINE_MAX)};
	struct command_frame frame = {.command = &manifest_command, .values = &printing};
	struct s3_url url;
	printing.frame = &frame;
	if (!frame_begin(&frame, argc, argv) || !check_usage(&printing) ||
		url_parse(frame.operands[frame.n_operands - 1], &url, &frame.problem) < 0)
		return frame_end(&frame);
	printing.base = url_prefix(url.key);
	if (audit_open_manifests(&frame, &url, printing.public_key, &printing.bucket))
		frame.code = print_all(&printing, frame.n_operands == 2 ? frame.operands[0] : NULL);
	EVP_PKEY_free(printing.bucket.public_key);
	text_clear(&printing.line);
	return frame_end(&frame);
}
