/* The table of the settings of objects. Each value is read in the form in which a user writes it,
 * and checked. --header sets those that are nothing but a header; the others have options. */
#include "s3/s3_setting.h"
#include "base/checksum.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A customer-provided key comes from a file, since others on this host can see the arguments of a
 * process. */
#define KEY_FILE_MAX  63  /* room for the base64 and some white space */
#define KEY_BASE64    45  /* with its NUL */
#define TAG_KEY_MAX   128 /* in characters */
#define TAG_VALUE_MAX 256

static const char *const acls[] = {"private", "public-read", "public-read-write",
	"authenticated-read", "aws-exec-read", "bucket-owner-read", "bucket-owner-full-control",
	NULL};
static const char *const encryptions[] = {"AES256", "aws:kms", "aws:kms:dsse", NULL};
static const char *const booleans[] = {"true", "false", NULL};
static const char *const lock_modes[] = {"GOVERNANCE", "COMPLIANCE", NULL};
static const char *const holds[] = {"ON", "OFF", NULL};
static const char *const payers[] = {"requester", NULL};
static const char *const storage_classes[] = {"STANDARD", "REDUCED_REDUNDANCY", "STANDARD_IA",
	"ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER", "GLACIER_IR", "DEEP_ARCHIVE", "OUTPOSTS",
	"EXPRESS_ONEZONE", "SNOW", NULL};

/* Sets a sentence that quotes the value and says `why` it is invalid. Returns -EINVAL. */
static int refuse(struct setting_reading *r, const char *why)
{
	return problem_error(r->problem, -EINVAL, "'%s' %s", quote(r->value).text, why);
}

/* Whether a header can carry the value as it is. */
static bool is_printable(const char *value)
{
	for (; *value; value++)
		if (*value < ' ' || *value > '~')
			return false;
	return true;
}

static int read_printable(struct setting_reading *r)
{
	return is_printable(r->value) ? 0 : refuse(r, "has characters that no header can carry");
}

static int read_choice(struct setting_reading *r)
{
	const char *const *choice = r->setting->choices;
	/* The choices that the value is not. If it is none, these are all choices in the end. */
	struct text all = TEXT(300);
	for (; *choice && strcmp(*choice, r->value) != 0; choice++)
		text_addf(&all, "%s%s", all.len ? ", " : "", *choice);
	if (!*choice)
		problem_set(r->problem, "'%s' is not one of %s", quote(r->value).text,
			text_string(&all));
	text_clear(&all);
	return *choice ? 0 : -EINVAL;
}

/* Refuses a storage class only if it is one of S3's in the wrong case, or cannot be a name. Other
 * servers have classes of their own. */
static int read_storage_class(struct setting_reading *r)
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

/* Accepts TYPE/SUBTYPE, where parameters may follow after a ';' or a space. */
static int read_type(struct setting_reading *r)
{
	const char *slash = strchr(r->value, '/');
	const char *parameters = r->value + strcspn(r->value, " ;");
	const bool has_type = slash && slash != r->value && slash < parameters;
	const bool has_subtype = slash && slash[1] && slash[1] != ';';
	if (!has_type || !has_subtype || !is_printable(r->value))
		return refuse(r, "is not a content type; it looks like text/plain");
	return 0;
}

/* Reads a time in UTC (ISO 8601), or an HTTP date. Returns it in s since 1970, or -1. */
static int64_t parse_time(const char *value)
{
	const int64_t time_s = clock_parse_iso(value);
	return time_s < 0 ? clock_parse_http_date(value) : time_s;
}

/* Reads a time, and writes it as an HTTP date. */
static int read_time(struct setting_reading *r)
{
	char date[CLOCK_HTTP_DATE_CHARS];
	const int64_t time_s = parse_time(r->value);
	if (time_s < 0)
		return refuse(r, "is not a time in UTC; it looks like 2030-12-31T23:59:59Z");
	clock_format_http_date(time_s, date);
	text_add(&r->result, date);
	return 0;
}

/* Reads a number of days such as "400d". Returns the time that is so far from now, in s since 1970,
 * or -1. S3 retains objects for 100 years at most. */
static int64_t parse_days(const char *value)
{
	const size_t digits = strspn(value, "0123456789");
	if (!digits || digits > 5 || strcmp(value + digits, "d") != 0)
		return -1;
	const unsigned long days = strtoul(value, NULL, 10);
	if (days == 0 || days > 36500)
		return -1;
	return clock_wall_s() + (int64_t)days * 24 * 3600;
}

