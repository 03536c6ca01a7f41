/* Finds out which process this is and on which machine it runs. The row of a session keeps both.
 * Also finds out whether the process of another session, on the same host, is gone. A process that
 * is not surely gone counts as alive. */
#include "lease/process.h"
#include "base/checksum.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>
#ifdef HAVE_PIDFD_OPEN
#include <sys/pidfd.h>
#endif

#define VALUE_MAX    256
#define SYS_PATH_MAX 512
#define VALUES_MAX   (1U << 20)
#define STAT_MAX     4096

/* Reads a small file into ret, without a NUL, and returns its length. 0: there is none, or we may
 * not read it. -1: reading failed. */
static ssize_t read_value(const char *path, char ret[static VALUE_MAX])
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT || errno == EACCES || errno == EPERM ? 0 : -1;
	const ssize_t n = read(fd, ret, VALUE_MAX);
	close(fd);
	return n;
}

/* Adds the file's name, length and value, so that different sets of values never have the same
 * bytes. If reading fails, *values gets an error, since nobody knows then whether two machines
 * differ in this file. Returns whether there is a value. */
static bool add_file_value(struct text *values, const char *path)
{
	char value[VALUE_MAX];
	const ssize_t n = read_value(path, value);
	if (n < 0) {
		values->error = -EIO;
		return false;
	}
	text_add_bytes(values, path, strlen(path) + 1);
	text_add_bytes(values, &n, sizeof n);
	text_add_bytes(values, value, (size_t)n);
	return n > 0;
}

/* For scandir(): selects the network cards that have the address they were made with. Interfaces
 * and addresses that people or containers set up are left out, since they come and go. If reading
 * how a card got its address fails, the card is selected. If that file is absent, or we may not
 * read it, the card is left out. */
static int is_card(const struct dirent *entry)
{
	char path[SYS_PATH_MAX], value[VALUE_MAX];
	snprintf(path, sizeof path, "/sys/class/net/%s/device", entry->d_name);
	if (*entry->d_name == '.' || access(path, F_OK))
		return 0;
	snprintf(path, sizeof path, "/sys/class/net/%s/addr_assign_type", entry->d_name);
	const ssize_t n = read_value(path, value);
	return n < 0 || (n > 0 && *value == '0');
}

/* Makes an id of the values, and frees them. If has_id is false, the id is "", which is no error.
 * Returns false if the id cannot be made. */
static bool make_id(struct text *values, bool has_id, char ret[static MACHINE_CHARS + 1])
{
	struct sums sums;
	const bool good =
		!values->error && !digest_bytes(DIGEST_SHA256, values->data, values->len, &sums);
	*ret = '\0';
	if (good && has_id)
		hex_encode(sums.sha256, MACHINE_CHARS / 2, ret);
	text_clear(values);
	return good;
}

/* Makes process.machine. Returns false if what it is made of cannot be read. A machine without any
 * of these values has an id all the same, which says that it has none. */
static bool machine_id(char ret[static MACHINE_CHARS + 1])
{
	struct text values = TEXT(VALUES_MAX);
	struct dirent **cards;
	char path[SYS_PATH_MAX];
	add_file_value(&values, "/etc/machine-id");
	add_file_value(&values, "/sys/hypervisor/uuid");
	const int n = scandir("/sys/class/net", &cards, is_card, alphasort);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof path, "/sys/class/net/%s/address", cards[i]->d_name);
		add_file_value(&values, path);
		free(cards[i]);
	}
	if (n >= 0)
		free(cards);
	else if (errno != ENOENT && errno != EACCES)
		values.error = -EIO;
	return make_id(&values, true, ret);
}

/* Makes process.board, which is "" if neither value is known. Returns false if what it is made of
 * cannot be read. */
static bool machine_board(char ret[static MACHINE_CHARS + 1])
{
	struct text values = TEXT(VALUES_MAX);
	bool known = add_file_value(&values, "/sys/class/dmi/id/product_uuid");
	known |= add_file_value(&values, "/sys/firmware/qemu_fw_cfg/by_name/etc/vmgenid_guid/raw");
	return make_id(&values, known, ret);
}

/* Returns the start time of a process, which is field 22 of /proc/WHO/stat, or 0 if it cannot be
 * read. Fields are counted from the last ')', since the name in field 2 may contain anything. */
static uint64_t start_in_proc(const char *who)
{
	char path[40];
	struct text line = TEXT(STAT_MAX);
	snprintf(path, sizeof path, "/proc/%s/stat", who);
	named_file_read(path, &line, NULL);
	const char *at = line.data ? strrchr(line.data, ')') : NULL;
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	const uint64_t start = at ? strtoull(at + 1, NULL, 10) : 0;
	text_clear(&line);
	return start;
}

/* Returns the start time of a process, or 0 if it is not known. A /proc of another pid namespace is
 * not read, since it has other processes under the same numbers. */
static uint64_t start_of(pid_t pid)
{
	char who[20];
	read_link("/proc/self", who, sizeof who);
	if (atoi(who) != (int)getpid())
		return 0;
	snprintf(who, sizeof who, "%d", (int)pid);
	return start_in_proc(who);
}

void process_self(struct process *ret)
{
	*ret = (struct process){.pid = getpid()};
	size_t n = sizeof ret->host;
	if (uv_os_gethostname(ret->host, &n) || !*ret->host)
		snprintf(ret->host, sizeof ret->host, "unknown-host");
	clock_boot_id(ret->boot);
	read_link("/proc/self/ns/pid", ret->pid_space, sizeof ret->pid_space);
	read_link("/proc/self/ns/time", ret->time_space, sizeof ret->time_space);
	/* Without an id of the machine, no process counts as near. */
	if (!machine_id(ret->machine) || !machine_board(ret->board))
		*ret->machine = 0;
	ret->start = start_in_proc("self");
}

/* Whether a process has surely ended, even if its parent has not waited for it. A pidfd is readable
 * once every thread of its process has ended. */
static bool has_ended(pid_t pid)
{
#ifdef HAVE_PIDFD_OPEN
	struct pollfd end = {.fd = pidfd_open(pid, 0), .events = POLLIN};
	if (end.fd < 0)
		return false;
	const bool ended = poll(&end, 1, 0) == 1 && (end.revents & POLLIN);
	close(end.fd);
	return ended;
#else
	(void)pid;
	return false;
#endif
}

/* Whether two values are known to be the same. "" is a value that is not known. */
static bool is_same(const char *a, const char *b)
{
	return *a && strcmp(a, b) == 0;
}

bool process_is_near(const struct process *self, const struct process *other)
{
	return is_same(self->boot, other->boot) && is_same(self->machine, other->machine) &&
	       (!*self->board || !*other->board || strcmp(self->board, other->board) == 0) &&
	       is_same(self->host, other->host) && is_same(self->pid_space, other->pid_space) &&
	       strcmp(self->time_space, other->time_space) == 0; /* both "" without them */
}

bool process_is_gone(const struct process *self, const struct process *other)
{
	if (!process_is_near(self, other) || other->pid <= 0)
		return false;
	const uint64_t start = start_of(other->pid);
	return (kill(other->pid, 0) && errno == ESRCH) || has_ended(other->pid) ||
	       (start && other->start && start != other->start);
}
