/* The settings of an object as a user writes them, and the header that each becomes.
 * s3_headers.c puts them together. */
#include "aws/sigv4.h"
#include "base/checksum.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/quote.h"
#include "s3/s3_request.h"
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define KEY_BYTES    32
#define KEY_FILE_MAX 63

int s3_customer_key_md5(const char *base64, char ret[static 25])
{
	unsigned char key[KEY_BYTES + 1];
	struct sums sums;
	const int error = base64_decode(base64, key) == KEY_BYTES
				  ? digest_bytes(DIGEST_MD5, key, KEY_BYTES, &sums)
				  : -EINVAL;
	if (!error)
		base64_encode(sums.md5, sizeof sums.md5, ret);
	OPENSSL_cleanse(key, sizeof key);
	return error;
}

#define TAG_KEY_MAX   128 /* in characters */
#define TAG_VALUE_MAX 256

static const char *const acls[] = {"private", "public-read", "public-read-write",
	"authenticated-read", "aws-exec-read", "bucket-owner-read", "bucket-owner-full-control",
	NULL};
static const char *const encryptions[] = {"AES256", "aws:kms", "aws:kms:dsse", NULL};
static const char *const booleans[] = {"true", "false", NULL};
static const char *const lock_modes[] = {"GOVERNANCE", "COMPLIANCE", NULL};
static const char *const holds[] = {"ON", "OFF", NULL};
static const char *const storage_classes[] = {"STANDARD", "REDUCED_REDUNDANCY", "STANDARD_IA",
	"ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER", "GLACIER_IR", "DEEP_ARCHIVE", "OUTPOSTS",
	"EXPRESS_ONEZONE", "SNOW", NULL};

static int refuse(struct s3_reading *r, const char *why)
{
	return problem_error(r->problem, -EINVAL, "'%s' %s", quote(r->value).text, why);
}

/* What a header can carry as it is. */
static bool is_printable(const char *value)
{
	for (; *value; value++)
		if (*value < ' ' || *value > '~')
			return false;
	return true;
}

static int read_printable(struct s3_reading *r)
{
	return is_printable(r->value) ? 0 : refuse(r, "has characters that no header can carry");
}

static int read_choice(struct s3_reading *r)
{
	const char *const *choice = r->setting->choices;
	struct text all = TEXT(300);
	for (; *choice && strcmp(*choice, r->value) != 0; choice++)
		text_addf(&all, "%s%s", all.len ? ", " : "", *choice);
	if (!*choice)
		problem_set(r->problem, "'%s' is not one of %s", quote(r->value).text,
			text_string(&all));
	text_clear(&all);
	return *choice ? 0 : -EINVAL;
}

/* Other servers have classes of their own, so only what is meant to be one of S3's is known to be
 * wrong. */
static int read_storage_class(struct s3_reading *r)
{
	for (size_t i = 0; storage_classes[i]; i++)
		if (strcasecmp(storage_classes[i], r->value) == 0 &&
			strcmp(storage_classes[i], r->value) != 0)
			return problem_error(r->problem, -EINVAL,
				"'%s' is not a storage class; did you mean %s?",
				quote(r->value).text, storage_classes[i]);
	for (const char *c = r->value; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("_-.", *c))
			return refuse(r, "cannot be the name of a storage class");
	return 0;
}

static int read_type(struct s3_reading *r)
{
	const char *slash = strchr(r->value, '/');
	if (!slash || slash == r->value || !slash[1] || slash[1] == ';' ||
		!is_printable(r->value) || strcspn(r->value, " ;") < (size_t)(slash - r->value))
		return refuse(r, "is not a content type; it looks like text/plain");
	return 0;
}

/* An ISO 8601 time in UTC, or an HTTP date. -EINVAL with a sentence. */
static int64_t read_time(struct s3_reading *r)
{
	int64_t time_s = clock_parse_iso(r->value);
	if (time_s < 0)
		time_s = clock_parse_http_date(r->value);
	return time_s < 0 ? refuse(r, "is not a time in UTC; it looks like 2030-12-31T23:59:59Z")
			  : time_s;
}

static int read_expires(struct s3_reading *r)
{
	const int64_t time_s = read_time(r);
	char date[CLOCK_HTTP_DATE_CHARS];
	if (time_s < 0)
		return -EINVAL;
	clock_format_http_date(time_s, date);
	text_add(&r->result, date);
	return 0;
}

