/* Credentials of a role, from AWS STS: assumed by a profile, or for a token of an identity
 * provider, as EKS puts it into a file. Source: AWS STS API Reference. */
#include "aws/credentials/credentials_loader.h"
#include "aws/credentials/credentials_provider.h"
#include "aws/sigv4.h"
#include "aws/xml_document.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/quote.h"
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#define BODY_MAX_BYTES (64U << 10) /* a web identity's token has up to 20,000 characters */
#define TIMEOUT_MS     20000
#define ATTEMPTS       5 /* many hosts may ask at once: it throttles */

#define CONTENT_TYPE "application/x-www-form-urlencoded; charset=utf-8"

/* One request as it is sent. All texts are wiped: they carry tokens. */
struct message {
	struct text url, body, authorization, token;
	char host[300], date[40];
};

static void add_parameter(struct text *body, const char *name, const char *value)
{
	text_addf(body, "%s%s=", body->len ? "&" : "", name);
	uri_encode(body, value, strlen(value), 0);
}

static int write_message(const struct credentials_loader *loader, const struct sts_request *request,
	struct message *message)
{
	const char *host =
		loader->options.sts_endpoint ? strstr(loader->options.sts_endpoint, "://") : NULL;
	if (!host || !loader->options.sts_region)
		return -EINVAL;
	host += 3;
	snprintf(message->host, sizeof message->host, "%.*s", (int)strcspn(host, "/"), host);
	text_addf(&message->url, "%s/", loader->options.sts_endpoint);
	add_parameter(&message->body, "Action", request->action);
	add_parameter(&message->body, "Version", "2011-06-15");
	for (size_t i = 0; i < request->n_parameters; i++)
		if (request->parameters[i].value)
			add_parameter(&message->body, request->parameters[i].name,
				request->parameters[i].value);
	return message->url.error ? message->url.error : message->body.error;
}

static int sign_sts(const struct credentials_loader *loader, const struct credentials *credentials,
	int64_t time_s, struct message *message)
{
	struct sigv4_cache cache = {0};
	char date[17], hash[65];
	unsigned char digest[SHA256_DIGEST_LENGTH];
	clock_format_amz(time_s, date);
	SHA256((const unsigned char *)message->body.data, message->body.len, digest);
	hex_encode(digest, sizeof digest, hash);
	const char *path = strchr(strstr(message->url.data, "://") + 3, '/');
	const struct sigv4_header headers[] = {{"content-type", CONTENT_TYPE},
		{"host", message->host}, {"x-amz-date", date},
		{"x-amz-security-token", credentials->session_token}};
	const struct sigv4_request request = {.method = "POST",
		.path = path,
		.query = "",
		.headers = headers,
		.n_headers = credentials->session_token ? 4 : 3,
		.payload_hash = hash,
		.region = loader->options.sts_region,
		.service = "sts",
		.date = date};
	snprintf(message->date, sizeof message->date, "X-Amz-Date: %s", date);
	text_reset(&message->authorization);
	text_add(&message->authorization, "Authorization: ");
	text_reset(&message->token);
	if (credentials->session_token)
		text_addf(&message->token, "X-Amz-Security-Token: %s", credentials->session_token);
	int error = sigv4_sign(&cache, credentials, &request, &message->authorization);
	sigv4_cache_wipe(&cache);
	return error ? error : message->token.error;
}

static int send_message(struct credentials_loader *loader, bool is_signed,
	const struct message *message, struct http_reply *reply, struct problem *ret_problem)
{
	const char *headers[] = {"Content-Type: " CONTENT_TYPE, message->date,
		text_string(&message->authorization), text_string(&message->token)};
	const struct credentials_request request = {.method = "POST",
		.url = message->url.data,
		.headers = headers,
		.n_headers = !is_signed           ? 1
			     : message->token.len ? 4
						  : 3,
		.body = &message->body,
		.timeout_ms = TIMEOUT_MS,
		.attempts = ATTEMPTS};
	return credentials_http(loader, &request, reply, ret_problem);
}

/* The text of the first element of this name below node, "" if there is none. Borrowed. */
static const char *find_text(const xmlNode *node, const char *name)
{
	for (const xmlNode *at = node->children; at; at = at->next) {
		if (at->type != XML_ELEMENT_NODE)
			continue;
		const xmlNode *text = at->children;
		if (strcmp((const char *)at->name, name) == 0)
			return text && text->type == XML_TEXT_NODE ? (const char *)text->content
								   : "";
		const char *found = find_text(at, name);
		if (*found)
			return found;
	}
	return "";
}

static int read_credentials(const xmlNode *root, int64_t clock_offset_s, struct credentials *ret,
	struct problem *ret_problem)
{
	const char *secret = find_text(root, "SecretAccessKey");
	const char *token = find_text(root, "SessionToken");
	int64_t expires_s = clock_parse_iso(find_text(root, "Expiration"));
	if (!*secret || !*token || expires_s < 0) {
		problem_set(ret_problem, "the reply has no credentials");
		return -EBADMSG;
	}
	int error = credentials_set(
		ret, find_text(root, "AccessKeyId"), secret, token, "role", ret_problem);
	if (error == 0)
		ret->expires_s = expires_s - clock_offset_s;
	return error;
}

static void explain_sts_error(const xmlNode *root, int status, struct problem *ret_problem)
{
	const char *message = find_text(root, "Message");
	if (*message)
		problem_set(ret_problem, "STS says: %s", quote(message).text);
	else
		problem_set(ret_problem, "STS answers with status %d", status);
	ret_problem->status = status;
	snprintf(ret_problem->code, sizeof ret_problem->code, "%.63s",
		quote(find_text(root, "Code")).text);
	snprintf(ret_problem->request_id, sizeof ret_problem->request_id, "%.95s",
		quote(find_text(root, "RequestId")).text);
}

