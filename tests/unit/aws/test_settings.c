#include "../check.h"
#include "aws/call.h"
#include "aws/settings.h"
#include "base/clock.h"
#include "base/log.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char home[] = "/tmp/s3once-settings-XXXXXX";

static void write_file(const char *name, const char *content)
{
	char path[128];
	snprintf(path, sizeof path, "%s/.aws/%s", home, name);
	FILE *file = fopen(path, "w");
	CHECK(file && fputs(content, file) >= 0 && fclose(file) == 0);
}

static void fresh_environment(void)
{
	clearenv();
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	setenv("HOME", home, 1);
	write_file("config",
		"[default]\nregion = eu-north-1\n"
		"[profile work]\nregion = eu-west-1\nendpoint_url = http://work:1/base/\n"
		"s3 =\n  addressing_style = virtual\n"
		"[profile odd]\ns3 =\n  addressing_style = round\n"
		"[profile half]\naws_access_key_id = AKIAHALF\n");
	write_file("credentials",
		"[default]\naws_access_key_id = AKIADEFAULT\naws_secret_access_key = s1\n"
		"[work]\naws_access_key_id = AKIAWORK\naws_secret_access_key = s2\n"
		"aws_session_token = token2\n");
}

static struct aws_settings *resolve(const struct aws_options *options)
{
	struct aws_settings *settings = NULL;
	struct problem problem = {0};
	CHECK_INT(aws_settings_resolve(options, &settings, &problem), 0);
	CHECK_STRING(problem.text, "");
	return settings;
}

static void check_defaults(void)
{
	fresh_environment();
	setenv("HOME", "/nowhere", 1);
	struct aws_settings *settings = resolve(&(struct aws_options){0});
	CHECK_STRING(settings->region, "us-east-1");
	CHECK(settings->region_is_default);
	CHECK_STRING(settings->s3_endpoint, "https://s3.us-east-1.amazonaws.com");
	CHECK_STRING(settings->dynamodb_endpoint, "https://dynamodb.us-east-1.amazonaws.com");
	CHECK(settings->s3_is_aws && settings->dynamodb_is_aws &&
		settings->terms.style == STYLE_AUTO);
	CHECK_STRING(aws_settings_service(settings), "aws");
	CHECK_INT(settings->attempts, 9);
	CHECK_INT(settings->request_timeout_ms, 60000);
	CHECK_INT(settings->stall_timeout_ms, 60000);
	CHECK(settings->ca_bundle == NULL);
	aws_settings_free(settings);
	settings = resolve(&(struct aws_options){.request_timeout_ms = 1000});
	CHECK_INT(settings->request_timeout_ms, 1000);
	CHECK_INT(settings->stall_timeout_ms, 30000);
	aws_settings_free(settings);
}

static void check_region_of(const struct aws_options *options, const char *want)
{
	struct aws_settings *settings = resolve(options);
	CHECK_STRING(settings->region, want);
	CHECK(!settings->region_is_default);
	aws_settings_free(settings);
}

static void check_region_precedence(void)
{
	fresh_environment();
	check_region_of(&(struct aws_options){0}, "eu-north-1");
	check_region_of(&(struct aws_options){.profile = "work"}, "eu-west-1");
	setenv("AWS_PROFILE", "work", 1);
	check_region_of(&(struct aws_options){0}, "eu-west-1");
	check_region_of(&(struct aws_options){.profile = "default"}, "eu-north-1");
	setenv("AWS_DEFAULT_REGION", "ap-south-1", 1);
	check_region_of(&(struct aws_options){0}, "ap-south-1");
	setenv("AWS_REGION", "cn-north-1", 1);
	check_region_of(&(struct aws_options){0}, "cn-north-1");
	check_region_of(&(struct aws_options){.region = "us-west-2"}, "us-west-2");
}

static void check_endpoints_are(
	const struct aws_options *options, const char *s3, const char *dynamodb)
{
	struct aws_settings *settings = resolve(options);
	CHECK_STRING(settings->s3_endpoint, s3);
	CHECK_STRING(settings->dynamodb_endpoint, dynamodb);
	aws_settings_free(settings);
}

