#include "../check.h"
#include "s3/s3_reply.h"
#include "s3/s3_request.h"
#include <errno.h>
#include <stdlib.h>

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define NS   " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""

/* A reply whose strings are borrowed. */
static struct http_reply reply_of(int status, const char *body)
{
	struct http_reply reply = {.status = status, .body = TEXT(1 << 20)};
	text_add(&reply.body, body);
	return reply;
}

static void check_errors(void)
{
	static const struct {
		int status;
		const char *body;
		int found, found_or_xml;
		const char *code, *message, *region;
	} rows[] = {
		{404,
			HEAD
			"<Error><Code>NoSuchKey</Code><Message>gone &amp; away</Message></Error>",
			1, 1, "NoSuchKey", "gone & away", ""},
		{200, "  \n \r\n" HEAD "<Error><Code>InternalError</Code></Error>", 1, 1,
			"InternalError", "", ""},
		{400,
			"<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region>"
			"<Endpoint>evil.example</Endpoint></Error>",
			1, 1, "AuthorizationHeaderMalformed", "", "eu-west-1"},
		{400, "<Error><Code>X</Code><Region>evil.example/</Region></Error>", 1, 1, "X", "",
			""},
		{200, "<ListPartsResult" NS "/>", 0, 0, "", "", ""},
		{200, "", 0, -EBADMSG, "", "", ""},
		{200, "   \n", 0, -EBADMSG, "", "", ""},
		{200, "<a><b></a>", 0, -EBADMSG, "", "", ""},
		{200, "<Error><Code>InternalErr", 0, -EBADMSG, "", "", ""},
		{200, "<a>\x01</a>", 0, -EBADMSG, "", "", ""},
		{503, "<html>busy", 0, 0, "", "", ""},
		{204, "", 0, -EBADMSG, "", "", ""},
		{500, "", 0, 0, "", "", ""},
		{200, "<!DOCTYPE a [<!ENTITY e \"x\">]><Error><Code>&e;</Code></Error>", 0,
			-EBADMSG, "", "", ""},
		{403, "<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><Error/>", 0, 0, "", "", ""},
		{403, "<Error><Code><b>x</b></Code></Error>", 1, 1, "", "", ""},
	};
	char code[64], message[256], region[64];
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct http_reply reply = reply_of(rows[i].status, rows[i].body);
		bool right =
			CHECK_INT(s3_reply_error(&reply, code, message, region), rows[i].found);
		right &= CHECK_INT(
			s3_reply_error_or_xml(&reply, code, message, region), rows[i].found_or_xml);
		right &= CHECK_STRING(code, rows[i].code);
		right &= CHECK_STRING(message, rows[i].message);
		right &= CHECK_STRING(region, rows[i].region);
		if (!right)
			fprintf(stderr, "\tof %s\n", rows[i].body);
		text_clear(&reply.body);
	}
}

static void check_region_of(const char *header, const char *body, const char *want)
{
	char code[64], message[256], region[64];
	struct http_reply reply = {
		.status = 301, .body = TEXT(256), .headers = TEXT(256), .n_headers = 1};
	text_add_bytes(&reply.headers, "x-amz-bucket-region", 20);
	text_add_bytes(&reply.headers, header, strlen(header) + 1);
	text_add(&reply.body, body);
	CHECK_INT(s3_reply_error(&reply, code, message, region), *body != '\0');
	CHECK_STRING(region, want);
	http_reply_clear(&reply);
}

#define OTHER_REGION "<Error><Code>c</Code><Region>us-west-2</Region></Error>"

static void check_region_header(void)
{
	check_region_of("eu-west-1", "", "eu-west-1");
	check_region_of("e/vil", "", "");
	/* The body may be of a proxy in another region. */
	check_region_of("eu-west-1", OTHER_REGION, "eu-west-1");
	check_region_of("e/vil", OTHER_REGION, "us-west-2");
}

static void check_hostile(void)
{
	struct text deep = TEXT(1 << 20);
	for (int i = 0; i < 5000; i++)
		text_add(&deep, "<a>");
	char *id = NULL;
	CHECK_INT(s3_reply_read(&s3_reply_create, deep.data, deep.len, &id), -EBADMSG);
	for (int i = 0; i < 5000; i++)
		text_add(&deep, "</a>");
	CHECK_INT(s3_reply_read(&s3_reply_create, deep.data, deep.len, &id), -EBADMSG);
	text_clear(&deep);
	CHECK(id == NULL);
}

