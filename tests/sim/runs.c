/* Commands that run as processes of simulated machines. Implements a part of world.h. */
#include "audits.h"
#include "judge.h"
#include "judge_runs.h"
#include "judge_waits.h"
#include "pipes.h"
#include "s3once/push.h"
#include "silences.h"
#include "story.h"
#include "world.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const environment[] = {"HOME=/home/up", "AWS_ACCESS_KEY_ID=AKIDEXAMPLE",
	"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", NULL};

#define GRACE_MS 10000 /* the default */

struct run {
	struct machine *machine;
	struct machine_process *process;
	enum run_kind kind;
	int *ret_exit;
	uint64_t began_ns;
	struct s3once_push *push; /* NULL before and after the run */
	uint64_t grace_ms;        /* 0: the default */
	uint64_t asked_ns;        /* world time at which it was asked to end, or 0 */
	uint64_t suspended_ns;    /* suspended_ns of its process at that time */
	bool was_told_of_bucket;  /* by --bucket same or --bucket new */
	bool keeps_earlier;       /* --if-changed=fail or skip */
};

const char *run_folder(const struct machine *machine)
{
	return "/data";
}

const char *run_prefix(const struct machine *machine)
{
	static char prefixes[MACHINES_MAX][40];
	if (world.scenario.dynamodb)
		return world_shared(machine) ? WORLD_PREFIX : WORLD_LOGS;
	snprintf(prefixes[machine->index], sizeof prefixes[0], "%s-%s", WORLD_PREFIX,
		world_original(machine_at(machine->index))->name);
	return prefixes[machine->index];
}

const char *run_endpoint(void)
{
	return world.scenario.aws ? NULL : "https://s3.example.net";
}

const char *run_marks(void)
{
	return world.scenario.dynamodb ? "dynamodb:" WORLD_TABLE : "local";
}

static const char *name_of(enum s3once_event_type type)
{
	static const char *const names[] = {
		[S3ONCE_EVENT_WARNING] = "warning",
		[S3ONCE_EVENT_UPLOADED] = "uploaded",
		[S3ONCE_EVENT_ADOPTED] = "found in S3",
		[S3ONCE_EVENT_REFRESHED] = "refreshed",
		[S3ONCE_EVENT_OUTDATED] = "outdated",
		[S3ONCE_EVENT_CHANGED] = "changed",
		[S3ONCE_EVENT_HELD] = "held",
		[S3ONCE_EVENT_WAITING] = "waits",
		[S3ONCE_EVENT_FAILED] = "failed",
		[S3ONCE_EVENT_RETRY] = "again",
		[S3ONCE_EVENT_REMOVED] = "removed",
		[S3ONCE_EVENT_MOVED] = "moved",
		[S3ONCE_EVENT_KEPT] = "kept",
		[S3ONCE_EVENT_NOT_REMOVED] = "not removed",
		[S3ONCE_EVENT_FATAL] = "fatal",
	};
	return (size_t)type < sizeof names / sizeof *names ? names[type] : NULL;
}

/* If a server ignores conditions, a late request may have replaced the object by an earlier
 * version. Then the file stays. */
static void note_failure(struct machine *machine, const struct s3once_event *event)
{
	const bool is_replaced = event->type == S3ONCE_EVENT_NOT_REMOVED &&
				 world.scenario.ignores && judge_may_differ(event->key);
	machine->failures++;
	machine->left_overs += is_replaced || world_is_left_over(machine, event->path);
}

/* Whether a file fails because of the servers, so that nothing has moved. A file that fails by
 * itself is finished. */
static bool is_of_what_fails(const struct s3once_event *event)
{
	const enum s3once_event_type type = event->type;
	if (type == S3ONCE_EVENT_FAILED)
		return strncmp(event->text, "failed after", 12) == 0;
	return type == S3ONCE_EVENT_NOTE || type == S3ONCE_EVENT_WARNING ||
	       type == S3ONCE_EVENT_RETRY || type == S3ONCE_EVENT_FATAL ||
	       type == S3ONCE_EVENT_HELD;
}

static void on_event(void *arg, const struct s3once_event *event)
{
	const char *name = name_of(event->type);
	if (is_of_what_fails(event))
		silences_said(task_process());
	else if (name && event->type != S3ONCE_EVENT_WAITING) /* waiting costs no request */
		silences_moved(task_process());
	else if (event->type ==
		 S3ONCE_EVENT_SKIPPED) /* it is progress only if the file was queued */
		task_process()->heard.silent_ns = 0;
	if (name)
		story("%s %s%s%s%s%s", name, event->path, *event->text ? ": " : "", event->text,
			*event->code ? ", " : "", event->code);
	if (event->type == S3ONCE_EVENT_UPLOADED || event->type == S3ONCE_EVENT_ADOPTED)
		judge_told(event->key);
	if (event->type == S3ONCE_EVENT_FAILED || event->type == S3ONCE_EVENT_NOT_REMOVED)
		note_failure(task_process()->machine, event);
	if (event->type == S3ONCE_EVENT_WAITING)
		waits_told(task_process(), event->path);
}

