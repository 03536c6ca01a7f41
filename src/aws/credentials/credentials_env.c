#include "aws/credentials/credentials_provider.h"
#include <errno.h>

int credentials_env(
	struct credentials_loader *loader, struct credentials *ret, struct problem *ret_problem)
{
	const char *access_key = credentials_variable("AWS_ACCESS_KEY_ID");
	const char *secret = credentials_variable("AWS_SECRET_ACCESS_KEY");
	if (!access_key) {
		problem_set(ret_problem, "AWS_ACCESS_KEY_ID is not set");
		return -ENODATA;
	}
	if (!secret) {
		problem_set(ret_problem, "AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is "
					 "not: set both or neither");
		return -EINVAL;
	}
	return credentials_set(ret, access_key, secret, credentials_variable("AWS_SESSION_TOKEN"),
		"environment", ret_problem);
}