/* Reads MODE:DAYS or MODE:TIME, where the time is still to come. */
static int read_lock(struct setting_reading *r)
{
	char date[CLOCK_HTTP_DATE_CHARS];
	const char *mode = NULL;
	const size_t mode_bytes = strcspn(r->value, ":");
	const char *until = r->value[mode_bytes] ? r->value + mode_bytes + 1 : "";
	for (size_t i = 0; lock_modes[i]; i++)
		if (strlen(lock_modes[i]) == mode_bytes &&
			strncmp(lock_modes[i], r->value, mode_bytes) == 0)
			mode = lock_modes[i];
	const int64_t after_days_s = parse_days(until);
	const int64_t time_s = after_days_s < 0 ? parse_time(until) : after_days_s;
	if (!mode || time_s < 0)
		return refuse(r, "is not a retention: it looks like GOVERNANCE:400d, for up to "
				 "36500d, or COMPLIANCE:2030-12-31T23:59:59Z");
	if (time_s <= clock_wall_s())
		return refuse(r, "is past; objects are retained until a time to come");
	text_add(&r->name, mode);
	clock_format_iso(time_s, date);
	text_add(&r->result, date);
	return 0;
}

/* Accepts the target of a redirect: a path or a URL. */
static int read_redirect(struct setting_reading *r)
{
	const bool is_place = r->value[0] == '/' || strncmp(r->value, "http://", 7) == 0 ||
			      strncmp(r->value, "https://", 8) == 0;
	if (!is_place || !is_printable(r->value))
		return refuse(
			r, "is not a place to redirect to; it begins with /, http:// or https://");
	return 0;
}

/* Accepts the number of an AWS account. */
static int read_account(struct setting_reading *r)
{
	const size_t n = strlen(r->value);
	return n == 12 && strspn(r->value, "0123456789") == n
		       ? 0
		       : refuse(r, "is not an account number of 12 digits");
}

/* Reads an encryption context, given as JSON or as the base64 of JSON. It is sent in base64. The
 * characters with which JSON begins do not occur in base64. */
static int read_context(struct setting_reading *r)
{
	if (*r->value != '{' && *r->value != '[')
		return read_printable(r);
	const char *key;
	json_t *each, *object = json_loads(r->value, JSON_REJECT_DUPLICATES, NULL);
	bool is_context = json_is_object(object) && json_object_size(object);
	/* If `object` is NULL, or no object, the loop has nothing to go through. */
	json_object_foreach(object, key, each)
	{
		if (!json_is_string(each))
			is_context = false;
	}
	json_decref(object);
	if (!is_context)
		return refuse(r,
			"is not an encryption context; it looks like {\"department\": \"sales\"}");
	text_add_base64(&r->result, r->value, strlen(r->value));
	return 0;
}

/* Reads a key from a file, and writes it in base64. The file holds its 32 bytes, or their base64
 * and perhaps a newline. */
static int read_key_file(struct setting_reading *r)
{
	struct text file = TEXT(KEY_FILE_MAX);
	unsigned char
		key[S3_KEY_BYTES + 1]; /* base64_decode() needs a byte more than the key has */
	const int error = named_file_read(r->value, &file, NULL);
	bool is_good = !error && file.len == S3_KEY_BYTES;
	if (is_good) {
		memcpy(key, file.data, S3_KEY_BYTES);
	} else if (!error) {
		while (file.len && strchr("\r\n \t", file.data[file.len - 1]))
			file.data[--file.len] = '\0';
		is_good =
			file.len == KEY_BASE64 - 1 && base64_decode(file.data, key) == S3_KEY_BYTES;
	}
	if (is_good) {
		text_add_base64(&r->result, key, S3_KEY_BYTES);
	} else if (error && error != -EFBIG) { /* a file that is too large holds no key */
		problem_set(r->problem, "%s cannot be read: %s", quote(r->value).text,
			named_file_error(error));
	} else {
		problem_set(r->problem,
			"%s holds no key: 32 bytes, or their base64; make one with: openssl rand 32",
			quote(r->value).text);
	}
	OPENSSL_cleanse(key, sizeof key);
	text_wipe(&file);
	return is_good ? 0 : -EINVAL;
}

/* Counts the characters of n bytes of UTF-8: all bytes but those that continue a character. */
static size_t count_characters(const char *s, size_t n)
{
	size_t count = 0;
	for (size_t i = 0; i < n; i++)
		count += ((unsigned char)s[i] & 0xC0) != 0x80;
	return count;
}

/* Reads KEY=VALUE, and encodes both as in a URL's query, as the header x-amz-tagging has them. */
static int read_tag(struct setting_reading *r)
{
	const char *equals = strchr(r->value, '=');
	if (!equals || equals == r->value)
		return refuse(r, "is not a tag; it looks like KEY=VALUE");
	const size_t key = (size_t)(equals - r->value), rest = strlen(equals + 1);
	if (!utf8_valid(r->value, key + 1 + rest) ||
		count_characters(r->value, key) > TAG_KEY_MAX ||
		count_characters(equals + 1, rest) > TAG_VALUE_MAX)
		return refuse(
			r, "is not a tag: a key has at most 128 characters of UTF-8, a value 256");
	uri_encode(&r->name, r->value, key);
	uri_encode(&r->result, equals + 1, rest);
	return 0;
}

