/* Signs each line of standard input, a JSON object, for test_sigv4.py: method, key (raw), query,
 * headers [[name, value], …], payload_hash, region, service, time, access_key, secret, token or
 * null. Prints the path that the key becomes, and the Authorization header. */
#include "aws/sigv4.h"
#include "base/clock.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *string(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static int sign(const json_t *line, struct sigv4_cache *cache)
{
	struct call_header headers[SIGV4_HEADERS_MAX];
	struct credentials credentials = {0};
	struct text path = TEXT(1 << 16), authorization = TEXT(1 << 16);
	const json_t *given = json_object_get(line, "headers");
	size_t n = json_array_size(given);
	for (size_t i = 0; i < n && i < SIGV4_HEADERS_MAX; i++)
		headers[i] = (struct call_header){
			json_string_value(json_array_get(json_array_get(given, i), 0)),
			json_string_value(json_array_get(json_array_get(given, i), 1))};
	snprintf(credentials.access_key, sizeof credentials.access_key, "%s",
		string(line, "access_key"));
	snprintf(credentials.secret, sizeof credentials.secret, "%s", string(line, "secret"));
	text_add_char(&path, '/');
	char date[17];
	clock_format_amz(json_integer_value(json_object_get(line, "time")), date);
	const json_t *key = json_object_get(line, "key");
	uri_encode_path(&path, json_string_value(key), json_string_length(key));
	const struct sigv4_request request = {.method = string(line, "method"),
		.path = text_string(&path),
		.query = string(line, "query"),
		.headers = headers,
		.n_headers = n,
		.payload_hash = string(line, "payload_hash"),
		.region = string(line, "region"),
		.service = string(line, "service"),
		.date = date};
	int error = sigv4_sign(cache, &credentials, &request, &authorization);
	printf("%s\t%s\n", text_string(&path), text_string(&authorization));
	text_clear(&path);
	text_clear(&authorization);
	return error;
}

int main(void)
{
	struct sigv4_cache cache = {0};
	char *line = NULL;
	size_t size = 0;
	int error = 0;
	while (!error && getline(&line, &size, stdin) > 0) {
		json_t *object = json_loads(line, 0, NULL);
		error = object ? sign(object, &cache) : -1;
		json_decref(object);
	}
	free(line);
	sigv4_cache_wipe(&cache);
	return error ? 2 : 0;
}
