/* Which files of the kernel a machine is known by, and what follows if one of them is absent, may
 * not be read, or cannot be read. The files are in a folder of the test, to which the calls of libc
 * below lead. */
#include "check.h"
#include "lease/machine.h"
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ID    "/etc/machine-id"
#define HYPER "/sys/hypervisor/uuid"
#define BOARD "/sys/class/dmi/id/product_uuid"
#define GUID  "/sys/firmware/qemu_fw_cfg/by_name/etc/vmgenid_guid/raw"
#define NET   "/sys/class/net"

static char folder[] = "/tmp/test_machine_files.XXXXXX";
/* A path whose opening fails, with this error. */
static struct {
	const char *path;
	int error;
} broken;

/* Returns the path in the folder of the test. Any path but those of a machine stays as it is. */
static const char *redirect(const char *path, char buf[static 512])
{
	if (strncmp(path, "/sys/", 5) != 0 && strcmp(path, ID) != 0)
		return path;
	snprintf(buf, 512, "%s%s", folder, path);
	return buf;
}

static bool is_broken(const char *path)
{
	if (!broken.path || strcmp(broken.path, path) != 0)
		return false;
	errno = broken.error;
	return true;
}

/* The next three are in place of libc's. */
int open64(const char *path, int flags, ...)
{
	char buf[512];
	va_list ap;
	va_start(ap, flags);
	const unsigned mode = flags & O_CREAT ? va_arg(ap, unsigned) : 0;
	va_end(ap);
	return is_broken(path)
		       ? -1
		       : (int)syscall(SYS_openat, AT_FDCWD, redirect(path, buf), flags, mode);
}

int access(const char *path, int mode)
{
	char buf[512];
	return (int)syscall(SYS_faccessat, AT_FDCWD, redirect(path, buf), mode);
}

int scandir64(const char *path, struct dirent64 ***ret, int (*select)(const struct dirent64 *),
	int (*compare)(const struct dirent64 **, const struct dirent64 **))
{
	int (*libcs)(const char *, struct dirent64 ***, int (*)(const struct dirent64 *),
		int (*)(const struct dirent64 **, const struct dirent64 **));
	char buf[512];
	*(void **)&libcs = dlsym(RTLD_NEXT, "scandir64");
	return is_broken(path) ? -1 : libcs(redirect(path, buf), ret, select, compare);
}

