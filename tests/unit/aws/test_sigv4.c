#include "../check.h"
#include "aws/sigv4.h"
#include <errno.h>
#include <stdlib.h>

#define S3_DATE    "20130524T000000Z"
#define SUITE_DATE "20150830T123600Z"
#define OUR_DATE   "20261121T075628Z"

struct row {
	const char *key, *secret;
	struct sigv4_request request;
	struct call_header headers[8];
	const char *signed_headers, *signature;
};

/* "Authenticating Requests: Using the Authorization Header" (Amazon S3 API Reference), examples. */
#define S3_EXAMPLE                                                                                 \
	.key = "AKIAIOSFODNN7EXAMPLE", .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define S3_REQUEST .region = "us-east-1", .service = "s3", .date = S3_DATE
#define S3_HOST                                                                                    \
	{"host", "examplebucket.s3.amazonaws.com"},                                                \
	{                                                                                          \
		"x-amz-date", "20130524T000000Z"                                                   \
	}
/* AWS's signature test suite, aws-sig-v4-test-suite. */
#define SUITE .key = "AKIDEXAMPLE", .secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define SUITE_REQUEST                                                                              \
	.region = "us-east-1", .service = "service", .date = SUITE_DATE,                           \
	.payload_hash = SHA256_OF_NOTHING
#define SUITE_HOST                                                                                 \
	{"host", "example.amazonaws.com"},                                                         \
	{                                                                                          \
		"x-amz-date", "20150830T123600Z"                                                   \
	}
/* Made with botocore 1.29, for what AWS's examples leave out (encoded keys, tokens, DynamoDB):
 *   a = S3SigV4Auth(Credentials("AKIDEXAMPLE", "secret/+=", TOKEN), "s3", "eu-west-1")
 *   r = AWSRequest(METHOD, URL, HEADERS); r.context["timestamp"] = "20261121T075628Z"
 *   r.headers["X-Amz-Date"] = r.context["timestamp"]
 *   r.headers["X-Amz-Security-Token"] = TOKEN; r.headers["X-Amz-Content-SHA256"] =
 * SHA256_OF_NOTHING print(a.signature(a.string_to_sign(r, a.canonical_request(r)), r)) and
 * SigV4Auth without the last header for DynamoDB. */
#define BOTO         .key = "AKIDEXAMPLE", .secret = "secret/+="
#define BOTO_REQUEST .region = "eu-west-1", .date = OUR_DATE, .payload_hash = SHA256_OF_NOTHING
#define BOTO_DATE                                                                                  \
	{                                                                                          \
		"x-amz-date", "20261121T075628Z"                                                   \
	}
#define EMPTY_BODY                                                                                 \
	{                                                                                          \
		"x-amz-content-sha256", SHA256_OF_NOTHING                                          \
	}

