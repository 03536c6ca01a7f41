/* A manifest as a compressed file. The run adds lines; verify and `s3once manifest` read them.
 * Memory does not grow with the number of lines. The bytes that are read need not be trusted. A
 * manifest that could not be written whole is never sent. */
#define ZLIB_CONST /* makes zlib's pointers to input const */
#include "manifest/manifest_file.h"
#include "base/files.h"
#include "base/text.h"
#include "store/state_folder.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>
#include <zlib.h>

#define BUFFER_BYTES (64U << 10)
#define GZIP_WINDOW  (15 + 16) /* the largest window, with the header and trailer of gzip */
#define GZIP_MEMORY  8         /* zlib's default for memLevel */

struct manifest_spool {
	int fd;              /* descriptor of the temporary file; negative: it could not be made */
	uint64_t sent_bytes; /* the offset at which the body is read next */
	struct sums sums;    /* checksums of the compressed bytes, once the manifest is finished */
	struct {
		uv_mutex_t mutex;
		z_stream deflate;
		struct digest digest;
		unsigned char buffer[BUFFER_BYTES];
		int error; /* 0, or the -errno of the first failure */
	} locked;
};

int manifest_temporary_file(struct problem *ret_problem)
{
	char state[4096];
	const char *const others[] = {"/var/tmp", "/tmp"};
	const int error = state_path("", FOLDER_MADE, state, sizeof state);
	int fd = error ? error : make_unnamed_file(state);
	for (size_t i = 0; fd < 0 && i < sizeof others / sizeof *others; i++)
		fd = make_unnamed_file(others[i]);
	if (fd < 0)
		problem_set(ret_problem,
			"the manifest needs a temporary file, which can be made neither in the state "
			"folder nor in /tmp: %s",
			strerror(-fd));
	return fd;
}

void manifest_explain_write_error(int fd, int error, struct problem *ret_problem)
{
	char link[64], path[4096];
	/* The file has no name, but the link of its descriptor names the folder that it is in. */
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	read_link(link, path, sizeof path);
	char *name = strrchr(path, '/');
	if (name)
		*name = '\0';
	problem_set(ret_problem, "its temporary file%s%s cannot be written: %s%s",
		name ? " in " : "", name ? quote(path).text : "", strerror(-error),
		error == -ENOSPC || error == -EDQUOT ? "; make room there" : "");
}

int manifest_spool_new(unsigned kinds, struct manifest_spool **ret, struct problem *ret_problem)
{
	struct manifest_spool *spool = calloc(1, sizeof *spool);
	int error = spool ? digest_init(&spool->locked.digest, kinds) : -ENOMEM;
	if (error) { /* manifest_spool_free() needs the digest and the mutex */
		free(spool);
		return problem_error(
			ret_problem, error, "the manifest cannot be begun: %s", strerror(-error));
	}
	uv_mutex_init(&spool->locked.mutex);
	spool->locked.deflate.next_out = spool->locked.buffer;
	spool->locked.deflate.avail_out = BUFFER_BYTES;
	spool->fd = -1;
	if (deflateInit2(&spool->locked.deflate, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
		    GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) {
		manifest_spool_free(spool);
		return problem_error(ret_problem, -ENOMEM, "out of memory");
	}
	spool->fd = manifest_temporary_file(ret_problem);
	if (spool->fd < 0) {
		error = spool->fd;
		manifest_spool_free(spool);
		return error;
	}
	*ret = spool;
	return 0;
}

void manifest_spool_free(struct manifest_spool *spool)
{
	if (!spool)
		return;
	if (spool->fd >= 0)
		close(spool->fd);
	deflateEnd(&spool->locked.deflate);
	digest_clear(&spool->locked.digest);
	uv_mutex_destroy(&spool->locked.mutex);
	free(spool);
}

/* Writes the compressed bytes in the buffer to the file, and empties the buffer. */
static void write_buffer_locked(struct manifest_spool *spool)
{
	z_stream *z = &spool->locked.deflate;
	const size_t n = BUFFER_BYTES - z->avail_out;
	digest_update(&spool->locked.digest, spool->locked.buffer, n);
	spool->locked.error = write_all(spool->fd, spool->locked.buffer, n);
	z->next_out = spool->locked.buffer;
	z->avail_out = BUFFER_BYTES;
}

/* Compresses n bytes, and writes the buffer to the file whenever it is full. `how` is Z_NO_FLUSH,
 * or Z_FINISH to write all that is left. The first error is kept in spool->locked.error, and after
 * it nothing more is done. */
static void compress_bytes_locked(
	struct manifest_spool *spool, const char *bytes, size_t n, int how)
{
	z_stream *z = &spool->locked.deflate;
	bool has_ended = false; /* with Z_FINISH, nothing is left */
	z->next_in = (const unsigned char *)bytes;
	z->avail_in = (uInt)n;
	while (!spool->locked.error && (z->avail_in || (how == Z_FINISH && !has_ended))) {
		const int rc =
			deflate(z, how); /* Z_BUF_ERROR is no failure: it cannot continue yet */
		if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) {
			spool->locked.error = -EIO;
			return;
		}
		has_ended = rc == Z_STREAM_END;
		const bool is_full = z->avail_out == 0;
		if (is_full || has_ended)
			write_buffer_locked(spool);
	}
}

