/* Credentials of a container. Source: "Container credential provider" of the AWS SDKs and Tools
 * Reference Guide. */
#include "aws/credentials/credentials_providers.h"
#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define ECS_AGENT       "http://169.254.170.2"
#define TIMEOUT_MS      2000 /* this and ATTEMPTS are those of botocore */
#define ATTEMPTS        3
#define TOKEN_MAX_BYTES (16U << 10)

#define RELATIVE_URI "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
#define FULL_URI     "AWS_CONTAINER_CREDENTIALS_FULL_URI"
#define TOKEN        "AWS_CONTAINER_AUTHORIZATION_TOKEN"
#define TOKEN_FILE   "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"

/* Whether the host is this one, or the agent of ECS or EKS. curl has written it: an IPv6 address is
 * in brackets. */
static bool is_agent(const char *host)
{
	static const char *const agents[] = {
		"localhost", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]", "[::1]"};
	struct in_addr v4;
	for (size_t i = 0; i < sizeof agents / sizeof *agents; i++)
		if (strcasecmp(host, agents[i]) == 0)
			return true;
	return inet_pton(AF_INET, host, &v4) == 1 &&
	       ntohl(v4.s_addr) >> 24 == 127; /* 127.0.0.0/8 */
}

/* Whether the token may be sent to this URL. By http it is sent to an agent alone, since it would
 * go in the clear to any other host that the variable names. */
static bool may_get_token(const char *url)
{
	CURLU *parsed = curl_url();
	char *scheme = NULL, *host = NULL;
	bool allowed = false;
	if (parsed && curl_url_set(parsed, CURLUPART_URL, url, 0) == CURLUE_OK &&
		curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
		curl_url_get(parsed, CURLUPART_HOST, &host, 0) == CURLUE_OK)
		allowed = strcmp(scheme, "https") == 0 ||
			  (strcmp(scheme, "http") == 0 && is_agent(host));
	curl_free(scheme);
	curl_free(host);
	curl_url_cleanup(parsed);
	return allowed;
}

/* Writes the URL of the agent that has the credentials, as the environment names it. Returns 0;
 * -ENODATA if it names none; or -EINVAL; each error with a sentence. */
static int find_url(struct text *ret, struct problem *ret_problem)
{
	const char *relative = lookup_variable(RELATIVE_URI);
	const char *full = lookup_variable(FULL_URI);
	if (!relative && !full)
		return problem_error(
			ret_problem, -ENODATA, RELATIVE_URI " and _FULL_URI are not set");
	if (relative && relative[0] != '/')
		return problem_error(
			ret_problem, -EINVAL, RELATIVE_URI " does not begin with a slash");
	/* If both are set, the relative one counts, as in AWS's tools. */
	text_addf(ret, "%s%s", relative ? ECS_AGENT : full, relative ? relative : "");
	if (!ret->error && may_get_token(text_string(ret)))
		return 0;
	return problem_error(ret_problem, -EINVAL,
		FULL_URI " is %s: it must be https, or on a loopback address, 169.254.170.2, "
			 "169.254.170.23 or [fd00:ec2::23]",
		quote_url(full ? full : relative).text);
}

/* Writes the Authorization header line, or nothing if no token is configured. Returns 0 or -errno
 * with a sentence. */
static int add_authorization(struct text *ret, struct problem *ret_problem)
{
	const char *path = lookup_variable(TOKEN_FILE), *token = lookup_variable(TOKEN);
	if (!path && !token)
		return 0;
	text_add(ret, "Authorization: ");
	/* The file is replaced from time to time, so each load reads it. */
	int error = path ? secret_file_read(path, ret, ret_problem) : 0;
	if (!path)
		text_add(ret, token);
	if (error)
		problem_prefix(ret_problem, TOKEN_FILE);
	if (error == 0 && (ret->error || strpbrk(text_string(ret), "\r\n")))
		error = problem_error(ret_problem, -EINVAL,
			"%s is malformed: it has several lines, or is too long",
			path ? TOKEN_FILE : TOKEN);
	return error;
}

int credentials_container(
	struct credentials_providers *loader, struct credentials *ret, struct problem *ret_problem)
{
	struct text url = TEXT(4096), authorization = TEXT(TOKEN_MAX_BYTES);
	struct http_reply reply = {0};
	int error = find_url(&url, ret_problem);
	if (error == 0)
		error = add_authorization(&authorization, ret_problem);
	/* The errors up to here name the variable. Later ones get the URL in front. */
	const bool is_configured = error == 0;
	const char *const headers[] = {"Accept: application/json", text_string(&authorization)};
	const struct http_request request = {.method = "GET",
		.url = text_string(&url),
		.headers = headers,
		.n_headers = authorization.len ? 2 : 1,
		.no_proxy = true};
	if (error == 0)
		error = credentials_http(
			loader, request, TIMEOUT_MS, ATTEMPTS, &reply, ret_problem);
	if (error == 0)
		error = credentials_from_reply(&reply, FORM_AGENT, ret, ret_problem);
	if (error && is_configured)
		problem_prefix(ret_problem, "the credentials of the container from %s",
			quote_url(text_string(&url)).text);
	http_reply_clear(&reply);
	text_clear(&url);
	text_wipe(&authorization);
	return error;
}
