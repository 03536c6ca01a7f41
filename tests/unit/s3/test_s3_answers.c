/* The meaning of S3's replies to the caller: which refusals are none, which lead to another
 * request, and what is learnt for later requests. */
#include "s3/s3_request.h"
#include "script_s3.h"

#define ERROR(status, code) SCRIPT_REPLY(status, "", "<Error><Code>" code "</Code></Error>")
#define GOOD                SCRIPT_REPLY("200", "ETag: \"e\"\r\n", "")
#define EMPTY(status)       SCRIPT_REPLY(status, "Content-Length: 0\r\n", "")

static const struct s3_target k = {.key = "k"};
static const struct http_body body = {.bytes = 9, .memory = "123456789"};
static const struct sums sums = {
	.kinds = DIGEST_CRC32C, .bytes = 9, .crc32c = {0xE3, 0x06, 0x92, 0x83}};

/* The replies end with NULL. */
static bool begin(struct script_s3 *f, const char *const *replies)
{
	*f = (struct script_s3){0};
	return script_aws_reply(&f->aws, replies) && script_s3_open(f);
}

/* Ends it, and checks which requests have come, by their methods. */
static bool end(struct script_s3 *f, const char *methods)
{
	const struct script_server *server = &f->aws.server;
	char got[100] = "";
	script_stop(&f->aws.server);
	for (size_t i = 0; i < server->n_requests; i++)
		snprintf(got + strlen(got), sizeof got - strlen(got), "%.*s ",
			(int)strcspn(server->requests[i].head, " "), server->requests[i].head);
	const bool good = CHECK_STRING(got, methods);
	script_s3_end(f);
	return good;
}

/* An object that is not there is deleted. */
static void test_delete(void)
{
	static const struct {
		const char *reply;
		enum outcome outcome;
	} rows[] = {{EMPTY("204"), OUTCOME_OK}, {ERROR("404", "NoSuchKey"), OUTCOME_OK},
		{ERROR("403", "AccessDenied"), OUTCOME_DENIED}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *const replies[] = {rows[i].reply, NULL};
		struct script_s3 f;
		if (!begin(&f, replies))
			return;
		CHECK_INT(s3_delete_object(f.conn, "k", NULL, &f.aws.problem), rows[i].outcome);
		end(&f, "DELETE ");
	}
}

#define RULES(days)                                                                                \
	SCRIPT_REPLY("200", "",                                                                    \
		"<LifecycleConfiguration><Rule><Status>Enabled</Status><Filter/>"                  \
		"<AbortIncompleteMultipartUpload><DaysAfterInitiation>" days                       \
		"</DaysAfterInitiation></AbortIncompleteMultipartUpload></Rule>"                   \
		"</LifecycleConfiguration>")

/* A bucket without rules aborts nothing. One that does not tell may have any. */
static void test_abort_days(void)
{
	static const struct {
		const char *reply;
		enum outcome outcome;
		unsigned days;
	} rows[] = {{RULES("3"), OUTCOME_OK, 3},
		{ERROR("404", "NoSuchLifecycleConfiguration"), OUTCOME_OK, 0},
		{ERROR("403", "AccessDenied"), OUTCOME_DENIED, 77}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *const replies[] = {rows[i].reply, NULL};
		struct script_s3 f;
		unsigned days = 77;
		if (!begin(&f, replies))
			return;
		CHECK_INT(s3_get_abort_days(f.conn, "", NULL, &days, &f.aws.problem),
			rows[i].outcome);
		CHECK_INT(days, rows[i].days);
		CHECK_STRING(f.aws.problem.code,
			rows[i].outcome == OUTCOME_DENIED ? "AccessDenied" : "");
		end(&f, "GET ");
	}
}

/* A reply to HEAD has no reason, so that another request asks for it. Only what is wrong with the
 * set-up is one. */
