/* A profile of AWS's two files: ~/.aws/config ([profile NAME]; for default [profile default], else
 * [default]) and ~/.aws/credentials ([NAME]). */
#pragma once
#include "base/ini.h"
#include "base/problem.h"
#include <stdbool.h>

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
