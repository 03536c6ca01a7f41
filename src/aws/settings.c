#include "aws/settings.h"
#include "aws/endpoint.h"
#include "aws/profile.h"
#include "base/quote.h"
#include "base/text.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ATTEMPTS_DEFAULT           9
#define REQUEST_TIMEOUT_DEFAULT_MS 60000
#define PATIENCE_TIMEOUTS          5 /* requests that may time out while credentials are awaited */

/* What one resolving stands on. */
struct sources {
	const struct aws_options *options;
	struct profile profile;
	char *config_path, *credentials_path; /* owned; NULL without HOME */
	bool profile_asked_for;
};

static const char *variable(const char *name)
{
	const char *value = getenv(name);
	return value && *value ? value : NULL;
}

static const char *first_of(const char *a, const char *b)
{
	return a ? a : b;
}

/* The path in the variable, or the file in ~/.aws; "~/" is HOME in both. 0 or -ENOMEM; *ret stays
 * NULL if there is no HOME to find it in. */
static int aws_file(const char *variable_name, const char *standard, char **ret)
{
	const char *path = first_of(variable(variable_name), standard);
	const char *home = variable("HOME");
	if (strncmp(path, "~/", 2) == 0 && !home)
		return 0;
	struct text text = TEXT(4096);
	if (strncmp(path, "~/", 2) == 0)
		text_addf(&text, "%s%s", home, path + 1);
	else
		text_add(&text, path);
	*ret = text.error ? NULL : strdup(text_string(&text));
	text_clear(&text);
	return *ret ? 0 : -ENOMEM;
}

