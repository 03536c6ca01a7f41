/* The light ciphers are offered first, and no other ones than before. */
#include "../check.h"
#include "http/http_exchange.h"
#include <string.h>

static int place_of(SSL_CTX *context, const char *name)
{
	const STACK_OF(SSL_CIPHER) *ciphers = SSL_CTX_get_ciphers(context);
	for (int i = 0; i < sk_SSL_CIPHER_num(ciphers); i++)
		if (strcmp(SSL_CIPHER_get_name(sk_SSL_CIPHER_value(ciphers, i)), name) == 0)
			return i;
	return -1;
}

static bool is_before(SSL_CTX *context, const char *a, const char *b)
{
	const int at_a = place_of(context, a), at_b = place_of(context, b);
	return at_a >= 0 && at_b >= 0 && at_a < at_b;
}

static SSL_CTX *context_of(const char *suites, const char *older)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	CHECK(context && (!suites || SSL_CTX_set_ciphersuites(context, suites)) &&
		(!older || SSL_CTX_set_cipher_list(context, older)));
	return context;
}

static void test_light_ciphers_go_first(void)
{
	SSL_CTX *context = context_of(NULL, NULL);
	CHECK(is_before(context, "TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"));
	http_ciphers_order(context);
	CHECK(is_before(context, "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"));
	CHECK(is_before(context, "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384"));
	CHECK(is_before(context, "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"));
	SSL_CTX_free(context);
}

/* A later theft of the server's key does not reveal earlier traffic. */
static void test_a_key_for_each_session_goes_before_a_light_cipher(void)
{
	SSL_CTX *context = context_of(NULL, "ECDHE-RSA-AES256-GCM-SHA384:AES128-GCM-SHA256");
	http_ciphers_order(context);
	CHECK(is_before(context, "ECDHE-RSA-AES256-GCM-SHA384", "AES128-GCM-SHA256"));
	SSL_CTX_free(context);
}

static void check_same_ciphers(SSL_CTX *context, const SSL_CTX *before)
{
	const STACK_OF(SSL_CIPHER) *ciphers = SSL_CTX_get_ciphers(before);
	CHECK(sk_SSL_CIPHER_num(SSL_CTX_get_ciphers(context)) == sk_SSL_CIPHER_num(ciphers));
	for (int i = 0; i < sk_SSL_CIPHER_num(ciphers); i++)
		CHECK(place_of(context, SSL_CIPHER_get_name(sk_SSL_CIPHER_value(ciphers, i))) >= 0);
}

static void test_given_ciphers_are_kept(void)
{
	static const char *const lists[][2] = {
		{NULL, NULL},
		{"TLS_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"},
		{"TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256", "AES256-SHA"},
		{"", "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256"},
	};
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		SSL_CTX *before = context_of(lists[i][0], lists[i][1]);
		SSL_CTX *context = context_of(lists[i][0], lists[i][1]);
		http_ciphers_order(context);
		check_same_ciphers(context, before);
		SSL_CTX_free(context);
		SSL_CTX_free(before);
	}
}

int main(void)
{
	test_light_ciphers_go_first();
	test_a_key_for_each_session_goes_before_a_light_cipher();
	test_given_ciphers_are_kept();
	return check_result();
}
