/* `s3once cat`: prints the lines of a log from its objects. It needs no marks. src/cat reads and
 * prints. This file determines the log, by a URL or by a job, and the times. */
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "cat/log_cat.h"
#include "cli/commands.h"
#include "cli/options/values.h"
#include "scan/key/key.h"
#include "scan/key/key_template.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 60000 /* the limit of each request */

struct cat_values {
	const char *from, *to;
	int list;
	/* Used while the command runs: */
	int64_t from_s, to_s;
	struct s3_url url;
	struct text family; /* the whole key without time, id and so on: "web1/nginx/access.log" */
	struct log_name name;
};

#define FIELD(field) offsetof(struct cat_values, field)

static const struct option cat_what_options[] = {
	VALUE("from", STRING, FIELD(from), "TIME",
		"skip objects whose last line is older; TIME is local, such as '2026-11-20 08:00' "
		"or 12:00, or UTC (2026-11-20T08:00:00Z)"),
	VALUE("to", STRING, FIELD(to), "TIME",
		"end after the first object whose last line is of TIME or later"),
	FLAG("list", FIELD(list), "print time, size and URL of each object instead of its lines"),
	{NULL},
};

static const struct option_elsewhere elsewhere[] = {
	{"since", "s3once cat --from TIME does that"},
	{"until", "s3once cat --to TIME does that"},
	{NULL},
};

static const struct command cat_command = {
	.name = "cat",
	.operands = "s3://BUCKET/PATH/LOG | --job JOB LOG",
	.takes = {1, 2},
	.about = "Prints the lines of a log that was uploaded with --rotated: all of its objects\n"
		 "in order, decompressed and verified. LOG is the name of the log on its host,\n"
		 "such as access.log. TIMEs select whole objects: lines are not parsed.\n",
	.groups = (const struct option_group[]){{"Which lines", cat_what_options}, {NULL}},
	.shares = SHARES_JOB | SHARES_S3 | SHARES_SERVICES | SHARES_KEY_FILE,
	.elsewhere = elsewhere,
	.examples =
		"  s3once cat s3://my-logs/web1/access.log --from '2026-11-20 08:00' --to 12:00\n"
		"  s3once cat --job nginx error.log --from 2026-11-20 | grep -c timeout\n\n"
		"Exit codes: 0 all lines are printed; 1 some are missing, or there are none;\n"
		"2 usage; 3 the bucket cannot be read.\n",
};

/* Reads "hh:mm" or "hh:mm:ss" into tm. Returns the rest of s, or NULL if it begins otherwise. */
static const char *read_time_of_day(const char *s, struct tm *tm)
{
	int n = 0;
	tm->tm_sec = 0;
	if (sscanf(s, "%2d:%2d%n", &tm->tm_hour, &tm->tm_min, &n) != 2)
		return NULL;
	s += n;
	if (*s == ':') {
		if (sscanf(s, ":%2d%n", &tm->tm_sec, &n) != 1)
			return NULL;
		s += n;
	}
	const bool is_time = tm->tm_hour >= 0 && tm->tm_hour <= 23 && tm->tm_min >= 0 &&
			     tm->tm_min <= 59 && tm->tm_sec >= 0 && tm->tm_sec <= 59;
	return is_time ? s : NULL;
}

/* Reads a date such as "2026-11-20" into tm. Returns the rest of s, or NULL if it begins
 * otherwise. */
static const char *read_date(const char *s, struct tm *tm)
{
	int n = 0;
	/* sscanf() accepts "2026-1-2", too, so the length is checked. */
	if (sscanf(s, "%4d-%2d-%2d%n", &tm->tm_year, &tm->tm_mon, &tm->tm_mday, &n) != 3 ||
		n != (int)strlen("2026-11-20"))
		return NULL;
	tm->tm_year -= 1900;
	tm->tm_mon--;
	return s + n;
}

/* Reads a TIME. A time of the day alone belongs to the day of day_s. Returns false if it is not a
 * TIME. */
