/* Loaded into the program by LD_PRELOAD to make this host misbehave:
 * S3ONCE_TEST_BOOTTIME=FILE: CLOCK_BOOTTIME alone is ahead by the seconds that FILE holds now (an
 * int64_t), as after a suspend.
 * S3ONCE_TEST_REALTIME=FILE: the same of CLOCK_REALTIME, as after a step.
 * S3ONCE_TEST_READ=eio|enomem|short|zero, S3ONCE_TEST_READ_PATH=TEXT,
 * S3ONCE_TEST_READ_FROM=N: from the Nth pread on (from 1), of files with TEXT in their path, fails
 * with EIO or ENOMEM, gives at most 3 bytes fewer than half, or says that the file has ended.
 * S3ONCE_TEST_READ=hang, S3ONCE_TEST_READ_HUNG=FILE: it returns when FILE is gone.
 * S3ONCE_TEST_READ=stale: the Nth alone fails with ESTALE, as NFS does where a file was replaced.
 * S3ONCE_TEST_FSTATFS=NUMBER: every file system says that it is of this type.
 * S3ONCE_TEST_LIST_HUNG=FILE, S3ONCE_TEST_LIST_PATH=TEXT: while FILE exists, to read a directory
 * with TEXT in its path does not return.
 * S3ONCE_TEST_SLOW_OPEN=TEXT: to open a file with TEXT in its path for reading takes up to 20 ms.
 * S3ONCE_TEST_COPIES=whole_seconds|emfile: files without a name have a modification time of whole
 * seconds; or there are no descriptors for them.
 * S3ONCE_TEST_HUNG_DNS=FILE: while FILE exists, to look up a name takes a minute and fails;
 * else each name is this host's.
 * S3ONCE_TEST_LED_TO=PORT: each name is this host's, and whatever is connected to by TCP, at any
 * address and port, is this port of 127.0.0.1.
 * S3ONCE_TEST_NO_CURL=1: libcurl cannot be set up.
 * S3ONCE_TEST_NO_PROCESS=1: no process can be started.
 * S3ONCE_TEST_KILLED_AT=N: before its Nth mkdirat, renameat2 or unlinkat the program is killed.
 * S3ONCE_TEST_SYNCED=FILE: each time that SQLite syncs the write-ahead log of marks.db, what was
 * written to it since the last sync is written to FILE, too. A failure of power may take what is
 * not in that. FILE.dirty has which pages these are, a byte each. S3ONCE_TEST_SYNC_FAILS=N: the Nth
 * time, they are not written, and the sync fails with EIO. As Linux has it, the next sync does not
 * write them either and succeeds. Then FILE.failed is there. S3ONCE_TEST_SYNC_HUNG=FILE: while FILE
 * exists, such a sync does not return.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

static const volatile int64_t *boot_ahead_s, *real_ahead_s;
static atomic_uint reads;
static atomic_bool has_been_stale;

static const volatile int64_t *map_seconds(const char *path)
{
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return NULL;
	void *map = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return map == MAP_FAILED ? NULL : map;
}

__attribute__((constructor)) static void begin(void)
{
	boot_ahead_s = map_seconds(getenv("S3ONCE_TEST_BOOTTIME"));
	real_ahead_s = map_seconds(getenv("S3ONCE_TEST_REALTIME"));
}

PUBLIC int clock_gettime(clockid_t id, struct timespec *ret)
{
	static int (*real)(clockid_t, struct timespec *);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	int r = real(id, ret);
	if (!r && id == CLOCK_BOOTTIME && boot_ahead_s)
		ret->tv_sec += (time_t)*boot_ahead_s;
	if (!r && id == CLOCK_REALTIME && real_ahead_s)
		ret->tv_sec += (time_t)*real_ahead_s;
	return r;
}

static int claim_type(int r, unsigned *type)
{
	const char *claimed = getenv("S3ONCE_TEST_FSTATFS");
	if (!r && claimed)
		*type = (unsigned)strtoul(claimed, NULL, 0);
	return r;
}

PUBLIC int fstatfs(int fd, struct statfs *ret)
{
	static int (*real)(int, struct statfs *);
	unsigned type = 0;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fstatfs");
	int r = claim_type(real(fd, ret), &type);
	if (type)
		ret->f_type = (__fsword_t)type;
	return r;
}

PUBLIC int fstatfs64(int fd, struct statfs64 *ret)
{
	static int (*real)(int, struct statfs64 *);
	unsigned type = 0;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fstatfs64");
	int r = claim_type(real(fd, ret), &type);
	if (type)
		ret->f_type = (__fsword_t)type;
	return r;
}

static bool has_in_path(int fd, const char *text)
{
	char link[64], path[4096];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof path - 1);
	if (n < 0)
		return false;
	path[n] = 0;
	return strstr(path, text);
}

static bool is_chosen(int fd)
{
	const char *text = getenv("S3ONCE_TEST_READ_PATH"), *from = getenv("S3ONCE_TEST_READ_FROM");
	return text && has_in_path(fd, text) && ++reads >= (unsigned)(from ? atoi(from) : 1);
}

static ssize_t misread(
	ssize_t (*real)(int, void *, size_t, off_t), int fd, void *buf, size_t n, off_t offset)
{
	const char *how = getenv("S3ONCE_TEST_READ");
	if (!how || !is_chosen(fd))
		return real(fd, buf, n, offset);
	if (strcmp(how, "eio") == 0 || strcmp(how, "enomem") == 0) {
		errno = how[1] == 'i' ? EIO : ENOMEM;
		return -1;
	}
	if (strcmp(how, "zero") == 0)
		return 0;
	if (strcmp(how, "stale") == 0) {
		if (has_been_stale)
			return real(fd, buf, n, offset);
		has_been_stale = true;
		errno = ESTALE;
		return -1;
	}
	if (strcmp(how, "hang") == 0) {
		while (!access(getenv("S3ONCE_TEST_READ_HUNG"), F_OK))
			usleep(10000);
		return real(fd, buf, n, offset);
	}
	return real(fd, buf, n > 8 ? n / 2 - 3 : 1, offset);
}

PUBLIC ssize_t pread(int fd, void *buf, size_t n, off_t offset)
{
	static ssize_t (*real)(int, void *, size_t, off_t);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pread");
	return misread(real, fd, buf, n, offset);
}

PUBLIC ssize_t pread64(int fd, void *buf, size_t n, off_t offset)
{
	static ssize_t (*real)(int, void *, size_t, off_t);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pread64");
	return misread(real, fd, buf, n, offset);
}

static bool copies_have(const char *fault)
{
	const char *has = getenv("S3ONCE_TEST_COPIES");
	return has && strcmp(has, fault) == 0;
}

PUBLIC int open64(const char *path, int flags, ...)
{
	static int (*real)(const char *, int, ...);
	const char *slow = getenv("S3ONCE_TEST_SLOW_OPEN");
	struct timespec now;
	va_list more;
	va_start(more, flags);
	const bool makes = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
	const mode_t mode = makes ? (mode_t)va_arg(more, unsigned) : 0;
	va_end(more);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "open64");
	if (slow && (flags & O_ACCMODE) == O_RDONLY && strstr(path, slow) &&
		!clock_gettime(CLOCK_MONOTONIC, &now))
		usleep((useconds_t)now.tv_nsec / 1000 % 20000);
	errno = EMFILE;
	return copies_have("emfile") && (flags & O_TMPFILE) == O_TMPFILE ? -1
									 : real(path, flags, mode);
}

PUBLIC int fstat64(int fd, struct stat64 *ret)
{
	static int (*real)(int, struct stat64 *);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fstat64");
	const int r = real(fd, ret);
	if (r == 0 && !ret->st_nlink && copies_have("whole_seconds"))
		ret->st_mtim.tv_nsec = 0;
	return r;
}

PUBLIC int mkostemp64(char *path, int flags)
{
	static int (*real)(char *, int);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "mkostemp64");
	errno = EMFILE;
	return copies_have("emfile") ? -1 : real(path, flags);
}

static bool is_hung(DIR *dir)
{
	const char *hung = getenv("S3ONCE_TEST_LIST_HUNG"), *text = getenv("S3ONCE_TEST_LIST_PATH");
	return hung && text && !access(hung, F_OK) && has_in_path(dirfd(dir), text);
}

PUBLIC struct dirent64 *readdir64(DIR *dir)
{
	static struct dirent64 *(*real)(DIR *);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "readdir64");
	const int saved = errno;
	while (is_hung(dir))
		usleep(10000);
	errno = saved; /* at the end it stays what it was */
	return real(dir);
}

