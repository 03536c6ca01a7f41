/* The file format of AWS's configuration: sections, settings, and the settings below a setting.
 * settings_lookup.c reads profiles with it. */
#include "base/ini.h"
#include "base/files.h"
#include "base/text.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FILE_MAX_BYTES (1U << 20)

struct ini {
	struct text text; /* the file, cut into strings in place; the entries point into it */
	struct ini_entry *entries;
	size_t n;
	size_t indent; /* that of the last section or key; a line indented deeper belongs to it */
};

void ini_free(struct ini *ini)
{
	if (!ini)
		return;
	text_wipe(&ini->text); /* the file may contain secret keys */
	free(ini->entries);
	free(ini);
}

static int add_ini_entry(struct ini *ini, struct ini_entry entry)
{
	struct ini_entry *entries = reallocarray(ini->entries, ini->n + 1, sizeof *entries);
	if (!entries)
		return -ENOMEM;
	ini->entries = entries;
	ini->entries[ini->n++] = entry;
	return 0;
}

/* Adds the entry of a section. Its name loses quotes and repeated spaces: [profile "my name"] and
 * [profile  my name] are the section "profile my name". */
static int read_section(struct ini *ini, char *line)
{
	char *end = strrchr(line, ']');
	if (!end)
		return -EBADMSG;
	*end = 0;
	char *name = text_trim(line + 1), *to = name;
	for (char *from = name; *from; from++) {
		const bool is_quote = *from == '"' || *from == '\'';
		const bool repeats_blank = text_is_blank(*from) && to > name && to[-1] == ' ';
		if (!is_quote && !repeats_blank)
			*to++ = text_is_blank(*from) ? ' ' : *from;
	}
	*to = 0;
	name = text_trim(name);
	return *name ? add_ini_entry(ini, (struct ini_entry){.section = name}) : -EBADMSG;
}

/* Adds the entry of a line "key = value" or "key: value". A comment, which begins after a space and
 * outside of quotes, is cut off. A quote counts only if it begins the value or a word of it, and is
 * closed. Any other is an apostrophe. */
static int read_pair(struct ini *ini, const char *section, const char *parent, char *line)
{
	char *value = strpbrk(line, "=:");
	if (!value || value == line)
		return -EBADMSG;
	*value++ = 0;
	for (char *at = value; (at = strpbrk(at, "#;\"'")); at++) {
		const bool is_quote = *at == '"' || *at == '\'';
		const bool follows_blank = at > value && text_is_blank(at[-1]);
		const bool may_open_quote = is_quote && (at == value || follows_blank);
		char *closing = may_open_quote ? strchr(at + 1, *at) : NULL;
		const bool begins_comment = !is_quote && follows_blank;
		if (closing) {
			at = closing; /* a comment cannot begin between the quotes */
		} else if (begins_comment) {
			*at = 0;
			break;
		}
	}
	return add_ini_entry(ini, (struct ini_entry){.section = section,
					  .parent = parent,
					  .key = text_trim(line),
					  .value = text_trim(value)});
}

/* Reads one line. A line that is indented deeper than the key above it belongs to that key. If the
 * key has no value, the line is a sub-key. Otherwise the line continues the value: it is moved up
 * to the end of the value, which lies earlier in the same buffer. */
static int read_line(struct ini *ini, char *line)
{
	const char *start = line;
	line = text_trim(line);
	const size_t indent = (size_t)(line - start);
	if (!*line || *line == '#' || *line == ';')
		return 0;
	const struct ini_entry *last = ini->n ? &ini->entries[ini->n - 1] : NULL;
	if (indent > ini->indent && last && last->key) {
		/* This line is a sub-key. The entry before it is its key, whose value is empty,
		 * or another sub-key of the same key. */
		if (last->parent || !*last->value)
			return read_pair(
				ini, last->section, last->parent ? last->parent : last->key, line);
		char *end = last->value + strlen(last->value);
		*end = '\n';
		memmove(end + 1, line, strlen(line) + 1);
		return 0;
	}
	ini->indent = indent;
	if (*line == '[')
		return read_section(ini, line);
	return last ? read_pair(ini, last->section, NULL, line) : -EBADMSG;
}

/* Reads all lines of ini->text. Returns 0, -ENOMEM, or -EBADMSG with the number of the faulty line,
 * which may be one with a NUL byte. */
static int read_lines(struct ini *ini, int *ret_line)
{
	char *rest = ini->text.data;
	const char *end = text_string(&ini->text) + ini->text.len;
	int line_number = 0, error = 0;
	rest += rest ? utf8_byte_order_mark(rest) : 0;
	for (char *line; !error && (line = strsep(&rest, "\n"));) {
		line_number++;
		/* strsep() takes a NUL byte for the end of the file. */
		const char *end_of_line = rest ? rest - 1 : end;
		const bool has_nul = line + strlen(line) != end_of_line;
		error = has_nul ? -EBADMSG : read_line(ini, line);
	}
	*ret_line = line_number;
	return error;
}

int ini_load(const char *path, struct ini **ret, int *ret_line)
{
	struct ini *ini = calloc(1, sizeof *ini);
	int line_number = 1;
	if (!ini)
		return -ENOMEM;
	ini->text = TEXT(FILE_MAX_BYTES);
	int error = named_file_read(path, &ini->text, NULL);
	if (!error)
		error = read_lines(ini, &line_number);
	if (error == -EBADMSG && ret_line)
		*ret_line = line_number;
	if (error)
		ini_free(ini);
	else
		*ret = ini;
	return error;
}

/* Whether the entry has this key, which is "KEY.SUBKEY" for a sub-key. */
static bool has_key(const struct ini_entry *entry, const char *key)
{
	if (!entry->key)
		return false;
	if (!entry->parent)
		return strcasecmp(key, entry->key) == 0;
	const size_t n = strlen(entry->parent);
	return strncasecmp(key, entry->parent, n) == 0 && key[n] == '.' &&
	       strcasecmp(key + n + 1, entry->key) == 0;
}

const char *ini_get(const struct ini *ini, const char *section, const char *key)
{
	/* Of several entries, the last one counts. */
	for (size_t i = ini->n; i-- > 0;) {
		const struct ini_entry *entry = &ini->entries[i];
		if (has_key(entry, key) && strcmp(entry->section, section) == 0)
			return entry->value;
	}
	return NULL;
}

bool ini_has_section(const struct ini *ini, const char *section)
{
	for (size_t i = 0; i < ini->n; i++)
		if (!ini->entries[i].key && strcmp(ini->entries[i].section, section) == 0)
			return true;
	return false;
}

int ini_each(
	const struct ini *ini, int (*each)(void *arg, const struct ini_entry *entry), void *arg)
{
	int ended = 0;
	for (size_t i = 0; i < ini->n && !ended; i++)
		ended = each(arg, &ini->entries[i]);
	return ended;
}
