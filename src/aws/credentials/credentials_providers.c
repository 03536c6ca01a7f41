/* Loads credentials once, from the first provider that has any: the environment, the profile, the
 * agent of a container, or the metadata of an EC2 instance. This file has the first two, and the
 * order of all, which is that of AWS's programs. Sources: "Default credential provider chain" and
 * "Assume role credential provider" of the AWS SDKs and Tools Reference Guide. */
#include "aws/credentials/credentials_providers.h"
#include "base/clock.h"
#include <errno.h>
#include <string.h>
#include <strings.h>

/* Takes the keys of the environment. The old name of the session token, AWS_SECURITY_TOKEN here and
 * aws_security_token in the files of a profile, counts first, as in botocore. */
static int credentials_env(
	struct credentials_providers *loader, struct credentials *ret, struct problem *ret_problem)
{
	const char *access_key = lookup_variable("AWS_ACCESS_KEY_ID");
	const char *secret = lookup_variable("AWS_SECRET_ACCESS_KEY");
	const char *token = lookup_variable("AWS_SECURITY_TOKEN");
	if (!access_key)
		return problem_error(ret_problem, -ENODATA, "AWS_ACCESS_KEY_ID is not set");
	if (!secret)
		return problem_error(ret_problem, -EINVAL,
			"AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is "
			"not: set both or neither");
	if (!token)
		token = lookup_variable("AWS_SESSION_TOKEN");
	return credentials_set(ret, access_key, secret, token, "environment", ret_problem);
}

/* Sets *ret to the access keys in one of the profile's two files. Returns -ENODATA without a
 * sentence if the file has none. */
static int take_keys(const struct profile_source *source, enum profile_file file,
	struct credentials *ret, struct problem *ret_problem)
{
	const struct profile *profile = &source->profile;
	const char *access_key = profile_get_of(profile, file, "aws_access_key_id");
	const char *secret = profile_get_of(profile, file, "aws_secret_access_key");
	const char *token = profile_get_of(profile, file, "aws_security_token");
	if (!access_key)
		return -ENODATA;
	if (!secret)
		return problem_error(ret_problem, -EINVAL,
			"profile %s has aws_access_key_id, but no aws_secret_access_key",
			quote(profile->name).text);
	if (!token)
		token = profile_get_of(profile, file, "aws_session_token");
	return credentials_set(ret, access_key, secret, token, "profile", ret_problem);
}

/* Loads the profile in whichever way it is configured. Its files are read at each load. Declared
 * here for the table below. */
static credentials_load credentials_profile;

/* The providers in AWS's order. Sources: "Default credential provider chain" of the AWS SDKs and
 * Tools Reference Guide, and botocore where the guide leaves the order open. */
static const struct {
	credentials_load *load;
	const char *name, *source; /* source: its name in credential_source, or NULL */
} providers[] = {
	{credentials_env, "environment", "Environment"},
	{credentials_profile, "profile", NULL},
	{credentials_container, "container's agent", "EcsContainer"},
	{credentials_imds, "instance metadata", "Ec2InstanceMetadata"},
};
#define PROVIDERS ((int)(sizeof providers / sizeof *providers))

/* Loads the profile of this name in the first way that is configured, and sets ret->from to that
 * way. load_source() calls it again for the source_profile of a role. */
static int load_profile(struct credentials_providers *loader, const char *name,
	const struct profile_source *parent, struct credentials *ret, struct problem *ret_problem);

/* Loads the credentials of the provider that credential_source names. */
static int load_named_provider(const struct profile_source *source, const char *name,
	struct credentials *ret, struct problem *ret_problem)
{
	for (int i = 0; i < PROVIDERS; i++) {
		if (!providers[i].source || strcasecmp(providers[i].source, name) != 0)
			continue;
		const int error = providers[i].load(source->loader, ret, ret_problem);
		if (error)
			problem_prefix(ret_problem, "credential_source %s", name);
		return error;
	}
	return problem_error(ret_problem, -EINVAL,
		"credential_source is %s: it must be Environment, EcsContainer or "
		"Ec2InstanceMetadata",
		quote(name).text);
}

/* Takes the keys of a profile that names itself as its source_profile. Returns -ENODATA with a
 * sentence if it has none. */
static int take_own_keys(
	const struct profile_source *source, struct credentials *ret, struct problem *ret_problem)
{
	int error = take_keys(source, CREDENTIALS_FILE, ret, ret_problem);
	if (error == -ENODATA)
		error = take_keys(source, CONFIG_FILE, ret, ret_problem);
	if (error == -ENODATA)
		problem_set(ret_problem, "it is its own source_profile and has no keys");
	return error;
}

