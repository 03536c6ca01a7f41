/* S3 as no server here answers: what is learned of one, and replies that must not be believed. How
 * real servers answer is shown by tests/system/test_aws_layer.py. */
#include "aws/service.h"
#include "s3/s3_request.h"
#include "script_s3.h"
#include <dlfcn.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <unistd.h>

static bool is_fips;

/* In place of OpenSSL's own: none but FIPS's, as its manual sets such a host up. */
EVP_MD *EVP_MD_fetch(OSSL_LIB_CTX *context, const char *name, const char *properties)
{
	EVP_MD *(*own)(OSSL_LIB_CTX *, const char *, const char *);
	*(void **)&own = dlsym(RTLD_NEXT, "EVP_MD_fetch");
	return is_fips && strcmp(name, "MD5") == 0 ? NULL : own(context, name, properties);
}

static bool begin(struct script_s3 *f, const struct script_step *steps, size_t n)
{
	*f = (struct script_s3){0};
	return script_aws_start(&f->aws, steps, n) && script_s3_open(f);
}

static const struct s3_target k = {.key = "k"};
static const struct http_body body = {.bytes = 9, .memory = "123456789"};

static struct sums sums_of(unsigned kinds)
{
	struct digest digest;
	struct sums sums;
	CHECK_INT(digest_init(&digest, kinds), 0);
	digest_update(&digest, "123456789", 9);
	digest_finish(&digest, &sums);
	digest_clear(&digest);
	return sums;
}

static enum outcome put(struct script_s3 *f, struct s3_condition condition, struct s3_object *ret)
{
	struct sums sums = sums_of(s3_wanted_digests(f->s3, CHECKSUM_CRC32C));
	const struct s3_put put = {.target = {.key = "a b/\xc3\xa4"},
		.body = &body,
		.sums = &sums,
		.condition = condition,
		.meta = {.table_id = "t", .claim_id = "c", .mtime_ns = 1500000000}};
	return s3_put_object(f->conn, &put, ret, &f->aws.problem);
}

/* A server that echoes our CRC needs no MD5 any more. */
static void test_echo_is_learned(void)
{
	static const char echo[] =
		SCRIPT_REPLY("200", "ETag: \"e\"\r\nx-amz-checksum-crc32c: 4waSgw==\r\n", "");
	const struct script_step steps[] = {{echo, .close = true}, {echo, .close = true}};
	struct script_s3 f;
	struct s3_object object;
	if (!begin(&f, steps, 2))
		return;
	CHECK_INT(s3_supports(f.s3, S3_ECHOES_CHECKSUM), S3_UNKNOWN);
	CHECK_INT(put(&f, (struct s3_condition){.if_none_match = true}, &object), OUTCOME_OK);
	CHECK_STRING(object.sum.text, "4waSgw==");
	CHECK_STRING(object.etag, "e");
	CHECK_INT(object.size, 9);
	CHECK_INT(s3_supports(f.s3, S3_ECHOES_CHECKSUM), S3_YES);
	CHECK_INT(s3_wanted_digests(f.s3, CHECKSUM_CRC32C), DIGEST_CRC32C | DIGEST_SHA256);
	CHECK_INT(put(&f, (struct s3_condition){.if_match = "e1"}, &object), OUTCOME_OK);
	script_stop(&f.aws.server);
	const struct script_request *first = &f.aws.server.requests[0], *second = first + 1;
	CHECK(script_is_to(first, "PUT /b/a%20b/%C3%A4"));
	CHECK_STRING(script_sent(first, "content-md5"), "JfnnlDI7RTiF9RgfG2JNCw==");
	CHECK_STRING(script_sent(second, "content-md5"), NULL);
	CHECK_STRING(script_sent(first, "x-amz-checksum-crc32c"), "4waSgw==");
	CHECK_STRING(script_sent(first, "x-amz-content-sha256"),
		"15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225");
	CHECK_STRING(script_sent(first, "if-none-match"), "*");
	CHECK_STRING(script_sent(first, "if-match"), NULL);
	CHECK_STRING(script_sent(second, "if-match"), "\"e1\"");
	CHECK(!strstr(first->head, "x-once"));
	CHECK_STRING(script_sent(first, "x-amz-meta-s3once-table"), "t");
	CHECK_STRING(script_sent(first, "x-amz-meta-s3once-claim"), "c");
	/* printf 'b/a b/ä' | sha256sum */
	CHECK_STRING(script_sent(first, "x-amz-meta-s3once-key"), "ac310f04d3284a3ebeac");
	CHECK_STRING(script_sent(first, "x-amz-meta-s3once-part"), NULL);
	CHECK_STRING(script_sent(first, "x-amz-meta-mtime"), "1.5");
	CHECK_STRING(script_sent(first, "x-amz-meta-s3once-sums"),
		"crc32c:4waSgw== md5:JfnnlDI7RTiF9RgfG2JNCw==");
	CHECK_STRING(script_sent(second, "x-amz-meta-s3once-sums"), "crc32c:4waSgw==");
	script_s3_end(&f);
}

/* Whether the etags of a server are MD5s is learned from replies that can show it. Of one that is
 * encrypted by a key, the etag is never an MD5, and shows nothing about others. */
#define MD5   "25f9e794323b453885f5181f1b624d0b"
#define OTHER "0123456789abcdef0123456789abcdef"
#define SAME  "x-amz-checksum-crc32c: 4waSgw==\r\n"
#define SSE   "x-amz-server-side-encryption"

static const struct {
	const char *etag, *headers;
	enum s3_support before, after;
	bool is_encrypted, lacks_md5; /* the reply by a key, and the request */
} etags[] = {
	{MD5, "", S3_UNKNOWN, S3_YES},
	{"25F9E794323B453885F5181F1B624D0B", "", S3_UNKNOWN, S3_YES},
	{MD5, SAME, S3_YES, S3_YES},
	/* Another etag of the same content is of a server whose etags are no MD5s. */
	{OTHER, SAME, S3_UNKNOWN, S3_NO},
	{OTHER, SAME, S3_NO, S3_NO},
	{OTHER, SAME, S3_YES, S3_YES},
	/* The content may be another one. */
	{OTHER, "", S3_UNKNOWN, S3_UNKNOWN},
	{OTHER, "x-amz-checksum-crc32c: AAAAAA==\r\n", S3_UNKNOWN, S3_UNKNOWN},
	{OTHER, "x-amz-checksum-crc32: AAAAAA==\r\n", S3_UNKNOWN, S3_UNKNOWN},
	{OTHER, "", S3_NO, S3_NO},
	/* It does not have the form of an MD5, or there is none to compare it with. */
	{"e", SAME, S3_UNKNOWN, S3_UNKNOWN},
	{OTHER "-1", SAME, S3_UNKNOWN, S3_UNKNOWN},
	{OTHER, SAME, S3_UNKNOWN, S3_UNKNOWN, false, true},
	/* It is encrypted. */
	{OTHER, SAME SSE ": AES256\r\n", S3_UNKNOWN, S3_NO},
	{MD5, SAME SSE ": AES256\r\n", S3_UNKNOWN, S3_YES},
	{OTHER, SAME SSE ": aws:kms\r\n", S3_UNKNOWN, S3_UNKNOWN, true},
	{OTHER, SAME SSE ": aws:kms:dsse\r\n", S3_UNKNOWN, S3_UNKNOWN, true},
	{OTHER, SAME SSE "-customer-algorithm: AES256\r\n", S3_UNKNOWN, S3_UNKNOWN, true},
	{OTHER, SAME SSE ": aws:kms:dsse\r\n", S3_YES, S3_YES, true},
	{MD5, SAME SSE ": aws:kms\r\n", S3_UNKNOWN, S3_UNKNOWN, true},
};

