/* Shared by tests of the SQLite store: a folder of their own, and short calls. */
#pragma once
#include "../check.h"
#include "store/store.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch[64];

/* A fresh folder, 0700, which becomes the working folder. */
__attribute__((unused)) static void scratch_make(void)
{
	snprintf(scratch, sizeof scratch, "/tmp/s3once-store-XXXXXX");
	if (!mkdtemp(scratch) || chdir(scratch) < 0) {
		perror(scratch);
		exit(1);
	}
}

__attribute__((unused)) static void scratch_empty(int folder)
{
	DIR *dir = fdopendir(folder);

	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(folder, entry->d_name, 0) == 0)
			continue;
		int below = openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
		if (below >= 0)
			scratch_empty(below);
		unlinkat(folder, entry->d_name, AT_REMOVEDIR);
	}
	closedir(dir);
}

__attribute__((unused)) static void scratch_remove(void)
{
	int folder = open(scratch, O_RDONLY | O_DIRECTORY);

	if (folder >= 0)
		scratch_empty(folder);
	if (chdir("/") == 0)
		rmdir(scratch);
}

/* An open store and one connection to it. */
struct opened {
	struct store *store;
	struct store_conn *conn;
	struct problem problem;
};

__attribute__((unused)) static int open_at(const char *path, struct opened *ret)
{
	*ret = (struct opened){0};
	int r = store_sqlite_open(path, STORE_WRITTEN, &ret->store, &ret->problem);

	return r ? r : store_conn_new(ret->store, &ret->conn);
}

__attribute__((unused)) static void close_it(struct opened *opened)
{
	store_conn_free(opened->conn);
	store_close(opened->store);
}

/* Puts {"name": sk} unless it is there. */
__attribute__((unused)) static enum outcome put_within(
	struct opened *opened, const char *pk, const char *sk, const struct call_limits *limits)
{
	const struct condition absent = {.name = "pk", .test = CONDITION_ABSENT};
	struct item item = {0}, present = {0};

	item_set_string(&item, "name", sk);
	enum outcome o = opened->store->ops->write(opened->conn, (struct item_key){pk, sk},
		&(struct item_write){.item = &item, .conditions = &absent, .n_conditions = 1},
		limits, &present, &opened->problem);
	item_clear(&item);
	item_clear(&present);
	return o;
}

__attribute__((unused)) static enum outcome put_one(
	struct opened *opened, const char *pk, const char *sk)
{
	return put_within(opened, pk, sk, &(struct call_limits){0});
}

__attribute__((unused)) static enum outcome get_one(
	struct opened *opened, const char *pk, const char *sk)
{
	struct item item = {0};
	enum outcome o = opened->store->ops->get(opened->conn, (struct item_key){pk, sk},
		READ_CONSISTENT, &(struct call_limits){0}, &item, &opened->problem);

	item_clear(&item);
	return o;
}
