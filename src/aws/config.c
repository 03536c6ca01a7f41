/* What the user has configured: a profile of the shared files, and the environment before it.
 * Nothing here talks to a service. */
#include "aws/config.h"
#include "base/files.h"
#include "base/quote.h"
#include "base/text.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

/* What was meant as the next key, a secret perhaps, does not belong to a value that a sentence
 * shows. *arg is the section, then the key. */
static int find_glued(void *arg, const struct ini_entry *entry)
{
	const char *more = entry->key ? strchr(entry->value, '\n') : NULL;
	if (!more || !strpbrk(more, "=:") || strcmp(entry->section, *(const char **)arg) != 0 ||
		strcasecmp(entry->key, "credential_process") == 0)
		return 0;
	*(const char **)arg = entry->key;
	return -EINVAL;
}

static int refuse_glued(
	const struct ini *ini, const char *section, const char *path, struct problem *ret_problem)
{
	const char *name = section;
	int error = ini ? ini_each(ini, find_glued, &name) : 0;
	if (error)
		problem_set(ret_problem,
			"%s: %s of [%s] goes on in a line that looks like another setting: indent "
			"both alike",
			quote(path).text, quote(name).text, quote(section).text);
	return error;
}

int profile_load(const char *name, const char *config_path, const char *credentials_path,
	struct profile *ret, struct problem *ret_problem)
{
	struct profile profile = {.name = name};
	const char *prefix = strcmp(name, "default") == 0 ? "" : "profile ";
	int length = snprintf(profile.section, sizeof profile.section, "%s%s", prefix, name);
	if (length < 0 || (size_t)length >= sizeof profile.section) {
		problem_set(ret_problem, "the profile's name is too long: %s", quote(name).text);
		return -EINVAL;
	}
	int error = load_file(config_path, &profile.config, ret_problem);
	if (error == 0 && !*prefix && profile.config &&
		ini_has_section(profile.config, "profile default"))
		strcpy(profile.section, "profile default");
	if (error == 0)
		error = load_file(credentials_path, &profile.credentials, ret_problem);
	if (error == 0)
		error = refuse_glued(profile.config, profile.section, config_path, ret_problem);
	if (error == 0)
		error = refuse_glued(profile.credentials, name, credentials_path, ret_problem);
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

const char *profile_get_of(const struct profile *profile, bool of_credentials_file, const char *key)
{
	const struct ini *ini = of_credentials_file ? profile->credentials : profile->config;
	const char *section = of_credentials_file ? profile->name : profile->section;
	const char *value = ini ? ini_get(ini, section, key) : NULL;
	return value && *value ? value : NULL;
}

const char *profile_get(const struct profile *profile, const char *key)
{
	const char *value = profile_get_of(profile, true, key);
	return value ? value : profile_get_of(profile, false, key);
}

#define FROM_BYTES_MAX 8192 /* a path, a section and a key */

static const char *variable(const char *name)
{
	const char *value = name ? getenv(name) : NULL;
	return value && *value ? value : NULL;
}

void config_rows_clear(struct config_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		free(rows->rows[i].value);
		free(rows->rows[i].from);
	}
	rows->n = 0;
}

int config_rows_add(struct config_rows *rows, const char *name, const char *value, const char *from)
{
	if (rows->n == CONFIG_ROWS_MAX)
		return -ENOMEM;
	struct config_row row = {.name = name, .value = strdup(value), .from = strdup(from)};
	if (!row.value || !row.from) {
		free(row.value);
		free(row.from);
		return -ENOMEM;
	}
	rows->rows[rows->n++] = row;
	return 0;
}

/* The path in the variable, or the file in ~/.aws; "~/" is HOME in both. 0 or -ENOMEM; *ret stays
 * NULL if there is no HOME to find it in. */
