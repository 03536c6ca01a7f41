/* The settings of all services, made once when the program begins, of the environment, the
 * profile and the command line. */
#include "aws/settings.h"
#include "base/quote.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a setting is taken from. All is borrowed. */
struct settings_sources {
	const struct aws_options *options;
	struct config config;
	struct problem *problem;
};

static const struct config_key sts_key = {"sts_regional_endpoints", NULL,
	{"AWS_STS_REGIONAL_ENDPOINTS"}, {"sts_regional_endpoints"}, "regional"};
static const struct config_key style_key = {
	"s3.addressing_style", NULL, {NULL}, {"s3.addressing_style"}, "auto"};
static const struct config_key dualstack_key = {"use_dualstack_endpoint", NULL,
	{"AWS_USE_DUALSTACK_ENDPOINT"}, {"use_dualstack_endpoint"}, "false"};
static const struct config_key s3_dualstack_key = {
	"s3.use_dualstack_endpoint", NULL, {NULL}, {"s3.use_dualstack_endpoint"}, NULL};
static const struct config_key fips_key = {
	"use_fips_endpoint", NULL, {"AWS_USE_FIPS_ENDPOINT"}, {"use_fips_endpoint"}, "false"};
static const struct config_key accelerate_key = {
	"s3.use_accelerate_endpoint", NULL, {NULL}, {"s3.use_accelerate_endpoint"}, "false"};
static const struct config_key arn_region_key = {"s3_use_arn_region", NULL,
	{"AWS_S3_USE_ARN_REGION"}, {"s3_use_arn_region", "s3.use_arn_region"}, "true"};
static const struct config_key payload_key = {
	"s3.payload_signing_enabled", NULL, {NULL}, {"s3.payload_signing_enabled"}, "false"};

/* Sets the terms under which AWS's endpoints are chosen, such as dual-stack or FIPS, and whether
 * bodies are signed. 0, -ENOMEM, or another -errno with a sentence. */
static int settings_set_terms(struct aws_settings *settings, const struct settings_sources *sources)
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

/* Sets the endpoints and the partition, once the region and the terms are known. As
 * settings_set_terms(). */
static int settings_set_endpoints(
	struct aws_settings *settings, const struct settings_sources *sources)
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

#define ATTEMPTS_DEFAULT           9
#define ATTEMPTS_MOST              1000
#define REQUEST_TIMEOUT_DEFAULT_MS 60000
#define STALL_TIMEOUT_LEAST_MS     30000
#define PATIENCE_TIMEOUTS          5 /* requests that may time out while credentials are awaited */

static const struct config_key region_key = {
	"region", "--region", {"AWS_REGION", "AWS_DEFAULT_REGION"}, {"region"}, "us-east-1"};
static const struct config_key ca_bundle_key = {
	"ca_bundle", "--ca-bundle", {"AWS_CA_BUNDLE"}, {"ca_bundle"}, "the system's"};
static const struct config_key attempts_key = {
	"max_attempts", "--retries", {"AWS_MAX_ATTEMPTS"}, {"max_attempts"}, "9"};
static const struct config_key retry_mode_key = {
	"retry_mode", NULL, {"AWS_RETRY_MODE"}, {"retry_mode"}, "adaptive"};
static const struct config_key when_checksum_key = {"request_checksum_calculation", NULL,
	{"AWS_REQUEST_CHECKSUM_CALCULATION"}, {"request_checksum_calculation"}, "when_supported"};

static int set_region(struct aws_settings *settings, const struct settings_sources *sources)
{
	int error = 0;
	const char *region =
		config_look(&sources->config, &region_key, sources->options->region, &error);
	settings->region_is_default = !region;
	settings->region = strdup(region ? region : region_key.standard);
	return error < 0 || !settings->region ? -ENOMEM : 0;
}

/* "legacy" is botocore's own, "standard" with other figures. */
static int set_retry_mode(struct aws_settings *settings, const struct settings_sources *sources)
{
	static const char *const modes[] = {"legacy", "standard", "adaptive", NULL};
	int mode = 2;
	int error =
		config_look_word(&sources->config, &retry_mode_key, modes, &mode, sources->problem);
	settings->keeps_pace = mode != 2;
	return error;
}

static int set_attempts(struct aws_settings *settings, const struct settings_sources *sources)
{
	settings->attempts = ATTEMPTS_DEFAULT;
	if (!sources->options->attempts)
		return config_look_number(&sources->config, &attempts_key, ATTEMPTS_MOST,
			&settings->attempts, sources->problem);
	char given[16];
	int error = 0;
	settings->attempts = sources->options->attempts;
	snprintf(given, sizeof given, "%u", settings->attempts);
	config_look(&sources->config, &attempts_key, given, &error);
	return error;
}