static void check_endpoint_precedence(void)
{
	const char *aws = "https://dynamodb.eu-north-1.amazonaws.com";
	fresh_environment();
	check_endpoints_are(&(struct aws_options){.endpoint_url = "http://o:1"}, "http://o:1", aws);
	check_endpoints_are(&(struct aws_options){.profile = "work"}, "http://work:1/base",
		"http://work:1/base");
	setenv("AWS_ENDPOINT_URL", "http://all:2/", 1);
	check_endpoints_are(
		&(struct aws_options){.profile = "work"}, "http://all:2", "http://all:2");
	setenv("AWS_ENDPOINT_URL_S3", "http://s3:3", 1);
	check_endpoints_are(&(struct aws_options){0}, "http://s3:3", "http://all:2");
	setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://db:4", 1);
	check_endpoints_are(&(struct aws_options){0}, "http://s3:3", "http://db:4");
	check_endpoints_are(&(struct aws_options){.endpoint_url = "http://o:1",
				    .dynamodb_endpoint_url = "http://o:2"},
		"http://o:1", "http://o:2");
}

static void check_services(void)
{
	const char *aws = "https://dynamodb.us-east-1.amazonaws.com";
	fresh_environment();
	write_file("config",
		"[default]\nservices = lab\nendpoint_url = http://all:1\n"
		"[profile one]\nservices = lab\nignore_configured_endpoint_urls = TRUE\n"
		"[services lab]\ns3 =\n  endpoint_url = http://lab:2\n");
	check_endpoints_are(&(struct aws_options){0}, "http://lab:2", "http://all:1");
	setenv("AWS_ENDPOINT_URL", "http://env:3", 1);
	check_endpoints_are(&(struct aws_options){0}, "http://env:3", "http://env:3");
	check_endpoints_are(&(struct aws_options){.profile = "one", .endpoint_url = "http://o:1"},
		"http://o:1", aws);
	setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true", 1);
	check_endpoints_are(&(struct aws_options){0}, "https://s3.us-east-1.amazonaws.com", aws);
}

static void check_terms(void)
{
	fresh_environment();
	setenv("AWS_USE_DUALSTACK_ENDPOINT", "true", 1);
	setenv("AWS_USE_FIPS_ENDPOINT", "True", 1);
	setenv("AWS_MAX_ATTEMPTS", "5", 1);
	setenv("AWS_STS_REGIONAL_ENDPOINTS", "legacy", 1);
	setenv("AWS_S3_USE_ARN_REGION", "false", 1);
	setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required", 1);
	write_file("config",
		"[default]\nmax_attempts = 7\n"
		"s3 =\n  use_dualstack_endpoint = false\n  payload_signing_enabled = true\n"
		"[profile fast]\nregion = eu-west-1\nuse_fips_endpoint = false\n"
		"max_attempts = 4\ns3 =\n  use_accelerate_endpoint = true\n");
	struct aws_settings *settings = resolve(&(struct aws_options){0});
	const struct endpoint_terms *terms = &settings->terms;
	CHECK(terms->dualstack && !terms->s3_dualstack && terms->fips && terms->keep_region);
	CHECK(terms->sts_global && settings->signs_payload);
	CHECK_INT(settings->checksum, CHECKSUM_MD5);
	CHECK_INT(settings->attempts, 5);
	CHECK_STRING(settings->s3_endpoint, "https://s3-fips.us-east-1.amazonaws.com");
	CHECK_STRING(settings->dynamodb_endpoint, "https://dynamodb-fips.us-east-1.api.aws");
	aws_settings_free(settings);
	clearenv();
	setenv("HOME", home, 1);
	settings = resolve(&(struct aws_options){.profile = "fast"});
	CHECK(settings->terms.accelerate && !settings->terms.fips && !settings->terms.keep_region);
	CHECK(!settings->signs_payload);
	CHECK_INT(settings->checksum, checksum_default());
	CHECK_INT(settings->attempts, 4);
	aws_settings_free(settings);
}

