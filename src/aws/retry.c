/* What an answer means, and how long to wait before the next try. classify() is the one place
 * that decides; call.c does what it says. How often and for how long a call is tried is
 * call_goes_on() there. */
#include "aws/retry.h"
#include "aws/outcome.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/wait_until.h"
#include <errno.h>
#include <stdatomic.h>
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
	problem_set(ret_problem, "out of memory");
	return OUTCOME_LOCAL;
}

bool outcome_is_ambiguous(enum outcome o)
{
	return o == OUTCOME_LOST || o == OUTCOME_TRANSIENT || o == OUTCOME_ABANDONED;
}

#define QUOTA_TOKENS       500
#define RETRY_AFTER_MAX_MS 60000

/* Sources: "Error responses" (Amazon S3 API Reference), "Error handling with DynamoDB" (Developer
 * Guide), "Common errors" of both, and the codes that AWS's own SDKs retry. What is not here goes
 * by the status. */
#define CODES_MOST 20
static const struct {
	struct verdict verdict;
	const char *codes[CODES_MOST];
} verdicts[] = {
	/* Those of DynamoDB without "Exception" are of one statement of a BatchExecuteStatement. */
	{{RETRY_NONE, OUTCOME_REFUSED},
		{"ConditionalCheckFailedException", "ConditionalCheckFailed", "DuplicateItem",
			"DuplicateItemException", "PreconditionFailed", "ResourceInUseException"}},
	{{RETRY_TRANSIENT, OUTCOME_CONFLICT}, {"ConditionalRequestConflict"}},
	{{RETRY_NONE, OUTCOME_ABSENT}, {"NoSuchKey", "NoSuchVersion"}},
	{{RETRY_NONE, OUTCOME_NO_UPLOAD}, {"NoSuchUpload"}},
	{{RETRY_NONE, OUTCOME_BAD_PART}, {"InvalidPart", "InvalidPartOrder", "EntityTooSmall"}},
	{{RETRY_NONE, OUTCOME_UNSUPPORTED},
		{"NotImplemented", "MethodNotAllowed", "UnknownOperationException"}},
	{{RETRY_DIGEST, OUTCOME_BAD_DIGEST},
		{"BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch",
			"XAmzContentChecksumMismatch"}},
	{{RETRY_NONE, OUTCOME_DENIED}, {"AccessDenied", "AccessDeniedException"}},
	/* Without a region in the reply there is nothing to correct. */
	{{RETRY_NONE, OUTCOME_SETUP},
		{"NoSuchBucket", "InvalidBucketName", "ResourceNotFoundException",
			"ResourceNotFound", "SignatureDoesNotMatch", "InvalidSignatureException",
			"IncompleteSignature", "IncompleteSignatureException",
			"MissingAuthenticationToken", "MissingAuthenticationTokenException",
			"AccountProblem", "AllAccessDisabled", "NotSignedUp", "OptInRequired",
			"UserSuspended", "QuotaExceeded", "AuthorizationHeaderMalformed",
			"IllegalLocationConstraintException", "PermanentRedirect"}},
	{{RETRY_NONE, OUTCOME_SETTING},
		{"InvalidStorageClass", "InvalidEncryptionAlgorithmError", "InvalidTag",
			"AccessControlListNotSupported", "ObjectLockConfigurationNotFoundError"}},
	{{RETRY_CREDENTIALS, OUTCOME_SETUP},
		{"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired",
			"InvalidToken", "InvalidAccessKeyId", "InvalidClientTokenId",
			"UnrecognizedClientException"}},
	{{RETRY_CLOCK, OUTCOME_SETUP}, {"RequestTimeTooSkewed", "RequestInTheFuture"}},
	{{RETRY_TRANSIENT, OUTCOME_SETUP}, {"TemporaryRedirect"}},
	{{RETRY_THROTTLE, OUTCOME_THROTTLED},
		{"SlowDown", "BandwidthLimitExceeded", "KMS.ThrottlingException",
			"LimitExceededException", "PriorRequestNotComplete",
			"ProvisionedThroughputExceededException", "ProvisionedThroughputExceeded",
			"ReplicatedWriteConflictException", "RequestLimitExceeded",
			"RequestThrottled", "RequestThrottledException", "ThrottledException",
			"Throttling", "ThrottlingException", "ThrottlingError",
			"TooManyRequestsException", "TransactionConflictException",
			"TransactionConflict", "TransactionInProgressException"}},
	{{RETRY_TRANSIENT, OUTCOME_TRANSIENT},
		{"ConcurrentModification", "IncompleteBody", "InternalError", "InternalFailure",
			"InternalServerError", "OperationAborted", "RequestTimeout",
			"RequestTimeoutException", "ServiceUnavailable"}},
};