/* The same reply to each request that it may be to: a whole object, a part, an upload that is
 * completed, and a look at the object. The last two say nothing of our MD5. */
static void test_etags(void)
{
	for (size_t i = 0; i < 4 * (sizeof etags / sizeof *etags); i++) {
		const size_t row = i / 4, request = i % 4;
		const bool learns = request < 2;
		const char *xml = request == 2 ? "<CompleteMultipartUploadResult/>" : "";
		struct sums sums = sums_of(DIGEST_CRC32C | (etags[row].lacks_md5 ? 0 : DIGEST_MD5));
		const struct s3_put of_put = {.target = k,
			.upload_id = "u",
			.part_number = 1,
			.body = &body,
			.sums = &sums};
		const struct s3_complete complete = {.target = k, .upload_id = "u", .whole = &sums};
		char reply[500];
		struct script_s3 f;
		struct s3_object object = {0};
		struct s3_part part = {0};
		snprintf(reply, sizeof reply,
			"HTTP/1.1 200 X\r\nETag: \"%s\"\r\n%sContent-Length: %zu\r\n"
			"Connection: close\r\n\r\n%s",
			etags[row].etag, etags[row].headers, strlen(xml), xml);
		const struct script_step step = {reply, .close = true};
		if (!begin(&f, &step, 1))
			return;
		struct problem *problem = &f.aws.problem;
		if (etags[row].before != S3_UNKNOWN)
			s3_set_support(
				f.s3, S3_ETAG_IS_MD5, etags[row].before == S3_YES ? S3_YES : S3_NO);
		const enum outcome o =
			request == 0   ? s3_put_object(f.conn, &of_put, &object, problem)
			: request == 1 ? s3_upload_part(f.conn, &of_put, &part, problem)
			: request == 2 ? s3_complete_upload(f.conn, &complete, &object, problem)
				       : s3_head_object(f.conn, &k, &no_limits, &object, problem);
		script_stop(&f.aws.server);
		const enum s3_support after = learns ? etags[row].after : etags[row].before;
		const bool is_opaque = request == 1 ? part.etag_is_opaque : object.etag_is_opaque;
		bool good = CHECK_STRING(outcome_name(o), outcome_name(OUTCOME_OK));
		good &= CHECK_INT(s3_supports(f.s3, S3_ETAG_IS_MD5), after);
		good &= CHECK_INT(is_opaque, after == S3_NO || etags[row].is_encrypted);
		if (!good)
			fprintf(stderr, "\tetag %zu, request %zu: %s\n", row, request,
				problem->text);
		script_s3_end(&f);
	}
}

/* Each reply to a whole object says whether the server echoes the checksum, one to a part only as
 * long as nothing is known, and one to a request without a checksum never. */
static const struct {
	const char *headers;
	enum s3_support before, after;
	bool is_part, lacks_sum;
} echoes[] = {
	{SAME, S3_UNKNOWN, S3_YES},
	{"", S3_UNKNOWN, S3_NO},
	{"x-amz-checksum-crc32: y/Q5Jg==\r\n", S3_UNKNOWN, S3_NO},
	{SAME, S3_NO, S3_YES},
	{"", S3_YES, S3_NO},
	{SAME, S3_UNKNOWN, S3_UNKNOWN, false, true},
	{"", S3_UNKNOWN, S3_UNKNOWN, false, true},
	{SAME, S3_UNKNOWN, S3_YES, true},
	{"", S3_UNKNOWN, S3_NO, true},
	{SAME, S3_NO, S3_NO, true},
	{"", S3_YES, S3_YES, true},
};

static void test_echoes(void)
{
	for (size_t i = 0; i < sizeof echoes / sizeof *echoes; i++) {
		struct sums sums = sums_of(echoes[i].lacks_sum ? DIGEST_MD5 : DIGEST_CRC32C);
		const struct s3_put of_put = {.target = k,
			.upload_id = "u",
			.part_number = 1,
			.body = &body,
			.sums = &sums,
			.checksum = CHECKSUM_CRC32C};
		char reply[300];
		struct script_s3 f;
		struct s3_object object = {0};
		struct s3_part part = {0};
		snprintf(reply, sizeof reply, SCRIPT_REPLY("200", "ETag: \"e\"\r\n%s", ""),
			echoes[i].headers);
		const struct script_step step = {reply, .close = true};
		if (!begin(&f, &step, 1))
			return;
		if (echoes[i].before != S3_UNKNOWN)
			s3_set_support(f.s3, S3_ECHOES_CHECKSUM, echoes[i].before);
		bool good = CHECK_INT(
			echoes[i].is_part ? s3_upload_part(f.conn, &of_put, &part, &f.aws.problem)
					  : s3_put_object(f.conn, &of_put, &object, &f.aws.problem),
			OUTCOME_OK);
		good &= CHECK_INT(s3_supports(f.s3, S3_ECHOES_CHECKSUM), echoes[i].after);
		if (!good)
			fprintf(stderr, "\techo %zu\n", i);
		script_stop(&f.aws.server);
		script_s3_end(&f);
	}
}

/* Over TLS nobody changes a body on its way, so it is signed only where that is wanted, even if its
 * SHA-256 is known. */
