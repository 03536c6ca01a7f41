/* A growing string with a cap, and functions on strings: UTF-8, hex, base64, percent-encoding,
 * decimal numbers, and the name that is most like a mistyped one. */
#include "base/text.h"
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHANGES_MAX 2 /* names that differ by more changes than this are not alike */

/* Returns the Levenshtein distance of two names if it is at most `max_distance`, and otherwise any
 * number greater than `max_distance`. */
static unsigned distance(const char *a, const char *b, unsigned max_distance)
{
	for (; *a && *a == *b; a++) /* equal beginnings cost nothing */
		b++;
	/* If one name has ended, the distance is the rest of the other one. If no change is left,
	 * the names differ here, and this sum is more than the allowed 0. */
	if (!*a || !*b || !max_distance)
		return (unsigned)(strlen(a) + strlen(b));
	/* The first character of a was changed or dropped in b, or b has one more before it. */
	const unsigned changed = distance(a + 1, b + 1, max_distance - 1);
	const unsigned less = distance(a + 1, b, max_distance - 1),
		       more = distance(a, b + 1, max_distance - 1);
	const unsigned min = less < more ? less : more;
	return 1 + (changed < min ? changed : min);
}

const char *nearest_name(const char *given, const char *const *names, size_t n)
{
	const char *nearest = NULL;
	const size_t len = strlen(given);
	/* the distance of `nearest`; at first, one that is too large */
	unsigned best = CHANGES_MAX + 1;
	for (size_t i = 0; i < n; i++) {
		/* A name that begins with the given characters has distance 0, provided that they
		 * are at least three: too many names share fewer. A name in which every character
		 * would have to change is not like it. */
		const bool begins = len >= 3 && strncmp(names[i], given, len) == 0;
		const unsigned d = begins ? 0 : distance(given, names[i], CHANGES_MAX);
		if (d < best && d < strlen(names[i])) {
			best = d;
			nearest = names[i];
		}
	}
	return nearest;
}

/* Size of the first allocation. Headers, keys and marks hardly ever need more than twice as
 * much. */
#define TEXT_MIN_BYTES 256

void text_clear(struct text *t)
{
	free(t->data);
	*t = TEXT(t->max);
}

void text_wipe(struct text *t)
{
	if (t->data)
		OPENSSL_cleanse(t->data, t->cap);
	text_clear(t);
}

void text_reset(struct text *t)
{
	text_cut(t, 0);
	t->error = 0;
}

void text_cut(struct text *t, size_t len)
{
	t->len = len;
	if (t->data)
		t->data[len] = 0;
}

/* Allocates and copies instead of using realloc(), which would leave copies of secrets behind that
 * text_wipe() cannot reach. */
bool text_reserve(struct text *t, size_t n)
{
	if (!t->error && n > t->max - t->len)
		t->error = -EMSGSIZE;
	if (t->error)
		return false;
	if (t->len + n < t->cap) /* one byte is for the NUL */
		return true;
	size_t cap = t->cap ? t->cap : TEXT_MIN_BYTES;
	while (cap <= t->len + n)
		cap = cap > SIZE_MAX / 2 ? t->len + n + 1 : cap * 2;
	char *data = malloc(cap);
	if (!data) {
		t->error = -ENOMEM;
		return false;
	}
	if (t->data) {
		memcpy(data, t->data, t->len);
		OPENSSL_cleanse(t->data, t->cap);
		free(t->data);
	}
	data[t->len] = 0;
	t->data = data;
	t->cap = cap;
	return true;
}

void text_add_bytes(struct text *t, const void *bytes, size_t n)
{
	if (!text_reserve(t, n))
		return;
	if (n)
		memcpy(t->data + t->len, bytes, n);
	t->len += n;
	t->data[t->len] = 0;
}

void text_add(struct text *t, const char *s)
{
	text_add_bytes(t, s, strlen(s));
}

void text_add_char(struct text *t, char c)
{
	text_add_bytes(t, &c, 1);
}

