/* What an answer means, and how long to wait before the next try. classify() is the one place
 * that decides; call.c and credentials_provider.c do what it says. */
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

bool outcome_is_ambiguous(enum outcome o)
{
	return o == OUTCOME_LOST || o == OUTCOME_TRANSIENT || o == OUTCOME_ABANDONED;
}

#define QUOTA_TOKENS       500
#define RETRY_AFTER_MAX_MS 60000

/* Sources: "Error responses" (Amazon S3 API Reference), "Error handling with DynamoDB" (Developer
 * Guide), "Common errors" of both, and the codes that AWS's own SDKs retry. What is not here goes
 * by the status. */
static const struct {
	const char *code;
	struct verdict verdict;
} codes[] = {
	{"ConditionalCheckFailedException", {RETRY_NONE, OUTCOME_REFUSED}},
	/* Those without "Exception" are of one statement of a BatchExecuteStatement. */
	{"ConditionalCheckFailed", {RETRY_NONE, OUTCOME_REFUSED}},
	{"DuplicateItem", {RETRY_NONE, OUTCOME_REFUSED}},
	{"DuplicateItemException", {RETRY_NONE, OUTCOME_REFUSED}},
	{"PreconditionFailed", {RETRY_NONE, OUTCOME_REFUSED}},
	{"ResourceInUseException", {RETRY_NONE, OUTCOME_REFUSED}},
	{"ConditionalRequestConflict", {RETRY_TRANSIENT, OUTCOME_CONFLICT}},
	{"NoSuchKey", {RETRY_NONE, OUTCOME_ABSENT}},
	{"NoSuchVersion", {RETRY_NONE, OUTCOME_ABSENT}},
	{"NoSuchUpload", {RETRY_NONE, OUTCOME_NO_UPLOAD}},
	{"InvalidPart", {RETRY_NONE, OUTCOME_BAD_PART}},
	{"InvalidPartOrder", {RETRY_NONE, OUTCOME_BAD_PART}},
	{"EntityTooSmall", {RETRY_NONE, OUTCOME_BAD_PART}},
	{"NotImplemented", {RETRY_NONE, OUTCOME_UNSUPPORTED}},
	{"MethodNotAllowed", {RETRY_NONE, OUTCOME_UNSUPPORTED}},
	{"UnknownOperationException", {RETRY_NONE, OUTCOME_UNSUPPORTED}},

	{"BadDigest", {RETRY_DIGEST, OUTCOME_BAD_DIGEST}},
	{"InvalidDigest", {RETRY_DIGEST, OUTCOME_BAD_DIGEST}},
	{"XAmzContentSHA256Mismatch", {RETRY_DIGEST, OUTCOME_BAD_DIGEST}},
	{"XAmzContentChecksumMismatch", {RETRY_DIGEST, OUTCOME_BAD_DIGEST}},

	{"AccessDenied", {RETRY_NONE, OUTCOME_DENIED}},
	{"AccessDeniedException", {RETRY_NONE, OUTCOME_DENIED}},

	{"NoSuchBucket", {RETRY_NONE, OUTCOME_SETUP}},
	{"InvalidBucketName", {RETRY_NONE, OUTCOME_SETUP}},
	{"ResourceNotFoundException", {RETRY_NONE, OUTCOME_SETUP}},
	{"ResourceNotFound", {RETRY_NONE, OUTCOME_SETUP}},
	{"SignatureDoesNotMatch", {RETRY_NONE, OUTCOME_SETUP}},
	{"InvalidSignatureException", {RETRY_NONE, OUTCOME_SETUP}},
	{"IncompleteSignature", {RETRY_NONE, OUTCOME_SETUP}},
	{"IncompleteSignatureException", {RETRY_NONE, OUTCOME_SETUP}},
	{"MissingAuthenticationToken", {RETRY_NONE, OUTCOME_SETUP}},
	{"MissingAuthenticationTokenException", {RETRY_NONE, OUTCOME_SETUP}},
	{"AccountProblem", {RETRY_NONE, OUTCOME_SETUP}},
	{"AllAccessDisabled", {RETRY_NONE, OUTCOME_SETUP}},
	{"NotSignedUp", {RETRY_NONE, OUTCOME_SETUP}},
	{"OptInRequired", {RETRY_NONE, OUTCOME_SETUP}},
	{"UserSuspended", {RETRY_NONE, OUTCOME_SETUP}},
	{"QuotaExceeded", {RETRY_NONE, OUTCOME_SETUP}},

	{"InvalidStorageClass", {RETRY_NONE, OUTCOME_SETTING}},
	{"InvalidEncryptionAlgorithmError", {RETRY_NONE, OUTCOME_SETTING}},
	{"InvalidTag", {RETRY_NONE, OUTCOME_SETTING}},
	{"AccessControlListNotSupported", {RETRY_NONE, OUTCOME_SETTING}},
	{"ObjectLockConfigurationNotFoundError", {RETRY_NONE, OUTCOME_SETTING}},

	{"ExpiredToken", {RETRY_CREDENTIALS, OUTCOME_SETUP}},
	{"ExpiredTokenException", {RETRY_CREDENTIALS, OUTCOME_SETUP}},
	{"RequestExpired", {RETRY_CREDENTIALS, OUTCOME_SETUP}},
	{"TokenRefreshRequired", {RETRY_CREDENTIALS, OUTCOME_SETUP}},
	{"InvalidToken", {RETRY_CREDENTIALS, OUTCOME_SETUP}},
	{"InvalidAccessKeyId", {RETRY_CREDENTIALS, OUTCOME_SETUP}},
	{"InvalidClientTokenId", {RETRY_CREDENTIALS, OUTCOME_SETUP}},
	{"UnrecognizedClientException", {RETRY_CREDENTIALS, OUTCOME_SETUP}},

	{"RequestTimeTooSkewed", {RETRY_CLOCK, OUTCOME_SETUP}},
	{"RequestInTheFuture", {RETRY_CLOCK, OUTCOME_SETUP}},

	/* Without a region in the reply there is nothing to correct. */
	{"AuthorizationHeaderMalformed", {RETRY_NONE, OUTCOME_SETUP}},
	{"IllegalLocationConstraintException", {RETRY_NONE, OUTCOME_SETUP}},
	{"PermanentRedirect", {RETRY_NONE, OUTCOME_SETUP}},
	{"TemporaryRedirect", {RETRY_TRANSIENT, OUTCOME_SETUP}},

	{"SlowDown", {RETRY_THROTTLE, OUTCOME_THROTTLED}},
	{"BandwidthLimitExceeded", {RETRY_THROTTLE, OUTCOME_THROTTLED}},
	{"KMS.ThrottlingException", {RETRY_THROTTLE, OUTCOME_THROTTLED}},
	{"LimitExceededException", {RETRY_THROTTLE, OUTCOME_THROTTLED}},
	{"PriorRequestNotComplete", {RETRY_THROTTLE, OUTCOME_THROTTLED}},
	{"ProvisionedThroughputExceededException", {RETRY_THROTTLE, OUTCOME_THROTTLED}},
	{"ProvisionedThroughputExceeded", {RETRY_THROTTLE, OUTCOME_THROTTLED}},
	{"ReplicatedWriteConflictException", {RETRY_THROTTLE, OUTCOME_THROTTLED}},
	{"RequestLimitExceeded", {RETRY_THROTTLE, OUTCOME_THROTTLED}},
	{"RequestThrottled", {RETRY_THROTTLE, OUTCOME_THROTTLED}},
	{"RequestThrottledException", {RETRY_THROTTLE, OUTCOME_THROTTLED}},
	{"ThrottledException", {RETRY_THROTTLE, OUTCOME_THROTTLED}},
	{"Throttling", {RETRY_THROTTLE, OUTCOME_THROTTLED}},
	{"ThrottlingException", {RETRY_THROTTLE, OUTCOME_THROTTLED}},
	{"ThrottlingError", {RETRY_THROTTLE, OUTCOME_THROTTLED}},
	{"TooManyRequestsException", {RETRY_THROTTLE, OUTCOME_THROTTLED}},
	{"TransactionConflictException", {RETRY_THROTTLE, OUTCOME_THROTTLED}},
	{"TransactionConflict", {RETRY_THROTTLE, OUTCOME_THROTTLED}},
	{"TransactionInProgressException", {RETRY_THROTTLE, OUTCOME_THROTTLED}},

	{"ConcurrentModification", {RETRY_TRANSIENT, OUTCOME_TRANSIENT}},
	{"IncompleteBody", {RETRY_TRANSIENT, OUTCOME_TRANSIENT}},
	{"InternalError", {RETRY_TRANSIENT, OUTCOME_TRANSIENT}},
	{"InternalFailure", {RETRY_TRANSIENT, OUTCOME_TRANSIENT}},
	{"InternalServerError", {RETRY_TRANSIENT, OUTCOME_TRANSIENT}},
	{"OperationAborted", {RETRY_TRANSIENT, OUTCOME_TRANSIENT}},
	{"RequestTimeout", {RETRY_TRANSIENT, OUTCOME_TRANSIENT}},
	{"RequestTimeoutException", {RETRY_TRANSIENT, OUTCOME_TRANSIENT}},
	{"ServiceUnavailable", {RETRY_TRANSIENT, OUTCOME_TRANSIENT}},
};

