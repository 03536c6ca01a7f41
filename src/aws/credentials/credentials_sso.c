/* Loads credentials of IAM Identity Center (SSO). Takes the token that `aws sso login` has left,
 * and exchanges it for the credentials of a role. Before that, a token that is about to expire is
 * refreshed if that needs no person. Sources: "IAM Identity Center credential provider" of the AWS
 * SDKs and Tools Reference Guide, and the IAM Identity Center Portal API Reference. */
#include "aws/credentials/credentials_providers.h"
#include "aws/endpoint.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX_BYTES  (64U << 10)
#define RENEW_AHEAD_S   (15 * 60)
#define TOKEN_MAX_BYTES (16U << 10)
#define LIFE_MAX_S      (100LL * 365 * 24 * 3600) /* a longer one may end after the year 9999 */
#define TIMEOUT_MS      10000
#define ATTEMPTS        3

/* The session that `aws sso login` has begun. Source: "IAM Identity Center credential provider" of
 * the AWS SDKs and Tools Reference Guide, IAM Identity Center OIDC API Reference. */
struct sso_session {
	/* The name of the sso-session. NULL: there is none, and the file of the token is named
	 * after the start URL instead. */
	const char *name;
	const char *start_url, *region;
};

/* Writes the URL of a path at a service: at the custom endpoint, or, if that is NULL, at AWS's
 * endpoint of the service ("portal.sso", "oidc") in this region. Returns 0, or -EINVAL with a
 * sentence, which is missing if the URL is too long or there is no memory. */
static int sso_url(const struct credentials_providers *loader, const char *service,
	const char *region, const char *custom, const char *path, struct text *ret,
	struct problem *ret_problem)
{
	const struct endpoint_question question = {
		.service = service, .region = region, .terms = loader->options.terms};
	struct endpoint endpoint;
	if (!custom && endpoint_resolve(&question, &endpoint, ret_problem) < 0) {
		problem_prefix(ret_problem, "sso_region");
		return -EINVAL;
	}
	text_addf(ret, "%s%s", custom ? custom : endpoint.url, path);
	return ret->error ? -EINVAL : 0;
}

/* Parses a time of the token file, in which AWS's tools have written "UTC" for "Z". Returns seconds
 * since 1970, or a negative number if s is NULL or no time. */
static int64_t time_of(const char *s)
{
	char copy[64];
	size_t n = s ? strlen(s) : 0;
	if (n < 3 || n >= sizeof copy)
		return -EINVAL;
	strcpy(copy, s);
	if (strcmp(copy + n - 3, "UTC") == 0)
		strcpy(copy + n - 3, "Z");
	return clock_parse_iso(copy);
}

/* Replaces the token file in one step, since other programs read it. Returns 0 or -errno. */
static int write_file(const char *path, const json_t *object)
{
	char *bytes = json_dumps(object, JSON_COMPACT);
	const int error =
		bytes ? replace_file(path, bytes, strlen(bytes), 0600, REPLACE_UNSYNCED) : -ENOMEM;
	if (bytes)
		OPENSSL_cleanse(bytes, strlen(bytes));
	free(bytes);
	return error;
}

/* Sends the refresh token, and asks for a new access token. Returns 0 if there is a reply of any
 * status. Otherwise nothing was sent, or no reply came; the problem may be empty then. */
static int request_token(struct credentials_providers *loader, const struct sso_session *session,
	const json_t *token, struct http_reply *ret, struct problem *ret_problem)
{
	struct text url = TEXT(1024);
	json_t *asked = json_pack("{ssssssss}", "grantType", "refresh_token", "clientId",
		json_word(token, "clientId"), "clientSecret", json_word(token, "clientSecret"),
		"refreshToken", json_word(token, "refreshToken"));
	/* `asked` or `body` is NULL if there is no memory. */
	char *body = asked ? json_dumps(asked, JSON_COMPACT) : NULL;
	const size_t n = body ? strlen(body) : 0;
	int error = sso_url(loader, "oidc", session->region, loader->options.sso_oidc_endpoint,
		"/token", &url, ret_problem);
	if (!error && !body)
		error = -ENOMEM;
	if (!error) {
		const struct http_request request = {.method = "POST",
			.url = text_string(&url),
			.headers = (const char *const[]){"Content-Type: application/json"},
			.n_headers = 1,
			.body = {.bytes = n, .memory = body}};
		error = credentials_http(loader, request, TIMEOUT_MS, ATTEMPTS, ret, ret_problem);
	}
	if (body)
		OPENSSL_cleanse(body, n);
	free(body);
	json_free_secret(asked);
	text_clear(&url);
	return error;
}