unsigned run_lease_s(void)
{
	const unsigned lengths[] = {world.scenario.slow ? 30 : 5, 30, 120};
	struct chance chance = chance_of(world.seed + (uint64_t)task_process()->pid, "lease");
	return world.scenario.leases ? lengths[chance_below(&chance, 3)] : world.scenario.lease_s;
}

static struct s3once_options options_of(const struct run *run, const char *const *source)
{
	static struct s3once_rate rate;
	const struct scenario *s = &world.scenario;
	static const enum s3once_if_changed if_changed[] = {
		S3ONCE_CHANGED_REPLACE, S3ONCE_CHANGED_FAIL, S3ONCE_CHANGED_SKIP};
	static const char *const compress[] = {NULL, "zstd:1", "gzip:1"};
	rate.bytes_per_second = (uint64_t)s->rate_kib << 10;
	return (struct s3once_options){.sources = source,
		.n_sources = 1,
		.bucket = WORLD_BUCKET,
		.prefix = run_prefix(run->machine),
		.marks = run_marks(),
		.region = "us-east-1",
		.endpoint_url = run_endpoint(),
		.dynamodb_endpoint_url = RUN_DYNAMODB,
		.rotated = world_rotates(run->machine),
		.live = s->live && world_rotates(run->machine),
		.compress = compress[s->compress % 3],
		.removes = s->removes != 0,
		.remove_after_s = world.is_calm ? 0 : s->age_s,
		.if_changed = if_changed[s->if_changed % 3],
		.concurrency = s->concurrency,
		.attempts = s->attempts,
		.give_up_after_ms = s->give_up_s * 1000,
		.request_timeout_ms = s->silences ? RUN_REQUEST_S * 1000 : 0,
		.part_bytes = 5U << 20,
		.lease_ms = run_lease_s() * 1000,
		.grace_ms = s->grace_s * 1000,
		.max_duration_ms = world.is_calm ? 0 : s->limit_s * 1000,
		.max_transfer_bytes = world.is_calm ? 0 : (uint64_t)s->transfer_kib << 10,
		.rates = &rate,
		.n_rates = s->rate_kib != 0,
		.rules_file = s->rules ? RULES_PATH : NULL,
		.manifest = s->manifest != 0,
		.bucket_id_object = s->id_object ? WORLD_ID_OBJECT : NULL,
		.callback = on_event,
		.report_skipped = 1};
}

/* Varies the options, as if the job file was changed since the last run. */
static void vary(struct s3once_options *options, struct chance *chance)
{
	static const char *const compress[] = {NULL, "zstd:1", "gzip:1"};
	static const char *const checksums[] = {
		NULL, "crc32", "crc64nvme", "sha1", "sha256", "md5"};
	if (options->rotated) /* the keys would differ otherwise */
		options->compress = compress[chance_below(chance, 3)];
	options->if_changed = (enum s3once_if_changed)chance_below(chance, 3);
	options->concurrency = (unsigned)chance_between(chance, 1, 8);
	options->checksum = checksums[chance_below(chance, 6)];
	options->part_bytes = (uint64_t)chance_between(chance, 5, 7) << 20;
	options->reupload = chance_hits(chance, 200);
	options->compare_content = chance_hits(chance, 200);
	options->no_wait = chance_hits(chance, 200);
	options->removes = options->removes && chance_hits(chance, 500);
}

/* Varies options in which jobs that write to the same place may differ. */
static void mix(struct s3once_options *options, struct chance *chance)
{
	static const char *const compress[] = {NULL, "zstd:1", "gzip:1"};
	if (world.scenario.if_mixed)
		options->if_changed = (enum s3once_if_changed)chance_below(chance, 3);
	if (world.scenario.recompress && !options->rotated)
		options->compress = compress[chance_below(chance, 3)];
}

