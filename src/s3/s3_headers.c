/* Collects the settings of objects, whose values s3_setting.h reads, prepares all headers once for
 * the requests that store or read objects, and compares a reply with the settings. */
#include "s3/s3_headers.h"
#include "base/checksum.h"
#include "s3/s3_setting.h"
#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define VALUE_MAX_BYTES    8192 /* S3's limit for all headers of a request together */
#define METADATA_MAX_BYTES 1500 /* S3 allows 2 KiB, and our own metadata need some 500 bytes */
#define TAGS_MAX           10
#define HEADERS_MAX        60
#define GRANT              "header x-amz-grant-"

const char *s3_setting_name(unsigned i)
{
	return s3_settings[i].name;
}

struct value {
	const struct setting *setting;
	char *name; /* for TAG the key, for OBJECT_LOCK the mode, for CUSTOMER_KEY "", otherwise the
		       header's name */
	char *value;
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

/* Adds a value of a setting, in place of its earlier value of the same name. An object lock has one
 * value, whatever its name is. 0 or -ENOMEM. */
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
	drop_values(headers, setting, setting->kind == SETTING_OBJECT_LOCK ? NULL : name);
	values[headers->n++] = new;
	return 0;
}

/* Reads a value that the user gave, and adds it. 0, -ENOMEM, or -EINVAL with a sentence. */
static int read_and_add(struct s3_headers *headers, const struct setting *setting,
	const char *value, struct problem *ret_problem)
{
	struct setting_reading reading = {.setting = setting,
		.value = value,
		.name = TEXT(VALUE_MAX_BYTES),
		.result = TEXT(VALUE_MAX_BYTES),
		.problem = ret_problem};
	text_add(&reading.name, setting->header ? setting->header : "");
	int error = setting->read(&reading);
	/* The read() of a setting with one header leaves `result` empty if the value is sent as it
	 * was given. */
	const bool is_as_given = setting->header && !reading.result.len;
	if (!error && is_as_given)
		text_add(&reading.result, value);
	if (!error)
		error = reading.name.error ? reading.name.error : reading.result.error;
	if (!error)
		error = add_value(
			headers, setting, text_string(&reading.name), text_string(&reading.result));
	if (error == -EMSGSIZE)
		error = problem_error(ret_problem, -EINVAL, "the value is too long for a header");
	text_clear(&reading.name);
	text_wipe(&reading.result);
	return error;
}

int s3_headers_set(struct s3_headers *headers, const char *name, const char *value,
	struct problem *ret_problem)
{
	if (!*value && strcmp(name, "header") == 0) { /* an empty value drops all headers */
		for (size_t i = 0; i < S3_SETTINGS; i++)
			if (s3_setting_is_header(&s3_settings[i]))
				drop_values(headers, &s3_settings[i], NULL);
		return 0;
	}
	const struct setting *setting = s3_setting_find(name, &value, ret_problem);
	if (!setting)
		return -EINVAL;
	if (!*value) {
		drop_values(headers, setting, NULL);
		return 0;
	}
	const int error = read_and_add(headers, setting, value, ret_problem);
	if (error == -EINVAL)
		problem_prefix(
			ret_problem, "%s", s3_setting_is_header(setting) ? setting->name : name);
	return error;
}

const char *s3_headers_content_encoding(const char *name, const char *value)
{
	static const char header[] = "content-encoding";
	const size_t n = strcspn(value, ":=");
	if (strcmp(name, "header") != 0 || n != strlen(header) ||
		strncasecmp(value, header, n) != 0)
		return NULL;
	return value + n + strspn(value + n, ":= \t");
}

/* Returns a sentence about settings that contradict each other, or NULL. */
static const char *contradiction_of_headers(const struct s3_headers *headers)
{
	const struct value *sse = find_value(headers, "sse");
	const bool is_kms = sse && strncmp(sse->value, "aws:kms", 7) == 0;
	const bool needs_kms =
		find_value(headers, "sse-kms-key-id") ||
		find_value(headers, "header x-amz-server-side-encryption-context") ||
		find_value(headers, "header x-amz-server-side-encryption-bucket-key-enabled");
	if (needs_kms && !is_kms)
		return "sse-kms-key-id and the headers x-amz-server-side-encryption-context and "
		       "-bucket-key-enabled go with sse aws:kms";
	if (sse && find_value(headers, "sse-c-key-file"))
		return "sse and sse-c-key-file contradict each other: the key is the server's or yours";
	bool grants = false;
	for (size_t i = 0; i < headers->n; i++)
		grants |= strncmp(headers->values[i].setting->name, GRANT, strlen(GRANT)) == 0;
	if (grants && find_value(headers, "acl"))
		return "acl and the headers x-amz-grant-… contradict each other: choose one";
	return NULL;
}

/* Adds a header, and returns whether there was room for it. */
static bool add_header(struct s3_headers *headers, const char *name, const char *value)
{
	if (headers->n_headers == HEADERS_MAX)
		return false;
	headers->headers[headers->n_headers++] = (struct call_header){name, value};
	return true;
}

/* Computes the base64 of the key's MD5, which S3 requires beside it. Returns 0 or -errno. */
static int key_md5_of(const char *base64, char ret[static S3_KEY_MD5_CHARS + 1])
{
	unsigned char key[S3_KEY_BYTES + 1];
	struct sums sums;
	base64_decode(base64, key); /* it succeeds, since read_key_file() has made the base64 */
	const int error = digest_bytes(DIGEST_MD5, key, S3_KEY_BYTES, &sums);
	if (!error)
		base64_encode(sums.md5, sizeof sums.md5, ret);
	OPENSSL_cleanse(key, sizeof key);
	return error;
}

