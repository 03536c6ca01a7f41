/* Credentials of a role, from AWS STS: assumed by a profile, or for a token of an identity
 * provider, as EKS puts it into a file. Source: AWS STS API Reference. */
#include "aws/credentials/credentials_loader.h"
#include "aws/sigv4.h"
#include "aws/xml_document.h"
#include "base/clock.h"
#include "base/quote.h"
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#define BODY_MAX_BYTES  (64U << 10)
#define TOKEN_MAX_BYTES 20000 /* of an identity provider, as STS takes it */
#define TIMEOUT_MS      20000
#define ATTEMPTS        5 /* many hosts may ask at once: it throttles */

#define CONTENT_TYPE "application/x-www-form-urlencoded; charset=utf-8"

static int64_t sts_wall_s(void)
{
	return clock_wall_ns() / (int64_t)NS_PER_S;
}

/* One whose value is NULL is left out. */
static void add_parameter(struct text *body, const char *name, const char *value)
{
	if (!value)
		return;
	text_addf(body, "%s%s=", body->len ? "&" : "", name);
	uri_encode(body, value, strlen(value), 0);
}

/* Sends the request, signed for this time unless `by` is NULL. */
static int send_request(struct credentials_loader *loader, const struct credentials *by,
	const struct text *body, int64_t time_s, struct http_reply *reply,
	struct problem *ret_problem)
{
	const char *host_at = strstr(loader->options.sts_endpoint, "://") + 3;
	const char *session_token = by ? by->session_token : NULL;
	struct text url = TEXT(1024), authorization = TEXT(4096), token = TEXT(16U << 10);
	struct sigv4_cache cache = {0};
	char host[300], date[17], date_line[40], hash[65];
	text_addf(&url, "%s/", loader->options.sts_endpoint);
	text_add(&authorization, "Authorization: ");
	text_addf(&token, "X-Amz-Security-Token: %s", session_token ? session_token : "");
	clock_format_amz(time_s, date);
	snprintf(date_line, sizeof date_line, "X-Amz-Date: %s", date);
	snprintf(host, sizeof host, "%.*s", (int)strcspn(host_at, "/"), host_at);
	int error = url.error ? url.error : token.error;
	if (!error && by)
		error = sigv4_sha256(&cache, body->data, body->len, hash);
	if (!error && by) {
		const struct call_header headers[] = {{"content-type", CONTENT_TYPE},
			{"host", host}, {"x-amz-date", date},
			{"x-amz-security-token", session_token}};
		const struct sigv4_request request = {.method = "POST",
			.path = strchr(strstr(url.data, "://") + 3, '/'),
			.query = "",
			.headers = headers,
			.n_headers = session_token ? 4 : 3,
			.payload_hash = hash,
			.region = loader->options.sts_region,
			.service = "sts",
			.date = date};
		error = sigv4_sign(&cache, by, &request, &authorization);
	}
	const char *lines[] = {"Content-Type: " CONTENT_TYPE, date_line,
		text_string(&authorization), text_string(&token)};
	const struct http_request request = {.method = "POST",
		.url = text_string(&url),
		.headers = lines,
		.n_headers = !by             ? 1
			     : session_token ? 4
					     : 3,
		.body = {.bytes = body->len, .memory = body->data}};
	if (error)
		problem_set(ret_problem, "the request cannot be signed");
	else
		error = credentials_http(loader, request, TIMEOUT_MS, ATTEMPTS, reply, ret_problem);
	sigv4_cache_wipe(&cache);
	text_clear(&url);
	text_wipe(&authorization);
	text_wipe(&token);
	return error;
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
	const char *secret = find_text(root, "SecretAccessKey");
	const char *token = find_text(root, "SessionToken");
	const char *message = find_text(root, "Message");
	const int64_t expires_s = clock_parse_iso(find_text(root, "Expiration"));
	if (reply->status != 200) {
		if (*message)
			problem_set(ret_problem, "STS says: %s", quote(message).text);
		else
			problem_set(ret_problem, "STS answers with status %d", reply->status);
		ret_problem->status = reply->status;
		snprintf(ret_problem->code, sizeof ret_problem->code, "%.63s",
			quote(find_text(root, "Code")).text);
		snprintf(ret_problem->request_id, sizeof ret_problem->request_id, "%.95s",
			quote(find_text(root, "RequestId")).text);
		error = -EACCES;
	} else if (!*secret || !*token || expires_s < 0) {
		problem_set(ret_problem, "the reply has no credentials");
		error = -EBADMSG;
	} else {
		error = credentials_set(
			ret, find_text(root, "AccessKeyId"), secret, token, "role", ret_problem);
		if (error == 0)
			ret->expires_s = expires_s - credentials_clock_offset_s(reply);
	}
	OPENSSL_cleanse((char *)(uintptr_t)secret, strlen(secret));
	xmlFreeDoc(document);
	return error;
}

