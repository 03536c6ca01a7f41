/* The packed form of an item: the number of the form, the number of attributes, and each of them.
 *
 * An attribute begins with a byte for its name: its place in `names`, counted from 1. A name that
 * is not there is spelled after a 0, and ends with a NUL. Next is a varint, which has the length of
 * the value in bytes, times 8, plus its shape. The bytes of the value are last. A varint has 7 bits
 * of a number in each byte, the least first, and the top bit of all bytes but its last. */
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
static_assert(NAMES < 32, "struct found_position has a bit for each");

static const enum value_type types[VALUE_SHAPES] = {
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

static void add_value(struct text *ret, enum value_shape shape, const void *bytes, size_t n)
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

/* Returns the shape in which a value of this type is its text. */
static enum value_shape shape_of(enum value_type type)
{
	enum value_shape shape = SHAPE_STRING;
	while (types[shape] != type)
		shape++;
	return shape;
}

static void add_attribute(struct text *ret, const struct attribute *attribute)
{
	const size_t number = number_of(attribute->name);
	text_add_char(ret, (char)number);
	if (!number)
		text_add_bytes(ret, attribute->name, strlen(attribute->name) + 1);
	const enum value_shape shape = shape_of(attribute->type);
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

/* Reads a varint. Returns whether there is one. */
static bool take_varint(struct found_position *position, uint64_t *ret)
{
	uint64_t number = 0;
	for (unsigned shift = 0; position->at < position->end && shift < 64; shift += 7) {
		const unsigned char byte = *position->at++;
		number |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*ret = number;
			return true;
		}
	}
	return false;
}

/* Reads the name of an attribute. A spelled name may have a number: the program that wrote the row
 * did not know that number yet. Returns false if the name is missing or repeated. A name without a
 * number has no bit in `seen`, so item_unpack() compares it with the others. */
static bool take_name(struct found_position *position, struct found_attribute *ret)
{
	if (position->at == position->end || *position->at > NAMES)
		return false;
	size_t number = *position->at++;
	if (!number) {
		const size_t left = (size_t)(position->end - position->at);
		const unsigned char *nul = memchr(position->at, '\0', left);
		if (!nul)
			return false;
		ret->name = (const char *)position->at;
		position->at = nul + 1;
		number = number_of(ret->name);
	}
	if (number)
		ret->name = names[number - 1];
	ret->is_spelled = !number;
	const uint32_t bit = number ? 1U << number : 0;
	const bool is_repeated = (position->seen & bit) != 0;
	position->seen |= bit;
	return !is_repeated;
}

/* Reads the value of an attribute. Returns false if it is damaged. */
static bool take_value(struct found_position *position, struct found_attribute *ret)
{
	uint64_t head;
	if (!take_varint(position, &head) || head >> 3 > (uint64_t)(position->end - position->at))
		return false;
	const unsigned shape = head & 7;
	ret->bytes = (const char *)position->at;
	ret->n = (size_t)(head >> 3);
	if (shape >= VALUE_SHAPES || (shape == SHAPE_INTEGER && ret->n > sizeof(int64_t)))
		return false;
	position->at += ret->n;
	ret->shape = shape;
	ret->type = types[shape];
	const bool is_text = shape == SHAPE_STRING || shape == SHAPE_NUMBER || shape == SHAPE_OTHER;
	return !is_text || utf8_valid(ret->bytes, ret->n);
}

/* Reads the head of a packed item: the number of its form, and that of its attributes. */
static bool take_head(const struct found_item *found, struct found_position *ret)
{
	uint64_t count;
	ret->at = found->packed;
	ret->end = ret->at + found->packed_bytes;
	if (ret->at == ret->end || *ret->at++ != FORM || !take_varint(ret, &count) ||
		count > ITEM_ATTRIBUTES_MAX)
		return false;
	ret->left = (size_t)count;
	return true;
}

static int next_packed(const struct found_item *found, struct found_position *position,
	struct found_attribute *ret)
{
	if (!position->at && !take_head(found, position))
		return -EBADMSG;
	if (!position->left)
		return position->at == position->end ? 0 : -EBADMSG;
	position->left--;
	return take_name(position, ret) && take_value(position, ret) ? 1 : -EBADMSG;
}

int found_next(const struct found_item *found, struct found_position *position,
	struct found_attribute *ret)
{
	if (!found->item)
		return next_packed(found, position, ret);
	if (position->index == found->item->count)
		return 0;
	const struct attribute *attribute = &found->item->attributes[position->index++];
	*ret = (struct found_attribute){.name = attribute->name,
		.type = attribute->type,
		.shape = shape_of(attribute->type),
		.bytes = attribute->value,
		.n = attribute->n};
	return 1;
}

/* Reads an integer of n bytes. */
static int64_t unpack_integer(const char *bytes, size_t n)
{
	uint64_t zigzag = 0;
	while (n-- > 0)
		zigzag = zigzag << 8 | (unsigned char)bytes[n];
	return (int64_t)(zigzag >> 1 ^ -(zigzag & 1));
}

int found_number(const struct found_attribute *attribute, int64_t *ret)
{
	if (attribute->shape != SHAPE_INTEGER)
		return attribute_number(
			&(const struct attribute){.value = (char *)(uintptr_t)attribute->bytes,
				.n = attribute->n,
				.type = attribute->type},
			ret);
	*ret = unpack_integer(attribute->bytes, attribute->n);
	return 0;
}

size_t found_text(const struct found_attribute *attribute, char *ret, size_t room)
{
	const bool is_hex = attribute->shape == SHAPE_HEX;
	char decimal[NUMBER_CHARS], *const end = decimal + sizeof decimal;
	const char *text = attribute->bytes;
	size_t n = attribute->n;
	if (is_hex) {
		n *= 2;
	} else if (attribute->shape == SHAPE_INTEGER) {
		text = write_decimal(unpack_integer(attribute->bytes, n), end);
		n = (size_t)(end - text);
	}
	if (n >= room)
		return n;
	if (is_hex)
		hex_encode((const unsigned char *)attribute->bytes, attribute->n, ret);
	else
		memcpy(ret, text, n);
	ret[n] = '\0';
	return n;
}

/* Adds an attribute with this name and this type to the item, which has room for it and for its
 * value. The value becomes part of the block, whose rest begins at *block. */
static void add_unpacked(
	struct item *item, const char *name, const struct found_attribute *from, char **block)
{
	const size_t n = found_text(from, *block, SIZE_MAX);
	item->attributes[item->count++] =
		(struct attribute){.name = (char *)(uintptr_t)name, /* never written: is_in_block */
			.value = *block,
			.n = n,
			.type = from->type,
			.is_in_block = true};
	*block += n + 1;
}

static void add_key(struct item *item, const char *name, const char *value, char **block)
{
	add_unpacked(item, name,
		&(const struct found_attribute){.type = VALUE_STRING,
			.shape = SHAPE_STRING,
			.bytes = value,
			.n = strlen(value)},
		block);
}

/* Adds all attributes of a packed item. A spelled name becomes part of the block, too. Returns 0 or
 * -EBADMSG. */
static int add_all(struct item *item, const struct found_item *found, char **block)
{
	struct found_position position = {0};
	struct found_attribute one;
	int r;
	while ((r = found_next(found, &position, &one)) > 0) {
		const char *name = one.name;
		if (one.is_spelled) {
			if (item_find(item, name))
				return -EBADMSG;
			const size_t bytes = strlen(name) + 1;
			name = memcpy(*block, name, bytes);
			*block += bytes;
		}
		add_unpacked(item, name, &one, block);
	}
	return r;
}

int item_unpack(struct item_key key, const void *packed, size_t n, struct item *ret)
{
	const struct found_item found = {.key = key, .packed = packed, .packed_bytes = n};
	struct found_position head = {0};
	if (!take_head(&found, &head))
		return -EBADMSG;
	/* A text has at most twice the bytes of its packed form, or NUMBER_CHARS, and a NUL. */
	const size_t keys = strlen(key.pk) + strlen(key.sk) + 2;
	char *block = malloc(keys + 2 * n + head.left * (NUMBER_CHARS + 1));
	struct item item = {.block = block};
	int error = block && !item_reserve(&item, head.left + 2) ? 0 : -ENOMEM;
	if (!error) {
		add_key(&item, "pk", key.pk, &block);
		add_key(&item, "sk", key.sk, &block);
		error = add_all(&item, &found, &block);
	}
	if (error)
		item_clear(&item);
	else
		*ret = item;
	return error;
}

int visit_unpacked(void *arg, const struct found_item *found)
{
	const struct item_visitor *visitor = arg;
	const struct item_key key = found->key;
	struct item item = {0};
	if (found->item)
		return visitor->each(visitor->arg, key.pk, key.sk, found->item);
	int r = item_unpack(key, found->packed, found->packed_bytes, &item);
	if (!r)
		r = visitor->each(visitor->arg, key.pk, key.sk, &item);
	item_clear(&item);
	return r;
}