static int sources_load(
	const struct aws_options *options, struct sources *ret, struct problem *ret_problem)
{
	const char *named = first_of(options->profile, variable("AWS_PROFILE"));
	ret->options = options;
	ret->profile_asked_for = named != NULL;
	if (aws_file("AWS_CONFIG_FILE", "~/.aws/config", &ret->config_path) < 0 ||
		aws_file("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials",
			&ret->credentials_path) < 0)
		return -ENOMEM;
	/* What ret holds is freed by sources_clear. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
	int error = profile_load(first_of(named, "default"), ret->config_path,
		ret->credentials_path, &ret->profile, ret_problem);
	if (error < 0)
		return error;
	if (ret->profile_asked_for && !profile_exists(&ret->profile)) {
		problem_set(ret_problem, "there is no profile %s in %s or %s", quote(named).text,
			quote(first_of(ret->config_path, "~/.aws/config")).text,
			quote(first_of(ret->credentials_path, "~/.aws/credentials")).text);
		return -ENOENT;
	}
	return 0;
}

static void sources_clear(struct sources *sources)
{
	profile_clear(&sources->profile);
	free(sources->config_path);
	free(sources->credentials_path);
}

static int set_region(
	struct aws_settings *settings, const struct sources *sources, struct problem *ret_problem)
{
	const char *region = first_of(sources->options->region,
		first_of(
			variable("AWS_REGION"), first_of(variable("AWS_DEFAULT_REGION"),
							profile_get(&sources->profile, "region"))));
	settings->region_is_default = !region;
	char url[256];
	if (region && endpoint_aws_url("s3", region, url, sizeof(url)) < 0) {
		problem_set(ret_problem, "%s is no region: name one like eu-west-1",
			quote(region).text);
		return -EINVAL;
	}
	settings->region = strdup(first_of(region, "us-east-1"));
	return settings->region ? 0 : -ENOMEM;
}

struct endpoint_choice {
	const char *service, *option, *variable_name;
};

/* The service's own URL before the one for all services. */
static int choose_endpoint(const struct sources *sources, const struct endpoint_choice *choice,
	const char *region, char **ret, bool *ret_is_aws, struct problem *ret_problem)
{
	const char *url = first_of(
		choice->option, first_of(variable(choice->variable_name),
					first_of(variable("AWS_ENDPOINT_URL"),
						profile_get(&sources->profile, "endpoint_url"))));
	*ret_is_aws = !url;
	if (!url) {
		char aws[256];
		int error = endpoint_aws_url(choice->service, region, aws, sizeof(aws));
		*ret = error < 0 ? NULL : strdup(aws);
		return error < 0 ? error : *ret ? 0 : -ENOMEM;
	}
	const char *why = NULL;
	int error = endpoint_parse_url(url, ret, &why);
	if (error == -EINVAL)
		problem_set(ret_problem, "the endpoint URL %s cannot be used: %s", quote(url).text,
			why);
	return error;
}

static int set_endpoints(
	struct aws_settings *settings, const struct sources *sources, struct problem *ret_problem)
{
	const struct endpoint_choice s3 = {
		"s3", sources->options->endpoint_url, "AWS_ENDPOINT_URL_S3"};
	const struct endpoint_choice dynamodb = {
		"dynamodb", sources->options->dynamodb_endpoint_url, "AWS_ENDPOINT_URL_DYNAMODB"};
	int error = choose_endpoint(sources, &s3, settings->region, &settings->s3_endpoint,
		&settings->s3_is_aws, ret_problem);
	if (error == 0)
		error = choose_endpoint(sources, &dynamodb, settings->region,
			&settings->dynamodb_endpoint, &settings->dynamodb_is_aws, ret_problem);
	if (error < 0)
		return error;
	settings->partition =
		strdup(settings->s3_is_aws ? endpoint_partition(settings->region) : "");
	return settings->partition ? 0 : -ENOMEM;
}

/* With "legacy" the older regions share the one endpoint of all. Source: "AWS STS Regional
 * endpoints" of the AWS SDKs and Tools Reference Guide. */
static bool uses_global_sts(const struct sources *sources, const char *region)
{
	static const char *const older[] = {"ap-northeast-1", "ap-south-1", "ap-southeast-1",
		"ap-southeast-2", "ca-central-1", "eu-central-1", "eu-north-1", "eu-west-1",
		"eu-west-2", "eu-west-3", "sa-east-1", "us-east-1", "us-east-2", "us-west-1",
		"us-west-2"};
	const char *mode = first_of(variable("AWS_STS_REGIONAL_ENDPOINTS"),
		profile_get(&sources->profile, "sts_regional_endpoints"));
	bool is_older = false;
	for (size_t i = 0; i < sizeof(older) / sizeof(*older); i++)
		is_older = is_older || strcmp(older[i], region) == 0;
	return mode && strcmp(mode, "legacy") == 0 && is_older;
}

static int set_sts(
	struct aws_settings *settings, const struct sources *sources, struct problem *ret_problem)
{
	const struct endpoint_choice sts = {"sts", NULL, "AWS_ENDPOINT_URL_STS"};
	bool is_aws = false;
	int error = choose_endpoint(
		sources, &sts, settings->region, &settings->sts_endpoint, &is_aws, ret_problem);
	bool is_global = error == 0 && is_aws && uses_global_sts(sources, settings->region);
	if (is_global) {
		free(settings->sts_endpoint);
		settings->sts_endpoint = strdup("https://sts.amazonaws.com");
	}
	settings->sts_region = strdup(is_global ? "us-east-1" : settings->region);
	if (error == 0 && (!settings->sts_endpoint || !settings->sts_region))
		error = -ENOMEM;
	return error;
}

static int set_style(
	struct aws_settings *settings, const struct sources *sources, struct problem *ret_problem)
{
	const char *style = profile_get(&sources->profile, "s3.addressing_style");
	settings->path_style = !settings->s3_is_aws;
	if (!style || strcmp(style, "auto") == 0)
		return 0;
	settings->path_style = strcmp(style, "path") == 0;
	if (settings->path_style || strcmp(style, "virtual") == 0)
		return 0;
	problem_set(ret_problem,
		"profile %s: addressing_style is %s; it must be path, virtual or "
		"auto",
		quote(sources->profile.name).text, quote(style).text);
	return -EINVAL;
}

static int set_rest(struct aws_settings *settings, const struct sources *sources)
{
	const struct aws_options *options = sources->options;
	const char *ca_bundle = first_of(options->ca_bundle,
		first_of(variable("AWS_CA_BUNDLE"), profile_get(&sources->profile, "ca_bundle")));
	if (ca_bundle && !(settings->ca_bundle = strdup(ca_bundle)))
		return -ENOMEM;
	settings->attempts = options->attempts ? options->attempts : ATTEMPTS_DEFAULT;
	settings->request_timeout_ms = options->request_timeout_ms ? options->request_timeout_ms
								   : REQUEST_TIMEOUT_DEFAULT_MS;
	const struct credentials_options credentials = {
		.profile = sources->profile.name,
		.profile_is_explicit = options->profile != NULL,
		.credentials_path = sources->credentials_path,
		.config_path = sources->config_path,
		.sts_endpoint = settings->sts_endpoint,
		.sts_region = settings->sts_region,
		.ca_bundle = settings->ca_bundle,
		.patience_ms = PATIENCE_TIMEOUTS * settings->request_timeout_ms,
	};
	return credentials_chain_new(&credentials, &settings->credentials);
}

int aws_settings_resolve(
	const struct aws_options *options, struct aws_settings **ret, struct problem *ret_problem)
{
	struct sources sources = {0};
	struct aws_settings *settings = calloc(1, sizeof(*settings));
	int error = settings ? sources_load(options, &sources, ret_problem) : -ENOMEM;
	if (error == 0)
		error = set_region(settings, &sources, ret_problem);
	if (error == 0)
		error = set_endpoints(settings, &sources, ret_problem);
	if (error == 0)
		error = set_sts(settings, &sources, ret_problem);
	if (error == 0)
		error = set_style(settings, &sources, ret_problem);
	if (error == 0)
		error = set_rest(settings, &sources);
	sources_clear(&sources);
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
	free(settings->region);
	free(settings->s3_endpoint);
	free(settings->dynamodb_endpoint);
	free(settings->sts_endpoint);
	free(settings->sts_region);
	free(settings->partition);
	free(settings->ca_bundle);
	credentials_chain_free(settings->credentials);
	free(settings);
}

const char *aws_settings_service(const struct aws_settings *settings)
{
	if (settings->s3_is_aws)
		return settings->partition;
	return strstr(settings->s3_endpoint, "://") + 3;
}
