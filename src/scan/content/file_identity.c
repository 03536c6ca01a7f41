#include "scan/content/file_identity.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <string.h>
#include <sys/vfs.h>

/* Handles of FUSE may be those of other files after the next mount. */
static bool has_lasting_handles(const struct statfs *fs)
{
	static const __fsid_t none;
	return fs->f_type != FUSE_SUPER_MAGIC && memcmp(&fs->f_fsid, &none, sizeof none) != 0;
}

static void add_identity_bytes(struct file_identity *identity, const void *bytes, size_t n)
{
	memcpy(identity->bytes + identity->n, bytes, n);
	identity->n += n;
}

int file_identity_of(int fd, struct file_identity *ret)
{
	struct statfs fs;
	union {
		struct file_handle handle;
		unsigned char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} u = {.handle.handle_bytes = MAX_HANDLE_SZ};
	int mount;
	_Static_assert(
		sizeof fs.f_type + sizeof fs.f_fsid + sizeof u.handle.handle_type + MAX_HANDLE_SZ <=
			FILE_IDENTITY_BYTES_MAX,
		"an identity has room for every handle");
	if (fstatfs(fd, &fs) < 0 || !has_lasting_handles(&fs) ||
		name_to_handle_at(fd, "", &u.handle, &mount, AT_EMPTY_PATH) < 0)
		return -ENOTSUP;
	ret->n = 0;
	add_identity_bytes(ret, &fs.f_type, sizeof fs.f_type);
	add_identity_bytes(ret, &fs.f_fsid, sizeof fs.f_fsid);
	add_identity_bytes(ret, &u.handle.handle_type, sizeof u.handle.handle_type);
	add_identity_bytes(ret, u.handle.f_handle, u.handle.handle_bytes);
	return 0;
}

/* A lease to read is refused while anybody writes. Who opens the file while it is held waits for
 * this process to give it back, which it does at once; the signal that asks for it would end the
 * process if it were SIGIO, and SIGURG is ignored unless somebody handles it. */
bool file_is_being_written(int fd)
{
	if (fcntl(fd, F_SETSIG, SIGURG) < 0)
		return false;
	if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
		return errno == EAGAIN;
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return false;
}