/* Of an attempt without a reply. Any other error may have come after the request was applied. */
static const struct {
	int error;
	struct verdict verdict;
} errors[] = {
	{-ECANCELED, {RETRY_NONE, OUTCOME_ABANDONED}},
	{-ENOENT, {RETRY_TRANSIENT, OUTCOME_SETUP}},
	{-ECONNREFUSED, {RETRY_TRANSIENT, OUTCOME_SETUP}},
	{-EMFILE, {RETRY_TRANSIENT, OUTCOME_SETUP}},
	{-EPROTO, {RETRY_NONE, OUTCOME_SETUP}},
	{-EINVAL, {RETRY_NONE, OUTCOME_SETUP}},
	{-EIO, {RETRY_NONE, OUTCOME_LOCAL}},
	{-ENOMEM, {RETRY_NONE, OUTCOME_LOCAL}},
};

/* Of a code that is not known, or of none. */
static const struct {
	int status;
	struct verdict verdict;
} statuses[] = {
	/* others below 500 are not tried again, and others from 500 on are */
	{307, {RETRY_TRANSIENT, OUTCOME_SETUP}},
	{401, {RETRY_NONE, OUTCOME_SETUP}},
	{403, {RETRY_NONE, OUTCOME_DENIED}},
	/* Of a write it is the bucket, the key, or a server that does not take the key. */
	{404, {RETRY_NONE, OUTCOME_SETUP}},
	{405, {RETRY_NONE, OUTCOME_UNSUPPORTED}},
	{407, {RETRY_NONE, OUTCOME_SETUP}},
	{408, {RETRY_TRANSIENT, OUTCOME_TRANSIENT}},
	{409, {RETRY_TRANSIENT, OUTCOME_CONFLICT}},
	{412, {RETRY_NONE, OUTCOME_REFUSED}},
	{501, {RETRY_NONE, OUTCOME_UNSUPPORTED}},
};

/* What a status says beside a code that is not known, or none. */
static struct verdict by_status(const struct attempt *attempt)
{
	const int status = attempt->status;
	const bool is_bare = !attempt->code[0], is_head = attempt->is_s3 && is_bare;
	if (status >= 200 && status < 300 && is_bare)
		return (struct verdict){RETRY_NONE, OUTCOME_OK};
	if (status >= 400 && status < 500 && strncmp(attempt->code, "KMS.", 4) == 0)
		return (struct verdict){RETRY_NONE, OUTCOME_SETTING};
	if (status == 404 && is_head)
		return (struct verdict){RETRY_NONE, OUTCOME_ABSENT};
	/* How HEAD says ExpiredToken, among others. DynamoDB names a code: it was damaged on the
	 * way. */
	if (status == 400 && is_bare)
		return (struct verdict){
			is_head ? RETRY_CREDENTIALS : RETRY_TRANSIENT, OUTCOME_INVALID};
	/* The reply to a HEAD does not have a body that could say SlowDown. For a write, a bare 503
	 * says nothing. */
	if (status == 503 && is_head && !attempt->is_write)
		return (struct verdict){RETRY_THROTTLE, OUTCOME_THROTTLED};
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
		if (statuses[i].status == status)
			return statuses[i].verdict;
	if (status >= 300 && status < 500)
		return (struct verdict){RETRY_NONE, status < 400 ? OUTCOME_SETUP : OUTCOME_INVALID};
	return (struct verdict){RETRY_TRANSIENT, OUTCOME_TRANSIENT};
}