static int aws_file(struct config_rows *rows, const struct config_key *key, const char **ret)
{
	const char *given = variable(key->variable[0]);
	const char *path = given ? given : key->standard, *home = variable("HOME");
	const bool is_below_home = strncmp(path, "~/", 2) == 0;
	if (is_below_home && !home)
		return 0;
	char *whole;
	if (asprintf(&whole, "%s%s", is_below_home ? home : "", path + is_below_home) < 0)
		return -ENOMEM;
	const int error =
		config_rows_add(rows, key->name, whole, given ? key->variable[0] : "default");
	free(whole);
	if (!error)
		*ret = rows->rows[rows->n - 1].value;
	return error;
}

static int read_files(struct config *config, struct problem *ret_problem)
{
	static const struct config_key files[] = {
		{.name = "config_file",
			.variable = {"AWS_CONFIG_FILE"},
			.standard = "~/.aws/config"},
		{.name = "credentials_file",
			.variable = {"AWS_SHARED_CREDENTIALS_FILE"},
			.standard = "~/.aws/credentials"},
	};
	if (aws_file(config->found, &files[0], &config->config_path) < 0 ||
		aws_file(config->found, &files[1], &config->credentials_path) < 0)
		return -ENOMEM;
	return profile_load(config->profile_name, config->config_path, config->credentials_path,
		&config->profile, ret_problem);
}

static const char *shown_or_standard(const char *path, const char *standard)
{
	return path ? path : standard;
}

