/* Names of others inside a sentence: escaped, so that they never steer a terminal, and cut, so that
 * they leave room for the rest. */
#pragma once
#include <stddef.h>

struct quoted {
	char text[256];
};

/* s as text_add_escaped shows it, cut with "..." where it is too long. By value:
 * problem_set(p, "cannot read %s", quote(path).text). */
struct quoted quote(const char *s);
/* The same of n bytes. */
struct quoted quote_bytes(const char *s, size_t n);
/* The same of a URL as somebody wrote it, with *** for a user and password, and for a query. */
struct quoted quote_url(const char *url);
