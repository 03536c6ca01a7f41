/* Items as DynamoDB's JSON: what is read is written so that it reads the same, in a request and in
 * SQLite's rows; and an item of a reply is handed out only with its keys. The input is also taken
 * for a row of SQLite. */
#include "fuzz.h"
#include "marks/packed_mark.h"
#include "store/dynamodb_request.h"
#include "store/item_pack.h"
#include "store/sqlite.h"
#include <errno.h>
#include <stdlib.h>

static void ensure_same(const struct item *a, const struct item *b)
{
	ENSURE(a->count == b->count);
	for (size_t i = 0; i < a->count; i++) {
		const struct attribute *x = &a->attributes[i], *y = item_find(b, x->name);
		ENSURE(y && x->type == y->type && x->n == y->n);
		ENSURE(memcmp(x->value, y->value, x->n + 1) == 0 && x->value[x->n] == '\0');
	}
}

static void through_json(const struct item *item)
{
	struct text text = TEXT(64U << 20);
	text_add_char(&text, '{');
	for (size_t i = 0; i < item->count; i++)
		item_add_attribute(&text, &item->attributes[i]);
	text_add_char(&text, '}');
	json_t *json = json_loadb(text.data, text.len, JSON_ALLOW_NUL, NULL);
	struct item again = {0};
	ENSURE(json && item_from_json(json, &again) == 0);
	ensure_same(item, &again);
	item_clear(&again);
	json_decref(json);
	text_clear(&text);
}

/* Takes over the item's keys, which a row keeps beside its doc. */
static void through_row(struct item *item)
{
	struct text doc = TEXT(0);
	struct item again = {0};
	ENSURE(item_set_string(item, "pk", "p") == 0 && item_set_string(item, "sk", "s") == 0);
	const struct item_key key = {"p", "s"};
	struct problem problem = {0};
	const enum outcome outcome = items_row_encode(key, item, &doc, &problem);
	ENSURE(outcome == OUTCOME_OK || strstr(problem.text, "is larger than 400 KB"));
	if (outcome != OUTCOME_OK)
		return;
	ENSURE(doc.len <= DOC_BYTES);
	const struct items_row row = {key, doc.data, doc.len};
	ENSURE(items_row_decode(&row, &again, NULL) == OUTCOME_OK);
	ensure_same(item, &again);
	item_clear(&again);
	text_clear(&doc);
}

/* A row of which no item can be made is that of no mark that is understood. */
static void read_mark(const struct found_item *found, bool is_damaged)
{
	struct packed_mark *packed = mark_pack(found);
	ENSURE(packed);
	const struct mark mark = mark_unpack(packed);
	ENSURE(!is_damaged || mark.state == MARK_UNREADABLE);
	ENSURE(strnlen(mark.claim, ID_CHARS + 1) <= ID_CHARS);
	ENSURE(strnlen(mark.done.etag, S3_ETAG_MAX + 1) <= S3_ETAG_MAX);
	ENSURE(!mark.error || strlen(mark.error) <= 2 * found->packed_bytes);
	free(packed);
}

static void read_row(const uint8_t *data, size_t size)
{
	const struct item_key key = {"p", "s"};
	const struct found_item found = {.key = key, .packed = data, .packed_bytes = size};
	struct item item = {0};
	const bool is_damaged = item_unpack(key, data, size, &item) != 0;
	/* A name that is not a known one may come twice only in an item that is damaged. */
	struct found_position position = {0};
	struct found_attribute one;
	size_t n = 0;
	bool has_spelled = false;
	int r;
	while ((r = found_next(&found, &position, &one)) > 0) {
		has_spelled |= one.is_spelled;
		n++;
	}
	ENSURE(is_damaged ? r < 0 || has_spelled : r == 0 && item.count == n + 2);
	read_mark(&found, r < 0);
	if (!is_damaged)
		through_row(&item);
	item_clear(&item);
}

static void read_numbers(struct item *item)
{
	int64_t number, again;
	for (size_t i = 0; i < item->count; i++) {
		if (item_number(item, item->attributes[i].name, &number) < 0)
			continue;
		const enum value_type type = item->attributes[i].type;
		ENSURE(type == VALUE_NUMBER);
		ENSURE(item_set_number(item, item->attributes[i].name, number) == 0);
		ENSURE(item_number(item, item->attributes[i].name, &again) == 0 && again == number);
	}
}

static int see(void *arg, const struct found_item *found)
{
	ENSURE(found->key.pk && found->key.pk == item_string(found->item, "pk"));
	ENSURE(found->key.sk && found->key.sk == item_string(found->item, "sk"));
	*(bool *)arg = true;
	return 0;
}

/* Read without a tree, it is what the tree says. */
static void read_first(const uint8_t *data, size_t size)
{
	struct text text = TEXT(64U << 20);
	struct item item = {0}, again = {0};
	size_t bytes;
	text_add_bytes(&text, data, size);
	if (item_read(text_string(&text), size, NULL, &item, &bytes) == 0) {
		json_t *json = json_loadb(text.data, bytes, JSON_ALLOW_NUL, NULL);
		ENSURE(bytes <= size && json && item_from_json(json, &again) == 0);
		ensure_same(&item, &again);
		json_decref(json);
	} else {
		json_t *json = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
		ENSURE(item_from_json(json, &again) < 0 || memchr(data, '\0', size));
		json_decref(json);
	}
	item_clear(&item);
	item_clear(&again);
	text_clear(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct table table = {.name = "t", .pk_name = "pk", .sk_name = "sk"};
	json_t *json = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
	struct problem problem = {0};
	struct item item = {0};
	bool seen = false;
	struct item_visit visit = {&table, see, &seen};
	int error = item_from_json(json, &item);
	enum outcome outcome = dynamodb_hand_out(&visit, error, &item, &problem);
	/* An item that can be read and is not handed out has other keys. */
	const enum outcome expected = seen ? OUTCOME_OK : error ? OUTCOME_LOST : OUTCOME_SETUP;
	ENSURE(outcome == expected && !seen == !!problem.text[0]);
	read_first(data, size);
	read_row(data, size);
	if (item_from_json(json, &item) == 0) {
		through_json(&item);
		read_numbers(&item);
		through_row(&item);
	} else {
		ENSURE(!seen && item_is_empty(&item));
	}
	item_clear(&item);
	json_decref(json);
	return 0;
}
