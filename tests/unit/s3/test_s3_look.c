/* Looking at objects: what a reply to HEAD says, and what it does not; ranges, which a server may
 * not know; and listings, which have to go on, and in the order of their keys. */
#include "s3/object_stream.h"
#include "script_s3.h"
#include <stdlib.h>

/* The replies end with NULL. */
static bool begin(struct script_s3 *f, const char *const *replies)
{
	*f = (struct script_s3){0};
	return script_aws_reply(&f->aws, replies) && script_s3_open(f);
}

static const struct s3_target k = {.key = "k"};

/* --- HEAD */

#define HEAD(headers) SCRIPT_REPLY("200", "Content-Length: 5\r\nETag: \"e\"\r\n" headers, "")
/* printf b/k | sha256sum */
#define FOR_K "x-amz-meta-s3once-key: 710800c9e207017de17b\r\n"
#define META                                                                                       \
	"x-amz-meta-mtime: 1.5\r\nx-amz-meta-s3once-ctime: 2.25\r\n"                               \
	"x-amz-meta-s3once-table: t\r\nx-amz-meta-s3once-claim: c\r\n"                             \
	"x-amz-meta-s3once-content: co\r\nx-amz-meta-s3once-part: 7\r\n"                           \
	"x-amz-meta-s3once-encoding: en\r\nx-amz-meta-s3once-suffix: .gz\r\n"                      \
	"x-amz-meta-s3once-size: 9\r\nx-amz-meta-s3once-sums: crc32c:AAAAAA==\r\n"

static bool head(const char *reply, struct s3_object *ret, enum outcome *ret_outcome,
	struct problem *ret_problem)
{
	const char *const replies[] = {reply, NULL};
	struct script_s3 f;
	if (!begin(&f, replies))
		return false;
	*ret_outcome = s3_head_object(f.conn, &k, &no_limits, ret, &f.aws.problem);
	*ret_problem = f.aws.problem;
	script_stop(&f.aws.server);
	CHECK(script_is_to(&f.aws.server.requests[0], "HEAD /b/k"));
	CHECK_STRING(script_sent(&f.aws.server.requests[0], "x-amz-checksum-mode"), "ENABLED");
	script_s3_end(&f);
	return true;
}

static void test_values_read_from_head(void)
{
	struct s3_object object;
	struct problem problem;
	enum outcome o;
	if (!head(HEAD(META FOR_K "x-amz-request-id: r\r\nx-amz-version-id: v\r\n"
				  "x-amz-checksum-crc32c: BBBBBB==\r\n"
				  "Date: Tue, 01 Jan 2030 00:01:00 GMT\r\n"
				  "Last-Modified: Tue, 01 Jan 2030 00:00:00 GMT\r\n"),
		    &object, &o, &problem))
		return;
	CHECK_INT(o, OUTCOME_OK);
	CHECK_INT(object.size, 5);
	CHECK_INT(object.age_s, 60);
	CHECK_STRING(object.etag, "e");
	CHECK_STRING(object.version_id, "v");
	CHECK_STRING(object.sum.text, "BBBBBB==");
	CHECK(object.has_request_id && !object.etag_is_opaque && !object.lacks_encryption);
	const struct s3_meta *meta = &object.meta;
	CHECK_INT(meta->written_for, S3_WRITTEN_FOR_THIS);
	CHECK_INT(meta->mtime_ns, 1500000000);
	CHECK_INT(meta->ctime_ns, 2250000000);
	CHECK_STRING(meta->table_id, "t");
	CHECK_STRING(meta->claim_id, "c");
	CHECK_STRING(meta->content_id, "co");
	CHECK_STRING(meta->encoding, "en");
	CHECK_STRING(meta->suffix, ".gz");
	CHECK_INT(meta->part_bytes, 7);
	CHECK_INT(meta->content_bytes, 9);
	CHECK_INT(meta->sums.kinds, DIGEST_CRC32C);
}

