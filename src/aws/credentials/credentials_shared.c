/* Functions that the providers of credentials share: copies of credentials, a file with a secret,
 * JSON with credentials, and a small request with retries. The providers are the other files of
 * this folder. */
#include "aws/credentials/credentials_providers.h"
#include "aws/endpoint.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/random.h"
#include "base/wait_until.h"
#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

void credentials_wipe(struct credentials *c)
{
	if (c->session_token)
		OPENSSL_cleanse(c->session_token, strlen(c->session_token));
	free(c->session_token);
	OPENSSL_cleanse(c, sizeof *c);
}

int credentials_copy(const struct credentials *c, struct credentials *ret)
{
	char *token = c->session_token ? strdup(c->session_token) : NULL;
	if (c->session_token && !token)
		return -ENOMEM;
	*ret = *c;
	ret->session_token = token;
	return 0;
}

/* Returns the fault of a part of the credentials, or NULL. The access key and the token become
 * parts of headers, and so have no blanks. The secret is never sent, and its server may allow
 * blanks within; blanks at its ends, and quotes around it, come from copying. */
static const char *flaw_of(const char *value, bool is_sent, size_t bytes_max)
{
	const size_t n = strlen(value);
	const char first = *value, last = n ? value[n - 1] : '\0';
	if (!n)
		return "it is empty";
	if (n > bytes_max)
		return "it is too long";
	if (strchr(value, '\r'))
		return "it contains a carriage return, with which lines end on Windows";
	if (strchr(value, '\n'))
		return "it contains a line break";
	if (n > 1 && first == last && (first == '"' || first == '\''))
		return "it is in quotes, which do not belong to it";
	if (first == ' ' || last == ' ' || first == '\t' || last == '\t')
		return "it begins or ends with a blank";
	return is_sent && !is_graphic(value)
		       ? "it contains a blank or another character that no header may have"
		       : NULL;
}

int credentials_set(struct credentials *ret, const char *access_key, const char *secret,
	const char *session_token, const char *where, struct problem *ret_problem)
{
	struct credentials set = {0};
	const bool is_variable = strcmp(where, "environment") == 0;
	const struct {
		const char *variable, *name, *value;
		bool is_sent, may_be_empty;
		size_t bytes_max;
	} parts[] = {
		{"AWS_ACCESS_KEY_ID", "access key id", access_key, true, false,
			sizeof set.access_key - 1},
		{"AWS_SECRET_ACCESS_KEY", "secret access key", secret, false,
			true, /* the callers have refused an empty one */
			sizeof set.secret - 1},
		{"AWS_SESSION_TOKEN", "session token", session_token, true, true, SIZE_MAX},
	};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		const char *value = parts[i].value;
		const bool is_empty = !value || !*value;
		if (is_empty && parts[i].may_be_empty)
			continue;
		const char *flaw = flaw_of(value, parts[i].is_sent, parts[i].bytes_max);
		if (flaw)
			return problem_error(ret_problem, -EINVAL,
				"%s of the %s is malformed: %s: correct it",
				is_variable ? parts[i].variable : parts[i].name, where, flaw);
	}
	strcpy(set.access_key, access_key);
	strcpy(set.secret, secret);
	set.session_token = (char *)(uintptr_t)session_token; /* only until it is copied */
	const int error = credentials_copy(&set, ret);
	OPENSSL_cleanse(&set, sizeof set);
	return error;
}

int secret_file_read(const char *path, struct text *ret, struct problem *ret_problem)
{
	const size_t before = ret->len; /* the caller's text before it stays */
	int error = named_file_read(path, ret, NULL);
	while (ret->len > before && strchr("\r\n\t ", ret->data[ret->len - 1]))
		ret->data[--ret->len] = 0;
	if (!error && ret->len == before)
		error = -EIO;
	if (error)
		problem_set(ret_problem, "cannot read a token from %s: %s", quote(path).text,
			named_file_error(error));
	/* -ENODATA would make the next provider be tried, and hide this error. */
	return error == -ENODATA ? -EIO : error;
}

json_t *json_load_secret(const struct text *text)
{
	json_t *object = json_loadb(text_string(text), text->len, JSON_REJECT_DUPLICATES, NULL);
	if (object && !json_is_object(object)) {
		json_free_secret(object);
		return NULL;
	}
	return object;
}

/* Overwrites the value if it is a string, and all strings in it if it is an object. */
static void wipe(json_t *value)
{
	const char *name, *text = json_string_value(value);
	json_t *inner;
	if (text)
		OPENSSL_cleanse((char *)(uintptr_t)text, json_string_length(value));
	json_object_foreach(value, name, inner) wipe(inner);
}

void json_free_secret(json_t *object)
{
	wipe(object);
	json_decref(object);
}

const char *json_word(const json_t *object, const char *name)
{
	const char *word = json_text(object, name);
	return *word ? word : NULL;
}

/* The names of the members in each form of JSON. */
static const struct {
	const char *access_key, *secret, *token, *expiration;
} names[] = {
	[FORM_PROGRAM] = {"AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"},
	[FORM_AGENT] = {"AccessKeyId", "SecretAccessKey", "Token", "Expiration"},
	[FORM_SSO] = {"accessKeyId", "secretAccessKey", "sessionToken", "expiration"},
};

