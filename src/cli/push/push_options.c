/* Completes the options of push: checks what one option demands of another, refuses wrong values,
 * and sets what the library is told. push, proven and job.c call this once they have read the
 * options by the tables of push_option_tables.c. Some of what the library refuses by itself is
 * refused here, too, since all jobs are checked before the first of them begins. */
#include "cli/push/push_options.h"
#include "base/files.h"
#include "base/log.h"
#include "cli/other_tools.h"
#include "s3/s3_headers.h"
#include "scan/key/key.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define PRODUCER_ID_CHARS 16 /* enough that two commands do not have the same */

static int refuse(struct problem *problem, const char *sentence)
{
	return problem_error(problem, -EINVAL, "%s", sentence);
}

/* Refuses a command line without a SOURCE. An option without its value, as in `--sse DIR URL`, has
 * taken the SOURCE for it. The sentence is then about this value. Returns -EINVAL. */
static int refuse_lack_of_source(const struct push_options *o, struct problem *problem)
{
	struct s3_headers *headers = NULL;
	int error = s3_headers_new(&headers);
	for (size_t i = 0; !error && i < o->settings.n; i++)
		error = s3_headers_set(headers, o->settings.settings[i].name,
			o->settings.settings[i].value, problem);
	s3_headers_free(headers);
	struct stat st;
	if (error == -EINVAL)
		problem_prefix(problem, "no SOURCE is left");
	else if (o->taken_word && !stat(o->taken_word, &st))
		problem_set(problem,
			"no SOURCE is left: %s has taken '%s' for its value; name both before "
			"s3://BUCKET",
			o->taking_option, quote(o->taken_word).text);
	else
		problem_set(problem, "nothing to upload: name a SOURCE before s3://BUCKET");
	return -EINVAL;
}

/* Sets o->producer_id to a hash of the words of the command, by which a later run notices that its
 * key has the output of another command. */
static void identify_command(struct push_options *o, char *const *command)
{
	struct sha256 sha256;
	sha256_begin(&sha256);
	for (; *command; command++)
		sha256_add(&sha256, *command, strlen(*command) + 1); /* with the NUL */
	sha256_hex(&sha256, o->producer_id);
	o->producer_id[PRODUCER_ID_CHARS] = '\0';
	o->run.producer_id = o->producer_id;
}

/* Makes the run read the pipe. Its input has no name, so the URL has the whole key. Returns 0, or
 * -EINVAL with a sentence. */
static int use_pipe(struct push_options *o, struct problem *problem)
{
	const char *key = o->url.key;
	if (o->run.as)
		return refuse(problem,
			"a pipe has its key in the URL: write s3://BUCKET/KEY without --as");
	if (!*key || key[strlen(key) - 1] == '/')
		return refuse(problem,
			"the input has no name of its own: end the URL with the name of the "
			"object, such as s3://my-backups/db/2026-07-01.dump");
	o->run.read = pipe_input_read;
	o->run.read_arg = o->pipe;
	o->run.as = key;
	o->run.prefix = "";
	return 0;
}

/* Reads the URL, and refuses a word that is none. Returns 0, or -EINVAL with a sentence. */
static int read_target(
	struct push_options *o, const char *url, const char *first, struct problem *problem)
{
	if (url_parse(url, &o->url, problem) == 0)
		return url_refuse_fields(o->url.key, problem);
	/* "s3://BUCKET/KEY WORD": the user wants a download, as other tools write it, or has left
	 * out the -- before COMMAND. The sentence answers both. */
	if (url != first && !url_is_s3(url) && url_is_s3(first))
		return refuse(problem, NO_DOWNLOADS "; " COMMAND_BEHIND_DASHES);
	if (!url_is_s3(url))
		problem_prefix(problem, "the last argument says where to");
	return -EINVAL;
}

static bool names_bucket(const char *value)
{
	return strncmp(value, "s3://", 5) == 0;
}

/* Refuses an empty SOURCE, and one that is an S3 URL. Returns 0, or -EINVAL with a sentence. */
static int check_sources(char *const *sources, int n, struct problem *problem)
{
	for (int i = 0; i < n; i++) {
		if (!*sources[i])
			return refuse(problem, "a SOURCE is empty");
		if (names_bucket(sources[i]))
			return refuse(problem, "a SOURCE is on this host, and only the last "
					       "argument is s3://BUCKET[/PREFIX]");
	}
	return 0;
}

