/* The token that `aws sso login` leaves in ~/.aws/sso/cache. Source: "IAM Identity Center
 * credential provider" of the AWS SDKs and Tools Reference Guide, IAM Identity Center OIDC API
 * Reference. */
#pragma once
#include "aws/credentials/credentials_provider.h"

struct sso_session {
	const char *name; /* of the sso-session; NULL: legacy, the token goes by the start URL */
	const char *start_url, *region;
};

/* The URL of a path at a service: at the endpoint that is set, or, if that is NULL, where AWS has
 * the service ("portal.sso", "oidc") of this region. 0, or -EINVAL with a sentence. */
int sso_url(const char *service, const char *region, const char *set, const char *path,
	struct text *ret, struct problem *ret_problem);

/* Adds the access token to ret (wipe it). One of an sso-session that has less than 15 minutes left
 * is renewed, and the file written anew. 0; else -errno with a sentence that says how to log in. */
int sso_token_get(struct credentials_loader *loader, const struct sso_session *session,
	struct text *ret, struct problem *ret_problem);
