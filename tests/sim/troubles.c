/* Troubles of machines and processes: kills, stops, power cuts, and so on. */
#include "denials.h"
#include "judge.h"
#include "net.h"
#include "silences.h"
#include "story.h"
#include "world.h"
#include <stdlib.h>

#define NS_PER_S 1000000000ULL

/* Waits for the time of the i-th of n troubles. In a night, that is in the i-th of n equal parts.
 */
static void wait_a_while(struct chance *chance, unsigned i, unsigned n)
{
	/* Most runs take less than a second or two of virtual time. */
	static const uint64_t spans[] = {
		NS_PER_S / 10, NS_PER_S, NS_PER_S, 10 * NS_PER_S, 100 * NS_PER_S};
	const uint64_t part_ns = world_night_ns() / n;
	if (world_is_late(chance) && part_ns) {
		task_sleep_until(i * part_ns + chance_below(chance, part_ns));
		return;
	}
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

/* Waits up to some minutes, or perhaps hours in a night. */
static void last(struct chance *chance, uint64_t s, uint64_t night_s)
{
	const bool is_long = world.scenario.night_h && chance_hits(chance, 500);
	task_sleep_until(world_now_ns() + chance_below(chance, (is_long ? night_s : s) * NS_PER_S));
}

static struct machine *any_machine(struct chance *chance)
{
	return machine_at(chance_below(chance, machines_count()));
}

/* Waits up to a minute, or for the night, until a process is running, and then a moment more.
 * Returns a process, or NULL. */
static struct machine_process *wait_for_process(struct chance *chance)
{
	struct machine_process *process = NULL;
	while (world_now_ns() < world_night_ns() && !(process = any_process(chance)))
		task_wait(&world.runs, world_night_ns());
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
	const uint64_t lease_ns = world.scenario.lease_s * NS_PER_S;
	struct machine_process *process = wait_for_process(chance);
	if (!process || process->is_stopped)
		return;
	story_fault("%s is stopped", process->name);
	process_stop(process);
	if (world.scenario.at_lease) /* it continues shortly before or after its lease ends */
		task_sleep_until(
			world_now_ns() + 4 * lease_ns / 5 + chance_below(chance, lease_ns / 5));
	else
		last(chance, 120, 3600);
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
	last(chance, 600, 4 * 3600);
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
	judge_power_fails(machine);
	machine_lose_power(machine);
	people_lose_power(machine);
	task_sleep_until(world_now_ns() + chance_between(chance, 1, 60) * NS_PER_S);
	if (world.scenario.night_h)
		last(chance, 0, 3600);
	machine_boot(machine);
	zoo_booted(machine);
	story("%s has booted", machine->name);
}

static void cut_network(struct chance *chance)
{
	struct machine *machine = any_machine(chance);
	story_fault("the network of %s is cut", machine->name);
	net_cut(machine, true);
	last(chance, 100, 2 * 3600);
	net_cut(machine, false);
	story("the network of %s is back", machine->name);
}

static void jump_clock(struct chance *chance)
{
	struct machine *machine = any_machine(chance);
	const uint64_t days = world.scenario.clock_days;
	int64_t s = (int64_t)chance_below(chance, 200000) - 100000;
	if (days)
		s += ((int64_t)chance_below(chance, 2 * days + 1) - (int64_t)days) * 86400;
	machine->wall_shift_ns += s * (int64_t)NS_PER_S;
	story_fault("the clock of %s jumps by %lld s", machine->name, (long long)s);
}

static void ask_one(struct chance *chance)
{
	struct machine_process *process = wait_for_process(chance);
	if (process && run_ask_to_end(process))
		story_fault("%s is asked to end", process->name);
}

/* A process that does not end within 90 s is killed. */
static void reboot(struct chance *chance)
{
	struct machine_process *process = wait_for_process(chance);
	struct machine *machine = process ? process->machine : any_machine(chance);
	if (machine->is_off || machine->suspended_at_ns)
		return;
	story_fault("%s is rebooted", machine->name);
	for (struct machine_process *p = processes_first(); p; p = p->next)
		if (p->machine == machine)
			run_ask_to_end(p);
	for (unsigned s = 0; s < 90 && processes_any(machine); s++)
		task_sleep_until(world_now_ns() + NS_PER_S);
	if (machine->is_off || machine->suspended_at_ns)
		return;
	for (struct machine_process *p = processes_first(); p; p = p->next)
		if (p->machine == machine && !p->is_over)
			process_kill(p);
	machine->is_off = true;
	task_sleep_until(world_now_ns() + chance_between(chance, 10, 300) * NS_PER_S);
	machine_boot(machine);
	story("%s has booted", machine->name);
}

static void fall_silent(struct chance *chance)
{
	wait_for_process(chance);
	silences_fall(chance);
}

static void deny_writes(struct chance *chance)
{
	wait_for_process(chance);
	denials_impose(chance);
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
		wait_a_while(&trouble->chance, i, trouble->n);
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
	if (s->silences)
		begin(fall_silent, s->silences, "silences");
	if (s->denials)
		begin(deny_writes, s->denials, "denials");
	if (s->asked)
		begin(ask_one, s->asked, "signals");
	if (s->reboots)
		begin(reboot, s->reboots, "reboots");
}
