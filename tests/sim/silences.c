#include "silences.h"
#include "base/checksum.h"
#include "s3once/push.h"
#include "story.h"
#include "tasks.h"
#include "world.h"
#include <string.h>

#define NS_PER_S  1000000000ULL
#define GIVE_UP_S 300 /* the default */
#define SAYS_S    10  /* time without progress until a line reports it */
/* Allowance for the last check of the clock, and for the writes of a run that ends. */
#define MARGIN_S 30
/* A larger allowance if replies are slow or missing: a run may wait minutes for replies of the
 * table, and send no request to S3 meanwhile. */
#define TABLE_S 1800
/* A run that has sent no request to the silent server for this long does not wait for it, but
 * perhaps for another run that holds the files. */
#define ASKS_NO_MORE_S (2 * RUN_REQUEST_S + 60)

enum kind {
	S3_IS_SILENT,
	TABLE_IS_SILENT,
	ALL_ARE_SILENT,
	HALF_OPEN, /* the connections of one machine */
	ENDLESS_HEADERS,
	COMPLETE_HANGS,
	KINDS
};
static const char *const kinds[KINDS] = {"S3 is silent", "the table is silent", "nobody answers",
	"the connections of a machine are half open", "the headers of S3's answers do not end",
	"S3 completes no upload"};

/* A body that was sent into a silence. */
struct left {
	const struct machine_process *process;
	uint64_t target; /* a hash of its path and query */
};

static struct {
	bool is_on;
	enum kind kind;
	const struct machine *machine;
	struct left left[1000]; /* further ones count as new */
	size_t n_left;
} silence;

void silences_begin(void)
{
	silence.is_on = false;
	silence.n_left = 0;
}

void silences_calm(void)
{
	silence.is_on = false;
}

static bool is_complete(const struct wire_request *request)
{
	return strcmp(request->method, "POST") == 0 && strstr(request->query, "uploadId=");
}

enum silence silence_of(const struct wire_request *request)
{
	const bool is_s3 = !wire_header(request, "x-amz-target");
	const struct machine_process *from = request->from;
	if (!silence.is_on || !from)
		return SILENCE_NONE;
	const bool is_so = silence.kind == S3_IS_SILENT || silence.kind == ENDLESS_HEADERS ? is_s3
			   : silence.kind == TABLE_IS_SILENT                               ? !is_s3
			   : silence.kind == HALF_OPEN      ? from->machine == silence.machine
			   : silence.kind == COMPLETE_HANGS ? is_s3 && is_complete(request)
							    : true;
	return !is_so                            ? SILENCE_NONE
	       : silence.kind == ENDLESS_HEADERS ? SILENCE_TRICKLES
						 : SILENCE_STALLS;
}

bool silence_applies(const struct wire_request *request)
{
	return is_complete(request) && silence.kind == COMPLETE_HANGS;
}

void silences_answered(const struct wire_request *request)
{
	struct machine_process *from = (struct machine_process *)(uintptr_t)request->from;
	const bool is_s3 = !wire_header(request, "x-amz-target");
	if (from && is_s3 && (*request->method == 'P' || is_complete(request)))
		silences_moved(from);
}

void silences_moved(struct machine_process *process)
{
	process->heard.moved_ns = world_now_ns();
	process->heard.silent_ns = 0;
}

void silences_said(struct machine_process *process)
{
	process->heard.said_ns = world_now_ns();
}

/* Whether a body is sent for the first time, which counts as progress: the bytes are on the
 * network, and the run cannot know that no server takes them. A body that is sent again is no
 * progress. */
static bool leaves_first(const struct machine_process *process, const struct wire_request *request)
{
	if (!request->body_bytes || strcmp(request->method, "PUT") != 0)
		return false;
	uint64_t target = fnv_add(FNV_EMPTY, request->path, strlen(request->path));
	target = fnv_add(target, request->query, strlen(request->query));
	for (size_t i = 0; i < silence.n_left; i++)
		if (silence.left[i].process == process && silence.left[i].target == target)
			return false;
	if (silence.n_left < sizeof silence.left / sizeof *silence.left)
		silence.left[silence.n_left++] = (struct left){process, target};
	return true;
}