/* The option, the environment, "when_required", and what comes of them. */
static void check_checksum(void)
{
	static const struct {
		const char *option, *variable;
		bool when_required;
		int want; /* -1: the default */
	} rows[] = {
		{NULL, NULL, false, -1},
		{NULL, NULL, true, CHECKSUM_MD5},
		{"auto", "sha1", true, CHECKSUM_MD5},
		{"sha256", NULL, true, CHECKSUM_SHA256},
		{"crc32", "sha1", false, CHECKSUM_CRC32},
		{NULL, "CRC64NVME", true, CHECKSUM_CRC64NVME},
		{NULL, "auto", false, -1},
		{NULL, "", false, -1},
		{"md5", NULL, false, CHECKSUM_MD5},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		fresh_environment();
		if (rows[i].variable)
			setenv("S3ONCE_CHECKSUM", rows[i].variable, 1);
		if (rows[i].when_required)
			setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required", 1);
		struct aws_settings *settings =
			resolve(&(struct aws_options){.checksum = rows[i].option});
		CHECK_INT(settings->checksum,
			rows[i].want < 0 ? (int)checksum_default() : rows[i].want);
		aws_settings_free(settings);
	}
}

static void check_custom_endpoint(void)
{
	fresh_environment();
	struct aws_settings *settings =
		resolve(&(struct aws_options){.endpoint_url = "http://127.0.0.1:9000"});
	CHECK(!settings->s3_is_aws && settings->dynamodb_is_aws);
	CHECK_STRING(aws_settings_service(settings), "127.0.0.1:9000");
	aws_settings_free(settings);
	settings = resolve(&(struct aws_options){.profile = "work", .attempts = 3});
	CHECK_INT(settings->terms.style, STYLE_VIRTUAL);
	CHECK_INT(settings->attempts, 3);
	CHECK_STRING(aws_settings_service(settings), "work:1/base");
	aws_settings_free(settings);
	settings = resolve(&(struct aws_options){.region = "cn-north-1"});
	CHECK_STRING(aws_settings_service(settings), "aws-cn");
	aws_settings_free(settings);
}

static void check_refused(const struct aws_options *options, int error, const char *named)
{
	struct aws_settings *settings = NULL;
	struct problem problem = {0};
	CHECK_INT(aws_settings_resolve(options, &settings, &problem), error);
	CHECK(settings == NULL);
	if (!CHECK(strstr(problem.text, named) != NULL))
		fprintf(stderr, "\t%s does not name %s\n", problem.text, named);
}

static void check_errors(void)
{
	fresh_environment();
	check_refused(&(struct aws_options){.profile = "gone"}, -ENOENT, "profile gone in /tmp/");
	check_refused(&(struct aws_options){.profile = "g\x1b[2J"}, -ENOENT, "g\\x1b[2J");
	check_refused(&(struct aws_options){.profile = "odd"}, -EINVAL, "round");
	check_refused(&(struct aws_options){.region = "EU"}, -EINVAL, "EU is not a region");
	check_refused(&(struct aws_options){.endpoint_url = "ftp://h"}, -EINVAL, "ftp://h");
	check_refused(&(struct aws_options){.endpoint_url = "http://u:p@h"}, -EINVAL, "user name");
	setenv("AWS_USE_FIPS_ENDPOINT", "yes", 1);
	check_refused(&(struct aws_options){0}, -EINVAL,
		"AWS_USE_FIPS_ENDPOINT is yes: it must be false or true");
	unsetenv("AWS_USE_FIPS_ENDPOINT");
	setenv("AWS_MAX_ATTEMPTS", "0", 1);
	check_refused(&(struct aws_options){0}, -EINVAL, "a whole number from 1 to 1000");
	unsetenv("AWS_MAX_ATTEMPTS");
	setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "never", 1);
	check_refused(&(struct aws_options){0}, -EINVAL, "when_supported or when_required");
	unsetenv("AWS_REQUEST_CHECKSUM_CALCULATION");
	setenv("AWS_PROFILE", "gone", 1);
	check_refused(&(struct aws_options){0}, -ENOENT, "gone");
	fresh_environment();
	write_file("config", "[default]\nthis is no setting\n");
	check_refused(&(struct aws_options){0}, -EINVAL, "config, line 2");
	setenv("AWS_CONFIG_FILE", "/tmp", 1);
	check_refused(&(struct aws_options){0}, -EINVAL, "cannot read /tmp");
}