PUBLIC int getaddrinfo(
	const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
	static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
	const char *hung = getenv("S3ONCE_TEST_HUNG_DNS");
	const bool is_here = hung || getenv("S3ONCE_TEST_LED_TO");
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	if (hung && !access(hung, F_OK)) {
		sleep(60);
		return EAI_AGAIN;
	}
	return real(is_here ? "127.0.0.1" : name, service, hints, ret);
}

PUBLIC int connect(int fd, const struct sockaddr *address, socklen_t n)
{
	static int (*real)(int, const struct sockaddr *, socklen_t);
	const char *port = getenv("S3ONCE_TEST_LED_TO");
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "connect");
	if (!port || (address->sa_family != AF_INET && address->sa_family != AF_INET6))
		return real(fd, address, n);
	const struct sockaddr_in v4 = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)atoi(port)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = v4.sin_port};
	if (address->sa_family == AF_INET)
		return real(fd, (const struct sockaddr *)&v4, sizeof v4);
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &v6.sin6_addr);
	return real(fd, (const struct sockaddr *)&v6, sizeof v6);
}

static void count_change(void)
{
	static atomic_uint changes;
	const char *at = getenv("S3ONCE_TEST_KILLED_AT");
	if (at && ++changes == (unsigned)atoi(at))
		kill(getpid(), SIGKILL);
}

