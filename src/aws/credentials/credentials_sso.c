/* A role of IAM Identity Center, for the token of a login. Sources as in sso_token.h, and IAM
 * Identity Center Portal API Reference. */
#include "aws/credentials/credentials_http.h"
#include "aws/credentials/credentials_json.h"
#include "aws/credentials/credentials_profile.h"
#include "aws/credentials/sso_token.h"
#include "aws/sigv4.h"
#include "base/quote.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TOKEN_MAX_BYTES (16U << 10)
#define TIMEOUT_MS      10000
#define ATTEMPTS        3

/* The sso-session's before the profile's own. */
static const char *sso_setting(
	const struct profile *profile, const struct sso_session *session, const char *key)
{
	char section[300];
	const char *value = NULL;
	if (session->name && profile->config) {
		snprintf(section, sizeof section, "sso-session %s", session->name);
		value = ini_get(profile->config, section, key);
	}
	return value && *value ? value : profile_get(profile, key);
}

static int read_role(
	const struct http_reply *reply, struct credentials *ret, struct problem *ret_problem)
{
	json_t *object = json_load_secret(text_string(&reply->body), reply->body.len);
	const json_t *role = json_object_get(object, "roleCredentials");
	const char *access_key = json_word(role, "accessKeyId");
	const char *secret = json_word(role, "secretAccessKey");
	const int64_t until_s = json_integer_value(json_object_get(role, "expiration")) / 1000;
	int error = -EACCES;
	if (reply->status == 401) {
		problem_set(ret_problem, "the SSO token is refused: log in with `aws sso login`");
	} else if (reply->status != 200) {
		const char *message = object ? json_word(object, "message") : NULL;
		problem_set(ret_problem, "it answers with status %d%s%s", reply->status,
			message ? ": " : "", message ? quote(message).text : "");
	} else if (!access_key || !secret) {
		problem_set(ret_problem, "its reply has no credentials");
	} else {
		error = credentials_set(ret, access_key, secret, json_word(role, "sessionToken"),
			"SSO role", ret_problem);
		if (error == 0)
			ret->expires_s = until_s ? until_s - credentials_clock_offset_s(reply) : 0;
	}
	json_free_secret(object);
	return error;
}

static int ask_portal(struct credentials_loader *loader, const char *url, const char *token_line,
	struct credentials *ret, struct problem *ret_problem)
{
	const struct credentials_request request = {.method = "GET",
		.url = url,
		.headers = &token_line,
		.n_headers = 1,
		.timeout_ms = TIMEOUT_MS,
		.attempts = ATTEMPTS};
	struct http_reply reply = {0};
	int error = credentials_http(loader, &request, &reply, ret_problem);
	if (error == 0)
		error = read_role(&reply, ret, ret_problem);
	credentials_reply_clear(&reply);
	return error;
}

static int get_role(const struct profile_source *source, const struct sso_session *session,
	struct credentials *ret, struct problem *ret_problem)
{
	const char *account = profile_get(&source->profile, "sso_account_id");
	const char *role = profile_get(&source->profile, "sso_role_name");
	struct text url = TEXT(2048), line = TEXT(TOKEN_MAX_BYTES);
	if (!account || !role || !session->start_url || !session->region) {
		problem_set(ret_problem,
			"it needs sso_account_id, sso_role_name, sso_start_url and sso_region");
		return -EINVAL;
	}
	text_add(&line, "x-amz-sso_bearer_token: ");
	int error = sso_url("portal.sso", session->region, source->loader->sso_endpoint,
		"/federation/credentials?account_id=", &url, ret_problem);
	uri_encode(&url, account, strlen(account), 0);
	text_add(&url, "&role_name=");
	uri_encode(&url, role, strlen(role), 0);
	if (error == 0)
		error = sso_token_get(source->loader, session, &line, ret_problem);
	if (error == 0 && strpbrk(text_string(&line), "\r\n")) {
		problem_set(ret_problem, "the SSO token is malformed: log in with `aws sso login`");
		error = -EINVAL;
	}
	if (error == 0)
		error = ask_portal(source->loader, text_string(&url), line.data, ret, ret_problem);
	text_clear(&url);
	text_wipe(&line);
	return error;
}

int credentials_sso(
	const struct profile_source *source, struct credentials *ret, struct problem *ret_problem)
{
	const struct profile *profile = &source->profile;
	if (!profile_get(profile, "sso_account_id") && !profile_get(profile, "sso_role_name"))
		return -ENODATA;
	struct sso_session session = {.name = profile_get(profile, "sso_session")};
	session.start_url = sso_setting(profile, &session, "sso_start_url");
	session.region = sso_setting(profile, &session, "sso_region");
	int error = get_role(source, &session, ret, ret_problem);
	if (error)
		problem_prefix(ret_problem, "SSO of profile %s", quote(profile->name).text);
	return error == -ENODATA ? -EIO : error;
}