void manifest_spool_add(struct manifest_spool *spool, const char *line)
{
	uv_mutex_lock(&spool->locked.mutex);
	if (!line && !spool->locked.error)
		spool->locked.error = -ENOMEM;
	if (line) {
		compress_bytes_locked(spool, line, strlen(line), Z_NO_FLUSH);
		compress_bytes_locked(spool, "\n", 1, Z_NO_FLUSH);
	}
	uv_mutex_unlock(&spool->locked.mutex);
}

bool manifest_spool_finish(struct manifest_spool *spool, struct problem *ret_problem)
{
	uv_mutex_lock(&spool->locked.mutex);
	compress_bytes_locked(spool, NULL, 0, Z_FINISH);
	digest_finish(&spool->locked.digest, &spool->sums);
	const int error = spool->locked.error;
	uv_mutex_unlock(&spool->locked.mutex);
	if (error == -ENOMEM)
		problem_set(ret_problem, "out of memory");
	else if (error)
		manifest_explain_write_error(spool->fd, error, ret_problem);
	return !error;
}

const struct sums *manifest_spool_sums(const struct manifest_spool *spool)
{
	return &spool->sums;
}

/* Reads up to n bytes at *offset, and advances *offset. Returns the number of bytes read, 0 at the
 * end of the file, or -errno. */
static ssize_t read_some(int fd, void *buffer, size_t n, uint64_t *offset)
{
	ssize_t got;
	do
		got = pread(fd, buffer, n, (off_t)*offset);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	*offset += (uint64_t)got;
	return got;
}

static long read_body(void *arg, void *buffer, size_t n)
{
	struct manifest_spool *spool = arg;
	return read_some(spool->fd, buffer, n, &spool->sent_bytes);
}

static int rewind_body(void *arg, uint64_t offset)
{
	((struct manifest_spool *)arg)->sent_bytes = offset;
	return 0;
}

struct http_body manifest_spool_body(struct manifest_spool *spool)
{
	spool->sent_bytes = 0;
	return (struct http_body){
		.bytes = spool->sums.bytes, .read = read_body, .rewind = rewind_body, .arg = spool};
}

struct manifest_reader {
	int fd;
	uint64_t offset; /* offset in the file */
	z_stream inflate;
	bool has_ended; /* the trailer of gzip was read, and is right */
	unsigned char in[BUFFER_BYTES];
	char out[BUFFER_BYTES];
	size_t out_begin, out_end; /* [out_begin, out_end): the unread bytes of `out` */
	struct text line;
	uint64_t line_number; /* number of the line that was read last; 0: none was */
	json_t *owner;        /* the JSON that owns the last entry */
};

int manifest_reader_new(int fd, struct manifest_reader **ret, struct problem *ret_problem)
{
	struct manifest_reader *reader = calloc(1, sizeof *reader);
	if (!reader || inflateInit2(&reader->inflate, GZIP_WINDOW) != Z_OK) {
		free(reader);
		return problem_error(ret_problem, -ENOMEM, "out of memory");
	}
	reader->fd = fd;
	reader->line = TEXT(MANIFEST_LINE_MAX);
	*ret = reader;
	return 0;
}

