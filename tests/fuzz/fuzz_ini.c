/* INI files and profiles: what stands in a file is found, and keeps its value when a section is
 * added. */
#include "aws/settings_lookup.h"
#include "base/ini.h"
#include "base/text.h"
#include "fuzz.h"
#include <errno.h>

#define ADDED "\n[added by the test]\nkey = one\nkey : two # comment\nblock =\n sub = three\n"

static const char *const sections[] = {"default", "profile a", "profile b c", "a", "x"};
static const char *const keys[] = {"region", "aws_access_key_id", "s3", "s3.addressing_style",
	"endpoint_url", "services", "key", "a", "a.b"};
#define COUNT(array) (sizeof array / sizeof(*(array)))

static void ensure_same(const struct ini *a, const struct ini *b)
{
	for (size_t s = 0; s < COUNT(sections); s++) {
		ENSURE(ini_has_section(a, sections[s]) == ini_has_section(b, sections[s]));
		for (size_t k = 0; k < COUNT(keys); k++) {
			const char *x = ini_get(a, sections[s], keys[k]);
			const char *y = ini_get(b, sections[s], keys[k]);
			ENSURE(!x == !y && (!x || strcmp(x, y) == 0));
			ENSURE(!x || ini_has_section(a, sections[s]));
			ENSURE(!x || (!strchr(" \t\r", *x) || !*x));
		}
	}
}

static void ensure_addable(const struct ini *ini, const uint8_t *data, size_t size)
{
	struct text text = TEXT(size + sizeof ADDED);
	struct ini *more = NULL;
	char path[32];
	text_add_bytes(&text, data, size);
	text_add(&text, ADDED);
	if (text.len <= 1U << 20) {
		int fd = fuzz_file((const uint8_t *)text.data, text.len, path);
		ENSURE(ini_load(path, &more, NULL) == 0);
		close(fd);
		ENSURE(strcmp(ini_get(more, "added by the test", "KEY"), "two") == 0);
		ENSURE(strcmp(ini_get(more, "added by the test", "block.sub"), "three") == 0);
		ensure_same(ini, more);
	}
	ini_free(more);
	text_clear(&text);
}

static void read_profile(const struct ini *ini, const char *path)
{
	struct profile profile;
	struct problem problem = {0};
	int error = profile_load("a", path, path, &profile, &problem);
	ENSURE((error == 0 || error == -EINVAL) && !problem.text[0] == !error && (ini || error));
	if (error)
		return;
	const char *region = profile_get(&profile, "region");
	ENSURE(!region || (*region && profile_exists(&profile)));
	const char *glued = region ? strchr(region, '\n') : NULL;
	ENSURE(!glued || !strpbrk(glued, "=:"));
	ENSURE(profile_exists(&profile) ==
		(ini_has_section(ini, "a") || ini_has_section(ini, "profile a")));
	profile_clear(&profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ini *ini = NULL;
	int line = 0, lines = 1;
	char path[32];
	int fd = fuzz_file(data, size, path);
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	int error = ini_load(path, &ini, &line);
	ENSURE(error == 0 || error == -EFBIG || (error == -EBADMSG && line >= 1 && line <= lines));
	read_profile(ini, path);
	if (ini)
		ensure_addable(ini, data, size);
	ini_free(ini);
	close(fd);
	return 0;
}
