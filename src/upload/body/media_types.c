#include "upload/body/media_types.h"
#include "base/path.h"
#include "base/quote.h"
#include "s3/s3_headers.h"
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXTENSION_MAX 63

struct media_types {
	json_t *of; /* extension in lower case → type; only read once it is loaded */
};

void media_types_free(struct media_types *types)
{
	if (types)
		json_decref(types->of);
	free(types);
}

static bool is_type(const char *type)
{
	struct s3_headers *headers;
	struct problem problem;
	if (s3_headers_new(&headers))
		return false;
	bool good = !s3_headers_set(headers, "content-type", type, &problem);
	s3_headers_free(headers);
	return good;
}

static int lower_case(const char *extension, char ret[static EXTENSION_MAX + 1])
{
	const size_t n = strlen(extension);
	if (n > EXTENSION_MAX)
		return -ENAMETOOLONG;
	for (size_t i = 0; i <= n; i++)
		ret[i] = (char)tolower((unsigned char)extension[i]);
	return 0;
}

/* Returns false if it is not such a line. */
static bool read_line(struct media_types *types, char *line)
{
	static const char blank[] = " \t\r\n\f\v";
	char *rest = line, extension[EXTENSION_MAX + 1];
	line[strcspn(line, "#")] = '\0';
	const char *type = strtok_r(rest, blank, &rest);
	if (!type)
		return true;
	if (!is_type(type))
		return false;
	for (const char *word; (word = strtok_r(NULL, blank, &rest));)
		if (lower_case(word, extension) || json_object_set_new_nocheck(types->of, extension,
							   json_string_nocheck(type)))
			return false;
	return true;
}

int media_types_load(const char *path, struct media_types **ret, struct problem *ret_problem)
{
	FILE *stream = fopen(path, "re");
	if (!stream) {
		problem_set(ret_problem, "the media types %s cannot be read: %s", quote(path).text,
			strerror(errno));
		return -EINVAL;
	}
	struct media_types *types = calloc(1, sizeof *types);
	char *line = NULL;
	size_t size = 0;
	unsigned number = 0;
	bool good = types && (types->of = json_object());
	while (good && getline(&line, &size, stream) >= 0) {
		number++;
		good = read_line(types, line);
	}
	if (!good)
		problem_set(ret_problem, "the media types %s: line %u is not a type and extensions",
			quote(path).text, number);
	else if (ferror(stream))
		problem_set(ret_problem, "the media types %s cannot be read", quote(path).text);
	good = good && !ferror(stream);
	free(line);
	fclose(stream);
	if (!good) {
		media_types_free(types);
		return -EINVAL;
	}
	*ret = types;
	return 0;
}

const char *media_types_of(const struct media_types *types, const char *path)
{
	char extension[EXTENSION_MAX + 1];
	const char *name = path_name(path), *dot = strrchr(name, '.');
	if (!dot || dot == name || lower_case(dot + 1, extension))
		return NULL;
	return json_string_value(json_object_get(types->of, extension));
}