int sts_assume(struct credentials_loader *loader, const struct sts_request *request,
	struct credentials *ret, struct problem *ret_problem)
{
	const char *endpoint = loader->options.sts_endpoint;
	struct text body = TEXT(BODY_MAX_BYTES);
	struct http_reply reply = {0};
	char made_up[32];
	snprintf(made_up, sizeof made_up, "s3once-%lld", (long long)sts_wall_s());
	add_parameter(
		&body, "Action", request->signed_by ? "AssumeRole" : "AssumeRoleWithWebIdentity");
	add_parameter(&body, "Version", "2011-06-15");
	add_parameter(&body, "RoleArn", request->role);
	add_parameter(
		&body, "RoleSessionName", request->session_name ? request->session_name : made_up);
	add_parameter(&body, "ExternalId", request->external_id);
	add_parameter(&body, "WebIdentityToken", request->web_identity_token);
	add_parameter(&body, "DurationSeconds", request->duration_seconds);
	int error = body.error;
	if (!error && (!endpoint || !strstr(endpoint, "://") || !loader->options.sts_region))
		error = -EINVAL;
	if (error)
		problem_set(ret_problem, "the request to STS cannot be written");
	/* Once more by the clock of who refuses it, if ours is minutes away from that. */
	int64_t offset_s = 0;
	for (int i = 0; i < 2 && !error && (i == 0 || offset_s); i++) {
		error = send_request(loader, request->signed_by, &body, sts_wall_s() + offset_s,
			&reply, ret_problem);
		offset_s = reply.status >= 400 ? credentials_clock_offset_s(&reply) : 0;
	}
	if (error == 0)
		error = read_reply(&reply, ret, ret_problem);
	text_wipe(&body);
	credentials_reply_clear(&reply);
	if (error)
		problem_prefix(ret_problem, "role %s", quote(request->role).text);
	return error == -ENODATA ? -EIO : error;
}

/* A setting of a token of an identity provider, as EKS puts it into a file, for a role. Source:
 * "Assume role with web identity" of the AWS SDKs and Tools Reference Guide. It is the
 * environment's before the profile's, key by key, unless a profile was asked for by name, or this
 * profile is another one's source_profile. */
static const char *identity_setting(
	const struct profile_source *source, const char *variable_name, const char *key)
{
	const bool may_use_environment =
		!source->parent && !source->loader->options.profile_is_explicit;
	const char *value = may_use_environment ? config_variable(variable_name) : NULL;
	return value ? value : profile_get(&source->profile, key);
}

int credentials_web_identity(
	const struct profile_source *source, struct credentials *ret, struct problem *ret_problem)
{
	const char *path =
		identity_setting(source, "AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file");
	const char *role = identity_setting(source, "AWS_ROLE_ARN", "role_arn");
	struct text token = TEXT(TOKEN_MAX_BYTES);
	int error = -EINVAL;
	if (!path)
		return -ENODATA;
	if (!role)
		problem_set(ret_problem, "there is a token file, but neither AWS_ROLE_ARN nor "
					 "role_arn of the profile");
	else /* It is written anew before its token ends: it is read each time. */
		error = secret_file_read(path, &token, ret_problem);
	if (error == 0) {
		const struct sts_request request = {.role = role,
			.session_name = identity_setting(
				source, "AWS_ROLE_SESSION_NAME", "role_session_name"),
			.web_identity_token = token.data,
			.duration_seconds = profile_get(&source->profile, "duration_seconds")};
		error = sts_assume(source->loader, &request, ret, ret_problem);
	}
	text_wipe(&token);
	if (error)
		problem_prefix(ret_problem, "web identity");
	return error;
}