static void test_bucket(void)
{
	static const struct {
		const char *replies[3];
		enum outcome outcome;
		const char *asked, *code;
	} rows[] = {{{EMPTY("200")}, OUTCOME_OK, "HEAD ", ""},
		{{EMPTY("404"), ERROR("404", "NoSuchBucket")}, OUTCOME_SETUP, "HEAD GET ",
			"NoSuchBucket"},
		{{EMPTY("404"), SCRIPT_REPLY("200", "", "<ListMultipartUploadsResult/>")},
			OUTCOME_ABSENT, "HEAD GET ", ""},
		{{EMPTY("403"), ERROR("403", "AccessDenied")}, OUTCOME_DENIED, "HEAD GET ", ""},
		{{EMPTY("403"), ERROR("403", "SignatureDoesNotMatch")}, OUTCOME_SETUP, "HEAD GET ",
			"SignatureDoesNotMatch"},
		{{EMPTY("400"), ERROR("403", "SignatureDoesNotMatch")}, OUTCOME_SETUP, "HEAD GET ",
			"SignatureDoesNotMatch"},
		{{EMPTY("404"), ERROR("403", "SignatureDoesNotMatch")}, OUTCOME_SETUP, "HEAD GET ",
			"SignatureDoesNotMatch"},
		{{EMPTY("500")}, OUTCOME_TRANSIENT, "HEAD ", ""}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct script_s3 f;
		if (!begin(&f, rows[i].replies))
			return;
		bool good = CHECK_INT(
			s3_look_for_bucket(f.conn, NULL, &f.aws.problem), rows[i].outcome);
		good &= CHECK_STRING(f.aws.problem.code, rows[i].code);
		good &= end(&f, rows[i].asked);
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
	}
}

/* If S3 echoes no checksum, an MD5 is the proof. A checksum may trail the body only if the body is
 * not signed and the server knows both. */
static void test_digests_computed(void)
{
	static const struct {
		enum s3_support echoes, trails;
		bool is_tls, signs, refuses;
		enum checksum checksum;
		unsigned others;
		bool may_trail;
	} rows[] = {
		{S3_UNKNOWN, S3_YES, true, false, false, CHECKSUM_CRC32C, DIGEST_MD5, true},
		{S3_NO, S3_YES, true, false, false, CHECKSUM_CRC32C, DIGEST_MD5, true},
		{S3_YES, S3_YES, true, false, false, CHECKSUM_CRC32C, 0, true},
		{S3_YES, S3_NO, true, false, false, CHECKSUM_CRC32C, 0, false},
		{S3_YES, S3_UNKNOWN, true, false, false, CHECKSUM_CRC32C, 0, false},
		{S3_YES, S3_YES, true, true, false, CHECKSUM_CRC32C, DIGEST_SHA256, false},
		{S3_YES, S3_YES, false, false, false, CHECKSUM_CRC32C, DIGEST_SHA256, false},
		{S3_NO, S3_YES, true, false, true, CHECKSUM_CRC32C, DIGEST_MD5, false},
		{S3_YES, S3_YES, true, false, false, CHECKSUM_MD5, 0, false},
	};
	static const char *const replies[] = {GOOD, NULL}; /* which nobody asks for */
	struct script_s3 f;
	if (!begin(&f, replies))
		return;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		s3_set_support(f.s3, S3_ECHOES_CHECKSUM, rows[i].echoes);
		s3_set_support(f.s3, S3_TRAILER, rows[i].trails);
		f.s3->is_tls = rows[i].is_tls;
		f.aws.settings.signs_payload = rows[i].signs;
		atomic_store(&f.s3->refuses_checksum, rows[i].refuses);
		bool good = CHECK_INT(s3_wanted_digests(f.s3, rows[i].checksum),
			DIGEST_OF(rows[i].checksum) | rows[i].others);
		good &= CHECK_INT(s3_may_trail(f.s3, rows[i].checksum), rows[i].may_trail);
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
	}
	end(&f, "");
}

/* AWS echoes each checksum that has a header. MD5 has none. */
static void test_aws(void)
{
	for (unsigned i = 0; i < 2; i++) {
		static const char *const replies[] = {GOOD, NULL}; /* which nobody asks for */
		struct script_s3 f = {0};
		if (!script_aws_reply(&f.aws, replies))
			return;
		f.aws.settings.s3_is_aws = true;
		f.aws.settings.checksum = i ? CHECKSUM_MD5 : CHECKSUM_CRC32C;
		if (!script_s3_open(&f))
			return;
		CHECK_INT(s3_supports(f.s3, S3_ECHOES_CHECKSUM), i ? S3_UNKNOWN : S3_YES);
		CHECK_INT(s3_supports(f.s3, S3_PUT_CONDITION), S3_YES);
		end(&f, "");
	}
}

