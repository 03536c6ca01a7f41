/* Implements world.h. */
#include "world.h"
#include "base/log.h"
#include "denials.h"
#include "judge.h"
#include "judge_parts.h"
#include "judge_runs.h"
#include "kernel.h"
#include "net.h"
#include "pipes.h"
#include "silences.h"
#include "story.h"
#include "trace.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S  1000000000ULL
#define NS_PER_MS 1000000ULL
#define END_S     (14ULL * 24 * 3600) /* no world takes this long */
#define REST_S    (6ULL * 3600)       /* time limit for the end once the world is calm */
#define HOUR_NS   (3600 * NS_PER_S)

struct world world;

static const char *const names[MACHINES_MAX] = {
	"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"};

static bool is_over(void)
{
	return world.is_over || story_broken();
}

/* Whether a request is to the bucket of locks, which its host or its path shows. */
static bool is_of_locks(const struct wire_request *request)
{
	return world.lock_bucket && (strncmp(request->host, WORLD_LOCKS ".", 6) == 0 ||
					    strncmp(request->path, "/" WORLD_LOCKS, 6) == 0);
}

static void serve(void *arg, const struct wire_request *request, struct wire_reply *ret)
{
	const int64_t now_s = WORLD_EPOCH + (int64_t)(world_now_ns() / NS_PER_S);
	if (wire_header(request, "x-amz-target"))
		world_dynamodb_answer(world.db, request, now_s, ret);
	else {
		struct world_s3 *s3 = is_of_locks(request) ? world.lock_bucket : world.s3;
		world_s3_tell_time(s3, world_now_ns());
		world_s3_answer(s3, request, now_s, ret);
	}
}

/* Writes the row that `s3once init` writes. */
static void make_settings(void)
{
	static const char *const header = "x-amz-target: DynamoDB_20120810.PutItem";
	char *body;
	const int n = asprintf(&body,
		"{\"TableName\":\"%s\",\"Item\":{\"pk\":{\"S\":\"settings\"},\"sk\":{\"S\":\"-\"},"
		"\"id\":{\"S\":\"0123456789abcdef0123456789abcdef\"},\"layout\":{\"N\":\"1\"},"
		"\"shards\":{\"N\":\"2\"}}}",
		WORLD_TABLE);
	struct wire_reply reply;
	struct wire_request *request = wire_request_new(
		"POST", "https://x/", &header, 1, (unsigned char *)body, (size_t)n);
	wire_reply_init(&reply);
	world_dynamodb_answer(world.db, request, WORLD_EPOCH, &reply);
	wire_reply_clear(&reply);
	wire_request_free(request);
}

static void make_servers(void)
{
	const struct scenario *s = &world.scenario;
	const struct s3_habits s3 = {.conditions = (enum s3_conditions)(s->ignores % 3),
		.keeps_checksums = !s->drops_sums,
		.has_versions = s->versions != 0,
		.etag_is_md5 = true,
		.page = s->small_pages ? 2 : 0};
	const struct dynamodb_habits db = {.batches = (enum dynamodb_batches)(s->batches % 3),
		.ttl = "expires",
		.returns_old = !s->no_old,
		.may_read_stale = s->stale != 0,
		.page_items = s->small_pages ? 2 : 0,
		.partial_per_mille = s->partial};
	const struct s3_witness witness = {.stores = judge_store,
		.removes = judge_remove_object,
		.refuses = judge_refused_object,
		.shows = judge_shown_object,
		.uploads = trace_upload,
		.takes_part = parts_stored,
		.shows_part = parts_listed};
	const struct net_habits net = {.faults = {.lost_before = s->lost,
					       .lost_after = s->lost_after,
					       .hangs = s->hangs,
					       .sent_twice = s->twice,
					       .comes_again = s->again,
					       .server_error = s->errors,
					       .error_after = s->errors_after,
					       .throttled = s->throttled,
					       .html = s->html,
					       .lags = s->lags,
					       .refused = s->lost / 2},
		.meet_per_mille = s->meets,
		.has_proxy = s->proxy != 0,
		.refuses_first_part = s->bad_part != 0,
		.late_most_ns = (s->late_s ? s->late_s : 600) * NS_PER_S,
		.latency_least_ns = (s->slow ? 100 : 2) * NS_PER_MS,
		.latency_most_ns = (s->slow ? 3000 : 60) * NS_PER_MS};
	world.s3 = world_s3_new(world.seed, WORLD_BUCKET, &s3, &witness);
	if (s->s3_locks)
		world.lock_bucket = world_s3_new(world.seed + 1, WORLD_LOCKS,
			&(struct s3_habits){.keeps_checksums = true, .etag_is_md5 = true},
			&(struct s3_witness){0});
	world.db = world_dynamodb_new(world.seed, WORLD_TABLE, &db, judge_item, NULL);
	make_settings();
	net_begin(world.seed, &net, serve, NULL);
}