struct verdict classify(const struct attempt *attempt)
{
	/* What the service did is not known, and a write may have been applied. */
	const enum outcome unknown = attempt->is_write ? OUTCOME_LOST : OUTCOME_TRANSIENT;
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].error == attempt->error)
			return errors[i].verdict;
	if (attempt->error)
		return (struct verdict){
			attempt->error == -EMSGSIZE ? RETRY_NONE : RETRY_TRANSIENT, unknown};
	if (attempt->status == 429) /* with whatever code: R2 says ServiceUnavailable */
		return (struct verdict){RETRY_THROTTLE, OUTCOME_THROTTLED};
	/* Complete and Create are not repeated blindly: the caller looks first. */
	if (attempt->body_is_unreadable)
		return (struct verdict){
			attempt->is_s3 && attempt->is_write ? RETRY_NONE : RETRY_TRANSIENT,
			unknown};
	struct verdict verdict = by_status(attempt);
	for (size_t i = 0; attempt->code[0] && i < sizeof verdicts / sizeof *verdicts; i++)
		for (size_t j = 0; j < CODES_MOST && verdicts[i].codes[j]; j++)
			if (strcmp(verdicts[i].codes[j], attempt->code) == 0)
				verdict = verdicts[i].verdict;
	bool is_refusal = verdict.outcome == OUTCOME_SETUP || verdict.outcome == OUTCOME_INVALID ||
			  (verdict.outcome == OUTCOME_DENIED && !attempt->code[0]);
	if (is_refusal && attempt->names_other_region && attempt->status != 404)
		verdict = (struct verdict){RETRY_REGION, OUTCOME_SETUP};
	else if (is_refusal && attempt->clock_is_off)
		verdict = (struct verdict){RETRY_CLOCK, OUTCOME_SETUP};
	return verdict;
}

uint64_t retry_backoff_ms(
	enum retry_class retry, bool is_s3, unsigned attempt, uint64_t retry_after_ms)
{
	uint64_t base = retry == RETRY_THROTTLE ? 1000 : is_s3 ? 50 : 25;
	uint64_t most = attempt < 16 ? base << attempt : RETRY_CAP_MS;
	uint64_t ms = random_below((most < RETRY_CAP_MS ? most : RETRY_CAP_MS) + 1);
	uint64_t least = retry_after_ms < RETRY_AFTER_MAX_MS ? retry_after_ms : RETRY_AFTER_MAX_MS;
	return ms > least ? ms : least;
}

void retry_quota_init(struct retry_quota *quota)
{
	quota->tokens = QUOTA_TOKENS;
}

unsigned retry_cost(enum retry_class retry)
{
	static const unsigned costs[] = {[RETRY_TRANSIENT] = 14,
		[RETRY_DIGEST] = 14,
		[RETRY_THROTTLE] = 5,
		[RETRY_REGION] = 0};
	return costs[retry];
}

bool retry_quota_take(struct retry_quota *quota, enum retry_class retry)
{
	int cost = (int)retry_cost(retry), tokens = atomic_load(&quota->tokens);
	while (tokens >= cost)
		if (atomic_compare_exchange_weak(&quota->tokens, &tokens, tokens - cost))
			return true;
	return false;
}

void retry_quota_refill(struct retry_quota *quota, unsigned tokens)
{
	int now = atomic_load(&quota->tokens), then;
	do
		then = now + (int)tokens < QUOTA_TOKENS ? now + (int)tokens : QUOTA_TOKENS;
	while (then != now && !atomic_compare_exchange_weak(&quota->tokens, &now, then));
}

enum outcome wait_within(const struct call_limits *limits, uint64_t ms, struct problem *ret_problem)
{
	static const struct call_limits none;
	const struct call_limits *by = limits ? limits : &none;
	const uint64_t end_ns = clock_boot_ns() + ms * NS_PER_MS;
	const char *why = NULL;
	if (by->deadline_ns && end_ns > by->deadline_ns)
		why = "the deadline passed";
	else if (wait_until(false, .deadline_ns = end_ns, .abandon = by->abandon,
			 .arg = by->abandon_arg) == WAIT_ABANDONED)
		why = "stopped";
	if (!why)
		return OUTCOME_OK;
	problem_set(ret_problem, "%s before the next attempt", why);
	return OUTCOME_ABANDONED;
}

bool limits_are_over(const struct call_limits *limits)
{
	return (limits->deadline_ns && clock_boot_ns() >= limits->deadline_ns) ||
	       (limits->abandon && limits->abandon(limits->abandon_arg));
}
