/* One load: the providers in AWS's order. */
#pragma once
#include "aws/credentials/credentials_provider.h"

/* Copies what it needs of options. 0 or -ENOMEM. */
int credentials_loader_init(
	struct credentials_loader *loader, const struct credentials_options *options);
void credentials_loader_clear(struct credentials_loader *loader);

/* From the first provider that has any; once one had, from that one alone: *provider is its number,
 * -1 before. 0; -ENODATA with a sentence of where it looked; else -errno with a sentence. What has
 * already expired is an error (-ESTALE). */
int credentials_loader_load(struct credentials_loader *loader, int *provider,
	struct credentials *ret, struct problem *ret_problem);
/* Whether this provider can never yield others in this process. */
bool credentials_provider_is_fixed(int provider);
