#include "../check.h"
#include "aws/retry.h"
#include "base/clock.h"
#include <errno.h>

struct row {
	struct attempt attempt;
	enum retry_class retry;
	enum outcome outcome;
};

#define S3(status_, code_)  .status = status_, .code = code_, .is_s3 = true
#define DDB(status_, code_) .status = status_, .code = code_

static const struct row rows[] = {
	{{S3(200, "")}, RETRY_NONE, OUTCOME_OK},
	{{S3(204, ""), .is_write = true}, RETRY_NONE, OUTCOME_OK},
	{{DDB(200, "")}, RETRY_NONE, OUTCOME_OK},
	{{S3(200, "InternalError"), .is_write = true}, RETRY_TRANSIENT, OUTCOME_TRANSIENT},
	{{S3(200, "NoSuchUpload"), .is_write = true}, RETRY_NONE, OUTCOME_NO_UPLOAD},
	{{S3(200, "NeverHeardOf"), .is_write = true}, RETRY_TRANSIENT, OUTCOME_TRANSIENT},

	{{S3(412, "PreconditionFailed")}, RETRY_NONE, OUTCOME_REFUSED},
	{{S3(412, "")}, RETRY_NONE, OUTCOME_REFUSED},
	{{DDB(400, "ConditionalCheckFailedException")}, RETRY_NONE, OUTCOME_REFUSED},
	{{DDB(400, "ResourceInUseException")}, RETRY_NONE, OUTCOME_REFUSED},
	{{S3(409, "ConditionalRequestConflict")}, RETRY_TRANSIENT, OUTCOME_CONFLICT},
	{{S3(409, "")}, RETRY_TRANSIENT, OUTCOME_CONFLICT},
	{{S3(409, "OperationAborted")}, RETRY_TRANSIENT, OUTCOME_TRANSIENT},
	{{S3(404, "NoSuchKey")}, RETRY_NONE, OUTCOME_ABSENT},
	{{S3(404, "")}, RETRY_NONE, OUTCOME_ABSENT},
	{{S3(404, ""), .is_write = true}, RETRY_NONE, OUTCOME_ABSENT},
	{{S3(404, "NoSuchUpload")}, RETRY_NONE, OUTCOME_NO_UPLOAD},
	{{S3(404, "NoSuchBucket")}, RETRY_NONE, OUTCOME_SETUP},
	{{DDB(400, "ResourceNotFoundException")}, RETRY_NONE, OUTCOME_SETUP},
	{{DDB(404, "")}, RETRY_NONE, OUTCOME_SETUP},
	{{S3(400, "InvalidPart")}, RETRY_NONE, OUTCOME_BAD_PART},
	{{S3(400, "InvalidPartOrder")}, RETRY_NONE, OUTCOME_BAD_PART},
	{{S3(400, "EntityTooSmall")}, RETRY_NONE, OUTCOME_BAD_PART},
	{{S3(501, "NotImplemented")}, RETRY_NONE, OUTCOME_UNSUPPORTED},
	{{S3(501, "")}, RETRY_NONE, OUTCOME_UNSUPPORTED},
	{{S3(405, "MethodNotAllowed")}, RETRY_NONE, OUTCOME_UNSUPPORTED},
	{{DDB(400, "UnknownOperationException")}, RETRY_NONE, OUTCOME_UNSUPPORTED},
	{{S3(400, "BadDigest"), .is_write = true}, RETRY_DIGEST, OUTCOME_BAD_DIGEST},
	{{S3(400, "XAmzContentSHA256Mismatch"), .is_write = true}, RETRY_DIGEST,
		OUTCOME_BAD_DIGEST},
	{{S3(400, "EntityTooLarge")}, RETRY_NONE, OUTCOME_INVALID},
	{{S3(400, "KeyTooLongError")}, RETRY_NONE, OUTCOME_INVALID},
	{{S3(400, "InvalidArgument")}, RETRY_NONE, OUTCOME_INVALID},
	{{DDB(400, "ValidationException")}, RETRY_NONE, OUTCOME_INVALID},
	{{DDB(400, "ItemCollectionSizeLimitExceededException")}, RETRY_NONE, OUTCOME_INVALID},
	{{S3(413, "")}, RETRY_NONE, OUTCOME_INVALID},

	{{S3(403, "AccessDenied")}, RETRY_NONE, OUTCOME_DENIED},
	{{S3(403, "")}, RETRY_NONE, OUTCOME_DENIED},
	{{DDB(400, "AccessDeniedException")}, RETRY_NONE, OUTCOME_DENIED},
	{{S3(400, "InvalidStorageClass"), .is_write = true}, RETRY_NONE, OUTCOME_SETTING},
	{{S3(400, "KMS.DisabledException"), .is_write = true}, RETRY_NONE, OUTCOME_SETTING},
	{{S3(400, "KMS.NeverHeardOf"), .is_write = true}, RETRY_NONE, OUTCOME_SETTING},
	{{S3(500, "KMS.KMSInternalException"), .is_write = true}, RETRY_TRANSIENT,
		OUTCOME_TRANSIENT},
	{{S3(403, "InvalidAccessKeyId")}, RETRY_CREDENTIALS, OUTCOME_SETUP},
	{{DDB(400, "UnrecognizedClientException")}, RETRY_CREDENTIALS, OUTCOME_SETUP},
	{{S3(403, "SignatureDoesNotMatch")}, RETRY_NONE, OUTCOME_SETUP},
	{{S3(403, "SignatureDoesNotMatch"), .signature_is_good = true}, RETRY_NONE, OUTCOME_DENIED},
	{{S3(403, "SignatureDoesNotMatch"), .signature_is_good = true, .clock_is_off = true},
		RETRY_CLOCK, OUTCOME_SETUP},
	{{DDB(400, "InvalidSignatureException"), .signature_is_good = true}, RETRY_NONE,
		OUTCOME_SETUP},
	{{DDB(400, "InvalidSignatureException")}, RETRY_NONE, OUTCOME_SETUP},
	{{S3(400, "ExpiredToken")}, RETRY_CREDENTIALS, OUTCOME_SETUP},
	{{S3(400, "")}, RETRY_CREDENTIALS, OUTCOME_INVALID},
	{{DDB(400, "")}, RETRY_TRANSIENT, OUTCOME_INVALID},
	{{DDB(400, "ExpiredTokenException")}, RETRY_CREDENTIALS, OUTCOME_SETUP},
	{{S3(401, "")}, RETRY_NONE, OUTCOME_SETUP},
	{{S3(407, "")}, RETRY_NONE, OUTCOME_SETUP},

	{{S3(403, "RequestTimeTooSkewed")}, RETRY_CLOCK, OUTCOME_SETUP},
	{{S3(403, "SignatureDoesNotMatch"), .clock_is_off = true}, RETRY_CLOCK, OUTCOME_SETUP},
	{{S3(403, ""), .clock_is_off = true}, RETRY_CLOCK, OUTCOME_SETUP},
	{{S3(403, "AccessDenied"), .clock_is_off = true}, RETRY_NONE, OUTCOME_DENIED},
	{{DDB(400, "InvalidSignatureException"), .clock_is_off = true}, RETRY_CLOCK, OUTCOME_SETUP},
	{{S3(200, ""), .clock_is_off = true}, RETRY_NONE, OUTCOME_OK},
	{{S3(412, ""), .clock_is_off = true}, RETRY_NONE, OUTCOME_REFUSED},

	{{S3(301, "PermanentRedirect"), .names_other_region = true}, RETRY_REGION, OUTCOME_SETUP},
	{{S3(301, ""), .names_other_region = true}, RETRY_REGION, OUTCOME_SETUP},
	{{S3(307, "TemporaryRedirect"), .names_other_region = true}, RETRY_REGION, OUTCOME_SETUP},
	{{S3(400, "AuthorizationHeaderMalformed"), .names_other_region = true}, RETRY_REGION,
		OUTCOME_SETUP},
	{{S3(400, ""), .names_other_region = true}, RETRY_REGION, OUTCOME_SETUP},
	{{S3(403, "AccessDenied"), .names_other_region = true}, RETRY_NONE, OUTCOME_DENIED},
	{{S3(404, "NoSuchBucket"), .names_other_region = true}, RETRY_NONE, OUTCOME_SETUP},
	{{S3(200, ""), .names_other_region = true}, RETRY_NONE, OUTCOME_OK},
	{{S3(301, "PermanentRedirect")}, RETRY_NONE, OUTCOME_SETUP},
	{{S3(302, "")}, RETRY_NONE, OUTCOME_SETUP},
	{{S3(307, "")}, RETRY_TRANSIENT, OUTCOME_SETUP},
	{{S3(400, "AuthorizationHeaderMalformed")}, RETRY_NONE, OUTCOME_SETUP},

	{{S3(503, "SlowDown"), .is_write = true}, RETRY_THROTTLE, OUTCOME_THROTTLED},
	{{S3(503, "")}, RETRY_THROTTLE, OUTCOME_THROTTLED},
	{{S3(503, ""), .is_write = true}, RETRY_TRANSIENT, OUTCOME_TRANSIENT},
	{{S3(507, ""), .is_write = true}, RETRY_NONE, OUTCOME_SETUP},
	{{S3(405, "")}, RETRY_NONE, OUTCOME_UNSUPPORTED},
	{{S3(404, "NeverHeardOf")}, RETRY_NONE, OUTCOME_SETUP},
	{{S3(403, "NeverHeardOf")}, RETRY_NONE, OUTCOME_DENIED},
	{{S3(418, "")}, RETRY_NONE, OUTCOME_INVALID},
	{{S3(304, "")}, RETRY_NONE, OUTCOME_SETUP},
	{{DDB(503, ""), .is_write = true}, RETRY_TRANSIENT, OUTCOME_TRANSIENT},
	{{DDB(404, "UnknownOperationException")}, RETRY_NONE, OUTCOME_UNSUPPORTED},
	{{.error = -EMSGSIZE, .code = ""}, RETRY_NONE, OUTCOME_TRANSIENT},
	{{S3(429, "")}, RETRY_THROTTLE, OUTCOME_THROTTLED},
	{{S3(429, "ServiceUnavailable"), .is_write = true}, RETRY_THROTTLE, OUTCOME_THROTTLED},
	{{S3(429, ""), .body_is_unreadable = true, .is_write = true}, RETRY_THROTTLE,
		OUTCOME_THROTTLED},
	{{S3(400, "KMS.ThrottlingException"), .is_write = true}, RETRY_THROTTLE, OUTCOME_THROTTLED},
	{{DDB(400, "ThrottlingException")}, RETRY_THROTTLE, OUTCOME_THROTTLED},
	{{DDB(400, "ProvisionedThroughputExceededException")}, RETRY_THROTTLE, OUTCOME_THROTTLED},
	{{DDB(400, "RequestLimitExceeded")}, RETRY_THROTTLE, OUTCOME_THROTTLED},
	{{DDB(400, "TransactionConflictException")}, RETRY_THROTTLE, OUTCOME_THROTTLED},
	{{S3(500, "InternalError")}, RETRY_TRANSIENT, OUTCOME_TRANSIENT},
	{{S3(500, "")}, RETRY_TRANSIENT, OUTCOME_TRANSIENT},
	{{S3(502, "")}, RETRY_TRANSIENT, OUTCOME_TRANSIENT},
	{{S3(504, "")}, RETRY_TRANSIENT, OUTCOME_TRANSIENT},
	{{DDB(500, "InternalServerError")}, RETRY_TRANSIENT, OUTCOME_TRANSIENT},
	{{DDB(503, "")}, RETRY_TRANSIENT, OUTCOME_TRANSIENT},
	{{S3(400, "RequestTimeout")}, RETRY_TRANSIENT, OUTCOME_TRANSIENT},
	{{S3(408, "")}, RETRY_TRANSIENT, OUTCOME_TRANSIENT},

	{{S3(200, ""), .body_is_unreadable = true, .is_write = true}, RETRY_NONE, OUTCOME_LOST},
	{{S3(200, ""), .body_is_unreadable = true}, RETRY_TRANSIENT, OUTCOME_TRANSIENT},
	{{DDB(200, ""), .body_is_unreadable = true, .is_write = true}, RETRY_TRANSIENT,
		OUTCOME_LOST},
	{{DDB(200, ""), .body_is_unreadable = true}, RETRY_TRANSIENT, OUTCOME_TRANSIENT},

	{{.error = -ECONNRESET, .code = "", .is_write = true}, RETRY_TRANSIENT, OUTCOME_LOST},
	{{.error = -ECONNRESET, .code = ""}, RETRY_TRANSIENT, OUTCOME_TRANSIENT},
	{{.error = -ETIMEDOUT, .code = "", .is_write = true}, RETRY_TRANSIENT, OUTCOME_LOST},
	{{.error = -EMSGSIZE, .code = "", .is_write = true}, RETRY_NONE, OUTCOME_LOST},
	{{.error = -ENOENT, .code = "", .is_write = true}, RETRY_TRANSIENT, OUTCOME_SETUP},
	{{.error = -ECONNREFUSED, .code = "", .is_write = true}, RETRY_TRANSIENT, OUTCOME_SETUP},
	{{.error = -EMFILE, .code = "", .is_write = true}, RETRY_TRANSIENT, OUTCOME_SETUP},
	{{.error = -EPROTO, .code = "", .is_write = true}, RETRY_NONE, OUTCOME_SETUP},
	{{.error = -EINVAL, .code = ""}, RETRY_NONE, OUTCOME_SETUP},
	{{.error = -ECANCELED, .code = "", .is_write = true}, RETRY_NONE, OUTCOME_ABANDONED},
	{{.error = -EIO, .code = "", .is_write = true}, RETRY_NONE, OUTCOME_LOCAL},
	{{.error = -ENOMEM, .code = ""}, RETRY_NONE, OUTCOME_LOCAL},
};

