/* Credentials of the role of an EC2 instance, from its metadata service. Version 2 of the service
 * needs a token, which is requested first. Source: "Use IMDS" and "IMDS credential provider" of
 * AWS's guides. */
#include "aws/credentials/credentials_providers.h"
#include "aws/endpoint.h"
#include "base/clock.h"
#include <errno.h>
#include <string.h>
#include <strings.h>

#define EXTENSION_S    600 /* the time for which expired credentials are still used */
#define ROLE_MAX_BYTES 256
#define ROLES          "/latest/meta-data/iam/security-credentials/"
/* The lifetime of the token in seconds: the longest that IMDS allows. */
#define TTL_HEADER "X-aws-ec2-metadata-token-ttl-seconds: 21600"

struct imds {
	struct credentials_providers *loader;
	char url[300];           /* without a slash at its end */
	struct text token;       /* the header line; empty: version 1 */
	struct http_reply reply; /* the reply to the last request */
	uint64_t timeout_ms;
	unsigned attempts;
	bool allows_v1;
};

/* Returns the variable's value, or else the value of the profile's key, or NULL. Borrowed. */
static const char *metadata_setting(
	const struct profile *profile, const char *variable_name, const char *key)
{
	const char *value = lookup_variable(variable_name);
	return value ? value : profile_get(profile, key);
}

/* Reads a setting as a number from 1 to `max`: a smaller one counts as 1, a greater one as `max`.
 * It is 1 if it is not set. Returns 0, or -EINVAL with a sentence. */
static int number_setting(const struct profile *profile, const char *variable_name, const char *key,
	uint64_t max, uint64_t *ret, struct problem *ret_problem)
{
	const char *value = metadata_setting(profile, variable_name, key);
	uint64_t n = 1;
	if (value && !decimal_read(value, UINT64_MAX, &n))
		return problem_error(ret_problem, -EINVAL,
			"%s is %s: it must be a number from 1 to %llu", variable_name,
			quote(value).text, (unsigned long long)max);
	*ret = n < 1 ? 1 : n > max ? max : n;
	return 0;
}

/* Writes the service's URL, without a slash at its end, as the environment or the profile names it.
 * Returns 0, or -EINVAL with a sentence. */
static int choose_url(
	const struct profile *profile, struct imds *service, struct problem *ret_problem)
{
	const char *url = metadata_setting(
		profile, "AWS_EC2_METADATA_SERVICE_ENDPOINT", "ec2_metadata_service_endpoint");
	const char *mode = metadata_setting(profile, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE",
		"ec2_metadata_service_endpoint_mode");
	const bool is_v6 = mode && strcasecmp(mode, "ipv6") == 0;
	if (mode && !is_v6 && strcasecmp(mode, "ipv4") != 0)
		return problem_error(ret_problem, -EINVAL,
			"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE is %s: it must be IPv4 or IPv6",
			quote(mode).text);
	if (!url)
		url = is_v6 ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
	size_t n = strlen(url);
	if (n >= sizeof service->url)
		return problem_error(
			ret_problem, -EINVAL, "AWS_EC2_METADATA_SERVICE_ENDPOINT is too long");
	while (n && url[n - 1] == '/')
		n--;
	snprintf(service->url, sizeof service->url, "%.*s", (int)n, url);
	return 0;
}

/* Fills the fields of *service that the environment and the profile decide. Returns 0, or -errno
 * with a sentence. */
static int configure_service(struct imds *service, struct problem *ret_problem)
{
	struct credentials_providers *loader = service->loader;
	struct profile profile;
	int error = profile_load(loader->options.profile, loader->options.config_path,
		loader->options.credentials_path, &profile, ret_problem);
	if (error)
		return error;
	const char *v1_disabled = metadata_setting(
		&profile, "AWS_EC2_METADATA_V1_DISABLED", "ec2_metadata_v1_disabled");
	service->allows_v1 = v1_disabled && strcasecmp(v1_disabled, "false") == 0;
	uint64_t timeout_s = 1, attempts = 1;
	error = number_setting(&profile, "AWS_METADATA_SERVICE_TIMEOUT", "metadata_service_timeout",
		60, &timeout_s, ret_problem);
	if (!error)
		error = number_setting(&profile, "AWS_METADATA_SERVICE_NUM_ATTEMPTS",
			"metadata_service_num_attempts", 10, &attempts, ret_problem);
	service->timeout_ms = 1000 * timeout_s;
	service->attempts = (unsigned)attempts;
	if (!error)
		error = choose_url(&profile, service, ret_problem);
	profile_clear(&profile);
	return error;
}

/* Sends a request for `name` below `path`, with this header line, or with none if it is "". Leaves
 * the reply in service->reply. Returns 0 if there is a reply of any status, or -errno. */
static int query_imds(struct imds *service, const char *method, const char *path, const char *name,
	const char *header, struct problem *ret_problem)
{
	struct text url = TEXT(1024);
	text_addf(&url, "%s%s%s", service->url, path, name);
	const struct http_request request = {.method = method,
		.url = text_string(&url),
		.headers = &header,
		.n_headers = *header ? 1 : 0,
		.no_proxy = true};
	int error = url.error ? -EINVAL
			      : credentials_http(service->loader, request, service->timeout_ms,
					service->attempts, &service->reply, ret_problem);
	text_clear(&url);
	return error;
}

