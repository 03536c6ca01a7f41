/* Between the chain (credentials.c) and its providers. */
#pragma once
#include "aws/credentials/credentials.h"
#include "http/http.h"
#include <stdatomic.h>

/* What the providers share. Used by one thread at a time, but for `stopped`. */
struct credentials_loader {
	char *profile; /* never NULL */
	bool profile_is_explicit;
	char *credentials_path, *config_path, *sts_endpoint, *sts_region, *ca_bundle; /* or NULL */
	char *sso_endpoint, *sso_oidc_endpoint;                                       /* or NULL */
	struct http_shared *shared; /* both made by the first request */
	struct http *http;
	atomic_bool stopped; /* end the load that is under way: nobody wants it any more */
};

/* A provider. Returns 0 and fills *ret, or -ENODATA if it is not configured, so that the next one
 * is asked, or another -errno. *ret_problem, which is not NULL, gets a sentence unless 0 is
 * returned. With -ENODATA it may be empty. */
typedef int credentials_load(
	struct credentials_loader *loader, struct credentials *ret, struct problem *ret_problem);
/* AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN. */
credentials_load credentials_env;
/* The profile, in whichever way it yields them; its files are read at each load. */
credentials_load credentials_profile;
/* AWS_CONTAINER_CREDENTIALS_*: the agent of ECS, of EKS Pod Identity, and their like. */
credentials_load credentials_container;
/* The role of the EC2 instance, from its metadata service. */
credentials_load credentials_imds;

/* Every provider calls this with what it found. *ret gets copies. access_key and secret are
 * required, and session_token may be NULL. 0, -ENOMEM, or -EINVAL with a sentence that says what is
 * wrong with those of `where`. */
int credentials_set(struct credentials *ret, const char *access_key, const char *secret,
	const char *session_token, const char *where, struct problem *ret_problem);
/* The variable's value; NULL if it is not set or empty. */
const char *credentials_variable(const char *name);
