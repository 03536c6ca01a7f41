/* The outcome of a reply, and the wait of a call before its next attempt. Only classify() decides
 * the outcome of a reply. call_goes_on() in call.c decides how often and for how long a call is
 * tried. */
#include "aws/retry.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/wait_until.h"
#include <errno.h>
#include <stddef.h>
#include <string.h>

const char *outcome_name(enum outcome o)
{
	static const char *const names[] = {
		[OUTCOME_OK] = "ok",
		[OUTCOME_REFUSED] = "refused",
		[OUTCOME_CONFLICT] = "conflict",
		[OUTCOME_ABSENT] = "absent",
		[OUTCOME_NO_UPLOAD] = "no such upload",
		[OUTCOME_BAD_PART] = "bad part",
		[OUTCOME_UNSUPPORTED] = "unsupported",
		[OUTCOME_BAD_DIGEST] = "bad digest",
		[OUTCOME_DENIED] = "denied",
		[OUTCOME_SETTING] = "setting refused",
		[OUTCOME_INVALID] = "invalid",
		[OUTCOME_SETUP] = "setup",
		[OUTCOME_LOST] = "lost",
		[OUTCOME_TRANSIENT] = "transient",
		[OUTCOME_THROTTLED] = "throttled",
		[OUTCOME_ABANDONED] = "abandoned",
		[OUTCOME_LOCAL] = "local",
	};
	return names[o];
}

enum outcome outcome_no_memory(struct problem *ret_problem)
{
	return outcome_error(ret_problem, OUTCOME_LOCAL, "out of memory");
}

bool outcome_is_ambiguous(enum outcome o)
{
	return o == OUTCOME_LOST || o == OUTCOME_TRANSIENT || o == OUTCOME_ABANDONED;
}

/* The outcome of each known error code. For any other code, the status of the reply decides.
 * Sources: "Error responses" (Amazon S3 API Reference), "Error handling with DynamoDB" (Developer
 * Guide), "Common errors" of both, and the codes that AWS's own SDKs retry. */