static void test_signed_payload(void)
{
	static const struct {
		bool is_tls, signs_payload, is_signed;
	} rows[] = {{true, false, false}, {true, true, true}, {false, false, true}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct script_step step = {
			SCRIPT_REPLY("200", "ETag: \"e\"\r\n", ""), .close = true};
		struct sums sums = sums_of(DIGEST_SHA256);
		const struct s3_put of_put = {
			.target = k, .body = &body, .sums = &sums, .checksum = CHECKSUM_SHA256};
		struct script_s3 f;
		struct s3_object object;
		if (!begin(&f, &step, 1))
			return;
		f.s3->is_tls = rows[i].is_tls;
		f.aws.settings.signs_payload = rows[i].signs_payload;
		CHECK_INT(s3_put_object(f.conn, &of_put, &object, &f.aws.problem), OUTCOME_OK);
		script_stop(&f.aws.server);
		const struct script_request *sent = &f.aws.server.requests[0];
		CHECK_STRING(script_sent(sent, "x-amz-content-sha256"),
			rows[i].is_signed
				? "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"
				: "UNSIGNED-PAYLOAD");
		CHECK_STRING(script_sent(sent, "x-amz-checksum-sha256"),
			"FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=");
		script_s3_end(&f);
	}
}

/* A type that the user has given is the only one. */
static void test_content_type(void)
{
	const struct script_step step = {SCRIPT_REPLY("200", "ETag: \"e\"\r\n", ""), .close = true};
	struct sums sums = sums_of(DIGEST_CRC32C);
	struct s3_headers *headers = NULL;
	struct script_s3 f;
	struct s3_object object;
	CHECK_INT(s3_headers_new(&headers), 0);
	CHECK_INT(s3_headers_set(headers, "content-type", "text/given", NULL), 0);
	CHECK_INT(s3_headers_prepare(headers, NULL), 0);
	if (begin(&f, &step, 1)) {
		const struct s3_put of_put = {
			.target = {.key = "k", .content_type = "text/guessed", .headers = headers},
			.body = &body,
			.sums = &sums};
		CHECK_INT(s3_put_object(f.conn, &of_put, &object, &f.aws.problem), OUTCOME_OK);
		script_stop(&f.aws.server);
		const struct script_request *sent = &f.aws.server.requests[0];
		CHECK_STRING(script_sent(sent, "content-type"), "text/given");
		CHECK(!strcasestr(sent->head, "text/guessed"));
		script_s3_end(&f);
	}
	s3_headers_free(headers);
}

/* The server refuses one checksum, and others are sent, as for an upload that was begun with one. A
 * HEAD requests any checksum and names none, so it is not repeated. */
static void test_only_the_refused_checksum(void)
{
	static const char refused[] =
		SCRIPT_REPLY("400", "", "<Error><Code>InvalidRequest</Code></Error>");
	static const char good[] = SCRIPT_REPLY("200", "ETag: \"e\"\r\n", "");
	const struct script_step steps[] = {
		{SCRIPT_REPLY("400", "Content-Length: 0\r\n", ""), .close = true},
		{refused, .close = true}, {good, .close = true}, {good, .close = true},
		{good, .close = true}};
	struct sums sums = sums_of(DIGEST_CRC32C | DIGEST_SHA256);
	struct script_s3 f;
	struct s3_object object;
	if (!begin(&f, steps, 5))
		return;
	f.aws.settings.checksum = CHECKSUM_CRC32C;
	f.aws.settings.checksum_is_automatic = true;
	CHECK(s3_head_object(f.conn, &k, NULL, &object, &f.aws.problem) != OUTCOME_OK);
	struct s3_put of_put = {.target = k, .body = &body, .sums = &sums};
	for (unsigned i = 0; i < 3; i++) {
		of_put.checksum = i == 1 ? CHECKSUM_SHA256 : CHECKSUM_CRC32C;
		CHECK_INT(s3_put_object(f.conn, &of_put, &object, &f.aws.problem), OUTCOME_OK);
	}
	script_stop(&f.aws.server);
	CHECK_INT(f.aws.server.n_requests, 5);
	const struct script_request *sent = f.aws.server.requests;
	CHECK_STRING(script_sent(&sent[1], "x-amz-checksum-crc32c"), "4waSgw==");
	CHECK_STRING(script_sent(&sent[2], "x-amz-checksum-crc32c"), NULL);
	CHECK_STRING(script_sent(&sent[3], "x-amz-checksum-sha256"),
		"FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=");
	CHECK_STRING(script_sent(&sent[4], "x-amz-checksum-crc32c"), NULL);
	script_s3_end(&f);
}

/* 501 says something about conditions only if there was one. */
static void test_conditions_are_learned(void)
{
	static const char refused[] =
		SCRIPT_REPLY("412", "", "<Error><Code>PreconditionFailed</Code></Error>");
	static const char unknown[] =
		SCRIPT_REPLY("501", "", "<Error><Code>NotImplemented</Code></Error>");
	const struct script_step steps[] = {{unknown, .close = true}, {unknown, .close = true},
		{refused, .close = true}, {refused, .close = true}};
	struct script_s3 f;
	struct s3_object object;
	if (!begin(&f, steps, 4))
		return;
	CHECK_INT(put(&f, (struct s3_condition){0}, &object), OUTCOME_UNSUPPORTED);
	CHECK_INT(s3_supports(f.s3, S3_PUT_CONDITION), S3_UNKNOWN);
	CHECK_INT(put(&f, (struct s3_condition){.if_none_match = true}, &object),
		OUTCOME_UNSUPPORTED);
	CHECK_INT(s3_supports(f.s3, S3_PUT_CONDITION), S3_NO);
	CHECK_INT(put(&f, (struct s3_condition){.if_match = "e"}, &object), OUTCOME_REFUSED);
	CHECK_INT(s3_supports(f.s3, S3_PUT_CONDITION), S3_NO);
	CHECK_INT(s3_supports(f.s3, S3_IF_MATCH), S3_UNKNOWN);
	CHECK_INT(put(&f, (struct s3_condition){.if_none_match = true}, &object), OUTCOME_REFUSED);
	CHECK_INT(s3_supports(f.s3, S3_PUT_CONDITION), S3_NO);
	CHECK_INT(s3_supports(f.s3, S3_COMPLETE_CONDITION), S3_UNKNOWN);
	script_stop(&f.aws.server);
	script_s3_end(&f);
}

/* A server that may not know the checksum is asked once more without it, unless the user has chosen
 * it. Only another answer shows that it was the cause. */
