#include "http/http_ciphers.h"
#include "base/text.h"
#include <openssl/err.h>
#include <stdbool.h>

#define NAMES_BYTES_MAX (16U << 10)

/* NID_kx_any is that of TLS 1.3, whose suites do not name the exchange of keys. */
static bool goes_first(const SSL_CIPHER *cipher)
{
	const int exchange = SSL_CIPHER_get_kx_nid(cipher);
	return SSL_CIPHER_get_cipher_nid(cipher) == NID_aes_128_gcm &&
	       (exchange == NID_kx_ecdhe || exchange == NID_kx_any);
}

static void add_names(const STACK_OF(SSL_CIPHER) * ciphers, bool first, struct text *ret_suites,
	struct text *ret_older)
{
	for (int i = 0; i < sk_SSL_CIPHER_num(ciphers); i++) {
		const SSL_CIPHER *cipher = sk_SSL_CIPHER_value(ciphers, i);
		if (goes_first(cipher) != first)
			continue;
		struct text *names =
			SSL_CIPHER_get_kx_nid(cipher) == NID_kx_any ? ret_suites : ret_older;
		text_add(names, names->len ? ":" : "");
		text_add(names, SSL_CIPHER_get_name(cipher));
	}
}

void http_ciphers_order(SSL_CTX *context)
{
	struct text suites = TEXT(NAMES_BYTES_MAX), older = TEXT(NAMES_BYTES_MAX);
	const STACK_OF(SSL_CIPHER) *ciphers = SSL_CTX_get_ciphers(context);
	add_names(ciphers, true, &suites, &older);
	add_names(ciphers, false, &suites, &older);
	/* OpenSSL keeps these in two lists. It refuses an empty one. */
	if (suites.len && !suites.error)
		SSL_CTX_set_ciphersuites(context, text_string(&suites));
	if (older.len && !older.error)
		SSL_CTX_set_cipher_list(context, text_string(&older));
	ERR_clear_error();
	text_clear(&suites);
	text_clear(&older);
}
