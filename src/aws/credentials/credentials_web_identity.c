/* A token of an identity provider, as EKS puts it into a file, for a role. Source: "Assume role
 * with web identity" of the AWS SDKs and Tools Reference Guide. */
#include "aws/credentials/credentials_profile.h"
#include "aws/credentials/secret_file.h"
#include "aws/credentials/sts.h"
#include "base/named_file.h"
#include "base/quote.h"
#include <errno.h>
#include <string.h>

#define TOKEN_MAX_BYTES 20000 /* as STS takes it */

/* The environment's before the profile's, key by key, unless a profile was asked for by name. */
static const char *identity_setting(
	const struct profile_source *source, const char *variable_name, const char *key)
{
	bool is_own = !source->parent && !source->loader->profile_is_explicit;
	const char *value = is_own ? credentials_variable(variable_name) : NULL;
	return value ? value : profile_get(&source->profile, key);
}

/* The file is written anew before its token ends: read each time. */
static int read_token(const char *path, struct text *ret, struct problem *ret_problem)
{
	int error = secret_file_read(path, ret);
	if (error)
		problem_set(ret_problem, "cannot read a token from %s: %s", quote(path).text,
			named_file_error(error));
	return error == -ENODATA ? -EIO : error;
}

static int assume_with_token(const struct profile_source *source, const char *path,
	struct credentials *ret, struct problem *ret_problem)
{
	const char *role = identity_setting(source, "AWS_ROLE_ARN", "role_arn");
	const char *name = identity_setting(source, "AWS_ROLE_SESSION_NAME", "role_session_name");
	struct text token = TEXT(TOKEN_MAX_BYTES);
	char made_up[32];
	if (!role) {
		problem_set(ret_problem, "there is a token file, but neither AWS_ROLE_ARN nor "
					 "role_arn of the profile");
		return -EINVAL;
	}
	int error = read_token(path, &token, ret_problem);
	if (error == 0) {
		sts_session_name(made_up);
		const struct sts_parameter parameters[] = {
			{"RoleArn", role},
			{"RoleSessionName", name ? name : made_up},
			{"WebIdentityToken", token.data},
			{"DurationSeconds", profile_get(&source->profile, "duration_seconds")},
		};
		const struct sts_request request = {
			"AssumeRoleWithWebIdentity", parameters, 4, NULL};
		error = sts_assume(source->loader, &request, ret, ret_problem);
		if (error)
			problem_prefix(ret_problem, "role %s", quote(role).text);
	}
	text_wipe(&token);
	return error;
}

int credentials_web_identity(
	const struct profile_source *source, struct credentials *ret, struct problem *ret_problem)
{
	const char *path =
		identity_setting(source, "AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file");
	if (!path)
		return -ENODATA;
	int error = assume_with_token(source, path, ret, ret_problem);
	if (error)
		problem_prefix(ret_problem, "web identity");
	return error;
}