/* Reads the operands s3://BUCKET/KEY and COMMAND..., and sets the command of o->pipe. Returns 0, or
 * -EINVAL with a sentence. */
static int read_url_and_command(
	struct push_options *o, int n, char **operands, struct problem *problem)
{
	if (n < 2)
		return refuse(
			problem, "no COMMAND follows --: write s3://BUCKET/KEY -- COMMAND...");
	if (read_target(o, operands[0], operands[0], problem) < 0)
		return -EINVAL;
	operands[n] = NULL; /* argv has room for it, since its first word was no operand */
	o->pipe->command = operands + 1;
	identify_command(o, o->pipe->command);
	/* The one source is the first word of the command, by which messages name the input. */
	o->run.sources = (const char *const *)operands + 1;
	o->run.n_sources = 1;
	o->run.bucket = o->url.bucket;
	return use_pipe(o, problem);
}

/* Reads the operands SOURCE... and s3://BUCKET/PREFIX, or - and s3://BUCKET/KEY. Returns 0, or
 * -EINVAL with a sentence. */
static int read_sources_and_url(
	struct push_options *o, int n, char **operands, struct problem *problem)
{
	const bool is_stdin = o->pipe && n == 2 && strcmp(operands[0], "-") == 0;
	if (n == 0)
		return refuse(problem, "nothing to do: name a SOURCE and s3://BUCKET");
	if (read_target(o, operands[n - 1], operands[0], problem) < 0)
		return -EINVAL;
	if (n == 1)
		return refuse_lack_of_source(o, problem);
	if (check_sources(operands, n - 1, problem) < 0)
		return -EINVAL;
	o->run.sources = (const char *const *)operands;
	o->run.n_sources = (size_t)n - 1;
	o->run.bucket = o->url.bucket;
	o->run.prefix = o->url.key;
	return is_stdin ? use_pipe(o, problem) : 0;
}

/* Checks the demands of one option on another. Options that exclude each other are in the table of
 * options. Returns 0, or -EINVAL with a sentence. */
static int check_demands(const struct push_options *o, struct problem *problem)
{
	const struct s3once_options *run = &o->run;
	const bool has_as = run->as && !run->read; /* the key of a pipe is in the URL */
	const struct {
		bool is_unmet;
		const char *sentence;
	} demands[] = {
		{run->files_from && run->n_sources > 1,
			"--files-from is relative to one SOURCE, and there are several"},
		{!run->removes && run->remove_even,
			"--remove-even says which other files --delete-after removes: give that, "
			"too"},
		{run->log_file && o->metrics_file && strcmp(run->log_file, o->metrics_file) == 0,
			"--log-file and --metrics name the same file: give each its own"},
		{run->as && run->n_sources > 1,
			"--as names the key of one file, so there is one SOURCE"},
		{run->as && *run->prefix,
			"--as names the whole key, so the URL is s3://BUCKET without PREFIX"},
		{has_as && names_bucket(run->as),
			"--as is the key alone: the last argument names the bucket, s3://BUCKET"},
		{run->key_template && names_bucket(run->key_template),
			"--key is the key alone: the last argument names the bucket, s3://BUCKET"},
	};
	for (size_t i = 0; i < sizeof demands / sizeof *demands; i++)
		if (demands[i].is_unmet)
			return refuse(problem, demands[i].sentence);
	return 0;
}

static bool is_http(const char *url)
{
	return strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
}

/* Checks the URL of a server that runs are reported to. The URL may contain a secret, since anybody
 * who knows it can send reports, too. So the sentence does not quote it. */
static int check_http_url(const char *option, const char *url, struct problem *problem)
{
	const char *host = is_http(url) ? strstr(url, "://") + 3 : "";
	const bool has_host = *host && *host != '/';
	if (has_host && !strpbrk(url, " \t\r\n#"))
		return 0;
	return problem_error(
		problem, -EINVAL, "%s: this is not a URL such as https://HOST/PATH", option);
}