/* Replies that would take long to read, or much memory: at the limit, and one beyond. */
static void check_limits(void)
{
	for (int more = 0; more < 2; more++) {
		struct text wide = TEXT(1 << 20), many = TEXT(1 << 20);
		char *id = NULL;
		text_add(&wide, "<R");
		for (int i = 0; i < 64 + more; i++)
			text_addf(&wide, i % 2 ? " a%d=''" : " a%d = \n\"\"", i);
		text_add(&wide, "><UploadId>a=b==c</UploadId></R>");
		CHECK_INT(s3_reply_read(&s3_reply_create, wide.data, wide.len, &id),
			more ? -EBADMSG : 0);
		free(id);
		id = NULL;
		text_add(&many, "<R>");
		for (int i = 0; i < 99998 + more; i++)
			text_add(&many, "<a/>");
		text_add(&many, "<UploadId>u</UploadId></R>");
		CHECK_INT(s3_reply_read(&s3_reply_create, many.data, many.len, &id),
			more ? -EBADMSG : 0);
		free(id);
		text_clear(&wide);
		text_clear(&many);
	}
}

/* Whatever else a reply has, only elements and text take memory. */
static void check_remarks(void)
{
	static const char xml[] = "<?p?><!--c--><x:R xmlns='d' xmlns:x='e' a='1' x:b='2'><!--c-->"
				  "<Key>a<!--c-->b<?p?>c</Key><?p?></x:R><!--c-->";
	xmlDoc *document = NULL;
	CHECK_INT(xml_document_read(xml, strlen(xml), &document), 0);
	const xmlNode *root = xmlDocGetRootElement(document);
	CHECK(document->children == root && !root->next);
	CHECK(xml_is(root, "R") && !root->properties && !root->nsDef && !root->ns);
	CHECK(root->children == root->last);
	CHECK_STRING(xml_child_text(root, "Key"), "abc");
	xmlFreeDoc(document);
}

static void check_create(void)
{
	static const char good[] = HEAD "<InitiateMultipartUploadResult" NS
					"><Bucket>b</Bucket><Key>k</Key><UploadId>2~u/+=</UploadId>"
					"</InitiateMultipartUploadResult>";
	char *id = NULL;
	CHECK_INT(s3_reply_read(&s3_reply_create, good, strlen(good), &id), 0);
	CHECK_STRING(id, "2~u/+=");
	free(id);
	id = NULL;
	static const char none[] = "<InitiateMultipartUploadResult><UploadId/>"
				   "</InitiateMultipartUploadResult>";
	CHECK_INT(s3_reply_read(&s3_reply_create, none, strlen(none), &id), -EBADMSG);
	static const char other[] =
		"<InitiateMultipartUpload><UploadId>u</UploadId></InitiateMultipartUpload>";
	CHECK_INT(s3_reply_read(&s3_reply_create, other, strlen(other), &id), 0);
	CHECK_STRING(id, "u");
	free(id);
	id = NULL;
	static const char html[] = "<html><body><UploadId>u</UploadId></body></html>";
	CHECK_INT(s3_reply_read(&s3_reply_create, html, strlen(html), &id), -EBADMSG);
	for (size_t n = 0; n < strlen(good); n++)
		CHECK_INT(s3_reply_read(&s3_reply_create, good, n, &id), -EBADMSG);
}

