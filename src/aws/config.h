/* What the user has configured: a profile of the shared files, and the environment before it. */
#pragma once
#include "base/ini.h"
#include "base/problem.h"
#include <stdbool.h>

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
void config_rows_clear(struct config_rows *rows);
/* Adds a row; 0 or -ENOMEM. Copies value and from. */
int config_rows_add(
	struct config_rows *rows, const char *name, const char *value, const char *from);

struct config {
	struct profile profile;
	/* Borrowed from the rows; the paths are NULL without HOME. */
	const char *profile_name, *config_path, *credentials_path;
	bool ignores_urls;         /* AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: only options count */
	struct config_rows *found; /* where each look is written down */
};

/* Reads the files. profile is that of the option, or NULL; rows is borrowed until config_clear. 0;
 * -ENOENT for a profile that was asked for and is not there, -EINVAL and -ENOMEM, with a sentence.
 * config_clear in any case. */
int config_load(const char *profile, struct config_rows *rows, struct config *ret,
	struct problem *ret_problem);
void config_clear(struct config *config);

/* Where a setting is looked for. */
struct config_key {
	const char *name;
	const char *option;      /* "--region"; NULL: there is none */
	const char *variable[2]; /* the first that is set counts; NULL: none */
	const char *key[2];      /* of the profile; "s3.addressing_style" is a sub-key */
	const char *standard;    /* shown where nothing says otherwise */
};

/* The value, or NULL if it is set nowhere. `given` is that of the option, or NULL. It is borrowed
 * until config_clear(). *ret_error is set to -ENOMEM if the look cannot be kept. */
const char *config_look(const struct config *config, const struct config_key *key,
	const char *given, int *ret_error);

/* The same for a setting that is one of a few words, such as "true" and "false". *ret is the index
 * of the word, and is untouched if it is set nowhere. 0, -ENOMEM, or -EINVAL with a sentence that
 * names the place. */
int config_look_word(const struct config *config, const struct config_key *key,
	const char *const *words, int *ret, struct problem *ret_problem);
/* The same for a number from 1 to `most`. */
int config_look_number(const struct config *config, const struct config_key *key, unsigned most,
	unsigned *ret, struct problem *ret_problem);
int config_look_bool(const struct config *config, const struct config_key *key, bool *ret,
	struct problem *ret_problem);

/* Where the endpoint of a service is looked for. The first of these counts: the option,
 * AWS_ENDPOINT_URL_SERVICE, AWS_ENDPOINT_URL, endpoint_url of the service in the profile's
 * `services` section, and endpoint_url of the profile. */
struct config_url {
	const char *row;      /* the row's name */
	const char *service;  /* "s3" */
	const char *variable; /* "AWS_ENDPOINT_URL_S3" */
	const char *option;
};
const char *config_look_url(const struct config *config, const struct config_url *url,
	const char *given, int *ret_error);