static int push(struct run *run)
{
	const char *source = run_folder(run->machine);
	struct s3once_options options = options_of(run, &source);
	struct chance chance = chance_of(world.seed + ++world.pushes, "options");
	struct s3once_push *push;
	char text[1000];
	if (world.scenario.varies && !world.is_calm)
		vary(&options, &chance);
	struct chance mixed = chance_of(world.seed + world.pushes, "mixed");
	if (!world.is_calm)
		mix(&options, &mixed);
	/* The administrators who have recreated the bucket say so in some of the next runs. */
	if (world.is_anew && (world.is_calm || chance_hits(&chance, 500)))
		options.bucket_is = S3ONCE_BUCKET_NEW;
	if (world.is_id_gone && (world.is_calm || chance_hits(&mixed, 500)))
		options.bucket_is = S3ONCE_BUCKET_SAME;
	/* A live log that was uploaded as a whole is uploaded again when it has grown. */
	const bool may_be_final = !world.is_calm && (!options.rotated || options.live);
	if (may_be_final && chance_hits(&chance, world.scenario.finals)) {
		options.final = 1;
		options.max_duration_ms = (uint64_t)chance_between(&chance, 1, 60) * 1000;
		options.grace_ms = (uint64_t)chance_between(&chance, 1, 10) * 1000;
	}
	struct producer *producer =
		run->kind == RUN_PIPE ? producer_new(run->machine, &options) : NULL;
	story("push begins%s%s%s%s", producer ? " the output " : "", producer ? options.as : "",
		options.final ? " --final" : "",
		options.bucket_is == S3ONCE_BUCKET_NEW ? " --bucket new" : "");
	const unsigned reads_failed = run->process->reads_failed;
	if (s3once_push_new(&options, &push, text, sizeof text)) {
		if (run->process->reads_failed == reads_failed || !options.rules_file ||
			!strstr(text, strerror(EIO)))
			story_break("the options are refused: %s", text);
		return S3ONCE_EXIT_USAGE;
	}
	run->push = push;
	run->grace_ms = options.grace_ms;
	run->was_told_of_bucket = options.bucket_is != S3ONCE_BUCKET_KNOWN;
	run->keeps_earlier = options.if_changed != S3ONCE_CHANGED_REPLACE;
	run->machine->failures = run->machine->left_overs = 0;
	const int exit = (int)s3once_push_run(push);
	run->push = NULL;
	run->machine->has_pushed = true;
	run->machine->is_noted |= exit == S3ONCE_EXIT_OK || exit == S3ONCE_EXIT_FILES;
	run->machine->knows_id |= exit == 0 && judge_was_shown(run->process, WORLD_ID_OBJECT);
	if (producer)
		producer_end(producer, run->process, exit);
	const struct s3once_counts *counts = s3once_push_counts(push);
	story("push ends with %d: found %llu, uploaded %llu, adopted %llu, skipped %llu, failed %llu",
		exit, (unsigned long long)counts->found, (unsigned long long)counts->uploaded,
		(unsigned long long)counts->adopted, (unsigned long long)counts->skipped,
		(unsigned long long)counts->failed);
	if (!producer)
		judge_exit(run->process,
			&(struct run_end){.began_ns = run->began_ns,
				.exit = exit,
				.keeps_earlier = options.if_changed == S3ONCE_CHANGED_SKIP});
	runs_ended(run->process);
	silences_ended(run->process, exit);
	if (*s3once_push_manifest(push))
		runs_manifest(s3once_push_manifest(push), counts, run->began_ns);
	s3once_push_free(push);
	return exit;
}

static void run_main(void *arg)
{
	struct run *run = arg;
	run->process = task_process();
	run->began_ns = world_now_ns();
	runs_started(run->process);
	const bool is_push = run->kind == RUN_PUSH || run->kind == RUN_PIPE;
	const int exit = is_push                   ? push(run)
			 : run->kind == RUN_LOCKER ? locker_run(run->machine)
						   : audit_run(run->machine, run->kind);
	*run->ret_exit = exit;
	run->process->owner = NULL;
	free(run);
}

static void take_signal(void *arg)
{
	const struct machine_process *process = arg;
	const struct run *run = process->owner;
	if (run && run->push)
		s3once_push_stop(run->push);
}

bool run_is_push(const struct machine_process *process)
{
	const struct run *run = process->is_over ? NULL : process->owner;
	return run && run->push;
}

bool run_ask_to_end(struct machine_process *process)
{
	struct run *run = process->is_over ? NULL : process->owner;
	if (!run || !run->push || process->is_stopped || process->machine->suspended_at_ns)
		return false;
	if (!run->asked_ns) {
		run->asked_ns = world_now_ns();
		run->suspended_ns = process->suspended_ns;
	}
	task_start(process, take_signal, process);
	return true;
}

uint64_t run_asked_ns(const struct machine_process *process)
{
	const struct run *run = process && !process->is_over ? process->owner : NULL;
	return run && run->asked_ns ? run->asked_ns + process->suspended_ns - run->suspended_ns : 0;
}

uint64_t run_grace_ns(const struct machine_process *process)
{
	const struct run *run = process->owner;
	return (run->grace_ms ? run->grace_ms : GRACE_MS) * 1000000;
}

bool run_was_told_of_bucket(const struct machine_process *process)
{
	const struct run *run = process && !process->is_over ? process->owner : NULL;
	return !run || run->was_told_of_bucket;
}

bool run_keeps_earlier(const struct machine_process *process)
{
	const struct run *run = process && !process->is_over ? process->owner : NULL;
	return run && run->push && run->keeps_earlier;
}

struct machine_process *run_start(struct machine *machine, enum run_kind kind, int *ret_exit)
{
	struct run *run = calloc(1, sizeof *run);
	if (!run)
		abort();
	*run = (struct run){.machine = machine, .kind = kind, .ret_exit = ret_exit};
	*ret_exit = -1;
	world.runs++;
	task_wake_all(&world.runs);
	return process_start(machine, environment, run_main, run, run);
}
