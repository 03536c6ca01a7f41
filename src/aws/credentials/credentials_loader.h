/* One load of credentials: the providers in AWS's order, of which a profile is one that has
 * several ways. */
#pragma once
#include "aws/config.h"
#include "aws/credentials/credentials_provider.h"

/* The ways in which a profile yields credentials; those that need more than a few lines have a file
 * each. */
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

/* One load: the providers in AWS's order. */
/* Copies what it needs of options. 0 or -ENOMEM. */
int credentials_loader_init(
	struct credentials_loader *loader, const struct credentials_options *options);
void credentials_loader_clear(struct credentials_loader *loader);

/* Loads credentials from the first provider that has any. *provider is -1 at first. It becomes the
 * number of that provider, and later loads ask only that one. Returns 0; -ENODATA with a sentence
 * that says where it has looked; -ESTALE for credentials that have already expired; or another
 * -errno with a sentence. */
int credentials_loader_load(struct credentials_loader *loader, int *provider,
	struct credentials *ret, struct problem *ret_problem);
/* Whether this provider can never yield others in this process. */
bool credentials_provider_is_fixed(int provider);
