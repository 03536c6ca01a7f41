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

#define CUSTOMER "x-amz-server-side-encryption-customer-"

struct value {
	const struct s3_setting *setting;
	char *name;  /* of METADATA and GRANT: the header; of TAG: the key; else "" */
	char *value; /* of GRANT: all of one header */
};

struct s3_headers {
	struct value *values; /* in order of setting */
	size_t n;
	/* Prepared, those of SSE-C first. Names and values are those above, or these texts. */
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

/* The first value of a setting, or NULL. */
static const struct value *find_value(const struct s3_headers *headers, const char *setting)
{
	for (size_t i = 0; i < headers->n; i++)
		if (strcmp(headers->values[i].setting->name, setting) == 0)
			return &headers->values[i];
	return NULL;
}

/* Adds what a setting says in place of what it said before of this name. */
static int add_value(struct s3_headers *headers, const struct s3_setting *setting, const char *name,
	const char *value)
{
	struct value *values = realloc(headers->values, (headers->n + 1) * sizeof *values);
	if (!values)
		return -ENOMEM;
	headers->values = values;
	struct value new = {setting, strdup(name), strdup(value)};
	if (!new.name || !new.value) {
		free(new.name);
		free(new.value);
		return -ENOMEM;
	}
	take_back(headers, setting, name);
	values[headers->n++] = new;
	return 0;
}

int s3_headers_set(struct s3_headers *headers, const char *name, const char *value,
	struct problem *ret_problem)
{
	const struct s3_setting *setting = s3_setting_find(name);
	if (!setting)
		return problem_error(ret_problem, -EINVAL, "there is no setting '%s' of objects",
			quote(name).text);
	if (!*value) {
		take_back(headers, setting, NULL);
		return 0;
	}
	struct s3_reading r = {
		setting, value, TEXT(VALUE_MAX_BYTES), TEXT(VALUE_MAX_BYTES), ret_problem};
	struct text all = TEXT(VALUE_MAX_BYTES);
	int error = setting->read(&r);
	/* Grants of one permission are one header. A tag may have the name of that header, too. */
	for (size_t i = 0; setting->kind == S3_SETTING_GRANT && i < headers->n; i++)
		if (headers->values[i].setting == setting &&
			strcmp(headers->values[i].name, text_string(&r.name)) == 0)
			text_addf(&all, "%s, ", headers->values[i].value);
	const bool is_as_given = setting->kind == S3_SETTING_ONE && !r.result.len;
	text_add(&all, is_as_given ? value : text_string(&r.result));
	if (!error)
		error = r.name.error ? r.name.error : r.result.error ? r.result.error : all.error;
	if (!error)
		error = add_value(headers, setting, text_string(&r.name), text_string(&all));
	if (error == -EMSGSIZE) {
		problem_set(ret_problem, "the value is too long for a header");
		error = -EINVAL;
	}
	text_clear(&r.name);
	text_wipe(&r.result);
	text_wipe(&all);
	if (error == -EINVAL)
		problem_prefix(ret_problem, "%s", name);
	return error;
}

/* A sentence, or NULL. */
static const char *contradiction_of_headers(const struct s3_headers *headers)
{
	const struct value *sse = find_value(headers, "sse");
	const bool kms = sse && strncmp(sse->value, "aws:kms", 7) == 0;
	if (!kms &&
		(find_value(headers, "sse-kms-key-id") || find_value(headers, "sse-kms-context") ||
			find_value(headers, "sse-bucket-key")))
		return "sse-kms-key-id, sse-kms-context and sse-bucket-key go with sse aws:kms";
	if (sse && find_value(headers, "sse-c-key-file"))
		return "sse and sse-c-key-file contradict each other: the key is the server's or yours";
	if (find_value(headers, "acl") && find_value(headers, "grant"))
		return "acl and grant contradict each other: choose one";
	if (!find_value(headers, "object-lock-mode") !=
		!find_value(headers, "object-lock-retain-until-date"))
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

int s3_headers_prepare(struct s3_headers *headers, struct problem *ret_problem)
{
	size_t tags = 0, metadata_bytes = 0;
	bool fits = true;
	const char *sentence = contradiction_of_headers(headers);
	const struct value *key = find_value(headers, "sse-c-key-file");
	int error = key ? s3_customer_key_md5(key->value, headers->key_md5) : 0;
	if (error == -ENOTSUP) {
		sentence =
			"this host's OpenSSL forbids MD5 (FIPS), which S3 wants of sse-c-key-file";
		error = 0;
	}
	if (key) {
		push(headers, CUSTOMER "algorithm", "AES256");
		push(headers, CUSTOMER "key", key->value);
		push(headers, CUSTOMER "key-md5", headers->key_md5);
		headers->n_access = headers->n_headers;
	}
	for (size_t i = 0; fits && i < headers->n; i++) {
		const struct value *value = &headers->values[i];
		const enum s3_setting_kind kind = value->setting->kind;
		if (kind == S3_SETTING_METADATA)
			metadata_bytes +=
				strlen(value->name) - strlen("x-amz-meta-") + strlen(value->value);
		if (kind == S3_SETTING_TAG)
			text_addf(&headers->tags, "%s%s=%s", tags++ ? "&" : "", value->name,
				value->value);
		else if (kind != S3_SETTING_CUSTOMER_KEY)
			fits = push(headers,
				kind == S3_SETTING_ONE ? value->setting->header : value->name,
				value->value);
	}
	if (tags)
		fits = fits && push(headers, "x-amz-tagging", text_string(&headers->tags)) &&
		       !headers->tags.error;
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

bool s3_headers_have_key(const struct s3_headers *headers)
{
	return headers->n_access > 0;
}

bool s3_headers_encryption_is(const struct s3_headers *headers, const struct http_reply *reply)
{
	const struct value *asked = headers ? find_value(headers, "sse") : NULL;
	const char *sse = http_reply_header(reply, "x-amz-server-side-encryption");
	const char *key_md5 = http_reply_header(reply, CUSTOMER "key-md5");
	if (headers && s3_headers_have_key(headers))
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
	return !found ? NULL : found->setting->kind == S3_SETTING_ONE ? found->value : "";
}