int credentials_from_json(const json_t *object, enum credentials_form form, struct credentials *ret,
	struct problem *ret_problem)
{
	const char *access_key = json_word(object, names[form].access_key);
	const char *secret = json_word(object, names[form].secret);
	const char *until = json_word(object, names[form].expiration);
	if (!access_key || !secret)
		return problem_error(ret_problem, -EBADMSG, "it gives no %s",
			access_key ? names[form].secret : names[form].access_key);
	int64_t expires_s = 0; /* never */
	if (form == FORM_SSO)  /* a number, in milliseconds */
		expires_s = json_integer_value(json_object_get(object, "expiration")) / 1000;
	else if (until)
		expires_s = clock_parse_iso(until);
	if (form != FORM_SSO && expires_s < 0)
		return problem_error(ret_problem, -EBADMSG,
			"it gives an Expiration that is not a time: %s", quote(until).text);
	int error = credentials_set(ret, access_key, secret, json_word(object, names[form].token),
		"reply", ret_problem);
	if (error == 0)
		ret->expires_s = expires_s;
	return error;
}

int credentials_from_reply(const struct http_reply *reply, enum credentials_form form,
	struct credentials *ret, struct problem *ret_problem)
{
	json_t *whole = json_load_secret(&reply->body);
	const json_t *object = form == FORM_SSO ? json_object_get(whole, "roleCredentials") : whole;
	/* An instance's metadata service says by a code whether it has credentials. */
	const char *code = json_word(whole, "Code"), *message = json_word(whole, "message");
	int error = -EBADMSG;
	if (reply->status != 200)
		problem_set(ret_problem, "it answers with status %d%s%s", reply->status,
			message ? ": " : "", message ? quote(message).text : "");
	else if (!whole)
		problem_set(ret_problem, "its reply is not a JSON object");
	else if (code && strcmp(code, "Success") != 0)
		problem_set(ret_problem, "it answers %s", quote(code).text);
	else
		error = credentials_from_json(object, form, ret, ret_problem);
	if (error == 0 && ret->expires_s)
		ret->expires_s -= credentials_clock_offset_s(reply);
	json_free_secret(whole);
	return error;
}

#define REPLY_MAX_BYTES (256U << 10)
/* If the service answers with errors, it gets at least this many attempts. */
#define ANSWERED_ATTEMPTS 3
#define PAUSE_MS          200U /* the longest first pause; each further one is twice as long */

static bool is_stopped(void *arg)
{
	return atomic_load((atomic_bool *)arg);
}

/* Whether the reply is throttling: status 429, or, from STS, status 400 with one of these codes.
 * The first of them also fits ThrottlingException. */
static bool is_throttled(const struct http_reply *reply)
{
	static const char *const codes[] = {
		"<Code>Throttling", "<Code>RequestLimitExceeded<", "<Code>IDPCommunicationError<"};
	if (reply->status == 429)
		return true;
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (reply->status == 400 && strstr(text_string(&reply->body), codes[i]))
			return true;
	return false;
}

/* Whether the same request may have another result if it is sent again. Of all replies, only
 * throttling and 5xx may. `reply` counts if error is 0. */
static bool may_end_otherwise(int error, const struct http_reply *reply)
{
	if (error)
		return error != -ECANCELED && error != -ENOMEM && error != -EINVAL &&
		       error != -EPROTO;
	return is_throttled(reply) || reply->status >= 500;
}

/* Makes the loader's connection, if it has none. Returns 0, or -ENOMEM with a sentence. */
static int make_http(struct credentials_providers *loader, struct problem *ret_problem)
{
	const struct http_options options = {.ca_bundle = loader->options.ca_bundle};
	int error = loader->shared ? 0 : http_shared_new(&options, &loader->shared);
	if (error == 0 && !loader->http)
		error = http_new(loader->shared, &loader->http);
	return error ? problem_error(ret_problem, -ENOMEM, "out of memory") : 0;
}

/* Waits before another attempt; `failed` attempts have failed, at least one. A stop ends the wait,
 * and then the attempt with -ECANCELED. */
static void pause_before_retry(struct credentials_providers *loader, unsigned failed)
{
	const unsigned max_ms = PAUSE_MS << (failed - 1);
	const uint64_t pause_ms = max_ms / 2 + random_below(max_ms / 2);
	wait_until(atomic_load(&loader->stopped),
		.deadline_ns = clock_boot_ns() + pause_ms * NS_PER_MS);
}

int credentials_http(struct credentials_providers *loader, struct http_request request,
	uint64_t timeout_ms, unsigned attempts, struct http_reply *ret, struct problem *ret_problem)
{
	int error = make_http(loader, ret_problem);
	if (error)
		return error;
	request.abandon = is_stopped;
	request.abandon_arg = &loader->stopped;
	request.reply_max_bytes = REPLY_MAX_BYTES;
	for (unsigned attempt = 1;; attempt++) {
		request.deadline_ns = clock_boot_ns() + timeout_ms * NS_PER_MS;
		request.new_connection = attempt > 1;
		error = http_perform(loader->http, &request, ret, ret_problem);
		/* -ECANCELED without a stop means that the deadline of this attempt has passed. */
		if (error == -ECANCELED && !is_stopped(&loader->stopped))
			error = -ETIMEDOUT;
		/* A service that is silent may not exist, as the metadata service outside EC2, so
		 * the caller may want only one attempt. A service that answers with an error does
		 * exist, and gets at least ANSWERED_ATTEMPTS. */
		const bool has_answered = error == 0;
		const unsigned max_attempts =
			has_answered && attempts < ANSWERED_ATTEMPTS ? ANSWERED_ATTEMPTS : attempts;
		if (attempt >= max_attempts || !may_end_otherwise(error, ret))
			return error;
		pause_before_retry(loader, attempt);
	}
}

int64_t credentials_clock_offset_s(const struct http_reply *reply)
{
	const int64_t date_s = clock_parse_http_date(http_reply_header(reply, "date"));
	const int64_t offset_s = date_s - clock_wall_s();
	return (date_s >= 0 && llabs(offset_s) >= CLOCK_IS_OFF_S) ? offset_s : 0;
}