static const struct verdict *find_code(const char *code)
{
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (strcmp(codes[i].code, code) == 0)
			return &codes[i].verdict;
	return NULL;
}

static struct verdict without_reply(const struct attempt *attempt)
{
	enum outcome unknown = attempt->is_write ? OUTCOME_LOST : OUTCOME_TRANSIENT;
	switch (attempt->error) {
	case -ECANCELED:
		return (struct verdict){RETRY_NONE, OUTCOME_ABANDONED};
	case -ENOENT:
	case -ECONNREFUSED:
	case -EMFILE:
		return (struct verdict){RETRY_TRANSIENT, OUTCOME_SETUP};
	case -EPROTO:
	case -EINVAL:
		return (struct verdict){RETRY_NONE, OUTCOME_SETUP};
	case -EIO:
	case -ENOMEM:
		return (struct verdict){RETRY_NONE, OUTCOME_LOCAL};
	case -EMSGSIZE:
		return (struct verdict){RETRY_NONE, unknown};
	default:
		return (struct verdict){RETRY_TRANSIENT, unknown};
	}
}

static struct verdict by_client_error(const struct attempt *attempt)
{
	bool is_bare = attempt->is_s3 && !attempt->code[0]; /* HEAD */
	switch (attempt->status) {
	case 400: /* how HEAD says ExpiredToken, among others */
		if (is_bare)
			return (struct verdict){RETRY_CREDENTIALS, OUTCOME_INVALID};
		if (!attempt->code[0]) /* DynamoDB names one: it was damaged on the way */
			return (struct verdict){RETRY_TRANSIENT, OUTCOME_INVALID};
		return (struct verdict){RETRY_NONE, OUTCOME_INVALID};
	case 401:
	case 407:
		return (struct verdict){RETRY_NONE, OUTCOME_SETUP};
	case 403:
		return (struct verdict){RETRY_NONE, OUTCOME_DENIED};
	case 404: /* of a write it is the bucket, the key, or a server that does not take the key */
		return (struct verdict){RETRY_NONE, is_bare ? OUTCOME_ABSENT : OUTCOME_SETUP};
	case 405:
		return (struct verdict){RETRY_NONE, OUTCOME_UNSUPPORTED};
	case 408:
		return (struct verdict){RETRY_TRANSIENT, OUTCOME_TRANSIENT};
	case 409:
		return (struct verdict){RETRY_TRANSIENT, OUTCOME_CONFLICT};
	case 412:
		return (struct verdict){RETRY_NONE, OUTCOME_REFUSED};
	default:
		return (struct verdict){RETRY_NONE, OUTCOME_INVALID};
	}
}

