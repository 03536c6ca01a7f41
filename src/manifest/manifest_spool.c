#define ZLIB_CONST /* its input is const */
#include "manifest/manifest_spool.h"
#include "base/quote.h"
#include "base/unnamed_file.h"
#include "base/write_all.h"
#include "store/state_folder.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>
#include <zlib.h>

#define BUFFER_BYTES (64U << 10)
#define GZIP_WINDOW  (15 + 16) /* the largest window, with the header and trailer of gzip */
#define GZIP_MEMORY  8

struct manifest_spool {
	int fd;
	uint64_t sent_bytes; /* where the body is read next */
	struct sums sums;    /* of a finished one */
	struct {
		uv_mutex_t mutex;
		z_stream deflate;
		struct digest digest;
		unsigned char buffer[BUFFER_BYTES];
		int error; /* 0, or the -errno of the first failure */
	} locked;
};

int manifest_open_file(struct problem *ret_problem)
{
	char state[4096];
	const char *const others[] = {"/var/tmp", "/tmp"};
	const int error = state_file("", state, sizeof state);
	int fd = error ? error : unnamed_file(state);
	for (size_t i = 0; fd < 0 && i < sizeof others / sizeof *others; i++)
		fd = unnamed_file(others[i]);
	if (fd < 0)
		problem_set(ret_problem,
			"the manifest needs a temporary file, which can be made neither in the state "
			"folder nor in /tmp: %s",
			strerror(-fd));
	return fd;
}

void manifest_tell_unwritten(int fd, int error, struct problem *ret_problem)
{
	char link[64], path[4096];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	const ssize_t n = readlink(link, path, sizeof path - 1);
	char *name = n > 0 ? memrchr(path, '/', (size_t)n) : NULL;
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
	if (error) {
		free(spool);
		problem_set(ret_problem, "the manifest cannot be begun: %s", strerror(-error));
		return error;
	}
	uv_mutex_init(&spool->locked.mutex);
	spool->fd = -1;
	if (deflateInit2(&spool->locked.deflate, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
		    GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) {
		problem_set(ret_problem, "out of memory");
		manifest_spool_free(spool);
		return -ENOMEM;
	}
	spool->locked.deflate.next_out = spool->locked.buffer;
	spool->locked.deflate.avail_out = BUFFER_BYTES;
	spool->fd = manifest_open_file(ret_problem);
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

/* Empties the buffer into the file. */
static void flush_spool(struct manifest_spool *spool)
{
	const size_t n = BUFFER_BYTES - spool->locked.deflate.avail_out;
	digest_update(&spool->locked.digest, spool->locked.buffer, n);
	if (!spool->locked.error)
		spool->locked.error = write_all(spool->fd, spool->locked.buffer, n);
	spool->locked.deflate.next_out = spool->locked.buffer;
	spool->locked.deflate.avail_out = BUFFER_BYTES;
}

/* The caller holds the mutex. */
static void compress_bytes(struct manifest_spool *spool, const char *bytes, size_t n, int how)
{
	z_stream *z = &spool->locked.deflate;
	int rc = Z_OK;
	z->next_in = (const unsigned char *)bytes;
	z->avail_in = (uInt)n;
	while (!spool->locked.error && (z->avail_in || (how == Z_FINISH && rc != Z_STREAM_END))) {
		rc = deflate(z, how);
		if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
			spool->locked.error = -EIO;
		if (!z->avail_out || rc == Z_STREAM_END)
			flush_spool(spool);
	}
}

void manifest_spool_add(struct manifest_spool *spool, const char *line)
{
	uv_mutex_lock(&spool->locked.mutex);
	if (!line && !spool->locked.error)
		spool->locked.error = -ENOMEM;
	if (line) {
		compress_bytes(spool, line, strlen(line), Z_NO_FLUSH);
		compress_bytes(spool, "\n", 1, Z_NO_FLUSH);
	}
	uv_mutex_unlock(&spool->locked.mutex);
}

bool manifest_spool_finish(struct manifest_spool *spool, struct problem *ret_problem)
{
	uv_mutex_lock(&spool->locked.mutex);
	compress_bytes(spool, NULL, 0, Z_FINISH);
	digest_finish(&spool->locked.digest, &spool->sums);
	const int error = spool->locked.error;
	uv_mutex_unlock(&spool->locked.mutex);
	if (error == -ENOMEM)
		problem_set(ret_problem, "out of memory");
	else if (error)
		manifest_tell_unwritten(spool->fd, error, ret_problem);
	return !error;
}

const struct sums *manifest_spool_sums(const struct manifest_spool *spool)
{
	return &spool->sums;
}

static long read_body(void *arg, void *buffer, size_t n)
{
	struct manifest_spool *spool = arg;
	ssize_t got;
	do
		got = pread(spool->fd, buffer, n, (off_t)spool->sent_bytes);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	spool->sent_bytes += (uint64_t)got;
	return got;
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
