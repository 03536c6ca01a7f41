#include "machines.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1000000000ULL

static struct {
	uint64_t seed;
	struct chance chance;
	struct machine machines[MACHINES_MAX];
	size_t n;
	struct machine_process *processes; /* including those that have ended */
} world;

void machines_begin(uint64_t seed)
{
	for (size_t i = 0; i < world.n; i++)
		disk_free(world.machines[i].disk);
	for (struct machine_process *next, *p = world.processes; p; p = next) {
		next = p->next;
		free(p);
	}
	memset(&world, 0, sizeof world);
	world.seed = seed;
	world.chance = chance_of(seed, "machines");
}

size_t machines_count(void)
{
	return world.n;
}

struct machine *machine_at(size_t i)
{
	return &world.machines[i];
}

static int64_t wall_of(void *arg)
{
	return machine_wall_ns(arg);
}

bool processes_any(const struct machine *machine)
{
	for (const struct machine_process *p = world.processes; p; p = p->next)
		if (!p->is_over && (!machine || p->machine == machine))
			return true;
	return false;
}

static void write_boot_id(struct machine *machine)
{
	disk_put(machine->disk, "/proc/sys/kernel/random/boot_id", machine->boot_id, 36);
}

static void new_boot_id(struct machine *machine)
{
	uint64_t a = chance_next(&world.chance), b = chance_next(&world.chance);
	snprintf(machine->boot_id, sizeof machine->boot_id, "%08x-%04x-4%03x-a%03x-%012" PRIx64,
		(unsigned)(a & 0xffffffff), (unsigned)(a >> 32) & 0xffff,
		(unsigned)(a >> 48) & 0xfff, (unsigned)b & 0xfff, b >> 16);
	write_boot_id(machine);
}

/* Writes the files below /sys and /etc that identify the machine. */
static void write_ids(struct machine *machine, uint64_t identity)
{
	char text[64];
	snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64 "\n", identity, ~identity);
	disk_put(machine->disk, "/etc/machine-id", text, strlen(text));
	snprintf(text, sizeof text, "00000000-0000-0000-0000-%012u\n", machine->index);
	disk_put(machine->disk, "/sys/hypervisor/uuid", text, strlen(text));
}

struct machine *machine_add(const char *name, bool is_clone)
{
	const bool copies = is_clone && world.n;
	struct machine *machine = &world.machines[world.n];
	if (world.n == MACHINES_MAX)
		abort();
	machine->index = (unsigned)world.n++;
	snprintf(machine->name, sizeof machine->name, "%s", name);
	snprintf(machine->host, sizeof machine->host, "%s", copies ? world.machines[0].name : name);
	machine->chance = chance_of(world.seed, machine->name);
	/* Some time in 2026, a second or so different from the other machines. */
	machine->wall_shift_ns =
		(int64_t)(1780000000 * NS_PER_S + chance_below(&machine->chance, 2 * NS_PER_S));
	machine->boot_shift_ns = chance_between(&machine->chance, 100, 900000) * NS_PER_S;
	machine->last_pid = (int)chance_between(&machine->chance, 300, 30000);
	machine->disk = disk_new(world.seed, machine->name, wall_of, machine);
	if (copies) {
		memcpy(machine->boot_id, world.machines[0].boot_id, sizeof machine->boot_id);
		write_boot_id(machine);
	} else {
		new_boot_id(machine);
	}
	write_ids(machine, is_clone ? 17 : chance_next(&machine->chance));
	return machine;
}

int64_t machine_wall_ns(const struct machine *machine)
{
	return machine->wall_shift_ns + (int64_t)world_now_ns();
}

uint64_t machine_boot_ns(const struct machine *machine)
{
	return machine->boot_shift_ns + world_now_ns();
}

uint64_t machine_monotonic_ns(const struct machine *machine)
{
	const uint64_t now = machine->suspended_at_ns ? machine->suspended_at_ns : world_now_ns();
	return machine->boot_shift_ns + now - machine->suspended_ns;
}

struct machine_process *processes_first(void)
{
	return world.processes;
}

struct machine_process *process_find(const struct machine *machine, int pid)
{
	for (struct machine_process *p = world.processes; p; p = p->next)
		if (p->machine == machine && p->pid == pid && !p->is_over)
			return p;
	return NULL;
}