static void test_classify(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct verdict verdict = classify(&rows[i].attempt);
		if (!CHECK_INT(verdict.retry, rows[i].retry) ||
			!CHECK_STRING(outcome_name(verdict.outcome), outcome_name(rows[i].outcome)))
			fprintf(stderr, "\trow %zu: %d %s\n", i, rows[i].attempt.status,
				rows[i].attempt.code);
	}
}

/* Codes that are known whatever the status is: all that the rows above do not have. */
static const struct {
	enum retry_class retry;
	enum outcome outcome;
	const char *codes[20];
} codes[] = {
	{RETRY_NONE, OUTCOME_REFUSED,
		{"ConditionalCheckFailed", "DuplicateItem", "DuplicateItemException"}},
	{RETRY_NONE, OUTCOME_ABSENT, {"NoSuchVersion"}},
	{RETRY_DIGEST, OUTCOME_BAD_DIGEST, {"InvalidDigest", "XAmzContentChecksumMismatch"}},
	{RETRY_NONE, OUTCOME_SETUP,
		{"InvalidBucketName", "QuotaExceeded", "XMinioAdminBucketQuotaExceeded",
			"XMinioStorageFull", "InsufficientCapacity", "ResourceNotFound",
			"IncompleteSignature", "IncompleteSignatureException",
			"MissingAuthenticationToken", "MissingAuthenticationTokenException",
			"AccountProblem", "AllAccessDisabled", "NotSignedUp", "OptInRequired",
			"UserSuspended", "IllegalLocationConstraintException"}},
	{RETRY_NONE, OUTCOME_SETTING,
		{"InvalidEncryptionAlgorithmError", "InvalidTag", "AccessControlListNotSupported",
			"ObjectLockConfigurationNotFoundError"}},
	{RETRY_CREDENTIALS, OUTCOME_SETUP,
		{"RequestExpired", "TokenRefreshRequired", "InvalidToken", "InvalidClientTokenId"}},
	{RETRY_CLOCK, OUTCOME_SETUP, {"RequestInTheFuture"}},
	{RETRY_TRANSIENT, OUTCOME_SETUP, {"TemporaryRedirect"}},
	{RETRY_THROTTLE, OUTCOME_THROTTLED,
		{"BandwidthLimitExceeded", "LimitExceededException", "PriorRequestNotComplete",
			"ProvisionedThroughputExceeded", "ReplicatedWriteConflictException",
			"RequestThrottled", "RequestThrottledException", "ThrottledException",
			"Throttling", "ThrottlingError", "TooManyRequestsException",
			"TransactionConflict", "TransactionInProgressException"}},
	{RETRY_TRANSIENT, OUTCOME_TRANSIENT,
		{"ConcurrentModification", "IncompleteBody", "InternalFailure",
			"RequestTimeoutException", "ServiceUnavailable"}},
};