static void check_complete(void)
{
	static const struct {
		const char *body;
		int error;
		const char *etag, *sum;
		enum checksum kind;
	} rows[] = {
		{HEAD "<CompleteMultipartUploadResult" NS "><ETag>&quot;abc-2&quot;</ETag>"
		      "<ChecksumCRC32C>AAAAAA==</ChecksumCRC32C></CompleteMultipartUploadResult>",
			0, "abc-2", "AAAAAA=="},
		{HEAD "<CompleteMultipartUploadResult" NS "><ETag>&quot;abc-2&quot;</ETag>"
		      "<ChecksumCRC64NVME>rosUhgp5mIg=</ChecksumCRC64NVME>"
		      "</CompleteMultipartUploadResult>",
			0, "abc-2", "rosUhgp5mIg=", CHECKSUM_CRC64NVME},
		{"<CompleteMultipartUploadResult><ChecksumSHA256>"
		 "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=-10000</ChecksumSHA256>"
		 "</CompleteMultipartUploadResult>",
			0, "", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=-10000",
			CHECKSUM_SHA256},
		{" \n <CompleteMultipartUploadResult><ETag></ETag></CompleteMultipartUploadResult>",
			0, "", ""},
		{"<CompleteMultipartUploadResult/>", 0, "", ""},
		{"<CompleteMultipartUploadResult><ETag>abc</ETag></CompleteMultipartUploadResult>",
			0, "abc", ""},
		{"<CompleteMultipartUploadResponse><ETag>abc</ETag></CompleteMultipartUploadResponse>",
			0, "abc", ""},
		{"<html><ETag1>abc</ETag1></html>", -EBADMSG, "", ""},
		{"<Error/>", -EBADMSG, "", ""},
		{"<Error><ETag>abc</ETag></Error>", -EBADMSG, "", ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct s3_object object = {0};
		CHECK_INT(s3_reply_read(
				  &s3_reply_complete, rows[i].body, strlen(rows[i].body), &object),
			rows[i].error);
		CHECK_STRING(object.etag, rows[i].etag);
		CHECK_STRING(object.sum.text, rows[i].sum);
		if (rows[i].sum[0])
			CHECK_INT(object.sum.kind, rows[i].kind);
	}
}

struct seen {
	unsigned count, stop_at;
	struct s3_part last;
	char keys[256], ids[64];
	int64_t initiated_s;
};

static int see_part(void *arg, const struct s3_part *part)
{
	struct seen *seen = arg;
	seen->last = *part;
	return ++seen->count == seen->stop_at ? 77 : 0;
}

/* Two pages as S3 writes them, each continued from the marker of the one before. */
static void check_parts(void)
{
	struct text xml = TEXT(1 << 20);
	struct seen seen = {0};
	struct s3_page read = {.part = see_part, .arg = &seen};
	for (unsigned page = 0; page < 2; page++) {
		unsigned last = page ? 1001 : 1000;
		text_reset(&xml);
		text_addf(&xml,
			HEAD "<ListPartsResult" NS "><IsTruncated>%s</IsTruncated>"
			     "<NextPartNumberMarker>%u</NextPartNumberMarker>",
			page ? "false" : "true", last);
		for (unsigned i = read.next_part + 1; i <= last; i++)
			text_addf(&xml,
				"<Part><PartNumber>%u</PartNumber><ETag>\"e%u\"</ETag>"
				"<Size>%u</Size><ChecksumCRC32C>AAAAAA==</ChecksumCRC32C></Part>",
				i, i, i + 5);
		text_add(&xml, "</ListPartsResult>");
		CHECK_INT(s3_reply_read(&s3_reply_parts, xml.data, xml.len, &read), 0);
		CHECK_INT(read.next_part, page ? 0 : 1000);
	}
	CHECK_INT(seen.count, 1001);
	CHECK_INT(seen.last.part_number, 1001);
	static const char no_marker[] =
		HEAD "<ListPartsResult" NS "><IsTruncated>true</IsTruncated>"
		     "<NextPartNumberMarker>0</NextPartNumberMarker></ListPartsResult>";
	CHECK_INT(s3_reply_read(&s3_reply_parts, no_marker, sizeof no_marker - 1, &read), -EBADMSG);
	CHECK_INT(seen.last.size, 1006);
	CHECK_STRING(seen.last.etag, "e1001");
	CHECK_STRING(seen.last.sum.text, "AAAAAA==");
	seen = (struct seen){.stop_at = 1};
	CHECK_INT(s3_reply_read(&s3_reply_parts, xml.data, xml.len, &read), 1);
	text_clear(&xml);
}

static void check_bad_parts(void)
{
	static const char *const rows[] = {
		"<ListPartsResult><Part/></ListPartsResult>",
		"<html><p/></html>",
		"<ListPartsResult><Part><PartNumber>0</PartNumber><Size>1</Size></Part>"
		"</ListPartsResult>",
		"<ListPartsResult><Part><PartNumber>10001</PartNumber><Size>1</Size></Part>"
		"</ListPartsResult>",
		"<ListPartsResult><Part><PartNumber>1</PartNumber><Size>-1</Size></Part>"
		"</ListPartsResult>",
		"<ListPartsResult><Part><PartNumber>1</PartNumber>"
		"<Size>99999999999999999999</Size></Part></ListPartsResult>",
		"<ListPartsResult><IsTruncated>true</IsTruncated></ListPartsResult>",
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct seen seen = {0};
		struct s3_page page = {.part = see_part, .arg = &seen, .next_part = 9};
		CHECK_INT(
			s3_reply_read(&s3_reply_parts, rows[i], strlen(rows[i]), &page), -EBADMSG);
		CHECK_INT(seen.count, 0);
		CHECK_INT(page.next_part, 9);
	}
}

static int see_upload(void *arg, const struct s3_upload *upload)
{
	struct seen *seen = arg;
	seen->count++;
	seen->initiated_s = upload->initiated_s;
	strcat(strcat(seen->keys, upload->key), "|");
	strcat(strcat(seen->ids, upload->upload_id), "|");
	return 0;
}

static void check_uploads(void)
{
#define UPLOAD(key, id)                                                                            \
	"<Upload><Key>" key "</Key><UploadId>" id                                                  \
	"</UploadId><Initiated>2026-11-21T07:56:28.000Z</Initiated></Upload>"
	static const char page[] = "<ListMultipartUploadsResult><EncodingType>url</EncodingType>"
				   "<IsTruncated>true</IsTruncated>" UPLOAD("a%2Bb+c%C3%A4", "u1")
					   UPLOAD("%zz%00%", "u2") "</ListMultipartUploadsResult>";
	static const char last[] = "<ListMultipartUploadsResult>" UPLOAD(
		"a%2B+", "u3") "<IsTruncated>false</IsTruncated></ListMultipartUploadsResult>";
	struct seen seen = {0};
	struct s3_page read = {.upload = see_upload, .arg = &seen};
	CHECK_INT(s3_reply_read(&s3_reply_uploads, page, strlen(page), &read), 0);
	CHECK(read.has_more);
	CHECK_INT(s3_reply_read(&s3_reply_uploads, last, strlen(last), &read), 0);
	CHECK(!read.has_more);
	CHECK_INT(seen.count, 3);
	CHECK_STRING(seen.keys, "a+b c\xc3\xa4|%zz%00%|a%2B+|");
	CHECK_STRING(seen.ids, "u1|u2|u3|");
	CHECK_INT(seen.initiated_s, 1795247788);
	static const char bad[] = "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated>"
				  "</ListMultipartUploadsResult>";
	CHECK_INT(s3_reply_read(&s3_reply_uploads, bad, strlen(bad), &read), -EBADMSG);
}

static void check_etags(void)
{
	static const struct {
		const char *from, *to;
	} rows[] = {
		{"\"a\"", "a"}, {"a", "a"}, {"W/\"a\"", "a"}, {"\"\"", ""}, {"", ""}, {"\"", "\""}};
	char etag[S3_ETAG_MAX + 1], longest[S3_ETAG_MAX + 3];
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		s3_strip_etag(rows[i].from, etag);
		CHECK_STRING(etag, rows[i].to);
	}
	memset(longest, 'x', sizeof longest);
	longest[S3_ETAG_MAX + 1] = '\0';
	s3_strip_etag(longest, etag);
	CHECK_STRING(etag, "");
}