static const struct {
	const char *first, *second; /* codes of refusals; NULL: it is stored */
	bool is_chosen;
	enum outcome outcome;
	size_t requests;
	enum s3_support echoes;
	bool has_echoed; /* the server has shown that it knows the checksum */
	const char *said;
} doubts[] = {
	{"InvalidRequest", NULL, false, OUTCOME_OK, 2, S3_NO},
	{"NotImplemented", NULL, false, OUTCOME_OK, 2, S3_NO},
	{"InvalidTag", NULL, false, OUTCOME_OK, 2, S3_NO},
	{"InvalidRequest", "InvalidRequest", false, OUTCOME_INVALID, 2, S3_UNKNOWN, .said = "no 0"},
	{"InvalidRequest", "AccessDenied", false, OUTCOME_DENIED, 2, S3_UNKNOWN, .said = "no 1"},
	{"InvalidRequest", NULL, false, OUTCOME_INVALID, 1, S3_YES, true, "no 0"},
	{"InvalidRequest", NULL, true, OUTCOME_INVALID, 1, S3_UNKNOWN},
	{"AccessDenied", NULL, false, OUTCOME_DENIED, 1, S3_UNKNOWN},
	{"PreconditionFailed", NULL, false, OUTCOME_REFUSED, 1, S3_UNKNOWN},
};

static void test_a_checksum_that_is_not_known(void)
{
	for (size_t i = 0; i < sizeof doubts / sizeof *doubts; i++) {
		char replies[2][200];
		const char *const codes[] = {doubts[i].first, doubts[i].second};
		struct script_s3 f;
		struct s3_object object;
		for (size_t n = 0; n < 2; n++)
			snprintf(replies[n], sizeof replies[n],
				codes[n]
					? SCRIPT_REPLY("400", "",
						  "<Error><Code>%s</Code><Message>no %zu</Message></Error>")
					: SCRIPT_REPLY("200", "ETag: \"%s%zu\"\r\n" SAME, ""),
				codes[n] ? codes[n] : "e", n);
		const struct script_step steps[] = {
			{replies[0], .close = true}, {replies[1], .close = true}};
		if (!begin(&f, steps, 2))
			return;
		f.aws.settings.checksum = CHECKSUM_CRC32C;
		f.aws.settings.checksum_is_automatic = !doubts[i].is_chosen;
		if (doubts[i].has_echoed)
			s3_set_support(f.s3, S3_ECHOES_CHECKSUM, S3_YES);
		bool ok = CHECK_STRING(outcome_name(put(&f, (struct s3_condition){0}, &object)),
			outcome_name(doubts[i].outcome));
		script_stop(&f.aws.server);
		ok = CHECK_INT(f.aws.server.n_requests, doubts[i].requests) && ok;
		ok = CHECK_INT(s3_supports(f.s3, S3_ECHOES_CHECKSUM), doubts[i].echoes) && ok;
		if (doubts[i].said)
			ok = CHECK(strstr(f.aws.problem.text, doubts[i].said)) && ok;
		const struct script_request *first = &f.aws.server.requests[0];
		ok = CHECK(script_sent(first, "x-amz-checksum-crc32c") != NULL) && ok;
		if (doubts[i].requests == 2)
			ok = CHECK_STRING(script_sent(first + 1, "x-amz-checksum-crc32c"), NULL) &&
			     CHECK_STRING(script_sent(first + 1, "content-md5"),
				     "JfnnlDI7RTiF9RgfG2JNCw==") &&
			     ok;
		if (!ok)
			fprintf(stderr, "\tdoubt %zu: %s\n", i, f.aws.problem.text);
		script_s3_end(&f);
	}
}

static enum outcome complete_if(
	struct script_s3 *f, struct s3_condition condition, struct s3_object *ret)
{
	static const struct s3_part parts[] = {
		{.part_number = 1, .etag = "e1", .sum = {CHECKSUM_CRC32C, "AAAAAA=="}},
		{.part_number = 3, .etag = "<&>", .sum = {CHECKSUM_CRC32, "BBBBBB=="}}};
	const struct sums whole = {
		.kinds = DIGEST_CRC32C, .bytes = 12, .crc32c = {0xE3, 0x06, 0x92, 0x83}};
	const struct s3_complete complete = {.target = k,
		.upload_id = "u/+",
		.parts = parts,
		.n_parts = 2,
		.whole = &whole,
		.condition = condition};
	return s3_complete_upload(f->conn, &complete, ret, &f->aws.problem);
}

static enum outcome complete(struct script_s3 *f, struct s3_object *ret)
{
	return complete_if(f, (struct s3_condition){.if_none_match = true}, ret);
}

/* 200 is not enough. */
static void test_complete(void)
{
	static const char error[] = SCRIPT_REPLY("200", "",
		"  \n\n  <?xml version=\"1.0\"?><Error>"
		"<Code>InternalError</Code><Message>try again</Message></Error>");
	static const char good[] = SCRIPT_REPLY("200", "",
		"  \n<CompleteMultipartUploadResult>"
		"<ETag>\"e-2\"</ETag><ChecksumCRC32C>4waSgw==</ChecksumCRC32C>"
		"</CompleteMultipartUploadResult>");
	const struct script_step steps[] = {{error, .close = true}, {good, .close = true},
		{SCRIPT_REPLY("200", "", "  \n  "), .close = true},
		{SCRIPT_REPLY("200", "", "<html>hello</html>"), .close = true},
		{error, .close = true}};
	struct script_s3 f;
	struct s3_object object = {0};
	if (!begin(&f, steps, 5))
		return;
	f.aws.settings.attempts = 2;
	CHECK_INT(complete(&f, &object), OUTCOME_OK);
	CHECK_STRING(object.etag, "e-2");
	CHECK_STRING(object.sum.text, "4waSgw==");
	CHECK_INT(object.size, 12);
	CHECK_INT(complete(&f, &object), OUTCOME_LOST);
	CHECK_INT(complete(&f, &object), OUTCOME_LOST);
	f.aws.settings.attempts = 1;
	CHECK_INT(complete(&f, &object), OUTCOME_TRANSIENT);
	CHECK_STRING(f.aws.problem.code, "InternalError");
	script_stop(&f.aws.server);
	CHECK_INT(f.aws.server.n_requests, 5);
	const struct script_request *request = &f.aws.server.requests[0];
	CHECK(script_is_to(request, "POST /b/k?uploadId=u%2F%2B"));
	CHECK_STRING(request->body,
		"<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
		"<Part><ETag>\"e1\"</ETag><ChecksumCRC32C>AAAAAA==</ChecksumCRC32C>"
		"<PartNumber>1</PartNumber></Part>"
		"<Part><ETag>\"&lt;&amp;&gt;\"</ETag><PartNumber>3</PartNumber></Part>"
		"</CompleteMultipartUpload>");
	CHECK_STRING(script_sent(request, "x-amz-checksum-crc32c"), "4waSgw==");
	CHECK_STRING(script_sent(request, "x-amz-checksum-type"), "FULL_OBJECT");
	CHECK_STRING(script_sent(request, "x-amz-mp-object-size"), "12");
	CHECK_STRING(script_sent(request, "if-none-match"), "*");
	script_s3_end(&f);
}

