/* The ways in which a profile yields credentials; those that need more than a few lines have a file
 * each. */
#pragma once
#include "aws/credentials/credentials_provider.h"
#include "aws/profile.h"

/* A profile that is being loaded. */
struct profile_source {
	struct credentials_loader *loader;
	struct profile profile;
	const struct profile_source *parent; /* that names it as its source_profile, or NULL */
};

/* -ENODATA without a sentence: the profile does not say this way. Else as credentials_load. */
typedef int profile_way(
	const struct profile_source *source, struct credentials *ret, struct problem *ret_problem);
/* web_identity_token_file and role_arn, or the environment's: STS AssumeRoleWithWebIdentity. */
profile_way credentials_web_identity;
/* sso_account_id, sso_role_name and sso_session, or the older keys: IAM Identity Center. */
profile_way credentials_sso;
/* credential_process. */
profile_way credentials_process;