#define CODES_MAX 20
#define NO_ROOM   "the server has no room left: free some there"
static const struct known {
	struct verdict verdict;
	const char *sentence; /* cause and remedy, where the code alone is enough; or NULL */
	const char *codes[CODES_MAX];
} known[] = {
	/* DynamoDB's codes without "Exception" are about one statement of a BatchExecuteStatement.
	 */
	{{RETRY_NONE, OUTCOME_REFUSED}, "the condition was not met",
		{"ConditionalCheckFailedException", "PreconditionFailed"}},
	{{RETRY_NONE, OUTCOME_REFUSED}, NULL,
		{"ConditionalCheckFailed", "DuplicateItem", "DuplicateItemException",
			"ResourceInUseException"}},
	{{RETRY_TRANSIENT, OUTCOME_CONFLICT}, NULL, {"ConditionalRequestConflict"}},
	{{RETRY_NONE, OUTCOME_ABSENT}, NULL, {"NoSuchKey", "NoSuchVersion"}},
	{{RETRY_NONE, OUTCOME_NO_UPLOAD}, NULL, {"NoSuchUpload"}},
	{{RETRY_NONE, OUTCOME_BAD_PART}, NULL,
		{"InvalidPart", "InvalidPartOrder", "EntityTooSmall"}},
	{{RETRY_NONE, OUTCOME_UNSUPPORTED}, NULL,
		{"NotImplemented", "MethodNotAllowed", "UnknownOperationException"}},
	{{RETRY_DIGEST, OUTCOME_BAD_DIGEST}, "the server received other bytes than were sent",
		{"BadDigest", "XAmzContentSHA256Mismatch"}},
	{{RETRY_DIGEST, OUTCOME_BAD_DIGEST}, NULL,
		{"InvalidDigest", "XAmzContentChecksumMismatch"}},
	{{RETRY_NONE, OUTCOME_DENIED}, NULL, {"AccessDenied", "AccessDeniedException"}},
	{{RETRY_NONE, OUTCOME_SETUP},
		"the bucket does not exist: create it or check its name and the endpoint",
		{"NoSuchBucket"}},
	{{RETRY_NONE, OUTCOME_SETUP}, "this cannot be the name of a bucket: check it",
		{"InvalidBucketName"}},
	{{RETRY_NONE, OUTCOME_SETUP},
		"the table does not exist: make it with `s3once init` (for locks `s3once lock "
		"init`), or check its name and the region",
		{"ResourceNotFoundException"}},
	{{RETRY_NONE, OUTCOME_SETUP},
		"the server refuses the signature: the secret key does not belong to the access "
		"key",
		{SIGNATURE_REFUSED, "InvalidSignatureException"}},
	{{RETRY_NONE, OUTCOME_SETUP},
		"the quota of the bucket or of its user is used up: raise it, or free room there",
		{"QuotaExceeded", "XMinioAdminBucketQuotaExceeded"}},
	{{RETRY_NONE, OUTCOME_SETUP}, NO_ROOM, {"XMinioStorageFull", "InsufficientCapacity"}},
	/* If the reply names another region, classify() returns RETRY_REGION instead. */
	{{RETRY_NONE, OUTCOME_SETUP}, NULL,
		{"ResourceNotFound", "IncompleteSignature", "IncompleteSignatureException",
			"MissingAuthenticationToken", "MissingAuthenticationTokenException",
			"AccountProblem", "AllAccessDisabled", "NotSignedUp", "OptInRequired",
			"UserSuspended", "AuthorizationHeaderMalformed",
			"IllegalLocationConstraintException", "PermanentRedirect"}},
	{{RETRY_NONE, OUTCOME_SETTING}, NULL,
		{"InvalidStorageClass", "InvalidEncryptionAlgorithmError", "InvalidTag",
			"AccessControlListNotSupported", "ObjectLockConfigurationNotFoundError"}},
	{{RETRY_CREDENTIALS, OUTCOME_SETUP}, "the credentials have expired: renew them",
		{"ExpiredToken", "ExpiredTokenException", "RequestExpired",
			"TokenRefreshRequired"}},
	{{RETRY_CREDENTIALS, OUTCOME_SETUP},
		"the session token is not valid: renew the credentials", {"InvalidToken"}},
	{{RETRY_CREDENTIALS, OUTCOME_SETUP},
		"the access key is not known to the server: check the credentials and the endpoint",
		{"InvalidAccessKeyId", "InvalidClientTokenId", "UnrecognizedClientException"}},
	{{RETRY_CLOCK, OUTCOME_SETUP},
		"the clocks of this host and of the server disagree: set them",
		{"RequestTimeTooSkewed", "RequestInTheFuture"}},
	/* For a while after a bucket was created, S3 redirects until its name is known everywhere.
	 */
	{{RETRY_TRANSIENT, OUTCOME_SETUP}, NULL, {"TemporaryRedirect"}},
	{{RETRY_THROTTLE, OUTCOME_THROTTLED}, "the server asks to slow down", {"SlowDown"}},
	{{RETRY_THROTTLE, OUTCOME_THROTTLED}, NULL,
		{"BandwidthLimitExceeded", "KMS.ThrottlingException", "LimitExceededException",
			"PriorRequestNotComplete", "ProvisionedThroughputExceededException",
			"ProvisionedThroughputExceeded", "ReplicatedWriteConflictException",
			"RequestLimitExceeded", "RequestThrottled", "RequestThrottledException",
			"ThrottledException", "Throttling", "ThrottlingException",
			"ThrottlingError", "TooManyRequestsException",
			"TransactionConflictException", "TransactionConflict",
			"TransactionInProgressException"}},
	{{RETRY_TRANSIENT, OUTCOME_TRANSIENT}, NULL,
		{"ConcurrentModification", "IncompleteBody", "InternalError", "InternalFailure",
			"InternalServerError", "OperationAborted", "RequestTimeout",
			"RequestTimeoutException", "ServiceUnavailable"}},
};

/* Returns the row of an error code, or NULL if the code is not known. */
static const struct known *row_of_code(const char *code)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		for (size_t j = 0; j < CODES_MAX && known[i].codes[j]; j++)
			if (strcmp(known[i].codes[j], code) == 0)
				return &known[i];
	return NULL;
}

const char *code_sentence(const char *code)
{
	const struct known *row = row_of_code(code);
	return row ? row->sentence : NULL;
}

/* The verdict that belongs to an error or a status. */
struct verdict_on {
	int number;
	struct verdict verdict;
	const char *sentence; /* for a status that is enough, whichever host has sent it; or NULL */
};

/* The verdict on an attempt without a reply, by the error of http_perform(). For an error that is
 * not here, classify() has the verdict: it is then unknown whether the request was applied, so the
 * outcome depends on whether it is a write. */
