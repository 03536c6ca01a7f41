/* Explains a missing reply: turns curl's error into a sentence with a remedy, and into the error
 * number by which retry.c decides. */
#include "base/clock.h"
#include "http/http_exchange.h"
#include <errno.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROXY_WANTS_CREDENTIALS 407
#define TOO_LARGE               100 /* CURLE_TOO_LARGE, which libcurl 7 lacks */

/* A request without a reply. */
struct failure {
	const struct http *http;
	CURLcode code;           /* curl's result code */
	long proxy_status;       /* the answer of a proxy to CONNECT, or 0 */
	bool was_sent;           /* set if some bytes left, perhaps on an earlier connection */
	bool is_late;            /* the deadline has passed */
	const char *host;        /* "host:port" */
	const char *in_brackets; /* curl's message, as " (message)", or "" */
};

/* Whether the handshake failed for a lasting reason: the peer speaks no TLS, or the two sides agree
 * on no version, cipher or certificate. Any other handshake that fails is taken for one with a
 * server that is about to stop or to start, so that the request is tried again. */
static bool is_wrong_tls(const struct failure *failure)
{
	static const char *const details[] = {"wrong version number", "unsupported protocol",
		"alert protocol version", "handshake failure", "unknown ca"};
	if (failure->code != CURLE_SSL_CONNECT_ERROR)
		return false;
	for (size_t i = 0; i < sizeof details / sizeof *details; i++)
		if (strstr(failure->http->error_text, details[i]))
			return true;
	return false;
}

/* Whether the proxy has refused to connect, for a reason that lasts. A timeout (408) and too many
 * requests (429) pass. */
static bool is_refused_by_proxy(const struct failure *failure)
{
	const long status = failure->proxy_status;
	return status >= 400 && status < 500 && status != 408 && status != 429;
}

/* Whether the failed connection was one to a proxy. curl names the address that it has tried. So
 * for S3 behind a proxy it says "Failed to connect to 127.0.0.1 port 3128", or in later versions
 * "Failed to connect to s3.amazonaws.com port 443 via 127.0.0.1". A server that is tested may have
 * the address of its proxy, but another port. */
static bool is_proxy_unreachable(const struct failure *failure)
{
	static const char begin[] = "Failed to connect to ";
	const char *message = strstr(failure->http->error_text, begin);
	if (!message)
		return false;
	const char *tried = message + strlen(begin);
	const char *host = *failure->host == '[' ? failure->host + 1 : failure->host;
	const size_t n = strcspn(tried, " ");
	if (strstr(tried, " via ") || strncmp(tried, host, n) != 0)
		return true;
	const char *behind = host + n + (host[n] == ']'); /* ":9", or "" for the default */
	unsigned long port;
	return *behind == ':' && sscanf(tried + n, " port %lu", &port) == 1 &&
	       port != strtoul(behind + 1, NULL, 10);
}

/* Returns the -errno that http_perform() documents. An error of a callback comes first. Otherwise,
 * if something was sent, the error is one after which the request may have been applied. */
static int error_of(const struct failure *failure)
{
	if (failure->http->exchange.error)
		return failure->http->exchange.error;
	/* With one of these, the reply's headers are too long. For a line of 100 KB curl reports
	 * that it is out of memory, or CURLE_TOO_LARGE from 8.6 on; for very many lines, that
	 * receiving failed. */
	const bool may_be_too_long =
		failure->code == CURLE_OUT_OF_MEMORY || (int)failure->code == TOO_LARGE ||
		strstr(failure->http->error_text, "Too large response headers");
	if (failure->was_sent && may_be_too_long)
		return -EMSGSIZE;
	if (failure->code == CURLE_OUT_OF_MEMORY)
		return -ENOMEM;
	if (failure->code == CURLE_OPERATION_TIMEDOUT && failure->is_late)
		return -ECANCELED;
	/* curl may have sent the request on an old connection, lost that, and failed to open
	 * another one. Then the request was sent, whatever the last error says. */
	if (failure->was_sent)
		return failure->code == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -ECONNRESET;
	if (is_refused_by_proxy(failure))
		return -EPROTO;
	if (failure->http->socket_error == -EMFILE || failure->http->socket_error == -ENFILE)
		return -EMFILE;
	switch (failure->code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		return -ENOENT;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CIPHER:
	case CURLE_SSL_ENGINE_NOTFOUND:
	case CURLE_SSL_ISSUER_ERROR:
		return -EPROTO;
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_BAD_FUNCTION_ARGUMENT:
		return -EINVAL;
	default:
		return is_wrong_tls(failure) ? -EPROTO : -ECONNREFUSED;
	}
}

