#include "aws/settings_endpoints.h"
#include "base/quote.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct config_key sts_key = {.name = "sts_regional_endpoints",
	.variable = {"AWS_STS_REGIONAL_ENDPOINTS"},
	.key = {"sts_regional_endpoints"},
	.standard = "regional"};
static const struct config_key style_key = {
	.name = "s3.addressing_style", .key = {"s3.addressing_style"}, .standard = "auto"};
static const struct config_key dualstack_key = {.name = "use_dualstack_endpoint",
	.variable = {"AWS_USE_DUALSTACK_ENDPOINT"},
	.key = {"use_dualstack_endpoint"},
	.standard = "false"};
static const struct config_key s3_dualstack_key = {
	.name = "s3.use_dualstack_endpoint", .key = {"s3.use_dualstack_endpoint"}};
static const struct config_key fips_key = {.name = "use_fips_endpoint",
	.variable = {"AWS_USE_FIPS_ENDPOINT"},
	.key = {"use_fips_endpoint"},
	.standard = "false"};
static const struct config_key accelerate_key = {.name = "s3.use_accelerate_endpoint",
	.key = {"s3.use_accelerate_endpoint"},
	.standard = "false"};
static const struct config_key arn_region_key = {.name = "s3_use_arn_region",
	.variable = {"AWS_S3_USE_ARN_REGION"},
	.key = {"s3_use_arn_region", "s3.use_arn_region"},
	.standard = "true"};
static const struct config_key payload_key = {.name = "s3.payload_signing_enabled",
	.key = {"s3.payload_signing_enabled"},
	.standard = "false"};

int settings_set_terms(struct aws_settings *settings, const struct settings_sources *sources)
{
	const struct config *config = &sources->config;
	struct endpoint_terms *terms = &settings->terms;
	static const char *const styles[] = {"auto", "virtual", "path", NULL};
	static const char *const sts[] = {"regional", "legacy", NULL};
	bool uses_arn_region = true;
	int style = STYLE_AUTO, sts_mode = 0;
	int error = config_look_bool(config, &dualstack_key, &terms->dualstack, sources->problem);
	terms->s3_dualstack = terms->dualstack;
	const struct {
		const struct config_key *key;
		bool *field;
	} flags[] = {
		{&s3_dualstack_key, &terms->s3_dualstack},
		{&fips_key, &terms->fips},
		{&accelerate_key, &terms->accelerate},
		{&arn_region_key, &uses_arn_region},
		{&payload_key, &settings->signs_payload},
	};
	for (size_t i = 0; error == 0 && i < sizeof flags / sizeof *flags; i++)
		error = config_look_bool(config, flags[i].key, flags[i].field, sources->problem);
	if (error == 0)
		error = config_look_word(config, &style_key, styles, &style, sources->problem);
	if (error == 0)
		error = config_look_word(config, &sts_key, sts, &sts_mode, sources->problem);
	terms->keep_region = !uses_arn_region;
	terms->style = (enum endpoint_style)style;
	terms->sts_global = sts_mode == 1;
	return error;
}

/* A service's URL and the region that is signed for; either ret may be NULL. */
struct wanted {
	struct config_url url;
	const char *given; /* by option */
	char **ret_url, **ret_region;
	bool *ret_is_aws;
	bool only_custom; /* AWS's own is that of another region */
};

static int set_endpoint(const struct aws_settings *settings, const struct settings_sources *sources,
	const struct wanted *wanted)
{
	int error = 0;
	const char *why = NULL;
	char *custom = NULL;
	const char *url = config_look_url(&sources->config, &wanted->url, wanted->given, &error);
	if (error == 0 && url)
		error = endpoint_parse_url(url, &custom, &why);
	if (error == -EINVAL)
		problem_set(sources->problem, "the endpoint URL %s cannot be used: %s",
			quote_url(url).text, why);
	if (error < 0)
		return error;
	if (wanted->only_custom) {
		*wanted->ret_url = custom;
		return 0;
	}
	const struct endpoint_question question = {.service = wanted->url.service,
		.region = settings->region,
		.custom = custom,
		.terms = settings->terms};
	struct endpoint endpoint;
	error = endpoint_resolve(&question, &endpoint, sources->problem);
	free(custom);
	if (error < 0)
		return error;
	if (!url && config_rows_add(sources->config.found, wanted->url.row, endpoint.url, "AWS"))
		return -ENOMEM;
	if (wanted->ret_is_aws)
		*wanted->ret_is_aws = !url;
	*wanted->ret_url = strdup(endpoint.url);
	if (wanted->ret_region)
		*wanted->ret_region = strdup(endpoint.region);
	return !*wanted->ret_url || (wanted->ret_region && !*wanted->ret_region) ? -ENOMEM : 0;
}

int settings_set_endpoints(struct aws_settings *settings, const struct settings_sources *sources)
{
	const struct wanted services[] = {
		{.url = {"s3_endpoint", "s3", "AWS_ENDPOINT_URL_S3", "--endpoint-url"},
			.given = sources->options->endpoint_url,
			.ret_url = &settings->s3_endpoint,
			.ret_is_aws = &settings->s3_is_aws},
		{.url = {"dynamodb_endpoint", "dynamodb", "AWS_ENDPOINT_URL_DYNAMODB",
			 "--dynamodb-endpoint-url"},
			.given = sources->options->dynamodb_endpoint_url,
			.ret_url = &settings->dynamodb_endpoint,
			.ret_is_aws = &settings->dynamodb_is_aws},
		{.url = {"sts_endpoint", "sts", "AWS_ENDPOINT_URL_STS", NULL},
			.ret_url = &settings->sts_endpoint,
			.ret_region = &settings->sts_region},
		{.url = {"sso_endpoint", "sso", "AWS_ENDPOINT_URL_SSO", NULL},
			.ret_url = &settings->sso_endpoint,
			.only_custom = true},
		{.url = {"sso_oidc_endpoint", "sso_oidc", "AWS_ENDPOINT_URL_SSO_OIDC", NULL},
			.ret_url = &settings->sso_oidc_endpoint,
			.only_custom = true},
	};
	int error = 0;
	for (size_t i = 0; error == 0 && i < sizeof services / sizeof *services; i++)
		error = set_endpoint(settings, sources, &services[i]);
	if (error < 0)
		return error;
	settings->partition =
		strdup(settings->s3_is_aws ? endpoint_partition(settings->region) : "");
	return settings->partition ? 0 : -ENOMEM;
}
