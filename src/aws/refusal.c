/* Makes the sentence about a refused request: the cause, and the remedy. classify() in retry.c has
 * already decided the outcome; call.c calls this for the sentence. */
#include "aws/refusal.h"
#include "aws/retry.h"
#include <stdio.h>
#include <string.h>

/* Returns the text after `begin` in s, or NULL if s is NULL or does not have it. */
static const char *find_behind(const char *s, const char *begin)
{
	const char *found = s ? strstr(s, begin) : NULL;
	return found ? found + strlen(begin) : NULL;
}

/* Whether the server has signed another value than the `sent_bytes` that we sent. `received` is
 * that value, up to the end of its line, or NULL if the reply does not show it. */
static bool was_changed(const char *received, const char *sent, size_t sent_bytes)
{
	if (!received)
		return false;
	const size_t received_bytes = strcspn(received, "\r\n<");
	return received_bytes != sent_bytes || memcmp(received, sent, sent_bytes) != 0;
}

/* Sets the sentence for a signature that does not match. AWS and some others return the canonical
 * request that they have signed: its first line is the method, and one line is the host. Any
 * difference from the request that we sent was made on the way. */
static void explain_signature(const struct refusal *refusal, struct problem *ret)
{
	const char *method = find_behind(text_string(&refusal->reply->body), "<CanonicalRequest>");
	const char *host = find_behind(method, "\nhost:");
	const char *scheme_end = strstr(refusal->url, "://");
	const char *sent_host = scheme_end ? scheme_end + strlen("://") : refusal->url;
	const size_t sent_bytes = strcspn(sent_host, "/?");
	if (was_changed(host, sent_host, sent_bytes))
		problem_set(ret,
			"a proxy on the way has changed the header Host from %s to %s, which breaks "
			"the signature: let it pass the header on (nginx: proxy_set_header Host "
			"$http_host)",
			quote_bytes(sent_host, sent_bytes).text,
			quote_bytes(host, strcspn(host, "\r\n<")).text);
	else if (was_changed(method, refusal->method, strlen(refusal->method)))
		problem_set(ret,
			"a cache on the way has sent %s in place of %s, which breaks the signature: "
			"exempt the host of S3 from it (nginx: proxy_cache_convert_head off)",
			quote_bytes(method, strcspn(method, "\r\n<")).text, refusal->method);
	else if (refusal->outcome == OUTCOME_DENIED)
		problem_set(ret,
			"the server refuses the signature of this key, although it has accepted "
			"other requests with the same secret key: %s",
			memchr(sent_host, '%', strcspn(sent_host, "?"))
				? "it decodes a character of the key differently, perhaps a blank or "
				  "one of @+; rename the file"
				: "a cache or proxy on the way changes the request, as one that "
				  "turns HEAD into GET, or repeats an answer: exempt the host of "
				  "S3 from it");
	else
		problem_set(ret,
			"the server refuses the signature: the secret key does not belong to the "
			"access key, or a proxy on the way changes the header Host or another one: "
			"check both keys, then try without the proxy");
}

/* Whether the reply is not the service's own, but that of a proxy, a firewall or a portal. The
 * services send a code in any refusal except in the reply to a HEAD, which has no body. */
static bool comes_from_proxy(const struct refusal *refusal)
{
	const bool is_head = strcmp(refusal->method, "HEAD") == 0;
	const bool shows_service = *refusal->code || *refusal->message ||
				   http_reply_header(refusal->reply, "x-amz-request-id");
	return refusal->reply->status >= 400 && !is_head && !shows_service;
}

/* Sets the sentence for a reply that is not that of the service of this name. */
static void explain_proxy(const struct refusal *refusal, const char *name, struct problem *ret)
{
	const int status = refusal->reply->status;
	const char *via = http_reply_header(refusal->reply, "via");
	const char *server = via ? via : http_reply_header(refusal->reply, "server");
	const struct quoted quoted = quote(server ? server : "");
	const char *of = server ? " of " : "", *server_name = quoted.text;
	if (status == 403)
		problem_set(ret,
			"the reply to %s (status 403%s%s) is not that of %s, but of something on the "
			"way that refuses it: allow the host in the proxy or firewall, or go around "
			"it (NO_PROXY)",
			refusal->request, of, server_name, name);
	else
		problem_set(ret,
			"the reply to %s (status %d%s%s) is not that of %s, but of something on the "
			"way or of another server: check the endpoint and the proxy",
			refusal->request, status, of, server_name, name);
}

void refusal_explain(const struct refusal *refusal, struct problem *ret_problem)
{
	const struct http_reply *reply = refusal->reply;
	const char *name = refusal->is_s3 ? "S3" : "DynamoDB";
	const char *sentence = code_sentence(refusal->code);
	const int status = reply->status;
	const bool is_redirect = status == 301 || status == 302 || status == 307 || status == 308;
	const bool is_elsewhere =
		is_redirect || strcmp(refusal->code, "AuthorizationHeaderMalformed") == 0;
	/* The reply's code is the most exact cause, and its status the least exact one. */
	if (strcmp(refusal->code, SIGNATURE_REFUSED) == 0)
		explain_signature(refusal, ret_problem);
	else if (sentence)
		problem_set(ret_problem, "%s", sentence);
	else if (is_elsewhere && *refusal->region)
		problem_set(ret_problem, "it belongs to the region %s: give it with --region",
			quote(refusal->region).text);
	else if (is_elsewhere)
		problem_set(ret_problem, "it belongs to another region or endpoint: check --region "
					 "and --endpoint-url");
	else if (status_sentence(status) && !*refusal->message)
		problem_set(ret_problem, "%s", status_sentence(status));
	else if (refusal->body_is_unreadable)
		problem_set(ret_problem,
			"the reply to %s (status %d) is not what %s answers: check the endpoint",
			refusal->request, status, name);
	else if (*refusal->message)
		problem_set(ret_problem, "%s says: %s", name, quote(refusal->message).text);
	else if (comes_from_proxy(refusal))
		explain_proxy(refusal, name, ret_problem);
	else if (status == 403)
		problem_set(ret_problem, "access is denied: check the policy of these credentials");
	else if (status == 404)
		problem_set(ret_problem, "it does not exist");
	else
		problem_set(ret_problem, "%s answers with status %d", name, status);
	const char *s3_id = http_reply_header(reply, "x-amz-request-id");
	const char *id = s3_id ? s3_id : http_reply_header(reply, "x-amzn-requestid");
	ret_problem->status = status;
	snprintf(ret_problem->code, sizeof ret_problem->code, "%.63s", quote(refusal->code).text);
	snprintf(ret_problem->request_id, sizeof ret_problem->request_id, "%.95s",
		quote(id ? id : "").text);
}
