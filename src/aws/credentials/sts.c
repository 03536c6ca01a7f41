/* Gets the temporary credentials of a role from AWS STS. The request is signed with other
 * credentials that may assume the role, or it has the token of an identity provider, which EKS, for
 * example, puts into a file. Source: AWS STS API Reference. */
#include "aws/credentials/credentials_providers.h"
#include "aws/service.h"
#include "aws/xml_document.h"
#include "base/clock.h"
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#define BODY_MAX_BYTES  (64U << 10)
#define TOKEN_MAX_BYTES 20000 /* the longest token of an identity provider that STS takes */
#define TIMEOUT_MS      20000
#define ATTEMPTS        5 /* STS throttles if many hosts send requests at once */

/* Adds a parameter to the form in the body, unless its value is NULL. */
static void add_parameter(struct text *body, const char *name, const char *value)
{
	if (!value)
		return;
	text_addf(body, "%s%s=", body->len ? "&" : "", name);
	uri_encode(body, value, strlen(value));
}

/* Sends the request, signed for this time unless `by` is NULL. Returns 0 if there is a reply of any
 * status, or -errno with a sentence. */
static int send_request(struct credentials_providers *loader, const struct credentials *by,
	const struct text *body, int64_t time_s, struct http_reply *reply,
	struct problem *ret_problem)
{
	static const struct call_header type = {
		"content-type", "application/x-www-form-urlencoded; charset=utf-8"};
	const struct call call = {.method = "POST",
		.path = "/",
		.query = "",
		.headers = &type,
		.n_headers = 1,
		.body = {.bytes = body->len, .memory = body->data}};
	struct signer signer = signer_new();
	struct call_request built = {0};
	signer.endpoint = loader->options.sts;
	int error = by ? credentials_copy(by, &signer.credentials) : 0;
	if (!error)
		error = call_request_build(&signer, &call, time_s, &built);
	/* An unsigned request has one header, the content type. It is the third one of `built`,
	 * after host and x-amz-date. */
	const struct http_request request = {.method = "POST",
		.url = text_string(&signer.url),
		.headers = by ? built.headers : built.headers + 2,
		.n_headers = by ? built.n_headers : 1,
		.body = call.body};
	if (error)
		problem_set(ret_problem, "the request cannot be signed");
	else
		error = credentials_http(loader, request, TIMEOUT_MS, ATTEMPTS, reply, ret_problem);
	signer_wipe(&signer);
	return error;
}

/* The text of the first element of this name, at any depth below node; "" if there is none.
 * Borrowed. */
static const char *find_text(const xmlNode *node, const char *name)
{
	const char *found = xml_child_text(node, name);
	for (const xmlNode *child = node->children; child && !*found; child = child->next)
		found = find_text(child, name);
	return found;
}

/* Sets the problem of a reply with an error, whose document has this root. */
static void describe_refusal(
	const struct http_reply *reply, const xmlNode *root, struct problem *ret)
{
	const char *message = find_text(root, "Message");
	if (*message)
		problem_set(ret, "STS says: %s", quote(message).text);
	else
		problem_set(ret, "STS answers with status %d", reply->status);
	ret->status = reply->status;
	snprintf(ret->code, sizeof ret->code, "%.63s", quote(find_text(root, "Code")).text);
	snprintf(ret->request_id, sizeof ret->request_id, "%.95s",
		quote(find_text(root, "RequestId")).text);
}

/* Reads the credentials, or the error, out of the reply. Returns 0, or -errno with a sentence; the
 * sentence may be empty on -ENOMEM. */
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
	const int64_t expires_s = clock_parse_iso(find_text(root, "Expiration"));
	if (reply->status != 200) {
		describe_refusal(reply, root, ret_problem);
		error = -EACCES;
	} else if (!*secret || !*token || expires_s < 0) {
		error = problem_error(ret_problem, -EBADMSG, "the reply has no credentials");
	} else {
		error = credentials_set(
			ret, find_text(root, "AccessKeyId"), secret, token, "role", ret_problem);
		if (error == 0)
			ret->expires_s = expires_s - credentials_clock_offset_s(reply);
	}
	/* The secret is in the document, or is "", of which no byte is overwritten. */
	OPENSSL_cleanse((char *)(uintptr_t)secret, strlen(secret));
	xmlFreeDoc(document);
	return error;
}

/* Writes the form of the request. */
static void write_form(const struct sts_request *request, struct text *ret)
{
	const bool is_signed = request->signed_by != NULL;
	char made_up[32];
	snprintf(made_up, sizeof made_up, "s3once-%lld", (long long)clock_wall_s());
	add_parameter(ret, "Action", is_signed ? "AssumeRole" : "AssumeRoleWithWebIdentity");
	add_parameter(ret, "Version", "2011-06-15");
	add_parameter(ret, "RoleArn", request->role);
	add_parameter(
		ret, "RoleSessionName", request->session_name ? request->session_name : made_up);
	add_parameter(ret, "ExternalId", request->external_id);
	add_parameter(ret, "WebIdentityToken", request->web_identity_token);
	add_parameter(ret, "DurationSeconds", request->duration_seconds);
}

int sts_assume(struct credentials_providers *loader, const struct sts_request *request,
	struct credentials *ret, struct problem *ret_problem)
{
	struct text body = TEXT(BODY_MAX_BYTES);
	struct http_reply reply = {0};
	write_form(request, &body);
	int error = body.error;
	if (error)
		problem_set(ret_problem, "the request to STS cannot be written");
	if (!error)
		error = send_request(
			loader, request->signed_by, &body, clock_wall_s(), &reply, ret_problem);
	/* If the request is refused and the server's clock is minutes away from ours, sends the
	 * request again, signed by the server's clock. */
	const int64_t offset_s = reply.status >= 400 ? credentials_clock_offset_s(&reply) : 0;
	if (!error && offset_s)
		error = send_request(loader, request->signed_by, &body, clock_wall_s() + offset_s,
			&reply, ret_problem);
	if (error == 0)
		error = read_reply(&reply, ret, ret_problem);
	text_wipe(&body);
	http_reply_clear(&reply);
	if (error)
		problem_prefix(ret_problem, "role %s", quote(request->role).text);
	/* -ENODATA would make the next provider be tried, and hide this error. */
	return error == -ENODATA ? -EIO : error;
}

/* Returns a setting for the token of an identity provider: the variable's value, or else that of
 * the profile's key. The variables are ignored if a profile was named explicitly, or if another
 * profile names this one as its source_profile. Source: "Assume role with web identity" of the AWS
 * SDKs and Tools Reference Guide. */
static const char *identity_setting(
	const struct profile_source *source, const char *variable_name, const char *key)
{
	const bool may_use_environment =
		!source->parent && !source->loader->options.profile_is_explicit;
	const char *value = may_use_environment ? lookup_variable(variable_name) : NULL;
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
	else /* The file is replaced before its token expires, so each load reads it. */
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