static void test_create(void)
{
	const struct script_step steps[] = {
		{SCRIPT_REPLY("200", "",
			 "<InitiateMultipartUploadResult><Key>\x01</Key>"
			 "<UploadId>u</UploadId></InitiateMultipartUploadResult>"),
			.close = true},
		{SCRIPT_REPLY("200", "", "<InitiateMultipartUploadResult/>"), .close = true}};
	struct script_s3 f;
	struct s3_created created = {0};
	const struct s3_create create = {
		.target = k, .meta = {.table_id = "t", .claim_id = "c", .part_bytes = 5}};
	if (!begin(&f, steps, 2))
		return;
	for (int i = 0; i < 2; i++)
		CHECK_INT(
			s3_create_upload(f.conn, &create, &created, &f.aws.problem), OUTCOME_LOST);
	CHECK(created.upload_id == NULL);
	script_stop(&f.aws.server);
	const struct script_request *request = &f.aws.server.requests[0];
	CHECK(script_is_to(request, "POST /b/k?uploads="));
	CHECK_STRING(script_sent(request, "x-amz-checksum-algorithm"), "CRC32C");
	CHECK_STRING(script_sent(request, "x-amz-checksum-type"), "FULL_OBJECT");
	CHECK_STRING(script_sent(request, "x-amz-meta-s3once-part"), "5");
	CHECK_STRING(script_sent(request, "x-amz-meta-mtime"), "0");
	script_s3_end(&f);
}

static void test_head(void)
{
	const struct script_step steps[] = {
		{"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n"
		 "x-amz-checksum-crc32c: 4waSgw==-3\r\nETag: \"e-3\"\r\n"
		 "x-amz-meta-s3once-table: 0123456789012345678901234567890123456789012345678901234567890"
		 "123456789\r\n\r\n",
			.close = true},
		/* printf b/k | sha256sum */
		{"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nETag: \"e\"\r\n"
		 "x-amz-meta-s3once-key: 710800c9e207017de17b\r\nx-amz-meta-mtime: 1.5\r\n"
		 "x-amz-meta-s3once-ctime: 2.25\r\n"
		 "x-amz-meta-s3once-sums: crc32c:4waSgw==\r\n\r\n",
			.close = true},
		{"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nETag: \"e\"\r\n"
		 "x-amz-meta-s3once-key: 710800c9e207017de17c\r\n\r\n",
			.close = true},
		{"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", .close = true},
		{"HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n", .close = true},
		{"HTTP/1.1 403 X\r\nContent-Length: 0\r\n\r\n", .close = true}};
	struct script_s3 f;
	struct s3_object object = {0};
	if (!begin(&f, steps, 6))
		return;
	CHECK_INT(s3_head_object(f.conn, &k, NULL, &object, &f.aws.problem), OUTCOME_OK);
	CHECK(object.size == UINT64_MAX);
	CHECK_STRING(object.sum.text, "4waSgw==-3");
	CHECK_STRING(object.meta.table_id, ""); /* too long to be ours */
	CHECK_INT(object.meta.written_for, S3_WRITTEN_FOR_UNKNOWN);
	CHECK_INT(s3_head_object(f.conn, &k, NULL, &object, &f.aws.problem), OUTCOME_OK);
	CHECK_INT(object.meta.written_for, S3_WRITTEN_FOR_THIS);
	CHECK(object.meta.sums.kinds == DIGEST_CRC32C && object.meta.sums.crc32c[0] == 0xe3);
	CHECK(object.meta.mtime_ns == 1500000000 && object.meta.ctime_ns == 2250000000);
	CHECK_INT(s3_head_object(f.conn, &k, NULL, &object, &f.aws.problem), OUTCOME_OK);
	CHECK_INT(object.meta.written_for, S3_WRITTEN_FOR_ANOTHER);
	CHECK_INT(s3_head_object(f.conn, &k, NULL, &object, &f.aws.problem), OUTCOME_LOST);
	CHECK_INT(s3_head_object(f.conn, &k, NULL, &object, &f.aws.problem), OUTCOME_ABSENT);
	CHECK_INT(s3_head_object(f.conn, &k, NULL, &object, &f.aws.problem), OUTCOME_DENIED);
	script_stop(&f.aws.server);
	CHECK(script_is_to(&f.aws.server.requests[0], "HEAD /b/k"));
	CHECK_STRING(script_sent(&f.aws.server.requests[0], "x-amz-checksum-mode"), "ENABLED");
	script_s3_end(&f);
}

static int count_part(void *arg, const struct s3_part *part)
{
	++*(unsigned *)arg;
	return 0;
}

static int count_upload(void *arg, const struct s3_upload *upload)
{
	++*(unsigned *)arg;
	return 0;
}

#define PART "<Part><PartNumber>7</PartNumber><Size>1</Size></Part>"
#define UPLOAD                                                                                     \
	"<Upload><Key>a+b%41</Key><UploadId>u</UploadId>"                                          \
	"<Initiated>2026-11-21T07:56:28Z</Initiated></Upload>"

/* Each page of the parts begins behind the last part of the page before. */
static void test_pages_of_parts(void)
{
	static const char first[] = SCRIPT_REPLY("200", "",
		"<ListPartsResult><IsTruncated>true</IsTruncated>"
		"<NextPartNumberMarker>1</NextPartNumberMarker>"
		"<Part><PartNumber>1</PartNumber><Size>1</Size></Part></ListPartsResult>");
	static const char last[] = SCRIPT_REPLY("200", "",
		"<ListPartsResult><IsTruncated>false</IsTruncated>" PART "</ListPartsResult>");
	const struct script_step steps[] = {{first, .close = true}, {last, .close = true}};
	struct script_s3 f;
	unsigned count = 0;
	if (!begin(&f, steps, 2))
		return;
	CHECK_INT(s3_list_parts(f.conn, &k, "u", NULL, count_part, &count, &f.aws.problem),
		OUTCOME_OK);
	CHECK_INT(count, 2);
	script_stop(&f.aws.server);
	CHECK(script_is_to(&f.aws.server.requests[1], "GET /b/k?part-number-marker=1&uploadId=u"));
	script_s3_end(&f);
}

/* Some servers compare If-Match with the ETag without its quotes. */
static void test_bare_if_match(void)
{
	static const char refused[] =
		SCRIPT_REPLY("412", "", "<Error><Code>PreconditionFailed</Code></Error>");
	const struct script_step steps[] = {{refused, .close = true}};
	struct script_s3 f;
	struct s3_object object;
	if (!begin(&f, steps, 1))
		return;
	s3_set_support(f.s3, S3_IF_MATCH_QUOTES, S3_NO);
	CHECK_INT(put(&f, (struct s3_condition){.if_match = "e"}, &object), OUTCOME_REFUSED);
	script_stop(&f.aws.server);
	CHECK_STRING(script_sent(&f.aws.server.requests[0], "if-match"), "e");
	script_s3_end(&f);
}