static struct verdict by_status(const struct attempt *attempt)
{
	if (attempt->status >= 200 && attempt->status < 300 && !attempt->code[0])
		return (struct verdict){RETRY_NONE, OUTCOME_OK};
	if (attempt->status == 307)
		return (struct verdict){RETRY_TRANSIENT, OUTCOME_SETUP};
	if (attempt->status >= 300 && attempt->status < 400)
		return (struct verdict){RETRY_NONE, OUTCOME_SETUP};
	if (attempt->status >= 400 && attempt->status < 500 &&
		strncmp(attempt->code, "KMS.", 4) == 0)
		return (struct verdict){RETRY_NONE, OUTCOME_SETTING};
	if (attempt->status >= 400 && attempt->status < 500)
		return by_client_error(attempt);
	if (attempt->status == 501)
		return (struct verdict){RETRY_NONE, OUTCOME_UNSUPPORTED};
	/* The reply to a HEAD does not have a body that could say SlowDown. For a write, a bare 503
	 * says nothing. */
	if (attempt->status == 503 && attempt->is_s3 && !attempt->is_write && !attempt->code[0])
		return (struct verdict){RETRY_THROTTLE, OUTCOME_THROTTLED};
	return (struct verdict){RETRY_TRANSIENT, OUTCOME_TRANSIENT};
}

