/* The names of encodings: what --compress says, and what marks and metadata keep of it. Pure. */
#include "upload/body/encoding.h"
#include "upload/body/gzip.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_estimateCStreamSize */
#include <zstd.h>

/* For zstd, only the levels whose output needs little memory to decompress. For gzip, all
 * levels. */
const struct codec_info codecs[CODECS] = {
	[CODEC_ZSTD] =
		{.name = "zstd", .suffix = ".zst", .least_level = 1, .level = 3, .most_level = 19},
	[CODEC_GZIP] =
		{.name = "gzip", .suffix = ".gz", .least_level = 1, .level = 6, .most_level = 9},
};

static int name_it(struct encoding *encoding)
{
	if (encoding->codec == CODEC_GZIP)
		return gzip_name(encoding->level, encoding->name, sizeof encoding->name);
	snprintf(encoding->name, sizeof encoding->name, "zstd-%s:%d", ZSTD_versionString(),
		encoding->level);
	return 0;
}

/* Returns the level, or -1. */
static int read_level(const struct codec_info *codec, const char *text)
{
	const size_t digits = strspn(text, "0123456789");
	const long level = digits && digits < 3 && !text[digits] ? strtol(text, NULL, 10) : -1;
	return level >= codec->least_level && level <= codec->most_level ? (int)level : -1;
}

int encoding_parse(const char *text, struct encoding *ret, struct problem *ret_problem)
{
	const size_t n = strcspn(text, ":");
	struct encoding encoding = {0};
	while (encoding.codec < CODECS &&
		(strlen(codecs[encoding.codec].name) != n ||
			strncmp(codecs[encoding.codec].name, text, n) != 0))
		encoding.codec++;
	if (encoding.codec == CODECS)
		return problem_error(ret_problem, -EINVAL,
			"\"%s\" is neither zstd nor gzip, with or without :LEVEL",
			quote(text).text);
	const struct codec_info *codec = &codecs[encoding.codec];
	encoding.level = text[n] ? read_level(codec, text + n + 1) : codec->level;
	if (encoding.level < 0)
		return problem_error(ret_problem, -EINVAL,
			"\"%s\" is not a level of %s: give a number from %d to %d",
			quote(text + n + 1).text, codec->name, codec->least_level,
			codec->most_level);
	if (name_it(&encoding))
		return problem_error(ret_problem, -ENOMEM, "out of memory");
	*ret = encoding;
	return 0;
}

struct encoding encoding_in_parts(const struct encoding *encoding, uint64_t part_bytes)
{
	struct encoding ret = *encoding;
	const size_t n = strcspn(ret.name, "=");
	ret.part_bytes = part_bytes;
	snprintf(ret.name + n, sizeof ret.name - n, "=%" PRIu64, part_bytes);
	return ret;
}

int encoding_named(const char *name, struct encoding *ret)
{
	char base[ENCODING_MAX + 1];
	const size_t n = strcspn(name, "=");
	if (n >= sizeof base)
		return -ENOENT;
	memcpy(base, name, n);
	base[n] = '\0';
	const char *colon = strrchr(base, ':');
	for (enum codec codec = 0; colon && codec < CODECS; codec++) {
		struct encoding encoding = {
			.codec = codec, .level = read_level(&codecs[codec], colon + 1)};
		if (encoding.level < 0 || name_it(&encoding) || strcmp(encoding.name, base) != 0)
			continue;
		if (name[n])
			encoding = encoding_in_parts(&encoding, strtoull(name + n + 1, NULL, 10));
		if (strcmp(encoding.name, name) != 0 || (name[n] && !encoding.part_bytes))
			return -ENOENT;
		*ret = encoding;
		return 0;
	}
	return -ENOENT;
}

size_t encoding_memory(const struct encoding *encoding)
{
	return encoding->codec == CODEC_ZSTD ? ZSTD_estimateCStreamSize(encoding->level)
					     : gzip_memory(encoding->level);
}
