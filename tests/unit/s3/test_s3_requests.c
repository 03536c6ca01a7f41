/* The headers of each kind of request, against a model: what is stored with an object, and from
 * which a later run knows whose it is and of which version, is in the requests that store it, and
 * in no other. */
#include "s3/s3_request.h"
#include "script_s3.h"
#include <stdlib.h>

#define ROUNDS 24

static uint64_t state = 1;

static unsigned below(unsigned n)
{
	state = state * 6364136223846793005U + 1442695040888963407U;
	return (unsigned)(state >> 33) % n;
}

/* A time of a file, as its header has it. */
static const struct {
	int64_t ns;
	const char *text;
} times[] = {{0, "0"}, {1500000000, "1.5"}, {7000000000, "7"}, {1000000001, "1.000000001"}};

struct drawn {
	struct s3_target target;
	struct s3_meta meta;
	const char *mtime, *ctime;
	const char *owner;
	bool pays, is_aws;
};

static struct drawn draw(void)
{
	struct drawn d = {.target = {.key = "k"}, .owner = below(2) ? "123456789012" : NULL};
	const unsigned m = below(4), c = below(4);
	d.pays = below(2);
	d.is_aws = below(2);
	d.target.content_type = below(2) ? "text/x" : NULL;
	d.target.content_encoding = below(2) ? "gzip" : NULL;
	d.target.version_id = (const char *const[]){NULL, "", "v1", "null"}[below(4)];
	d.mtime = times[m].text;
	d.ctime = times[c].text;
	d.meta = (struct s3_meta){.mtime_ns = times[m].ns,
		.ctime_ns = times[c].ns,
		.part_bytes = below(2) * 5,
		.log_offset = below(2) * 77,
		.content_bytes = 99};
	if (below(4))
		strcpy(d.meta.table_id, "table");
	strcpy(d.meta.claim_id, "claim");
	if (below(2))
		strcpy(d.meta.content_id, "c0ffee");
	if (below(2))
		strcpy(d.meta.encoding, "zstd-3");
	if (below(2))
		strcpy(d.meta.suffix, ".zst");
	return d;
}

/* The required value of this header in the request; NULL: the header must be absent. */
static bool check_header(
	const struct script_request *request, const char *name, bool has_it, const char *value)
{
	if (CHECK_STRING(script_sent(request, name), has_it ? value : NULL))
		return true;
	fprintf(stderr, "\t%s\n", name);
	return false;
}

/* `stores`: the request stores the object. */
static bool check_meta(const struct script_request *r, const struct drawn *d, bool stores)
{
	const struct s3_meta *meta = &d->meta;
	const bool has_table = stores && *meta->table_id;
	const bool is_encoded = has_table && *meta->encoding;
	bool good = check_header(
		r, "x-amz-meta-mtime", stores && (*meta->table_id || meta->mtime_ns), d->mtime);
	good &= check_header(r, "x-amz-meta-s3once-table", has_table, "table");
	good &= check_header(r, "x-amz-meta-s3once-claim", has_table, "claim");
	/* printf b/k | sha256sum */
	good &= check_header(r, "x-amz-meta-s3once-key", has_table, "710800c9e207017de17b");
	good &= check_header(r, "x-amz-meta-s3once-ctime", has_table && meta->ctime_ns, d->ctime);
	good &= check_header(
		r, "x-amz-meta-s3once-content", has_table && *meta->content_id, "c0ffee");
	good &= check_header(r, "x-amz-meta-s3once-part", has_table && meta->part_bytes, "5");
	good &= check_header(r, "x-amz-meta-s3once-offset", has_table && meta->log_offset, "77");
	good &= check_header(r, "x-amz-meta-s3once-encoding", is_encoded, "zstd-3");
	good &= check_header(r, "x-amz-meta-s3once-suffix", is_encoded && *meta->suffix, ".zst");
	good &= check_header(r, "x-amz-meta-s3once-size", is_encoded, "99");
	good &= check_header(
		r, "content-type", stores && d->target.content_type, d->target.content_type);
	good &= check_header(r, "content-encoding", stores && d->target.content_encoding, "gzip");
	return good;
}

#define OK_REPLY                                                                                   \
	SCRIPT_REPLY("200", "ETag: \"e\"\r\nx-amz-version-id: v9\r\nContent-Length: 0\r\n", "")
#define CREATED                                                                                    \
	SCRIPT_REPLY("200", "",                                                                    \
		"<InitiateMultipartUploadResult><UploadId>u</UploadId></"                          \
		"InitiateMultipartUploadResult>")
#define BODY   SCRIPT_REPLY("206", "ETag: \"e\"\r\nContent-Length: 3\r\n", "abc")
#define DELETE SCRIPT_REPLY("204", "", "")