static const struct verdict_on errors[] = {
	{-ECANCELED, {RETRY_NONE, OUTCOME_ABANDONED}},
	{-ENOENT, {RETRY_TRANSIENT, OUTCOME_SETUP}},
	{-ECONNREFUSED, {RETRY_TRANSIENT, OUTCOME_SETUP}},
	{-EMFILE, {RETRY_TRANSIENT, OUTCOME_SETUP}},
	{-EPROTO, {RETRY_NONE, OUTCOME_SETUP}},
	{-EINVAL, {RETRY_NONE, OUTCOME_SETUP}},
	{-EIO, {RETRY_NONE, OUTCOME_LOCAL}},
	{-ENOMEM, {RETRY_NONE, OUTCOME_LOCAL}},
};

/* The verdict by the status, for a reply without a known error code. */
static const struct verdict_on statuses[] = {
	/* Of the other statuses, those from 500 on are retried: verdict_by_status(). */
	{307, {RETRY_TRANSIENT, OUTCOME_SETUP}}, /* as TemporaryRedirect above */
	{401, {RETRY_NONE, OUTCOME_SETUP}},
	{403, {RETRY_NONE, OUTCOME_DENIED}},
	/* A 404 of S3 without a code is the reply to a HEAD of an object that does not exist, and
	 * verdict_by_status() has handled it before. So this row is for DynamoDB, and for unknown
	 * codes. */
	{404, {RETRY_NONE, OUTCOME_SETUP}},
	{405, {RETRY_NONE, OUTCOME_UNSUPPORTED}},
	{407, {RETRY_NONE, OUTCOME_SETUP}, "the proxy wants a password"},
	{408, {RETRY_TRANSIENT, OUTCOME_TRANSIENT}},
	{409, {RETRY_TRANSIENT, OUTCOME_CONFLICT}},
	{412, {RETRY_NONE, OUTCOME_REFUSED}},
	{413, {RETRY_NONE, OUTCOME_INVALID},
		"the body of the request is larger than a proxy or the server allows: raise that "
		"limit (nginx: client_max_body_size), or give a smaller --part-size"},
	{501, {RETRY_NONE, OUTCOME_UNSUPPORTED}},
	{507, {RETRY_NONE, OUTCOME_SETUP}, NO_ROOM},
};

static const struct verdict_on *row_of_status(int status)
{
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
		if (statuses[i].number == status)
			return &statuses[i];
	return NULL;
}

const char *status_sentence(int status)
{
	const struct verdict_on *row = row_of_status(status);
	return row ? row->sentence : NULL;
}

/* Returns the verdict on a reply whose error code is unknown or missing. A reply of S3 without a
 * code is taken for the reply to a HEAD, which has no body. */
static struct verdict verdict_by_status(const struct attempt *attempt)
{
	const int status = attempt->status;
	const bool lacks_code = !attempt->code[0], may_be_head = attempt->is_s3 && lacks_code;
	const bool is_kms_error = strncmp(attempt->code, "KMS.", 4) == 0;
	if (status >= 200 && status < 300 && lacks_code)
		return (struct verdict){RETRY_NONE, OUTCOME_OK};
	if (status >= 400 && status < 500 && is_kms_error) /* of the object's KMS key */
		return (struct verdict){RETRY_NONE, OUTCOME_SETTING};
	if (status == 404 && may_be_head)
		return (struct verdict){RETRY_NONE, OUTCOME_ABSENT};
	/* To a HEAD, 400 may mean ExpiredToken. DynamoDB always names a code, so a reply without
	 * one was damaged on the way. */
	if (status == 400 && lacks_code)
		return (struct verdict){
			may_be_head ? RETRY_CREDENTIALS : RETRY_TRANSIENT, OUTCOME_INVALID};
	/* To a HEAD or another read, 503 is taken for SlowDown. To a write, 503 without a code says
	 * nothing. */
	if (status == 503 && may_be_head && !attempt->is_write)
		return (struct verdict){RETRY_THROTTLE, OUTCOME_THROTTLED};
	const struct verdict_on *row = row_of_status(status);
	if (row)
		return row->verdict;
	if (status >= 300 && status < 500)
		return (struct verdict){RETRY_NONE, status < 400 ? OUTCOME_SETUP : OUTCOME_INVALID};
	return (struct verdict){RETRY_TRANSIENT, OUTCOME_TRANSIENT};
}

