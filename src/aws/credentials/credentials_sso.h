/* The token that `aws sso login` leaves in ~/.aws/sso/cache. Source: "IAM Identity Center
 * credential provider" of the AWS SDKs and Tools Reference Guide, IAM Identity Center OIDC API
 * Reference. */
#pragma once
#include "aws/credentials/credentials_provider.h"

struct sso_session {
	const char *name; /* of the sso-session; NULL: legacy, the token goes by the start URL */
	const char *start_url, *region;
};