int config_load(const char *profile, struct config_rows *rows, struct config *ret,
	struct problem *ret_problem)
{
	const char *from = variable("AWS_DEFAULT_PROFILE") ? "AWS_DEFAULT_PROFILE" : "AWS_PROFILE";
	const char *named = profile ? profile : variable(from);
	static const struct config_key ignore = {.name = "ignore_configured_endpoint_urls",
		.variable = {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"},
		.key = {"ignore_configured_endpoint_urls"},
		.standard = "false"};
	*ret = (struct config){.found = rows};
	int error = config_rows_add(rows, "profile", named ? named : "default",
		profile ? "--profile"
		: named ? from
			: "default");
	if (error == 0) {
		ret->profile_name = rows->rows[rows->n - 1].value;
		error = read_files(ret, ret_problem);
	}
	if (error == 0 && named && !profile_exists(&ret->profile)) {
		problem_set(ret_problem, "there is no profile %s in %s or %s", quote(named).text,
			quote(shown_or_standard(ret->config_path, "~/.aws/config")).text,
			quote(shown_or_standard(ret->credentials_path, "~/.aws/credentials")).text);
		error = -ENOENT;
	}
	if (error == 0)
		error = config_look_bool(ret, &ignore, &ret->ignores_urls, ret_problem);
	return error;
}

void config_clear(struct config *config)
{
	profile_clear(&config->profile);
}

/* What was found, and where, as a person would say it. */
struct found {
	const char *value; /* or NULL */
	struct text from;
};

static void found_in_profile(struct found *found, const struct config *config, const char *key)
{
	const struct profile *profile = &config->profile;
	const bool of_credentials = profile_get_of(profile, true, key) != NULL;
	found->value = profile_get(profile, key);
	if (found->value)
		text_addf(&found->from, "%s of [%s] in %s", key,
			of_credentials ? profile->name : profile->section,
			of_credentials ? config->credentials_path : config->config_path);
}

static struct found find_setting(
	const struct config *config, const struct config_key *key, const char *given)
{
	struct found found = {.value = given, .from = TEXT(FROM_BYTES_MAX)};
	if (given)
		text_add(&found.from, key->option);
	for (size_t i = 0; i < 2 && !found.value; i++) {
		found.value = variable(key->variable[i]);
		if (found.value)
			text_add(&found.from, key->variable[i]);
	}
	for (size_t i = 0; i < 2 && key->key[i] && !found.value; i++)
		found_in_profile(&found, config, key->key[i]);
	return found;
}

/* Writes it down and clears it. */
static int note_value(
	const struct config *config, const char *name, struct found *found, const char *standard)
{
	const char *value = found->value ? found->value : standard;
	int error = found->from.error;
	if (error == 0 && value)
		error = config_rows_add(config->found, name, value,
			found->value ? text_string(&found->from) : "default");
	text_clear(&found->from);
	return error ? -ENOMEM : 0;
}

const char *config_look(const struct config *config, const struct config_key *key,
	const char *given, int *ret_error)
{
	struct found found = find_setting(config, key, given);
	if (note_value(config, key->name, &found, key->standard) < 0)
		*ret_error = -ENOMEM;
	return found.value;
}

static void say_wrong(const struct config *config, const struct config_key *key, const char *value,
	const char *want, struct problem *ret_problem)
{
	struct found found = find_setting(config, key, NULL);
	problem_set(ret_problem, "%s is %s: it must be %s", quote(text_string(&found.from)).text,
		quote(value).text, want);
	text_clear(&found.from);
}

int config_look_word(const struct config *config, const struct config_key *key,
	const char *const *words, int *ret, struct problem *ret_problem)
{
	int error = 0;
	const char *value = config_look(config, key, NULL, &error);
	if (error < 0 || !value)
		return error;
	struct text want = TEXT(256);
	for (int i = 0; words[i]; i++) {
		if (strcasecmp(words[i], value) == 0) {
			*ret = i;
			text_clear(&want);
			return 0;
		}
		text_addf(&want, "%s%s", !i ? "" : words[i + 1] ? ", " : " or ", words[i]);
	}
	say_wrong(config, key, value, text_string(&want), ret_problem);
	text_clear(&want);
	return -EINVAL;
}

int config_look_bool(const struct config *config, const struct config_key *key, bool *ret,
	struct problem *ret_problem)
{
	static const char *const words[] = {"false", "true", NULL};
	int word = *ret;
	int error = config_look_word(config, key, words, &word, ret_problem);
	*ret = word;
	return error;
}

int config_look_number(const struct config *config, const struct config_key *key, unsigned most,
	unsigned *ret, struct problem *ret_problem)
{
	int error = 0;
	const char *value = config_look(config, key, NULL, &error);
	if (error < 0 || !value)
		return error;
	unsigned long number = strlen(value) < 10 ? strtoul(value, NULL, 10) : 0;
	if (value[strspn(value, "0123456789")] || number < 1 || number > most) {
		char want[64];
		snprintf(want, sizeof want, "a whole number from 1 to %u", most);
		say_wrong(config, key, value, want, ret_problem);
		return -EINVAL;
	}
	*ret = (unsigned)number;
	return 0;
}

/* Of the service in [services NAME], which the profile names. */
static void found_in_services(struct found *found, const struct config *config, const char *service)
{
	const char *name = profile_get_of(&config->profile, false, "services");
	char section[256], key[64];
	if (!name || snprintf(section, sizeof section, "services %s", name) >= (int)sizeof section)
		return;
	snprintf(key, sizeof key, "%s.endpoint_url", service);
	const char *value = ini_get(config->profile.config, section, key);
	found->value = value && *value ? value : NULL;
	if (found->value)
		text_addf(&found->from, "%s of [%s] in %s", key, section, config->config_path);
}

const char *config_look_url(const struct config *config, const struct config_url *url,
	const char *given, int *ret_error)
{
	const struct config_key variables = {
		.option = url->option, .variable = {url->variable, "AWS_ENDPOINT_URL"}};
	struct found found = {.value = given, .from = TEXT(FROM_BYTES_MAX)};
	if (given)
		text_add(&found.from, url->option);
	else if (!config->ignores_urls)
		found = find_setting(config, &variables, NULL);
	if (!found.value && !config->ignores_urls)
		found_in_services(&found, config, url->service);
	if (!found.value && !config->ignores_urls)
		found_in_profile(&found, config, "endpoint_url");
	if (note_value(config, url->row, &found, NULL) < 0)
		*ret_error = -ENOMEM;
	return found.value;
}