static const struct {
	const char *is_to, *reply;
	bool stores, reads_version, is_of_bucket;
} requests[] = {
	{"PUT /b/k", OK_REPLY, .stores = true},
	{"POST /b/k?uploads=", CREATED, .stores = true},
	{"HEAD /b/k", OK_REPLY, .reads_version = true},
	{"GET /b/k", BODY, .reads_version = true},
	{"GET /b/k", BODY},
	{"DELETE /b/k", DELETE},
	{"DELETE /b/k?uploadId=u", DELETE},
	{"HEAD /b", OK_REPLY, .is_of_bucket = true},
};
enum { REQUESTS = sizeof requests / sizeof *requests };

static void send_all(struct script_s3 *f, const struct drawn *d)
{
	static const struct http_body body = {.bytes = 9, .memory = "123456789"};
	struct sums sums;
	struct s3_object object;
	struct s3_created created = {0};
	struct http_reply reply = {0};
	char etag[S3_ETAG_MAX + 1];
	struct problem *problem = &f->aws.problem;
	CHECK_INT(
		digest_bytes(s3_wanted_digests(f->s3, CHECKSUM_CRC32C), "123456789", 9, &sums), 0);
	const struct s3_put put = {.target = d->target,
		.body = &body,
		.sums = &sums,
		.checksum = CHECKSUM_CRC32C,
		.condition = {.if_none_match = true},
		.meta = d->meta};
	const struct s3_create create = {.target = d->target, .meta = d->meta};
	CHECK_INT(s3_put_object(f->conn, &put, &object, problem), OUTCOME_OK);
	CHECK_STRING(object.etag, "e");
	CHECK_STRING(object.version_id, "v9");
	CHECK_INT(s3_create_upload(f->conn, &create, &created, problem), OUTCOME_OK);
	CHECK_INT(s3_head_object(f->conn, &d->target, NULL, &object, problem), OUTCOME_OK);
	CHECK_STRING(object.etag, "e");
	CHECK_STRING(object.version_id, "v9");
	CHECK_INT(s3_get_range(f->conn, &d->target, 0, 3, NULL, &reply, etag, problem), OUTCOME_OK);
	CHECK_STRING(text_string(&reply.body), "abc");
	CHECK_STRING(etag, "e");
	etag[0] = '\0';
	CHECK_INT(s3_get_small(f->conn, &d->target, 100, NULL, &reply, etag, problem), OUTCOME_OK);
	CHECK_STRING(etag, "e");
	CHECK_INT(s3_delete_object(f->conn, "k", NULL, problem), OUTCOME_OK);
	CHECK_INT(s3_abort_upload(f->conn, "k", "u", NULL, problem), OUTCOME_OK);
	CHECK_INT(s3_look_for_bucket(f->conn, NULL, problem), OUTCOME_OK);
	http_reply_clear(&reply);
	free(created.upload_id);
}

static void test_round(unsigned round)
{
	const char *replies[REQUESTS + 1] = {NULL};
	const struct drawn d = draw();
	struct script_s3 f = {0};
	for (size_t i = 0; i < REQUESTS; i++)
		replies[i] = requests[i].reply;
	if (!script_aws_reply(&f.aws, replies))
		return;
	if (!script_s3_open(&f))
		return;
	f.aws.settings.s3_is_aws = d.is_aws;
	s3_set_terms(f.s3, d.owner, d.pays);
	send_all(&f, &d);
	script_stop(&f.aws.server);
	bool good = CHECK_INT(f.aws.server.n_requests, REQUESTS);
	for (size_t i = 0; i < REQUESTS; i++) {
		const struct script_request *r = &f.aws.server.requests[i];
		char is_to[80];
		const char *version = d.target.version_id ? d.target.version_id : "";
		/* "null" is a name that only AWS is sure to know. */
		const bool is_named = requests[i].reads_version && *version &&
				      (strcmp(version, "null") != 0 || d.is_aws);
		snprintf(is_to, sizeof is_to, "%s%s%s", requests[i].is_to,
			is_named ? "?versionId=" : "", is_named ? version : "");
		good &= CHECK(script_is_to(r, is_to));
		good &= check_meta(r, &d, requests[i].stores);
		good &= check_header(
			r, "x-amz-expected-bucket-owner", d.owner != NULL, "123456789012");
		good &= check_header(
			r, "x-amz-request-payer", d.pays && !requests[i].is_of_bucket, "requester");
		good &= check_header(r, "if-none-match", i == 0, "*");
		good &= CHECK_STRING(r->body, i == 0 ? "123456789" : "");
		good &= check_header(r, "range", i == 3, "bytes=0-2");
		if (!good) {
			fprintf(stderr, "\tround %u, request %zu\n", round, i);
			break;
		}
	}
	script_s3_end(&f);
}

int main(void)
{
	for (unsigned round = 0; round < ROUNDS; round++)
		test_round(round);
	return check_result();
}
