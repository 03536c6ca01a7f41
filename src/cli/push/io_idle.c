#include "cli/push/io_idle.h"
#include <errno.h>
#include <linux/ioprio.h>
#include <sys/syscall.h>
#include <unistd.h>

int io_idle_begin(void)
{
	const int idle = IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0);
	const long before = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);
	if (before < 0 || syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, idle) < 0)
		return -errno;
	return (int)before;
}

void io_idle_end(int before)
{
	if (before >= 0)
		syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, before);
}
