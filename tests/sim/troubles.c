/* What happens to machines and processes: kills, stops, failures of power, and so on. */
#include "net.h"
#include "story.h"
#include "world.h"
#include <stdlib.h>

#define NS_PER_S 1000000000ULL

static void wait_a_while(struct chance *chance)
{
	/* Most runs take less than a second or two of virtual time. */
	static const uint64_t spans[] = {
		NS_PER_S / 10, NS_PER_S, NS_PER_S, 10 * NS_PER_S, 100 * NS_PER_S};
	task_sleep_until(world_now_ns() + chance_below(chance, spans[chance_below(chance, 5)]));
}

static struct machine_process *any_process(struct chance *chance)
{
	struct machine_process *chosen = NULL;
	size_t n = 0;
	for (struct machine_process *p = processes_first(); p; p = p->next)
		if (!p->is_over && chance_below(chance, ++n) == 0)
			chosen = p;
	return chosen;
}

static struct machine *any_machine(struct chance *chance)
{
	return machine_at(chance_below(chance, machines_count()));
}

/* Waits up to a minute until some process is there, and then a moment. */
static struct machine_process *wait_for_process(struct chance *chance)
{
	struct machine_process *process = NULL;
	for (unsigned i = 0; i < 60 && !(process = any_process(chance)); i++)
		task_sleep_until(world_now_ns() + NS_PER_S);
	if (process)
		task_sleep_until(world_now_ns() + chance_below(chance, chance_hits(chance, 500)
									       ? NS_PER_S / 2
									       : 3 * NS_PER_S));
	return any_process(chance);
}

static void kill_one(struct chance *chance)
{
	struct machine_process *process = wait_for_process(chance);
	if (process) {
		story_fault("%s is killed", process->name);
		process_kill(process);
	}
}

static void stop_one(struct chance *chance)
{
	struct machine_process *process = wait_for_process(chance);
	if (!process || process->is_stopped)
		return;
	story_fault("%s is stopped", process->name);
	process_stop(process);
	task_sleep_until(world_now_ns() + chance_below(chance, 120 * NS_PER_S));
	if (!process->is_over) {
		story("%s goes on", process->name);
		process_continue(process);
	}
}

static void suspend_one(struct chance *chance)
{
	struct machine *machine = any_machine(chance);
	if (machine->is_off || machine->suspended_at_ns)
		return;
	story_fault("%s is suspended", machine->name);
	machine_suspend(machine);
	task_sleep_until(world_now_ns() + chance_below(chance, 600 * NS_PER_S));
	story("%s wakes up", machine->name);
	machine_resume(machine);
}

static void cut_power(struct chance *chance)
{
	struct machine_process *process = wait_for_process(chance);
	struct machine *machine = process ? process->machine : any_machine(chance);
	if (machine->is_off || machine->suspended_at_ns)
		return;
	story_fault("the power of %s fails", machine->name);
	machine_lose_power(machine);
	task_sleep_until(world_now_ns() + chance_between(chance, 1, 60) * NS_PER_S);
	machine_boot(machine);
	story("%s has booted", machine->name);
}

static void cut_network(struct chance *chance)
{
	struct machine *machine = any_machine(chance);
	story_fault("the network of %s is cut", machine->name);
	net_cut(machine, true);
	task_sleep_until(world_now_ns() + chance_below(chance, 100 * NS_PER_S));
	net_cut(machine, false);
	story("the network of %s is back", machine->name);
}

static void jump_clock(struct chance *chance)
{
	struct machine *machine = any_machine(chance);
	const int64_t s = (int64_t)chance_below(chance, 200000) - 100000;
	machine->wall_shift_ns += s * (int64_t)NS_PER_S;
	story_fault("the clock of %s jumps by %lld s", machine->name, (long long)s);
}

struct trouble {
	void (*happen)(struct chance *chance);
	unsigned n;
	struct chance chance;
};

static void happen(void *arg)
{
	struct trouble *trouble = arg;
	for (unsigned i = 0; i < trouble->n; i++) {
		wait_a_while(&trouble->chance);
		trouble->happen(&trouble->chance);
	}
	free(trouble);
	world.busy--;
}

static void begin(void (*function)(struct chance *chance), unsigned n, const char *name)
{
	struct trouble *trouble = malloc(sizeof *trouble);
	if (!trouble)
		abort();
	*trouble = (struct trouble){function, n, chance_of(world.seed, name)};
	world.busy++;
	task_start(NULL, happen, trouble);
}

void troubles_begin(void)
{
	const struct scenario *s = &world.scenario;
	begin(kill_one, s->kills, "kills");
	begin(stop_one, s->stops, "stops");
	begin(suspend_one, s->suspends, "suspends");
	begin(cut_power, s->power_cuts, "power");
	begin(cut_network, s->net_cuts, "network");
	begin(jump_clock, s->clock_jumps, "clocks");
}
