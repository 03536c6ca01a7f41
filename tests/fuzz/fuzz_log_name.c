/* Names of a log's objects: the family that a name has makes a log whose objects have that name,
 * and each object of a log is an object of some log. */
#include "base/files.h"
#include "cat/log_name.h"
#include "fuzz.h"

static bool is_of(const char *family, const char *key)
{
	struct log_name name;
	struct log_key read = {.time_s = -1};
	ENSURE(log_name_set(&name, family) == 0);
	const bool ret = log_key_read(&name, key, &read);
	ENSURE(!ret || (read.time_s >= 0 && read.offset <= INT64_MAX));
	ENSURE(!ret || (read.suffix >= key && read.suffix <= key + strlen(key)));
	log_name_clear(&name);
	return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char key[KEY_BYTES_MAX + 1];
	struct text family = TEXT(2 * KEY_BYTES_MAX);
	const size_t n = size < KEY_BYTES_MAX ? size : KEY_BYTES_MAX;
	memcpy(key, data, n);
	key[n] = '\0';
	const char *base = path_name(key);
	const bool is_object = log_family_of_object(base, &family);
	ENSURE(!is_object || is_of(text_string(&family), base));
	ENSURE(is_object || family.len == 0);
	ENSURE(!is_of("access.log", key) || is_object);
	ENSURE(!is_of("syslog", key) || is_object);
	text_clear(&family);
	return 0;
}
