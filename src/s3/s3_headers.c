/* The settings of an object. Turns each setting from the form that a user writes into a header,
 * prepares all headers once for the requests that store or read objects, and checks what a reply
 * shows of the settings. */
#include "s3/s3_headers.h"
#include "aws/sigv4.h"
#include "base/checksum.h"
#include "base/clock.h"
#include "base/files.h"
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_MAX_BYTES    8192 /* S3's limit for all headers of a request together */
#define METADATA_MAX_BYTES 1500 /* S3 allows 2 KiB, and our own metadata need some 500 bytes */
#define TAGS_MAX           10
#define HEADERS_MAX        60
/* A customer-provided key (SSE-C) has 256 bits. It comes from a file, since others on this host can
 * see the arguments of a process. */
#define KEY_BYTES     32
#define KEY_FILE_MAX  63 /* room for the base64 and some white space */
#define KEY_BASE64    45 /* with its NUL */
#define CUSTOMER      "x-amz-server-side-encryption-customer-"
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

/* Into which header a value goes. */
enum setting_kind {
	SETTING_ONE,          /* `header` = the value */
	SETTING_METADATA,     /* x-amz-meta-KEY = the value */
	SETTING_TAG,          /* all tags go into one header */
	SETTING_GRANT,        /* all grants of one permission go into one header */
	SETTING_CUSTOMER_KEY, /* three headers, which s3_headers_prepare() makes */
};

struct reading;
struct setting {
	const char *name;
	enum setting_kind kind;
	/* Whether the reply to HEAD has a header for the setting, and whether the value there is
	 * the one that was sent. Servers write some values in another way. Of tags the reply shows
	 * only the number, in another header. */
	enum { NOT_SHOWN, SHOWN, SHOWN_AS_SENT } shown;
	const char *header;
	/* Checks reading->value, and writes the header's value into `result`. If `result` stays
	 * empty, the header has the value as the user wrote it. METADATA and GRANT also write the
	 * header's name into `name`, and TAG the encoded key. Returns 0, or -EINVAL with a
	 * sentence. Want of memory shows only in the error of the texts. */
	int (*read)(struct reading *reading);
	const char *const
		*choices; /* all valid values, NULL-terminated; NULL: there are many more */
};

/* A value that a user gave, and what is made of it. */
struct reading {
	const struct setting *setting;
	const char *value;
	struct text name, result;
	struct problem *problem;
};

/* Sets a sentence that quotes the value and says `why` it is invalid. Returns -EINVAL. */
static int refuse(struct reading *r, const char *why)
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

static int read_printable(struct reading *r)
{
	return is_printable(r->value) ? 0 : refuse(r, "has characters that no header can carry");
}

static int read_choice(struct reading *r)
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
static int read_storage_class(struct reading *r)
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

/* Accepts TYPE/SUBTYPE, where parameters may follow behind a ';' or a space. So the '/' has to come
 * before these two. */
static int read_type(struct reading *r)
{
	const char *slash = strchr(r->value, '/');
	if (!slash || slash == r->value || !slash[1] || slash[1] == ';' ||
		!is_printable(r->value) || strcspn(r->value, " ;") < (size_t)(slash - r->value))
		return refuse(r, "is not a content type; it looks like text/plain");
	return 0;
}

/* Reads a time in UTC (ISO 8601), or an HTTP date. An object lock has to end in the future, but
 * `expires` may be past. */
static int read_time(struct reading *r)
{
	const bool expires = strcmp(r->setting->name, "expires") == 0;
	char date[CLOCK_HTTP_DATE_CHARS];
	int64_t time_s = clock_parse_iso(r->value);
	if (time_s < 0)
		time_s = clock_parse_http_date(r->value);
	if (time_s < 0)
		return refuse(r, "is not a time in UTC; it looks like 2030-12-31T23:59:59Z");
	if (!expires && time_s <= clock_wall_s())
		return refuse(r, "is past; objects are retained until a time to come");
	if (expires)
		clock_format_http_date(time_s, date);
	else
		clock_format_iso(time_s, date);
	text_add(&r->result, date);
	return 0;
}

/* Reads a number of days, such as "400d", and writes the time that is so far from now. */
static int read_days(struct reading *r)
{
	char date[CLOCK_HTTP_DATE_CHARS];
	const size_t digits = strspn(r->value, "0123456789");
	const unsigned long days = digits ? strtoul(r->value, NULL, 10) : 0;
	/* S3 retains objects for 100 years at most. */
	if (!days || digits > 5 || days > 36500 || strcmp(r->value + digits, "d") != 0)
		return refuse(r, "is not a number of days, up to 36500d; it looks like 400d");
	clock_format_iso(clock_wall_s() + (int64_t)days * 24 * 3600, date);
	text_add(&r->result, date);
	return 0;
}