/* A server that does not move on is left, not asked for ever. */
static void test_a_list_that_stands_still(void)
{
	static const char parts[] = SCRIPT_REPLY("200", "",
		"<ListPartsResult><IsTruncated>true</IsTruncated>"
		"<NextPartNumberMarker>7</NextPartNumberMarker>" PART "</ListPartsResult>");
	const struct script_step steps[] = {{parts, .close = true}, {parts, .close = true}};
	struct script_s3 f;
	unsigned count = 0;
	if (!begin(&f, steps, 2))
		return;
	CHECK_INT(s3_list_parts(f.conn, &k, "u", NULL, count_part, &count, &f.aws.problem),
		OUTCOME_LOST);
	CHECK_INT(count, 2);
	script_stop(&f.aws.server);
	const struct script_request *requests = f.aws.server.requests;
	CHECK(script_is_to(&requests[0], "GET /b/k?uploadId=u"));
	CHECK(script_is_to(&requests[1], "GET /b/k?part-number-marker=7&uploadId=u"));
	script_s3_end(&f);
}

/* Facts known about AWS need not be learnt. */
static void test_aws(void)
{
	const struct script_step steps[] = {
		{SCRIPT_REPLY("200", "",
			 "<ListMultipartUploadsResult><EncodingType>url</EncodingType>"
			 "<IsTruncated>true</IsTruncated>" UPLOAD "</ListMultipartUploadsResult>"),
			.close = true}};
	struct script_s3 f = {0};
	unsigned count = 0;
	if (!script_aws_start(&f.aws, steps, 1))
		return;
	f.aws.settings.s3_is_aws = true;
	CHECK_INT(s3_open(&f.aws.settings, f.aws.http, "b", &f.s3, NULL), 0);
	strcpy(s3_service(f.s3)->locked.endpoint.url, f.aws.server.url);
	CHECK_INT(s3_conn_new(f.s3, &f.conn), 0);
	for (int feature = 0; feature < S3_FEATURES; feature++)
		CHECK_INT(s3_supports(f.s3, (enum s3_feature)feature), S3_YES);
	CHECK_INT(s3_wanted_digests(f.s3, CHECKSUM_CRC32C), DIGEST_CRC32C | DIGEST_SHA256);
	CHECK_INT(s3_list_uploads(f.conn, NULL, NULL, count_upload, &count, &f.aws.problem),
		OUTCOME_OK);
	script_stop(&f.aws.server);
	CHECK(script_is_to(&f.aws.server.requests[0], "GET /?encoding-type=url&uploads="));
	script_s3_end(&f);
}

/* The redirect of a PUT names no region; the bucket's HEAD does. */
static void test_region_by_head(void)
{
	static const char named[] = "x-amz-bucket-region: eu-west-3\r\nContent-Length: 0\r\n";
	char redirect[200];
	snprintf(redirect, sizeof redirect, "HTTP/1.1 301 X\r\n%s\r\n", named);
	const struct script_step steps[] = {
		{SCRIPT_REPLY("301", "", "<Error><Code>PermanentRedirect</Code></Error>"),
			.close = true},
		{redirect, .close = true},
		{SCRIPT_REPLY("200", "Content-Length: 0\r\n", ""), .close = true},
		{SCRIPT_REPLY("200", "ETag: \"e\"\r\n", ""), .close = true}};
	static const char *const methods[] = {"PUT /b/", "HEAD /b ", "HEAD /b ", "PUT /b/"};
	struct script_s3 f;
	struct s3_object object;
	if (!begin(&f, steps, 4))
		return;
	CHECK_INT(put(&f, (struct s3_condition){0}, &object), OUTCOME_OK);
	script_stop(&f.aws.server);
	CHECK_INT(f.aws.server.n_requests, 4);
	for (size_t i = 0; i < 4; i++) {
		const struct script_request *request = &f.aws.server.requests[i];
		const char *region = i < 2 ? "/us-east-1/s3/" : "/eu-west-3/s3/";
		const char *sent = script_sent(request, "authorization");
		CHECK(sent && strstr(sent, region));
		CHECK(strncmp(request->head, methods[i], strlen(methods[i])) == 0);
	}
	script_s3_end(&f);
}

/* Another thread has learned the region since the PUT was signed: the bucket's HEAD goes there. */
static void test_region_that_was_learned_meanwhile(void)
{
	const struct script_step steps[] = {
		{SCRIPT_REPLY("301", "", "<Error><Code>PermanentRedirect</Code></Error>"),
			.close = true},
		{SCRIPT_REPLY("200", "x-amz-bucket-region: us-east-1\r\n", ""), .close = true},
		{SCRIPT_REPLY("200", "ETag: \"e\"\r\n", ""), .close = true}};
	struct script_s3 f;
	struct s3_object object;
	if (!begin(&f, steps, 3))
		return;
	CHECK_INT(put(&f, (struct s3_condition){0}, &object), OUTCOME_OK);
	script_stop(&f.aws.server);
	CHECK_INT(f.aws.server.n_requests, 3);
	script_s3_end(&f);
}

static void test_missing_upload(void)
{
	static const char no_key[] =
		SCRIPT_REPLY("404", "", "<Error><Code>NoSuchKey</Code></Error>");
	const struct script_step steps[] = {{no_key, .close = true}, {no_key, .close = true},
		{no_key, .close = true}, {no_key, .close = true}};
	struct script_s3 f;
	struct s3_object object;
	struct s3_part part;
	unsigned count = 0;
	if (!begin(&f, steps, 4))
		return;
	struct sums sums = sums_of(DIGEST_CRC32C);
	const struct s3_put put_part = {
		.target = k, .upload_id = "u", .part_number = 12, .body = &body, .sums = &sums};
	CHECK_INT(s3_upload_part(f.conn, &put_part, &part, &f.aws.problem), OUTCOME_NO_UPLOAD);
	CHECK_INT(s3_list_parts(f.conn, &k, "u", NULL, count_part, &count, &f.aws.problem),
		OUTCOME_NO_UPLOAD);
	CHECK_INT(complete(&f, &object), OUTCOME_NO_UPLOAD);
	CHECK_INT(s3_abort_upload(f.conn, "k", "u", NULL, &f.aws.problem), OUTCOME_NO_UPLOAD);
	script_stop(&f.aws.server);
	CHECK(script_is_to(&f.aws.server.requests[0], "PUT /b/k?partNumber=12&uploadId=u"));
	CHECK_STRING(
		script_sent(&f.aws.server.requests[0], "x-amz-content-sha256"), "UNSIGNED-PAYLOAD");
	CHECK(script_is_to(&f.aws.server.requests[3], "DELETE /b/k?uploadId=u"));
	script_s3_end(&f);
}

