/* The settings of an object as headers, made once and sent with each request that stores or
 * reads it. s3_setting.c has the settings one by one. */
#include "s3/s3_headers.h"
#include "base/quote.h"
#include "s3/s3_request.h"
#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_MAX_BYTES    8192 /* all headers of a request together */
#define METADATA_MAX_BYTES 1850 /* S3 allows 2 KiB, and our own needs some */
#define TAGS_MAX           10
#define HEADERS_MAX        60

struct value {
	const struct s3_setting *setting;
	char *name; /* of METADATA and GRANT: the header; of TAG: the key; else "" */
	char *value;
};

struct s3_headers {
	struct value *values; /* in order of setting */
	size_t n;
	/* Prepared, those of SSE-C first. Names and values are those above, or these texts. */
	struct call_header headers[HEADERS_MAX];
	size_t n_headers, n_access;
	struct text tags, grants[4];
	char key_md5[S3_KEY_MD5_CHARS + 1];
};

int s3_headers_new(struct s3_headers **ret)
{
	struct s3_headers *headers = calloc(1, sizeof *headers);
	if (!headers)
		return -ENOMEM;
	headers->tags = TEXT(VALUE_MAX_BYTES);
	for (size_t i = 0; i < 4; i++)
		headers->grants[i] = TEXT(VALUE_MAX_BYTES);
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
	for (size_t i = 0; i < 4; i++)
		text_clear(&headers->grants[i]);
	free(headers);
}

/* Takes back what this setting said of that name; NULL: of any. */
static void take_back(
	struct s3_headers *headers, const struct s3_setting *setting, const char *name)
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

static int add_parsed(struct s3_headers *headers, const struct s3_setting *setting,
	const struct text *name, const struct text *value)
{
	struct value *values = realloc(headers->values, (headers->n + 1) * sizeof *values);
	if (!values)
		return -ENOMEM;
	headers->values = values;
	struct value new = {setting, strdup(text_string(name)), strdup(text_string(value))};
	if (!new.name || !new.value) {
		free(new.name);
		free(new.value);
		return -ENOMEM;
	}
	if (setting->kind != S3_SETTING_GRANT)
		take_back(headers, setting, new.name);
	values[headers->n++] = new;
	return 0;
}

int s3_headers_set(struct s3_headers *headers, const char *name, const char *value,
	struct problem *ret_problem)
{
	const struct s3_setting *setting = s3_setting_find(name);
	if (!setting) {
		problem_set(ret_problem, "there is no setting '%s' of objects", quote(name).text);
		return -EINVAL;
	}
	if (!*value) {
		take_back(headers, setting, NULL);
		return 0;
	}
	struct s3_reading r = {
		setting, value, TEXT(VALUE_MAX_BYTES), TEXT(VALUE_MAX_BYTES), ret_problem};
	int error = setting->read(&r);
	if (!error)
		error = r.name.error ? r.name.error : r.result.error;
	if (!error)
		error = add_parsed(headers, setting, &r.name, &r.result);
	if (error == -EMSGSIZE) {
		problem_set(ret_problem, "the value is too long for a header");
		error = -EINVAL;
	}
	text_clear(&r.name);
	text_wipe(&r.result);
	if (error == -EINVAL)
		problem_prefix(ret_problem, "%s", name);
	return error;
}

static const char *get_header(const struct s3_headers *headers, const char *name)
{
	for (size_t i = 0; i < headers->n; i++)
		if (strcmp(headers->values[i].setting->name, name) == 0)
			return headers->values[i].value;
	return NULL;
}

/* A sentence, or NULL. */
static const char *contradiction_of_headers(const struct s3_headers *headers)
{
	const char *sse = get_header(headers, "sse");
	const bool kms = sse && strncmp(sse, "aws:kms", 7) == 0;
	if (!kms &&
		(get_header(headers, "sse-kms-key-id") || get_header(headers, "sse-kms-context") ||
			get_header(headers, "sse-bucket-key")))
		return "sse-kms-key-id, sse-kms-context and sse-bucket-key go with sse aws:kms";
	if (sse && get_header(headers, "sse-c-key-file"))
		return "sse and sse-c-key-file contradict each other: the key is the server's or yours";
	if (get_header(headers, "acl") && get_header(headers, "grant"))
		return "acl and grant contradict each other: choose one";
	if (!get_header(headers, "object-lock-mode") !=
		!get_header(headers, "object-lock-retain-until-date"))
		return "object-lock-mode and object-lock-retain-until-date go together: give both";
	return NULL;
}

static bool push(struct s3_headers *headers, const char *name, const char *value)
{
	if (headers->n_headers == HEADERS_MAX)
		return false;
	headers->headers[headers->n_headers++] = (struct call_header){name, value};
	return true;
}