static bool read_time(const char *s, int64_t day_s, int64_t *ret_s)
{
	struct tm tm = {0};
	const time_t day = (time_t)day_s;
	const char *rest = read_date(s, &tm);
	const bool has_date = rest != NULL;
	if (has_date && (*rest == ' ' || *rest == 'T')) {
		rest = read_time_of_day(rest + 1, &tm);
	} else if (!has_date) {
		if (!localtime_r(&day, &tm))
			return false;
		rest = read_time_of_day(s, &tm);
	}
	if (!rest)
		return false;
	const bool is_utc = *rest == 'Z';
	if (is_utc)
		rest++;
	if (*rest)
		return false;
	const struct tm asked = tm;
	tm.tm_isdst = -1; /* mktime() finds out whether daylight saving time applies */
	*ret_s = is_utc ? timegm(&tm) : mktime(&tm);
	/* Both functions turn a day such as 2026-02-30 into another one. */
	return tm.tm_mday == asked.tm_mday && tm.tm_mon == asked.tm_mon;
}

/* Reads the value of an option as a TIME. Without a value, *ret_s stays as it is. False with a
 * sentence. */
static bool read_time_option(const char *option, const char *value, int64_t day_s, int64_t *ret_s,
	struct problem *ret_problem)
{
	if (!value || read_time(value, day_s, ret_s))
		return true;
	return problem_error(ret_problem, false,
		"--%s %s is not a time: write it as '2026-11-20 08:00', 2026-11-20, 12:00 "
		"or 2026-11-20T08:00:00Z",
		option, quote(value).text);
}

/* Reads --from and --to. A time of the day alone is one of today, or for --to one of the day of
 * --from. False with a sentence. */
static bool read_times(struct cat_values *values, struct problem *ret_problem)
{
	const int64_t now_s = clock_wall_s();
	values->from_s = INT64_MIN;
	values->to_s = INT64_MAX;
	if (!read_time_option("from", values->from, now_s, &values->from_s, ret_problem))
		return false;
	const int64_t day_of_to_s = values->from ? values->from_s : now_s;
	if (!read_time_option("to", values->to, day_of_to_s, &values->to_s, ret_problem))
		return false;
	if (values->from && values->to && values->to_s < values->from_s)
		return problem_error(ret_problem, false, "--to is before --from");
	return true;
}

/* Makes the key of an object of the log whose last line is of this time. Returns 0, or -errno with
 * a sentence. */
static int render_key(const struct key_template *template, const char *log, int64_t time_s,
	struct text *ret, struct problem *ret_problem)
{
	const struct key_subject subject = {.relative = log,
		.mtime_ns = time_s * (int64_t)NS_PER_S,
		.content_id = SHA256_OF_NOTHING};
	text_reset(ret);
	const int error = key_template_render(template, &subject, ret, ret_problem);
	return error ? error : ret->error;
}

/* Sets *ret to the family of the object with this key. Returns whether log_key_read() understands
 * the key as one of this family and of the time time_s. */
static bool read_family_of_key(const char *key, int64_t time_s, struct text *ret)
{
	struct log_name name = {.ext = ""};
	struct log_key read;
	const char *base = path_name(key);
	text_reset(ret);
	text_add_bytes(ret, key, (size_t)(base - key)); /* the folder */
	const bool is_understood = log_family_of_object(base, ret) &&
				   log_name_set(&name, text_string(ret)) == 0 &&
				   log_key_read(&name, key, &read);
	log_name_clear(&name);
	return is_understood && read.time_s == time_s;
}

/* Finds the family of the objects whose keys the template makes of the log, by making the keys of
 * two versions of it. *ret_is_understood becomes whether both are keys that log_key_read()
 * understands, of one family; otherwise `family` has no meaning. Returns 0, or -errno with a
 * sentence. */
static int find_family_of_template(const struct key_template *template, const char *log,
	struct text *family, bool *ret_is_understood, struct problem *ret_problem)
{
	/* 2001-01-15T06:45:30Z and 2002-07-15T10:20:30Z, in winter and in summer of another year.
	 * If the template has a date in a folder, the folders differ. If it has local time, one of
	 * the times is not UTC: London, for example, has UTC only in winter. */
	static const int64_t winter_s = 979541130, summer_s = 1026728430;
	struct text key = TEXT(2 * KEY_BYTES_MAX), family_in_summer = TEXT(2 * KEY_BYTES_MAX);
	int error = render_key(template, log, winter_s, &key, ret_problem);
	bool is_understood = !error && read_family_of_key(text_string(&key), winter_s, family);
	if (is_understood) {
		error = render_key(template, log, summer_s, &key, ret_problem);
		is_understood = !error &&
				read_family_of_key(text_string(&key), summer_s, &family_in_summer);
	}
	*ret_is_understood =
		is_understood && strcmp(text_string(&family_in_summer), text_string(family)) == 0;
	text_clear(&key);
	text_clear(&family_in_summer);
	return error;
}

