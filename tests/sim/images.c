/* Copies the disk of a host, with its files, jobs and marks, and boots it as another machine, which
 * writes below the same prefix. See world.h. */
#include "judge.h"
#include "story.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>

#define NS_PER_S 1000000000ULL

struct machine *world_image(void)
{
	return world.scenario.images && world_people() > 1 ? machine_at(world_people() - 1) : NULL;
}

struct machine *world_original(struct machine *machine)
{
	return machine == world_image() ? machine_at(0) : machine;
}

/* Whether the disk may be copied now. Mostly no run may be under way. */
static bool is_ready(const struct machine *original, bool may_run)
{
	return !original->is_off && original->is_noted && (may_run || !processes_any(original));
}

static void note_files(struct node *folder, const char *prefix)
{
	char path[400];
	for (size_t i = 0; i < folder->n_entries; i++) {
		struct node *node = folder->entries[i].node;
		if (snprintf(path, sizeof path, "%s/%s", prefix, folder->entries[i].name) >=
			(int)sizeof path)
			abort(); /* the path is longer than any in these worlds */
		if (S_ISDIR(node->mode))
			note_files(node, path);
		else
			judge_copied_content(path, node);
	}
}

static void make_image(void *arg)
{
	struct machine *original = machine_at(0), *image = world_image();
	struct chance chance = chance_of(world.seed, "images");
	const bool may_run = chance_hits(&chance, 300);
	task_sleep_until(world_now_ns() + chance_below(&chance, 100 * NS_PER_S));
	for (unsigned i = 0; i < 600 && !is_ready(original, may_run); i++)
		task_sleep_until(world_now_ns() + NS_PER_S / 10);
	world.imaged_ns = world_now_ns();
	if (is_ready(original, may_run)) {
		disk_copy(original->disk, "/home", image->disk);
		disk_copy(original->disk, "/data", image->disk);
		image->has_pushed = true;
		note_files(disk_get(image->disk, "/data"), run_prefix(image));
		story_fault("the disk of %s is copied", original->name);
	}
	machine_boot(image);
	story("%s has booted", image->name);
	world.busy--;
}

void images_begin(void)
{
	if (!world_image())
		return;
	world_image()->is_off = true;
	world.busy++;
	task_start(NULL, make_image, NULL);
}
