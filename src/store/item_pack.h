/* Items packed into few bytes, as the rows of SQLite have them. A rerun reads the row of every
 * file, so a packed item is read several times as fast as JSON, and has a third of its length. */
#pragma once
#include "base/text.h"
#include "store/item.h"

/* Adds the item without the attributes pk and sk, which are its key. 0, -ENOMEM, -EMSGSIZE if the
 * text's cap is too small, or -EILSEQ if a string is not UTF-8. */
int item_pack(const struct item *item, struct text *ret);
/* Fills a zeroed item from a packed one and its key. 0, -EBADMSG or -ENOMEM, with an empty item. */
int item_unpack(struct item_key key, const void *packed, size_t n, struct item *ret);

/* How the bytes of a value stand for its text. */
enum value_shape {
	SHAPE_STRING,
	SHAPE_NUMBER, /* decimal text; packed: of a number that is not written like an integer */
	SHAPE_BYTES,
	SHAPE_OTHER,
	SHAPE_HEX,     /* a string of lower-case hex digits: two of them are a byte */
	SHAPE_INTEGER, /* a number: zigzag (0, -1, 1, -2…), the least byte first, without leading
			  zeros */
	VALUE_SHAPES
};
/* One attribute of a found item, where it lies. It borrows from the item. */
struct found_attribute {
	const char *name;
	bool is_spelled; /* the name, too, is in the packed item */
	enum value_type type;
	enum value_shape shape;
	const char *bytes; /* n of them, not terminated */
	size_t n;
};
/* The place in a found item. Zero: before the first attribute. */
struct found_position {
	size_t index;                  /* in a struct item */
	const unsigned char *at, *end; /* in a packed item: its rest */
	size_t left;                   /* attributes in this rest */
	uint32_t seen;                 /* a bit for each known name that has come */
};
/* Reads the next attribute of either form, so that a reader of many rows need not make an item of
 * each. The attributes of a struct item may include the key. Returns 1, 0 after the last one, or
 * -EBADMSG if the item is damaged. */
int found_next(const struct found_item *found, struct found_position *position,
	struct found_attribute *ret);
/* Reads a number, as attribute_number() does. */
int found_number(const struct found_attribute *attribute, int64_t *ret);
/* Returns the length of the text of a value. Writes it, with a NUL, if there is room for both. */
size_t found_text(const struct found_attribute *attribute, char *ret, size_t room);

/* A visitor of items. visit_unpacked() is the found_visitor that takes it as its argument, and
 * unpacks each packed item for it. */
struct item_visitor {
	int (*each)(void *arg, const char *pk, const char *sk, const struct item *item);
	void *arg;
};
int visit_unpacked(void *visitor, const struct found_item *found);