/* A value that is too long is not reported as lack of memory. */
static void check_too_long(void)
{
	static char name[100001], url[sizeof name + 32], config[sizeof url + 32];
	memset(name, 'x', sizeof name - 1);
	snprintf(url, sizeof url, "http://127.0.0.1/%s", name);
	snprintf(config, sizeof config, "[default]\nendpoint_url = %s\n", url);
	fresh_environment();
	write_file("config", config);
	check_refused(&(struct aws_options){0}, -EINVAL, "cannot be used: it is too long");
	check_refused(&(struct aws_options){.endpoint_url = url}, -EINVAL, "it is too long");
	fresh_environment();
	setenv("AWS_CONFIG_FILE", name, 1);
	check_refused(&(struct aws_options){0}, -EINVAL, "File name too long");
	fresh_environment();
	setenv("HOME", name, 1);
	check_refused(&(struct aws_options){0}, -EINVAL, "File name too long");
}

static void check_credentials(const struct aws_options *options, const char *access_key,
	const char *token, const char *sentence)
{
	struct aws_settings *settings = resolve(options);
	struct credentials credentials = {0};
	struct problem problem = {0};
	unsigned generation = 0;
	int error =
		credentials_get(settings->credentials, NULL, &credentials, &generation, &problem);
	CHECK_INT(error == 0, access_key != NULL);
	CHECK_STRING(credentials.access_key, access_key ? access_key : "");
	CHECK_STRING(credentials.session_token, token);
	if (!access_key && !CHECK(strstr(problem.text, sentence) != NULL))
		fprintf(stderr, "\t%s does not say %s\n", problem.text, sentence);
	credentials_wipe(&credentials);
	aws_settings_free(settings);
}

static void check_credentials_chain(void)
{
	fresh_environment();
	check_credentials(&(struct aws_options){0}, "AKIADEFAULT", NULL, NULL);
	check_credentials(&(struct aws_options){.profile = "work"}, "AKIAWORK", "token2", NULL);
	check_credentials(&(struct aws_options){.profile = "half"}, NULL, NULL,
		"profile half has aws_access_key_id");
}

static void check_credentials_environment(void)
{
	fresh_environment();
	setenv("AWS_ACCESS_KEY_ID", "AKIAENV", 1);
	check_credentials(&(struct aws_options){0}, NULL, NULL, "AWS_SECRET_ACCESS_KEY is not");
	setenv("AWS_SECRET_ACCESS_KEY", "s3", 1);
	check_credentials(&(struct aws_options){0}, "AKIAENV", NULL, NULL);
	setenv("AWS_SESSION_TOKEN", "token3", 1);
	check_credentials(&(struct aws_options){0}, "AKIAENV", "token3", NULL);
	setenv("AWS_PROFILE", "work", 1);
	check_credentials(&(struct aws_options){0}, "AKIAENV", "token3", NULL);
	check_credentials(&(struct aws_options){.profile = "work"}, "AKIAWORK", "token2", NULL);
	setenv("AWS_ACCESS_KEY_ID", "AKIA\r\nX: y", 1);
	check_credentials(&(struct aws_options){0}, NULL, NULL,
		"AWS_ACCESS_KEY_ID of the environment is malformed: it contains a carriage");
	fresh_environment();
	write_file("credentials", "");
	check_credentials(&(struct aws_options){0}, NULL, NULL,
		"no credentials: AWS_ACCESS_KEY_ID is not set; profile default has no ");
}

