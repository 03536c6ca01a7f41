#include "aws/credentials/credentials_loader.h"
#include "base/clock.h"
#include "base/text.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* AWS's order. Source: "Default credential provider chain" of the AWS SDKs and Tools Reference
 * Guide, and botocore's where that leaves it open. */
static const struct {
	credentials_load *load;
	const char *name;
	bool is_environment;
} providers[] = {
	{credentials_env, "environment", true},
	{credentials_profile, "profile", false},
	{credentials_container, "container's agent", false},
	{credentials_imds, "instance metadata", false},
};
#define PROVIDERS ((int)(sizeof providers / sizeof *providers))

static char *copy_or_note(const char *s, bool *failed)
{
	char *made = s ? strdup(s) : NULL;
	*failed = *failed || (s && !made);
	return made;
}

int credentials_loader_init(
	struct credentials_loader *loader, const struct credentials_options *options)
{
	bool failed = false;
	*loader = (struct credentials_loader){
		.profile = copy_or_note(options->profile ? options->profile : "default", &failed),
		.profile_is_explicit = options->profile_is_explicit,
		.credentials_path = copy_or_note(options->credentials_path, &failed),
		.config_path = copy_or_note(options->config_path, &failed),
		.sts_endpoint = copy_or_note(options->sts_endpoint, &failed),
		.sts_region = copy_or_note(options->sts_region, &failed),
		.sso_endpoint = copy_or_note(options->sso_endpoint, &failed),
		.sso_oidc_endpoint = copy_or_note(options->sso_oidc_endpoint, &failed),
		.ca_bundle = copy_or_note(options->ca_bundle, &failed)};
	if (failed)
		credentials_loader_clear(loader);
	return failed ? -ENOMEM : 0;
}

void credentials_loader_clear(struct credentials_loader *loader)
{
	http_free(loader->http);
	http_shared_free(loader->shared);
	free(loader->profile);
	free(loader->credentials_path);
	free(loader->config_path);
	free(loader->sts_endpoint);
	free(loader->sts_region);
	free(loader->sso_endpoint);
	free(loader->sso_oidc_endpoint);
	free(loader->ca_bundle);
	*loader = (struct credentials_loader){0};
}

static int refuse_expired(struct credentials *c, struct problem *ret_problem)
{
	int64_t now_s = clock_wall_ns() / (int64_t)NS_PER_S;
	if (!c->expires_s || now_s < c->expires_s)
		return 0;
	char until[21];
	clock_format_iso(c->expires_s, until);
	problem_set(ret_problem,
		"the credentials that were found expired at %s: renew them, or set the clock of "
		"this host",
		until);
	credentials_wipe(c);
	return -ESTALE;
}

bool credentials_provider_is_fixed(int provider)
{
	return provider >= 0 && providers[provider].is_environment;
}

int credentials_loader_load(struct credentials_loader *loader, int *provider,
	struct credentials *ret, struct problem *ret_problem)
{
	struct text looked = TEXT(1024);
	struct problem problem = {0};
	struct credentials found = {0};
	int error = -ENODATA, first = *provider < 0 ? 0 : *provider;
	int end = *provider < 0 ? PROVIDERS : first + 1, i = first;
	for (; i < end && error == -ENODATA; i++) {
		if (providers[i].is_environment && loader->profile_is_explicit)
			continue;
		problem = (struct problem){0};
		error = providers[i].load(loader, &found, &problem);
		if (error == -ENODATA && problem.text[0])
			text_addf(&looked, "%s%s", looked.len ? "; " : "", problem.text);
	}
	if (error == 0)
		error = refuse_expired(&found, &problem);
	if (error == -ENODATA)
		problem_set(&problem, "no credentials: %s", text_string(&looked));
	else if (error == -ENOMEM)
		problem_set(&problem, "out of memory");
	text_clear(&looked);
	if (error < 0) {
		*ret_problem = problem;
		return error;
	}
	*ret = found;
	if (!ret->from)
		ret->from = providers[i - 1].name;
	*provider = i - 1;
	return 0;
}
