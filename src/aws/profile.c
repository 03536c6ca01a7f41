#include "aws/profile.h"
#include "base/named_file.h"
#include "base/quote.h"
#include <errno.h>
#include <stdio.h>
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
