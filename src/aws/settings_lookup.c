/* Looks up the settings of the user: in the environment first, then in a profile of AWS's shared
 * files. Nothing here talks to a service. */
#include "aws/settings_lookup.h"
#include "base/files.h"
#include "base/text.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Reads a file of AWS's tools. A path that is NULL, or a file that is missing, is no error, and
 * *ret stays as it is. */
static int load_file(const char *path, struct ini **ret, struct problem *ret_problem)
{
	int line = 0;
	int error = path ? ini_load(path, ret, &line) : -ENOENT;
	if (error == 0 || error == -ENOENT || error == -ENOTDIR)
		return 0;
	if (error == -EBADMSG)
		problem_set(ret_problem, "%s, line %d, is invalid: fix it, or use another file",
			quote(path).text, line);
	else
		problem_set(ret_problem, "cannot read %s: %s; fix this, or use another file",
			quote(path).text, named_file_error(error));
	return error == -ENOMEM ? error : -EINVAL;
}

/* Finds a value that has swallowed the next setting, as that of "region" does here:
 *
 *	region = eu-west-1
 *	  aws_secret_access_key = SECRET
 *
 * An indented line continues the value before it, so a sentence that shows this value would also
 * show the secret. Only the value of credential_process may have further lines with a '=' or ':',
 * since it is a command line.
 *
 * *arg is a struct ini_entry that names the section to search. If this entry has such a value,
 * copies the entry to *arg, and returns -EINVAL, which ends the search. */
static int find_swallowed(void *arg, const struct ini_entry *entry)
{
	struct ini_entry *found = arg;
	if (!entry->key || strcmp(entry->section, found->section) != 0)
		return 0;
	const char *more_lines = strchr(entry->value, '\n');
	const bool looks_like_setting = more_lines && strpbrk(more_lines, "=:");
	if (!looks_like_setting || strcasecmp(entry->key, "credential_process") == 0)
		return 0;
	*found = *entry;
	return -EINVAL;
}

/* Refuses a section in which a value has swallowed the next setting. */
static int refuse_swallowed(
	const struct ini *ini, const char *section, const char *path, struct problem *ret_problem)
{
	struct ini_entry found = {.section = section};
	int error = ini ? ini_each(ini, find_swallowed, &found) : 0;
	if (error)
		problem_set(ret_problem,
			"%s: %s of [%s] goes on in a line like a setting: indent both alike",
			quote(path).text, quote(found.key).text, quote(section).text);
	return error;
}

int profile_load(const char *name, const char *config_path, const char *credentials_path,
	struct profile *ret, struct problem *ret_problem)
{
	struct profile profile = {.name = name};
	const bool is_default = strcmp(name, "default") == 0;
	int length = snprintf(profile.section, sizeof profile.section, "%s%s",
		is_default ? "" : "profile ", name);
	if (length < 0 || (size_t)length >= sizeof profile.section)
		return problem_error(ret_problem, -EINVAL, "the profile's name is too long: %s",
			quote(name).text);
	int error = load_file(config_path, &profile.config, ret_problem);
	if (error == 0 && is_default && profile.config &&
		ini_has_section(profile.config, "profile default"))
		strcpy(profile.section, "profile default");
	if (error == 0)
		error = load_file(credentials_path, &profile.credentials, ret_problem);
	if (error == 0)
		error = refuse_swallowed(profile.config, profile.section, config_path, ret_problem);
	if (error == 0)
		error = refuse_swallowed(profile.credentials, name, credentials_path, ret_problem);
	if (error < 0)
		profile_clear(&profile);
	else
		*ret = profile;
	return error;
}

void profile_clear(struct profile *profile)
{
	ini_free(profile->config);
	ini_free(profile->credentials);
	*profile = (struct profile){0};
}

bool profile_exists(const struct profile *profile)
{
	return (profile->config && ini_has_section(profile->config, profile->section)) ||
	       (profile->credentials && ini_has_section(profile->credentials, profile->name));
}

const char *profile_get_of(const struct profile *profile, enum profile_file file, const char *key)
{
	const struct ini *ini = file == CONFIG_FILE ? profile->config : profile->credentials;
	const char *section = file == CONFIG_FILE ? profile->section : profile->name;
	const char *value = ini ? ini_get(ini, section, key) : NULL;
	return (value && *value) ? value : NULL;
}

const char *profile_get(const struct profile *profile, const char *key)
{
	const char *value = profile_get_of(profile, CREDENTIALS_FILE, key);
	return value ? value : profile_get_of(profile, CONFIG_FILE, key);
}