static const struct row rows[] = {
	{S3_EXAMPLE, {"GET", "/test.txt", "", S3_REQUEST, .payload_hash = SHA256_OF_NOTHING},
		{S3_HOST, {"range", "bytes=0-9"}, EMPTY_BODY},
		"host;range;x-amz-content-sha256;x-amz-date",
		"f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
	{S3_EXAMPLE,
		{"PUT", "/test%24file.text", "", S3_REQUEST,
			.payload_hash =
				"44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"},
		{{"x-amz-storage-class", "REDUCED_REDUNDANCY"},
			{"x-amz-content-sha256",
				"44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"},
			S3_HOST, {"date", "Fri, 24 May 2013 00:00:00 GMT"}},
		"date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
		"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
	{S3_EXAMPLE, {"GET", "/", "lifecycle=", S3_REQUEST, .payload_hash = SHA256_OF_NOTHING},
		{S3_HOST, EMPTY_BODY}, "host;x-amz-content-sha256;x-amz-date",
		"fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
	{S3_EXAMPLE,
		{"GET", "/", "max-keys=2&prefix=J", S3_REQUEST, .payload_hash = SHA256_OF_NOTHING},
		{S3_HOST, EMPTY_BODY}, "host;x-amz-content-sha256;x-amz-date",
		"34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},

	{SUITE, {"GET", "/", "", SUITE_REQUEST}, {SUITE_HOST}, "host;x-amz-date",
		"5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
	{SUITE, {"GET", "/", "Param1=value1&Param2=value2", SUITE_REQUEST}, {SUITE_HOST},
		"host;x-amz-date",
		"b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
	{SUITE, {"GET", "/%E1%88%B4", "", SUITE_REQUEST}, {SUITE_HOST}, "host;x-amz-date",
		"8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
	{SUITE, {"POST", "/", "", SUITE_REQUEST}, {SUITE_HOST}, "host;x-amz-date",
		"5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
	{SUITE, {"GET", "/", "", SUITE_REQUEST},
		{SUITE_HOST, {"my-header1", " value1"}, {"my-header2", " \"a   b   c\" "}},
		"host;my-header1;my-header2;x-amz-date",
		"acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
	{SUITE, {"GET", "/", "", SUITE_REQUEST},
		{SUITE_HOST, {"my-header1", "value2"}, {"my-header1", "value2"},
			{"my-header1", "value1"}},
		"host;my-header1;x-amz-date",
		"c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},

	{BOTO,
		{"PUT", "/a%20b/%2B%25%26%3D%27%22/..foo/../~x/%C3%BC", "", BOTO_REQUEST,
			.service = "s3"},
		{{"host", "b.s3.eu-west-1.amazonaws.com"}, BOTO_DATE, EMPTY_BODY,
			{"if-none-match", "*"}, {"x-amz-meta-mtime", "1.5"},
			{"x-amz-checksum-crc32c", "4waSgw=="}},
		"host;if-none-match;x-amz-checksum-crc32c;x-amz-content-sha256;x-amz-date;"
		"x-amz-meta-mtime",
		"a896128ade1393fe330162accefcd2e93112b1097073a9587b59082fc41f166d"},
	{BOTO, {"POST", "/b/k", "uploads=", BOTO_REQUEST, .service = "s3"},
		{{"x-amz-security-token", "token//++=="}, BOTO_DATE, EMPTY_BODY,
			{"x-amz-meta-s3once-claim", "  a   b\tc "},
			{"host", "s3.eu-west-1.amazonaws.com"}},
		"host;x-amz-content-sha256;x-amz-date;x-amz-meta-s3once-claim;"
		"x-amz-security-token",
		"5ff6b643cb71fbf7d976665f4c5a726916d7c2f6cdd41a4dc91a0c428ec4fc5d"},
	{BOTO,
		{"PUT", "/b/p//k%3F%23", "partNumber=12&uploadId=2~a%2Fb", BOTO_REQUEST,
			.service = "s3"},
		{{"host", "127.0.0.1:7480"}, BOTO_DATE, EMPTY_BODY},
		"host;x-amz-content-sha256;x-amz-date",
		"915579c8b75d4c990f357db72c91e6c3e33af3c7e7a41056c0280496c27fa43d"},
	{BOTO,
		{"GET", "/b", "delimiter=&list-type=2&max-keys=7&prefix=a%20b%2F", BOTO_REQUEST,
			.service = "s3"},
		{{"host", "h.example"}, BOTO_DATE, EMPTY_BODY},
		"host;x-amz-content-sha256;x-amz-date",
		"63bc29ffce35479e11493934f801f9e74b355d67994da174c966d604835151fc"},
	{BOTO, {"POST", "/", "", BOTO_REQUEST, .service = "dynamodb"},
		{{"content-type", "application/x-amz-json-1.0"}, {"host", "127.0.0.1:8000"},
			BOTO_DATE, {"x-amz-security-token", "tok"},
			{"x-amz-target", "DynamoDB_20120810.GetItem"}},
		"content-type;host;x-amz-date;x-amz-security-token;x-amz-target",
		"ab83f4a6d20fa77a85686b9de61d13cc833b9879f78a1b5df9755649893bacbf"},
};

static void test_vectors(void)
{
	struct sigv4_cache cache = {0};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct sigv4_request request = rows[i].request;
		request.headers = rows[i].headers;
		while (request.n_headers < 8 && rows[i].headers[request.n_headers].name)
			request.n_headers++;
		struct credentials credentials = {0};
		snprintf(credentials.access_key, sizeof credentials.access_key, "%s", rows[i].key);
		snprintf(credentials.secret, sizeof credentials.secret, "%s", rows[i].secret);
		char want[1000];
		snprintf(want, sizeof want,
			"AWS4-HMAC-SHA256 Credential=%s/%.8s/%s/%s/aws4_request, SignedHeaders=%s, "
			"Signature=%s",
			rows[i].key, request.date, request.region, request.service,
			rows[i].signed_headers, rows[i].signature);
		struct text got = TEXT(2000);
		CHECK_INT(sigv4_sign(&cache, &credentials, &request, &got), 0);
		if (!CHECK_STRING(text_string(&got), want))
			fprintf(stderr, "\trow %zu\n", i);
		/* Again, with the day's key in the cache. */
		text_reset(&got);
		CHECK_INT(sigv4_sign(&cache, &credentials, &request, &got), 0);
		CHECK_STRING(text_string(&got), want);
		text_clear(&got);
	}
	sigv4_cache_wipe(&cache);
	CHECK(!cache.scope[0] && !cache.secret_id[0]);
}

static void test_limits(void)
{
	struct call_header headers[SIGV4_HEADERS_MAX + 1];
	for (size_t i = 0; i <= SIGV4_HEADERS_MAX; i++)
		headers[i] = (struct call_header){"x", "y"};
	struct credentials credentials = {.access_key = "A", .secret = "B"};
	struct sigv4_cache cache = {0};
	struct sigv4_request request = {"GET", "/", "", headers, SIGV4_HEADERS_MAX + 1,
		SHA256_OF_NOTHING, "r", "s3", S3_DATE};
	struct text got = TEXT(2000);
	CHECK_INT(sigv4_sign(&cache, &credentials, &request, &got), -E2BIG);
	request.n_headers = SIGV4_HEADERS_MAX;
	CHECK_INT(sigv4_sign(&cache, &credentials, &request, &got), 0);
	char region[200];
	memset(region, 'r', sizeof region - 1);
	region[sizeof region - 1] = 0;
	request.region = region;
	CHECK_INT(sigv4_sign(&cache, &credentials, &request, &got), -EINVAL);
	text_clear(&got);
	got = TEXT(10);
	request.region = "r";
	CHECK_INT(sigv4_sign(&cache, &credentials, &request, &got), -EMSGSIZE);
	text_clear(&got);
	sigv4_cache_wipe(&cache);
}

int main(void)
{
	test_vectors();
	test_limits();
	return check_result();
}