/* Explains a certificate that was not accepted. A CA bundle is a remedy only for an unknown
 * issuer. */
static void explain_certificate(const struct failure *failure, struct problem *ret_problem)
{
	long result = X509_V_OK;
	char now[21];
	clock_format_iso(clock_wall_s(), now);
	curl_easy_getinfo(failure->http->curl, CURLINFO_SSL_VERIFYRESULT, &result);
	if (result == X509_V_ERR_CERT_HAS_EXPIRED)
		problem_set(ret_problem,
			"the certificate of %s, or of its CA, has expired by this host's clock (%s): "
			"renew it, or set the clock",
			failure->host, now);
	else if (result == X509_V_ERR_CERT_NOT_YET_VALID)
		problem_set(ret_problem,
			"the certificate of %s, or of its CA, is not valid yet by this host's clock "
			"(%s): set the clock, or wait for the certificate's time",
			failure->host, now);
	else if (strstr(failure->http->error_text, "target host name"))
		problem_set(ret_problem,
			"the certificate of %s is for another name%s: check the endpoint, or give the "
			"server a certificate for this name",
			failure->host, failure->in_brackets);
	else
		problem_set(ret_problem,
			"the certificate of %s is not trusted%s: if the server is yours, give "
			"the file of its CA with --ca-bundle or AWS_CA_BUNDLE",
			failure->host, failure->in_brackets);
}

/* Explains -EPROTO, and any other TLS handshake that has failed. */
static void explain_tls(const struct failure *failure, struct problem *ret_problem)
{
	const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
	const char *bundle = failure->http->shared->ca_bundle;
	const char *path = bundle ? bundle : curl->cainfo;
	const struct quoted ca = quote(path ? path : "");
	if (failure->code == CURLE_SSL_CACERT_BADFILE && !bundle)
		problem_set(ret_problem,
			"this host's list of CA certificates %s cannot be used: install "
			"ca-certificates, or give a file with --ca-bundle or AWS_CA_BUNDLE",
			ca.text);
	else if (failure->code == CURLE_SSL_CACERT_BADFILE)
		problem_set(ret_problem,
			"the CA bundle %s cannot be used: it must be a readable "
			"file of certificates in PEM form",
			ca.text);
	else if (failure->proxy_status == PROXY_WANTS_CREDENTIALS)
		problem_set(ret_problem,
			"the proxy for %s requires a user and a password: give them in its "
			"address, http://USER:PASSWORD@HOST:PORT, in HTTPS_PROXY",
			failure->host);
	else if (failure->proxy_status >= 400)
		problem_set(ret_problem,
			"the proxy refuses to connect to %s (status %ld): allow the host there, or "
			"go around the proxy (NO_PROXY)",
			failure->host, failure->proxy_status);
	else if (failure->code == CURLE_PEER_FAILED_VERIFICATION)
		explain_certificate(failure, ret_problem);
	else
		problem_set(ret_problem,
			"cannot establish a TLS connection to %s%s: check that it speaks https",
			failure->host, failure->in_brackets);
}

/* The sentence for each error: the words before and after the host. */
static const struct {
	int error;
	const char *before, *behind;
	/* After `behind` come curl's message, and then this. NULL: the sentence has neither. */
	const char *last;
} sentences[] = {
	{-ENOENT, "cannot resolve the name of ", ": check the endpoint, the region and the network",
		NULL},
	{-ECONNREFUSED, "cannot connect to ", "",
		": check the endpoint, and that the server runs and can be reached"},
	{-EMFILE, "no file descriptor is left for a connection to ",
		": raise the limit (ulimit -n) or lower --concurrency", NULL},
	{-EINVAL, "cannot send a request to ", "", ": check the endpoint"},
	{-ETIMEDOUT, "the transfer with ", " stalled", NULL},
	{-EMSGSIZE, "the reply of ",
		" is too long, or there is no memory for it: check the endpoint", NULL},
	{-EIO, "the data for ", " could not be read", NULL},
	{-ENOMEM, "out of memory during a request to ", "", NULL},
	{0, "the connection to ", " was lost", ""}, /* any other */
};

#define NOT_RESOLVED ": its name was not resolved, check the network and the name server"

