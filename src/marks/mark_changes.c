#include "marks/mark_changes.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static void add_change(struct changes *c, const char *name, enum value_type type, const char *value)
{
	assert(c->n < sizeof c->list / sizeof *c->list);
	c->list[c->n++] = (struct change){name, type, value};
}

void changes_set_text(struct changes *c, const char *name, const char *value)
{
	add_change(c, name, VALUE_STRING, value);
}

void changes_set_number(struct changes *c, const char *name, int64_t value)
{
	assert(c->n_numbers < sizeof c->numbers / sizeof *c->numbers);
	char *text = c->numbers[c->n_numbers++];
	snprintf(text, sizeof c->numbers[0], "%" PRId64, value);
	add_change(c, name, VALUE_NUMBER, text);
}

void changes_unset(struct changes *c, const char *name)
{
	add_change(c, name, VALUE_STRING, NULL);
}

void changes_set_or_unset(struct changes *c, const char *name, const char *value)
{
	if (*value)
		changes_set_text(c, name, value);
	else
		changes_unset(c, name);
}

void changes_set_upload(struct changes *c, const struct open_upload *upload)
{
	changes_set_text(c, "upload", upload->id);
	changes_set_number(c, "part", (int64_t)upload->part_bytes);
	changes_set_text(c, "upload_sum", checksum_kinds[upload->checksum].name);
	changes_set_or_unset(c, "upload_key", upload->key_md5);
	changes_set_or_unset(c, "upload_suffix", upload->suffix);
	changes_set_or_unset(c, "upload_encoding", upload->encoding);
	changes_set_or_unset(c, "upload_content", upload->content);
	changes_set_number(c, "upload_size", (int64_t)upload->size);
	changes_set_number(c, "upload_mtime", upload->mtime_ns);
}

void changes_unset_upload(struct changes *c)
{
	changes_unset(c, "upload");
	changes_unset(c, "part");
	changes_unset(c, "upload_sum");
	changes_unset(c, "upload_key");
	changes_unset(c, "upload_suffix");
	changes_unset(c, "upload_encoding");
	changes_unset(c, "upload_content");
	changes_unset(c, "upload_size");
	changes_unset(c, "upload_mtime");
}

void changes_unset_newer(struct changes *c)
{
	changes_unset(c, "newer_size");
	changes_unset(c, "newer_mtime");
}

struct condition mark_equals(const char *name, const char *value)
{
	return (struct condition){name, CONDITION_EQUALS, VALUE_STRING, value};
}

struct condition mark_equals_or_absent(const char *name, const char *value)
{
	if (value && *value)
		return mark_equals(name, value);
	return (struct condition){name, CONDITION_ABSENT, VALUE_STRING, NULL};
}
