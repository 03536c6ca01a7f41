/* The order in which the ciphers of TLS are offered to a server. */
#pragma once
#include <openssl/ssl.h>

/* Offers AES-128-GCM before AES-256-GCM, where keys are exchanged for one session. Servers that
 * leave the choice to the client then encrypt with a quarter less CPU time. Which ciphers are
 * offered does not change, so that what the system's policy forbids stays forbidden. Without enough
 * memory the order stays as it was. */
void http_ciphers_order(SSL_CTX *context);