static int read_reply(
	const struct http_reply *reply, struct credentials *ret, struct problem *ret_problem)
{
	xmlDoc *document;
	int error = xml_document_read(text_string(&reply->body), reply->body.len, &document);
	if (error == -EBADMSG)
		problem_set(ret_problem,
			"the reply with status %d is not what STS answers: check the endpoint",
			reply->status);
	if (error)
		return error;
	const xmlNode *root = xmlDocGetRootElement(document);
	if (reply->status == 200) {
		error = read_credentials(root, credentials_clock_offset_s(reply), ret, ret_problem);
		const char *secret = find_text(root, "SecretAccessKey");
		OPENSSL_cleanse((char *)(uintptr_t)secret, strlen(secret));
	} else {
		explain_sts_error(root, reply->status, ret_problem);
		error = -EACCES;
	}
	xmlFreeDoc(document);
	return error;
}

static int ask_sts(struct credentials_loader *loader, const struct sts_request *request,
	struct message *message, struct http_reply *reply, struct problem *ret_problem)
{
	int64_t offset_s = 0;
	int error = 0;
	for (int i = 0; i < 2 && !error && (i == 0 || offset_s); i++) {
		const int64_t now_s = clock_wall_ns() / (int64_t)NS_PER_S;
		if (request->signed_by)
			error = sign_sts(loader, request->signed_by, now_s + offset_s, message);
		if (error)
			problem_set(ret_problem, "the request cannot be signed");
		else
			error = send_message(
				loader, request->signed_by != NULL, message, reply, ret_problem);
		offset_s = reply->status >= 400 ? credentials_clock_offset_s(reply) : 0;
	}
	return error;
}

int sts_assume(struct credentials_loader *loader, const struct sts_request *request,
	struct credentials *ret, struct problem *ret_problem)
{
	struct message message = {.url = TEXT(1024),
		.body = TEXT(BODY_MAX_BYTES),
		.authorization = TEXT(4096),
		.token = TEXT(16U << 10)};
	struct http_reply reply = {0};
	int error = write_message(loader, request, &message);
	if (error)
		problem_set(ret_problem, "the request to STS cannot be written");
	else
		error = ask_sts(loader, request, &message, &reply, ret_problem);
	if (error == 0)
		error = read_reply(&reply, ret, ret_problem);
	text_clear(&message.url);
	text_wipe(&message.body);
	text_wipe(&message.authorization);
	text_wipe(&message.token);
	credentials_reply_clear(&reply);
	return error == -ENODATA ? -EIO : error;
}

void sts_session_name(char ret[static 32])
{
	snprintf(ret, 32, "s3once-%lld", (long long)(clock_wall_ns() / (int64_t)NS_PER_S));
}

/* A token of an identity provider, as EKS puts it into a file, for a role. Source: "Assume role
 * with web identity" of the AWS SDKs and Tools Reference Guide. */
#define TOKEN_MAX_BYTES 20000 /* as STS takes it */

/* The environment's before the profile's, key by key, unless a profile was asked for by name. */
static const char *identity_setting(
	const struct profile_source *source, const char *variable_name, const char *key)
{
	bool is_own = !source->parent && !source->loader->options.profile_is_explicit;
	const char *value = is_own ? credentials_variable(variable_name) : NULL;
	return value ? value : profile_get(&source->profile, key);
}

/* The file is written anew before its token ends: read each time. */
static int read_token(const char *path, struct text *ret, struct problem *ret_problem)
{
	int error = secret_file_read(path, ret);
	if (error)
		problem_set(ret_problem, "cannot read a token from %s: %s", quote(path).text,
			named_file_error(error));
	return error == -ENODATA ? -EIO : error;
}

static int assume_with_token(const struct profile_source *source, const char *path,
	struct credentials *ret, struct problem *ret_problem)
{
	const char *role = identity_setting(source, "AWS_ROLE_ARN", "role_arn");
	const char *name = identity_setting(source, "AWS_ROLE_SESSION_NAME", "role_session_name");
	struct text token = TEXT(TOKEN_MAX_BYTES);
	char made_up[32];
	if (!role) {
		problem_set(ret_problem, "there is a token file, but neither AWS_ROLE_ARN nor "
					 "role_arn of the profile");
		return -EINVAL;
	}
	int error = read_token(path, &token, ret_problem);
	if (error == 0) {
		sts_session_name(made_up);
		const struct sts_parameter parameters[] = {
			{"RoleArn", role},
			{"RoleSessionName", name ? name : made_up},
			{"WebIdentityToken", token.data},
			{"DurationSeconds", profile_get(&source->profile, "duration_seconds")},
		};
		const struct sts_request request = {
			"AssumeRoleWithWebIdentity", parameters, 4, NULL};
		error = sts_assume(source->loader, &request, ret, ret_problem);
		if (error)
			problem_prefix(ret_problem, "role %s", quote(role).text);
	}
	text_wipe(&token);
	return error;
}

int credentials_web_identity(
	const struct profile_source *source, struct credentials *ret, struct problem *ret_problem)
{
	const char *path =
		identity_setting(source, "AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file");
	if (!path)
		return -ENODATA;
	int error = assume_with_token(source, path, ret, ret_problem);
	if (error)
		problem_prefix(ret_problem, "web identity");
	return error;
}