static int prepare_key(struct s3_headers *headers)
{
	const char *key = get_header(headers, "sse-c-key-file");
	int error = key ? s3_customer_key_md5(key, headers->key_md5) : 0;
	if (!key || error)
		return error;
#define CUSTOMER "x-amz-server-side-encryption-customer-"
	push(headers, CUSTOMER "algorithm", "AES256");
	push(headers, CUSTOMER "key", key);
	push(headers, CUSTOMER "key-md5", headers->key_md5);
	headers->n_access = headers->n_headers;
	return 0;
}

/* Grants of one permission are one header. */
static bool push_grant(struct s3_headers *headers, const struct value *value)
{
	for (size_t i = 0; i < headers->n_headers; i++)
		for (size_t j = 0; j < 4; j++)
			if (strcmp(headers->headers[i].name, value->name) == 0 &&
				headers->headers[i].value == headers->grants[j].data) {
				text_addf(&headers->grants[j], ", %s", value->value);
				headers->headers[i].value = headers->grants[j].data;
				return true;
			}
	size_t free_one = 0;
	while (headers->grants[free_one].len)
		free_one++;
	text_add(&headers->grants[free_one], value->value);
	return push(headers, value->name, text_string(&headers->grants[free_one]));
}

/* All but SSE-C's and the tags; false if there are too many. */
static bool push_values(struct s3_headers *headers, size_t *ret_tags, size_t *ret_metadata_bytes)
{
	bool fits = true;
	for (size_t i = 0; fits && i < headers->n; i++) {
		const struct value *value = &headers->values[i];
		switch (value->setting->kind) {
		case S3_SETTING_ONE:
			fits = push(headers, value->setting->header, value->value);
			break;
		case S3_SETTING_METADATA:
			fits = push(headers, value->name, value->value);
			*ret_metadata_bytes +=
				strlen(value->name) - strlen("x-amz-meta-") + strlen(value->value);
			break;
		case S3_SETTING_GRANT:
			fits = push_grant(headers, value);
			break;
		case S3_SETTING_TAG:
			text_addf(&headers->tags, "%s%s=%s", headers->tags.len ? "&" : "",
				value->name, value->value);
			++*ret_tags;
			break;
		case S3_SETTING_CUSTOMER_KEY:
			break;
		}
	}
	return fits;
}

int s3_headers_prepare(struct s3_headers *headers, struct problem *ret_problem)
{
	size_t tags = 0, metadata_bytes = 0;
	const char *sentence = contradiction_of_headers(headers);
	int error = prepare_key(headers);
	if (error == -ENOTSUP) {
		sentence =
			"this host's OpenSSL forbids MD5 (FIPS), which S3 wants of sse-c-key-file";
		error = 0;
	}
	bool fits = push_values(headers, &tags, &metadata_bytes);
	if (tags)
		fits = fits && push(headers, "x-amz-tagging", text_string(&headers->tags)) &&
		       !headers->tags.error;
	for (size_t i = 0; i < 4; i++)
		fits = fits && !headers->grants[i].error;
	if (!sentence && tags > TAGS_MAX)
		sentence = "an object has at most 10 tags";
	if (!sentence && metadata_bytes > METADATA_MAX_BYTES)
		sentence = "metadata has at most 1,850 bytes, keys and values together";
	if (!sentence && !fits)
		sentence = "there are too many settings for one request";
	if (!error && sentence) {
		problem_set(ret_problem, "%s", sentence);
		error = -EINVAL;
	}
	return error;
}

size_t s3_headers_of(const struct s3_headers *headers, enum s3_header_scope scope,
	const struct call_header **ret)
{
	*ret = headers ? headers->headers : NULL;
	return !headers ? 0 : scope == S3_HEADERS_ACCESS ? headers->n_access : headers->n_headers;
}

bool s3_headers_have_type(const struct s3_headers *headers)
{
	return get_header(headers, "content-type") != NULL;
}

bool s3_headers_have_key(const struct s3_headers *headers)
{
	return headers->n_access > 0;
}

bool s3_headers_encryption_is(
	const struct s3_headers *headers, const char *sse, const char *key_md5)
{
	const char *asked = headers ? get_header(headers, "sse") : NULL;
	if (headers && s3_headers_have_key(headers))
		return key_md5 && strcmp(key_md5, headers->key_md5) == 0;
	return !asked || (sse && strcmp(sse, asked) == 0);
}

const char *s3_headers_key_md5(const struct s3_headers *headers)
{
	return headers ? headers->key_md5 : "";
}

const char *s3_headers_value(const struct s3_headers *headers, const char *name)
{
	for (size_t i = 0; headers && i < headers->n; i++)
		if (strcmp(headers->values[i].setting->name, name) == 0)
			return headers->values[i].setting->kind == S3_SETTING_ONE
				       ? headers->values[i].value
				       : "";
	return NULL;
}