static const struct {
	const char *reply;
	enum outcome outcome;
	int64_t age_s;
	bool is_opaque;
	int written_for;
	const char *problem;
} heads[] = {
	{HEAD(""), OUTCOME_OK, -1, false, S3_WRITTEN_FOR_UNKNOWN, ""},
	{HEAD("x-amz-meta-s3once-key: 0\r\n"), OUTCOME_OK, -1, false, S3_WRITTEN_FOR_ANOTHER, ""},
	/* The age is told by the server's own clock, and not from two times that contradict. */
	{HEAD("Last-Modified: Tue, 01 Jan 2030 00:00:00 GMT\r\n"), OUTCOME_OK, -1, false, 0, ""},
	{HEAD("Date: Tue, 01 Jan 2030 00:00:00 GMT\r\n"), OUTCOME_OK, -1, false, 0, ""},
	{HEAD("Date: Tue, 01 Jan 2030 00:00:00 GMT\r\n"
	      "Last-Modified: Tue, 01 Jan 2030 00:00:01 GMT\r\n"),
		OUTCOME_OK, -1, false, 0, ""},
	{HEAD("Date: Tue, 01 Jan 2030 00:00:00 GMT\r\n"
	      "Last-Modified: Tue, 01 Jan 2030 00:00:00 GMT\r\n"),
		OUTCOME_OK, 0, false, 0, ""},
	/* The etag of what is encrypted is no MD5. */
	{HEAD("x-amz-server-side-encryption: aws:kms\r\n"), OUTCOME_OK, -1, true, 0, ""},
	{HEAD("x-amz-server-side-encryption: aws:kms:dsse\r\n"), OUTCOME_OK, -1, true, 0, ""},
	{HEAD("x-amz-server-side-encryption: AES256\r\n"), OUTCOME_OK, -1, false, 0, ""},
	{HEAD("x-amz-server-side-encryption-customer-algorithm: AES256\r\n"), OUTCOME_OK, -1, true,
		0, ""},
	/* No object of S3 is without these. */
	{SCRIPT_REPLY("200", "Content-Length: 5\r\n", ""), OUTCOME_LOST, 0, false, 0, "check"},
	{SCRIPT_REPLY("200", "Content-Length: 5\r\nETag: \"\"\r\n", ""), OUTCOME_LOST, 0, false, 0,
		"check"},
	{SCRIPT_REPLY("200", "ETag: \"e\"\r\n", ""), OUTCOME_LOST, 0, false, 0,
		"has no Content-Length"},
	{SCRIPT_REPLY("404", "", ""), OUTCOME_ABSENT, 0, false, 0, ""},
	{SCRIPT_REPLY("403", "", ""), OUTCOME_DENIED, 0, false, 0, ""},
};

static void test_heads(void)
{
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		struct s3_object object = {0};
		struct problem problem;
		enum outcome o;
		if (!head(heads[i].reply, &object, &o, &problem))
			return;
		bool ok = CHECK((o == OUTCOME_OK) == (heads[i].outcome == OUTCOME_OK));
		if (heads[i].outcome != OUTCOME_LOST)
			ok = CHECK_STRING(outcome_name(o), outcome_name(heads[i].outcome)) && ok;
		if (o == OUTCOME_OK) {
			ok = CHECK_INT(object.age_s, heads[i].age_s) && ok;
			ok = CHECK(object.etag_is_opaque == heads[i].is_opaque) && ok;
			if (heads[i].written_for)
				ok = CHECK_INT(object.meta.written_for, heads[i].written_for) && ok;
		}
		ok = CHECK(strstr(problem.text, heads[i].problem) != NULL) && ok;
		if (!ok)
			fprintf(stderr, "\thead %zu: %s: %s\n", i, outcome_name(o), problem.text);
	}
}

/* --- ranges */

#define PART(status, body) SCRIPT_REPLY(status, "ETag: \"e\"\r\n", body)

static const struct {
	uint64_t offset;
	const char *reply;
	enum outcome outcome;
} ranges[] = {
	{0, PART("206", "abc"), OUTCOME_OK},
	{5, PART("206", "abc"), OUTCOME_OK},
	{0, PART("200", "abc"), OUTCOME_OK}, /* the whole object is that range */
	{5, PART("200", "abc"), OUTCOME_LOST},
	{0, PART("200", "abcdef"), OUTCOME_LOST},
	{5, PART("206", "ab"), OUTCOME_LOST},
	{5, PART("206", "abcd"), OUTCOME_LOST},
	{5, PART("206", "<Error><Code>NoSuchKey</Code></Error>"), OUTCOME_LOST},
	{5, SCRIPT_REPLY("404", "", "<Error><Code>NoSuchKey</Code></Error>"), OUTCOME_ABSENT},
	{5, SCRIPT_REPLY("500", "", "<Error><Code>InternalError</Code></Error>"),
		OUTCOME_TRANSIENT},
};

static void test_ranges(void)
{
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		const char *const replies[] = {ranges[i].reply, NULL};
		struct script_s3 f;
		struct http_reply reply = {0};
		char etag[S3_ETAG_MAX + 1] = "", range[40];
		if (!begin(&f, replies))
			return;
		const enum outcome o = s3_get_range(
			f.conn, &k, ranges[i].offset, 3, &no_limits, &reply, etag, &f.aws.problem);
		script_stop(&f.aws.server);
		bool ok = CHECK_STRING(outcome_name(o), outcome_name(ranges[i].outcome));
		ok = CHECK_STRING(text_string(&reply.body),
			     o == OUTCOME_OK ? "abc" : text_string(&reply.body)) &&
		     ok;
		snprintf(range, sizeof range, "bytes=%" PRIu64 "-%" PRIu64, ranges[i].offset,
			ranges[i].offset + 2);
		ok = CHECK_STRING(script_sent(&f.aws.server.requests[0], "range"), range) && ok;
		if (!ok)
			fprintf(stderr, "\trange %zu: %s\n", i, f.aws.problem.text);
		http_reply_clear(&reply);
		script_s3_end(&f);
	}
}

