#include "aws/call_problem.h"
#include "base/quote.h"
#include <stdio.h>
#include <string.h>

/* What happened and what to do, where the code alone says it. */
static const struct {
	const char *code, *sentence;
} sentences[] = {
	{"NoSuchBucket", "the bucket does not exist: create it or check its name and the endpoint"},
	{"InvalidBucketName", "this cannot be the name of a bucket: check it"},
	{"ResourceNotFoundException",
		"the table does not exist: make it with `s3once init` (for locks `s3once lock init`), or "
		"check its name and the region"},
	{"InvalidAccessKeyId",
		"the access key is not known to the server: check the credentials and the endpoint"},
	{"InvalidClientTokenId",
		"the access key is not known to the server: check the credentials and the endpoint"},
	{"UnrecognizedClientException",
		"the access key is not known to the server: check the credentials and the endpoint"},
	{"SignatureDoesNotMatch",
		"the server refuses the signature: the secret key does not belong to the access key"},
	{"InvalidSignatureException",
		"the server refuses the signature: the secret key does not belong to the access key"},
	{"ExpiredToken", "the credentials have expired: renew them"},
	{"ExpiredTokenException", "the credentials have expired: renew them"},
	{"RequestExpired", "the credentials have expired: renew them"},
	{"TokenRefreshRequired", "the credentials have expired: renew them"},
	{"InvalidToken", "the session token is not valid: renew the credentials"},
	{"RequestTimeTooSkewed", "the clocks of this host and of the server disagree: set them"},
	{"RequestInTheFuture", "the clocks of this host and of the server disagree: set them"},
	{"SlowDown", "the server asks to slow down"},
	{"BadDigest", "the server received other bytes than were sent"},
	{"XAmzContentSHA256Mismatch", "the server received other bytes than were sent"},
	{"ConditionalCheckFailedException", "the condition was not met"},
	{"PreconditionFailed", "the condition was not met"},
};

static void set_region_sentence(const char *region, struct problem *ret)
{
	if (region[0])
		problem_set(ret, "it belongs to the region %s: give it with --region",
			quote(region).text);
	else
		problem_set(ret, "it belongs to another region or endpoint: check --region and "
				 "--endpoint-url");
}

static void set_sentence(const struct refusal *refusal, struct problem *ret)
{
	const char *service = refusal->is_s3 ? "S3" : "DynamoDB", *code = refusal->code;
	int status = refusal->reply->status;
	for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
		if (strcmp(sentences[i].code, code) == 0) {
			problem_set(ret, "%s", sentences[i].sentence);
			return;
		}
	bool is_redirect = status == 301 || status == 302 || status == 307 || status == 308;
	if (is_redirect || strcmp(code, "AuthorizationHeaderMalformed") == 0)
		set_region_sentence(refusal->region, ret);
	else if (refusal->body_is_unreadable)
		problem_set(ret,
			"the reply to %s (status %d) is not what %s answers: check the endpoint",
			refusal->operation, status, service);
	else if (refusal->message[0])
		problem_set(ret, "%s says: %s", service, quote(refusal->message).text);
	else if (status == 403)
		problem_set(ret, "access is denied: check the policy of these credentials");
	else if (status == 404)
		problem_set(ret, "it does not exist");
	else if (status == 407)
		problem_set(ret, "the proxy wants a password");
	else
		problem_set(ret, "%s answers with status %d", service, status);
}

/* Copies at most size - 1 characters. Characters of a code or id that are not printable ASCII are
 * left out. */
static void copy_word(const char *word, char *ret, size_t size)
{
	size_t n = 0;
	for (; word[n] > ' ' && word[n] < 127 && n + 1 < size; n++)
		ret[n] = word[n];
	ret[n] = 0;
}

void call_explain(const struct refusal *refusal, struct problem *ret_problem)
{
	if (!ret_problem)
		return;
	set_sentence(refusal, ret_problem);
	const char *id = http_reply_header(refusal->reply, "x-amz-request-id");
	if (!id)
		id = http_reply_header(refusal->reply, "x-amzn-requestid");
	ret_problem->status = refusal->reply->status;
	copy_word(refusal->code, ret_problem->code, sizeof ret_problem->code);
	copy_word(id ? id : "", ret_problem->request_id, sizeof ret_problem->request_id);
}