/* With If-Match, 404 may be about the object that was to be replaced, and the upload is still
 * there. Without, it can be about the upload alone. */
static void test_missing_object(void)
{
	static const struct {
		const char *code;
		struct s3_condition condition;
		enum outcome outcome;
	} rows[] = {
		{SCRIPT_REPLY("404", "", "<Error><Code>NoSuchKey</Code></Error>"),
			{.if_match = "e"}, OUTCOME_ABSENT},
		{SCRIPT_REPLY("404", "", "<Error><Code>NoSuchUpload</Code></Error>"),
			{.if_match = "e"}, OUTCOME_NO_UPLOAD},
		{SCRIPT_REPLY("404", "", "<Error><Code>NoSuchKey</Code></Error>"),
			{.if_none_match = true}, OUTCOME_NO_UPLOAD},
		{SCRIPT_REPLY("404", "", "<Error><Code>NoSuchKey</Code></Error>"), {0},
			OUTCOME_NO_UPLOAD},
		{SCRIPT_REPLY("412", "", "<Error><Code>PreconditionFailed</Code></Error>"),
			{.if_match = "e"}, OUTCOME_REFUSED},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct script_step step = {rows[i].code, .close = true};
		struct script_s3 f;
		struct s3_object object;
		if (!begin(&f, &step, 1))
			return;
		if (!CHECK_INT(complete_if(&f, rows[i].condition, &object), rows[i].outcome))
			fprintf(stderr, "\trow %zu\n", i);
		script_s3_end(&f);
	}
}

/* A page with the status 200 does not say that anything was deleted. */
static void test_delete_that_a_proxy_answers(void)
{
	const struct script_step steps[] = {
		{SCRIPT_REPLY("200", "Content-Type: text/html\r\n", "<html>Please log in</html>"),
			.close = true},
		{SCRIPT_REPLY("200", "", ""), .close = true}};
	struct script_s3 f;
	if (!begin(&f, steps, 2))
		return;
	CHECK_INT(s3_abort_upload(f.conn, "k", "u", NULL, &f.aws.problem), OUTCOME_LOST);
	CHECK(strstr(
		f.aws.problem.text, "the reply to AbortMultipartUpload is not what S3 answers"));
	CHECK_INT(s3_abort_upload(f.conn, "k", "u", NULL, &f.aws.problem), OUTCOME_OK);
	script_stop(&f.aws.server);
	script_s3_end(&f);
}

static struct s3_headers *headers_with_key(void)
{
	char path[] = "/tmp/s3once-key-XXXXXX";
	struct s3_headers *headers = NULL;
	int fd = mkstemp(path);
	CHECK_INT(write(fd, "12345678901234567890123456789012", 32), 32);
	close(fd);
	CHECK_INT(s3_headers_new(&headers), 0);
	CHECK_INT(s3_headers_set(headers, "sse-c-key-file", path, NULL), 0);
	unlink(path);
	return headers;
}

/* A key of the caller's own goes with whatever reads or writes what it encrypts, and nowhere else.
 */
static void test_customer_key(void)
{
	static const char part[] = SCRIPT_REPLY("200",
		"ETag: \"0123456789abcdef0123456789abcdef\"\r\n"
		"x-amz-server-side-encryption-customer-algorithm: AES256\r\n",
		"");
	static const char parts[] = SCRIPT_REPLY("200", "", "<ListPartsResult/>");
	static const char done[] = SCRIPT_REPLY("200", "x-amz-server-side-encryption: aws:kms\r\n",
		"<CompleteMultipartUploadResult/>");
	static const char gone[] = SCRIPT_REPLY("204", "", "");
	const struct script_step steps[] = {{part, .close = true}, {parts, .close = true},
		{done, .close = true}, {gone, .close = true}};
	struct script_s3 f;
	struct s3_target target = {.key = "k"};
	struct s3_headers *headers = headers_with_key();
	struct s3_part ret_part;
	struct s3_object object;
	unsigned count = 0;
	CHECK_INT(s3_headers_set(headers, "storage-class", "GLACIER", NULL), 0);
	CHECK_INT(s3_headers_prepare(headers, NULL), 0);
	target.headers = headers;
	if (begin(&f, steps, 4)) {
		struct sums sums = sums_of(DIGEST_CRC32C);
		const struct s3_put put_part = {.target = target,
			.upload_id = "u",
			.part_number = 1,
			.body = &body,
			.sums = &sums};
		const struct s3_complete complete = {
			.target = target, .upload_id = "u", .whole = &sums};
		CHECK_INT(s3_upload_part(f.conn, &put_part, &ret_part, &f.aws.problem), OUTCOME_OK);
		CHECK(ret_part.etag_is_opaque);
		CHECK_INT(s3_list_parts(
				  f.conn, &target, "u", NULL, count_part, &count, &f.aws.problem),
			OUTCOME_OK);
		CHECK_INT(
			s3_complete_upload(f.conn, &complete, &object, &f.aws.problem), OUTCOME_OK);
		CHECK(object.etag_is_opaque);
		CHECK_INT(s3_abort_upload(f.conn, "k", "u", NULL, &f.aws.problem), OUTCOME_OK);
		script_stop(&f.aws.server);
		for (int i = 0; i < 4; i++) {
			const struct script_request *request = &f.aws.server.requests[i];
#define CUSTOMER "x-amz-server-side-encryption-customer-"
			CHECK_STRING(script_sent(request, CUSTOMER "algorithm"),
				i < 3 ? "AES256" : NULL);
			CHECK_STRING(script_sent(request, CUSTOMER "key"),
				i < 3 ? "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=" : NULL);
			CHECK_STRING(script_sent(request, CUSTOMER "key-md5"),
				i < 3 ? "dnF5x6K/8ZZRzpfSlMMM+w==" : NULL);
			CHECK_STRING(script_sent(request, "x-amz-storage-class"), NULL);
		}
		script_s3_end(&f);
	}
	s3_headers_free(headers);
}

/* The value of the header, or NULL. */
static const char *stored_header(const struct s3_headers *headers, const char *name)
{
	const struct call_header *all;
	const size_t n = s3_headers_of(headers, true, &all);
	for (size_t i = 0; i < n; i++)
		if (strcmp(all[i].name, name) == 0)
			return all[i].value;
	return NULL;
}