/* Finds the family of the objects that the job makes of the log, below one folder. Returns 0, or
 * -errno with a sentence. */
static int find_family_of_job(
	const struct job *job, const char *log, struct text *family, struct problem *ret_problem)
{
	const struct s3once_options *o = &job->options.run;
	struct family_rules *rules = NULL;
	struct key_template *template = NULL;
	int error = family_rules_new(&rules, ret_problem);
	const struct key_template_options options = {
		.text = o->key_template ? o->key_template : ROTATED_KEY,
		.time_zone = o->key_template ? o->time_zone : NULL,
		.zone_has_other_use = true,
		.families = rules,
		.names_families = true};
	if (!error)
		error = key_template_new(&options, &template, ret_problem);
	bool is_understood = false;
	if (!error)
		error = find_family_of_template(template, log, family, &is_understood, ret_problem);
	if (!error && !is_understood)
		error = problem_error(ret_problem, -EINVAL,
			"its key %s does not end in {stem}-{mtime:%%Y%%m%%dT%%H%%M%%SZ}-{id:8}{ext} "
			"behind folders that are always the same, so that cat cannot find the "
			"objects of a log; docs/restore.md has other ways",
			quote(options.text).text);
	key_template_free(template);
	family_rules_free(rules);
	return error;
}

/* Returns the path of the log relative to the source that it is below, such as "nginx/error.log" of
 * "/var/log/nginx/error.log". A path that is below no source is returned as it is. */
static const char *relative_log(const struct job *job, const char *log)
{
	for (size_t i = 0; i < job->n_sources; i++) {
		const char *source = job->operands[i];
		size_t n = strlen(source);
		while (n && source[n - 1] == '/')
			n--;
		if (n && strncmp(log, source, n) == 0 && log[n] == '/')
			return log + n + strspn(log + n, "/");
	}
	return log;
}

/* Determines the log of the job. False with a sentence. */
static bool choose_log_of_job(struct cat_values *values, const struct job_asked *asked,
	const char *log, const char *target, struct problem *ret_problem)
{
	const struct job *job = &asked->job;
	struct text below = TEXT(2 * KEY_BYTES_MAX);
	int error;
	if (url_parse(target, &values->url, ret_problem) < 0)
		return false;
	if (!job->options.run.rotated)
		return problem_error(ret_problem, false,
			"job %s has no rotated = yes: its objects are called like the files, and "
			"cat prints only logs whose objects it can put into order; "
			"docs/restore.md has other ways",
			quote(asked->name).text);
	log = relative_log(job, log);
	if (*log == '/')
		return problem_error(ret_problem, false, "%s is not below the source of job %s",
			quote(log).text, quote(asked->name).text);
	error = find_family_of_job(job, log, &below, ret_problem);
	if (error)
		problem_prefix(ret_problem, "job %s", quote(asked->name).text);
	key_add_base(&values->family, values->url.key);
	text_add(&values->family, text_string(&below));
	text_clear(&below);
	return !error;
}

/* Determines the log of a URL. False with a sentence. */
static bool choose_log_of_url(
	struct cat_values *values, const char *url, struct problem *ret_problem)
{
	struct text family = TEXT(2 * KEY_BYTES_MAX);
	if (!url_is_s3(url))
		return problem_error(ret_problem, false,
			"name the log as s3://BUCKET/PATH/%s, or give --job", quote(url).text);
	if (url_parse(url, &values->url, ret_problem) < 0)
		return false;
	const char *base = path_name(values->url.key);
	if (!*base)
		return problem_error(ret_problem, false,
			"%s names no log: write s3://BUCKET/PATH/access.log; cat prints one log, and "
			"docs/restore.md says how a whole tree comes back",
			quote(url).text);
	const bool is_object = log_family_of_object(base, &family);
	if (is_object)
		problem_set(ret_problem,
			"%s is one object of a log: name the log, %s, and a time; docs/restore.md "
			"says how one object comes back",
			quote(base).text, quote(text_string(&family)).text);
	text_clear(&family);
	text_add(&values->family, values->url.key);
	return !is_object;
}

