/* The mount point at or above a path that fstab names and that is not mounted. */
#include "../check.h"
#include "scan/mounts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");
	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void test_rows(void)
{
	static const struct {
		const char *path;
		const char *missing; /* "": nothing is */
	} rows[] = {
		{"/mnt/disk", "/mnt/disk"},
		{"/mnt/disk/photos/2026", "/mnt/disk"},
		{"/mnt/disks", ""},
		{"/mnt", ""},
		{"/mnt/with blank/a", "/mnt/with blank"},
		{"/srv", ""},
		{"/srv/a", ""},
		{"/srv/inner/a", "/srv/inner"},
		/* The path is on the mount below the one that is missing. */
		{"/mnt/disk/other/a", ""},
		{"/none", ""},
		{"/", ""},
		{"relative", ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const size_t n = mount_missing_above("fstab", "mounts", rows[i].path);
		if (!CHECK_INT(n, strlen(rows[i].missing)))
			fprintf(stderr, "\t%s\n", rows[i].path);
		const bool is_here = n && strcmp(rows[i].path, rows[i].missing) == 0;
		if (!CHECK_INT(mount_is_missing_at("fstab", "mounts", rows[i].path), is_here))
			fprintf(stderr, "\t%s\n", rows[i].path);
	}
}

int main(void)
{
	char folder[] = "/tmp/s3once-mounts-XXXXXX";
	if (!CHECK(mkdtemp(folder) != NULL) || !CHECK(chdir(folder) == 0))
		return check_result();
	write_file("fstab", "# comment\n/dev/sda1 / ext4 defaults 0 1\nUUID=1 none swap sw 0 0\n"
			    "/dev/sdb1 /mnt/disk/ ext4 noauto 0 2\n"
			    "/dev/sdc1 /mnt/with\\040blank ext4 defaults 0 2\n"
			    "/dev/sdd1 /srv ext4 defaults 0 2\n"
			    "/dev/sde1 /srv/inner ext4 defaults 0 2\n");
	write_file("mounts", "/dev/sda1 / ext4 rw 0 0\n/dev/sdd1 /srv ext4 rw 0 0\n"
			     "/dev/sdf1 /mnt/disk/other ext4 rw 0 0\n");
	test_rows();
	CHECK_INT(mount_missing_above("absent", "mounts", "/mnt/disk"), 0);
	CHECK_INT(mount_missing_above("fstab", "absent", "/mnt/disk"), 0);
	CHECK(unlink("fstab") == 0 && unlink("mounts") == 0 && rmdir(folder) == 0);
	return check_result();
}