#define FROM_BYTES_MAX 8192 /* a path, a section and a key */

const char *lookup_variable(const char *name)
{
	const char *value = name ? getenv(name) : NULL;
	return (value && *value) ? value : NULL;
}

int setting_rows_add(
	struct setting_rows *rows, const char *name, const char *value, const char *from)
{
	if (rows->n == SETTING_ROWS_MAX) /* never reached: there are fewer settings */
		return -ENOMEM;
	struct setting_row row = {.name = name, .value = strdup(value), .from = strdup(from)};
	if (!row.value || !row.from) {
		free(row.value);
		free(row.from);
		return -ENOMEM;
	}
	rows->rows[rows->n++] = row;
	return 0;
}

/* Returns the path of one of AWS's files: the variable's value, or else the default. "~/" at its
 * beginning stands for HOME. Returns NULL if HOME is needed and not set, or after an error.
 * Borrowed from the rows. */
static const char *find_aws_file(struct lookup *lookup, const struct lookup_key *key)
{
	const char *given = lookup_variable(key->variable[0]);
	const char *path = given ? given : key->standard, *home = lookup_variable("HOME");
	const bool is_below_home = strncmp(path, "~/", 2) == 0;
	char *whole = NULL;
	if (lookup->error || (is_below_home && !home))
		return NULL;
	const char *folder = is_below_home ? home : "";
	const char *rest = is_below_home ? path + strlen("~") : path; /* keeps the slash */
	if (asprintf(&whole, "%s%s", folder, rest) < 0)
		lookup->error = -ENOMEM;
	else
		lookup->error = setting_rows_add(
			lookup->found, key->name, whole, given ? key->variable[0] : "default");
	free(whole);
	return lookup->error ? NULL : lookup->found->rows[lookup->found->n - 1].value;
}

void lookup_begin(const char *profile, struct setting_rows *rows, struct lookup *ret,
	struct problem *ret_problem)
{
	static const struct lookup_key config_file = {
		"config_file", NULL, {"AWS_CONFIG_FILE"}, {NULL}, "~/.aws/config"};
	static const struct lookup_key credentials_file = {"credentials_file", NULL,
		{"AWS_SHARED_CREDENTIALS_FILE"}, {NULL}, "~/.aws/credentials"};
	static const struct lookup_key ignore = {"ignore_configured_endpoint_urls", NULL,
		{"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"}, {"ignore_configured_endpoint_urls"},
		"false"};
	/* As in botocore, AWS_DEFAULT_PROFILE comes before AWS_PROFILE. */
	const char *variable =
		lookup_variable("AWS_DEFAULT_PROFILE") ? "AWS_DEFAULT_PROFILE" : "AWS_PROFILE";
	const char *named = profile ? profile : lookup_variable(variable);
	const char *from = profile ? "--profile" : variable;
	*ret = (struct lookup){.found = rows, .problem = ret_problem};
	ret->error = setting_rows_add(
		rows, "profile", named ? named : "default", named ? from : "default");
	if (!ret->error)
		ret->profile_name = rows->rows[rows->n - 1].value;
	ret->config_path = find_aws_file(ret, &config_file);
	ret->credentials_path = find_aws_file(ret, &credentials_file);
	if (!ret->error)
		ret->error = profile_load(ret->profile_name, ret->config_path,
			ret->credentials_path, &ret->profile, ret_problem);
	if (!ret->error && named && !profile_exists(&ret->profile))
		ret->error = problem_error(ret_problem, -ENOENT,
			"there is no profile %s in %s or %s", quote(named).text,
			quote(ret->config_path ? ret->config_path : config_file.standard).text,
			quote(ret->credentials_path ? ret->credentials_path
						    : credentials_file.standard)
				.text);
	lookup_bool(ret, &ignore, &ret->ignores_urls);
}

/* Returns the service's URL in the [services NAME] section that the profile refers to, or NULL.
 * Writes the URL's place into `from`. A section that is missing is an error, as in botocore. */