static int read_retention(struct s3_reading *r)
{
	const int64_t time_s = read_time(r);
	char date[21];
	if (time_s < 0)
		return -EINVAL;
	if (time_s <= clock_wall_ns() / (int64_t)NS_PER_S)
		return refuse(r, "is past; objects are retained until a time to come");
	clock_format_iso(time_s, date);
	text_add(&r->result, date);
	return 0;
}

static int read_redirect(struct s3_reading *r)
{
	if ((r->value[0] != '/' && strncmp(r->value, "http://", 7) != 0 &&
		    strncmp(r->value, "https://", 8) != 0) ||
		!is_printable(r->value))
		return refuse(
			r, "is not a place to redirect to; it begins with /, http:// or https://");
	return 0;
}

/* Sent as base64 of the JSON. */
static int read_context(struct s3_reading *r)
{
	const char *key;
	json_t *each, *object = json_loads(r->value, JSON_REJECT_DUPLICATES, NULL);
	bool good = json_is_object(object) && json_object_size(object);
	json_object_foreach(object, key, each) good = good && json_is_string(each);
	json_decref(object);
	if (!good)
		return refuse(r,
			"is not an encryption context; it looks like {\"department\": \"sales\"}");
	char *encoded = malloc(4 * ((strlen(r->value) + 2) / 3) + 1);
	if (!encoded)
		return -ENOMEM;
	base64_encode((const unsigned char *)r->value, strlen(r->value), encoded);
	text_add(&r->result, encoded);
	free(encoded);
	return 0;
}

/* The key in base64. The file holds its 32 bytes, or their base64 and perhaps a newline. */
static int read_key_file(struct s3_reading *r)
{
	struct text file = TEXT(KEY_FILE_MAX);
	unsigned char key[KEY_BYTES + 1];
	char base64[S3_CUSTOMER_KEY_BASE64];
	const int error = named_file_read(r->value, &file, NULL);
	bool is_good = !error && file.len == KEY_BYTES;
	if (is_good) {
		memcpy(key, file.data, KEY_BYTES);
	} else if (!error) {
		while (file.len && strchr("\r\n \t", file.data[file.len - 1]))
			file.data[--file.len] = '\0';
		is_good = file.len == S3_CUSTOMER_KEY_BASE64 - 1 &&
			  base64_decode(file.data, key) == KEY_BYTES;
	}
	if (is_good) {
		base64_encode(key, KEY_BYTES, base64);
		text_add(&r->result, base64);
	} else if (error && error != -EFBIG) {
		problem_set(r->problem, "%s cannot be read: %s", quote(r->value).text,
			named_file_error(error));
	} else {
		problem_set(r->problem,
			"%s holds no key: 32 bytes, or their base64; make one with: openssl rand 32",
			quote(r->value).text);
	}
	OPENSSL_cleanse(key, sizeof key);
	OPENSSL_cleanse(base64, sizeof base64);
	text_wipe(&file);
	return is_good ? 0 : -EINVAL;
}

static size_t characters(const char *s, size_t n)
{
	size_t count = 0;
	for (size_t i = 0; i < n; i++)
		count += ((unsigned char)s[i] & 0xC0) != 0x80;
	return count;
}

/* KEY=VALUE, encoded as in a URL's query. */
static int read_tag(struct s3_reading *r)
{
	const char *equals = strchr(r->value, '=');
	if (!equals || equals == r->value)
		return refuse(r, "is not a tag; it looks like KEY=VALUE");
	const size_t key = (size_t)(equals - r->value), rest = strlen(equals + 1);
	if (!utf8_valid(r->value, key + 1 + rest) || characters(r->value, key) > TAG_KEY_MAX ||
		characters(equals + 1, rest) > TAG_VALUE_MAX)
		return refuse(
			r, "is not a tag: a key has at most 128 characters of UTF-8, a value 256");
	uri_encode(&r->name, r->value, key, 0);
	uri_encode(&r->result, equals + 1, rest, 0);
	return 0;
}