/* Checks the values that have to fit more than their type, and reads the rates of --bwlimit.
 * Returns 0, or -EINVAL with a sentence. */
static int check_values(struct push_options *o, struct problem *problem)
{
	const struct s3once_options *run = &o->run;
	struct listen_address address; /* unused: metrics_server_new() reads the option again */
	const bool writes_files = !run->dry_run;
	if (writes_files && o->metrics_file &&
		output_file_check(METRICS_FILE, o->metrics_file, problem) < 0)
		return -EINVAL;
	if (writes_files && run->log_file &&
		output_file_check(LOG_FILE, run->log_file, problem) < 0)
		return -EINVAL;
	if (o->ping_url && check_http_url("--ping-url", o->ping_url, problem) < 0)
		return -EINVAL;
	if (o->metrics_otlp && check_http_url("--metrics", o->metrics_otlp, problem) < 0)
		return -EINVAL;
	if (run->spool && directory_option_check("--spool", run->spool, problem) < 0)
		return -EINVAL;
	if (o->metrics_listen && listen_address_parse(o->metrics_listen, &address, problem) < 0)
		return -EINVAL;
	if (run->as && !key_valid(run->as, strlen(run->as), problem)) {
		problem_prefix(problem, run->read ? "the key" : "--as");
		return -EINVAL;
	}
	return o->bwlimit ? bandwidth_value(o->bwlimit, o->rates, &o->run.n_rates, problem) : 0;
}

/* Sets the defaults that are not zero. The tables of push_option_tables.c name them in the help, as
 * 10m and 30s. UINT64_MAX says that the option was not given. */
void push_options_init(struct push_options *ret)
{
	*ret = (struct push_options){
		.whole_scan_ms = 600000, .drain_ms = 30000, .delete_after_ms = UINT64_MAX};
}

void push_options_set_access(struct push_options *o, const struct access *access)
{
	struct s3once_options *run = &o->run;
	o->access = *access;
	run->marks = access->marks;
	run->request_timeout_ms = access->aws.request_timeout_ms;
	run->endpoint_url = access->aws.endpoint_url;
	run->checksum = access->aws.checksum;
	run->region = access->aws.region;
	run->profile = access->aws.profile;
	run->ca_bundle = access->aws.ca_bundle;
}

int push_options_complete(
	struct push_options *o, int n, char **operands, struct problem *ret_problem)
{
	struct s3once_options *run = &o->run;
	run->removes = o->delete_after_ms != UINT64_MAX || run->move_to;
	if (o->metrics && is_http(o->metrics))
		o->metrics_otlp = o->metrics;
	else
		o->metrics_file = o->metrics;
	const int error = o->is_command ? read_url_and_command(o, n, operands, ret_problem)
					: read_sources_and_url(o, n, operands, ret_problem);
	if (error || check_demands(o, ret_problem) < 0 || check_values(o, ret_problem) < 0)
		return -EINVAL;
	/* The library has other units or other names for these options than the command line. */
	run->rules = o->rules.rules;
	run->n_rules = o->rules.n;
	run->settings = o->settings.settings;
	run->n_settings = o->settings.n;
	run->rates = o->rates;
	if (o->delete_after_ms != UINT64_MAX) /* is rounded up, so that nothing goes too early */
		run->remove_after_s = (o->delete_after_ms + 999) / 1000;
	const struct access access = o->access;
	push_options_set_access(o, &access);
	run->report_skipped = o->verbose > 0;
	return 0;
}

/* Returns the suffix of a file's name, such as ".txt", or NULL. It has letters and digits, at least
 * one of them a letter: "app-1.2" ends in a version. */
static const char *name_suffix(const char *path)
{
	const char *name = path_name(path), *dot = strrchr(name, '.');
	bool has_letter = false;
	for (const char *c = dot ? dot + 1 : ""; *c; c++) {
		if (!isalnum((unsigned char)*c))
			return NULL;
		has_letter |= !isdigit((unsigned char)*c);
	}
	return has_letter && dot > name ? dot : NULL;
}

/* Says that the files of a folder go directly below the prefix, if one of several SOURCES is a
 * folder. */