struct verdict classify(const struct attempt *attempt)
{
	/* The outcome if it is unknown whether the service has done what was asked. A lost read is
	 * as good as a failed one, but a lost write may have been applied. */
	const enum outcome unknown = attempt->is_write ? OUTCOME_LOST : OUTCOME_TRANSIENT;
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].number == attempt->error)
			return errors[i].verdict;
	if (attempt->error) /* -EMSGSIZE: the reply would be too long again */
		return (struct verdict){
			attempt->error == -EMSGSIZE ? RETRY_NONE : RETRY_TRANSIENT, unknown};
	if (attempt->status == 429) /* whatever its code is: R2 sends ServiceUnavailable */
		return (struct verdict){RETRY_THROTTLE, OUTCOME_THROTTLED};
	/* A write to S3, such as CompleteMultipartUpload, is not repeated blindly: the caller
	 * checks first. */
	const bool caller_checks = attempt->is_s3 && attempt->is_write;
	if (attempt->body_is_unreadable)
		return (struct verdict){caller_checks ? RETRY_NONE : RETRY_TRANSIENT, unknown};
	const struct known *row = row_of_code(attempt->code);
	const struct verdict verdict = row ? row->verdict : verdict_by_status(attempt);
	/* The real cause of such a refusal may be a wrong region or a wrong clock. */
	const bool may_have_other_cause = verdict.outcome == OUTCOME_SETUP ||
					  verdict.outcome == OUTCOME_INVALID ||
					  (verdict.outcome == OUTCOME_DENIED && !attempt->code[0]);
	/* With 404 the bucket or table does not exist, and another region would not help. */
	if (may_have_other_cause && attempt->names_other_region && attempt->status != 404)
		return (struct verdict){RETRY_REGION, OUTCOME_SETUP};
	if (may_have_other_cause && attempt->clock_is_off)
		return (struct verdict){RETRY_CLOCK, OUTCOME_SETUP};
	/* If the credentials are good, the server computes another signature for this one request.
	 * Some servers do so for keys with a blank or an @. */
	const bool refuses_signature = strcmp(attempt->code, SIGNATURE_REFUSED) == 0;
	if (attempt->is_s3 && refuses_signature && attempt->signature_is_good)
		return (struct verdict){RETRY_NONE, OUTCOME_DENIED};
	return verdict;
}

uint64_t retry_backoff_ms(enum retry_class retry, enum retry_service service, unsigned attempt)
{
	uint64_t base = service == RETRY_OF_S3 ? 50 : 25;
	if (retry == RETRY_THROTTLE)
		base = 1000;
	/* From the 16th doubling on, any base is above the cap. */
	uint64_t max_ms = attempt < 16 ? base << attempt : RETRY_CAP_MS;
	return random_below((max_ms < RETRY_CAP_MS ? max_ms : RETRY_CAP_MS) + 1);
}

bool retry_quota_take(atomic_int *quota)
{
	int tokens = atomic_load(quota); /* updated by each failing compare-exchange */
	while (tokens >= RETRY_COST)
		if (atomic_compare_exchange_weak(quota, &tokens, tokens - RETRY_COST))
			return true;
	return false;
}

void retry_quota_refill(atomic_int *quota, unsigned tokens)
{
	int before = atomic_load(quota), after;
	do
		after = before + (int)tokens < RETRY_TOKENS ? before + (int)tokens : RETRY_TOKENS;
	while (after != before && !atomic_compare_exchange_weak(quota, &before, after));
}

const struct call_limits no_limits;

enum outcome wait_within(const struct call_limits *limits, uint64_t ms, struct problem *ret_problem)
{
	if (!limits)
		limits = &no_limits;
	const uint64_t end_ns = clock_boot_ns() + ms * NS_PER_MS;
	if (limits->deadline_ns && end_ns > limits->deadline_ns)
		return outcome_error(ret_problem, OUTCOME_ABANDONED,
			"the deadline passed before the next attempt");
	if (wait_until(false, .deadline_ns = end_ns, .abandon = limits->abandon,
		    .arg = limits->abandon_arg) == WAIT_ABANDONED)
		return outcome_error(
			ret_problem, OUTCOME_ABANDONED, "stopped before the next attempt");
	return OUTCOME_OK;
}

bool limits_are_over(const struct call_limits *limits)
{
	return (limits->deadline_ns && clock_boot_ns() >= limits->deadline_ns) ||
	       (limits->abandon && limits->abandon(limits->abandon_arg));
}