/* Sets the sentence with the failure and its remedy. */
static void explain_failure(const struct failure *failure, int error, struct problem *p)
{
	curl_off_t lookup_us = 0; /* it stays 0 while the name is being resolved */
	size_t i = 0;             /* the index of the sentence; that of error 0 is the last one */
	while (sentences[i].error && sentences[i].error != error)
		i++;
	const char *last = sentences[i].last;
	curl_easy_getinfo(failure->http->curl, CURLINFO_NAMELOOKUP_TIME_T, &lookup_us);
	/* http_perform() uses this code if it has not called curl at all, as after the deadline. */
	const bool was_begun = failure->code != CURLE_BAD_FUNCTION_ARGUMENT;
	const bool lacks_name = was_begun && lookup_us == 0;
	if (error == -EPROTO ||
		(error == -ECONNREFUSED && failure->code == CURLE_SSL_CONNECT_ERROR))
		explain_tls(failure, p);
	else if (error == -ECONNREFUSED && failure->proxy_status >= 400)
		problem_set(p,
			"the proxy has no connection to %s (status %ld): check the endpoint and the "
			"proxy, or go around it (NO_PROXY)",
			failure->host, failure->proxy_status);
	else if (error == -ECONNREFUSED && is_proxy_unreachable(failure))
		problem_set(p,
			"cannot connect to the proxy for %s%s: check http_proxy, HTTPS_PROXY and "
			"ALL_PROXY, and that the proxy runs, or add the host to NO_PROXY",
			failure->host, failure->in_brackets);
	else if (error == -ENOENT && failure->code == CURLE_COULDNT_RESOLVE_PROXY)
		problem_set(p,
			"cannot resolve the name of the proxy to %s: check http_proxy, "
			"HTTPS_PROXY and ALL_PROXY, or add the host to NO_PROXY",
			failure->host);
	else if (error == -ECANCELED)
		problem_set(p,
			failure->is_late ? "%s did not answer in time%s"
					 : "the request to %s was given up%s",
			failure->host, lacks_name ? NOT_RESOLVED : "");
	else
		problem_set(p, "%s%s%s%s%s", sentences[i].before, failure->host,
			sentences[i].behind, last ? failure->in_brackets : "", last ? last : "");
}

/* Returns the host of a URL, with its port, but without user and password. */
static struct quoted host_of(const char *url)
{
	const char *scheme_end = strstr(url, "://");
	const char *authority = scheme_end ? scheme_end + 3 : url; /* USER:PASSWORD@HOST:PORT */
	const char *end = authority + strcspn(authority, "/?#");
	const char *user_end = memrchr(authority, '@', (size_t)(end - authority));
	const char *host = user_end ? user_end + 1 : authority;
	return quote_bytes(host, (size_t)(end - host));
}

#define MESSAGE_MAX_BYTES 120
#define IN_BRACKETS_BYTES (sizeof(struct quoted) + 8)

/* Writes curl's message as " (message)", or "" if there is none. If the message has an address with
 * a password, such as a proxy's, it is cut there: " (Unsupported proxy syntax in ***)". */
static void put_in_brackets(const char *message, char ret[static IN_BRACKETS_BYTES])
{
	const char *scheme_end = strstr(message, "://");
	const bool has_password = scheme_end && strchr(scheme_end, '@');
	size_t n = strlen(message);
	*ret = '\0';
	if (!*message)
		return;
	if (has_password) {
		n = (size_t)(scheme_end - message);
		while (n && message[n - 1] != ' ')
			n--;
	}
	snprintf(ret, IN_BRACKETS_BYTES, " (%s%s",
		quote_bytes(message, n < MESSAGE_MAX_BYTES ? n : MESSAGE_MAX_BYTES).text,
		has_password ? "***)" : ")");
}

int http_explain(const struct http *http, CURLcode code, struct problem *ret_problem)
{
	const uint64_t end_ns = http->exchange.request->deadline_ns;
	char in_brackets[IN_BRACKETS_BYTES];
	long request_bytes = 0, proxy_status = 0;
	curl_easy_getinfo(http->curl, CURLINFO_REQUEST_SIZE, &request_bytes);
	curl_easy_getinfo(http->curl, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
	const struct quoted host = host_of(http->exchange.request->url);
	put_in_brackets(http->error_text, in_brackets);
	const struct failure failure = {.http = http,
		.code = code,
		.proxy_status = proxy_status,
		/* request_bytes alone would also count the CONNECT to a proxy. */
		.was_sent = http->exchange.is_sent && request_bytes > 0,
		.is_late = end_ns && clock_boot_ns() >= end_ns,
		.host = host.text,
		.in_brackets = in_brackets};
	const int error = error_of(&failure);
	explain_failure(&failure, error, ret_problem);
	return error;
}
