/* The formats behind decompress.h. Internal to decompress*.c. */
#pragma once
#include "scan/content/decompress.h"
#include <bzlib.h>
#include <lz4frame.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

/* What one call of a library did. */
enum decompress_step {
	STEP_MORE, /* it goes on */
	STEP_END,  /* a member or frame has ended */
	STEP_DAMAGED,
	STEP_TOO_LARGE,
	STEP_NO_MEMORY,
};

struct decompress_format {
	bool (*begins)(const unsigned char *first, size_t n);
	bool (*init)(struct decompress *d);
	enum decompress_step (*run)(struct decompress *d, struct decompress_io *io, bool last);
	bool (*restart)(struct decompress *d); /* after END, before more; NULL: by itself */
	void (*clear)(struct decompress *d);
};

struct decompress {
	const struct decompress_format *format;
	bool is_initialised, has_ended;
	union {
		z_stream gzip;
		bz_stream bzip2;
		lzma_stream xz;
		ZSTD_DStream *zstd;
		LZ4F_dctx *lz4;
	};
};

/* The format that begins so, or NULL. Static. */
const struct decompress_format *decompress_format_of(const void *first, size_t n);
