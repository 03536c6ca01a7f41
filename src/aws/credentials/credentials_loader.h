/* One load: the providers in AWS's order. */
#pragma once
#include "aws/credentials/credentials_provider.h"

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
