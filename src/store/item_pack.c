/* The packed form of an item: the number of the form, the number of attributes, and each of them.
 *
 * An attribute begins with a byte for its name: its place in `names`, counted from 1. A name that
 * is not there is spelled behind a 0, and ends with a NUL. Next is a varint, which has the length
 * of the value in bytes, times 8, plus its shape. The bytes of the value are last. A varint has 7
 * bits of a number in each byte, the least first, and the top bit of all bytes but its last. */
#include "store/item_pack.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FORM          1
#define NUMBER_CHARS  20 /* of an int64_t as decimal text */
#define HEX_CHARS_MIN 8  /* shorter texts stay as they are */

/* The attributes of marks, of which there may be millions. Rows have these numbers, so no place
 * ever changes. Any other name works, too, and takes more bytes. */
static const char *const names[] = {
	"state",
	"session",
	"claim",
	"source",
	"suffix",
	"tries",
	"at",
	"expires",
	"size",
	"mtime",
	"sum",
	"etag",
	"mtime_shared",
	"md5",
	"parts",
	"parts_sum",
	"content",
	"object_size",
	"object_sum",
	"version_id",
	"newer_size",
	"newer_mtime",
	"error",
	"claim_suffix",
	"claim_source",
};
#define NAMES (sizeof names / sizeof *names)
static_assert(NAMES < 32, "take_attributes() has a bit for each");

/* How the bytes of a value stand for its text. */
enum shape {
	SHAPE_STRING,
	SHAPE_NUMBER, /* decimal text, like a number with a fraction */
	SHAPE_BYTES,
	SHAPE_OTHER,
	SHAPE_HEX,     /* a string of lower-case hex digits: two of them are a byte */
	SHAPE_INTEGER, /* a number: zigzag (0, -1, 1, -2…), the least byte first, without leading
			  zeros */
	SHAPES
};
static const enum value_type types[SHAPES] = {
	[SHAPE_STRING] = VALUE_STRING,
	[SHAPE_NUMBER] = VALUE_NUMBER,
	[SHAPE_BYTES] = VALUE_BYTES,
	[SHAPE_OTHER] = VALUE_OTHER,
	[SHAPE_HEX] = VALUE_STRING,
	[SHAPE_INTEGER] = VALUE_NUMBER,
};

static void add_varint(struct text *ret, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		text_add_char(ret, (char)(number | 0x80));
	text_add_char(ret, (char)number);
}

static void add_value(struct text *ret, enum shape shape, const void *bytes, size_t n)
{
	add_varint(ret, (uint64_t)n << 3 | shape);
	text_add_bytes(ret, bytes, n);
}

/* Writes a number as decimal text, without a NUL, to the end of NUMBER_CHARS bytes. Returns its
 * beginning. */
static char *write_decimal(int64_t number, char *end)
{
	uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;
	do
		*--end = (char)('0' + left % 10);
	while (left /= 10);
	if (number < 0)
		*--end = '-';
	return end;
}

/* Adds a number as an integer, if its text is how an integer is written ("7", but not "07" or
 * "7.0"). Returns whether it was added. */
static bool add_integer(struct text *ret, const struct attribute *attribute)
{
	int64_t number;
	char decimal[NUMBER_CHARS], bytes[sizeof number];
	if (attribute_number(attribute, &number) < 0)
		return false;
	const char *begin = write_decimal(number, decimal + sizeof decimal);
	const size_t length = (size_t)(decimal + sizeof decimal - begin);
	if (length != attribute->n || memcmp(begin, attribute->value, length) != 0)
		return false;
	uint64_t zigzag = (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0);
	size_t n = 0;
	for (; zigzag; zigzag >>= 8)
		bytes[n++] = (char)zigzag;
	add_value(ret, SHAPE_INTEGER, bytes, n);
	return true;
}

/* Returns the value of a lower-case hex digit, or -1. */
static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Adds a string as the bytes of its hex digits, if it has no other characters. Returns whether it
 * was added. */
