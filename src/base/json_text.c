/* Strings in JSON objects, for all JSON that the program writes or reads: events, manifests, the
 * output of commands, and the replies of DynamoDB. A name or path that is not UTF-8 is written
 * twice: escaped for reading, and in base64 for its exact bytes. */
#include "base/json_text.h"
#include "base/text.h"
#include <stdio.h>
#include <string.h>

void json_set_bytes(json_t *object, const char *name, const char *bytes)
{
	const size_t n = strlen(bytes);
	if (utf8_valid(bytes, n)) {
		json_object_set_new(object, name, json_string(bytes));
		return;
	}
	char bytes_name[64];
	/* More than enough: a byte takes at most 4 characters, escaped or in base64. */
	struct text t = TEXT(8 * n);
	text_add_escaped(&t, bytes, n);
	json_object_set_new(object, name, json_string(text_string(&t)));
	snprintf(bytes_name, sizeof bytes_name, "%s_bytes", name);
	text_reset(&t);
	text_add_base64(&t, bytes, n);
	if (!t.error)
		json_object_set_new(object, bytes_name, json_string(text_string(&t)));
	text_clear(&t);
}

const char *json_text(const json_t *object, const char *name)
{
	const char *value = json_string_value(json_object_get(object, name));
	return value ? value : "";
}