/* Determines the log and its name, from LOG and the job's target, or from a URL. False with a
 * sentence. */
static bool choose_log(struct cat_values *values, struct command_frame *frame)
{
	const struct job_asked *asked = &frame->job;
	const char *const *operands = (const char *const *)frame->operands;
	struct problem *problem = &frame->problem;
	/* With --job, the frame adds the job's target to the operands, unless one is a URL. */
	const bool lacks_log = asked->name && operands[0] == asked->job.target;
	const bool is_log_of_job = asked->name && frame->n_operands == 2 && !url_is_s3(operands[0]);
	bool is_chosen;
	if (is_log_of_job)
		is_chosen = choose_log_of_job(values, asked, operands[0], operands[1], problem);
	else if (frame->n_operands == 1 && !lacks_log)
		is_chosen = choose_log_of_url(values, operands[0], problem);
	else
		is_chosen = problem_error(problem, false,
			asked->name ? "name a log of the job, such as access.log"
				    : "name one log, as s3://BUCKET/PATH/LOG");
	if (!is_chosen)
		return false;
	if (log_name_set(&values->name, text_string(&values->family)) || values->family.error)
		return problem_error(problem, false, "out of memory");
	return true;
}

static void report_sentence(void *arg, enum log_report kind, const char *sentence)
{
	if (kind == LOG_REPORT_ERROR)
		log_error("%s", sentence);
	else
		log_warning("%s", sentence);
}

/* Reports the reason why no object was selected. */
static void report_nothing(
	const struct cat_values *values, const struct log_cat *cat, struct problem *ret_problem)
{
	char last[21];
	const struct text *family = &values->family;
	if (cat->last_s >= 0) {
		clock_format_iso(cat->last_s, last);
		problem_set(ret_problem,
			"nothing of %s is from that time: the time of its last object is %s",
			quote(path_name(text_string(family))).text, last);
		return;
	}
	problem_set(ret_problem,
		"there is no log s3://%s/%s: no object is called %sYYYYMMDDThhmmssZ-ID%s, as "
		"s3once push --rotated calls them; docs/restore.md says how other objects come back",
		cat->bucket, quote(text_string(family)).text,
		quote(path_name(text_string(&values->name.prefix))).text,
		quote(values->name.ext).text);
}

/* Opens the bucket, and prints or lists the log. Returns the exit code. */
static int print_log(struct command_frame *frame, const struct cat_values *values)
{
	struct problem *problem = &frame->problem;
	if (!frame_open_s3(frame, values->url.bucket))
		return S3ONCE_EXIT_SETUP;
	struct log_cat cat = {.place = {.s3 = frame->s3,
				      .conn = frame->s3_conn,
				      .headers = frame->headers,
				      .limits = {.patience_ms = PATIENCE_MS}},
		.bucket = values->url.bucket,
		.name = &values->name,
		.from_s = values->from_s,
		.to_s = values->to_s,
		.fd = STDOUT_FILENO,
		.report = report_sentence};
	const enum outcome o =
		values->list ? log_cat_list(&cat, problem) : log_cat_print(&cat, problem);
	if (o == OUTCOME_LOCAL)
		return S3ONCE_EXIT_FILES;
	if (o != OUTCOME_OK)
		return S3ONCE_EXIT_SETUP;
	if (cat.is_closed) /* the reader wanted no more, as `head` does */
		return S3ONCE_EXIT_OK;
	/* report_sentence() has reported the problems of single objects. */
	*problem = (struct problem){0};
	if (!cat.objects) {
		report_nothing(values, &cat, problem);
		return S3ONCE_EXIT_FILES;
	}
	return cat.missing ? S3ONCE_EXIT_FILES : S3ONCE_EXIT_OK;
}

int cat_main(int argc, char **argv)
{
	struct cat_values values = {.family = TEXT(4 * KEY_BYTES_MAX)};
	/* The lines of the log do not go through `output`. */
	struct command_frame frame = {
		.command = &cat_command, .values = &values, .has_own_output = true};
	if (frame_begin(&frame, argc, argv) && read_times(&values, &frame.problem) &&
		choose_log(&values, &frame))
		frame.code = print_log(&frame, &values);
	log_name_clear(&values.name);
	text_clear(&values.family);
	return frame_end(&frame);
}