/* Whether the text has 1 to `max` characters, all of them visible ASCII. */
static bool is_visible_word(const struct text *text, size_t max)
{
	return text->len > 0 && text->len <= max && strlen(text->data) == text->len &&
	       is_graphic(text->data);
}

/* Requests the token of version 2, and makes a header line of it. A reply without a token is
 * -ENODATA, or -EACCES if the service may have one later. */
static int get_token(struct imds *service, struct problem *ret_problem)
{
	const struct http_reply *reply = &service->reply;
	int error = query_imds(service, "PUT", "/latest/api/token", "", TTL_HEADER, ret_problem);
	if (error)
		return error;
	/* On other clouds, another service answers at this address. That is no error: -ENODATA lets
	 * the next provider be tried. */
	const bool may_have_one_later = reply->status == 429 || reply->status >= 500;
	if (reply->status != 200 || !is_visible_word(&reply->body, 1024))
		return problem_error(ret_problem, may_have_one_later ? -EACCES : -ENODATA,
			"it returned no token (status %d)", reply->status);
	text_addf(&service->token, "X-aws-ec2-metadata-token: %s", reply->body.data);
	return service->token.error
		       ? problem_error(ret_problem, service->token.error, "out of memory")
		       : 0;
}

/* Adds the name of the role to ret: the first line of the list, since an instance has one role.
 * Returns 0, -ENODATA if the instance has none, or another -errno, each with a sentence. */
static int get_role(struct imds *service, struct text *ret, struct problem *ret_problem)
{
	const struct http_reply *reply = &service->reply;
	int error =
		query_imds(service, "GET", ROLES, "", text_string(&service->token), ret_problem);
	if (error)
		return error;
	const char *list = text_string(&reply->body);
	if (reply->status == 200)
		text_add_bytes(ret, list, strcspn(list, "\r\n"));
	if (reply->status == 404 || (reply->status == 200 && !ret->len))
		return problem_error(ret_problem, -ENODATA, "the instance has no role");
	if (reply->status != 200 || !is_visible_word(ret, ROLE_MAX_BYTES))
		return problem_error(ret_problem, -EACCES, "it does not name the role (status %d)",
			reply->status);
	return 0;
}

/* Requests the credentials of the role. */
static int get_credentials(struct imds *service, const char *role, struct credentials *ret,
	struct problem *ret_problem)
{
	int error =
		query_imds(service, "GET", ROLES, role, text_string(&service->token), ret_problem);
	if (error == 0)
		error = credentials_from_reply(&service->reply, FORM_AGENT, ret, ret_problem);
	/* While its own sources are out of order, the service hands out the last credentials again.
	 * They are used for EXTENSION_S longer, as AWS asks of its SDKs. The clock is read only
	 * now, since the attempts before the reply may have taken long. */
	const int64_t now_s = clock_wall_s();
	if (error == 0 && ret->expires_s && ret->expires_s <= now_s)
		ret->expires_s = now_s + EXTENSION_S;
	return error;
}

int credentials_imds(
	struct credentials_providers *loader, struct credentials *ret, struct problem *ret_problem)
{
	/* A token has at most 1,024 bytes, and the name of its header comes before it. */
	struct imds service = {.loader = loader, .token = TEXT(1100)};
	struct text role = TEXT(ROLE_MAX_BYTES + 1);
	const char *disabled = lookup_variable("AWS_EC2_METADATA_DISABLED");
	if (disabled && strcasecmp(disabled, "true") == 0)
		return problem_error(ret_problem, -ENODATA, "AWS_EC2_METADATA_DISABLED is set");
	int error = configure_service(&service, ret_problem);
	if (error) /* The texts own nothing so far. */
		return error;
	error = get_token(&service, ret_problem);
	/* Without a token, version 1 is used if the settings allow it explicitly. Its requests have
	 * no header line, as service.token stays empty. */
	if (error && error != -ECANCELED && service.allows_v1)
		error = 0;
	if (error == 0)
		error = get_role(&service, &role, ret_problem);
	if (error == 0)
		error = get_credentials(&service, text_string(&role), ret, ret_problem);
	/* Without an answer this provider does not apply: the host is not on EC2. A timeout may
	 * also mean that a container is one network hop too far away for the reply with the token.
	 */
	const bool is_silent = error == -ETIMEDOUT || error == -ECONNREFUSED || error == -ENOENT ||
			       error == -ECONNRESET;
	if (is_silent)
		error = problem_error(ret_problem, -ENODATA, "nobody answers%s",
			error == -ETIMEDOUT ? " (in a container its hop limit must be 2)" : "");
	if (error)
		problem_prefix(ret_problem, "EC2 metadata at %s", quote_url(service.url).text);
	text_clear(&role);
	text_wipe(&service.token);
	http_reply_clear(&service.reply);
	return error;
}