static const char *url_in_services(struct lookup *lookup, const char *service, struct text *from)
{
	const char *name = profile_get_of(&lookup->profile, CONFIG_FILE, "services");
	char section[256], key[64];
	if (!name || snprintf(section, sizeof section, "services %s", name) >= (int)sizeof section)
		return NULL;
	if (!ini_has_section(lookup->profile.config, section)) {
		lookup->error = problem_error(lookup->problem, -EINVAL,
			"profile %s has services = %s, and %s has no section [%s]",
			quote(lookup->profile.name).text, quote(name).text,
			quote(lookup->config_path).text, quote(section).text);
		return NULL;
	}
	snprintf(key, sizeof key, "%s.endpoint_url", service);
	const char *value = ini_get(lookup->profile.config, section, key);
	if (!value || !*value)
		return NULL;
	text_addf(from, "%s of [%s] in %s", key, section, lookup->config_path);
	return value;
}

/* Returns the value of a setting in the profile's own sections, or NULL, and writes its place into
 * `from`. */
static const char *value_in_profile(
	const struct lookup *lookup, const struct lookup_key *key, struct text *from)
{
	const struct profile *profile = &lookup->profile;
	for (size_t i = 0; i < 2 && key->key[i]; i++) {
		const char *value = profile_get(profile, key->key[i]);
		if (!value)
			continue;
		const bool is_config = !profile_get_of(profile, CREDENTIALS_FILE, key->key[i]);
		text_addf(from, "%s of [%s] in %s", key->key[i],
			is_config ? profile->section : profile->name,
			is_config ? lookup->config_path : lookup->credentials_path);
		return value;
	}
	return NULL;
}

/* Returns the value of a setting, or NULL, and writes its place into `from`, for people. The first
 * source that has the setting counts. After an error, which url_in_services() may note in `lookup`,
 * the value does not count. */
static const char *find_setting(
	struct lookup *lookup, const struct lookup_key *key, const char *given, struct text *from)
{
	if (given) {
		text_add(from, key->option);
		return given;
	}
	if (key->service && lookup->ignores_urls)
		return NULL;
	for (size_t i = 0; i < 2; i++) {
		const char *value = lookup_variable(key->variable[i]);
		if (!value)
			continue;
		text_add(from, key->variable[i]);
		return value;
	}
	const char *url = key->service ? url_in_services(lookup, key->service, from) : NULL;
	return url ? url : value_in_profile(lookup, key, from);
}

const char *lookup_value(struct lookup *lookup, const struct lookup_key *key, const char *given)
{
	struct text from = TEXT(FROM_BYTES_MAX);
	if (lookup->error)
		return NULL;
	const char *value = find_setting(lookup, key, given, &from);
	if (from.error)
		lookup->error = -ENOMEM;
	else if (!lookup->error && (value || key->standard))
		lookup->error = setting_rows_add(lookup->found, key->name,
			value ? value : key->standard, value ? text_string(&from) : "default");
	text_clear(&from);
	return (value && !lookup->error) ? lookup->found->rows[lookup->found->n - 1].value : NULL;
}

/* Sets the error for the value that lookup_value() has just found: it must be `want`. */
static void refuse_found(struct lookup *lookup, const char *want)
{
	const struct setting_row *row = &lookup->found->rows[lookup->found->n - 1];
	lookup->error = problem_error(lookup->problem, -EINVAL, "%s is %s: it must be %s",
		quote(row->from).text, quote(row->value).text, want);
}

void lookup_word(struct lookup *lookup, const struct lookup_key *key, const char *given,
	const char *const *words, int *ret)
{
	const char *value = lookup_value(lookup, key, given);
	if (!value)
		return;
	struct text all = TEXT(256); /* the words, as "a, b or c" */
	for (int i = 0; words[i]; i++) {
		if (strcasecmp(words[i], value) == 0) {
			*ret = i;
			text_clear(&all);
			return;
		}
		text_addf(&all, "%s%s", !i ? "" : words[i + 1] ? ", " : " or ", words[i]);
	}
	refuse_found(lookup, text_string(&all));
	text_clear(&all);
}

void lookup_bool(struct lookup *lookup, const struct lookup_key *key, bool *ret)
{
	static const char *const words[] = {"false", "true", NULL};
	int word = *ret; /* false is 0, and true is 1 */
	lookup_word(lookup, key, NULL, words, &word);
	*ret = word;
}

void lookup_number(struct lookup *lookup, const struct lookup_key *key, unsigned max, unsigned *ret)
{
	const char *value = lookup_value(lookup, key, NULL);
	if (!value)
		return;
	uint64_t number;
	char want[64];
	snprintf(want, sizeof want, "a whole number from 1 to %u", max);
	if (!decimal_read(value, max, &number) || !number)
		refuse_found(lookup, want);
	else
		*ret = (unsigned)number;
}
