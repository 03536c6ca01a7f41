/* How the content of a file is encoded before it is sent: with which compressor, of which version,
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
	/* "zstd-1.5.7:3", or as gzip_name() has it, with "=16777216" behind it if parts have that
	 * length: what has the same name makes the same bytes of the same input. In marks and in
	 * the metadata of objects. */
	char name[ENCODING_MAX + 1];
};

/* "zstd", "gzip", or one of them with ":LEVEL". 0, or -EINVAL or -ENOMEM with a sentence. */
int encoding_parse(const char *text, struct encoding *ret, struct problem *ret_problem);
/* The same encoding with parts of this length, greater than 0. */
struct encoding encoding_in_parts(const struct encoding *encoding, uint64_t part_bytes);
/* What has this name. 0; -ENOENT if this program would make other bytes on this host: it has
 * another version of the compressor, or does not know it, or the CPU is another one. */
int encoding_named(const char *name, struct encoding *ret);
/* The memory that one stream of it needs, in bytes. */
size_t encoding_memory(const struct encoding *encoding);