static int read_redirect(struct reading *r)
{
	const bool is_place = r->value[0] == '/' || strncmp(r->value, "http://", 7) == 0 ||
			      strncmp(r->value, "https://", 8) == 0;
	if (!is_place || !is_printable(r->value))
		return refuse(
			r, "is not a place to redirect to; it begins with /, http:// or https://");
	return 0;
}

/* Reads an encryption context, which is JSON and is sent in base64. */
static int read_context(struct reading *r)
{
	const char *key;
	json_t *each, *object = json_loads(r->value, JSON_REJECT_DUPLICATES, NULL);
	/* `object` may be NULL, or no object. Then the loop has nothing to go through. */
	bool is_context = json_is_object(object) && json_object_size(object);
	json_object_foreach(object, key, each) is_context = is_context && json_is_string(each);
	json_decref(object);
	if (!is_context)
		return refuse(r,
			"is not an encryption context; it looks like {\"department\": \"sales\"}");
	text_add_base64(&r->result, r->value, strlen(r->value));
	return 0;
}

/* Reads a key from a file, and writes it in base64. The file holds its 32 bytes, or their base64
 * and perhaps a newline. */
static int read_key_file(struct reading *r)
{
	struct text file = TEXT(KEY_FILE_MAX);
	unsigned char key[KEY_BYTES + 1]; /* base64_decode() needs a byte more than the key has */
	const int error = named_file_read(r->value, &file, NULL);
	bool is_good = !error && file.len == KEY_BYTES;
	if (is_good) {
		memcpy(key, file.data, KEY_BYTES);
	} else if (!error) {
		while (file.len && strchr("\r\n \t", file.data[file.len - 1]))
			file.data[--file.len] = '\0';
		is_good = file.len == KEY_BASE64 - 1 && base64_decode(file.data, key) == KEY_BYTES;
	}
	if (is_good) {
		text_add_base64(&r->result, key, KEY_BYTES);
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
static size_t characters(const char *s, size_t n)
{
	size_t count = 0;
	for (size_t i = 0; i < n; i++)
		count += ((unsigned char)s[i] & 0xC0) != 0x80;
	return count;
}

/* Reads KEY=VALUE, and encodes both as in a URL's query, as the header x-amz-tagging has them. */
static int read_tag(struct reading *r)
{
	const char *equals = strchr(r->value, '=');
	if (!equals || equals == r->value)
		return refuse(r, "is not a tag; it looks like KEY=VALUE");
	const size_t key = (size_t)(equals - r->value), rest = strlen(equals + 1);
	if (!utf8_valid(r->value, key + 1 + rest) || characters(r->value, key) > TAG_KEY_MAX ||
		characters(equals + 1, rest) > TAG_VALUE_MAX)
		return refuse(
			r, "is not a tag: a key has at most 128 characters of UTF-8, a value 256");
	uri_encode(&r->name, r->value, key, 0); /* encodes a '/', too */
	uri_encode(&r->result, equals + 1, rest, 0);
	return 0;
}

static int read_metadata(struct reading *r)
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

/* Reads PERMISSION=TYPE=GRANTEE, as the AWS CLI's --grants has it. */
static int read_grant(struct reading *r)
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

/* All settings, with the fields of struct setting as columns. The number of a setting is its index
 * here, as in the masks of s3_headers_asked() and s3_headers_lacks(). So messages about settings
 * that a server has ignored come in this order. */
static const struct setting settings[S3_SETTINGS] = {
	{"storage-class", SETTING_ONE, SHOWN_AS_SENT, "x-amz-storage-class", read_storage_class},
	{"metadata", SETTING_METADATA, SHOWN, NULL, read_metadata},
	[S3_SETTING_TAG] = {"tag", SETTING_TAG, SHOWN, NULL, read_tag},
	{"content-type", SETTING_ONE, SHOWN_AS_SENT, "content-type", read_type},
	{"content-encoding", SETTING_ONE, SHOWN_AS_SENT, "content-encoding", read_printable},
	{"content-language", SETTING_ONE, SHOWN_AS_SENT, "content-language", read_printable},
	{"content-disposition", SETTING_ONE, SHOWN, "content-disposition", read_printable},
	{"cache-control", SETTING_ONE, SHOWN_AS_SENT, "cache-control", read_printable},
	{"expires", SETTING_ONE, SHOWN, "expires", read_time},
	{"website-redirect", SETTING_ONE, SHOWN, "x-amz-website-redirect-location", read_redirect},
	{"object-lock-mode", SETTING_ONE, SHOWN_AS_SENT, "x-amz-object-lock-mode", read_choice,
		lock_modes},
	{"object-lock-retain-until-date", SETTING_ONE, SHOWN, "x-amz-object-lock-retain-until-date",
		read_time},
	{"object-lock-legal-hold", SETTING_ONE, SHOWN_AS_SENT, "x-amz-object-lock-legal-hold",
		read_choice, holds},
	{"sse", SETTING_ONE, NOT_SHOWN, "x-amz-server-side-encryption", read_choice, encryptions},
	{"sse-kms-key-id", SETTING_ONE, NOT_SHOWN, "x-amz-server-side-encryption-aws-kms-key-id",
		read_printable},
	{"sse-kms-context", SETTING_ONE, NOT_SHOWN, "x-amz-server-side-encryption-context",
		read_context},
	{"sse-bucket-key", SETTING_ONE, NOT_SHOWN,
		"x-amz-server-side-encryption-bucket-key-enabled", read_choice, booleans},
	{"sse-c-key-file", SETTING_CUSTOMER_KEY, NOT_SHOWN, NULL, read_key_file},
	{"acl", SETTING_ONE, NOT_SHOWN, "x-amz-acl", read_choice, acls},
	{"grant", SETTING_GRANT, NOT_SHOWN, NULL, read_grant},
};

const char *s3_setting_name(unsigned i)
{
	return settings[i].name;
}

struct value {
	const struct setting *setting;
	char *name;  /* for TAG the key, for CUSTOMER_KEY "", otherwise the header's name */
	char *value; /* for GRANT all grants of the header */
};

struct s3_headers {
	struct value *values; /* in the order in which they were set */
	size_t n;
	/* The prepared headers. The first n_access of them are those of SSE-C. They borrow from
	 * `values`, `tags` and `key_md5`. */
	struct call_header headers[HEADERS_MAX];
	size_t n_headers, n_access;
	struct text tags;
	char key_md5[S3_KEY_MD5_CHARS + 1];
};

int s3_headers_new(struct s3_headers **ret)
{
	struct s3_headers *headers = calloc(1, sizeof *headers);
	if (!headers)
		return -ENOMEM;
	headers->tags = TEXT(VALUE_MAX_BYTES);
	*ret = headers;
	return 0;
}

static void value_clear(struct value *value)
{
	OPENSSL_cleanse(value->value, strlen(value->value));
	free(value->value);
	free(value->name);
}

void s3_headers_free(struct s3_headers *headers)
{
	if (!headers)
		return;
	for (size_t i = 0; i < headers->n; i++)
		value_clear(&headers->values[i]);
	free(headers->values);
	text_clear(&headers->tags);
	free(headers);
}

/* Removes the values of a setting that have this name, or, if `name` is NULL, all of its values. */
static void drop_values(struct s3_headers *headers, const struct setting *setting, const char *name)
{
	size_t kept = 0;
	for (size_t i = 0; i < headers->n; i++) {
		struct value *value = &headers->values[i];
		if (value->setting == setting && (!name || strcmp(value->name, name) == 0))
			value_clear(value);
		else
			headers->values[kept++] = *value;
	}
	headers->n = kept;
}

/* The first value of a setting, or NULL. */
static const struct value *find_value(const struct s3_headers *headers, const char *setting)
{
	for (size_t i = 0; i < headers->n; i++)
		if (strcmp(headers->values[i].setting->name, setting) == 0)
			return &headers->values[i];
	return NULL;
}

/* Adds a value of a setting, in place of its earlier value of the same name. */
static int add_value(struct s3_headers *headers, const struct setting *setting, const char *name,
	const char *value)
{
	struct value *values = realloc(headers->values, (headers->n + 1) * sizeof *values);
	if (!values)
		return -ENOMEM;
	headers->values = values;
	struct value new = {.setting = setting, .name = strdup(name), .value = strdup(value)};
	if (!new.name || !new.value) {
		free(new.name);
		free(new.value);
		return -ENOMEM;
	}
	drop_values(headers, setting, name);
	values[headers->n++] = new;
	return 0;
}

int s3_headers_set(struct s3_headers *headers, const char *name, const char *value,
	struct problem *ret_problem)
{
	const struct setting *setting = settings, *const end = settings + S3_SETTINGS;
	/* A time from now on is another way to write the same setting. */
	const bool is_in_days = strcmp(name, "object-lock-retain-for") == 0;
	const char *sought = is_in_days ? "object-lock-retain-until-date" : name;
	while (setting < end && strcmp(setting->name, sought) != 0)
		setting++;
	if (setting == end)
		return problem_error(ret_problem, -EINVAL, "there is no setting '%s' of objects",
			quote(name).text);
	if (!*value) {
		drop_values(headers, setting, NULL);
		return 0;
	}
	struct reading r = {.setting = setting,
		.value = value,
		.name = TEXT(VALUE_MAX_BYTES),
		.result = TEXT(VALUE_MAX_BYTES),
		.problem = ret_problem};
	struct text sent = TEXT(VALUE_MAX_BYTES); /* the value of the header */
	text_add(&r.name, setting->header ? setting->header : "");
	/* If the value is refused, what is put together below is thrown away. */
	int error = is_in_days ? read_days(&r) : setting->read(&r);
	/* Grants of one permission share a header, so the new grant goes behind the earlier ones.
	 * The setting is compared too, since a tag may have the name of that header. */
	for (size_t i = 0; setting->kind == SETTING_GRANT && i < headers->n; i++)
		if (headers->values[i].setting == setting &&
			strcmp(headers->values[i].name, text_string(&r.name)) == 0)
			text_addf(&sent, "%s, ", headers->values[i].value);
	/* The read() of a setting with one header leaves `result` empty if the value is sent as it
	 * was given. */
	const bool is_as_given = setting->kind == SETTING_ONE && !r.result.len;
	text_add(&sent, is_as_given ? value : text_string(&r.result));
	if (!error)
		error = r.name.error ? r.name.error : r.result.error ? r.result.error : sent.error;
	if (!error)
		error = add_value(headers, setting, text_string(&r.name), text_string(&sent));
	if (error == -EMSGSIZE)
		error = problem_error(ret_problem, -EINVAL, "the value is too long for a header");
	text_clear(&r.name);
	text_wipe(&r.result);
	text_wipe(&sent);
	if (error == -EINVAL)
		problem_prefix(ret_problem, "%s", name);
	return error;
}

/* Returns a sentence that says which settings contradict each other, or NULL. */
static const char *contradiction_of_headers(const struct s3_headers *headers)
{
	const struct value *sse = find_value(headers, "sse");
	const bool is_kms = sse && strncmp(sse->value, "aws:kms", 7) == 0;
	if (!is_kms &&
		(find_value(headers, "sse-kms-key-id") || find_value(headers, "sse-kms-context") ||
			find_value(headers, "sse-bucket-key")))
		return "sse-kms-key-id, sse-kms-context and sse-bucket-key go with sse aws:kms";
	if (sse && find_value(headers, "sse-c-key-file"))
		return "sse and sse-c-key-file contradict each other: the key is the server's or yours";
	if (find_value(headers, "acl") && find_value(headers, "grant"))
		return "acl and grant contradict each other: choose one";
	/* `!` on both sides compares only whether they are set. */
	if (!find_value(headers, "object-lock-mode") !=
		!find_value(headers, "object-lock-retain-until-date"))
		return "object-lock-mode and object-lock-retain-until-date or object-lock-retain-for "
		       "go together: give both";
	return NULL;
}

/* Adds a header, and returns whether there was room for it. */
static bool push(struct s3_headers *headers, const char *name, const char *value)
{
	if (headers->n_headers == HEADERS_MAX)
		return false;
	headers->headers[headers->n_headers++] = (struct call_header){name, value};
	return true;
}

/* Computes the base64 of the key's MD5, which S3 wants beside it. Returns 0 or -errno. */
static int key_md5_of(const char *base64, char ret[static S3_KEY_MD5_CHARS + 1])
{
	unsigned char key[KEY_BYTES + 1];
	struct sums sums;
	base64_decode(base64, key); /* it succeeds, since read_key_file() has made the base64 */
	const int error = digest_bytes(DIGEST_MD5, key, KEY_BYTES, &sums);
	if (!error)
		base64_encode(sums.md5, sizeof sums.md5, ret);
	OPENSSL_cleanse(key, sizeof key);
	return error;
}

int s3_headers_prepare(struct s3_headers *headers, struct problem *ret_problem)
{
	size_t tags = 0, metadata_bytes = 0;
	bool fits = true;
	/* `sentence` says what is wrong with the settings. `error` is for all other failures. */
	const char *sentence = contradiction_of_headers(headers);
	const struct value *key = find_value(headers, "sse-c-key-file");
	int error = key ? key_md5_of(key->value, headers->key_md5) : 0;
	if (error == -ENOTSUP) {
		sentence =
			"this host's OpenSSL forbids MD5 (FIPS), which S3 wants of sse-c-key-file";
		error = 0;
	}
	/* These headers come first, since requests that read an object have only them. For the
	 * first three there is always room. */
	if (key) {
		push(headers, CUSTOMER "algorithm", "AES256");
		push(headers, CUSTOMER "key", key->value);
		push(headers, CUSTOMER "key-md5", headers->key_md5);
		headers->n_access = headers->n_headers;
	}
	for (size_t i = 0; fits && i < headers->n; i++) {
		const struct value *value = &headers->values[i];
		const enum setting_kind kind = value->setting->kind;
		if (kind == SETTING_METADATA)
			metadata_bytes +=
				strlen(value->name) - strlen("x-amz-meta-") + strlen(value->value);
		if (kind == SETTING_TAG)
			text_addf(&headers->tags, "%s%s=%s", tags++ ? "&" : "", value->name,
				value->value);
		else if (kind != SETTING_CUSTOMER_KEY)
			fits = push(headers, value->name, value->value);
	}
	if (tags)
		fits = fits && push(headers, "x-amz-tagging", text_string(&headers->tags)) &&
		       !headers->tags.error;
	if (!sentence && tags > TAGS_MAX)
		sentence = "an object has at most 10 tags";
	if (!sentence && metadata_bytes > METADATA_MAX_BYTES)
		sentence = "metadata has at most 1,500 bytes, keys and values together";
	if (!sentence && !fits)
		sentence = "there are too many settings for one request";
	return (!error && sentence) ? problem_error(ret_problem, -EINVAL, "%s", sentence) : error;
}

size_t s3_headers_of(const struct s3_headers *headers, bool stores, const struct call_header **ret)
{
	*ret = headers ? headers->headers : NULL;
	return !headers ? 0 : stores ? headers->n_headers : headers->n_access;
}

bool s3_headers_encryption_is(const struct s3_headers *headers, const struct http_reply *reply)
{
	const struct value *asked = headers ? find_value(headers, "sse") : NULL;
	const char *sse = http_reply_header(reply, "x-amz-server-side-encryption");
	const char *key_md5 = http_reply_header(reply, CUSTOMER "key-md5");
	if (*s3_headers_key_md5(headers))
		return key_md5 && strcmp(key_md5, headers->key_md5) == 0;
	return !asked || (sse && strcmp(sse, asked->value) == 0);
}

const char *s3_headers_key_md5(const struct s3_headers *headers)
{
	return headers ? headers->key_md5 : "";
}

const char *s3_headers_value(const struct s3_headers *headers, const char *name)
{
	const struct value *found = headers ? find_value(headers, name) : NULL;
	return !found ? NULL : found->setting->kind == SETTING_ONE ? found->value : "";
}

/* Whether the reply to a HEAD shows this value. It never shows the storage class STANDARD. */
static bool is_shown(const struct value *value)
{
	const bool is_class = strcmp(value->setting->name, "storage-class") == 0;
	return value->setting->shown != NOT_SHOWN &&
	       !(is_class && strcmp(value->value, S3_STANDARD) == 0);
}

unsigned s3_headers_asked(const struct s3_headers *headers)
{
	unsigned asked = 0;
	for (size_t i = 0; headers && i < headers->n; i++)
		if (is_shown(&headers->values[i]))
			asked |= 1U << (headers->values[i].setting - settings);
	return asked;
}

unsigned s3_headers_lacks(
	const struct s3_headers *headers, const struct http_reply *reply, size_t tags)
{
	unsigned lacks = 0;
	size_t tags_asked = 0;
	for (size_t i = 0; headers && i < headers->n; i++) {
		const struct value *value = &headers->values[i];
		const struct setting *setting = value->setting;
		const char *told = http_reply_header(reply, value->name);
		/* HEAD shows only the number of tags, so as many of the tags that were asked for
		 * count as kept. `told` means nothing for a tag, whose name is no header. */
		const bool is_kept = setting->kind == SETTING_TAG
					     ? ++tags_asked <= tags
					     : told && (setting->shown != SHOWN_AS_SENT ||
							       strcasecmp(told, value->value) == 0);
		if (is_shown(value) && !is_kept)
			lacks |= 1U << (setting - settings);
	}
	return lacks;
}
