/* The file of --log-file, which output.c appends its lines to. push_options.c asks before a run
 * whether it can be made. The file is never cut or renamed, which is logrotate's to do. */
#include "cli/log_file.h"
#include "base/files.h"
#include "base/must_have.h"
#include "base/quote.h"
#include "cli/options/values.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODE 0640 /* less what the umask takes away */

struct log_file {
	char *path;
	int fd; /* -1: it is not open */
	dev_t dev;
	ino_t ino;
	bool is_cut;   /* the last line may be there in part */
	bool is_wrong; /* the last line could not be written, and that was said */
	int error;     /* of the first line that could not be written */
};

int log_file_check(const char *path, struct problem *ret_problem)
{
	const struct file_option option = {.name = "--log-file",
		.path = path,
		.example = "s3once.log",
		.other = "name a file in another one"};
	struct stat st;
	if (file_option_check(&option, ret_problem))
		return -EINVAL;
	const bool is_there = stat(path, &st) == 0;
	char *folder = is_there ? NULL : must_have(path_folder(path));
	int error = -EINVAL;
	if (folder && faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS))
		problem_set(ret_problem,
			"--log-file: %s cannot be made: %s: allow it to this user, or name a file "
			"in another directory",
			quote(path).text, strerror(errno));
	else if (is_there && !S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
		problem_set(ret_problem,
			"--log-file: %s is neither a file nor a device: name a file, or leave the "
			"option out and redirect the output",
			quote(path).text);
	else if (is_there && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS))
		problem_set(ret_problem,
			"--log-file: %s cannot be written: %s: allow it to this user, or name "
			"another file",
			quote(path).text, strerror(errno));
	else
		error = 0;
	free(folder);
	return error;
}

struct log_file *log_file_new(const char *path)
{
	struct log_file *file = must_have(calloc(1, sizeof *file));
	*file = (struct log_file){.path = must_have(strdup(path)), .fd = -1};
	return file;
}

int log_file_free(struct log_file *file)
{
	const int error = file ? file->error : 0;
	if (file && file->fd >= 0)
		close(file->fd);
	if (file)
		free(file->path);
	free(file);
	return error;
}

/* Opens the file that the path leads to by now. If it cannot be opened, the one that is open stays
 * in use. Without O_NONBLOCK, opening a FIFO that somebody has put there would wait. */
static int open_current(struct log_file *file)
{
	struct stat st;
	const bool is_open = file->fd >= 0, is_there = is_open && stat(file->path, &st) == 0;
	const bool has_moved =
		is_there ? st.st_dev != file->dev || st.st_ino != file->ino : errno == ENOENT;
	if (is_open && !has_moved)
		return 0;
	const int fd = open(file->path,
		O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, MODE);
	if (fd < 0 || fstat(fd, &st)) {
		const int error = -errno;
		if (fd >= 0)
			close(fd);
		return is_open ? 0 : error;
	}
	if (is_open)
		close(file->fd);
	file->fd = fd;
	file->dev = st.st_dev;
	file->ino = st.st_ino;
	file->is_cut = false;
	return 0;
}

int log_file_write(struct log_file *file, const char *line, size_t n)
{
	int error = open_current(file);
	if (!error && file->is_cut)
		error = write_all(file->fd, "\n", 1);
	if (!error) {
		error = write_all(file->fd, line, n);
		file->is_cut = error != 0;
	}
	if (error && !file->is_wrong)
		dprintf(STDERR_FILENO,
			"s3once: error: --log-file: cannot write to %s: %s; lines are printed "
			"instead until it can be written again\n",
			quote(file->path).text, strerror(-error));
	file->is_wrong = error != 0;
	if (error && !file->error)
		file->error = error;
	return error;
}