void text_addf(struct text *t, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	text_addfv(t, format, ap);
	va_end(ap);
}

/* Formats straight into the free memory of t. In the rare case that this is too small, makes room
 * and formats again. */
void text_addfv(struct text *t, const char *format, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	size_t room = t->error ? 0 : t->cap - t->len;
	int n = vsnprintf(room ? t->data + t->len : NULL, room, format, ap);
	if (n < 0 && !t->error)
		t->error = -EMSGSIZE;
	if (n >= 0 && text_reserve(t, (size_t)n)) {
		if ((size_t)n >= room)
			vsnprintf(t->data + t->len, (size_t)n + 1, format, again);
		t->len += (size_t)n;
	}
	/* If there was no room, this cuts the output of the first vsnprintf(). */
	if (t->data)
		t->data[t->len] = 0;
	va_end(again);
}

const char *text_string(const struct text *t)
{
	return t->data ? t->data : "";
}

size_t utf8_next(const char *bytes, size_t n, uint32_t *ret_code)
{
	const unsigned char *s = (const unsigned char *)bytes;
	/* The lowest code point of each length, indexed by length. */
	static const uint32_t min[] = {0, 0, 0x80, 0x800, 0x10000};
	/* Except for ASCII, the first byte begins with as many ones as there are bytes, and then a
	 * 0. A byte that means neither 1, 2 nor 3 bytes is taken for the first of 4; the next line
	 * refuses it if it is not. */
	size_t len = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : 4;
	if ((len == 4 && s[0] >> 3 != 30) || len > n)
		return 0;
	uint32_t code = len == 1 ? s[0] : s[0] & (0xFFU >> (len + 1));
	for (size_t i = 1; i < len; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		code = code << 6 | (s[i] & 0x3F);
	}
	const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
	if (code < min[len] || code > 0x10FFFF || is_surrogate)
		return 0;
	*ret_code = code;
	return len;
}

bool utf8_valid(const char *bytes, size_t n)
{
	uint32_t code;
	size_t i = 0;
	while (i < n) {
		uint64_t next;
		if (n - i >= sizeof next) { /* most bytes are ASCII: eight at once */
			memcpy(&next, bytes + i, sizeof next);
			if (!(next & 0x8080808080808080U)) {
				i += sizeof next;
				continue;
			}
		}
		const size_t len = utf8_next(bytes + i, n - i, &code);
		if (!len)
			return false;
		i += len;
	}
	return true;
}

size_t utf8_byte_order_mark(const char *s)
{
	static const char mark[] = "\xEF\xBB\xBF";
	return strncmp(s, mark, strlen(mark)) == 0 ? strlen(mark) : 0;
}

/* Whether a terminal would act on the character instead of showing it: C0, DEL, C1, line and
 * paragraph separators, and characters that change the direction of the text. */
static bool is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x061C || code == 0x200E ||
	       code == 0x200F || (code >= 0x2028 && code <= 0x202E) ||
	       (code >= 0x2066 && code <= 0x2069);
}

/* Whether a terminal shows nothing for the character, so that two names look alike: the soft
 * hyphen, the zero-width space, word joiner and invisible operators, and the byte order mark. The
 * joiners U+200C and U+200D are no such characters, since they shape the letters beside them. */
static bool is_invisible(uint32_t code)
{
	return code == 0x00AD || code == 0x200B || (code >= 0x2060 && code <= 0x2064) ||
	       code == 0xFEFF;
}

/* Adds bytes in a form that is safe to show. A backslash is written as `backslash`. */
static void add_readable(struct text *t, const char *s, size_t n, const char *backslash)
{
	for (size_t i = 0, len; i < n; i += len) {
		uint32_t code = 0;
		len = utf8_next(s + i, n - i, &code);
		const bool is_shown = len && !is_control(code) && !is_invisible(code);
		len = len ? len : 1; /* a byte that is not UTF-8 */
		if (is_shown && code != '\\')
			text_add_bytes(t, s + i, len);
		else if (is_shown)
			text_add(t, backslash);
		else if (s[i] == '\n' || s[i] == '\t')
			text_add(t, s[i] == '\n' ? "\\n" : "\\t");
		else
			for (size_t k = 0; k < len; k++)
				text_addf(t, "\\x%02x", (unsigned char)s[i + k]);
	}
}

