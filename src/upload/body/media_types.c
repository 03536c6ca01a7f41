#include "upload/body/media_types.h"
#include "base/named_file.h"
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

/* 0, -ENOMEM, or -EINVAL if it is not a type. */
static int check_type(const char *type)
{
	struct s3_headers *headers = NULL;
	struct problem problem;
	int error = s3_headers_new(&headers);
	if (!error)
		error = s3_headers_set(headers, "content-type", type, &problem);
	s3_headers_free(headers);
	return error;
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

/* 0, -ENOMEM, or -EINVAL if it is not such a line. */
static int read_line(struct media_types *types, char *line)
{
	static const char blank[] = " \t\r\n\f\v";
	char *rest = line, extension[EXTENSION_MAX + 1];
	line[strcspn(line, "#")] = '\0';
	const char *type = strtok_r(rest, blank, &rest);
	int error = type ? check_type(type) : 0;
	for (const char *word; type && !error && (word = strtok_r(NULL, blank, &rest));)
		if (lower_case(word, extension))
			error = -EINVAL;
		else if (json_object_set_new_nocheck(
				 types->of, extension, json_string_nocheck(type)))
			error = -ENOMEM;
	return error;
}

static int cannot_read(const char *path, int error, struct problem *ret_problem)
{
	problem_set(ret_problem, "the media types %s cannot be read: %s", quote(path).text,
		named_file_error(error));
	return error == -ENOMEM ? error : -EINVAL;
}

int media_types_load(const char *path, struct media_types **ret, struct problem *ret_problem)
{
	FILE *stream;
	int error = named_file_stream(path, &stream);
	if (error)
		return cannot_read(path, error, ret_problem);
	struct media_types *types = calloc(1, sizeof *types);
	char *line = NULL;
	size_t size = 0;
	unsigned number = 0;
	error = types && (types->of = json_object()) ? 0 : -ENOMEM;
	while (!error && getline(&line, &size, stream) >= 0) {
		number++;
		error = read_line(types, line);
	}
	if (error == -EINVAL)
		problem_set(ret_problem, "the media types %s: line %u is not a type and extensions",
			quote(path).text, number);
	else if (!error && !feof(stream))
		error = cannot_read(path, -errno, ret_problem);
	free(line);
	fclose(stream);
	if (error)
		media_types_free(types);
	else
		*ret = types;
	return error;
}

const char *media_types_of(const struct media_types *types, const char *path)
{
	char extension[EXTENSION_MAX + 1];
	const char *name = path_name(path), *dot = strrchr(name, '.');
	if (!dot || dot == name || lower_case(dot + 1, extension))
		return NULL;
	return json_string_value(json_object_get(types->of, extension));
}