static int read_metadata(struct s3_reading *r)
{
	const char *equals = strchr(r->value, '=');
	if (!equals || equals == r->value)
		return refuse(r, "is not metadata; it looks like KEY=VALUE");
	text_add(&r->name, "x-amz-meta-");
	for (const char *c = r->value; c < equals; c++) {
		if (!isalnum((unsigned char)*c) && !strchr("_-.", *c))
			return refuse(
				r, "has another character in its key than letters, digits, - _ .");
		text_add_char(&r->name, (char)tolower((unsigned char)*c));
	}
	const char *key = text_string(&r->name) + strlen("x-amz-meta-");
	if (strcmp(key, "mtime") == 0 || strncmp(key, "s3once-", 7) == 0)
		return refuse(r, "names metadata that this program itself writes");
	if (!is_printable(equals + 1))
		return refuse(r, "has characters that no header can carry");
	text_add(&r->result, equals + 1);
	return 0;
}

/* PERMISSION=TYPE=GRANTEE, as the AWS CLI's --grants has it. */
static int read_grant(struct s3_reading *r)
{
	static const char *const permissions[][2] = {{"read=", "x-amz-grant-read"},
		{"readacl=", "x-amz-grant-read-acp"}, {"writeacl=", "x-amz-grant-write-acp"},
		{"full=", "x-amz-grant-full-control"}};
	static const char *const types[] = {"id=", "uri=", "emailaddress="};
	for (size_t i = 0; i < sizeof permissions / sizeof *permissions; i++) {
		const char *grantee = r->value + strlen(permissions[i][0]);
		if (strncasecmp(r->value, permissions[i][0], strlen(permissions[i][0])) != 0)
			continue;
		for (size_t j = 0; j < sizeof types / sizeof *types; j++) {
			const size_t n = strlen(types[j]);
			if (strncasecmp(grantee, types[j], n) != 0 || !grantee[n] ||
				strpbrk(grantee + n, "\",") || !is_printable(grantee))
				continue;
			text_add(&r->name, permissions[i][1]);
			text_addf(&r->result, "%s\"%s\"", types[j], grantee + n);
			return 0;
		}
	}
	return refuse(r,
		"is not a grant; it looks like read=id=CANONICAL-USER: read, readacl, writeacl or full, "
		"then id, uri or emailaddress");
}

static const struct s3_setting settings[] = {
	{"storage-class", S3_SETTING_ONE, "x-amz-storage-class", read_storage_class},
	{"sse", S3_SETTING_ONE, "x-amz-server-side-encryption", read_choice, encryptions},
	{"sse-kms-key-id", S3_SETTING_ONE, "x-amz-server-side-encryption-aws-kms-key-id",
		read_printable},
	{"sse-kms-context", S3_SETTING_ONE, "x-amz-server-side-encryption-context", read_context},
	{"sse-bucket-key", S3_SETTING_ONE, "x-amz-server-side-encryption-bucket-key-enabled",
		read_choice, booleans},
	{"sse-c-key-file", S3_SETTING_CUSTOMER_KEY, NULL, read_key_file},
	{"acl", S3_SETTING_ONE, "x-amz-acl", read_choice, acls},
	{"grant", S3_SETTING_GRANT, NULL, read_grant},
	{"tag", S3_SETTING_TAG, "x-amz-tagging", read_tag},
	{"metadata", S3_SETTING_METADATA, NULL, read_metadata},
	{"content-type", S3_SETTING_ONE, "content-type", read_type},
	{"content-encoding", S3_SETTING_ONE, "content-encoding", read_printable},
	{"content-language", S3_SETTING_ONE, "content-language", read_printable},
	{"content-disposition", S3_SETTING_ONE, "content-disposition", read_printable},
	{"cache-control", S3_SETTING_ONE, "cache-control", read_printable},
	{"expires", S3_SETTING_ONE, "expires", read_expires},
	{"website-redirect", S3_SETTING_ONE, "x-amz-website-redirect-location", read_redirect},
	{"object-lock-mode", S3_SETTING_ONE, "x-amz-object-lock-mode", read_choice, lock_modes},
	{"object-lock-retain-until-date", S3_SETTING_ONE, "x-amz-object-lock-retain-until-date",
		read_retention},
	{"object-lock-legal-hold", S3_SETTING_ONE, "x-amz-object-lock-legal-hold", read_choice,
		holds},
};

const struct s3_setting *s3_setting_find(const char *name)
{
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
		if (strcmp(settings[i].name, name) == 0)
			return &settings[i];
	return NULL;
}