/* A header is sent as it was given last, whatever tags are called. */
static void test_headers_by_name(void)
{
	struct s3_headers *headers = NULL;
	CHECK_INT(s3_headers_new(&headers), 0);
	CHECK_INT(s3_headers_set(headers, "tag", "x-amz-grant-read=t", NULL), 0);
	CHECK_INT(s3_headers_set(headers, "header", "x-amz-grant-read: id=\"a\"", NULL), 0);
	CHECK_INT(s3_headers_set(headers, "header", "X-Amz-Grant-Full-Control:id=\"b\"", NULL), 0);
	CHECK_INT(s3_headers_set(headers, "header", "x-amz-grant-read: emailaddress=\"c@d\"", NULL),
		0);
	CHECK_INT(s3_headers_prepare(headers, NULL), 0);
	CHECK_STRING(stored_header(headers, "x-amz-grant-read"), "emailaddress=\"c@d\"");
	CHECK_STRING(stored_header(headers, "x-amz-grant-full-control"), "id=\"b\"");
	CHECK_STRING(stored_header(headers, "x-amz-tagging"), "x-amz-grant-read=t");
	s3_headers_free(headers);
}

/* The headers of each checksum: on PutObject, and on the steps of a multipart upload. */
static void check_headers(enum checksum kind, const char *value, const char *type)
{
	static const char created[] = SCRIPT_REPLY("200", "",
		"<InitiateMultipartUploadResult><UploadId>u</UploadId>"
		"</InitiateMultipartUploadResult>");
	static const char done[] = SCRIPT_REPLY("200", "", "<CompleteMultipartUploadResult/>");
	static const char stored[] = SCRIPT_REPLY("200", "ETag: \"e\"\r\n", "");
	const struct script_step steps[] = {{stored, .close = true}, {created, .close = true},
		{stored, .close = true}, {done, .close = true}};
	const struct checksum_kind *row = &checksum_kinds[kind];
	const char *whole = row->combines ? value : NULL;
	struct sums sums = sums_of(DIGEST_OF(kind) | DIGEST_MD5);
	struct script_s3 f;
	struct s3_object object;
	struct s3_part part;
	struct s3_created begun = {0};
	if (!begin(&f, steps, 4))
		return;
	const struct s3_put put = {.target = k, .body = &body, .sums = &sums, .checksum = kind};
	const struct s3_create create = {.target = k, .checksum = kind};
	const struct s3_put put_part = {.target = k,
		.upload_id = "u",
		.part_number = 1,
		.body = &body,
		.sums = &sums,
		.checksum = kind};
	struct s3_complete call = {
		.target = k, .upload_id = "u", .n_parts = 1, .checksum = kind, .whole = &sums};
	CHECK_INT(s3_put_object(f.conn, &put, &object, &f.aws.problem), OUTCOME_OK);
	CHECK_INT(s3_create_upload(f.conn, &create, &begun, &f.aws.problem), OUTCOME_OK);
	CHECK_INT(s3_upload_part(f.conn, &put_part, &part, &f.aws.problem), OUTCOME_OK);
	part.sum.kind = kind;
	snprintf(part.sum.text, sizeof part.sum.text, "%s", value);
	call.parts = &part;
	CHECK_INT(s3_complete_upload(f.conn, &call, &object, &f.aws.problem), OUTCOME_OK);
	script_stop(&f.aws.server);
	const struct script_request *sent = f.aws.server.requests;
	for (unsigned other = 0; other < CHECKSUMS; other++) {
		const char *header = checksum_kinds[other].header;
		const bool is_it = other == kind;
		for (int i = 0; header && i < 4; i++)
			CHECK_STRING(script_sent(&sent[i], header), !is_it || i == 1 ? NULL
								    : i == 3         ? whole
										     : value);
		char element[32];
		snprintf(element, sizeof element, "<%s>",
			header ? checksum_kinds[other].element : "Checksum");
		CHECK(!strstr(sent[3].body, element) == !(is_it && header));
	}
	CHECK_STRING(script_sent(&sent[0], "content-md5"), "JfnnlDI7RTiF9RgfG2JNCw==");
	CHECK_STRING(script_sent(&sent[1], "x-amz-checksum-algorithm"), row->s3_name);
	CHECK_STRING(script_sent(&sent[1], "x-amz-checksum-type"), type);
	CHECK_STRING(script_sent(&sent[3], "x-amz-checksum-type"), type);
	CHECK_STRING(script_sent(&sent[3], "x-amz-checksum-algorithm"), NULL);
	free(begun.upload_id);
	script_s3_end(&f);
}

static void test_checksums(void)
{
	check_headers(CHECKSUM_CRC32C, "4waSgw==", "FULL_OBJECT");
	check_headers(CHECKSUM_CRC32, "y/Q5Jg==", "FULL_OBJECT");
	check_headers(CHECKSUM_CRC64NVME, "rosUhgp5mIg=", "FULL_OBJECT");
	check_headers(CHECKSUM_SHA1, "98O8HYCOBHMq32eZZczDTKeuNEE=", "COMPOSITE");
	check_headers(CHECKSUM_SHA256, "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=", "COMPOSITE");
	check_headers(CHECKSUM_MD5, "JfnnlDI7RTiF9RgfG2JNCw==", NULL);
}

/* Without MD5 the checksum that the server echoes is the proof; of SSE-C's key there is none. */
static void test_without_md5(void)
{
	struct script_s3 f;
	struct s3_headers *headers = headers_with_key();
	struct problem problem;
	if (!begin(&f, NULL, 0))
		return;
	s3_close(f.s3);
	is_fips = true;
	CHECK_INT(s3_open(&f.aws.settings, f.aws.http, "b", &f.s3, NULL), 0);
	CHECK_INT(s3_wanted_digests(f.s3, CHECKSUM_CRC32C), DIGEST_CRC32C | DIGEST_SHA256);
	CHECK_INT(s3_supports(f.s3, S3_ETAG_IS_MD5), S3_NO); /* none could be compared */
	CHECK_INT(s3_headers_prepare(headers, &problem), -EINVAL);
	CHECK(strstr(problem.text, "OpenSSL forbids MD5 (FIPS)"));
	is_fips = false;
	s3_headers_free(headers);
	script_stop(&f.aws.server);
	script_s3_end(&f);
}

int main(void)
{
	test_checksums();
	test_customer_key();
	test_headers_by_name();
	test_without_md5();
	test_echo_is_learned();
	test_etags();
	test_echoes();
	test_signed_payload();
	test_content_type();
	test_only_the_refused_checksum();
	test_conditions_are_learned();
	test_a_checksum_that_is_not_known();
	test_complete();
	test_create();
	test_head();
	test_pages_of_parts();
	test_bare_if_match();
	test_a_list_that_stands_still();
	test_aws();
	test_region_by_head();
	test_region_that_was_learned_meanwhile();
	test_missing_upload();
	test_missing_object();
	test_delete_that_a_proxy_answers();
	return check_result();
}