static void test_codes(void)
{
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		for (size_t j = 0; codes[i].codes[j]; j++)
			for (int k = 0; k < 4; k++) {
				const struct attempt attempt = {.code = codes[i].codes[j],
					.status = k & 1 ? 400 : 500,
					.is_s3 = k & 2,
					.is_write = true};
				const struct verdict verdict = classify(&attempt);
				if (!CHECK_INT(verdict.retry, codes[i].retry) ||
					!CHECK_INT(verdict.outcome, codes[i].outcome))
					fprintf(stderr, "\t%s\n", attempt.code);
			}
}

static bool always(void *arg)
{
	return true;
}

static bool never(void *arg)
{
	return false;
}

/* A wait that cannot end before the deadline does not begin. */
static void test_waits(void)
{
	const uint64_t now_ns = clock_boot_ns(), later_ns = now_ns + 60 * NS_PER_S;
	const struct {
		struct call_limits limits;
		uint64_t ms;
		enum outcome outcome;
		bool is_over;
	} cases[] = {
		{{0}, 1, OUTCOME_OK, false},
		{{.deadline_ns = later_ns, .abandon = never}, 1, OUTCOME_OK, false},
		{{.deadline_ns = later_ns}, 120000, OUTCOME_ABANDONED, false},
		{{.deadline_ns = now_ns}, 1, OUTCOME_ABANDONED, true},
		{{.abandon = always}, 120000, OUTCOME_ABANDONED, true},
		{{.deadline_ns = later_ns, .abandon = always}, 1000, OUTCOME_ABANDONED, true},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct problem problem = {0};
		if (!CHECK_INT(wait_within(&cases[i].limits, cases[i].ms, &problem),
			    cases[i].outcome) ||
			!CHECK(limits_are_over(&cases[i].limits) == cases[i].is_over))
			fprintf(stderr, "\twait %zu\n", i);
	}
	CHECK(clock_boot_ns() < later_ns);
	CHECK_INT(wait_within(NULL, 0, NULL), OUTCOME_OK);
}