/* Unknown elements are skipped, and the rest is read. */
static void check_sums(void)
{
	static const struct {
		const char *text;
		unsigned kinds;
	} rows[] = {
		{"crc32c:4waSgw== md5:JfnnlDI7RTiF9RgfG2JNCw==", DIGEST_CRC32C | DIGEST_MD5},
		{"md5:JfnnlDI7RTiF9RgfG2JNCw==", DIGEST_MD5},
		{"later:AAAA crc32c:4waSgw==", DIGEST_CRC32C},
		{"crc32c:4waSgw", 0},
		{"crc32c:4waSgw==x", 0},
		{"crc32c4waSgw==", 0},
		{" crc32c:4waSgw==  ", DIGEST_CRC32C},
		{"", 0},
		{":", 0},
		{"crc32c", 0},
	};
	char text[S3_SUMS_CHARS];
	struct sums sums;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		s3_parse_sums(rows[i].text, &sums);
		CHECK_INT(sums.kinds, rows[i].kinds);
		CHECK(!(sums.kinds & DIGEST_CRC32C) ||
			memcmp(sums.crc32c, "\xe3\x06\x92\x83", 4) == 0);
	}
	s3_parse_sums(rows[0].text, &sums);
	s3_format_sums(&sums, CHECKSUM_CRC32C, text);
	CHECK_STRING(text, rows[0].text);
	s3_format_sums(&sums, CHECKSUM_MD5, text);
	CHECK_STRING(text, rows[1].text);
	sums.kinds = (1U << CHECKSUMS) - 1;
	s3_format_sums(&sums, CHECKSUM_SHA256, text); /* the longest */
	CHECK(strlen(text) < S3_SUMS_CHARS - 1);
	s3_parse_sums(text, &sums);
	CHECK_INT(sums.kinds, DIGEST_SHA256 | DIGEST_MD5);
}

