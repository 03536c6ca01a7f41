#include "scan/collision.h"
#include "base/text.h"
#include <string.h>

#define NAME_BYTES_SHOWN 88 /* three of them fit into a problem's sentence */

/* A name for a sentence: escaped, a long one without its middle. */
static void add_short(struct text *text, const char *name)
{
	struct text shown = TEXT(1024UL * 1024);
	text_add_escaped_string(&shown, name);
	const char *s = text_string(&shown);
	size_t head = shown.len, tail = shown.len;
	if (shown.len > NAME_BYTES_SHOWN) {
		head = NAME_BYTES_SHOWN / 2;
		tail = shown.len - (NAME_BYTES_SHOWN / 2 - 3);
		while ((s[head] & 0xC0) == 0x80)
			head--;
		while ((s[tail] & 0xC0) == 0x80)
			tail++;
	}
	text_add_bytes(text, s, head);
	if (head < tail)
		text_add(text, "…");
	text_add(text, s + tail);
	text_clear(&shown);
}

void collision_tell(const struct collision *collision, struct problem *ret)
{
	struct text names = TEXT(4096);
	add_short(&names, collision->key);
	text_add(&names, ": ");
	add_short(&names, collision->path);
	text_add(&names, " and ");
	add_short(&names, collision->other_path);
	problem_set(ret, "two files have the key %s; %s", text_string(&names), collision->remedy);
	text_clear(&names);
}