/* Loads the credentials that may assume the profile's role. A profile may name itself as
 * source_profile, which means its own keys. Any other cycle is -ELOOP. */
static int load_source(
	const struct profile_source *source, struct credentials *ret, struct problem *ret_problem)
{
	const char *name = profile_get(&source->profile, "source_profile");
	const char *credential_source = profile_get(&source->profile, "credential_source");
	if (!name == !credential_source) /* there are both, or neither */
		return problem_error(ret_problem, -EINVAL,
			"role_arn needs one of source_profile and credential_source, not %s",
			name ? "both" : "neither");
	if (credential_source)
		return load_named_provider(source, credential_source, ret, ret_problem);
	if (strcmp(name, source->profile.name) == 0)
		return take_own_keys(source, ret, ret_problem);
	for (const struct profile_source *ancestor = source; ancestor; ancestor = ancestor->parent)
		if (strcmp(ancestor->profile.name, name) == 0)
			return problem_error(ret_problem, -ELOOP,
				"source_profile %s leads back to itself", quote(name).text);
	const int error = load_profile(source->loader, name, source, ret, ret_problem);
	if (error == -ENODATA)
		problem_prefix(ret_problem, "source_profile");
	return error;
}

/* Assumes the role_arn of the profile, by the credentials of its source_profile or
 * credential_source. */
static int assume_role(
	const struct profile_source *source, struct credentials *ret, struct problem *ret_problem)
{
	const struct profile *profile = &source->profile;
	const char *seconds = profile_get(profile, "duration_seconds");
	const char *arn = profile_get(profile, "role_arn");
	/* If another profile names this one as its source_profile, the keys of this one come before
	 * its role. */
	const bool has_keys = source->parent && profile_get(profile, "aws_access_key_id");
	/* The role of a web identity is assumed by credentials_web_identity(). */
	const bool has_web_identity = profile_get(profile, "web_identity_token_file") != NULL;
	struct credentials signer = {0}; /* they sign the request for the role */
	int error = -EINVAL;
	if (!arn || has_web_identity || has_keys)
		return -ENODATA;
	if (profile_get(profile, "mfa_serial"))
		problem_set(ret_problem,
			"mfa_serial asks for a code, which nobody can type during a run: use a "
			"profile without it, or the keys of a session that began with a code");
	else if (seconds && seconds[strspn(seconds, "0123456789")])
		problem_set(
			ret_problem, "duration_seconds is not a number: %s", quote(seconds).text);
	else
		error = load_source(source, &signer, ret_problem);
	/* -ENODATA would make load_profile() try the other ways, and hide this error. */
	if (error == -ENODATA)
		error = -ENOENT;
	if (error == 0) {
		const struct sts_request request = {.role = arn,
			.session_name = profile_get(profile, "role_session_name"),
			.external_id = profile_get(profile, "external_id"),
			.duration_seconds = seconds,
			.signed_by = &signer};
		error = sts_assume(source->loader, &request, ret, ret_problem);
	}
	credentials_wipe(&signer);
	if (error)
		problem_prefix(ret_problem, "profile %s", quote(profile->name).text);
	return error;
}

/* A way of a profile that is refused: with a login_session. The session of `aws login` is bound to
 * a key, and is renewed by a protocol of its own. Never sets *ret. */
static int refuse_login(
	const struct profile_source *source, struct credentials *ret, struct problem *ret_problem)
{
	const char *name = source->profile.name;
	if (!profile_get(&source->profile, "login_session"))
		return -ENODATA;
	return problem_error(ret_problem, -EINVAL,
		"profile %s has a login_session of `aws login`, which is read by way of the AWS "
		"CLI: add credential_process = aws configure export-credentials --profile %s "
		"--format process",
		quote(name).text, quote(name).text);
}

/* The ways in which a profile can be configured. They are in botocore's order, with one exception:
 * credential_process comes before login_session, so that a profile may have both. refuse_login()
 * proposes that. */
static const struct {
	profile_way *load; /* NULL: take_keys() from this file */
	const char *name;
	enum profile_file file;
} ways[] = {
	{assume_role, "role of the profile"},
	{credentials_web_identity, "web identity"},
	{credentials_sso, "SSO"},
	{NULL, "credentials file", CREDENTIALS_FILE},
	{credentials_process, "credential_process"},
	{refuse_login, "login session"},
	{NULL, "config file", CONFIG_FILE},
};

/* Adds the reason why a file has no keys of the profile. A NULL path means that there is no HOME.
 */