static int64_t file_server_ns(void *arg)
{
	return (int64_t)(WORLD_EPOCH * NS_PER_S + world_now_ns());
}

/* Makes a folder for --spool. */
static void make_spool(struct disk *disk, unsigned key)
{
	char path[64];
	snprintf(path, sizeof path, "/home/up/spool-%u/.keep", key);
	disk_put(disk, path, "", 0);
	*strrchr(path, '/') = 0;
	struct node *folder = disk_get(disk, path);
	disk_remove(folder, ".keep", false);
	folder->uid = 1000;
}

static void make_data(const struct machine *machine)
{
	struct disk *shared = world_shared(machine);
	if (shared)
		disk_link(disk_root(machine->disk), "data", disk_root(shared));
	else {
		disk_put(machine->disk, "/data/.keep", "", 0);
		disk_remove(disk_get(machine->disk, "/data"), ".keep", false);
	}
	disk_get(machine->disk, "/data")->uid = 1000;
}

static void make_machines(void)
{
	const unsigned n = world.scenario.hosts ? world.scenario.hosts : 1;
	if (world.scenario.dynamodb)
		world.shared = disk_new(world.seed, "shared", file_server_ns, NULL);
	for (unsigned i = 0; i < n && i < MACHINES_MAX; i++) {
		struct machine *machine = machine_add(names[i], world.scenario.clones != 0);
		struct disk *disk = machine->disk;
		disk_put(disk, "/home/up/.keep", "", 0);
		disk_put(disk, "/tmp/.keep", "", 0);
		disk_put(disk, "/var/tmp/.keep", "", 0);
		for (unsigned k = 0; k < PIPES_KEYS && world.scenario.spools; k++)
			make_spool(disk, k);
		disk_get(disk, "/home/up")->uid = 1000;
		if (world.scenario.rules)
			disk_put(disk, RULES_PATH, rules_text, strlen(rules_text));
	}
	for (size_t i = 0; i < machines_count(); i++)
		make_data(machine_at(i));
}

bool world_rotates(const struct machine *machine)
{
	const unsigned rotated = world.scenario.rotated;
	return rotated == 1 || (rotated && machine->index + 1 == machines_count());
}

bool world_rotates_key(const char *key)
{
	for (size_t i = 0; i < machines_count(); i++) {
		const char *prefix = run_prefix(machine_at(i));
		const size_t n = strlen(prefix);
		if (world_rotates(machine_at(i)) && strncmp(key, prefix, n) == 0 && key[n] == '/')
			return true;
	}
	return false;
}

struct disk *world_shared(const struct machine *machine)
{
	return world.scenario.rotated == 2 && world_rotates(machine) ? NULL : world.shared;
}

size_t world_people(void)
{
	return world.scenario.rotated == 1 ? 0 : machines_count() - (world.scenario.rotated == 2);
}

size_t world_people_disks(void)
{
	return world.shared && world_people() ? 1 : world_people() - (world_image() != NULL);
}

bool world_loses_objects(void)
{
	return world.scenario.deletes || world.scenario.lifecycle_h;
}

uint64_t world_look_ns(uint64_t ns)
{
	return world.scenario.night_h ? 30 * ns : ns;
}

bool world_is_late(struct chance *chance)
{
	return world.scenario.night_h && (world.scenario.rotated != 2 || chance_hits(chance, 500));
}

uint64_t world_night_ns(void)
{
	return world.scenario.night_h * HOUR_NS;
}

static bool can_run(const struct machine *machine)
{
	return !machine->is_off && !machine->suspended_at_ns;
}

/* If a world has people's files and logs, the runs for people's files follow each other in the
 * evening, and there are two runs for the logs in the night. */
static bool is_evening(const struct machine *machine)
{
	return world.scenario.rotated == 2 && !world_rotates(machine);
}

