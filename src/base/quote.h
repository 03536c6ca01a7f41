/* Names and other text from outside, as part of a sentence. They are escaped, so that they never
 * control a terminal, and cut, so that they leave room for the rest. */
#pragma once
#include <stddef.h>

struct quoted {
	char text[256];
};

/* Returns s as text_add_escaped() writes it, cut and ended by "..." if it is too long. The result
 * is a value, for use within a call: problem_set(p, "cannot read %s", quote(path).text). */
struct quoted quote(const char *s);
/* The same of n bytes. */
struct quoted quote_bytes(const char *s, size_t n);
/* The same of a URL that a user wrote, with *** in place of a user and password, and of a query. */
struct quoted quote_url(const char *url);
