/* The output of a producer: it is read from the pipe into a file without a name, which is then
 * opened and sent like any other (file_open.c, send.c). send.c calls spool_take() for a file that
 * is claimed and has not come yet. The only request here is the HEAD of the key. The caller of this
 * library runs the producer (s3once_read). */
#include "upload/file/spool.h"
#include "base/clock.h"
#include "base/files.h"
#include "upload/file/file_open.h"
#include "upload/file/look.h"
#include "upload/file/worker.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES (1U << 20) /* bytes to read at a time; buffers may be smaller */

/* Makes the path of the kept output, "DIR/s3once-HASH", where DIR is options.spool. The name is a
 * hash, since a key has slashes and may be longer than a name. */
static void spool_path(const struct run *run, struct text *ret)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	char hex[2 * sizeof hash + 1];
	struct text about = TEXT(2048);
	text_addf(&about, "%s/%s/%s", run->space.service, run->space.bucket, run->options.as);
	if (run->options.producer_id) /* a NUL ends the key */
		text_addf(&about, "%c%s", '\0', run->options.producer_id);
	SHA256((const unsigned char *)text_string(&about), about.len, hash);
	text_clear(&about);
	hex_encode(hash, sizeof hash, hex);
	text_addf(ret, "%s/s3once-%.32s", run->options.spool, hex);
}

/* Returns the folder for the file of the output. */
static const char *folder_of(const struct run *run)
{
	return run->options.spool ? run->options.spool : temporary_folder();
}

/* Fails the file, since its output cannot be written to the disk. `error` is -errno, after so many
 * bytes. */
static enum step fail_unkept_output(
	struct worker *worker, struct file *file, int error, uint64_t bytes)
{
	const bool is_full = error == -ENOSPC || error == -EDQUOT || error == -EFBIG;
	return file_fail(worker, file,
		PROBLEM("its output cannot be kept in %s (%s) after %" PRIu64 " bytes%s",
			quote(folder_of(worker->run)).text, strerror(-error), bytes,
			is_full ? "; make room there, or name a folder with more room by --spool "
				  "or TMPDIR"
				: ""));
}

/* Reports that the producer has been silent for the time limit of a request, after so many bytes.
 */
static void report_silence(struct worker *worker, const struct file *file, uint64_t bytes)
{
	report_run(worker->report, S3ONCE_EVENT_NOTE,
		PROBLEM("%s: nothing came for %" PRIu64 " s, after %" PRIu64
			" bytes; it is waited for, unless --max-duration ends that",
			quote(file->candidate->path).text,
			worker->options->request_timeout_ms / 1000, bytes));
}

/* Reads all output into the descriptor. Returns NEXT once it is whole, or the step to take instead.
 * Sets *ret_ended if the producer has ended. If it has not, a last call still has to end it. */
static enum step read_output(struct worker *worker, struct file *file, int fd, bool *ret_ended)
{
	const struct s3once_options *o = worker->options;
	const struct reader *reader = &worker->reader;
	char failure[PROBLEM_SENTENCE_MAX] = ""; /* the producer's sentence about it */
	uint64_t bytes = 0, moved_ns = clock_boot_ns();
	bool reported_silence = false;
	while (!run_poll_is_stopping(worker->run)) {
		const long n = o->read(
			o->read_arg, reader->buffer, reader->buffer_bytes, failure, sizeof failure);
		if (n == -EAGAIN) { /* nothing came within a second */
			const uint64_t silent_ms = (clock_boot_ns() - moved_ns) / NS_PER_MS;
			if (!reported_silence && silent_ms >= o->request_timeout_ms) {
				report_silence(worker, file, bytes);
				reported_silence = true;
			}
			continue;
		}
		*ret_ended = n <= 0;
		if (n < 0)
			return file_fail(worker, file, PROBLEM("%s", failure));
		if (n == 0 && !bytes)
			return file_fail(worker, file,
				PROBLEM("ended without any output: no empty object is made of it; "
					"if that is no failure, let it write a first line"));
		if (n == 0)
			return STEP_NEXT;
		const int error = write_all(fd, reader->buffer, (size_t)n);
		bytes += (uint64_t)n;
		if (error)
			return fail_unkept_output(worker, file, error, bytes);
		moved_ns = clock_boot_ns();
		reported_silence = false;
	}
	return STEP_OVER;
}