static void check_mtime(void)
{
	static const struct {
		int64_t ns;
		const char *text;
	} rows[] = {
		{0, "0"},
		{1, "0.000000001"},
		{1637000000123456789, "1637000000.123456789"},
		{1637000000120000000, "1637000000.12"},
		{1637000000000000000, "1637000000"},
		{-1, "-0.000000001"},
		{-1500000000, "-1.5"},
	};
	char text[S3_MTIME_CHARS];
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		s3_format_mtime(rows[i].ns, text);
		CHECK_STRING(text, rows[i].text);
		CHECK_INT(s3_parse_mtime(rows[i].text), rows[i].ns);
	}
	s3_format_mtime(INT64_MIN, text);
	CHECK_STRING(text, "-9223372036.854775808");
	CHECK_INT(s3_parse_mtime("1637000000.1234567894321"), 1637000000123456789);
	static const char *const bad[] = {"", "x", "1x", "1.x", "1.5x", ".5", "--1",
		"1637000000000", "99999999999999999999999"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK_INT(s3_parse_mtime(bad[i]), 0);
}

#define RULE(status, where, abort) "<Rule><Status>" status "</Status>" where abort "</Rule>"
#define ABORT(days)                                                                                \
	"<AbortIncompleteMultipartUpload><DaysAfterInitiation>" days                               \
	"</DaysAfterInitiation></AbortIncompleteMultipartUpload>"

static void check_abort_days(void)
{
	static const struct {
		const char *rules;
		unsigned days; /* of keys below "logs/web/" */
	} rows[] = {
		{"", 0},
		{RULE("Enabled", "<Filter/>", ABORT("7")), 7},
		{RULE("Enabled", "<Filter><Prefix></Prefix></Filter>", ABORT("7")), 7},
		{RULE("Enabled", "<Filter><Prefix>logs/</Prefix></Filter>", ABORT("3")), 3},
		{RULE("Enabled", "<Prefix>logs/</Prefix>", ABORT("3")), 3},
		{RULE("Enabled", "<Prefix>logs/web/a</Prefix>", ABORT("3")), 0},
		{RULE("Enabled", "<Prefix>other/</Prefix>", ABORT("3")), 0},
		{RULE("Disabled", "<Filter/>", ABORT("7")), 0},
		{RULE("Enabled", "<Filter/>", "<Expiration><Days>3</Days></Expiration>"), 0},
		{RULE("Enabled", "<Filter><Tag><Key>a</Key></Tag></Filter>", ABORT("7")), 0},
		{RULE("Enabled", "<Filter/>", ABORT("7")) RULE("Enabled", "<Filter/>", ABORT("2")),
			2},
		{RULE("Enabled", "<Filter/>", ABORT("2")) RULE("Enabled", "<Filter/>", ABORT("7")),
			2},
		{RULE("Enabled", "<Filter/>", ABORT("soon")), 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char xml[1024];
		struct s3_abort_days rules = {"logs/web/", 99};
		snprintf(xml, sizeof xml, "<LifecycleConfiguration>%s</LifecycleConfiguration>",
			rows[i].rules);
		CHECK_INT(s3_reply_read(&s3_reply_abort_days, xml, strlen(xml), &rules), 0);
		if (!CHECK_INT(rules.days, rows[i].days))
			fprintf(stderr, "\tof %s\n", rows[i].rules);
	}
	struct s3_abort_days rules = {"", 99};
	CHECK_INT(s3_reply_read(&s3_reply_abort_days, "<Other/>", 8, &rules), -EBADMSG);
	CHECK_INT(rules.days, 99);
}

static void check_tags(void)
{
	static const struct {
		const char *xml;
		int error;
		size_t n;
	} rows[] = {
		{"<Tagging><TagSet/></Tagging>", 0, 0},
		{"<Tagging> <TagSet><Tag><Key>a</Key><Value/></Tag> <Tag/></TagSet></Tagging>", 0,
			1},
		{"<Tagging><![CDATA[TagSet]]><TagSet><![CDATA[Tag]]><Tag><Key>a</Key></Tag></TagSet></Tagging>",
			0, 1},
		{"<Tagging><TagSet><Tag><Key></Key><Value></Value></Tag></TagSet></Tagging>", 0, 0},
		{"<Tagging/>", -EBADMSG, 99},
		{"<Other><Tag/></Other>", -EBADMSG, 99},
		{"the object's content", -EBADMSG, 99},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		size_t n = 99;
		CHECK_INT(s3_reply_read(&s3_reply_tags, rows[i].xml, strlen(rows[i].xml), &n),
			rows[i].error);
		if (!CHECK_INT((long long)n, (long long)rows[i].n))
			fprintf(stderr, "\tof %s\n", rows[i].xml);
	}
}

int main(void)
{
	check_errors();
	check_region_header();
	check_hostile();
	check_limits();
	check_remarks();
	check_create();
	check_complete();
	check_parts();
	check_bad_parts();
	check_uploads();
	check_etags();
	check_mtime();
	check_sums();
	check_abort_days();
	check_tags();
	return check_result();
}