static void write_proc(struct machine_process *process)
{
	char path[64], line[256];
	snprintf(path, sizeof path, "/proc/%d/stat", process->pid);
	snprintf(line, sizeof line,
		"%d (s3once) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %" PRIu64 " 0 0\n",
		process->pid, process->start);
	disk_put(process->machine->disk, path, line, strlen(line));
}

static void remove_proc(struct machine_process *process)
{
	char path[64], name[16];
	struct disk *disk = process->machine->disk;
	snprintf(path, sizeof path, "/proc/%d", process->pid);
	snprintf(name, sizeof name, "%d", process->pid);
	struct node *folder = disk_get(disk, path);
	if (folder) {
		disk_remove(folder, "stat", false);
		disk_remove(disk_get(disk, "/proc"), name, true);
	}
}

struct begun {
	struct machine_process *process;
	void (*run)(void *arg);
	void *arg;
};

static void run_first(void *arg)
{
	struct begun begun = *(struct begun *)arg;
	free(arg);
	begun.run(begun.arg);
	process_end(begun.process);
}

struct machine_process *process_start(struct machine *machine, const char *const *environment,
	void (*run)(void *arg), void *arg, void *owner)
{
	struct machine_process *process = calloc(1, sizeof *process);
	struct begun *begun = calloc(1, sizeof *begun);
	if (!process || !begun)
		abort();
	process->machine = machine;
	machine->last_pid += (int)chance_between(&machine->chance, 1, 9);
	process->pid = machine->last_pid;
	process->start = machine_boot_ns(machine) / (NS_PER_S / 100);
	process->began_ns = world_now_ns();
	process->environment = environment;
	process->owner = owner;
	snprintf(process->name, sizeof process->name, "%s/%d", machine->name, process->pid);
	process->next = world.processes;
	world.processes = process;
	write_proc(process);
	*begun = (struct begun){process, run, arg};
	task_start(process, run_first, begun);
	return process;
}

static void finish(struct machine_process *process)
{
	process->is_over = true;
	kernel_close_all(process);
	vfs_forget_process(process);
	remove_proc(process);
	task_wake_all(process);
}

void process_end(struct machine_process *process)
{
	if (process->is_over)
		return;
	finish(process);
	tasks_abandon(process);
}

void process_kill(struct machine_process *process)
{
	if (process->is_over)
		return;
	process->is_killed = true;
	finish(process);
	tasks_abandon(process);
}

void process_stop(struct machine_process *process)
{
	process->is_stopped = true;
	tasks_stop(process);
}

void process_continue(struct machine_process *process)
{
	process->is_stopped = false;
	process->continued_ns = world_now_ns();
	if (!process->machine->suspended_at_ns)
		tasks_continue(process, 0);
}

void machine_lose_power(struct machine *machine)
{
	struct machine_process *own = NULL;
	for (struct machine_process *p = world.processes; p; p = p->next)
		if (p->machine == machine && !p->is_over) {
			if (p == task_process())
				own = p;
			else
				process_kill(p);
		}
	machine->is_off = true;
	machine->suspended_at_ns = 0;
	disk_lose_power(machine->disk, &machine->chance);
	if (own)
		process_kill(own);
}

void machine_boot(struct machine *machine)
{
	machine->is_off = false;
	machine->boots++;
	machine->boot_shift_ns = 5 * NS_PER_S - world_now_ns();
	machine->suspended_ns = 0;
	machine->last_pid = (int)chance_between(&machine->chance, 300, 30000);
	new_boot_id(machine);
}

void machine_suspend(struct machine *machine)
{
	if (machine->suspended_at_ns || machine->is_off)
		return;
	machine->suspended_at_ns = world_now_ns();
	for (struct machine_process *p = world.processes; p; p = p->next)
		if (p->machine == machine && !p->is_over)
			tasks_stop(p);
}

void machine_resume(struct machine *machine)
{
	if (!machine->suspended_at_ns)
		return;
	const uint64_t length_ns = world_now_ns() - machine->suspended_at_ns;
	machine->suspended_ns += length_ns;
	machine->suspended_at_ns = 0;
	for (struct machine_process *p = world.processes; p; p = p->next)
		if (p->machine == machine && !p->is_over) {
			p->suspended_ns += length_ns;
			p->continued_ns += length_ns;
			if (p->continued_ns > world_now_ns())
				p->continued_ns = world_now_ns();
			if (!p->is_stopped)
				tasks_continue(p, length_ns);
		}
}