/* Makes the last call of an s3once_read whose output is not read to its end, which ends the
 * producer. */
static void end_producer(const struct s3once_options *o)
{
	char unused_failure[1] = "";
	o->read(o->read_arg, NULL, 0, unused_failure, sizeof unused_failure);
}

/* Runs the producer to its end. Returns NEXT with a descriptor of the whole output in *ret, or the
 * step to take instead. With options.spool, the output then gets this path. A file with this path
 * counts as whole for the next run, so its content is synced to the disk before. */
static enum step make_output(struct worker *worker, struct file *file, const char *path, int *ret)
{
	const struct s3once_options *o = worker->options;
	char by_fd[40];
	bool has_ended = false;
	const int fd = make_unnamed_file(folder_of(worker->run));
	/* worker_run() takes the buffer back. It has lent none before, since the scan has found 0
	 * bytes. */
	buffers_lend(&worker->run->bodies.buffers, &worker->reader, READ_BYTES);
	enum step step = fd < 0 ? fail_unkept_output(worker, file, fd, 0)
				: read_output(worker, file, fd, &has_ended);
	if (fd >= 0 && !has_ended)
		end_producer(o);
	if (step != STEP_NEXT) {
		if (fd >= 0)
			close(fd);
		return step;
	}
	/* By this path, linkat() gives a name to a file that has none. If that fails, the output is
	 * sent all the same. */
	snprintf(by_fd, sizeof by_fd, "/proc/self/fd/%d", fd);
	if (o->spool && (fsync(fd) || linkat(AT_FDCWD, by_fd, AT_FDCWD, path, AT_SYMLINK_FOLLOW)))
		report_run(worker->report, S3ONCE_EVENT_WARNING,
			PROBLEM("the output is not kept in %s (%s): a kill would lose it",
				quote(path).text, strerror(errno)));
	*ret = fd;
	return STEP_NEXT;
}

/* Opens the output that an earlier run of this user has kept. A file that another user may have put
 * there is refused. Returns a descriptor, or -errno if there is nothing to use, which is -ENOENT if
 * there is no file. */
static int open_kept(const char *path)
{
	struct stat st = {0};
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int error = (fd < 0 || fstat(fd, &st)) ? -errno : 0;
	/* A process that knows another hard link could still write to the file. */
	const bool is_ours_alone =
		S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1;
	if (!error && !is_ours_alone)
		error = -EPERM;
	if (error && fd >= 0)
		close(fd);
	return error ? error : fd;
}

enum step spool_take(struct worker *worker, struct file *file)
{
	struct run *run = worker->run;
	struct file_state state;
	struct text path = TEXT(4096);
	/* The key that the object will have, unless the output turns out to be compressed
	 * already. */
	enum step step = *run->bodies.encoding.name ? file_add_suffix(worker, file) : STEP_NEXT;
	if (step == STEP_NEXT)
		step = look_at_object(worker, file, LOOK_OPTIONAL);
	if (step != STEP_NEXT)
		return step;
	if (run->options.spool)
		spool_path(run, &path);
	int fd = run->options.spool ? open_kept(text_string(&path)) : -ENOENT;
	if (fd >= 0)
		report_run(worker->report, S3ONCE_EVENT_NOTE,
			PROBLEM("the output that an earlier run has kept in %s is sent",
				quote(text_string(&path)).text));
	else if (fd == -ENOENT)
		step = make_output(worker, file, text_string(&path), &fd);
	else
		step = file_fail(worker, file,
			PROBLEM("kept output %s cannot be used (%s): remove it, or change --spool",
				quote(text_string(&path)).text, strerror(-fd)));
	text_clear(&path);
	if (step != STEP_NEXT)
		return step;
	/* The output is a file from here on. The scan has counted the file, but not its bytes. */
	run->piped_fd = fd;
	if (!file_state_of(fd, &state))
		report_count_found(worker->report, 0, state.size);
	return file_open(worker, file);
}

void spool_forget(const struct run *run)
{
	struct text path = TEXT(4096);
	if (!run->options.spool)
		return;
	spool_path(run, &path);
	/* only a file that a run would use is removed */
	const int fd = open_kept(text_string(&path));
	if (fd >= 0) {
		unlink(text_string(&path));
		close(fd);
	}
	text_clear(&path);
}
