/* What the user has configured: a profile of the shared files, and the environment before it. */
#pragma once
#include "base/ini.h"
#include "base/problem.h"
#include <stdbool.h>

/* The variable's value; NULL if it is not set or empty, or if the name is NULL. */
const char *config_variable(const char *name);

/* A profile of AWS's two files: ~/.aws/config ([profile NAME]; for default [profile default], else
 * [default]) and ~/.aws/credentials ([NAME]). */
struct profile {
	const char *name;                 /* borrowed */
	struct ini *config, *credentials; /* owned; NULL where the file is missing */
	char section[256];                /* of the config file */
};

/* Reads both files; a missing one is empty, and so is a path that is NULL. 0; -EINVAL for a file
 * that cannot be read or understood, or where the profile's lines are indented so that one swallows
 * another, and -ENOMEM, with a sentence that names the file. */
int profile_load(const char *name, const char *config_path, const char *credentials_path,
	struct profile *ret, struct problem *ret_problem);
void profile_clear(struct profile *profile);
/* Whether either file has it. */
bool profile_exists(const struct profile *profile);
/* The value of a key, the credentials file's before the config file's; NULL if neither has it or it
 * is empty. Borrowed until profile_clear. "s3.addressing_style" for a sub-key. */
const char *profile_get(const struct profile *profile, const char *key);
/* The same of one file alone: the credentials file, else the config file. */
const char *profile_get_of(
	const struct profile *profile, bool of_credentials_file, const char *key);

/* Settings as AWS's tools have them. Each comes from an option, or from a variable of the
 * environment, or from the profile in AWS's two files, in this order. Where it came from is kept.
 * The source is "Settings reference" and "Service-specific endpoints" (AWS SDKs and Tools Reference
 * Guide).
 *
 * A value that was found, kept for `s3once config`. */
struct config_row {
	const char *name; /* static */
	char *value,
		*from; /* owned; from: "AWS_REGION", "region of [default] in /root/.aws/config" */
};
#define CONFIG_ROWS_MAX 40
struct config_rows {
	struct config_row rows[CONFIG_ROWS_MAX];
	size_t n;
};
/* Adds a row; 0 or -ENOMEM. Copies value and from. */
int config_rows_add(
	struct config_rows *rows, const char *name, const char *value, const char *from);

/* Settings that are looked for, and the first error of that, which sticks: after it nothing is
 * found any more, so that it is asked for once, at the end. */
struct config {
	struct profile profile;
	/* Borrowed from the rows; the paths are NULL without HOME. */
	const char *profile_name, *config_path, *credentials_path;
	bool ignores_urls;         /* AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: only options count */
	struct config_rows *found; /* where each look is written down */
	int error;                 /* 0, -ENOMEM, or another -errno with a sentence in *problem */
	struct problem *problem;   /* may be NULL */
};

/* Reads the files. profile is that of the option, or NULL. rows and problem are borrowed until
 * profile_clear(&ret->profile), which the caller calls in any case. ret->error is -ENOENT for a
 * profile that was asked for and is not there. */
void config_load(const char *profile, struct config_rows *rows, struct config *ret,
	struct problem *ret_problem);

/* Where a setting is looked for. */
struct config_key {
	const char *name;
	const char *option;      /* "--region"; NULL: there is none */
	const char *variable[2]; /* the first that is set counts; NULL: none */
	const char *key[2];      /* of the profile; "s3.addressing_style" is a sub-key */
	const char *standard;    /* shown where nothing says otherwise */
	/* "s3": it is the URL of this service, which endpoint_url of the service in the profile's
	 * `services` section names before the profile's own key. NULL: it is none. */
	const char *service;
};

/* The value, or NULL if it is set nowhere. `given` is that of the option, or NULL. It is borrowed
 * from the rows. */
const char *config_look(struct config *config, const struct config_key *key, const char *given);

/* The same for a setting that is one of a few words, in whatever case. *ret is the index of the
 * word, and is untouched if it is set nowhere. Another word is the error -EINVAL, whose sentence
 * names the place. */
void config_look_word(struct config *config, const struct config_key *key, const char *given,
	const char *const *words, int *ret);
/* The same for a number from 1 to `most`. */
void config_look_number(
	struct config *config, const struct config_key *key, unsigned most, unsigned *ret);
void config_look_bool(struct config *config, const struct config_key *key, bool *ret);
