/* Time, random numbers and identity of simulated processes. See kernel.h. */
#include "kernel.h"
#include "kernel_fd.h"
#include <errno.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NS 1000000000LL

struct kernel_hooks kernel_hooks;

void kernel_hook(const struct kernel_hooks *hooks)
{
	kernel_hooks = *hooks;
}

void kernel_point(void)
{
	struct machine_process *process = task_process();
	task_point();
	if (process && kernel_hooks.call_most_ns)
		task_sleep_until(world_now_ns() + chance_below(&process->machine->chance,
							  kernel_hooks.call_most_ns));
}

static struct machine *here(void)
{
	struct machine_process *process = task_process();
	return process ? process->machine : NULL;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	const struct machine *machine = here();
	int64_t ns = (int64_t)world_now_ns();
	world_spend(40); /* so that a loop that only reads the clock ends */
	if (machine)
		ns = clock == CLOCK_REALTIME   ? machine_wall_ns(machine)
		     : clock == CLOCK_BOOTTIME ? (int64_t)machine_boot_ns(machine)
					       : (int64_t)machine_monotonic_ns(machine);
	*ret = (struct timespec){.tv_sec = ns / NS, .tv_nsec = ns % NS};
	return 0;
}

time_t __wrap_time(time_t *ret)
{
	const struct machine *machine = here();
	const time_t s = (machine ? machine_wall_ns(machine) : (int64_t)world_now_ns()) / NS;
	if (ret)
		*ret = s;
	return s;
}

int __wrap_nanosleep(const struct timespec *length, struct timespec *ret_left)
{
	task_sleep_until(world_now_ns() + (uint64_t)(length->tv_sec * NS + length->tv_nsec));
	return 0;
}

int __wrap_usleep(useconds_t us)
{
	task_sleep_until(world_now_ns() + us * 1000ULL);
	return 0;
}

int __wrap_sched_yield(void)
{
	task_yield();
	return 0;
}

ssize_t __wrap_getrandom(void *ret, size_t n, unsigned flags)
{
	struct machine *machine = here();
	if (!machine)
		abort();
	chance_fill(&machine->chance, ret, n);
	return (ssize_t)n;
}

pid_t __wrap_getpid(void)
{
	const struct machine_process *process = task_process();
	return process ? process->pid : 1;
}

uid_t __wrap_geteuid(void)
{
	return 1000;
}

int __wrap_gethostname(char *ret, size_t size)
{
	const struct machine *machine = here();
	strncpy(ret, machine ? machine->host : "nowhere", size);
	return 0;
}

char *__wrap_getenv(const char *name)
{
	const struct machine_process *process = task_process();
	const size_t n = strlen(name);
	for (size_t i = 0; process && process->environment && process->environment[i]; i++)
		if (strncmp(process->environment[i], name, n) == 0 &&
			process->environment[i][n] == '=')
			return (char *)(uintptr_t)process->environment[i] + n + 1;
	return NULL;
}

int __wrap_kill(pid_t pid, int signal_number)
{
	const struct machine *machine = here();
	if (signal_number)
		abort(); /* src only checks whether a process exists */
	return machine && process_find(machine, pid) ? 0 : kernel_fail(ESRCH);
}

int __wrap_pidfd_open(pid_t pid, unsigned flags)
{
	struct machine_process *process = here() ? process_find(here(), pid) : NULL;
	if (!process)
		return kernel_fail(ESRCH);
	const int fd = kernel_open_node(NULL, O_RDONLY);
	if (fd >= 0)
		kernel_file(fd)->process_of_pidfd = process;
	return fd;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	const struct open_file *file = n == 1 ? kernel_file(fds->fd) : NULL;
	if (!file || !file->process_of_pidfd || timeout_ms)
		abort(); /* src polls nothing else in the simulation */
	fds->revents = file->process_of_pidfd->is_over ? POLLIN : 0;
	return fds->revents != 0;
}

long __wrap_sysconf(int name)
{
	switch (name) {
	case _SC_PAGESIZE:
		return 4096;
	case _SC_NPROCESSORS_ONLN:
	case _SC_NPROCESSORS_CONF:
		return 4;
	case _SC_PHYS_PAGES:
	case _SC_AVPHYS_PAGES:
		return 1 << 20;
	case _SC_CLK_TCK:
		return 100;
	default:
		return -1;
	}
}

int __wrap_getrlimit64(int resource, struct rlimit *ret)
{
	*ret = (struct rlimit){.rlim_cur = FDS_MAX, .rlim_max = FDS_MAX};
	return 0;
}

int __wrap_sched_getscheduler(pid_t pid)
{
	return SCHED_OTHER;
}

int __wrap_sched_setscheduler(pid_t pid, int policy, const struct sched_param *param)
{
	return 0;
}

int __wrap_sched_getaffinity(pid_t pid, size_t size, void *ret)
{
	memset(ret, 0, size);
	*(unsigned char *)ret = 0x0f;
	return 0;
}

void (*__wrap_signal(int number, void (*handler)(int)))(int)
{
	return SIG_DFL;
}

int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *ret_old)
{
	if (ret_old)
		sigemptyset(ret_old);
	return 0;
}

long __wrap_syscall(long number, long a, long b, long c, long d)
{
	if (number == SYS_gettid)
		return task_self() + 100000L;
	if (number == SYS_openat2) {
		const struct open_how *how = (const struct open_how *)c;
		const char *path = (const char *)b;
		return kernel_openat2((int)a, path, (int)how->flags, (mode_t)how->mode,
			how->resolve & RESOLVE_NO_SYMLINKS ? LOOKUP_NO_LINKS : 0);
	}
	abort();
}