static unsigned runs_of(const struct machine *machine)
{
	return world.scenario.rotated == 2 && world_rotates(machine) ? WORLD_LOG_RUNS
								     : world.scenario.runs;
}

/* In a night, timers and logrotate meet at full hours. A machine may catch up on runs that it has
 * missed. */
static void wait_for_timer(const struct machine *machine, struct chance *chance, unsigned run)
{
	const bool is_at_hours = world.scenario.night_h && !is_evening(machine);
	const unsigned n = runs_of(machine), first = world.scenario.rotated == 2;
	const uint64_t hours = is_at_hours ? (first + run) * world.scenario.night_h / n : 0;
	const bool makes_up = is_at_hours && chance_hits(chance, 500);
	if (world_now_ns() < hours * HOUR_NS)
		task_sleep_until(hours * HOUR_NS);
	task_sleep_until(
		world_now_ns() +
		chance_below(chance, chance_hits(chance, 600) ? NS_PER_S : 120 * NS_PER_S));
	while (makes_up && !can_run(machine) && world_now_ns() < world_night_ns())
		task_sleep_until(world_now_ns() + world_look_ns(NS_PER_S));
}

/* The timer of a machine: some runs, one after the other or overlapping. */
static void run_now_and_then(void *arg)
{
	struct machine *machine = arg;
	struct chance chance = chance_of(world.seed ^ (machine->index + 1), "timer");
	int *exits = calloc(runs_of(machine) + 1, sizeof *exits);
	while (machine == world_image() && !world.imaged_ns)
		task_sleep_until(world_now_ns() + NS_PER_S);
	for (unsigned i = 0; i < runs_of(machine); i++) {
		wait_for_timer(machine, &chance, i);
		if (!can_run(machine))
			continue;
		struct machine_process *process = run_start(machine, RUN_PUSH, &exits[i]);
		if (chance_hits(&chance, world.scenario.overlap))
			continue;
		while (!process->is_over)
			task_sleep_until(world_now_ns() +
					 (is_evening(machine) ? NS_PER_S / 10
							      : world_look_ns(NS_PER_S / 10)));
	}
	world.busy--; /* runs that have not ended still write to `exits` */
}

/* Runs an audit now and then. */
static void audit_now_and_then(void *arg)
{
	static const enum run_kind kinds[] = {RUN_VERIFY, RUN_VERIFY, RUN_GC, RUN_FORGET};
	struct chance chance = chance_of(world.seed, "audits");
	int *exits = calloc(world.scenario.audits + 1, sizeof *exits);
	for (unsigned i = 0; i < world.scenario.audits; i++) {
		task_sleep_until(
			world_now_ns() +
			chance_below(&chance, world_is_late(&chance)
						      ? world_night_ns() / world.scenario.audits
						      : 60 * NS_PER_S));
		struct machine *machine = machine_at(chance_below(&chance, machines_count()));
		const enum run_kind kind = kinds[chance_below(&chance, 4)];
		if (can_run(machine))
			run_start(machine, kind, &exits[i]);
	}
	world.busy--;
}

/* Starts jobs on several machines at the same time, of which a lock lets one run at a time. */
static void take_locks(void *arg)
{
	struct chance chance = chance_of(world.seed, "lockers");
	const unsigned n = world.scenario.lockers;
	int *exits = calloc(n + 1, sizeof *exits);
	for (unsigned i = 0; i < n; i++) {
		struct machine *machine = machine_at(chance_below(&chance, machines_count()));
		if (i % 2 == 0)
			task_sleep_until(
				world_now_ns() + chance_below(&chance, 2 * world_night_ns() / n));
		if (can_run(machine))
			run_start(machine, RUN_LOCKER, &exits[i]);
	}
	world.busy--;
}

/* Starts backups of databases at the same time on two machines. */
static void take_pipes(void *arg)
{
	struct chance chance = chance_of(world.seed, "pipes begin");
	const unsigned n = world.scenario.pipes;
	const uint64_t length_ns = world.scenario.night_h ? 2 * world_night_ns() : 60 * NS_PER_S;
	int *exits = calloc(n + 1, sizeof *exits);
	for (unsigned i = 0; i < n; i++) {
		struct machine *machine = machine_at(chance_below(&chance, machines_count()));
		if (i % 2 == 0)
			task_sleep_until(world_now_ns() + chance_below(&chance, length_ns / n));
		if (can_run(machine))
			run_start(machine, RUN_PIPE, &exits[i]);
	}
	world.busy--;
}