/* Refused ones are read again once; they help only if they are others now. */
static void check_refused_credentials(void)
{
	fresh_environment();
	struct aws_settings *settings = resolve(&(struct aws_options){0});
	struct credentials credentials = {0};
	unsigned generation = 0, later = 0;
	CHECK_INT(credentials_get(settings->credentials, NULL, &credentials, &generation, NULL), 0);
	credentials_wipe(&credentials);
	CHECK(!credentials_refused(settings->credentials, generation, true, NULL));
	CHECK_INT(credentials_generation(settings->credentials), generation);
	write_file("credentials",
		"[default]\naws_access_key_id = AKIANEW\naws_secret_access_key = s1\n");
	CHECK(credentials_refused(settings->credentials, generation, true, NULL));
	CHECK(credentials_refused(settings->credentials, generation, true, NULL));
	CHECK_INT(credentials_get(settings->credentials, NULL, &credentials, &later, NULL), 0);
	CHECK_STRING(credentials.access_key, "AKIANEW");
	credentials_wipe(&credentials);
	CHECK(later != generation);
	write_file("credentials", "");
	struct problem problem = {0};
	CHECK(credentials_refused(settings->credentials, later, true, NULL));
	CHECK_INT(credentials_get(settings->credentials, NULL, &credentials, &later, &problem),
		-ENODATA);
	CHECK(strstr(problem.text, "no credentials") != NULL);
	aws_settings_free(settings);
}

static void on_log(void *arg, enum log_level level, const char *line)
{
	if (level <= LOG_WARNING && strstr(line, "paused: the credentials"))
		++*(unsigned *)arg;
}

/* Those that a server had taken are waited for when it refuses them, as long as the patience lasts.
 */
static void check_pause(void)
{
	fresh_environment();
	char path[128];
	snprintf(path, sizeof path, "%s/.aws/credentials", home);
	const struct credentials_options options = {
		.profile = "default", .credentials_path = path, .patience_ms = 1500};
	const struct call_limits limits = {.deadline_ns = clock_boot_ns() + 100 * NS_PER_MS};
	struct credentials_chain *chain;
	struct credentials credentials = {0};
	struct problem problem = {0};
	unsigned generation = 0, later = 0, said = 0;
	log_set_sink(on_log, &said);
	CHECK_INT(credentials_chain_new(&options, &chain), 0);
	CHECK_INT(credentials_get(chain, NULL, &credentials, &generation, &problem), 0);
	credentials_wipe(&credentials);
	credentials_accepted(chain);
	CHECK(!credentials_refused(chain, generation, false, NULL));
	CHECK(credentials_refused(chain, generation, true, NULL));
	CHECK_INT(credentials_get(chain, &limits, &credentials, &later, &problem), -ECANCELED);
	CHECK_INT(credentials_get(chain, NULL, &credentials, &later, &problem), -EKEYEXPIRED);
	CHECK_STRING(
		problem.text, "no valid credentials for 1 s: the server refuses the credentials");
	write_file("credentials",
		"[default]\naws_access_key_id = AKIANEW\naws_secret_access_key = s1\n");
	int error = -EKEYEXPIRED;
	for (uint64_t end_ns = clock_boot_ns() + 20 * NS_PER_S; error && clock_boot_ns() < end_ns;)
		error = credentials_get(chain, NULL, &credentials, &later, &problem);
	CHECK_INT(error, 0);
	CHECK_STRING(credentials.access_key, "AKIANEW");
	credentials_wipe(&credentials);
	CHECK_INT(said, 1);
	credentials_chain_free(chain);
	log_set_sink(NULL, NULL);
}

int main(void)
{
	char folder[64];
	CHECK(mkdtemp(home) != NULL);
	snprintf(folder, sizeof folder, "%s/.aws", home);
	CHECK_INT(mkdir(folder, 0700), 0);
	check_defaults();
	check_region_precedence();
	check_endpoint_precedence();
	check_services();
	check_terms();
	check_checksum();
	check_custom_endpoint();
	check_errors();
	check_too_long();
	check_credentials_chain();
	check_credentials_environment();
	check_refused_credentials();
	check_pause();
	char path[128];
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, i ? "config" : "credentials");
		unlink(path);
	}
	rmdir(folder);
	rmdir(home);
	return check_result();
}
