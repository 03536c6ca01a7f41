/* Reads the settings of objects, from the command line and the --rules file, once at the beginning
 * of a run. file_new() (file.c) gets the settings of its file by object_rules_target(). */
#include "upload/body/object_rules.h"
#include "base/files.h"
#include "base/ini.h"
#include "scan/filter/filter.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULTS "default"
#define RULE     "rule "

/* The settings of the files that `filter` wants. The first rule has no filter: it is for the files
 * that no other rule wants. */
struct rule {
	const char *section; /* its [rule "PATTERN"] in the rules file; NULL: the first rule */
	struct filter *filter;
	struct s3_headers *headers;
};

struct object_rules {
	struct ini *ini;    /* NULL: there is no --rules file */
	struct rule *rules; /* the first one is for all files that match no other */
	size_t n;
	const struct s3_headers **keys; /* see object_rules_keys() */
	bool names_encoding;            /* see object_rules_name_encoding() */
};

void object_rules_free(struct object_rules *rules)
{
	if (!rules)
		return;
	for (size_t i = 0; i < rules->n; i++) {
		filter_free(rules->rules[i].filter);
		s3_headers_free(rules->rules[i].headers);
	}
	free(rules->rules);
	free(rules->keys);
	ini_free(rules->ini);
	free(rules);
}

/* Adds a rule without settings, for the files that match `pattern`. If `pattern` is NULL, it is the
 * first rule, which has no filter. Returns 0, -ENOMEM, or -EINVAL with a sentence. Also after an
 * error, object_rules_free() frees what was made. */
