/* Programs whose output is uploaded (push s3://BUCKET/KEY -- COMMAND), and their --spool folders.
 * Each output differs, like dumps of a database. */
#include "pipes.h"
#include "judge.h"
#include "story.h"
#include "world.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1000000000ULL

struct producer {
	const struct machine *machine;
	char key[80], folder[40];    /* folder: that of --spool */
	const char *source, *suffix; /* suffix: that of --compress */
	struct chance chance;
	unsigned char *bytes;
	size_t n, at;
	bool has_begun, fails, is_well; /* is_well: the whole output was written */
	bool was_kept;                  /* by an earlier run */
};

static size_t write_output(struct producer *producer)
{
	struct chance *chance = &producer->chance;
	size_t n = chance_between(chance, 1, chance_hits(chance, 900) ? 6000 : 200000);
	if (world.scenario.large)
		n |= 6U << 20;
	if (!world.is_calm && chance_hits(chance, 50))
		n = 0;
	producer->bytes = malloc(n + 1);
	if (!producer->bytes)
		abort();
	chance_fill(chance, producer->bytes, n);
	return n;
}

static bool has_kept(const struct producer *producer)
{
	const struct node *folder = disk_get(producer->machine->disk, producer->folder);
	return folder && folder->n_entries;
}

static void begin(struct producer *producer)
{
	producer->has_begun = true;
	producer->n = write_output(producer);
	producer->fails = !world.is_calm && chance_hits(&producer->chance, 200);
	judge_produced(producer->key, producer->suffix, task_process());
	if (has_kept(producer))
		story_break("the output for %s is made again, although it is kept", producer->key);
	story("the output for %s begins", producer->key);
}

/* Implements s3once_read: in pieces, with pauses, and with a good or a bad end. */
static long produce(void *arg, void *buffer, size_t n, char *ret_text, size_t size)
{
	struct producer *producer = arg;
	if (!n) {
		story("the output for %s is not wanted any more", producer->key);
		return 0;
	}
	if (!producer->has_begun)
		begin(producer);
	const size_t left = producer->n - producer->at;
	if (chance_hits(&producer->chance, 300)) {
		task_sleep_until(world_now_ns() + chance_below(&producer->chance, NS_PER_S));
		return -EAGAIN;
	}
	if (producer->fails && chance_hits(&producer->chance, 300)) {
		story("the output for %s ends with an error", producer->key);
		snprintf(ret_text, size, "ended with exit status 1");
		return -ECHILD;
	}
	if (!left && producer->fails)
		return -EAGAIN;
	if (!left) {
		producer->is_well = producer->n != 0;
		if (producer->is_well)
			judge_output(producer->key, producer->bytes, producer->n);
		return 0;
	}
	const size_t most = 1 + chance_below(&producer->chance, n < left ? n : left);
	memcpy(buffer, producer->bytes + producer->at, most);
	producer->at += most;
	return (long)most;
}

struct producer *producer_new(const struct machine *machine, struct s3once_options *options)
{
	struct producer *producer = calloc(1, sizeof *producer);
	const unsigned n = world.pipes++;
	/* At first two machines write to one key. In the end each machine writes to each key. */
	const unsigned key = (world.is_calm ? n : n / 2) % PIPES_KEYS;
	if (!producer)
		abort();
	producer->machine = machine;
	producer->chance = chance_of(world.seed + n, "producer");
	snprintf(producer->key, sizeof producer->key, "%s/pipe-%u", run_prefix(machine), key);
	snprintf(producer->folder, sizeof producer->folder, "/home/up/spool-%u", key);
	producer->was_kept = has_kept(producer);
	producer->source = "-";
	producer->suffix = !options->compress                      ? ""
			   : strncmp(options->compress, "gzip", 4) ? ".zst"
								   : ".gz";
	options->sources = &producer->source;
	options->prefix = NULL;
	options->as = producer->key;
	options->read = produce;
	options->read_arg = producer;
	options->spool = world.scenario.spools ? producer->folder : NULL;
	options->rotated = options->live = options->final = options->removes = 0;
	options->compare_content = 0;
	options->if_changed = S3ONCE_CHANGED_FAIL; /* if versions differ at all */
	return producer;
}

bool pipe_makes(const char *key)
{
	const char *slash = strrchr(key, '/');
	return slash && strncmp(slash, "/pipe-", 6) == 0;
}

static bool is_alone(const struct machine_process *process)
{
	for (const struct machine_process *p = processes_first(); p; p = p->next)
		if (p != process && !p->is_over && p->machine == process->machine)
			return false;
	return true;
}

void producer_end(struct producer *producer, const struct machine_process *process, int exit)
{
	if (exit == 0 && producer->has_begun && !producer->is_well)
		story_break("%s ends with 0, and the output for %s was not whole", process->name,
			producer->key);
	if (exit == 0)
		judge_piped(producer->key, process);
	if (exit == 0 && is_alone(process) && has_kept(producer))
		story_break("%s ends with 0, and the output for %s is kept still", process->name,
			producer->key);
	if (exit != 0 && (producer->is_well || producer->was_kept) && world.scenario.spools &&
		!has_kept(producer) && !judge_has_output(producer->key))
		story_break("%s ends with %d, and the output for %s is neither kept nor in S3",
			process->name, exit, producer->key);
	free(producer->bytes);
	free(producer);
}
