/* Resolves the settings of all services from the command line, the environment and the profile,
 * once when the program begins. */
#include "aws/settings.h"
#include "http/http.h"
#include <errno.h>
#include <jansson.h>
#include <libxml/parser.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define ATTEMPTS_DEFAULT           9
#define ATTEMPTS_MAX               1000
#define REQUEST_TIMEOUT_DEFAULT_MS 60000
#define STALL_TIMEOUT_MIN_MS       30000
#define PATIENCE_TIMEOUTS          5 /* the longest wait for credentials, in request timeouts */

/* Each key has: name, option, variables, keys of the profile, default, service. */
static const struct lookup_key region_key = {
	"region", "--region", {"AWS_REGION", "AWS_DEFAULT_REGION"}, {"region"}, "us-east-1"};
static const struct lookup_key ca_bundle_key = {
	"ca_bundle", "--ca-bundle", {"AWS_CA_BUNDLE"}, {"ca_bundle"}, "the system's"};
static const struct lookup_key attempts_key = {
	"max_attempts", NULL, {"AWS_MAX_ATTEMPTS"}, {"max_attempts"}, "9"};
static const struct lookup_key retry_mode_key = {
	"retry_mode", NULL, {"AWS_RETRY_MODE"}, {"retry_mode"}, "adaptive"};
static const struct lookup_key when_checksum_key = {"request_checksum_calculation", NULL,
	{"AWS_REQUEST_CHECKSUM_CALCULATION"}, {"request_checksum_calculation"}, "when_supported"};
static const struct lookup_key sts_key = {"sts_regional_endpoints", NULL,
	{"AWS_STS_REGIONAL_ENDPOINTS"}, {"sts_regional_endpoints"}, "regional"};
static const struct lookup_key style_key = {
	"s3.addressing_style", NULL, {NULL}, {"s3.addressing_style"}, "auto"};
static const struct lookup_key dualstack_key = {"use_dualstack_endpoint", NULL,
	{"AWS_USE_DUALSTACK_ENDPOINT"}, {"use_dualstack_endpoint"}, "false"};
static const struct lookup_key s3_dualstack_key = {
	"s3.use_dualstack_endpoint", NULL, {NULL}, {"s3.use_dualstack_endpoint"}, NULL};
static const struct lookup_key fips_key = {
	"use_fips_endpoint", NULL, {"AWS_USE_FIPS_ENDPOINT"}, {"use_fips_endpoint"}, "false"};
static const struct lookup_key accelerate_key = {
	"s3.use_accelerate_endpoint", NULL, {NULL}, {"s3.use_accelerate_endpoint"}, "false"};
static const struct lookup_key arn_region_key = {"s3_use_arn_region", NULL,
	{"AWS_S3_USE_ARN_REGION"}, {"s3_use_arn_region", "s3.use_arn_region"}, "true"};
static const struct lookup_key payload_key = {
	"s3.payload_signing_enabled", NULL, {NULL}, {"s3.payload_signing_enabled"}, "false"};
