#include "aws/endpoint.h"
#include "base/text.h"
#include <curl/curl.h>
#include <errno.h>
#include <string.h>

static bool is_graphic(const char *s)
{
	while ((unsigned char)*s > ' ' && (unsigned char)*s < 0x7f)
		s++;
	return !*s;
}

static const char *why_not(CURLU *url, CURLUcode code)
{
	char *part = NULL;
	if (code == CURLUE_UNSUPPORTED_SCHEME || code == CURLUE_BAD_SCHEME)
		return "it must begin with http:// or https://";
	if (code)
		return "it is not a URL like https://HOST:PORT";
	const char *why = NULL;
	if (curl_url_get(url, CURLUPART_SCHEME, &part, 0) == CURLUE_OK &&
		strcmp(part, "http") != 0 && strcmp(part, "https") != 0)
		why = "it must begin with http:// or https://";
	curl_free(part);
	part = NULL;
	if (!why && curl_url_get(url, CURLUPART_HOST, &part, 0) == CURLUE_OK && !is_graphic(part))
		why = "its host has a character that is not allowed there"; /* %XX, which curl
									       decodes */
	curl_free(part);
	static const struct {
		CURLUPart part;
		const char *why;
	} unwanted[] = {
		{CURLUPART_USER, "it must not carry a user name"},
		{CURLUPART_PASSWORD, "it must not carry a password"},
		{CURLUPART_QUERY, "it must not carry a query"},
		{CURLUPART_FRAGMENT, "it must not carry a fragment"},
	};
	for (size_t i = 0; !why && i < sizeof unwanted / sizeof *unwanted; i++) {
		part = NULL;
		if (curl_url_get(url, unwanted[i].part, &part, 0) == CURLUE_OK)
			why = unwanted[i].why;
		curl_free(part);
	}
	return why;
}

/* A default port is left out, as it is in the Host header that is signed. 0, -ENOMEM, -EINVAL
 * without a host, or -EMSGSIZE. */
static int rebuild(CURLU *url, char **ret)
{
	char *scheme = NULL, *host = NULL, *port = NULL, *path = NULL;
	struct text text = TEXT(4096);
	int error = -EINVAL;
	if (curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
		curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK && host[0] &&
		curl_url_get(url, CURLUPART_PATH, &path, 0) == CURLUE_OK) {
		for (char *c = host; *c; c++)
			*c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
		text_addf(&text, "%s://%s", scheme, host);
		if (curl_url_get(url, CURLUPART_PORT, &port, CURLU_NO_DEFAULT_PORT) == CURLUE_OK)
			text_addf(&text, ":%s", port);
		text_add(&text, path);
		while (text.len && text.data[text.len - 1] == '/')
			text.data[--text.len] = '\0';
		error = text.error;
		if (!error && !(*ret = strdup(text_string(&text))))
			error = -ENOMEM;
	}
	text_clear(&text);
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_free(path);
	return error;
}

int endpoint_parse_url(const char *url, char **ret, const char **ret_why)
{
	if (!is_graphic(url)) {
		*ret_why = "it has a character that is not allowed in a URL";
		return -EINVAL;
	}
	if (strstr(url, ":///")) { /* curl would take the path for the host */
		*ret_why = "it has no host";
		return -EINVAL;
	}
	CURLU *parsed = curl_url();
	if (!parsed)
		return -ENOMEM;
	CURLUcode code = curl_url_set(parsed, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME);
	const char *why = why_not(parsed, code);
	int error = why ? -EINVAL : rebuild(parsed, ret);
	curl_url_cleanup(parsed);
	if (error == -EINVAL)
		*ret_why = why ? why : "it has no host";
	if (error == -EMSGSIZE)
		*ret_why = "it is too long";
	return error == -EMSGSIZE ? -EINVAL : error;
}