static bool add_hex(struct text *ret, const struct attribute *attribute)
{
	const char *digits = attribute->value;
	const size_t n = attribute->n;
	if (n % 2 || n < HEX_CHARS_MIN)
		return false;
	for (size_t i = 0; i < n; i++)
		if (hex_digit(digits[i]) < 0)
			return false;
	add_varint(ret, (uint64_t)(n / 2) << 3 | SHAPE_HEX);
	for (size_t i = 0; i < n; i += 2)
		text_add_char(ret, (char)(hex_digit(digits[i]) << 4 | hex_digit(digits[i + 1])));
	return true;
}

/* Returns the number of a name, or 0 if it is spelled. */
static size_t number_of(const char *name)
{
	for (size_t i = 0; i < NAMES; i++)
		if (*names[i] == *name && strcmp(names[i], name) == 0)
			return i + 1;
	return 0;
}

static void add_attribute(struct text *ret, const struct attribute *attribute)
{
	const size_t number = number_of(attribute->name);
	text_add_char(ret, (char)number);
	if (!number)
		text_add_bytes(ret, attribute->name, strlen(attribute->name) + 1);
	enum shape shape = SHAPE_STRING;
	while (types[shape] != attribute->type)
		shape++;
	/* A shorter shape of the value is added instead, if there is one. */
	if (shape == SHAPE_NUMBER && add_integer(ret, attribute))
		return;
	if (shape == SHAPE_STRING && add_hex(ret, attribute))
		return;
	add_value(ret, shape, attribute->value, attribute->n);
}

int item_pack(const struct item *item, struct text *ret)
{
	size_t n = 0;
	for (size_t i = 0; i < item->count; i++)
		n += !item_is_key(item->attributes[i].name);
	text_add_char(ret, FORM);
	add_varint(ret, n);
	for (size_t i = 0; i < item->count && !ret->error; i++) {
		const struct attribute *attribute = &item->attributes[i];
		if (item_is_key(attribute->name))
			continue;
		if (attribute->type == VALUE_BYTES || utf8_valid(attribute->value, attribute->n))
			add_attribute(ret, attribute);
		else
			ret->error = -EILSEQ;
	}
	return ret->error;
}

/* Where an item is being unpacked: the packed bytes that are left, and the rest of its block. */
struct unpacking {
	const unsigned char *at, *end;
	char *block;
};

/* Reads a varint. Returns whether there is one. */
static bool take_varint(struct unpacking *u, uint64_t *ret)
{
	uint64_t number = 0;
	for (unsigned shift = 0; u->at < u->end && shift < 64; shift += 7) {
		const unsigned char byte = *u->at++;
		number |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*ret = number;
			return true;
		}
	}
	return false;
}

/* Reads the name of an attribute, and its number, which is 0 if it has none. A spelled name becomes
 * part of the block, and may have a number: whoever wrote the row did not know that number yet.
 * NULL if there is no name. */
static const char *take_name(struct unpacking *u, unsigned *ret_number)
{
	if (u->at == u->end || *u->at > NAMES)
		return NULL;
	*ret_number = *u->at++;
	if (*ret_number)
		return names[*ret_number - 1];
	const unsigned char *nul = memchr(u->at, '\0', (size_t)(u->end - u->at));
	if (!nul)
		return NULL;
	const size_t bytes = (size_t)(nul + 1 - u->at);
	const char *name = memcpy(u->block, u->at, bytes);
	u->block += bytes;
	u->at += bytes;
	*ret_number = (unsigned)number_of(name);
	return name;
}

/* Writes an integer of n bytes as decimal text. Returns its length. */
static size_t unpack_integer(const unsigned char *bytes, size_t n, char *ret)
{
	char decimal[NUMBER_CHARS], *const end = decimal + sizeof decimal;
	uint64_t zigzag = 0;
	while (n-- > 0)
		zigzag = zigzag << 8 | bytes[n];
	const char *begin = write_decimal((int64_t)(zigzag >> 1 ^ -(zigzag & 1)), end);
	memcpy(ret, begin, (size_t)(end - begin));
	return (size_t)(end - begin);
}

