#include "aws/credentials/credentials_json.h"
#include "aws/credentials/credentials_provider.h"
#include "base/clock.h"
#include "base/json_text.h"
#include "base/quote.h"
#include <errno.h>
#include <openssl/crypto.h>

json_t *json_load_secret(const char *bytes, size_t n)
{
	json_t *object = n ? json_loadb(bytes, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
	if (object && !json_is_object(object)) {
		json_free_secret(object);
		return NULL;
	}
	return object;
}

static void wipe(const json_t *value)
{
	const char *text = json_string_value(value);
	if (text)
		OPENSSL_cleanse((char *)(uintptr_t)text, json_string_length(value));
}

void json_free_secret(json_t *object)
{
	const char *name;
	json_t *value;
	json_object_foreach(object, name, value)
	{
		const char *inner_name;
		json_t *inner;
		wipe(value);
		json_object_foreach(value, inner_name, inner) wipe(inner);
	}
	json_decref(object);
}

const char *json_word(const json_t *object, const char *name)
{
	const char *word = json_text(object, name);
	return *word ? word : NULL;
}

int credentials_from_json(const json_t *object, const char *token_name, const char *where,
	struct credentials *ret, struct problem *ret_problem)
{
	const char *access_key = json_word(object, "AccessKeyId");
	const char *secret = json_word(object, "SecretAccessKey");
	const char *expiration = json_word(object, "Expiration");
	if (!access_key || !secret) {
		problem_set(ret_problem, "the reply of the %s has no %s", where,
			access_key ? "SecretAccessKey" : "AccessKeyId");
		return -EBADMSG;
	}
	int64_t expires_s = expiration ? clock_parse_iso(expiration) : 0;
	if (expires_s < 0) {
		problem_set(ret_problem,
			"the reply of the %s has an Expiration that is not a time: %s", where,
			quote(expiration).text);
		return -EBADMSG;
	}
	int error = credentials_set(
		ret, access_key, secret, json_word(object, token_name), where, ret_problem);
	if (error == 0)
		ret->expires_s = expires_s;
	return error;
}