#define BAD_PART_S 7200 /* time for which the server refuses a part */

static void refuse_part(void *arg)
{
	task_sleep_until(BAD_PART_S * NS_PER_S);
	world.busy--;
}

static bool wait_until_ns(uint64_t end_ns, bool (*is_so)(void))
{
	while (!is_so() && world_now_ns() < end_ns)
		task_sleep_until(world_now_ns() + world_look_ns(NS_PER_S));
	return is_so();
}

static bool is_quiet(void)
{
	return !processes_any(NULL);
}

static bool no_late_copies(void)
{
	return !net_late_copies();
}

static bool nobody_is_busy(void)
{
	return !world.busy;
}

/* A run was killed that was about to remove a file, and logrotate has given the name to another
 * file. The last run reports it, and people would compare the two. */
bool world_is_left_over(const struct machine *machine, const char *path)
{
	struct disk *shared = world_shared(machine), *disk = shared ? shared : machine->disk;
	struct node *data = shared ? disk_root(disk) : disk_get(disk, "/data"), *folder, *other;
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const bool is_folder = strcmp(name, ".s3once-removing") == 0;
	size_t n = 0;
	if (!world_rotates(machine) || disk_find(disk, data, ".s3once-removing", 0, &folder))
		return false;
	for (size_t i = 0; i < folder->n_entries; i++) {
		const struct node_entry *entry = &folder->entries[i];
		if (!is_folder && strcmp(entry->name, name) != 0)
			continue;
		if (disk_find(disk, data, entry->name, 0, &other) ||
			!judge_is_in_s3(run_prefix(machine), entry->node))
			return false;
		n++;
	}
	return n != 0;
}

/* Exit statuses that a last run may have although nothing is wrong with the program. */
static bool is_explained(const struct machine *machine, int exit)
{
	const struct scenario *s = &world.scenario;
	return exit == 0 ||
	       (exit == S3ONCE_EXIT_FILES && machine->failures &&
		       machine->failures == machine->left_overs) ||
	       /* Each of two machines with the same marks may have another file for a key, and
		  replace every object that the other one has found. */
	       ((exit == S3ONCE_EXIT_FILES || exit == S3ONCE_EXIT_SETUP) && world_image() &&
		       (machine == machine_at(0) || machine == world_image())) ||
	       (exit == S3ONCE_EXIT_FILES && (s->foreign || world_loses_objects() ||
						     s->if_changed == 1 || s->recompress)) ||
	       (exit == S3ONCE_EXIT_SETUP &&
		       world_loses_objects()); /* no object identifies the bucket any more */
}

static void run_last(struct machine *machine, enum run_kind kind)
{
	int exit = -1;
	static const char *const run_names[] = {[RUN_PUSH] = "push",
		[RUN_PIPE] = "push of a pipe",
		[RUN_VERIFY] = "verify",
		[RUN_LOCKER] = "job with a lock"};
	const char *name = run_names[kind];
	run_start(machine, kind, &exit);
	if (!wait_until_ns(world_now_ns() + REST_S * NS_PER_S, is_quiet))
		story_break("the last %s of %s does not end", name, machine->name);
	else if (!is_explained(machine, exit))
		story_break("the last %s of %s ends with %d, and nothing is wrong any more", name,
			machine->name, exit);
}

/* Sets the hooks of the kernel. Once the world is at rest, no read fails. */
static void hook_kernel(const struct scenario *s)
{
	kernel_hook(&(struct kernel_hooks){.removes = judge_removal,
		.read_fails_per_mille = world.is_calm ? 0 : s->bad_reads,
		.call_most_ns = s->slow_files ? 3 * NS_PER_MS : 0,
		.threads_most = world.is_calm ? 0 : s->threads});
}

/* Whether an earlier machine has the same files and marks: in a night, its further last runs count
 * for both. */
static bool is_spoken_for(const struct machine *machine)
{
	return world.scenario.night_h && machine->index && world_shared(machine);
}

/* Whether a second last run follows, which finds nothing to do or finishes the rest. */
static bool has_second_last(const struct machine *machine)
{
	return !is_spoken_for(machine) && (!world.scenario.once || machine->failures);
}