/* Adds the headers of a customer-provided key. They come first, since requests that read an object
 * have only them. For the first three headers there is always room. Returns 0 or -errno. */
static int add_key_headers(struct s3_headers *headers, const struct value *key)
{
	const int error = key_md5_of(key->value, headers->key_md5);
	add_header(headers, S3_CUSTOMER "algorithm", "AES256");
	add_header(headers, S3_CUSTOMER "key", key->value);
	add_header(headers, S3_CUSTOMER "key-md5", headers->key_md5);
	headers->n_access = headers->n_headers;
	return error;
}

/* Adds the header or the headers of a value, and returns whether there was room. A tag is added to
 * `tags`, which become one header at the end. */
static bool add_headers_of(struct s3_headers *headers, const struct value *value)
{
	switch (value->setting->kind) {
	case SETTING_ONE:
	case SETTING_METADATA:
		return add_header(headers, value->name, value->value);
	case SETTING_OBJECT_LOCK:
		return add_header(headers, S3_LOCK "mode", value->name) &&
		       add_header(headers, S3_LOCK "retain-until-date", value->value);
	case SETTING_TAG:
		text_addf(&headers->tags, "%s%s=%s", headers->tags.len ? "&" : "", value->name,
			value->value);
		return true;
	case SETTING_CUSTOMER_KEY: /* add_key_headers() */
	case SETTING_OF_REQUESTS:  /* s3_set_terms() */
		return true;
	}
	return true;
}

int s3_headers_prepare(struct s3_headers *headers, struct problem *ret_problem)
{
	size_t tags = 0, metadata_bytes = 0;
	bool fits = true;
	/* `sentence` is about faulty settings, `error` is for all other failures. */
	const char *sentence = contradiction_of_headers(headers);
	const struct value *key = find_value(headers, "sse-c-key-file");
	int error = key ? add_key_headers(headers, key) : 0;
	if (error == -ENOTSUP) {
		sentence =
			"this host's OpenSSL forbids MD5 (FIPS), which S3 wants of sse-c-key-file";
		error = 0;
	}
	for (size_t i = 0; fits && i < headers->n; i++) {
		const struct value *value = &headers->values[i];
		fits = add_headers_of(headers, value);
		tags += value->setting->kind == SETTING_TAG;
		if (value->setting->kind == SETTING_METADATA)
			metadata_bytes +=
				strlen(value->name) - strlen("x-amz-meta-") + strlen(value->value);
	}
	if (tags)
		fits = fits && add_header(headers, "x-amz-tagging", text_string(&headers->tags)) &&
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
	if (!headers)
		return 0;
	return stores ? headers->n_headers : headers->n_access;
}

bool s3_headers_encryption_is_confirmed(
	const struct s3_headers *headers, const struct http_reply *reply)
{
	const struct value *asked = headers ? find_value(headers, "sse") : NULL;
	const char *sse = http_reply_header(reply, "x-amz-server-side-encryption");
	const char *key_md5 = http_reply_header(reply, S3_CUSTOMER "key-md5");
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
	if (!found)
		return NULL;
	const bool is_one_header = found->setting->header != NULL; /* neither secret nor several */
	return is_one_header ? found->value : "";
}

/* Whether the reply to a HEAD shows this value. It never shows the storage class STANDARD. */
static bool is_shown(const struct value *value)
{
	const bool is_class = strcmp(value->setting->name, "storage-class") == 0;
	return value->setting->shown != NOT_SHOWN &&
	       !(is_class && strcmp(value->value, S3_STANDARD) == 0);
}

unsigned s3_headers_checkable(const struct s3_headers *headers)
{
	unsigned checkable = 0;
	for (size_t i = 0; headers && i < headers->n; i++)
		if (is_shown(&headers->values[i]))
			checkable |= 1U << (headers->values[i].setting - s3_settings);
	return checkable;
}

/* Whether the reply to a HEAD shows that the object has this value. HEAD shows only the number of
 * tags, so that many of the tags that were set count as kept: `tags_so_far` were set up to this
 * value, and the object has `tags`. */
static bool is_kept(
	const struct value *value, const struct http_reply *reply, size_t tags_so_far, size_t tags)
{
	const struct setting *setting = value->setting;
	if (setting->kind == SETTING_TAG)
		return tags_so_far <= tags;
	if (setting->kind == SETTING_OBJECT_LOCK) {
		const char *mode = http_reply_header(reply, S3_LOCK "mode");
		return mode && strcasecmp(mode, value->name) == 0 &&
		       http_reply_header(reply, S3_LOCK "retain-until-date");
	}
	const char *shown = http_reply_header(reply, value->name);
	return shown && (setting->shown != SHOWN_AS_SENT || strcasecmp(shown, value->value) == 0);
}

unsigned s3_headers_missing(
	const struct s3_headers *headers, const struct http_reply *reply, size_t tags)
{
	unsigned missing = 0;
	size_t tags_so_far = 0;
	for (size_t i = 0; headers && i < headers->n; i++) {
		const struct value *value = &headers->values[i];
		tags_so_far += value->setting->kind == SETTING_TAG;
		if (is_shown(value) && !is_kept(value, reply, tags_so_far, tags))
			missing |= 1U << (value->setting - s3_settings);
	}
	return missing;
}