static bool asks_no_more(const struct heard *heard)
{
	return !heard->n_asked && world_now_ns() > heard->left_ns + ASKS_NO_MORE_S * NS_PER_S;
}

void silences_asked(struct machine_process *process, const struct wire_request *request)
{
	struct heard *heard = &process->heard;
	/* In the first case, the run may have reported before what it waits for. */
	if (leaves_first(process, request) || asks_no_more(heard))
		heard->silent_ns = 0;
	heard->n_asked++;
	if (heard->silent_ns)
		return;
	heard->silent_ns = world_now_ns();
	heard->suspended_ns = process->suspended_ns;
}

void silences_left(struct machine_process *process)
{
	process->heard.n_asked--;
	process->heard.left_ns = world_now_ns();
}

/* Returns the time without progress, in s. It is 0 for a process that was stopped or suspended. */
static uint64_t still_s(const struct machine_process *process)
{
	const struct heard *heard = &process->heard;
	const uint64_t since_ns =
		heard->silent_ns > process->continued_ns ? heard->silent_ns : process->continued_ns;
	if (!heard->silent_ns || asks_no_more(heard) || process->is_stopped ||
		process->machine->suspended_at_ns || heard->suspended_ns != process->suspended_ns)
		return 0;
	return (world_now_ns() - since_ns) / NS_PER_S;
}

/* Returns the time without progress after which a run has to give up, in s. It counts from the
 * first failure, and a silent request fails when its own time is over. */
static uint64_t limit_s(void)
{
	const unsigned s = world.scenario.give_up_s ? world.scenario.give_up_s : GIVE_UP_S;
	return (s > SAYS_S ? s : SAYS_S) + RUN_REQUEST_S;
}

static bool table_takes_long(void)
{
	return world.scenario.slow || world.scenario.hangs || world.scenario.meets;
}

static void judge_one(const struct machine_process *process)
{
	const struct heard *heard = &process->heard;
	const uint64_t s = still_s(process);
	if (s > limit_s() + MARGIN_S + (table_takes_long() ? TABLE_S : 0))
		story_break("%s goes on, although nothing has moved for %llu s: %s", process->name,
			(unsigned long long)s, kinds[silence.kind]);
	if (s > SAYS_S + MARGIN_S && heard->said_ns <= heard->moved_ns)
		story_break("%s has not said anything, and nothing has moved for %llu s: %s",
			process->name, (unsigned long long)s, kinds[silence.kind]);
}

void silences_ended(const struct machine_process *process, int exit)
{
	if (!table_takes_long() && !world.scenario.limit_s && still_s(process) >= limit_s() &&
		(exit == S3ONCE_EXIT_OK || exit == S3ONCE_EXIT_FILES))
		story_break("%s ends with %d, and nothing has moved for %llu s", process->name,
			exit, (unsigned long long)still_s(process));
}

static bool has_begun(uint64_t end_ns)
{
	return silence.is_on && world_now_ns() < end_ns;
}

void silences_fall(struct chance *chance)
{
	static const uint64_t lengths_s[] = {60, 1200, 7200};
	const uint64_t length_s = chance_between(chance, 30, lengths_s[chance_below(chance, 3)]);
	const uint64_t end_ns = world_now_ns() + length_s * NS_PER_S;
	if (silence.is_on)
		return;
	silence.is_on = true;
	silence.kind = (enum kind)chance_below(chance, KINDS);
	silence.machine = machine_at(chance_below(chance, machines_count()));
	story_fault("%s for %llu s", kinds[silence.kind], (unsigned long long)length_s);
	for (struct machine_process *p = processes_first(); p; p = p->next)
		p->heard.silent_ns = 0; /* of an earlier silence */
	while (has_begun(end_ns)) {
		task_sleep_until(world_now_ns() + NS_PER_S);
		for (struct machine_process *p = processes_first(); p; p = p->next)
			if (!p->is_over && run_is_push(p))
				judge_one(p);
	}
	silence.is_on = false;
	story("the silence is over");
}