/* Waits until nothing more happens. Then everything has to end well. */
static void conclude(void *arg)
{
	wait_until_ns(world_night_ns() + END_S / 2 * NS_PER_S, nobody_is_busy);
	net_calm();
	world_dynamodb_calm(world.db);
	story("all is calm from now on");
	world.is_calm = true;
	world.runs_before = world.runs;
	hook_kernel(&world.scenario);
	wait_until_ns(world_night_ns() + END_S * NS_PER_S, no_late_copies);
	if (!wait_until_ns(world_now_ns() + REST_S * NS_PER_S, is_quiet))
		story_break("runs do not end although nothing is wrong any more");
	/* Sets the clocks of machines right, as people would. */
	for (size_t i = 0; i < machines_count(); i++)
		machine_at(i)->wall_shift_ns = (int64_t)(WORLD_EPOCH * NS_PER_S);
	zoo_rest();
	for (size_t i = 0; i < machines_count() && !story_broken(); i++)
		run_last(machine_at(i), RUN_PUSH);
	for (size_t i = 0; i < machines_count() && !story_broken(); i++)
		if (has_second_last(machine_at(i)))
			run_last(machine_at(i), RUN_PUSH);
	world.pipes = 0;
	for (size_t i = 0; i < machines_count() && world.scenario.pipes; i++)
		for (unsigned key = 0; key < PIPES_KEYS && !story_broken(); key++)
			run_last(machine_at(i), RUN_PIPE);
	for (size_t i = 0; i < machines_count() && !story_broken(); i++)
		if (!is_spoken_for(machine_at(i)))
			run_last(machine_at(i), RUN_VERIFY);
	for (size_t i = 0; i < machines_count() && world.scenario.lockers && !story_broken(); i++)
		run_last(machine_at(i), RUN_LOCKER);
	if (!story_broken() && !world.scenario.foreign && !world_loses_objects() &&
		world.scenario.if_changed != 1)
		judge_rest();
	world.is_over = true;
}

static void log_line(void *arg, enum log_level level, const char *line)
{
	if (!task_process())
		return;
	story_detail("%s", line);
	if (level <= LOG_WARNING)
		silences_said(task_process());
}

static void clear(void)
{
	judge_end();
	zoo_end();
	world_s3_free(world.s3);
	world_s3_free(world.lock_bucket);
	world.lock_bucket = NULL;
	world_dynamodb_free(world.db);
	disk_free(world.shared);
	world = (struct world){0};
}

const char *world_play(uint64_t seed, const struct scenario *scenario)
{
	clear();
	log_set_sink(log_line, NULL);
	log_set_level(LOG_INFO);
	hook_kernel(scenario);
	tasks_begin(seed);
	machines_begin(seed);
	vfs_begin(seed);
	world.seed = seed;
	world.scenario = *scenario;
	world.chance = chance_of(seed, "world");
	judge_begin();
	runs_begin();
	silences_begin();
	denials_begin();
	make_servers();
	make_machines();
	if (world.scenario.rotated)
		logrotate_begin();
	if (world_people())
		people_begin();
	images_begin();
	operators_begin();
	troubles_begin();
	for (size_t i = 0; i < machines_count(); i++) {
		world.busy++;
		task_start(NULL, run_now_and_then, machine_at(i));
	}
	if (scenario->audits) {
		world.busy++;
		task_start(NULL, audit_now_and_then, NULL);
	}
	if (scenario->lockers) {
		world.busy++;
		task_start(NULL, take_locks, NULL);
	}
	if (scenario->pipes) {
		world.busy++;
		task_start(NULL, take_pipes, NULL);
	}
	if (scenario->bad_part) {
		world.busy++;
		task_start(NULL, refuse_part, NULL);
	}
	task_start(NULL, conclude, NULL);
	const enum tasks_end end = tasks_run(is_over, world_night_ns() + END_S * 2 * NS_PER_S);
	if (end == TASKS_DEADLOCK)
		story_break("nobody can go on: a deadlock");
	else if (end == TASKS_OUT_OF_TIME)
		story_break("it does not end");
	return story_broken();
}

struct world_sums world_sums(void)
{
	return (struct world_sums){.s = world_now_ns() / NS_PER_S,
		.runs = world.runs_before,
		.last_runs = world.runs - world.runs_before,
		.faults = story_faults() + (unsigned)net_faults_met()};
}
