/* A growing string with a mandatory cap. Errors stick: add as much as you like, ask once at the
 * end. */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The maximum length of the key of an object, and so of a mark, in bytes. */
#define KEY_BYTES_MAX 1024

struct text {
	char *data; /* NUL-terminated once anything was added; NULL before */
	size_t len; /* bytes without the NUL */
	size_t cap; /* allocated bytes */
	size_t max; /* len never exceeds this */
	int error;  /* 0, -ENOMEM, or -EMSGSIZE when the cap was hit; nothing is added after it */
};

/* An empty text of at most max bytes. Owns nothing until something is added. */
#define TEXT(max_bytes) ((struct text){.max = (max_bytes)})

/* Frees the memory and empties the text; it can be used again. */
void text_clear(struct text *t);
/* As text_clear, but overwrites the bytes first: for secrets. */
void text_wipe(struct text *t);
/* Empties the text, keeps its memory, forgets the error. */
void text_reset(struct text *t);
/* Cuts the text to its first len bytes, which it has. Keeps the error. */
void text_cut(struct text *t, size_t len);

/* Makes room for n more bytes at once, so that adding them need not grow the text step by step.
 * Returns whether there is room; if not, the error is set. */
bool text_reserve(struct text *t, size_t n);
void text_add(struct text *t, const char *s);
void text_add_bytes(struct text *t, const void *bytes, size_t n);
void text_add_char(struct text *t, char c);
void text_addf(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_addfv(struct text *t, const char *format, va_list ap)
	__attribute__((format(printf, 2, 0)));

/* Adds bytes so that a terminal or a log shows them and is never controlled by them. Valid UTF-8
 * stays. Control characters (C0, C1, DEL, line and paragraph separators, bidi controls), characters
 * without any width, and invalid bytes become \xNN, \n or \t, and a backslash becomes \\. */
void text_add_escaped(struct text *t, const char *bytes, size_t n);
void text_add_escaped_string(struct text *t, const char *s);
/* Likewise for text that its writer should have escaped already: a backslash stays a single one. */
void text_add_escaped_again(struct text *t, const char *s);

/* The string so far, "" if empty: never NULL. Valid until the next change. */
const char *text_string(const struct text *t);

/* Whether c is white space as in C, except for a newline. */
bool text_is_blank(char c);
/* Cuts off white space at the end of s, in place. Returns the first character of s that is not
 * white space. */
char *text_trim(char *s);
/* Reads a number that consists of decimal digits. Returns false, and leaves *ret as it is, if `s`
 * is NULL or not such a number, or if the number is more than `max`. */
bool decimal_read(const char *s, uint64_t max, uint64_t *ret);

/* Whether n bytes are well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms). */
bool utf8_valid(const char *bytes, size_t n);
#define UTF8_BYTES_MAX 4 /* of one code point */
/* Returns the length of the well-formed sequence at the beginning of n bytes, and sets *ret_code to
 * its code point. Returns 0 if there is none. n is not 0. Reads no byte after one that does not
 * continue the sequence, so n may be UTF8_BYTES_MAX for a string that ends in a NUL. */
size_t utf8_next(const char *bytes, size_t n, uint32_t *ret_code);

/* Returns the length of the byte order mark at the beginning of s, which some editors write into a
 * file, or 0 if there is none. */
size_t utf8_byte_order_mark(const char *s);

/* Writes n bytes as 2n lower-case hex digits and a NUL. */
void hex_encode(const unsigned char *bytes, size_t n, char *ret_hex);
/* Standard base64 with padding; ret must hold 4 * ((n + 2) / 3) + 1 bytes. */
void base64_encode(const unsigned char *bytes, size_t n, char *ret);
/* Adds n bytes as standard base64 with padding. */
void text_add_base64(struct text *t, const void *bytes, size_t n);
/* Decodes; returns the number of bytes, or -EINVAL. ret must hold 3 * (strlen(s) / 4) bytes. */
int base64_decode(const char *s, unsigned char *ret);

/* Adds n bytes as in a URI (RFC 3986): each but A-Z a-z 0-9 - . _ ~ is written as %XX. */
void uri_encode(struct text *t, const char *s, size_t n);
/* Likewise, but each '/' is kept. */
void uri_encode_path(struct text *t, const char *s, size_t n);

/* Returns the one of n names that is most like `given`, or NULL if none is like it: for "did you
 * mean …?". Pure. */
const char *nearest_name(const char *given, const char *const *names, size_t n);