static struct verdict unreadable_reply(const struct attempt *attempt)
{
	/* Complete and Create are not repeated blindly: the caller looks first. */
	if (attempt->is_s3 && attempt->is_write)
		return (struct verdict){RETRY_NONE, OUTCOME_LOST};
	return (struct verdict){
		RETRY_TRANSIENT, attempt->is_write ? OUTCOME_LOST : OUTCOME_TRANSIENT};
}

struct verdict classify(const struct attempt *attempt)
{
	if (attempt->error)
		return without_reply(attempt);
	if (attempt->status == 429) /* with whatever code: R2 says ServiceUnavailable */
		return (struct verdict){RETRY_THROTTLE, OUTCOME_THROTTLED};
	if (attempt->body_is_unreadable)
		return unreadable_reply(attempt);
	const struct verdict *found = attempt->code[0] ? find_code(attempt->code) : NULL;
	struct verdict verdict = found ? *found : by_status(attempt);
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
	switch (retry) {
	case RETRY_TRANSIENT:
	case RETRY_DIGEST:
		return 14;
	case RETRY_THROTTLE:
		return 5;
	default:
		return 0;
	}
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

static enum outcome abandoned_because(const char *why, struct problem *ret_problem)
{
	problem_set(ret_problem, "%s before the next attempt", why);
	return OUTCOME_ABANDONED;
}

enum outcome wait_within(const struct call_limits *limits, uint64_t ms, struct problem *ret_problem)
{
	static const struct call_limits none;
	const struct call_limits *by = limits ? limits : &none;
	const uint64_t end_ns = clock_boot_ns() + ms * NS_PER_MS;
	if (by->deadline_ns && end_ns > by->deadline_ns)
		return abandoned_because("the deadline passed", ret_problem);
	if (wait_until(false, .deadline_ns = end_ns, .abandon = by->abandon,
		    .arg = by->abandon_arg) == WAIT_ABANDONED)
		return abandoned_because("stopped", ret_problem);
	return OUTCOME_OK;
}

bool limits_are_over(const struct call_limits *limits)
{
	return (limits->deadline_ns && clock_boot_ns() >= limits->deadline_ns) ||
	       (limits->abandon && limits->abandon(limits->abandon_arg));
}
