/* Sets up TLS: the certificates that a server's certificate is checked against, which are read once
 * for the process, and the order of the ciphers. */
#include "base/files.h"
#include "base/text.h"
#include "http/http_exchange.h"
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <unistd.h>

#define NAMES_BYTES_MAX (16U << 10)

void http_ciphers_order(SSL_CTX *context)
{
	/* The names of TLS 1.3, and those of TLS 1.2 and earlier. */
	struct text suites = TEXT(NAMES_BYTES_MAX), older = TEXT(NAMES_BYTES_MAX);
	const STACK_OF(SSL_CIPHER) *ciphers = SSL_CTX_get_ciphers(context);
	/* Round 0 adds the preferred ciphers, round 1 the rest. */
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < sk_SSL_CIPHER_num(ciphers); i++) {
			const SSL_CIPHER *cipher = sk_SSL_CIPHER_value(ciphers, i);
			/* NID_kx_any stands for TLS 1.3, whose suites do not name a key exchange.
			 */
			const int exchange = SSL_CIPHER_get_kx_nid(cipher);
			const bool goes_first =
				SSL_CIPHER_get_cipher_nid(cipher) == NID_aes_128_gcm &&
				(exchange == NID_kx_ecdhe || exchange == NID_kx_any);
			struct text *names = exchange == NID_kx_any ? &suites : &older;
			if (goes_first != (round == 0))
				continue;
			text_add(names, names->len ? ":" : "");
			text_add(names, SSL_CIPHER_get_name(cipher));
		}
	/* OpenSSL keeps the suites of TLS 1.3 in a list of their own. It refuses an empty list. */
	if (suites.len && !suites.error)
		SSL_CTX_set_ciphersuites(context, text_string(&suites));
	if (older.len && !older.error)
		SSL_CTX_set_cipher_list(context, text_string(&older));
	ERR_clear_error();
	text_clear(&suites);
	text_clear(&older);
}

/* Loads the certificates that the system trusts, from the first usual place that exists. A curl
 * that was built for no system in particular does not name that place. Returns whether they could
 * be loaded. */
static bool load_system_trust(X509_STORE *store)
{
	static const char *const bundles[] = {
		"/etc/ssl/certs/ca-certificates.crt",                /* Debian, distroless images */
		"/etc/pki/tls/certs/ca-bundle.crt",                  /* Fedora, Red Hat */
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* the path above links here */
		"/etc/ssl/ca-bundle.pem",                            /* openSUSE */
		"/etc/ssl/cert.pem",                                 /* Alpine */
	};
	for (size_t i = 0; i < sizeof bundles / sizeof *bundles; i++)
		if (access(bundles[i], R_OK) == 0)
			return X509_STORE_load_file(store, bundles[i]);
	return X509_STORE_set_default_paths(store);
}

/* Loads the certificates of a CA bundle. Returns whether they could be loaded. */
static bool load_bundle(X509_STORE *store, const char *path)
{
	struct stat st;
	/* Only a regular file is opened, since OpenSSL would wait for a FIFO. If stat() fails,
	 * OpenSSL fails likewise, and leaves the reason in its queue of errors. */
	const bool is_no_file = stat(path, &st) == 0 && named_file_kind(&st) != 0;
	return !is_no_file && X509_STORE_load_file(store, path);
}

/* Loads the CA bundle, or, if that is NULL, the certificates that curl was built to trust. Returns
 * NULL if they cannot be loaded. */
static X509_STORE *load_trust(const char *ca_bundle)
{
	const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
	bool is_loaded;
	ERR_clear_error();
	X509_STORE *store = X509_STORE_new();
	if (!store)
		return NULL;
	if (ca_bundle)
		is_loaded = load_bundle(store, ca_bundle);
	else if (!curl->cainfo && !curl->capath)
		is_loaded = load_system_trust(store);
	else
		is_loaded = (!curl->cainfo || X509_STORE_load_file(store, curl->cainfo)) &&
			    (!curl->capath || X509_STORE_load_path(store, curl->capath));
	if (is_loaded) { /* with the flags that curl sets */
		X509_STORE_set_flags(store, X509_V_FLAG_TRUSTED_FIRST | X509_V_FLAG_PARTIAL_CHAIN);
		return store;
	}
	X509_STORE_free(store);
	return NULL;
}

/* Returns curl's code for certificates that load_trust() could not load. If only a file descriptor
 * was missing, notes that as the socket_error, so that the request is retried. */
static CURLcode code_without_trust(struct http *http)
{
	const unsigned long first_error = ERR_peek_error();
	const int system_error = ERR_SYSTEM_ERROR(first_error) ? ERR_GET_REASON(first_error) : 0;
	ERR_clear_error();
	if (system_error != EMFILE && system_error != ENFILE)
		return CURLE_SSL_CACERT_BADFILE;
	http->socket_error = -EMFILE;
	return CURLE_COULDNT_CONNECT;
}

/* curl calls this before a TLS handshake, with the context of OpenSSL for the new connection. */
static CURLcode on_context(CURL *curl, void *context, void *arg)
{
	struct http *http = arg;
	struct http_shared *shared = http->shared;
	uv_mutex_lock(&shared->trust_mutex);
	if (!shared->trust)
		shared->trust = load_trust(shared->ca_bundle);
	X509_STORE *store = shared->trust;
	uv_mutex_unlock(&shared->trust_mutex);
	if (!store)
		return code_without_trust(http);
	SSL_CTX_set1_cert_store(context, store);
	/* Allows the tickets of TLS 1.2, which curl forbids because of old servers that failed on
	 * them. Without tickets most servers do not resume a session, and each connection costs a
	 * whole handshake. */
	SSL_CTX_clear_options(context, SSL_OP_NO_TICKET);
	http_ciphers_order(context);
	return CURLE_OK;
}

void http_trust_apply(struct http *http)
{
	CURL *curl = http->curl;
	if (curl_easy_setopt(curl, CURLOPT_SSL_CTX_FUNCTION, on_context) == CURLE_OK) {
		curl_easy_setopt(curl, CURLOPT_SSL_CTX_DATA, http);
		/* Without these paths curl reads no certificates of its own: on_context() sets
		 * those that all handles share. */
		curl_easy_setopt(curl, CURLOPT_CAINFO, NULL);
		curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
	} else if (http->shared->ca_bundle) { /* a curl on another TLS library */
		curl_easy_setopt(curl, CURLOPT_CAINFO, http->shared->ca_bundle);
	}
}
