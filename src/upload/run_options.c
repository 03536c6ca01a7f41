/* The options of a run: their defaults, limits and contradictions. s3once_push_new() calls
 * run_options_complete() before anything is opened, and refuses the run with its sentence. Pure. */
#include "upload/run_options.h"
#include "base/checksum.h"
#include "base/clock.h"
#include "base/reserved.h"
#include "store/store.h"
#include "upload/body/multipart_plan.h"
#include "upload/run.h"
#include <errno.h>
#include <string.h>
#include <strings.h>

static void default_to(uint64_t *value, uint64_t otherwise)
{
	if (!*value)
		*value = otherwise;
}

/* A longer time than any run takes, such as UINT64_MAX, would overflow in ns. */
static void set_time(uint64_t *ms, uint64_t otherwise)
{
	default_to(ms, otherwise);
	*ms = clock_span_ms(*ms);
}

/* Whether the rates are in the order of their times of day, and none is too low to be kept. */
static bool rates_make_sense(const struct s3once_options *o)
{
	for (size_t i = 0; i < o->n_rates; i++) {
		const struct s3once_rate *rate = &o->rates[i];
		const bool is_in_order = !i || rate->minute > rate[-1].minute;
		/* 0: there is no limit from this time on. */
		const bool is_too_low =
			rate->bytes_per_second && rate->bytes_per_second < S3ONCE_RATE_MIN;
		if (rate->minute >= 24 * 60 || !is_in_order || is_too_low)
			return false;
	}
	return true;
}

/* Checks --compress against the settings of objects and the memory. Returns 0, or -EINVAL with a
 * sentence. */
static int check_compress(const struct s3once_options *o, struct problem *problem)
{
	struct encoding encoding;
	if (!o->compress)
		return 0;
	if (encoding_parse(o->compress, &encoding, problem)) {
		problem_prefix(problem, "--compress");
		return -EINVAL;
	}
	for (size_t i = 0; i < o->n_settings; i++) {
		const char *value =
			s3_headers_content_encoding(o->settings[i].name, o->settings[i].value);
		const char *name = codecs[encoding.codec].name;
		if (value && *value && strcmp(value, name) != 0)
			return problem_error(problem, -EINVAL,
				"--header Content-Encoding is %s with --compress %s, or left out "
				"for suffix %s",
				name, o->compress, codecs[encoding.codec].suffix);
	}
	const uint64_t min_bytes = encoders_min_memory(&encoding);
	if (ENCODERS_MEMORY_TIMES * o->memory_bytes >= min_bytes)
		return 0;
	/* The number of MiB is rounded up. */
	return problem_error(problem, -EINVAL, "--compress %s needs at least --memory %lluMiB",
		o->compress, (unsigned long long)(min_bytes / ENCODERS_MEMORY_TIMES >> 20) + 1);
}

/* Returns the contradiction between a pipe and the other options, or NULL. The input of a pipe has
 * no name, size or time before all of it was read, and there is nothing to remove or to compare. */
static const char *contradiction_of_pipe(const struct s3once_options *o)
{
	const bool is_piped = o->read != NULL;
	if (!is_piped && o->spool)
		return "--spool is about what comes through a pipe: give a COMMAND, or - as the "
		       "SOURCE";
	if (!is_piped)
		return NULL;
	if (!o->as || o->n_sources != 1)
		return "what comes through a pipe has no name: give its key";
	if (o->producer_id && strlen(o->producer_id) > PRODUCER_ID_MAX)
		return "the id of a producer has at most 64 bytes: shorten producer_id";
	const bool chooses_files = o->rotated || o->files_from || o->follow || o->min_age_ms ||
				   o->max_bytes || o->min_bytes || o->final || o->n_rules;
	const bool makes_keys = o->key_template != NULL;
	const bool handles_files = o->removes || o->compare_content || o->if_changed;
	if (chooses_files || makes_keys || handles_files)
		return "what comes through a pipe is no file: the options that choose files or make "
		       "keys, and --if-changed, --compare-content, --delete-after and --move-to, do not go "
		       "with it";
	return NULL;
}

