/* Strings in JSON objects. JSON has only text, and names and paths may be any bytes. */
#include "base/json_text.h"
#include "base/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void json_set_bytes(json_t *object, const char *name, const char *bytes)
{
	const size_t n = strlen(bytes);
	if (utf8_valid(bytes, n)) {
		json_object_set_new(object, name, json_string(bytes));
		return;
	}
	char bytes_name[64];
	struct text escaped = TEXT(8 * n);
	text_add_escaped(&escaped, bytes, n);
	json_object_set_new(object, name, json_string(text_string(&escaped)));
	snprintf(bytes_name, sizeof bytes_name, "%s_bytes", name);
	char *base64 = malloc(4 * ((n + 2) / 3) + 1);
	if (base64) {
		base64_encode((const unsigned char *)bytes, n, base64);
		json_object_set_new(object, bytes_name, json_string(base64));
	}
	free(base64);
	text_clear(&escaped);
}

const char *json_text(const json_t *object, const char *name)
{
	const char *value = json_string_value(json_object_get(object, name));
	return value ? value : "";
}
