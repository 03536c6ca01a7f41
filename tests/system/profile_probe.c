/* Prints what the settings of a profile are, for tests/suites/test_profiles.py. A line of standard
 * input is CONFIG-FILE <tab> CREDENTIALS-FILE <tab> PROFILE <tab> KEY. The answer is a JSON string,
 * null if the profile does not have the key, false if there is no such profile, or {"error":
 * SENTENCE}. */
#include "aws/settings_lookup.h"
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define FIELDS 4

static json_t *answer(char *fields[FIELDS])
{
	struct profile profile;
	struct problem problem = {0};
	if (profile_load(fields[2], fields[0], fields[1], &profile, &problem) < 0)
		return json_pack("{ss}", "error", problem.text);
	const char *value = profile_get(&profile, fields[3]);
	json_t *found = !profile_exists(&profile) ? json_false() : json_pack("s?", value);
	profile_clear(&profile);
	return found;
}

int main(void)
{
	char line[8192];
	while (fgets(line, sizeof line, stdin)) {
		char *fields[FIELDS] = {0}, *rest = line;
		line[strcspn(line, "\n")] = '\0';
		for (int i = 0; i < FIELDS; i++)
			fields[i] = strsep(&rest, "\t");
		if (!fields[FIELDS - 1] || rest)
			return 2;
		json_t *found = answer(fields);
		json_dumpf(found, stdout, JSON_ENCODE_ANY);
		putchar('\n');
		json_decref(found);
	}
	return 0;
}