static int read_metadata(struct setting_reading *r)
{
	const char *equals = strchr(r->value, '=');
	if (!equals || equals == r->value)
		return refuse(r, "is not metadata; it looks like KEY=VALUE");
	text_add(&r->name, "x-amz-meta-");
	for (const char *c = r->value; c < equals; c++) {
		if (!isalnum((unsigned char)*c) && !strchr("_-.", *c))
			return refuse(
				r, "has a key with a character other than letters, digits, - _ .");
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

/* Returns the grantee at the beginning of a list of TYPE=GRANTEE, after its type, or NULL if there
 * is no known type. */
static const char *behind_grantee_type(const char *s)
{
	static const char *const types[] = {"id=", "uri=", "emailaddress="};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strncasecmp(s, types[i], strlen(types[i])) == 0)
			return s + strlen(types[i]);
	return NULL;
}

/* Checks a list of TYPE=GRANTEE, as the headers of grants have it. */
static int read_grantees(struct setting_reading *r)
{
	static const char why[] = "is not a list of grantees; it looks like id=USER, uri=GROUP";
	if (!is_printable(r->value))
		return refuse(r, why);
	for (const char *rest = r->value;;) {
		const char *grantee = behind_grantee_type(rest);
		const size_t bytes = grantee ? strcspn(grantee, ",") : 0;
		if (!bytes)
			return refuse(r, why);
		if (!grantee[bytes]) /* that was the last one */
			return 0;
		rest = grantee + bytes + 1;
		rest += strspn(rest, " ");
	}
}

/* All s3_settings, with the fields of struct setting as columns. The number of a setting is its
 * index here, as in the masks of s3_headers_checkable() and s3_headers_missing(). So messages about
 * settings that a server has ignored come in this order. */
#define HEADER(name) "header " name, SETTING_ONE
const struct setting s3_settings[S3_SETTINGS] = {
	{"storage-class", SETTING_ONE, SHOWN_AS_SENT, "x-amz-storage-class", read_storage_class},
	{"metadata", SETTING_METADATA, SHOWN, NULL, read_metadata},
	[S3_SETTING_TAG] = {"tag", SETTING_TAG, SHOWN, NULL, read_tag},
	{"content-type", SETTING_ONE, SHOWN_AS_SENT, "content-type", read_type},
	{HEADER("Content-Encoding"), SHOWN_AS_SENT, "content-encoding", read_printable},
	{HEADER("Content-Language"), SHOWN_AS_SENT, "content-language", read_printable},
	{HEADER("Content-Disposition"), SHOWN, "content-disposition", read_printable},
	{HEADER("Cache-Control"), SHOWN_AS_SENT, "cache-control", read_printable},
	{HEADER("Expires"), SHOWN, "expires", read_time},
	{HEADER("x-amz-website-redirect-location"), SHOWN, "x-amz-website-redirect-location",
		read_redirect},
	{"object-lock", SETTING_OBJECT_LOCK, SHOWN, NULL, read_lock},
	{HEADER(S3_LOCK "legal-hold"), SHOWN_AS_SENT, S3_LOCK "legal-hold", read_choice, holds},
	{"sse", SETTING_ONE, NOT_SHOWN, "x-amz-server-side-encryption", read_choice, encryptions},
	{"sse-kms-key-id", SETTING_ONE, NOT_SHOWN, "x-amz-server-side-encryption-aws-kms-key-id",
		read_printable},
	{HEADER("x-amz-server-side-encryption-context"), NOT_SHOWN,
		"x-amz-server-side-encryption-context", read_context},
	{HEADER("x-amz-server-side-encryption-bucket-key-enabled"), NOT_SHOWN,
		"x-amz-server-side-encryption-bucket-key-enabled", read_choice, booleans},
	{"sse-c-key-file", SETTING_CUSTOMER_KEY, NOT_SHOWN, NULL, read_key_file},
	{"acl", SETTING_ONE, NOT_SHOWN, "x-amz-acl", read_choice, acls},
	{HEADER("x-amz-grant-read"), NOT_SHOWN, "x-amz-grant-read", read_grantees},
	{HEADER("x-amz-grant-read-acp"), NOT_SHOWN, "x-amz-grant-read-acp", read_grantees},
	{HEADER("x-amz-grant-write-acp"), NOT_SHOWN, "x-amz-grant-write-acp", read_grantees},
	{HEADER("x-amz-grant-full-control"), NOT_SHOWN, "x-amz-grant-full-control", read_grantees},
	{S3_OWNER, SETTING_OF_REQUESTS, NOT_SHOWN, "x-amz-expected-bucket-owner", read_account},
	{S3_PAYER, SETTING_OF_REQUESTS, NOT_SHOWN, "x-amz-request-payer", read_choice, payers},
};

/* Headers of no setting, and the option that sets them. NULL: none does, as they belong to each
 * request. A name that ends in '-' stands for all names that begin so. */
static const struct {
	const char *header, *option;
} set_elsewhere[] = {
	{"x-amz-meta-", "metadata"},
	{"x-amz-tagging", "tag"},
	{S3_CUSTOMER, "sse-c-key-file"},
	{S3_LOCK "mode", "object-lock"},
	{S3_LOCK "retain-until-date", "object-lock"},
	{"content-md5", "checksum"},
	{"x-amz-checksum-", "checksum"},
	{"x-amz-sdk-checksum-algorithm", "checksum"},
	{"if-match", "if-changed"},
	{"if-none-match", "if-changed"},
	{"content-length", NULL},
	{"host", NULL},
	{"date", NULL},
	{"expect", NULL},
	{"connection", NULL},
	{"user-agent", NULL},
	{"transfer-encoding", NULL},
	{"authorization", NULL},
	{"x-amz-date", NULL},
	{"x-amz-content-sha256", NULL},
	{"x-amz-security-token", NULL},
};

bool s3_setting_is_header(const struct setting *setting)
{
	return strncmp(setting->name, "header ", strlen("header ")) == 0;
}

/* Sets the sentence about a header of this name, which --header does not set. */
static void explain_refused_header(const char *name, struct problem *ret_problem)
{
	struct text all = TEXT(600);
	for (size_t i = 0; i < sizeof set_elsewhere / sizeof *set_elsewhere; i++) {
		const char *header = set_elsewhere[i].header, *option = set_elsewhere[i].option;
		const size_t n = strlen(header);
		/* With its NUL, a whole name is compared. Without it, the beginning of a name is.
		 */
		const bool is_beginning = header[n - 1] == '-';
		if (strncasecmp(name, header, is_beginning ? n : n + 1) != 0)
			continue;
		problem_set(ret_problem, "%s is set by %s%s", quote(name).text, option ? "--" : "",
			option ? option : "s3once itself in each request");
		return;
	}
	for (size_t i = 0; i < S3_SETTINGS; i++)
		if (s3_setting_is_header(&s3_settings[i]))
			text_addf(&all, "%s%s", all.len ? ", " : "",
				s3_settings[i].name + strlen("header "));
	problem_set(ret_problem, "S3 knows no header %s for an upload; there are %s",
		quote(name).text, text_string(&all));
	text_clear(&all);
}

/* Returns the setting of a header "NAME: VALUE", and sets *ret_value to its value. The rules write
 * a '=' if the header is a line of a block. NULL with a sentence: --header does not set it. */
static const struct setting *setting_of_header(
	const char *header, const char **ret_value, struct problem *ret_problem)
{
	char name[100];
	const size_t n = strcspn(header, ":=");
	if (!header[n] || !n || n >= sizeof name) {
		problem_set(ret_problem,
			"'%s' is not a header; it looks like 'Cache-Control: max-age=3600'",
			quote(header).text);
		return NULL;
	}
	snprintf(name, sizeof name, "%.*s", (int)n, header);
	*ret_value = header + n + 1 + strspn(header + n + 1, " \t");
	for (size_t i = 0; i < S3_SETTINGS; i++) {
		if (!s3_settings[i].header || strcasecmp(s3_settings[i].header, name) != 0)
			continue;
		if (s3_setting_is_header(&s3_settings[i]))
			return &s3_settings[i];
		problem_set(
			ret_problem, "%s is set by --%s", quote(name).text, s3_settings[i].name);
		return NULL;
	}
	explain_refused_header(name, ret_problem);
	return NULL;
}

const struct setting *s3_setting_find(
	const char *name, const char **value, struct problem *ret_problem)
{
	if (strcmp(name, "header") == 0) {
		const struct setting *setting = setting_of_header(*value, value, ret_problem);
		if (!setting)
			problem_prefix(ret_problem, "header");
		return setting;
	}
	for (size_t i = 0; i < S3_SETTINGS; i++)
		if (strcmp(s3_settings[i].name, name) == 0 &&
			!s3_setting_is_header(&s3_settings[i]))
			return &s3_settings[i];
	problem_set(ret_problem, "there is no setting '%s' of objects", quote(name).text);
	return NULL;
}
