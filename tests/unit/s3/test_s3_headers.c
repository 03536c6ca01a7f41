/* The settings of objects: which values are refused, which headers the others become, and whether a
 * reply shows that a server has kept them. */
#include "../check.h"
#include "../store/sqlite_scratch.h"
#include "http/http.h"
#include "s3/s3_headers.h"
#include <errno.h>
#include <stdlib.h>

#define KEY_BASE64 "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

/* The header that a value becomes; NULL: it is refused. */
static const struct row {
	const char *name, *value, *header, *sent;
} rows[] = {
	{"storage-class", "GLACIER", "x-amz-storage-class", "GLACIER"},
	{"storage-class", "glacier", NULL, "did you mean GLACIER?"},
	{"storage-class", "NEW_CLASS.x-1", "x-amz-storage-class", "NEW_CLASS.x-1"},
	{"storage-class", "A B", NULL, "cannot be the name"},
	{"metadata", "Team=logs & co", "x-amz-meta-team", "logs & co"},
	{"metadata", "a=b=c", "x-amz-meta-a", "b=c"},
	{"metadata", "=b", NULL, "it looks like KEY=VALUE"},
	{"metadata", "a", NULL, "it looks like KEY=VALUE"},
	{"metadata", "a b=c", NULL, "a character other than letters"},
	{"metadata", "mtime=1", NULL, "this program itself writes"},
	{"metadata", "MTIME=1", NULL, "this program itself writes"},
	{"metadata", "s3once-table=x", NULL, "this program itself writes"},
	{"metadata", "mtimes=1", "x-amz-meta-mtimes", "1"},
	{"metadata", "a=\xc3\xa4", NULL, "no header can carry"},
	{"metadata", "a=b\nc", NULL, "no header can carry"},
	{"tag", "a/b=c d", "x-amz-tagging", "a%2Fb=c%20d"},
	{"tag", "a=", "x-amz-tagging", "a="},
	{"tag", "=b", NULL, "is not a tag"},
	{"tag", "a", NULL, "is not a tag"},
	{"tag", "\xff=b", NULL, "is not a tag"},
	{"content-type", "text/plain", "content-type", "text/plain"},
	{"content-type", "text/plain; charset=utf-8", "content-type", "text/plain; charset=utf-8"},
	{"content-type", "text", NULL, "is not a content type"},
	{"content-type", "/plain", NULL, "is not a content type"},
	{"content-type", "text/", NULL, "is not a content type"},
	{"content-type", "text/;x", NULL, "is not a content type"},
	{"content-type", "te xt/plain", NULL, "is not a content type"},
	{"header", "Expires: 2030-12-31T23:59:59Z", "expires", "Tue, 31 Dec 2030 23:59:59 GMT"},
	{"header", "Expires: Tue, 31 Dec 2030 23:59:59 GMT", "expires",
		"Tue, 31 Dec 2030 23:59:59 GMT"},
	{"header", "Expires: soon", NULL, "is not a time in UTC"},
	{"header", "Cache-Control: no-store", "cache-control", "no-store"},
	{"header", "x-amz-website-redirect-location: /a", "x-amz-website-redirect-location", "/a"},
	{"header", "x-amz-website-redirect-location: https://a", "x-amz-website-redirect-location",
		"https://a"},
	{"header", "x-amz-website-redirect-location: a", NULL, "is not a place"},
	{"header", "x-amz-object-lock-legal-hold: ON", "x-amz-object-lock-legal-hold", "ON"},
	{"header", "x-amz-object-lock-legal-hold: yes", NULL, "is not one of"},
	{"object-lock", "COMPLIANCE:2999-01-01T00:00:00Z", "x-amz-object-lock-retain-until-date",
		"2999-01-01T00:00:00Z"},
	{"object-lock", "GOVERNANCE:400d", "x-amz-object-lock-mode", "GOVERNANCE"},
	{"object-lock", "GOVERNANCE:36500d", "x-amz-object-lock-mode", "GOVERNANCE"},
	{"object-lock", "GOVERNANCE:36501d", NULL, "is not a retention"},
	{"object-lock", "GOVERNANCE:0d", NULL, "is not a retention"},
	{"object-lock", "GOVERNANCE:400", NULL, "is not a retention"},
	{"object-lock", "GOVERNANCE:400days", NULL, "is not a retention"},
	{"object-lock", "GOVERN:400d", NULL, "is not a retention"},
	{"object-lock", "NONE:400d", NULL, "is not a retention"},
	{"object-lock", "GOVERNANCE", NULL, "is not a retention"},
	{"object-lock", "COMPLIANCE:2001-01-01T00:00:00Z", NULL, "is past"},
	{"sse", "AES256", "x-amz-server-side-encryption", "AES256"},
	{"sse", "aws:kms", "x-amz-server-side-encryption", "aws:kms"},
	{"sse", "aes256", NULL, "is not one of"},
	{"acl", "private", "x-amz-acl", "private"},
	{"acl", "open", NULL, "is not one of"},
	{"header", "x-amz-grant-read: id=a, uri=\"b\"", "x-amz-grant-read", "id=a, uri=\"b\""},
	{"header", "x-amz-grant-read: EmailAddress=a", "x-amz-grant-read", "EmailAddress=a"},
	{"header", "x-amz-grant-read: a", NULL, "is not a list of grantees"},
	{"header", "x-amz-grant-read: id=", NULL, "is not a list of grantees"},
	{"header", "x-amz-grant-read: id=a,", NULL, "is not a list of grantees"},
	{"header", "x-amz-grant-read: id=a, b", NULL, "is not a list of grantees"},
	{"header", "x-amz-expected-bucket-owner: 012345678901", NULL, NULL},
	{"header", "x-amz-expected-bucket-owner: 01234567890", NULL, "12 digits"},
	{"header", "x-amz-expected-bucket-owner: 01234567890x", NULL, "12 digits"},
	{"header", "x-amz-request-payer: me", NULL, "is not one of"},
	/* Headers of other options, and of each request. */
	{"header", "x-amz-meta-a: b", NULL, "metadata"},
	{"header", "x-amz-tagging: a=b", NULL, "tag"},
	{"header", "If-Match: x", NULL, "if-changed"},
	{"header", "x-amz-checksum-crc32: x", NULL, "checksum"},
	{"header", "Host: x", NULL, "Host"},
	{"header", "x-unknown: x", NULL, "x-unknown"},
	{"no-such", "x", NULL, "no-such"},
	{"sse-c-key-file", "key", "x-amz-server-side-encryption-customer-key", KEY_BASE64},
	{"sse-c-key-file", "base64", "x-amz-server-side-encryption-customer-key", KEY_BASE64},
	{"sse-c-key-file", "short", NULL, "holds no key"},
	{"sse-c-key-file", "long", NULL, "holds no key"},
	{"sse-c-key-file", "odd", NULL, "holds no key"},
	{"sse-c-key-file", "nowhere", NULL, "cannot be read"},
};

