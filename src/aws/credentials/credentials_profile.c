#include "aws/credentials/credentials_profile.h"
#include "base/quote.h"
#include <errno.h>
#include <string.h>

static int take_keys(const struct profile_source *source, bool of_credentials_file,
	struct credentials *ret, struct problem *ret_problem)
{
	const struct profile *profile = &source->profile;
	const char *access_key = profile_get_of(profile, of_credentials_file, "aws_access_key_id");
	const char *secret = profile_get_of(profile, of_credentials_file, "aws_secret_access_key");
	if (!access_key)
		return -ENODATA;
	if (!secret) {
		problem_set(ret_problem,
			"profile %s has aws_access_key_id, but no aws_secret_access_key",
			quote(profile->name).text);
		return -EINVAL;
	}
	return credentials_set(ret, access_key, secret,
		profile_get_of(profile, of_credentials_file, "aws_session_token"), "profile",
		ret_problem);
}

static int keys_of_credentials_file(
	const struct profile_source *source, struct credentials *ret, struct problem *ret_problem)
{
	return take_keys(source, true, ret, ret_problem);
}

static int keys_of_config_file(
	const struct profile_source *source, struct credentials *ret, struct problem *ret_problem)
{
	return take_keys(source, false, ret, ret_problem);
}

int credentials_profile_keys(
	const struct profile_source *source, struct credentials *ret, struct problem *ret_problem)
{
	int error = take_keys(source, true, ret, ret_problem);
	return error == -ENODATA ? take_keys(source, false, ret, ret_problem) : error;
}

/* In botocore's order. */
static const struct {
	profile_way *load;
	const char *name;
} ways[] = {
	{credentials_role, "role of the profile"},
	{credentials_web_identity, "web identity"},
	{credentials_sso, "SSO"},
	{keys_of_credentials_file, "credentials file"},
	{credentials_process, "credential_process"},
	{keys_of_config_file, "config file"},
};

static const char *shown(const char *path)
{
	return path ? path : "(no HOME)";
}

int credentials_profile_named(struct credentials_loader *loader, const char *name,
	const struct profile_source *parent, struct credentials *ret, struct problem *ret_problem)
{
	struct profile_source source = {.loader = loader, .parent = parent};
	int error = profile_load(
		name, loader->config_path, loader->credentials_path, &source.profile, ret_problem);
	if (error < 0)
		return error;
	error = -ENODATA;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways) && error == -ENODATA; i++) {
		error = ways[i].load(&source, ret, ret_problem);
		if (error == 0)
			ret->from = ways[i].name;
	}
	profile_clear(&source.profile);
	if (error == -ENODATA)
		problem_set(ret_problem, "profile %s has no credentials in %s or %s",
			quote(name).text, quote(shown(loader->credentials_path)).text,
			quote(shown(loader->config_path)).text);
	return error;
}

int credentials_profile(
	struct credentials_loader *loader, struct credentials *ret, struct problem *ret_problem)
{
	return credentials_profile_named(loader, loader->profile, NULL, ret, ret_problem);
}
