/* How the content of a file is compressed before it is sent: by which compressor, in which version,
 * at which level. Pure. */
#pragma once
#include "base/problem.h"
#include <stddef.h>
#include <stdint.h>

enum codec { CODEC_ZSTD, CODEC_GZIP, CODECS };
struct codec_info {
	const char *name;   /* as --compress, and HTTP's Content-Encoding, have it */
	const char *suffix; /* of the object's key */
	int least_level, level, most_level;
};
extern const struct codec_info codecs[CODECS];

#define ENCODING_MAX 47
struct encoding {
	enum codec codec;
	int level;
	/* Each part of an upload but the last one is padded to exactly so many bytes, for servers
	 * that take only parts of one length. 0: parts have any length. */
	uint64_t part_bytes;
	/* "zstd-1.5.7:3", or a name by gzip_name(); if part_bytes is set, followed by "=16777216".
	 * Encodings of the same name make the same bytes of the same input. Marks and the metadata
	 * of objects have this name. */
	char name[ENCODING_MAX + 1];
};

/* Parses "zstd" or "gzip", with or without ":LEVEL". Returns 0, or -EINVAL or -ENOMEM with a
 * sentence. */
int encoding_parse(const char *text, struct encoding *ret, struct problem *ret_problem);
/* Returns the same encoding with parts of this length, which is greater than 0. */
struct encoding encoding_in_parts(const struct encoding *encoding, uint64_t part_bytes);
/* Finds the encoding of this name. Returns 0, or -ENOENT if this program would make other bytes on
 * this host: it does not know the compressor, it has another version of it, or the CPU is another
 * one. */
int encoding_named(const char *name, struct encoding *ret);
/* Returns the memory that one compressor needs, in bytes. */
size_t encoding_memory(const struct encoding *encoding);
