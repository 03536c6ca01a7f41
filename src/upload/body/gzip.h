/* Makes gzip members. isa-l makes those of the levels 1 to 3 if this program was built with it.
 * zlib makes all others. One thread at a time. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct gzip;
/* Begins a member at a level from 1 to 9. *gzip is NULL at first, and is kept for the next member.
 * Returns 0 or -ENOMEM. */
int gzip_begin(struct gzip **gzip, int level);
/* NULL is fine. */
void gzip_free(struct gzip *gzip);

struct gzip_buffers {
	unsigned char *in, *out;
	size_t in_bytes, out_bytes;
	bool is_last; /* no more input comes */
	/* Set by gzip_run(): the number of input bytes taken, and whether the member is
	 * complete. */
	size_t used;
	bool has_ended;
};
/* Compresses the next input of the member. Returns the number of bytes written to buffers->out, or
 * -ENOMEM. */
long gzip_run(struct gzip *gzip, struct gzip_buffers *buffers);

/* Writes the name of the compressor of a level: "zlib-1.2.13:6", "isal-83a0c1f2:1". Compressors of
 * the same name make the same bytes of the same chunks of input. isa-l does not expose its version
 * and makes other bytes on other CPUs, so its name has the CRC of its output for a sample. Returns
 * 0 or -ENOMEM. */
int gzip_name(int level, char *ret, size_t bytes);
/* The memory that a member at a level needs, in bytes. */
size_t gzip_memory(int level);
