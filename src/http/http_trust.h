/* The certificates that a server's is checked against. They are read once for all handles, at the
 * first connection that needs them. curl alone would read and keep them for each handle, which
 * takes 30 ms and 1 MB with a system's usual list. */
#pragma once
#include <curl/curl.h>
#include <openssl/ssl.h>

struct http_trust;
/* ca_bundle is a PEM file, or NULL for the system's. It is copied. 0 or -ENOMEM. */
int http_trust_new(const char *ca_bundle, struct http_trust **ret);
void http_trust_free(struct http_trust *trust); /* after every handle */

/* Makes this handle use them. They are read in its first handshake, which ends with
 * CURLE_SSL_CACERT_BADFILE if that fails, or CURLE_COULDNT_CONNECT and *error
 * -EMFILE for want of a file descriptor. error is borrowed as long as the handle. Thread-safe. */
void http_trust_apply(struct http_trust *trust, CURL *curl, int *error);

/* The order in which the ciphers of TLS are offered to a server. */
/* Offers AES-128-GCM before AES-256-GCM, where keys are exchanged for one session. Servers that
 * leave the choice to the client then encrypt with a quarter less CPU time. Which ciphers are
 * offered does not change, so that what the system's policy forbids stays forbidden. Without enough
 * memory the order stays as it was. */
void http_ciphers_order(SSL_CTX *context);