PUBLIC int mkdirat(int fd, const char *name, mode_t mode)
{
	static int (*real)(int, const char *, mode_t);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "mkdirat");
	count_change();
	return real(fd, name, mode);
}

PUBLIC int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	static int (*real)(int, const char *, int, const char *, unsigned);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "renameat2");
	count_change();
	return real(from_fd, from, to_fd, to, flags);
}

PUBLIC int unlinkat(int fd, const char *name, int flags)
{
	static int (*real)(int, const char *, int);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "unlinkat");
	count_change();
	return real(fd, name, flags);
}

enum { PAGE_BYTES = 4096 };

static int open_beside(const char *suffix, int flags)
{
	char name[4096];
	snprintf(name, sizeof name, "%s%s", getenv("S3ONCE_TEST_SYNCED"), suffix);
	const int fd = open(name, flags | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		abort();
	return fd;
}

static bool is_log(int fd)
{
	return getenv("S3ONCE_TEST_SYNCED") && has_in_path(fd, "marks.db-wal");
}

/* Of all processes that have the log open. The lock is had until it is closed. */
static int open_dirty(void)
{
	const int dirty = open_beside(".dirty", O_RDWR);
	flock(dirty, LOCK_EX);
	return dirty;
}

PUBLIC ssize_t pwrite64(int fd, const void *data, size_t n, off_t at)
{
	static ssize_t (*real)(int, const void *, size_t, off_t);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pwrite64");
	if (!is_log(fd))
		return real(fd, data, n, at);
	const int dirty = open_dirty();
	for (off_t page = at / PAGE_BYTES; page * PAGE_BYTES < at + (off_t)n; page++)
		if (real(dirty, "\1", 1, page) != 1)
			abort();
	const ssize_t written = real(fd, data, n, at);
	close(dirty);
	return written;
}

static void copy_page(int from, int to, off_t at)
{
	char page[PAGE_BYTES];
	const ssize_t n = pread(from, page, sizeof page, at);
	if (n > 0 && (lseek(to, at, SEEK_SET) != at || write(to, page, (size_t)n) != n))
		abort();
}

/* Nothing is written meanwhile, since that waits for the lock. */
static void end_dirty(int log, bool fails)
{
	const int dirty = open_dirty(), synced = open_beside("", O_WRONLY);
	char is_dirty;
	for (off_t page = 0; !fails && pread(dirty, &is_dirty, 1, page) == 1; page++)
		if (is_dirty)
			copy_page(log, synced, page * PAGE_BYTES);
	if (ftruncate(dirty, 0))
		abort();
	close(synced);
	close(dirty);
}

static bool sync_fails(void)
{
	static atomic_uint syncs;
	const char *at = getenv("S3ONCE_TEST_SYNC_FAILS");
	const bool fails = at && ++syncs == (unsigned)atoi(at);
	if (fails)
		close(open_beside(".failed", O_WRONLY));
	return fails;
}

PUBLIC int fdatasync(int fd)
{
	static int (*real)(int);
	const char *hung = getenv("S3ONCE_TEST_SYNC_HUNG");
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
	if (!is_log(fd))
		return real(fd);
	while (hung && !access(hung, F_OK))
		usleep(10000);
	const bool fails = sync_fails();
	end_dirty(fd, fails);
	if (fails) {
		errno = EIO;
		return -1;
	}
	return real(fd);
}

PUBLIC pid_t fork(void)
{
	static pid_t (*real)(void);
	if (getenv("S3ONCE_TEST_NO_PROCESS")) {
		errno = EAGAIN;
		return -1;
	}
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fork");
	return real();
}

PUBLIC int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
	const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	static int (*real)(pid_t *, const char *, const posix_spawn_file_actions_t *,
		const posix_spawnattr_t *, char *const[], char *const[]);
	if (getenv("S3ONCE_TEST_NO_PROCESS"))
		return EAGAIN;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "posix_spawn");
	return real(pid, path, actions, attributes, argv, envp);
}

PUBLIC int curl_global_init(long flags)
{
	static int (*real)(long);
	if (getenv("S3ONCE_TEST_NO_CURL"))
		return 2; /* CURLE_FAILED_INIT */
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "curl_global_init");
	return real(flags);
}
