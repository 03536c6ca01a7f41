/* Where the services are, by the options, the environment and the profile. For settings.c alone. */
#pragma once
#include "aws/settings.h"

/* What a setting is taken from. All is borrowed. */
struct settings_sources {
	const struct aws_options *options;
	struct config config;
	struct problem *problem;
};

/* Sets the terms under which AWS's endpoints are chosen, such as dual-stack or FIPS, and whether
 * bodies are signed. 0, -ENOMEM, or another -errno with a sentence. */
int settings_set_terms(struct aws_settings *settings, const struct settings_sources *sources);
/* Sets the endpoints and the partition, once the region and the terms are known. As
 * settings_set_terms(). */
int settings_set_endpoints(struct aws_settings *settings, const struct settings_sources *sources);