static const char *value_of(const struct s3_headers *headers, bool stores, const char *name)
{
	const struct call_header *list;
	const size_t n = s3_headers_of(headers, stores, &list);
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].name, name) == 0)
			return list[i].value;
	return NULL;
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	if (CHECK(file != NULL)) {
		fputs(text, file);
		fclose(file);
	}
}

static void test_values(void)
{
	write_file("key", "0123456789abcdef0123456789abcdef");
	write_file("base64", KEY_BASE64 " \r\n");
	write_file("short", "0123456789abcdef0123456789abcde");
	write_file("long", "0123456789abcdef0123456789abcdefg");
	write_file("odd", "!" KEY_BASE64);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *row = &rows[i];
		struct s3_headers *headers;
		struct problem problem = {0};
		if (s3_headers_new(&headers))
			abort();
		const int error = s3_headers_set(headers, row->name, row->value, &problem);
		bool ok = CHECK_INT(error, row->header || !row->sent ? 0 : -EINVAL);
		if (row->header) {
			ok = CHECK_INT(s3_headers_prepare(headers, &problem), 0) && ok;
			ok = CHECK_STRING(value_of(headers, true, row->header), row->sent) && ok;
			/* A request that reads has only the headers of a key of the user's own. */
			const bool is_key = strcmp(row->name, "sse-c-key-file") == 0;
			ok = CHECK((value_of(headers, false, row->header) != NULL) == is_key) && ok;
		} else if (row->sent) {
			ok = CHECK(strstr(problem.text, row->sent) != NULL) && ok;
		}
		if (!ok)
			fprintf(stderr, "\trow %zu: %s %s: %s\n", i, row->name, row->value,
				problem.text);
		s3_headers_free(headers);
	}
}