/* A server that knows no conditions gets the object without one. */
static void test_put_unless_there(void)
{
	static const struct {
		const char *replies[3];
		bool has_condition;
		enum outcome outcome;
		const char *asked;
	} rows[] = {{{GOOD}, true, OUTCOME_OK, "PUT "},
		{{ERROR("501", "NotImplemented"), GOOD}, true, OUTCOME_OK, "PUT PUT "},
		{{ERROR("501", "NotImplemented"), GOOD}, false, OUTCOME_UNSUPPORTED, "PUT "},
		{{ERROR("412", "PreconditionFailed"), GOOD}, true, OUTCOME_REFUSED, "PUT "},
		{{ERROR("403", "AccessDenied"), GOOD}, true, OUTCOME_DENIED, "PUT "}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct script_s3 f;
		struct s3_object object = {0};
		struct s3_put put = {.target = k,
			.body = &body,
			.sums = &sums,
			.condition = {.if_none_match = rows[i].has_condition}};
		if (!begin(&f, rows[i].replies))
			return;
		bool good = CHECK_INT(s3_put_unless_there(f.conn, &put, &object, &f.aws.problem),
			rows[i].outcome);
		script_stop(&f.aws.server);
		const struct script_request *sent = f.aws.server.requests;
		good &= CHECK_STRING(
			script_sent(&sent[0], "if-none-match"), rows[i].has_condition ? "*" : NULL);
		if (f.aws.server.n_requests == 2)
			good &= CHECK_STRING(script_sent(&sent[1], "if-none-match"), NULL);
		/* The checksums are for the next run, which knows the object by its mark. */
		good &= CHECK_STRING(script_sent(&sent[0], "x-amz-meta-s3once-sums"), NULL);
		good &= end(&f, rows[i].asked);
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
	}
}

/* 501 is about the condition of the request that had it. */
static void test_conditions(void)
{
	static const struct {
		const char *reply;
		bool is_put;
		enum s3_support put, complete;
	} rows[] = {{ERROR("501", "NotImplemented"), true, S3_NO, S3_UNKNOWN},
		{ERROR("501", "NotImplemented"), false, S3_UNKNOWN, S3_NO},
		{ERROR("400", "NotImplemented"), true, S3_UNKNOWN, S3_UNKNOWN},
		{ERROR("400", "NotImplemented"), false, S3_UNKNOWN, S3_UNKNOWN}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *const replies[] = {rows[i].reply, NULL};
		static const struct s3_condition condition = {.if_none_match = true};
		static const struct s3_part part = {.part_number = 1, .etag = "e"};
		const struct s3_put put = {
			.target = k, .body = &body, .sums = &sums, .condition = condition};
		const struct s3_complete complete = {.target = k,
			.upload_id = "u",
			.parts = &part,
			.n_parts = 1,
			.whole = &sums,
			.condition = condition};
		struct script_s3 f;
		struct s3_object object = {0};
		if (!begin(&f, replies))
			return;
		CHECK_INT(rows[i].is_put
				  ? s3_put_object(f.conn, &put, &object, &f.aws.problem)
				  : s3_complete_upload(f.conn, &complete, &object, &f.aws.problem),
			OUTCOME_UNSUPPORTED);
		CHECK_INT(s3_supports(f.s3, S3_PUT_CONDITION), rows[i].put);
		CHECK_INT(s3_supports(f.s3, S3_COMPLETE_CONDITION), rows[i].complete);
		end(&f, rows[i].is_put ? "PUT " : "POST ");
	}
}

/* Only a redirect without a region leads to a HEAD of the bucket. Whatever that is answered with,
 * it may have named the region, unless it is a redirect as well. */
static void test_redirects(void)
{
	static const struct {
		const char *replies[4];
		enum outcome outcome;
		const char *asked;
	} rows[] = {{{ERROR("403", "SignatureDoesNotMatch")}, OUTCOME_SETUP, "PUT "},
		{{ERROR("301", "PermanentRedirect"), EMPTY("403"), GOOD}, OUTCOME_OK,
			"PUT HEAD PUT "},
		{{ERROR("301", "PermanentRedirect"), EMPTY("301"), GOOD}, OUTCOME_SETUP,
			"PUT HEAD "}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct s3_put put = {.target = k, .body = &body, .sums = &sums};
		struct script_s3 f;
		struct s3_object object = {0};
		if (!begin(&f, rows[i].replies))
			return;
		CHECK_INT(s3_put_object(f.conn, &put, &object, &f.aws.problem), rows[i].outcome);
		if (!end(&f, rows[i].asked))
			fprintf(stderr, "\trow %zu\n", i);
	}
}