/* --- listings */

#define LISTED(key)                                                                                \
	"<Contents><Key>" key "</Key><Size>1</Size><ETag>\"e\"</ETag>"                             \
	"<LastModified>2030-01-01T00:00:00Z</LastModified></Contents>"
#define PAGE(more, contents)                                                                       \
	SCRIPT_REPLY("200", "",                                                                    \
		"<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>" more             \
		"</IsTruncated>" contents "</ListBucketResult>")

static const struct {
	const char *replies[4], *after;
	const char *keys;
	enum outcome outcome;
	size_t requests;
	const char *last_after; /* of the last request */
	const char *prefix;     /* NULL: none */
} listings[] = {
	{{PAGE("false", LISTED("a") LISTED("b"))}, NULL, "a b ", OUTCOME_OK, 1, NULL},
	{{PAGE("false", "")}, NULL, "", OUTCOME_OK, 1, NULL},
	{{PAGE("false", LISTED("b"))}, "a", "b ", OUTCOME_OK, 1, "start-after=a&"},
	{{PAGE("true", LISTED("a") LISTED("b%2Fc")), PAGE("true", LISTED("c")),
		 PAGE("false", LISTED("d"))},
		NULL, "a b/c c d ", OUTCOME_OK, 3, "start-after=c&"},
	{{PAGE("true", LISTED("p%2Fa")), PAGE("false", LISTED("p%2Fb"))}, NULL, "p/a p/b ",
		OUTCOME_OK, 2, "prefix=p%2F&start-after=p%2Fa&", "p/"},
	/* Pages before a disorder are right; nothing of its own page is believed. */
	{{PAGE("false", LISTED("b") LISTED("a"))}, NULL, "", OUTCOME_UNSUPPORTED, 1, NULL},
	{{PAGE("false", LISTED("a") LISTED("a"))}, NULL, "", OUTCOME_UNSUPPORTED, 1, NULL},
	{{PAGE("true", LISTED("b")), PAGE("false", LISTED("a"))}, NULL, "b ", OUTCOME_UNSUPPORTED,
		2, "start-after=b&"},
	{{PAGE("false", LISTED("a"))}, "a", "", OUTCOME_UNSUPPORTED, 1, "start-after=a&"},
	/* A page that does not go on would never end. */
	{{PAGE("true", "")}, NULL, "", OUTCOME_LOST, 1, NULL},
	{{PAGE("true", LISTED("a")),
		 SCRIPT_REPLY("403", "", "<Error><Code>AccessDenied</Code></Error>")},
		NULL, "a ", OUTCOME_DENIED, 2, "start-after=a&"},
	{{PAGE("false", "<Contents><Key>a</Key></Contents>")}, NULL, "", OUTCOME_LOST, 1, NULL},
	{{SCRIPT_REPLY("200", "", "<html></html>")}, NULL, "", OUTCOME_LOST, 1, NULL},
};

static void test_listings(void)
{
	for (size_t i = 0; i < sizeof listings / sizeof *listings; i++) {
		struct script_s3 f;
		char keys[100] = "";
		const struct s3_listed *object = NULL;
		if (!begin(&f, listings[i].replies))
			return;
		struct object_stream *stream =
			object_stream_new(f.conn, listings[i].prefix ? listings[i].prefix : "",
				listings[i].after, &no_limits);
		enum outcome o = OUTCOME_OK;
		for (;;) {
			o = object_stream_next(stream, &object, &f.aws.problem);
			if (o != OUTCOME_OK || !object)
				break;
			snprintf(keys + strlen(keys), sizeof keys - strlen(keys), "%s ",
				object->key);
			CHECK_INT(object->size, 1);
			CHECK_STRING(object->etag, "e");
		}
		object_stream_free(stream);
		script_stop(&f.aws.server);
		bool ok = CHECK_STRING(keys, listings[i].keys);
		if (listings[i].outcome == OUTCOME_LOST)
			ok = CHECK(o != OUTCOME_OK) && ok;
		else
			ok = CHECK_STRING(outcome_name(o), outcome_name(listings[i].outcome)) && ok;
		ok = CHECK_INT(f.aws.server.n_requests, listings[i].requests) && ok;
		const size_t n = f.aws.server.n_requests;
		const char *sent = n ? f.aws.server.requests[n - 1].head : "";
		ok = CHECK(listings[i].last_after ? strstr(sent, listings[i].last_after) != NULL
						  : !strstr(sent, "start-after")) &&
		     ok;
		if (!ok)
			fprintf(stderr, "\tlisting %zu: %s\n%s\n", i, f.aws.problem.text, sent);
		script_s3_end(&f);
	}
}

int main(void)
{
	test_values_read_from_head();
	test_heads();
	test_ranges();
	test_listings();
	return check_result();
}
