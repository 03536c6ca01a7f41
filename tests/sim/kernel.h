/* The system calls of src, answered by the simulated machine of the calling process. The linker
 * redirects each call of NAME in src here (-Wl,--wrap=NAME, see meson.build). The libraries that
 * src uses, and the simulation itself, still call the real ones.
 *
 * Calls may take time, and reads may fail: kernel_hook(). */
#pragma once
#include <dirent.h>
#include <fcntl.h>
#include <mntent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <time.h>

struct machine_process;
struct node;

struct kernel_hooks {
	/* Called before a process removes the name of this file. */
	void (*removes)(struct machine_process *process, struct node *node, const char *path);
	/* So many of 1,000 reads of files fail with EIO. */
	unsigned read_fails_per_mille;
	uint64_t call_most_ns; /* a file system call takes up to this time; 0: no time */
	unsigned threads_most; /* limit for each process; 0: none */
};
void kernel_hook(const struct kernel_hooks *hooks);
/* Call it at the beginning of a file system call: other tasks may run before the call takes
 * effect. */
void kernel_point(void);

/* kernel_time.c */
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
time_t __wrap_time(time_t *ret);
int __wrap_nanosleep(const struct timespec *length, struct timespec *ret_left);
int __wrap_usleep(useconds_t us);
int __wrap_sched_yield(void);
ssize_t __wrap_getrandom(void *ret, size_t n, unsigned flags);
pid_t __wrap_getpid(void);
uid_t __wrap_geteuid(void);
int __wrap_gethostname(char *ret, size_t size);
char *__wrap_getenv(const char *name);
int __wrap_kill(pid_t pid, int signal_number);
int __wrap_pidfd_open(pid_t pid, unsigned flags);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
long __wrap_sysconf(int name);
int __wrap_getrlimit64(int resource, struct rlimit *ret);
int __wrap_sched_getscheduler(pid_t pid);
int __wrap_sched_setscheduler(pid_t pid, int policy, const struct sched_param *param);
int __wrap_sched_getaffinity(pid_t pid, size_t size, void *ret);
void (*__wrap_signal(int number, void (*handler)(int)))(int);
int __wrap_pthread_detach(unsigned long thread); /* uv_threads.c */
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *ret_old);
long __wrap_syscall(long number, long a, long b, long c, long d);

/* kernel_files.c */
int __wrap_open64(const char *path, int flags, ...);
int __wrap___open64_2(const char *path, int flags);
int __wrap_openat64(int fd, const char *path, int flags, ...);
int __wrap___openat64_2(int fd, const char *path, int flags);
int kernel_openat2(int fd, const char *path, int flags, mode_t mode, int lookup);
int __wrap_close(int fd);
ssize_t __wrap_read(int fd, void *buf, size_t n);
ssize_t __wrap_write(int fd, const void *buf, size_t n);
ssize_t __wrap_pread64(int fd, void *buf, size_t n, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t n, off_t offset);
off_t __wrap_lseek64(int fd, off_t offset, int from);
int __wrap_fsync(int fd);
int __wrap_sync_file_range(int fd, off_t offset, off_t n, unsigned flags);
int __wrap_posix_fadvise64(int fd, off_t offset, off_t n, int advice);
int __wrap_ftruncate64(int fd, off_t size);
int __wrap_fstat64(int fd, struct stat *ret);
int __wrap_statx(int fd, const char *path, int flags, unsigned mask, struct statx *ret);
int __wrap_stat64(const char *path, struct stat *ret);
int __wrap_lstat64(const char *path, struct stat *ret);
int __wrap_fstatat64(int fd, const char *path, struct stat *ret, int flags);
int __wrap_fstatfs64(int fd, struct statfs *ret);
int __wrap_fcntl64(int fd, int command, ...);
int __wrap_flock(int fd, int how);
int __wrap_futimens(int fd, const struct timespec times[2]);
int __wrap_pipe2(int ret[2], int flags);
int __wrap_name_to_handle_at(
	int fd, const char *path, struct file_handle *ret, int *ret_mount, int flags);

/* kernel_names.c */
int __wrap_access(const char *path, int mode);
int __wrap_chmod(const char *path, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode);
int __wrap_fchmodat(int fd, const char *path, mode_t mode, int flags);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdirat(int fd, const char *path, mode_t mode);
int __wrap_mknodat(int fd, const char *path, mode_t mode, dev_t device);
int __wrap_mkostemp64(char *path, int flags);
int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);
int __wrap_unlink(const char *path);
int __wrap_unlinkat(int fd, const char *path, int flags);
int __wrap_rename(const char *from, const char *to);
int __wrap_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);
ssize_t __wrap_readlink(const char *path, char *ret, size_t size);
char *__wrap_realpath(const char *path, char *ret);
DIR *__wrap_opendir(const char *path);
FILE *__wrap_setmntent(const char *table, const char *mode);
struct mntent *__wrap_getmntent_r(FILE *file, struct mntent *ret, char *buffer, int n);
int __wrap_endmntent(FILE *file);
DIR *__wrap_fdopendir(int fd);
struct dirent *__wrap_readdir64(DIR *dir);
int __wrap_closedir(DIR *dir);
int __wrap_dirfd(DIR *dir);
int __wrap_scandir64(const char *path, struct dirent ***ret,
	int (*wanted)(const struct dirent *entry),
	int (*compare)(const struct dirent **a, const struct dirent **b));
FILE *__wrap_fopen64(const char *path, const char *mode);
FILE *__wrap_fdopen(int fd, const char *mode);