void text_add_escaped(struct text *t, const char *bytes, size_t n)
{
	add_readable(t, bytes, n, "\\\\");
}

void text_add_escaped_string(struct text *t, const char *s)
{
	text_add_escaped(t, s, strlen(s));
}

void text_add_escaped_again(struct text *t, const char *s)
{
	add_readable(t, s, strlen(s), "\\");
}

/* Calculates the digits, since a table of them would keep the compiler from making several at
 * once. */
void hex_encode(const unsigned char *bytes, size_t n, char *ret_hex)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < n; i++) {
		ret_hex[2 * i] = digits[bytes[i] >> 4];
		ret_hex[2 * i + 1] = digits[bytes[i] & 15];
	}
	ret_hex[2 * n] = 0;
}

void base64_encode(const unsigned char *bytes, size_t n, char *ret)
{
	EVP_EncodeBlock((unsigned char *)ret, bytes, (int)n);
}

void text_add_base64(struct text *t, const void *bytes, size_t n)
{
	const size_t chars = 4 * ((n + 2) / 3);
	if (!text_reserve(t, chars))
		return;
	base64_encode(bytes, n, t->data + t->len); /* with a NUL */
	t->len += chars;
}

/* EVP_DecodeBlock() also accepts text that base64_encode() would never write. So each group of four
 * characters is encoded again, and has to come out the same. */
int base64_decode(const char *s, unsigned char *ret)
{
	const size_t len = strlen(s);
	if (len % 4 || len > INT32_MAX)
		return -EINVAL;
	/* How many '=' are at the end, 0 to 2. */
	const size_t pad = (len && s[len - 1] == '=') ? 1 + (s[len - 2] == '=') : 0;
	for (size_t i = 0; i < len; i += 4) {
		unsigned char bytes[3], again[5];
		const size_t n = i + 4 < len ? 3 : 3 - pad;
		if (EVP_DecodeBlock(bytes, (const unsigned char *)s + i, 4) != 3 ||
			EVP_EncodeBlock(again, bytes, (int)n) != 4 || memcmp(again, s + i, 4) != 0)
			return -EINVAL;
		memcpy(ret + i / 4 * 3, bytes, n);
	}
	return (int)(len / 4 * 3 - pad);
}

/* Adds n bytes. Each that is neither a letter nor a digit nor in `plain_marks` becomes %XX. */
static void add_percent_encoded(struct text *t, const char *s, size_t n, const char *plain_marks)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t plain = 0; /* beginning of a run of unescaped characters */
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
			(c && strchr(plain_marks, c)))
			continue;
		text_add_bytes(t, s + plain, i - plain);
		text_add_bytes(t, (char[3]){'%', digits[c >> 4], digits[c & 15]}, 3);
		plain = i + 1;
	}
	text_add_bytes(t, s + plain, n - plain);
}

void uri_encode(struct text *t, const char *s, size_t n)
{
	add_percent_encoded(t, s, n, "-._~");
}

void uri_encode_path(struct text *t, const char *s, size_t n)
{
	add_percent_encoded(t, s, n, "-._~/");
}

bool text_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

char *text_trim(char *s)
{
	while (text_is_blank(*s))
		s++;
	size_t n = strlen(s);
	while (n && text_is_blank(s[n - 1]))
		s[--n] = 0;
	return s;
}

bool decimal_read(const char *s, uint64_t max, uint64_t *ret)
{
	if (!s || !*s || s[strspn(s, "0123456789")])
		return false;
	errno = 0;
	const unsigned long long n = strtoull(s, NULL, 10);
	if (errno || n > max)
		return false;
	*ret = n;
	return true;
}
