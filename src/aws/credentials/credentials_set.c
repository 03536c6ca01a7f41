#include "aws/credentials/credentials_provider.h"
#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

void credentials_wipe(struct credentials *c)
{
	if (c->session_token)
		OPENSSL_cleanse(c->session_token, strlen(c->session_token));
	free(c->session_token);
	OPENSSL_cleanse(c, sizeof *c);
}

static bool is_printable(const char *s)
{
	for (; *s; s++)
		if (*s <= ' ' || *s >= 0x7f)
			return false;
	return true;
}

int credentials_set(struct credentials *ret, const char *access_key, const char *secret,
	const char *session_token, const char *where, struct problem *ret_problem)
{
	struct credentials set = {0};
	if (!*access_key || strlen(access_key) >= sizeof set.access_key ||
		strlen(secret) >= sizeof set.secret || !is_printable(access_key) ||
		(session_token && !is_printable(session_token))) {
		problem_set(ret_problem, "the credentials of the %s are malformed", where);
		return -EINVAL;
	}
	strcpy(set.access_key, access_key);
	strcpy(set.secret, secret);
	if (session_token && !(set.session_token = strdup(session_token))) {
		credentials_wipe(&set);
		return -ENOMEM;
	}
	*ret = set;
	return 0;
}

const char *credentials_variable(const char *name)
{
	const char *value = getenv(name);
	return value && *value ? value : NULL;
}