/* After any of these a write may have been applied; after any other it was not. */
static void test_ambiguous(void)
{
	static const enum outcome ambiguous[] = {
		OUTCOME_LOST, OUTCOME_TRANSIENT, OUTCOME_ABANDONED};
	static const enum outcome clear[] = {OUTCOME_OK, OUTCOME_REFUSED, OUTCOME_CONFLICT,
		OUTCOME_ABSENT, OUTCOME_NO_UPLOAD, OUTCOME_BAD_PART, OUTCOME_UNSUPPORTED,
		OUTCOME_BAD_DIGEST, OUTCOME_DENIED, OUTCOME_SETTING, OUTCOME_INVALID, OUTCOME_SETUP,
		OUTCOME_THROTTLED, OUTCOME_LOCAL};
	for (size_t i = 0; i < sizeof ambiguous / sizeof *ambiguous; i++)
		CHECK(outcome_is_ambiguous(ambiguous[i]));
	for (size_t i = 0; i < sizeof clear / sizeof *clear; i++)
		CHECK(!outcome_is_ambiguous(clear[i]));
}

static void test_backoff(void)
{
	static const struct {
		enum retry_class retry;
		enum retry_service service;
		unsigned attempt;
		uint64_t most;
	} cases[] = {
		{RETRY_TRANSIENT, RETRY_OF_S3, 0, 50},
		{RETRY_TRANSIENT, RETRY_OF_DYNAMODB, 0, 25},
		{RETRY_TRANSIENT, RETRY_OF_S3, 3, 400},
		{RETRY_TRANSIENT, RETRY_OF_S3, 1000, 20000},
		{RETRY_THROTTLE, RETRY_OF_S3, 0, 1000},
		{RETRY_THROTTLE, RETRY_OF_DYNAMODB, 5, 20000},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t least = UINT64_MAX, most = 0;
		for (int n = 0; n < 1000; n++) {
			uint64_t ms = retry_backoff_ms(
				cases[i].retry, cases[i].service, cases[i].attempt);
			least = ms < least ? ms : least;
			most = ms > most ? ms : most;
		}
		CHECK(most <= cases[i].most);
		/* All of it is used: 1000 draws miss the outer tenths with probability 1e-45. */
		uint64_t tenth = cases[i].most / 10;
		CHECK(least <= tenth && most >= cases[i].most - tenth);
	}
}

static void test_quota(void)
{
	atomic_int quota = RETRY_TOKENS;
	int taken = 0;
	while (taken < 1000 && retry_quota_take(&quota))
		taken++;
	CHECK_INT(taken, 35); /* 35 * 14 = 490 */
	CHECK_INT(quota, 10);
	retry_quota_refill(&quota, 4);
	CHECK(retry_quota_take(&quota));
	CHECK(!retry_quota_take(&quota));
	retry_quota_refill(&quota, 100000);
	CHECK_INT(quota, 500);
}

int main(void)
{
	test_classify();
	test_codes();
	test_waits();
	test_ambiguous();
	test_backoff();
	test_quota();
	CHECK(!code_sentence("") && !code_sentence("AccessDenied"));
	CHECK_STRING(code_sentence("SlowDown"), "the server asks to slow down");
	return check_result();
}