static int add_rule(struct object_rules *rules, const char *section, const char *pattern,
	struct problem *problem)
{
	struct rule *grown = realloc(rules->rules, (rules->n + 1) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	rules->rules = grown;
	struct rule *rule = &grown[rules->n++];
	*rule = (struct rule){.section = section};
	int error = s3_headers_new(&rule->headers);
	if (!error && pattern)
		error = filter_new(&rule->filter);
	if (!error && pattern)
		error = filter_add(rule->filter, FILTER_INCLUDE, pattern);
	if (error == -EINVAL)
		problem_set(problem, "the pattern \"%s\" is empty or has an unclosed [",
			quote(pattern).text);
	return error;
}

/* The state of reading the --rules file. Its settings are taken in two passes. */
struct reading {
	struct object_rules *rules;
	struct problem *problem;
	bool is_for_all; /* this pass takes only the settings of [default]; false: all others */
};

/* Makes the rule of each [rule "PATTERN"]. ini_each() calls it for every line, until it returns an
 * error. */
static int visit_section(void *arg, const struct ini_entry *entry)
{
	struct reading *reading = arg;
	const char *section = entry->section;
	/* An entry with a key is a setting, which visit_setting() takes. */
	if (entry->key || strcmp(section, DEFAULTS) == 0)
		return 0;
	if (strncmp(section, RULE, strlen(RULE)) == 0)
		return add_rule(reading->rules, section, section + strlen(RULE), reading->problem);
	return problem_error(reading->problem, -EINVAL,
		"the section [%s] is unknown; use [default] or [rule \"PATTERN\"]",
		quote(section).text);
}

/* Returns the name of a setting that concerns all requests of the run, and so must not be in a
 * rule, if these headers have one, and otherwise NULL. */
static const char *setting_of_run(const struct s3_headers *headers)
{
	if (s3_headers_value(headers, S3_PAYER))
		return S3_PAYER;
	return s3_headers_value(headers, S3_OWNER) ? S3_OWNER : NULL;
}

/* Adds a setting of [default] to every rule, or a setting of a [rule] to that rule. Sections are
 * distinguished by their address, since a pattern may come twice. Settings of the other pass
 * (is_for_all) are skipped.
 *
 * A setting is "name = value", or an indented "key = value" below "name =", which means name =
 * key=value. */
static int visit_setting(void *arg, const struct ini_entry *entry)
{
	struct reading *reading = arg;
	char *pair = NULL;
	int error = 0;
	const bool is_of_this_pass = (strcmp(entry->section, DEFAULTS) == 0) == reading->is_for_all;
	if (!entry->key || !is_of_this_pass)
		return 0;
	if (entry->parent && asprintf(&pair, "%s=%s", entry->key, entry->value) < 0)
		return -ENOMEM;
	const char *name = entry->parent ? entry->parent : entry->key;
	for (size_t i = 0; !error && i < reading->rules->n; i++) {
		const struct rule *rule = &reading->rules->rules[i];
		if (reading->is_for_all || rule->section == entry->section)
			error = s3_headers_set(
				rule->headers, name, pair ? pair : entry->value, reading->problem);
		const char *of_run = setting_of_run(rule->headers);
		if (!error && of_run)
			error = problem_error(reading->problem, -EINVAL,
				"%s is for all requests: give it to push itself", of_run);
	}
	free(pair);
	if (error == -EINVAL)
		problem_prefix(reading->problem, "[%s]", quote(entry->section).text);
	return error;
}

/* Reads the --rules file and makes its rules. Returns 0, -ENOMEM, or -EINVAL with a sentence. */
static int read_file(struct object_rules *rules, const char *path, struct problem *problem)
{
	struct reading reading = {.rules = rules, .problem = problem};
	int line = 0, error = ini_load(path, &rules->ini, &line);
	if (error == -EBADMSG)
		error = problem_error(
			problem, -EINVAL, "line %d is neither [section] nor name = value", line);
	else if (error && error != -ENOMEM)
		error = problem_error(
			problem, -EINVAL, "it cannot be read: %s", named_file_error(error));
	if (!error)
		error = ini_each(rules->ini, visit_section, &reading);
	/* The first pass takes the settings of [default], since those of a [rule] replace them. */
	for (int i = 0; !error && i < 2; i++) {
		reading.is_for_all = i == 0;
		error = ini_each(rules->ini, visit_setting, &reading);
	}
	if (error == -EINVAL)
		problem_prefix(problem, "the rules %s", quote(path).text);
	return error;
}

/* Whether this is the Content-Encoding that goes with --compress. The rules do not have it, since
 * only objects that the run has compressed get it. */
static bool is_of_compress(
	const struct s3once_options *options, const struct s3once_setting *setting)
{
	return options->compress && s3_headers_content_encoding(setting->name, setting->value);
}

/* Whether compressed objects get a Content-Encoding. If several settings are about that, the last
 * one counts. If its value is empty, these objects get a suffix instead. */
static bool options_name_encoding(const struct s3once_options *options)
{
	bool names = false;
	for (size_t i = 0; i < options->n_settings; i++) {
		const struct s3once_setting *setting = &options->settings[i];
		if (is_of_compress(options, setting))
			names = *s3_headers_content_encoding(setting->name, setting->value) != 0;
	}
	return names;
}

/* Adds the settings of the command line to a rule, which completes its headers. They come last,
 * since they replace all others. Returns 0, -ENOMEM, or -EINVAL with a sentence. */
static int complete_rule(
	const struct rule *rule, const struct s3once_options *options, struct problem *problem)
{
	int error = 0;
	for (size_t i = 0; !error && i < options->n_settings; i++) {
		const struct s3once_setting *setting = &options->settings[i];
		if (!is_of_compress(options, setting))
			error = s3_headers_set(
				rule->headers, setting->name, setting->value, problem);
	}
	if (!error)
		error = s3_headers_prepare(rule->headers, problem);
	if (error == -EINVAL && rule->section)
		problem_prefix(problem, "[%s]", quote(rule->section).text);
	return error;
}

int object_rules_new(const struct s3once_options *options, struct object_rules **ret,
	struct problem *ret_problem)
{
	struct object_rules *rules = calloc(1, sizeof *rules);
	int error = rules ? add_rule(rules, NULL, NULL, ret_problem) : -ENOMEM;
	if (!error && options->rules_file)
		error = read_file(rules, options->rules_file, ret_problem);
	if (!error && !(rules->keys = calloc(rules->n + 1, sizeof(struct s3_headers *))))
		error = -ENOMEM;
	if (!error)
		rules->names_encoding = options_name_encoding(options);
	for (size_t i = 0, n_keys = 0; !error && i < rules->n; i++) {
		const struct rule *rule = &rules->rules[i];
		error = complete_rule(rule, options, ret_problem);
		if (!error && *s3_headers_key_md5(rule->headers))
			rules->keys[n_keys++] = rule->headers;
	}
	if (error)
		object_rules_free(rules);
	else
		*ret = rules;
	return error;
}

struct s3_target object_rules_target(
	const struct object_rules *rules, const char *key, const char *relative)
{
	struct s3_target target = {.key = key};
	size_t i = rules->n - 1;
	/* The last rule that matches is taken. Rule 0 is for all files. */
	while (i && !filter_wants_file(rules->rules[i].filter, relative))
		i--;
	target.headers = rules->rules[i].headers;
	return target;
}

bool object_rules_name_encoding(const struct object_rules *rules)
{
	return rules->names_encoding;
}

bool object_rules_requester_pays(const struct object_rules *rules)
{
	return s3_headers_value(rules->rules[0].headers, S3_PAYER) != NULL;
}

const char *object_rules_owner(const struct object_rules *rules)
{
	return s3_headers_value(rules->rules[0].headers, S3_OWNER);
}

const struct s3_headers *const *object_rules_keys(const struct object_rules *rules)
{
	return rules->keys;
}