static const struct lookup_key s3_url_key = {"s3_endpoint", "--endpoint-url",
	{"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}, {"endpoint_url"}, NULL, "s3"};
static const struct lookup_key dynamodb_url_key = {"dynamodb_endpoint", "dynamodb_endpoint_url",
	{"AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"}, {"endpoint_url"}, NULL, "dynamodb"};
static const struct lookup_key sts_url_key = {"sts_endpoint", NULL,
	{"AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"}, {"endpoint_url"}, NULL, "sts"};
static const struct lookup_key sso_url_key = {"sso_endpoint", NULL,
	{"AWS_ENDPOINT_URL_SSO", "AWS_ENDPOINT_URL"}, {"endpoint_url"}, NULL, "sso"};
static const struct lookup_key sso_oidc_url_key = {"sso_oidc_endpoint", NULL,
	{"AWS_ENDPOINT_URL_SSO_OIDC", "AWS_ENDPOINT_URL"}, {"endpoint_url"}, NULL, "sso_oidc"};

static void make_parsers_ready(void)
{
	xmlInitParser();
	json_object_seed(0);
}

int aws_global_init(void)
{
	static uv_once_t once = UV_ONCE_INIT;
	uv_once(&once, make_parsers_ready);
	return http_global_init();
}

/* Sets the terms under which AWS's endpoints are chosen, such as dual-stack or FIPS, and whether
 * bodies are signed. */
static void set_terms(struct aws_settings *settings, struct lookup *lookup)
{
	static const char *const styles[] = {"auto", "virtual", "path", NULL};
	static const char *const sts[] = {"regional", "legacy", NULL};
	struct endpoint_terms *terms = &settings->terms;
	bool uses_arn_region = true;
	int style = STYLE_AUTO, sts_mode = 0;
	lookup_bool(lookup, &dualstack_key, &terms->dualstack);
	terms->s3_dualstack = terms->dualstack;
	lookup_bool(lookup, &s3_dualstack_key, &terms->s3_dualstack);
	lookup_bool(lookup, &fips_key, &terms->fips);
	lookup_bool(lookup, &accelerate_key, &terms->accelerate);
	lookup_bool(lookup, &arn_region_key, &uses_arn_region);
	lookup_bool(lookup, &payload_key, &settings->signs_payload);
	lookup_word(lookup, &style_key, NULL, styles, &style);
	lookup_word(lookup, &sts_key, NULL, sts, &sts_mode);
	terms->keep_region = !uses_arn_region;
	terms->style = (enum endpoint_style)style; /* styles[] has its order */
	terms->sts_global = sts_mode == 1;         /* "legacy" */
}

/* Returns the normalised URL that is configured for a service, or NULL. The caller frees it. */
static char *look_for_url(struct lookup *lookup, const struct lookup_key *key, const char *given)
{
	const char *url = lookup_value(lookup, key, given);
	char *custom = NULL;
	if (!lookup->error && url)
		lookup->error = endpoint_parse_url(url, &custom, lookup->problem);
	return custom;
}

/* Finds the endpoint of a service, and the region that its requests are signed for. Adds the row of
 * AWS's own endpoint; lookup_value() has added that of a custom one. Returns whether it is
 * AWS's. */
static bool set_endpoint(struct aws_settings *settings, struct lookup *lookup,
	const struct lookup_key *key, const char *given, struct endpoint *ret)
{
	char *custom = look_for_url(lookup, key, given);
	const bool is_aws = !custom;
	const struct endpoint_question question = {.service = key->service,
		.region = settings->region,
		.custom = custom,
		.terms = settings->terms};
	if (!lookup->error)
		lookup->error = endpoint_resolve(&question, ret, lookup->problem);
	free(custom);
	if (!lookup->error && is_aws)
		lookup->error = setting_rows_add(lookup->found, key->name, ret->url, "AWS");
	return is_aws;
}

/* Sets the checksum that uploads get. As in AWS's tools, "when_required" does not change a checksum
 * that was chosen. It only makes MD5 the automatic choice. */
static void set_checksum(struct aws_settings *settings, struct lookup *lookup, const char *given)
{
	static const char *const modes[] = {"when_supported", "when_required", NULL};
	const char *names[CHECKSUMS + 2] = {NULL};
	int mode = 0, kind = CHECKSUMS; /* CHECKSUMS stands for the automatic choice, "auto" */
	lookup_word(lookup, &when_checksum_key, NULL, modes, &mode);
	/* Mode 1 is "when_required". */
	const enum checksum automatic = mode == 1 ? CHECKSUM_MD5 : checksum_default();
	const struct lookup_key key = {"checksum", "--checksum", {"S3ONCE_CHECKSUM"}, {NULL},
		checksum_kinds[automatic].name};
	for (int i = 0; i < CHECKSUMS; i++)
		names[i] = checksum_kinds[i].name;
	names[CHECKSUMS] = "auto";
	lookup_word(lookup, &key, given, names, &kind);
	settings->checksum_is_automatic = kind == CHECKSUMS;
	settings->checksum = kind == CHECKSUMS ? automatic : (enum checksum)kind;
}

/* Sets the number of attempts and their time limit, and whether throttling lowers the pace. The
 * modes are botocore's, of which "legacy" and "standard" are treated alike. */
static void set_retries(
	struct aws_settings *settings, struct lookup *lookup, const struct aws_options *options)
{
	static const char *const modes[] = {"legacy", "standard", "adaptive", NULL};
	int mode = 2; /* "adaptive" */
	lookup_word(lookup, &retry_mode_key, NULL, modes, &mode);
	settings->keeps_pace = mode != 2; /* only "adaptive" lowers the pace */
	settings->attempts = options->attempts ? options->attempts : ATTEMPTS_DEFAULT;
	if (!options->attempts)
		lookup_number(lookup, &attempts_key, ATTEMPTS_MAX, &settings->attempts);
	settings->request_timeout_ms = options->request_timeout_ms ? options->request_timeout_ms
								   : REQUEST_TIMEOUT_DEFAULT_MS;
	settings->stall_timeout_ms = settings->request_timeout_ms > STALL_TIMEOUT_MIN_MS
					     ? settings->request_timeout_ms
					     : STALL_TIMEOUT_MIN_MS;
}

int aws_settings_resolve(
	const struct aws_options *options, struct aws_settings **ret, struct problem *ret_problem)
{
	struct lookup lookup;
	struct aws_settings *settings = calloc(1, sizeof *settings);
	if (!settings)
		return problem_error(ret_problem, -ENOMEM, "out of memory");
	lookup_begin(options->profile, &settings->found, &lookup, ret_problem);
	struct credentials_options *access = &settings->access;
	const char *region = lookup_value(&lookup, &region_key, options->region);
	settings->region_is_default = !region;
	settings->region = region ? region : region_key.standard;
	set_terms(settings, &lookup);
	settings->s3_is_aws =
		set_endpoint(settings, &lookup, &s3_url_key, options->endpoint_url, &settings->s3);
	settings->dynamodb_is_aws = set_endpoint(settings, &lookup, &dynamodb_url_key,
		options->dynamodb_endpoint_url, &settings->dynamodb);
	settings->s3_endpoint = settings->s3.url;
	settings->dynamodb_endpoint = settings->dynamodb.url;
	set_endpoint(settings, &lookup, &sts_url_key, NULL, &access->sts);
	access->sso_endpoint = look_for_url(&lookup, &sso_url_key, NULL);
	access->sso_oidc_endpoint = look_for_url(&lookup, &sso_oidc_url_key, NULL);
	set_retries(settings, &lookup, options);
	set_checksum(settings, &lookup, options->checksum);
	settings->ca_bundle = lookup_value(&lookup, &ca_bundle_key, options->ca_bundle);
	access->profile = lookup.profile_name;
	access->profile_is_explicit = options->profile != NULL;
	access->credentials_path = lookup.credentials_path;
	access->config_path = lookup.config_path;
	access->terms = settings->terms;
	access->ca_bundle = settings->ca_bundle;
	access->patience_ms = PATIENCE_TIMEOUTS * settings->request_timeout_ms;
	int error = lookup.error;
	if (!error)
		error = credentials_chain_new(access, &settings->credentials);
	profile_clear(&lookup.profile);
	if (error == -ENOMEM) /* any other error has its sentence */
		problem_set(ret_problem, "out of memory");
	if (error)
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
	free(settings->access.sso_endpoint);
	free(settings->access.sso_oidc_endpoint);
	for (size_t i = 0; i < settings->found.n; i++) {
		free(settings->found.rows[i].value);
		free(settings->found.rows[i].from);
	}
	free(settings);
}

const char *aws_settings_service(const struct aws_settings *settings)
{
	return settings->s3_is_aws ? endpoint_partition(settings->region)
				   : strstr(settings->s3_endpoint, "://") + 3;
}
