/* Signature Version 4. Pure: the time is an argument, and the caller caches each day's signing
 * key. */
#include "aws/sigv4.h"
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#define ALGORITHM           "AWS4-HMAC-SHA256"
#define CANONICAL_MAX_BYTES (128U << 10)
#define HASH_BYTES          SHA256_DIGEST_LENGTH

void sigv4_cache_wipe(struct sigv4_cache *cache)
{
	EVP_MAC_CTX_free(cache->mac);
	digest_clear(&cache->sha256);
	text_wipe(&cache->canonical);
	OPENSSL_cleanse(cache, sizeof *cache);
}

int sigv4_sha256(struct sigv4_cache *cache, const void *bytes, size_t n, char ret_hex[static 65])
{
	struct sums sums;
	if (digest_restart(&cache->sha256, DIGEST_SHA256))
		return -ENOMEM;
	digest_update(&cache->sha256, bytes, n);
	digest_finish(&cache->sha256, &sums);
	hex_encode(sums.sha256, sizeof sums.sha256, ret_hex);
	return 0;
}

/* Sets cache->mac to the signing key for this day, region, service and secret, unless it has that
 * key already. Returns 0, -EINVAL for too long a scope, or -ENOMEM. */
static int set_signing_key(struct sigv4_cache *cache, const struct credentials *credentials,
	const struct sigv4_request *request)
{
	char scope[sizeof cache->scope], day[9];
	snprintf(day, sizeof day, "%.8s", request->date);
	int n = snprintf(scope, sizeof scope, "%s/%s/%s/aws4_request", day, request->region,
		request->service);
	if (n < 0 || (size_t)n >= sizeof scope)
		return -EINVAL;
	if (strcmp(scope, cache->scope) == 0 && strcmp(cache->secret_id, credentials->secret) == 0)
		return 0;
	/* The first key is "AWS4" and the secret. Each further key is the HMAC of the next word
	 * under the key before it. */
	const char *const words[] = {day, request->region, request->service, "aws4_request"};
	char key[sizeof credentials->secret + 4];
	int error = 0, key_bytes = snprintf(key, sizeof key, "AWS4%s", credentials->secret);
	for (size_t i = 0; i < 4 && !error; i++) {
		unsigned char next[HASH_BYTES];
		unsigned next_bytes;
		if (!HMAC(EVP_sha256(), key, key_bytes, (const unsigned char *)words[i],
			    strlen(words[i]), next, &next_bytes))
			error = -ENOMEM;
		else
			memcpy(key, next, sizeof next);
		key_bytes = sizeof next;
		OPENSSL_cleanse(next, sizeof next);
	}
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char[]){"SHA256"}, 0),
		OSSL_PARAM_construct_end()};
	if (!cache->mac) {
		EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
		cache->mac = EVP_MAC_CTX_new(mac);
		EVP_MAC_free(mac);
	}
	if (!error && (!cache->mac ||
			      !EVP_MAC_init(cache->mac, (unsigned char *)key, HASH_BYTES, params)))
		error = -ENOMEM;
	OPENSSL_cleanse(key, sizeof key);
	/* After an error the scope is "", which no request has, so the next one derives the key
	 * again. */
	snprintf(cache->scope, sizeof cache->scope, "%s", error ? "" : scope);
	memcpy(cache->secret_id, credentials->secret, sizeof cache->secret_id);
	return error;
}

/* Adds the value, without space around it, and with one space for each run of space inside. */
static void add_header_value(struct text *t, const char *value)
{
	static const char space[] = " \t\n\v\f\r";
	const char *word = value + strspn(value, space);
	while (*word) {
		const size_t n = strcspn(word, space);
		text_add_bytes(t, word, n);
		word += n + strspn(word + n, space);
		text_add(t, *word ? " " : "");
	}
}

/* Adds the names as "a;b;c", each of them once. */
static void add_names(struct text *t, const struct call_header *const *sorted, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i && strcmp(sorted[i]->name, sorted[i - 1]->name) == 0)
			continue;
		text_add(t, i ? ";" : "");
		text_add(t, sorted[i]->name);
	}
}

/* Adds a line "name:value" for each name, as the canonical request has them. */
static void add_headers(struct text *t, const struct call_header *const *sorted, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i && strcmp(sorted[i]->name, sorted[i - 1]->name) == 0) {
			t->len--; /* drops the newline: a comma joins values of one name */
			text_add_char(t, ',');
		} else {
			text_add(t, sorted[i]->name);
			text_add_char(t, ':');
		}
		add_header_value(t, sorted[i]->value);
		text_add_char(t, '\n');
	}
}

/* Sorts the headers by name. Those of one name keep their order. */
static void sort_headers(
	const struct call_header *headers, size_t n, const struct call_header **ret_sorted)
{
	for (size_t i = 0; i < n; i++) {
		size_t place = i;
		while (place && strcmp(ret_sorted[place - 1]->name, headers[i].name) > 0) {
			ret_sorted[place] = ret_sorted[place - 1];
			place--;
		}
		ret_sorted[place] = &headers[i];
	}
}

int sigv4_sign(struct sigv4_cache *cache, const struct credentials *credentials,
	const struct sigv4_request *request, struct text *ret_authorization)
{
	const size_t n = request->n_headers;
	const struct call_header *sorted[SIGV4_HEADERS_MAX];
	struct text *t = &cache->canonical;
	unsigned char signature[HASH_BYTES];
	size_t signature_bytes;
	char hex[2 * HASH_BYTES + 1];
	if (n > SIGV4_HEADERS_MAX)
		return -E2BIG;
	int error = set_signing_key(cache, credentials, request);
	if (error)
		return error;
	sort_headers(request->headers, n, sorted);
	/* Writes the canonical request, and then replaces it by the string to sign, which contains
	 * its hash. */
	text_reset(t);
	t->max = CANONICAL_MAX_BYTES;
	text_addf(t, "%s\n%s\n%s\n", request->method, request->path, request->query);
	add_headers(t, sorted, n);
	text_add_char(t, '\n');
	add_names(t, sorted, n);
	text_addf(t, "\n%s", request->payload_hash);
	error = t->error ? t->error : sigv4_sha256(cache, t->data, t->len, hex);
	if (error)
		return error;
	text_reset(t);
	text_addf(t, ALGORITHM "\n%.16s\n%s\n%s", request->date, cache->scope, hex);
	if (t->error ||
		!EVP_MAC_init(cache->mac, NULL, 0, NULL) || /* starts again with the same key */
		!EVP_MAC_update(cache->mac, (const unsigned char *)t->data, t->len) ||
		!EVP_MAC_final(cache->mac, signature, &signature_bytes, sizeof signature))
		return -ENOMEM;
	hex_encode(signature, sizeof signature, hex);
	text_addf(ret_authorization,
		ALGORITHM " Credential=%s/%s, SignedHeaders=", credentials->access_key,
		cache->scope);
	add_names(ret_authorization, sorted, n);
	text_addf(ret_authorization, ", Signature=%s", hex);
	return ret_authorization->error;
}