void manifest_reader_free(struct manifest_reader *reader)
{
	if (!reader)
		return;
	inflateEnd(&reader->inflate);
	text_clear(&reader->line);
	json_decref(reader->owner);
	free(reader);
}

/* Sets the sentence that the manifest is damaged after the last line that was read. Returns
 * -EBADMSG. */
static int refuse_damage(
	const struct manifest_reader *reader, const char *how, struct problem *ret_problem)
{
	return problem_error(ret_problem, -EBADMSG, "it is damaged after line %" PRIu64 ": %s",
		reader->line_number, how);
}

/* Replaces the bytes in reader->in, all of which were inflated, by the next ones of the file.
 * Returns 1, 0 at the end of the file, or -errno with a sentence. */
static int read_input(struct manifest_reader *reader, struct problem *ret_problem)
{
	const ssize_t n = read_some(reader->fd, reader->in, BUFFER_BYTES, &reader->offset);
	if (n < 0)
		return problem_error(
			ret_problem, (int)n, "it cannot be read: %s", strerror((int)-n));
	reader->inflate.next_in = reader->in;
	reader->inflate.avail_in = (uInt)n;
	return n > 0;
}

/* Replaces the bytes in reader->out by the next bytes of the manifest, at least one. Returns 1, 0
 * at the end of the manifest, or -errno with a sentence. */
static int inflate_some(struct manifest_reader *reader, struct problem *ret_problem)
{
	z_stream *z = &reader->inflate;
	z->next_out = (unsigned char *)reader->out;
	z->avail_out = BUFFER_BYTES;
	reader->out_begin = reader->out_end = 0;
	while (z->avail_out == BUFFER_BYTES) { /* nothing was inflated yet */
		const int r = z->avail_in ? 1 : read_input(reader, ret_problem);
		if (r < 0)
			return r;
		const bool is_file_end = r == 0;
		if (is_file_end && reader->has_ended)
			return 0;
		if (is_file_end)
			return refuse_damage(reader, "its end is missing", ret_problem);
		if (reader->has_ended)
			return refuse_damage(reader, "other bytes follow its end", ret_problem);
		/* Z_BUF_ERROR is no failure: more input is needed. */
		const int rc = inflate(z, Z_NO_FLUSH);
		if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
			return refuse_damage(
				reader, "its bytes are not what gzip has written", ret_problem);
		reader->has_ended = rc == Z_STREAM_END;
	}
	reader->out_end = BUFFER_BYTES - z->avail_out;
	return 1;
}

/* Reads the next line into reader->line. Returns 1, 0 at the end of the manifest, or -errno with a
 * sentence. */
static int read_line(struct manifest_reader *reader, struct problem *ret_problem)
{
	text_reset(&reader->line);
	for (;;) {
		const char *begin = reader->out + reader->out_begin;
		const size_t unread = reader->out_end - reader->out_begin;
		const char *newline = unread ? memchr(begin, '\n', unread) : NULL;
		/* The bytes up to the newline or, without one, all that are left in `out`. */
		const size_t n = newline ? (size_t)(newline - begin) : unread;
		text_add_bytes(&reader->line, begin, n);
		reader->out_begin += n + (newline != NULL);
		if (reader->line.error)
			return refuse_damage(reader, "the next line is too long", ret_problem);
		if (newline)
			return 1;
		const int r = inflate_some(reader, ret_problem);
		if (r == 0 && reader->line.len)
			return refuse_damage(reader, "the last line has no end", ret_problem);
		if (r <= 0)
			return r;
	}
}

int manifest_reader_next(
	struct manifest_reader *reader, struct manifest_entry *ret, struct problem *ret_problem)
{
	const int r = read_line(reader, ret_problem);
	json_decref(reader->owner); /* the entry before this one is no longer borrowed */
	reader->owner = NULL;
	if (r <= 0)
		return r;
	reader->line_number++;
	if (manifest_entry_read(
		    text_string(&reader->line), reader->line.len, ret, &reader->owner, ret_problem))
		return 1;
	problem_prefix(ret_problem, "line %" PRIu64, reader->line_number);
	return -EBADMSG;
}

const char *manifest_reader_line(const struct manifest_reader *reader)
{
	return text_string(&reader->line);
}