/* A reply that is not understood is still a reply, and repeating the request would not help. The
 * bytes of an object are no error, whatever they are. */
static void test_small(void)
{
	static const struct {
		const char *reply;
		enum outcome outcome;
		int status;
		const char *body;
	} rows[] = {{SCRIPT_REPLY("200", "ETag: \"e\"\r\n", "abc"), OUTCOME_OK, 0, "abc"},
		{SCRIPT_REPLY("200", "ETag: \"e\"\r\n", "<Error><Code>SlowDown</Code></Error>"),
			OUTCOME_OK, 0, "<Error><Code>SlowDown</Code></Error>"},
		{SCRIPT_REPLY("200", "", "abc"), OUTCOME_LOST, 200, NULL},
		{ERROR("404", "NoSuchKey"), OUTCOME_ABSENT, 404, NULL}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *const replies[] = {rows[i].reply, NULL};
		struct script_s3 f;
		struct http_reply reply = {0};
		char etag[S3_ETAG_MAX + 1] = "";
		if (!begin(&f, replies))
			return;
		CHECK_INT(s3_get_small(f.conn, &k, 100, NULL, &reply, etag, &f.aws.problem),
			rows[i].outcome);
		CHECK_INT(f.aws.problem.status, rows[i].status);
		if (rows[i].body)
			CHECK_STRING(text_string(&reply.body), rows[i].body);
		http_reply_clear(&reply);
		end(&f, "GET ");
	}
}

/* If it is unknown whether tags are kept, that is checked once, and only if it matters. */
static void test_kept(void)
{
	enum { TAG = 1U << S3_SETTING_TAG, OTHER = 1U << (S3_SETTING_TAG + 1) };
	static const struct {
		const char *replies[3];
		unsigned asked;
		enum outcome outcome;
		const char *sent;
		unsigned unknown;
		const char *storage_class;
	} rows[] = {{{SCRIPT_REPLY("200", "x-amz-tagging-count: 1\r\n", "")}, TAG, OUTCOME_OK,
			    "HEAD ", 0, "STANDARD"},
		{{SCRIPT_REPLY("200", "x-amz-storage-class: GLACIER\r\n", "")}, OTHER, OUTCOME_OK,
			"HEAD ", 0, "GLACIER"},
		{{SCRIPT_REPLY("200", "", ""),
			 SCRIPT_REPLY("200", "", "<Tagging><TagSet/></Tagging>")},
			TAG | OTHER, OUTCOME_OK, "HEAD GET ", 0, "STANDARD"},
		{{SCRIPT_REPLY("200", "", ""), ERROR("403", "AccessDenied")}, TAG | OTHER,
			OUTCOME_DENIED, "HEAD GET ", TAG, "STANDARD"},
		{{EMPTY("403")}, TAG | OTHER, OUTCOME_DENIED, "HEAD ", TAG | OTHER, ""}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct script_s3 f;
		struct s3_settings_check look;
		if (!begin(&f, rows[i].replies))
			return;
		bool good = CHECK_INT(
			s3_check_settings(f.conn, &k, rows[i].asked, NULL, &look, &f.aws.problem),
			rows[i].outcome);
		good &= CHECK_INT(look.unknown, rows[i].unknown);
		good &= CHECK_STRING(look.storage_class, rows[i].storage_class);
		good &= end(&f, rows[i].sent);
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
	}
}

static int count_upload(void *arg, const struct s3_upload *upload)
{
	++*(unsigned *)arg;
	return 0;
}

/* Ceph encodes the keys of this listing without saying so, and only AWS is asked to. */
static void test_uploads(void)
{
	static const char *const replies[] = {SCRIPT_REPLY("200", "",
						      "<ListMultipartUploadsResult>"
						      "</ListMultipartUploadsResult>"),
		NULL};
	struct script_s3 f;
	unsigned count = 0;
	if (!begin(&f, replies))
		return;
	CHECK_INT(s3_list_uploads(f.conn, "p/", NULL, count_upload, &count, &f.aws.problem),
		OUTCOME_OK);
	script_stop(&f.aws.server);
	CHECK(script_is_to(&f.aws.server.requests[0], "GET /b?prefix=p%2F&uploads="));
	end(&f, "GET ");
}

int main(void)
{
	test_delete();
	test_abort_days();
	test_bucket();
	test_digests_computed();
	test_aws();
	test_put_unless_there();
	test_conditions();
	test_redirects();
	test_small();
	test_kept();
	test_uploads();
	return check_result();
}