/* Returns the reason why these options, with their defaults, cannot be used together, or NULL. */
static const char *contradiction_of_options(const struct s3once_options *o)
{
	if (reserved_is_set(o->reserved))
		return RESERVED_IS_SET;
	if (!o->n_sources || !o->sources)
		return "nothing to do: no source was given";
	if (!o->bucket || !*o->bucket)
		return "no bucket was given";
	if (contradiction_of_pipe(o))
		return contradiction_of_pipe(o);
	if (o->as && o->rotated)
		return "--as and --rotated cannot be used together: --as names the key of one file";
	if (o->live && !o->rotated)
		return "--live is about logs that rotate, so it needs --rotated";
	if (o->live && o->removes)
		return "a log that is uploaded in pieces is not removed: --live does not go with "
		       "--delete-after and --move-to";
	if (o->live && (o->max_bytes || o->min_bytes))
		return "the size of a log that grows changes: --live does not go with --min-size and "
		       "--max-size";
	if (o->as && o->key_template)
		return "--as and --key cannot be used together: --as names the key of one file";
	if (o->folders && (o->key_template || o->rotated || o->files_from || o->follow))
		return "what is to be looked at is restricted to folders only where keys are paths";
	if (o->time_zone && !o->key_template && !o->n_rates)
		return "--time-zone is for {mtime:…} in --key and for times of --bwlimit: give one";
	if (!rates_make_sense(o))
		return "limits of bandwidth are in order of their times of day, and at least 8 KiB/s";
	if (o->max_bytes && o->min_bytes > o->max_bytes)
		return "--min-size is more than --max-size, so that no file would be left";
	if (o->concurrency > CONCURRENCY_MAX)
		return "at most 1,024 requests at once";
	if (o->part_bytes < PART_BYTES_MIN || o->part_bytes > PART_BYTES_MAX)
		return "a part has from 5 MiB to 5 GiB";
	if (o->lease_ms < 1000 || o->lease_ms > 24ULL * 3600 * 1000)
		return "a lease lasts from one second to one day";
	if (o->checksum && strcasecmp(o->checksum, "auto") != 0 &&
		checksum_named(o->checksum, strlen(o->checksum)) == CHECKSUMS)
		return "the checksum is none of crc32c, crc32, crc64nvme, sha1, sha256, md5 and auto";
	if (o->move_to && !o->removes)
		return "a directory to move files to is named, but none are to be removed";
	if (o->removes && o->follow)
		return "what symbolic links lead to is not removed: leave out --follow";
	if (o->bucket_is == S3ONCE_BUCKET_SAME && !o->bucket_id_object)
		return "--bucket same goes with --bucket-id-object, by which the bucket is known from "
		       "then on";
	return NULL;
}

int run_options_complete(
	const struct s3once_options *given, struct s3once_options *ret, struct problem *ret_problem)
{
	*ret = *given;
	ret->prefix = given->prefix ? given->prefix : "";
	ret->marks = given->marks ? given->marks : "local";
	ret->concurrency = given->concurrency ? given->concurrency : CONCURRENCY_MAX;
	default_to(&ret->memory_bytes, 24ULL << 20);
	default_to(&ret->part_bytes, PART_BYTES_DEFAULT);
	set_time(&ret->request_timeout_ms, 60 * 1000);
	set_time(&ret->grace_ms, 10 * 1000);
	set_time(&ret->give_up_after_ms, 5 * 60 * 1000);
	set_time(&ret->max_duration_ms, 0);
	default_to(&ret->lease_ms, 30 * 1000);
	const char *sentence = contradiction_of_options(ret);
	if (sentence)
		return problem_error(ret_problem, -EINVAL, "%s", sentence);
	if (check_compress(ret, ret_problem))
		return -EINVAL;
	ret->manifest |= ret->sign_key_file != NULL;
	/* The host is about to end: young files are uploaded now, and nothing is removed. */
	if (ret->final) {
		ret->min_age_ms = 0;
		ret->removes = 0;
		ret->move_to = NULL;
	}
	struct marks_place place = {0};
	/* Only a wrong name of the marks (-EINVAL) is an error here. "local" is always a name, and
	 * any other error shows again when the marks are opened. */
	const int error = strcmp(ret->marks, "local") != 0
				  ? marks_place_parse(ret->marks, &place, ret_problem)
				  : 0;
	marks_place_clear(&place);
	return error == -EINVAL ? error : 0;
}
