/* The user's configuration, in the environment and in a profile of AWS's shared files. */
#pragma once
#include "base/ini.h"
#include "base/problem.h"
#include <stdbool.h>

/* The variable's value; NULL if it is not set or empty, or if the name is NULL. */
const char *lookup_variable(const char *name);

/* A profile of AWS's two files: ~/.aws/config ([profile NAME]; for default [profile default], else
 * [default]) and ~/.aws/credentials ([NAME]). */
struct profile {
	const char *name;                 /* borrowed */
	struct ini *config, *credentials; /* owned; NULL where the file is missing */
	char section[256];                /* the profile's section of the config file */
};

/* Reads the profile from both files. A file that is missing, or whose path is NULL, counts as
 * empty.
 *
 * Returns 0, -ENOMEM, or -EINVAL with a sentence that names the file: it cannot be read or parsed,
 * or the lines of the profile are indented so that one value swallows the next setting. */
int profile_load(const char *name, const char *config_path, const char *credentials_path,
	struct profile *ret, struct problem *ret_problem);
void profile_clear(struct profile *profile);
/* Whether either file has the profile. */
bool profile_exists(const struct profile *profile);
/* Returns the value of a key in the credentials file, or else in the config file. NULL if neither
 * has it or it is empty. Borrowed until profile_clear(). A sub-key is written
 * "s3.addressing_style". */
const char *profile_get(const struct profile *profile, const char *key);
enum profile_file { CREDENTIALS_FILE, CONFIG_FILE };
/* Likewise for one file only. */
const char *profile_get_of(const struct profile *profile, enum profile_file file, const char *key);

/* Settings as AWS's tools have them. Each comes from an option, or from a variable of the
 * environment, or from the profile in AWS's two files, in this order. Its source is kept. The
 * source is "Settings reference" and "Service-specific endpoints" (AWS SDKs and Tools Reference
 * Guide). */

/* A value that was found, kept for `s3once config`. */
struct setting_row {
	const char *name; /* static */
	/* `from` is such as "AWS_REGION", or "region of [default] in /root/.aws/config". */
	char *value, *from; /* owned */
};
#define SETTING_ROWS_MAX 40
struct setting_rows {
	struct setting_row rows[SETTING_ROWS_MAX];
	size_t n;
};
/* Adds a row; 0 or -ENOMEM. Copies value and from. */
int setting_rows_add(
	struct setting_rows *rows, const char *name, const char *value, const char *from);

/* The sources of lookup_value(), and the first error. After an error all later lookups find
 * nothing, so that the caller checks the error once, at the end. */
struct lookup {
	struct profile profile;
	/* Borrowed from the rows. The paths are NULL if HOME is needed and not set. */
	const char *profile_name, *config_path, *credentials_path;
	bool ignores_urls;          /* AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: only options count */
	struct setting_rows *found; /* gets a row for each value that is found */
	int error;                  /* 0, -ENOMEM, or another -errno with a sentence in *problem */
	struct problem *problem;    /* may be NULL */
};

/* Reads the profile that `profile` names, which is the value of the option; NULL: the environment
 * names it. ret->error is -ENOENT if a profile was named that does not exist.
 *
 * rows and ret_problem are borrowed until profile_clear(&ret->profile), which the caller calls in
 * any case. */
void lookup_begin(const char *profile, struct setting_rows *rows, struct lookup *ret,
	struct problem *ret_problem);

/* The names of a setting in each source. */
struct lookup_key {
	const char *name;
	const char *option;      /* "--region"; NULL: there is none */
	const char *variable[2]; /* the first that is set counts; NULL: none */
	const char *key[2];      /* keys in the profile; "s3.addressing_style" is a sub-key */
	const char *standard;    /* the default, shown if it is set nowhere */
	/* "s3" if the setting is the URL of this service. Then endpoint_url of the service in the
	 * profile's `services` section comes before the profile's own key. NULL for other settings.
	 */
	const char *service;
};

/* Returns the value of a setting, or NULL if it is set nowhere. `given` is the value of the option,
 * or NULL. The result is borrowed from the rows. */
const char *lookup_value(struct lookup *lookup, const struct lookup_key *key, const char *given);

/* Likewise for a setting whose value is one of a few words, in upper or lower case. *ret is the
 * index of the word, and is untouched if the setting is set nowhere. Any other value is the error
 * -EINVAL, with a sentence that names the place. */
void lookup_word(struct lookup *lookup, const struct lookup_key *key, const char *given,
	const char *const *words, int *ret);
/* Likewise for a number from 1 to `max`. */
void lookup_number(
	struct lookup *lookup, const struct lookup_key *key, unsigned max, unsigned *ret);
/* Likewise for "true" and "false". */
void lookup_bool(struct lookup *lookup, const struct lookup_key *key, bool *ret);