/* Reads the value of an attribute into the block, in which item_unpack() has reserved enough room
 * for every value. Returns false if the packed item is damaged. */
static bool take_value(struct unpacking *u, struct attribute *ret)
{
	uint64_t head;
	if (!take_varint(u, &head) || head >> 3 > (uint64_t)(u->end - u->at))
		return false;
	const unsigned char *bytes = u->at;
	const size_t n = (size_t)(head >> 3);
	const unsigned shape = head & 7;
	if (shape >= SHAPES || (shape == SHAPE_INTEGER && n > sizeof(int64_t)))
		return false;
	u->at += n;
	ret->type = types[shape];
	ret->value = u->block;
	if (shape == SHAPE_HEX) {
		hex_encode(bytes, n, ret->value);
		ret->n = 2 * n;
	} else if (shape == SHAPE_INTEGER) {
		ret->n = unpack_integer(bytes, n, ret->value);
	} else {
		memcpy(ret->value, bytes, n);
		ret->n = n;
		if (shape != SHAPE_BYTES && !utf8_valid(ret->value, n))
			return false;
	}
	ret->value[ret->n] = '\0';
	u->block += ret->n + 1;
	return true;
}

/* Makes an attribute of a part of the key, with its value in the block. */
static struct attribute key_attribute(struct unpacking *u, const char *name, const char *value)
{
	const size_t n = strlen(value);
	char *copy = memcpy(u->block, value, n + 1);
	u->block += n + 1;
	return (struct attribute){.name = (char *)(uintptr_t)name, /* never written: is_in_block */
		.value = copy,
		.n = n,
		.type = VALUE_STRING,
		.is_in_block = true};
}

/* Adds n attributes to the item, which has room for them. Returns false if fewer or more than n are
 * packed, or if two have the same name. */
static bool take_attributes(struct unpacking *u, size_t n, struct item *item)
{
	uint32_t seen = 0; /* a bit for each of `names` */
	for (size_t i = 0; i < n; i++) {
		struct attribute one = {.is_in_block = true};
		unsigned number;
		const char *name = take_name(u, &number);
		if (!name || !take_value(u, &one))
			return false;
		/* A name without a number has no bit, and is compared with the others. */
		const bool is_repeated =
			number ? (seen >> number & 1) != 0 : item_find(item, name) != NULL;
		if (is_repeated)
			return false;
		seen |= 1U << number;
		one.name = (char *)(uintptr_t)name;
		item->attributes[item->count++] = one;
	}
	return u->at == u->end;
}

int item_unpack(struct item_key key, const void *packed, size_t n, struct item *ret)
{
	struct unpacking u = {.at = packed, .end = (const unsigned char *)packed + n};
	uint64_t count;
	if (!n || *u.at++ != FORM || !take_varint(&u, &count) || count > ITEM_ATTRIBUTES_MAX)
		return -EBADMSG;
	/* A text has at most twice the bytes of its packed form, or NUMBER_CHARS, and a NUL. */
	const size_t keys = strlen(key.pk) + strlen(key.sk) + 2;
	struct item item = {.block = malloc(keys + 2 * n + count * (NUMBER_CHARS + 1))};
	int error = item.block && !item_reserve(&item, count + 2) ? 0 : -ENOMEM;
	if (!error) {
		u.block = item.block;
		item.attributes[item.count++] = key_attribute(&u, "pk", key.pk);
		item.attributes[item.count++] = key_attribute(&u, "sk", key.sk);
		error = take_attributes(&u, (size_t)count, &item) ? 0 : -EBADMSG;
	}
	if (error)
		item_clear(&item);
	else
		*ret = item;
	return error;
}