/* Puts the tokens of a reply, which was requested at now_s, into `token`. Returns whether the reply
 * has an access token, and memory sufficed. */
static bool update_token(json_t *token, const json_t *reply, int64_t now_s)
{
	const char *access = json_word(reply, "accessToken");
	const char *refresh = json_word(reply, "refreshToken");
	const json_int_t seconds = json_integer_value(json_object_get(reply, "expiresIn"));
	char until[21];
	if (!access || seconds <= 0 || seconds > LIFE_MAX_S)
		return false;
	clock_format_iso(now_s + seconds, until);
	return !json_object_set_new(token, "accessToken", json_string(access)) &&
	       !json_object_set_new(token, "expiresAt", json_string(until)) &&
	       (!refresh || !json_object_set_new(token, "refreshToken", json_string(refresh)));
}

/* Exchanges the refresh token for a new access token, with which `token` and the file at `path` are
 * updated. Failures are only logged, since the present access token may still be good. */
static void renew_token(struct credentials_providers *loader, const struct sso_session *session,
	const char *path, json_t *token)
{
	const int64_t now_s = clock_wall_s();
	struct http_reply reply = {0};
	struct problem problem = {0};
	const int error = request_token(loader, session, token, &reply, &problem);
	json_t *made = (!error && reply.status == 200) ? json_load_secret(&reply.body) : NULL;
	const bool is_renewed = update_token(token, made, now_s);
	json_free_secret(made);
	if (!is_renewed)
		log_info("the SSO token cannot be renewed (status %d) %s", reply.status,
			problem.text);
	else if (write_file(path, token) < 0)
		log_warning(
			"cannot write the renewed SSO token to %s: the next login is due earlier",
			quote(path).text);
	http_reply_clear(&reply);
}

/* Adds to ret the path of the file in which `aws sso login` keeps the token of this session. AWS's
 * tools name it after the SHA-1 of the session's name. */
static void add_token_path(struct text *ret, const struct sso_session *session)
{
	const char *home = lookup_variable("HOME");
	const char *name = session->name ? session->name : session->start_url;
	unsigned char digest[SHA_DIGEST_LENGTH];
	char hex[2 * SHA_DIGEST_LENGTH + 1];
	SHA1((const unsigned char *)name, strlen(name), digest);
	hex_encode(digest, sizeof digest, hex);
	text_addf(ret, "%s/.aws/sso/cache/%s.json", home ? home : "", hex);
}

/* Adds to ret (wipe it) the access token that `aws sso login` has left in a file. Returns 0, or
 * -errno with a sentence that says how to log in.
 *
 * The token of an sso-session that has less than 15 minutes left is renewed, and its file written,
 * if that needs no person. */
static int sso_token_get(struct credentials_providers *loader, const struct sso_session *session,
	struct text *ret, struct problem *ret_problem)
{
	const int64_t now_s = clock_wall_s();
	struct text path = TEXT(4096), text = TEXT(FILE_MAX_BYTES);
	json_t *token = NULL;
	add_token_path(&path, session);
	if (!path.error && secret_file_read(path.data, &text, NULL) == 0)
		token = json_load_secret(&text);
	text_wipe(&text);
	const bool has_secrets = json_word(token, "refreshToken") && json_word(token, "clientId") &&
				 json_word(token, "clientSecret");
	const bool is_renewable = session->name && has_secrets &&
				  time_of(json_word(token, "registrationExpiresAt")) > now_s;
	/* A time that is missing is negative, so such a token is renewed, or has expired. */
	if (is_renewable && time_of(json_word(token, "expiresAt")) - now_s < RENEW_AHEAD_S)
		renew_token(loader, session, path.data, token);
	const char *access = json_word(token, "accessToken");
	const bool is_good = access && time_of(json_word(token, "expiresAt")) > now_s;
	if (is_good)
		text_add(ret, access);
	else
		problem_set(ret_problem, "%s: log in with `aws sso login`",
			!token ? "there is no SSO token" : "the SSO token has expired");
	json_free_secret(token);
	text_clear(&path);
	return !is_good ? -EKEYEXPIRED : ret->error ? -EINVAL : 0;
}