/* Writes a file of the machine, with the folders above it. NULL: it is absent. */
static void put(const char *path, const char *value)
{
	char real[512];
	redirect(path, real);
	for (char *slash = real; (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		mkdir(real, 0700);
		*slash = '/';
	}
	unlink(real);
	FILE *file = value ? fopen(real, "w") : NULL;
	if (file) {
		CHECK(fputs(value, file) >= 0);
		fclose(file);
	}
}

/* A network interface: whether it is a device, the origin of its address ("0": its own), and the
 * address. */
static void put_card(const char *name, bool is_device, const char *origin, const char *address)
{
	char path[200];
	snprintf(path, sizeof path, NET "/%s/device", name);
	put(path, is_device ? "" : NULL);
	snprintf(path, sizeof path, NET "/%s/addr_assign_type", name);
	put(path, origin);
	snprintf(path, sizeof path, NET "/%s/address", name);
	put(path, address);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

/* The machine of which the tests below change one thing. */
static void put_machine(void)
{
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	CHECK_INT(mkdir(folder, 0700), 0);
	put(ID, "0123456789abcdef\n");
	put(HYPER, "hyper\n");
	put(BOARD, "board\n");
	put(GUID, "guid");
	put_card("eth0", true, "0\n", "00:00:00:00:00:0a\n");
	put_card("eth1", true, "0\n", "00:00:00:00:00:0b\n");
	put_card("bond0", true, "3\n", "00:00:00:00:00:0a\n");
	put_card("docker0", false, "3\n", "00:00:00:00:00:0c\n");
	broken.path = NULL;
}

struct ids {
	char machine[MACHINE_CHARS + 1], board[MACHINE_CHARS + 1];
	bool is_read;
	struct known_machine known;
	char id[MACHINE_CHARS + 1]; /* machine_id() */
};

static struct ids ids_now(void)
{
	struct ids ids = {.is_read = false};
	ids.is_read = machine_hashes(ids.machine, ids.board);
	machine_self(&ids.known);
	machine_id(ids.id);
	return ids;
}

/* The id changes if one file has another value, or is absent. */
static void test_values(void)
{
	static const struct {
		const char *path, *value;
		bool other_machine, other_board, other_id;
	} rows[] = {
		{ID, "another\n", true, false, true},
		{HYPER, "another\n", true, false, true},
		{HYPER, NULL, true, false, true},
		{BOARD, "another\n", false, true, false},
		{BOARD, NULL, false, true, false},
		{GUID, "another", false, true, false},
		{NET "/eth0/address", "00:00:00:00:00:0d\n", true, false, false},
		/* An interface that people or containers have set up does not count. */
		{NET "/docker0/address", "00:00:00:00:00:0d\n", false, false, false},
		{NET "/docker0/addr_assign_type", "0\n", false, false, false},
		{NET "/bond0/address", "00:00:00:00:00:0d\n", false, false, false},
		{NET "/eth1/addr_assign_type", "3\n", true, false, false},
		{NET "/eth1/addr_assign_type", NULL, true, false, false},
	};
	put_machine();
	const struct ids before = ids_now();
	CHECK(before.is_read);
	CHECK_INT(strlen(before.machine), MACHINE_CHARS);
	CHECK_INT(strlen(before.board), MACHINE_CHARS);
	CHECK_INT(strlen(before.known.id), MACHINE_CHARS);
	CHECK_STRING(before.known.board, before.board);
	CHECK_INT(strlen(before.id), MACHINE_CHARS);
	CHECK_INT(strlen(before.known.cards), 2 * (CARD_CHARS + 1));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		put_machine();
		put(rows[i].path, rows[i].value);
		const struct ids now = ids_now();
		bool good = CHECK(now.is_read);
		good &= CHECK_INT(strcmp(now.machine, before.machine) != 0, rows[i].other_machine);
		good &= CHECK_INT(strcmp(now.board, before.board) != 0, rows[i].other_board);
		good &= CHECK_INT(strcmp(now.known.id, before.known.id) != 0, rows[i].other_id);
		good &= CHECK_STRING(now.known.board, now.board);
		good &= CHECK_INT(strcmp(now.id, before.id) != 0, strcmp(rows[i].path, ID) == 0);
		if (!good)
			fprintf(stderr, "\trow %zu: %s\n", i, rows[i].path);
	}
}

/* The same value in another file makes another machine. */
static void test_places(void)
{
	put_machine();
	put(BOARD, "same");
	put(GUID, NULL);
	const struct ids one = ids_now();
	put(BOARD, NULL);
	put(GUID, "same");
	const struct ids other = ids_now();
	CHECK(strcmp(one.board, other.board) != 0);
	put(GUID, NULL);
	CHECK_STRING(ids_now().board, ""); /* that neither is known is no id */
	put(ID, NULL);
	put(HYPER, NULL);
	const struct ids without = ids_now();
	CHECK(without.is_read);
	CHECK_INT(strlen(without.machine), MACHINE_CHARS); /* that of having none */
	CHECK_STRING(without.known.id, "");
	CHECK_STRING(without.id, "");
}

/* A file that may not be read counts as absent. If reading fails, nothing is known: neither is any
 * process local, nor does any machine differ from this one. */
static void test_errors(void)
{
	static const struct {
		const char *path;
		bool is_known; /* the machine, after an error */
		bool has_id;   /* without the file */
	} rows[] = {
		{ID, false, false},
		{HYPER, false, true},
		{BOARD, false, true},
		{GUID, false, true},
		{NET "/eth0/address", false, true},
		/* It is then taken for a card. */
		{NET "/eth0/addr_assign_type", true, true},
		{NET, false, true},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		static const int errors[] = {EACCES, ENOENT, EIO, EMFILE};
		for (size_t j = 0; j < sizeof errors / sizeof *errors; j++) {
			const bool is_absent = errors[j] == EACCES || errors[j] == ENOENT;
			put_machine();
			broken.path = rows[i].path;
			broken.error = errors[j];
			const struct ids now = ids_now();
			if (!CHECK_INT(now.is_read, is_absent || rows[i].is_known) ||
				!CHECK_INT(*now.known.id != '\0',
					is_absent ? rows[i].has_id : rows[i].is_known) ||
				!CHECK_INT(*now.id != '\0', strcmp(rows[i].path, ID) != 0))
				fprintf(stderr, "\t%s: %s\n", rows[i].path, strerror(errors[j]));
		}
	}
	put_machine();
	put(ID, NULL);
	char buf[512];
	CHECK_INT(mkdir(redirect(ID, buf), 0700), 0); /* can be opened, and not be read */
	CHECK(!ids_now().is_read);
	CHECK_STRING(ids_now().known.id, "");
	CHECK_STRING(ids_now().id, "");
}

/* If there are too many cards, the first ones are kept, each of them whole. */
static void test_many_cards(void)
{
	put_machine();
	for (unsigned i = 0; i < 20; i++) {
		char name[10], address[20];
		snprintf(name, sizeof name, "ens%02u", i);
		snprintf(address, sizeof address, "00:00:00:00:01:%02u\n", i);
		put_card(name, true, "0\n", address);
	}
	const struct ids now = ids_now();
	CHECK(now.is_read);
	CHECK_INT(strlen(now.known.cards), 15 * (CARD_CHARS + 1));
	put_card("ens99", true, "0\n", "00:00:00:00:02:00\n");
	const struct ids more = ids_now();
	CHECK_STRING(more.known.cards, now.known.cards);
	CHECK(!machine_differs(&now.known, &more.known));
	CHECK(strcmp(now.machine, more.machine) != 0);
}

int main(void)
{
	if (!CHECK(mkdtemp(folder) != NULL))
		return check_result();
	test_values();
	test_places();
	test_errors();
	test_many_cards();
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return check_result();
}
