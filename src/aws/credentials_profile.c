#include "aws/credentials_provider.h"
#include "aws/profile.h"
#include "base/quote.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct source {
	char *profile, *credentials_path, *config_path;
};

static const char *shown(const char *path)
{
	return path ? path : "(no HOME)";
}

static int take_keys(const struct profile *profile, const struct source *source,
	struct credentials *ret, struct problem *ret_problem)
{
	const char *access_key = profile_get(profile, "aws_access_key_id");
	const char *secret = profile_get(profile, "aws_secret_access_key");
	if (!access_key) {
		problem_set(ret_problem, "profile %s has no aws_access_key_id in %s or %s",
			quote(source->profile).text, quote(shown(source->credentials_path)).text,
			quote(shown(source->config_path)).text);
		return -ENODATA;
	}
	if (!secret) {
		problem_set(ret_problem,
			"profile %s has aws_access_key_id, but no aws_secret_access_key",
			quote(source->profile).text);
		return -EINVAL;
	}
	return credentials_set(ret, access_key, secret, profile_get(profile, "aws_session_token"),
		"profile", ret_problem);
}

static int load(void *self, struct credentials *ret, struct problem *ret_problem)
{
	const struct source *source = self;
	struct profile profile;
	int error = profile_load(source->profile, source->config_path, source->credentials_path,
		&profile, ret_problem);
	if (error < 0)
		return error;
	error = take_keys(&profile, source, ret, ret_problem);
	profile_clear(&profile);
	return error;
}

static void release(void *self)
{
	struct source *source = self;
	if (!source)
		return;
	free(source->profile);
	free(source->credentials_path);
	free(source->config_path);
	free(source);
}

static char *copy(const char *s, bool *failed)
{
	char *made = s ? strdup(s) : NULL;
	*failed = *failed || (s && !made);
	return made;
}

int credentials_profile_new(
	const struct credentials_options *options, struct credentials_provider *ret)
{
	struct source *source = calloc(1, sizeof(*source));
	if (!source)
		return -ENOMEM;
	bool failed = false;
	source->profile = copy(options->profile ? options->profile : "default", &failed);
	source->credentials_path = copy(options->credentials_path, &failed);
	source->config_path = copy(options->config_path, &failed);
	if (failed) {
		release(source);
		return -ENOMEM;
	}
	*ret = (struct credentials_provider){
		.name = "profile", .load = load, .free = release, .self = source};
	return 0;
}