static void note_flattening(const struct s3once_options *run, struct text *note)
{
	struct stat st;
	const struct url_prefix prefix = url_prefix(run->prefix);
	for (size_t i = 0; i < run->n_sources; i++) {
		if (stat(run->sources[i], &st) || !S_ISDIR(st.st_mode))
			continue;
		text_addf(note,
			"the files of each folder go directly below s3://%s/%s: %s/FILE gets the "
			"key %sFILE; to keep the names of folders, push the folder above them",
			run->bucket, quote(run->prefix).text, quote(run->sources[i]).text,
			quote(prefix.text).text);
		return;
	}
}

/* Makes the target the key of the one file if both have the same name, or the same suffix. Any
 * other target stays a prefix. */
static void take_target_as_key(struct s3once_options *run, struct text *note)
{
	struct stat st;
	const char *source = run->sources[0], *suffix = name_suffix(run->prefix);
	const bool is_same_name = strcmp(path_name(run->prefix), path_name(source)) == 0;
	const bool may_be_key = suffix || is_same_name;
	if (!may_be_key || stat(source, &st) || !S_ISREG(st.st_mode))
		return;
	const char *own = name_suffix(source);
	const struct quoted key = quote(run->prefix), name = quote(path_name(source));
	if (is_same_name || (own && strcasecmp(own, suffix) == 0)) {
		text_addf(note,
			"%s is taken as the key, not as a folder: end the URL with / for %s/%s",
			key.text, key.text, name.text);
		run->as = run->prefix;
		run->prefix = "";
	} else {
		text_addf(note,
			"the key is %s/%s: end the URL with / if that is meant, or give --as %s "
			"s3://%s",
			key.text, name.text, key.text, run->bucket);
	}
}

void push_options_decide_key(struct push_options *o)
{
	struct s3once_options *run = &o->run;
	struct text note = TEXT(8192);
	/* Otherwise an option or the pipe determines the keys, or selects files of a folder. */
	const bool is_plain_copy = !run->as && !run->key_template && !run->rotated &&
				   !run->files_from && !run->n_rules && !run->read;
	if (!is_plain_copy)
		return;
	if (run->n_sources == 1)
		take_target_as_key(run, &note);
	else
		note_flattening(run, &note);
	o->note = note.len ? strdup(text_string(&note)) : NULL;
	text_clear(&note);
}

/* Whether a variable that begins with S3ONCE_ and sets no option has another use, such as
 * S3ONCE_JOBS. */
static bool has_other_use(const char *variable)
{
	static const char *const known[] = {"SOURCE=", "TARGET=", "OPTIONS=", "JOBS=", "LOCKS=",
		"LOCK_", "JOB=", "STATUS=", "COUNT_"};
	const char *own = strchr(variable, '_') + 1; /* after S3ONCE_ */
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strncmp(own, known[i], strlen(known[i])) == 0)
			return true;
	return false;
}

void push_options_warn_of_variable(const char *file, const char *variable)
{
	char name[64];
	struct option_match match;
	if (!options_lack_variable(&job_command, variable) || has_other_use(variable))
		return;
	/* The option that the name looks like: S3ONCE_MIN_AEG becomes min-aeg. */
	const char *own = strchr(variable, '_') + 1;
	snprintf(name, sizeof name, "%.*s", (int)strcspn(own, "="), own);
	for (char *c = name; *c; c++)
		*c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
	const char *nearest = options_nearest(&job_command, name);
	/* --help has no variable. */
	const bool is_near = nearest && options_find(&job_command, nearest, &match) &&
			     match.option->type != OPTION_HELP;
	log_warning("%s%sthe variable %s sets no option%s%s%s", file ? quote(file).text : "",
		file ? ": " : "", quote_bytes(variable, strcspn(variable, "=")).text,
		is_near ? "; did you mean " : "", is_near ? option_variable(match.option).name : "",
		is_near ? "?" : "");
}

extern char **environ;

void push_options_warn_of_variables(void)
{
	for (char *const *variable = environ; *variable; variable++)
		push_options_warn_of_variable(NULL, *variable);
}

void push_options_clear(struct push_options *options)
{
	free(options->note);
	options->note = NULL;
	free(options->rules.rules);
	free(options->settings.settings);
	options->rules = (struct option_rules){0};
	options->settings = (struct option_settings){0};
}