/* Settings, "NAME=VALUE", that do not go together, and some that do. */
static const struct {
	const char *settings[12];
	const char *problem; /* NULL: they go together */
} together[] = {
	{{"sse-kms-key-id=k"}, "go with sse aws:kms"},
	{{"sse=AES256", "sse-kms-key-id=k"}, "go with sse aws:kms"},
	{{"sse=aws:kms", "sse-kms-key-id=k"}, NULL},
	{{"sse=aws:kms:dsse", "sse-kms-key-id=k"}, NULL},
	{{"header=x-amz-server-side-encryption-context: {\"a\": \"b\"}"}, "go with sse aws:kms"},
	{{"header=x-amz-server-side-encryption-bucket-key-enabled: true"}, "go with sse aws:kms"},
	{{"sse=AES256", "sse-c-key-file=key"}, "sse and sse-c-key-file"},
	{{"sse-c-key-file=key"}, NULL},
	{{"acl=private", "header=x-amz-grant-read: id=a"}, "acl and the headers"},
	{{"acl=private"}, NULL},
	{{"header=x-amz-grant-read: id=a", "header=x-amz-grant-full-control: id=b"}, NULL},
	{{"tag=a=1", "tag=b=1", "tag=c=1", "tag=d=1", "tag=e=1", "tag=f=1", "tag=g=1", "tag=h=1",
		 "tag=i=1", "tag=j=1"},
		NULL},
	{{"tag=a=1", "tag=b=1", "tag=c=1", "tag=d=1", "tag=e=1", "tag=f=1", "tag=g=1", "tag=h=1",
		 "tag=i=1", "tag=j=1", "tag=k=1"},
		"at most 10 tags"},
	/* The later value of the same key counts, and an empty one removes all. */
	{{"tag=a=1", "tag=a=2"}, NULL},
	{{"acl=private", "header=x-amz-grant-read: id=a", "acl="}, NULL},
	{{"acl=private", "header=x-amz-grant-read: id=a", "header="}, NULL},
};

static struct s3_headers *headers_of(const char *const *settings)
{
	struct s3_headers *headers;
	struct problem problem = {0};
	if (s3_headers_new(&headers))
		abort();
	for (; *settings; settings++) {
		char name[40];
		const size_t n = strcspn(*settings, "=");
		snprintf(name, sizeof name, "%.*s", (int)n, *settings);
		if (!CHECK_INT(s3_headers_set(headers, name, *settings + n + 1, &problem), 0))
			fprintf(stderr, "\t%s\n", problem.text);
	}
	return headers;
}

static void test_together(void)
{
	for (size_t i = 0; i < sizeof together / sizeof *together; i++) {
		struct s3_headers *headers = headers_of(together[i].settings);
		struct problem problem = {0};
		const char *want = together[i].problem;
		if (!CHECK_INT(s3_headers_prepare(headers, &problem), want ? -EINVAL : 0) ||
			!CHECK(!want || strstr(problem.text, want)))
			fprintf(stderr, "\ttogether %zu: %s\n", i, problem.text);
		s3_headers_free(headers);
	}
}

/* The later value of a setting replaces the earlier one, and others stay. */
static void test_replaced(void)
{
	static const struct {
		const char *settings[4];
		const char *sent; /* all that a request which stores an object has */
	} tests[] = {
		{{"storage-class=GLACIER", "storage-class=STANDARD_IA"},
			"x-amz-storage-class: STANDARD_IA\n"},
		{{"metadata=a=1", "metadata=b=2", "metadata=A=3"},
			"x-amz-meta-b: 2\nx-amz-meta-a: 3\n"},
		{{"tag=a=1", "tag=b=2", "tag=a=3"}, "x-amz-tagging: b=2&a=3\n"},
		{{"header=Cache-Control: no-store", "header=cache-control: no-cache"},
			"cache-control: no-cache\n"},
		{{"object-lock=GOVERNANCE:2998-01-01T00:00:00Z",
			 "object-lock=COMPLIANCE:2999-01-01T00:00:00Z"},
			"x-amz-object-lock-mode: COMPLIANCE\n"
			"x-amz-object-lock-retain-until-date: 2999-01-01T00:00:00Z\n"},
		{{"sse=aws:kms", "sse-kms-key-id=k", "sse-kms-key-id=l"},
			"x-amz-server-side-encryption: aws:kms\n"
			"x-amz-server-side-encryption-aws-kms-key-id: l\n"},
		{{"acl=private", "acl=public-read"}, "x-amz-acl: public-read\n"},
	};
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		struct s3_headers *headers = headers_of(tests[i].settings);
		const struct call_header *list;
		struct problem problem = {0};
		struct text sent = TEXT(1000);
		CHECK_INT(s3_headers_prepare(headers, &problem), 0);
		const size_t n = s3_headers_of(headers, true, &list);
		for (size_t k = 0; k < n; k++)
			text_addf(&sent, "%s: %s\n", list[k].name, list[k].value);
		CHECK_STRING(text_string(&sent), tests[i].sent);
		text_clear(&sent);
		s3_headers_free(headers);
	}
}