/* Returns the value of a key in the sso-session, or else in the profile, or NULL. Borrowed. */
static const char *sso_setting(
	const struct profile *profile, const struct sso_session *session, const char *key)
{
	char section[300];
	const char *value = NULL;
	if (session->name && profile->config) {
		snprintf(section, sizeof section, "sso-session %s", session->name);
		value = ini_get(profile->config, section, key);
	}
	return (value && *value) ? value : profile_get(profile, key);
}

/* Asks for the credentials of a role, with the token of the session. Returns 0 if there is a reply
 * of any status, or -errno with a sentence, which may be missing as in sso_url(). */
static int request_role(const struct profile_source *source, const struct sso_session *session,
	struct http_reply *ret, struct problem *ret_problem)
{
	struct credentials_providers *loader = source->loader;
	const char *account = profile_get(&source->profile, "sso_account_id");
	const char *role = profile_get(&source->profile, "sso_role_name");
	struct text url = TEXT(2048), line = TEXT(TOKEN_MAX_BYTES);
	text_add(&line, "x-amz-sso_bearer_token: ");
	int error = sso_url(loader, "portal.sso", session->region, loader->options.sso_endpoint,
		"/federation/credentials?account_id=", &url, ret_problem);
	if (error == 0) {
		uri_encode(&url, account, strlen(account));
		text_add(&url, "&role_name=");
		uri_encode(&url, role, strlen(role));
		error = sso_token_get(loader, session, &line, ret_problem);
	}
	/* A token with a line break would add a header of its own to the request. */
	if (error == 0 && strpbrk(text_string(&line), "\r\n"))
		error = problem_error(ret_problem, -EINVAL,
			"the SSO token is malformed: log in with `aws sso login`");
	if (error == 0) {
		const struct http_request request = {.method = "GET",
			.url = text_string(&url),
			.headers = (const char *const[]){line.data},
			.n_headers = 1};
		error = credentials_http(loader, request, TIMEOUT_MS, ATTEMPTS, ret, ret_problem);
	}
	text_clear(&url);
	text_wipe(&line);
	return error;
}

int credentials_sso(
	const struct profile_source *source, struct credentials *ret, struct problem *ret_problem)
{
	const struct profile *profile = &source->profile;
	const char *account = profile_get(profile, "sso_account_id");
	const char *role = profile_get(profile, "sso_role_name");
	if (!account && !role)
		return -ENODATA;
	struct sso_session session = {.name = profile_get(profile, "sso_session")};
	/* sso_setting() looks in the section of session.name first. */
	session.start_url = sso_setting(profile, &session, "sso_start_url");
	session.region = sso_setting(profile, &session, "sso_region");
	struct http_reply reply = {0};
	int error;
	if (!account || !role || !session.start_url || !session.region)
		error = problem_error(ret_problem, -EINVAL,
			"it needs sso_account_id, sso_role_name, sso_start_url and sso_region");
	else
		error = request_role(source, &session, &reply, ret_problem);
	if (error == 0 && reply.status == 401)
		error = problem_error(ret_problem, -EACCES,
			"the SSO token is refused: log in with `aws sso login`");
	else if (error == 0)
		error = credentials_from_reply(&reply, FORM_SSO, ret, ret_problem);
	http_reply_clear(&reply);
	if (error)
		problem_prefix(ret_problem, "SSO of profile %s", quote(profile->name).text);
	/* -ENODATA would make the next way be tried, and hide this error. */
	return error == -ENODATA ? -EIO : error;
}