/* As in AWS's tools, "when_required" is about the checksum that nobody asked for. */
static int set_checksum(struct aws_settings *settings, const struct settings_sources *sources)
{
	static const char *const modes[] = {"when_supported", "when_required", NULL};
	const char *given = sources->options->checksum, *names[CHECKSUMS + 2] = {NULL};
	int mode = 0, kind = CHECKSUMS;
	int error = config_look_word(
		&sources->config, &when_checksum_key, modes, &mode, sources->problem);
	const enum checksum automatic = mode == 1 ? CHECKSUM_MD5 : checksum_default();
	const struct config_key key = {.name = "checksum",
		.option = "--checksum",
		.variable = {"S3ONCE_CHECKSUM"},
		.standard = checksum_kinds[automatic].name};
	for (int i = 0; i < CHECKSUMS; i++)
		names[i] = checksum_kinds[i].name;
	names[CHECKSUMS] = "auto";
	if (!error && given) {
		config_look(&sources->config, &key, given, &error);
		kind = (int)checksum_named(given, strlen(given));
	} else if (!error) {
		error = config_look_word(&sources->config, &key, names, &kind, sources->problem);
	}
	settings->checksum_is_automatic = kind == CHECKSUMS;
	settings->checksum = kind == CHECKSUMS ? automatic : (enum checksum)kind;
	return error;
}

static int set_rest(struct aws_settings *settings, const struct settings_sources *sources)
{
	const struct aws_options *options = sources->options;
	int error = 0;
	const char *ca_bundle =
		config_look(&sources->config, &ca_bundle_key, options->ca_bundle, &error);
	if (error < 0 || (ca_bundle && !(settings->ca_bundle = strdup(ca_bundle))))
		return -ENOMEM;
	settings->request_timeout_ms = options->request_timeout_ms ? options->request_timeout_ms
								   : REQUEST_TIMEOUT_DEFAULT_MS;
	settings->stall_timeout_ms = settings->request_timeout_ms > STALL_TIMEOUT_LEAST_MS
					     ? settings->request_timeout_ms
					     : STALL_TIMEOUT_LEAST_MS;
	return error;
}

static int set_credentials(struct aws_settings *settings, const struct settings_sources *sources)
{
	const struct credentials_options credentials = {
		.profile = sources->config.profile_name,
		.profile_is_explicit = sources->options->profile != NULL,
		.credentials_path = sources->config.credentials_path,
		.config_path = sources->config.config_path,
		.sts_endpoint = settings->sts_endpoint,
		.sts_region = settings->sts_region,
		.sso_endpoint = settings->sso_endpoint,
		.sso_oidc_endpoint = settings->sso_oidc_endpoint,
		.fips = settings->terms.fips,
		.dualstack = settings->terms.dualstack,
		.ca_bundle = settings->ca_bundle,
		.patience_ms = PATIENCE_TIMEOUTS * settings->request_timeout_ms,
	};
	return credentials_chain_new(&credentials, &settings->credentials);
}

int aws_settings_resolve(
	const struct aws_options *options, struct aws_settings **ret, struct problem *ret_problem)
{
	static int (*const steps[])(struct aws_settings *, const struct settings_sources *) = {
		set_region, settings_set_terms, settings_set_endpoints, set_retry_mode,
		set_attempts, set_checksum, set_rest, set_credentials};
	struct settings_sources sources = {.options = options, .problem = ret_problem};
	struct aws_settings *settings = calloc(1, sizeof *settings);
	int error = settings ? config_load(options->profile, &settings->found, &sources.config,
				       ret_problem)
			     : -ENOMEM;
	for (size_t i = 0; error == 0 && i < sizeof steps / sizeof *steps; i++)
		error = steps[i](settings, &sources);
	config_clear(&sources.config);
	if (error == -ENOMEM)
		problem_set(ret_problem, "out of memory");
	if (error < 0)
		aws_settings_free(settings);
	else
		*ret = settings;
	return error;
}

void aws_settings_free(struct aws_settings *settings)
{
	if (!settings)
		return;
	credentials_chain_free(settings->credentials); /* it borrows the rest */
	free(settings->region);
	free(settings->s3_endpoint);
	free(settings->dynamodb_endpoint);
	free(settings->sts_endpoint);
	free(settings->sts_region);
	free(settings->sso_endpoint);
	free(settings->sso_oidc_endpoint);
	free(settings->partition);
	free(settings->ca_bundle);
	config_rows_clear(&settings->found);
	free(settings);
}

const char *aws_settings_service(const struct aws_settings *settings)
{
	if (settings->s3_is_aws)
		return settings->partition;
	return strstr(settings->s3_endpoint, "://") + 3;
}