static void test_too_much_metadata(void)
{
	char value[1600] = "a=";
	struct s3_headers *headers;
	struct problem problem = {0};
	for (int n = 1499; n <= 1500; n++) {
		memset(value + 2, 'x', (size_t)n);
		value[2 + n] = 0;
		if (s3_headers_new(&headers))
			abort();
		CHECK_INT(s3_headers_set(headers, "metadata", value, &problem), 0);
		CHECK_INT(s3_headers_prepare(headers, &problem), n == 1499 ? 0 : -EINVAL);
		s3_headers_free(headers);
	}
}

/* --- what a server has kept */

static const struct {
	const char *settings[4], *reply; /* the header lines of the reply to a HEAD */
	size_t tags;
	bool is_lacking, is_encrypted;
} kept[] = {
	{{"storage-class=GLACIER"}, "x-amz-storage-class: GLACIER\r\n", 0, false, true},
	{{"storage-class=GLACIER"}, "x-amz-storage-class: STANDARD_IA\r\n", 0, true, true},
	{{"storage-class=GLACIER"}, "", 0, true, true},
	{{"storage-class=STANDARD"}, "", 0, false, true},
	{{"metadata=a=b"}, "x-amz-meta-a: otherwise\r\n", 0, false, true},
	{{"metadata=a=b"}, "x-amz-meta-b: b\r\n", 0, true, true},
	{{"tag=a=1", "tag=b=1"}, "", 2, false, true},
	{{"tag=a=1", "tag=b=1"}, "", 3, false, true},
	{{"tag=a=1", "tag=b=1"}, "", 1, true, true},
	{{"object-lock=GOVERNANCE:9d"},
		"x-amz-object-lock-mode: governance\r\n"
		"x-amz-object-lock-retain-until-date: 2999-01-01T00:00:00Z\r\n",
		0, false, true},
	{{"object-lock=GOVERNANCE:9d"}, "x-amz-object-lock-mode: GOVERNANCE\r\n", 0, true, true},
	{{"object-lock=GOVERNANCE:9d"},
		"x-amz-object-lock-mode: COMPLIANCE\r\n"
		"x-amz-object-lock-retain-until-date: 2999-01-01T00:00:00Z\r\n",
		0, true, true},
	{{"header=Cache-Control: no-store"}, "Cache-Control: NO-STORE\r\n", 0, false, true},
	{{"acl=private"}, "", 0, false, true}, /* never shown */
	{{"sse=AES256"}, "x-amz-server-side-encryption: AES256\r\n", 0, false, true},
	{{"sse=AES256"}, "x-amz-server-side-encryption: aws:kms\r\n", 0, false, false},
	{{"sse=AES256"}, "", 0, false, false},
	{{"sse-c-key-file=key"}, "", 0, false, false},
	{{"sse-c-key-file=key"}, "x-amz-server-side-encryption-customer-key-md5: AAAA\r\n", 0,
		false, false},
	{{"sse-c-key-file=key"},
		/* printf 0123456789abcdef0123456789abcdef | openssl md5 -binary | base64 */
		"x-amz-server-side-encryption-customer-key-md5: hRasmdxgYDKV3nvbahU1MA==\r\n", 0,
		false, true},
	{{NULL}, "x-amz-server-side-encryption: aws:kms\r\n", 0, false, true},
};

static struct http_reply reply_of(const char *lines)
{
	struct http_reply reply = {.status = 200};
	http_reply_begin(&reply, 100);
	for (size_t n; *lines; lines += n) {
		n = strcspn(lines, "\n") + 1;
		http_reply_add_header(&reply, lines, n);
	}
	return reply;
}

static void test_kept(void)
{
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
		struct s3_headers *headers = headers_of(kept[i].settings);
		struct problem problem = {0};
		struct http_reply reply = reply_of(kept[i].reply);
		CHECK_INT(s3_headers_prepare(headers, &problem), 0);
		const unsigned asked = s3_headers_checkable(headers);
		const unsigned lacks = s3_headers_missing(headers, &reply, kept[i].tags);
		bool ok = CHECK((lacks != 0) == kept[i].is_lacking);
		ok = CHECK((lacks & ~asked) == 0) && ok;
		ok = CHECK(s3_headers_encryption_is_confirmed(headers, &reply) ==
			     kept[i].is_encrypted) &&
		     ok;
		if (!ok)
			fprintf(stderr, "\tkept %zu\n", i);
		http_reply_clear(&reply);
		s3_headers_free(headers);
	}
	struct http_reply none = reply_of("");
	CHECK(s3_headers_encryption_is_confirmed(NULL, &none));
	CHECK_INT(s3_headers_checkable(NULL), 0);
	CHECK_INT(s3_headers_missing(NULL, &none, 0), 0);
	http_reply_clear(&none);
}

int main(void)
{
	scratch_make();
	test_values();
	test_together();
	test_replaced();
	test_too_much_metadata();
	test_kept();
	scratch_remove();
	return check_result();
}
