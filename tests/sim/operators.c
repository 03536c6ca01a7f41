/* Actions of administrators: they recreate the bucket, restore marks from a backup, and delete
 * objects. */
#include "judge.h"
#include "judge_runs.h"
#include "net.h"
#include "story.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1000000000ULL
#define MARKS    "/home/up/.local/state/s3once/marks.db"

static const char *const suffixes[] = {"", "-wal", "-shm"};

static void wait_up_to(struct chance *chance, uint64_t s)
{
	const bool is_at_night = world.scenario.night_h && chance_hits(chance, 500);
	if (is_at_night)
		s = world.scenario.night_h * 3600 / 4;
	task_sleep_until(world_now_ns() + chance_below(chance, s * NS_PER_S));
}

/* Waits until no run is under way and no request is late: no client could know that the bucket is a
 * new one. */
static void make_bucket_anew(struct chance *chance)
{
	wait_up_to(chance, 100);
	for (unsigned i = 0; i < 600; i++, task_sleep_until(world_now_ns() + NS_PER_S / 10))
		if (!processes_any(NULL) && !net_late_copies()) {
			world_s3_make_anew(world.s3);
			world.is_anew = true;
			judge_bucket_anew();
			story_fault("the bucket is deleted and made again");
			return;
		}
}

/* Waits until no run is under way: it could not know which of two objects is that of the bucket. */
static void delete_id_object(struct chance *chance)
{
	wait_up_to(chance, 100);
	for (unsigned i = 0; i < 600; i++, task_sleep_until(world_now_ns() + NS_PER_S / 10))
		if (!processes_any(NULL) && !net_late_copies() &&
			world_s3_object(world.s3, WORLD_ID_OBJECT)) {
			world_s3_delete(world.s3, WORLD_ID_OBJECT);
			world.is_id_gone = true;
			story_fault("somebody deletes the object %s", WORLD_ID_OBJECT);
			return;
		}
}

struct backup {
	unsigned char *bytes[3];
	size_t n[3];
};

static bool is_idle(const struct machine *machine)
{
	return !machine->is_off && machine->has_pushed && !processes_any(machine) &&
	       disk_get(machine->disk, MARKS);
}

static bool wait_until_idle(const struct machine *machine)
{
	for (unsigned i = 0; i < 600 && !is_idle(machine); i++)
		task_sleep_until(world_now_ns() + NS_PER_S / 10);
	return is_idle(machine);
}

static void copy_marks(const struct machine *machine, struct backup *ret)
{
	for (size_t i = 0; i < 3; i++) {
		char path[100];
		snprintf(path, sizeof path, "%s%s", MARKS, suffixes[i]);
		const struct node *node = disk_get(machine->disk, path);
		ret->n[i] = node ? (size_t)node->size : 0;
		ret->bytes[i] = node ? malloc(ret->n[i] + 1) : NULL;
		if (ret->bytes[i] && ret->n[i])
			memcpy(ret->bytes[i], node->data, ret->n[i]);
	}
}

static void restore_marks(const struct machine *machine, const struct backup *backup)
{
	for (size_t i = 0; i < 3; i++) {
		char path[100];
		struct node *folder;
		const char *name;
		snprintf(path, sizeof path, "%s%s", MARKS, suffixes[i]);
		if (!disk_find_parent(
			    machine->disk, disk_root(machine->disk), path, &folder, &name))
			disk_remove(folder, name, false);
		if (backup->bytes[i])
			disk_put(machine->disk, path, backup->bytes[i], backup->n[i]);
		struct node *node = disk_get(machine->disk, path);
		if (node)
			node->uid = 1000;
	}
}

/* Whether the backup is of the marks that the machine's objects name. A backup from before the
 * first run is empty: restoring it would lose all marks. */
static bool has_these_marks(const struct machine *machine, const struct backup *backup)
{
	const struct s3_stored *object;
	const char *prefix = run_prefix(machine), *id = NULL;
	bool has_id = false;
	for (size_t i = 0; !id && (object = world_s3_at(world.s3, i)); i++)
		if (strncmp(object->key, prefix, strlen(prefix)) == 0)
			id = s3_stored_header(object, "x-amz-meta-s3once-table");
	for (size_t i = 0; id && i < 3; i++)
		has_id |=
			backup->bytes[i] && memmem(backup->bytes[i], backup->n[i], id, strlen(id));
	return has_id || !id;
}

static void restore_backup(struct chance *chance)
{
	struct machine *machine = machine_at(chance_below(chance, machines_count()));
	struct backup backup;
	wait_up_to(chance, 20);
	if (!wait_until_idle(machine))
		return;
	copy_marks(machine, &backup);
	story("the marks of %s are copied", machine->name);
	wait_up_to(chance, 100);
	if (wait_until_idle(machine) && has_these_marks(machine, &backup)) {
		restore_marks(machine, &backup);
		judge_restored();
		story_fault("the earlier marks of %s are restored", machine->name);
	}
	for (size_t i = 0; i < 3; i++)
		free(backup.bytes[i]);
}

/* Other objects below its prefix remain, which show that it is the bucket of the marks. */
static void delete_object(struct chance *chance)
{
	const struct s3_stored *object, *chosen = NULL;
	const char *prefix = run_prefix(machine_at(chance_below(chance, machines_count())));
	size_t n = 0;
	wait_up_to(chance, 60);
	for (size_t i = 0; (object = world_s3_at(world.s3, i)); i++)
		if (strncmp(object->key, prefix, strlen(prefix)) == 0 && !object->is_foreign &&
			!runs_own(object->key) && chance_below(chance, ++n) == 0)
			chosen = object;
	if (n < 4)
		return;
	story_fault("somebody deletes the object %s", chosen->key);
	judge_deleted(chosen);
	world_s3_delete(world.s3, chosen->key);
}

static void drop_what_is_old(int64_t before_s)
{
	const struct s3_stored *object;
	for (size_t i = 0; (object = world_s3_at(world.s3, i));) {
		if (object->modified_s >= before_s) {
			i++;
			continue;
		}
		story_fault("the bucket's rule deletes %s", object->key);
		if (!runs_own(object->key))
			judge_deleted(object);
		world_s3_delete(world.s3, object->key);
	}
}

/* Acts like a lifecycle rule, once a day, at an hour of the night at which runs begin, too. */
static void live_by_rule(void *arg)
{
	for (unsigned hour = 1; hour <= world.scenario.night_h; hour++) {
		task_sleep_until(hour * 3600 * NS_PER_S + NS_PER_S / 2);
		drop_what_is_old(WORLD_EPOCH + (int64_t)hour * 3600 -
				 (int64_t)world.scenario.lifecycle_h * 3600);
	}
	world.busy--;
}

static void act(void *arg)
{
	struct chance chance = chance_of(world.seed, "operators");
	for (unsigned i = 0; i < world.scenario.backups; i++)
		restore_backup(&chance);
	for (unsigned i = 0; i < world.scenario.anew; i++)
		make_bucket_anew(&chance);
	for (unsigned i = 0; i < world.scenario.deletes; i++)
		delete_object(&chance);
	struct chance other = chance_of(world.seed, "id object");
	for (unsigned i = 0; i < world.scenario.id_gone; i++)
		delete_id_object(&other);
	world.busy--;
}

void operators_begin(void)
{
	const struct scenario *s = &world.scenario;
	if (s->lifecycle_h) {
		world.busy++;
		task_start(NULL, live_by_rule, NULL);
	}
	if (!s->anew && !s->backups && !s->deletes && !s->id_gone)
		return;
	world.busy++;
	task_start(NULL, act, NULL);
}
