#include "aws/credentials_provider.h"
#include <errno.h>
#include <stdlib.h>

static const char *variable(const char *name)
{
	const char *value = getenv(name);
	return value && *value ? value : NULL;
}

static int load(void *self, struct credentials *ret, struct problem *ret_problem)
{
	const char *access_key = variable("AWS_ACCESS_KEY_ID");
	const char *secret = variable("AWS_SECRET_ACCESS_KEY");
	if (!access_key) {
		problem_set(ret_problem, "AWS_ACCESS_KEY_ID is not set");
		return -ENODATA;
	}
	if (!secret) {
		problem_set(ret_problem, "AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is "
					 "not: set both or neither");
		return -EINVAL;
	}
	return credentials_set(
		ret, access_key, secret, variable("AWS_SESSION_TOKEN"), "environment", ret_problem);
}

static void release(void *self)
{
}

int credentials_env_new(const struct credentials_options *options, struct credentials_provider *ret)
{
	*ret = (struct credentials_provider){.name = "environment", .load = load, .free = release};
	return 0;
}