static void add_reason(struct text *t, const char *path, const struct ini *ini, const char *section)
{
	if (!path)
		text_add(t, "there is no HOME");
	else if (!ini)
		text_addf(t, "%s does not exist", quote(path).text);
	else if (!ini_has_section(ini, section))
		text_addf(t, "%s has no section [%s]", quote(path).text, quote(section).text);
	else
		text_addf(t, "[%s] in %s has no aws_access_key_id", quote(section).text,
			quote(path).text);
}

/* Writes the sentence about a profile without credentials, with the reason of each file. */
static void explain_no_credentials(const struct profile_source *source, struct problem *ret_problem)
{
	const struct profile *profile = &source->profile;
	struct text reasons = TEXT(2048);
	add_reason(&reasons, source->loader->options.credentials_path, profile->credentials,
		profile->name);
	text_add(&reasons, ", and ");
	add_reason(
		&reasons, source->loader->options.config_path, profile->config, profile->section);
	problem_set(ret_problem, "profile %s has no credentials (%s)", quote(profile->name).text,
		text_string(&reasons));
	text_clear(&reasons);
}

static int load_profile(struct credentials_providers *loader, const char *name,
	const struct profile_source *parent, struct credentials *ret, struct problem *ret_problem)
{
	struct profile_source source = {.loader = loader, .parent = parent};
	int error = profile_load(name, loader->options.config_path,
		loader->options.credentials_path, &source.profile, ret_problem);
	if (error < 0)
		return error;
	error = -ENODATA;
	for (size_t i = 0; i < sizeof ways / sizeof *ways && error == -ENODATA; i++) {
		error = ways[i].load ? ways[i].load(&source, ret, ret_problem)
				     : take_keys(&source, ways[i].file, ret, ret_problem);
		if (error == 0)
			ret->from = ways[i].name;
	}
	if (error == -ENODATA)
		explain_no_credentials(&source, ret_problem);
	profile_clear(&source.profile);
	return error;
}

static int credentials_profile(
	struct credentials_providers *loader, struct credentials *ret, struct problem *ret_problem)
{
	return load_profile(loader, loader->options.profile, NULL, ret, ret_problem);
}

/* Loads from the first provider that has credentials, or only from the one that had some before,
 * and sets *ret_provider to its index. Adds the sentences of those that are not configured to
 * `reasons`. Returns 0, -ENODATA if none has credentials, or another -errno with a sentence. */
static int try_providers(struct credentials_providers *loader, struct credentials *ret,
	int *ret_provider, struct text *reasons, struct problem *ret_problem)
{
	const int first = loader->has_provider ? loader->provider : 0;
	const int end = loader->has_provider ? first + 1 : PROVIDERS;
	for (int i = first; i < end; i++) {
		/* A profile that was named explicitly counts more than the environment. */
		if (providers[i].load == credentials_env && loader->options.profile_is_explicit)
			continue;
		*ret_problem = (struct problem){0}; /* a provider may set none with -ENODATA */
		*ret_provider = i;
		const int error = providers[i].load(loader, ret, ret_problem);
		if (error != -ENODATA)
			return error;
		if (ret_problem->text[0])
			text_addf(reasons, "%s%s", reasons->len ? "; " : "", ret_problem->text);
	}
	return -ENODATA;
}

/* Refuses and wipes credentials that have expired already. Returns 0, or -ESTALE with a sentence.
 */
static int refuse_expired(struct credentials *found, struct problem *ret_problem)
{
	char until[21];
	if (!found->expires_s || clock_wall_s() < found->expires_s)
		return 0;
	clock_format_iso(found->expires_s, until);
	credentials_wipe(found);
	return problem_error(ret_problem, -ESTALE,
		"the credentials found expired at %s: renew them, or set the clock", until);
}

int credentials_providers_load(
	struct credentials_providers *loader, struct credentials *ret, struct problem *ret_problem)
{
	struct text reasons = TEXT(1024);
	int used = 0; /* the index of the provider that had them */
	int error = try_providers(loader, ret, &used, &reasons, ret_problem);
	if (error == 0)
		error = refuse_expired(ret, ret_problem);
	if (error == -ENODATA)
		problem_set(ret_problem,
			"no credentials: %s; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
			"name a profile that has them",
			text_string(&reasons));
	else if (error == -ENOMEM)
		problem_set(ret_problem, "out of memory");
	text_clear(&reasons);
	if (error < 0)
		return error;
	/* The profile has set ret->from to the way in which it is configured. */
	if (!ret->from)
		ret->from = providers[used].name;
	loader->has_provider = true;
	loader->provider = used;
	loader->is_fixed = providers[used].load == credentials_env;
	return 0;
}
