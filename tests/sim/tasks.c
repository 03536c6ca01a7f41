/* The scheduler. See tasks.h.
 *
 * The stack of a task comes from a pool. An abandoned task does not unwind its stack, so its memory
 * stays allocated until the real process ends, like that of a killed process. */
#include "tasks.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if defined __SANITIZE_ADDRESS__
#define HAS_ASAN 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define STACK_BYTES (1U << 20)
#else
#define STACK_BYTES (256U << 10)
#endif
#define TASKS_MAX 4096
#define LOCKS_MAX 16

/* Continues on the other stack: pushes the registers that a function has to preserve, and stores
 * the stack pointer in *keep. ucontext.h does the same, but with two system calls each time, and
 * with many more under ASan. */
void task_switch(void **keep, void *to);
#ifdef __x86_64__
__asm__(".text\n"
	".globl task_switch\n"
	".type task_switch, @function\n"
	"task_switch:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size task_switch, .-task_switch\n");
#define KEPT_WORDS 6
#else
#error "the switch of stacks is written for x86-64 only (meson.build leaves the simulation out elsewhere)"
#endif

enum task_state { TASK_READY, TASK_WAITS, TASK_OVER };

struct task {
	uint32_t number;
	enum task_state state;
	struct machine_process *process;
	void (*run)(void *arg);
	void *arg;
	const void *waits_for;
	uint64_t until_ns;
	bool is_woken, is_stopped;
	int error_number;
	uint32_t *locks[LOCKS_MAX];
	size_t n_locks;
	void *at; /* its stack pointer while another task runs */
	void *stack;
	void *fake_stack; /* ASan's */
};

static struct {
	struct task *tasks[TASKS_MAX]; /* those that have not ended, by number */
	size_t n;
	struct task *running;
	void *scheduler; /* its stack pointer while a task runs */
	void *fake_stack;
	const void *scheduler_stack;
	size_t scheduler_stack_bytes;
	uint32_t last_number;
	uint64_t now_ns, steps;
	struct chance chance;
	unsigned preempt_per_mille;
	void *free_stacks[TASKS_MAX];
	size_t n_free_stacks;
} world;

/* Keeps the task's stack for another task. */
static void bury(struct task *task)
{
#ifdef HAS_ASAN
	__asan_unpoison_memory_region(task->stack, STACK_BYTES);
#endif
	world.free_stacks[world.n_free_stacks++] = task->stack;
	free(task);
}

/* Forgets tasks of a world that broke a promise and ended in the middle. */
void tasks_begin(uint64_t seed)
{
	static const unsigned rates[] = {0, 5, 50, 200, 500};
	assert(!world.running);
	for (size_t i = 0; i < world.n; i++)
		bury(world.tasks[i]);
	world.n = 0;
	world.last_number = 0;
	world.now_ns = world.steps = 0;
	world.chance = chance_of(seed, "tasks");
	world.preempt_per_mille = rates[chance_below(&world.chance, 5)];
}

static void *stack_take(void)
{
	if (world.n_free_stacks)
		return world.free_stacks[--world.n_free_stacks];
	void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (stack == MAP_FAILED) {
		perror("no memory for a stack");
		abort();
	}
	return stack;
}

static void switch_to_scheduler(struct task *task)
{
	task->error_number = errno;
#ifdef HAS_ASAN
	__sanitizer_start_switch_fiber(task->state == TASK_OVER ? NULL : &task->fake_stack,
		world.scheduler_stack, world.scheduler_stack_bytes);
#endif
	task_switch(&task->at, world.scheduler);
#ifdef HAS_ASAN
	__sanitizer_finish_switch_fiber(
		task->fake_stack, &world.scheduler_stack, &world.scheduler_stack_bytes);
#endif
	errno = task->error_number;
}

static void task_main(void)
{
	struct task *task = world.running;
#ifdef HAS_ASAN
	__sanitizer_finish_switch_fiber(NULL, &world.scheduler_stack, &world.scheduler_stack_bytes);
#endif
	task->run(task->arg);
	task->state = TASK_OVER;
	task_wake_all(task);
	switch_to_scheduler(task);
	abort();
}

uint32_t task_start(struct machine_process *process, void (*run)(void *arg), void *arg)
{
	struct task *task = calloc(1, sizeof *task);
	if (!task || world.n == TASKS_MAX) {
		fprintf(stderr, "too many tasks\n");
		abort();
	}
	task->number = ++world.last_number;
	task->process = process;
	task->run = run;
	task->arg = arg;
	task->stack = stack_take();
	/* As if the task had stopped at the beginning of task_main(), whose return address is never
	 * used. */
	void **top = (void **)((char *)task->stack + STACK_BYTES);
	top[-1] = NULL;
	top[-2] = (void *)(uintptr_t)task_main;
	memset(top - 2 - KEPT_WORDS, 0, KEPT_WORDS * sizeof *top);
	task->at = top - 2 - KEPT_WORDS;
	world.tasks[world.n++] = task;
	return task->number;
}

static struct task *find_task(uint32_t number)
{
	for (size_t i = 0; i < world.n; i++)
		if (world.tasks[i]->number == number)
			return world.tasks[i];
	return NULL;
}

uint32_t task_self(void)
{
	return world.running ? world.running->number : 0;
}

struct machine_process *task_process(void)
{
	return world.running ? world.running->process : NULL;
}

void task_join(uint32_t number)
{
	const struct task *task;
	while ((task = find_task(number)) && task->state != TASK_OVER)
		task_wait(task, TASK_FOREVER);
}

uint64_t world_now_ns(void)
{
	return world.now_ns;
}

void world_spend(uint64_t ns)
{
	world.now_ns += ns;
}

uint64_t tasks_steps(void)
{
	return world.steps;
}

void task_yield(void)
{
	if (world.running)
		switch_to_scheduler(world.running);
}

void task_point(void)
{
	if (world.running && chance_hits(&world.chance, world.preempt_per_mille))
		switch_to_scheduler(world.running);
}

bool task_wait(const void *what, uint64_t until_ns)
{
	struct task *task = world.running;
	assert(task);
	task->state = TASK_WAITS;
	task->waits_for = what;
	task->until_ns = until_ns;
	task->is_woken = false;
	switch_to_scheduler(task);
	return task->is_woken;
}

void task_sleep_until(uint64_t ns)
{
	static const char nothing;
	while (world.now_ns < ns)
		task_wait(&nothing, ns);
}

static void wake(struct task *task)
{
	task->state = TASK_READY;
	task->is_woken = true;
	task->waits_for = NULL;
}

void task_wake_all(const void *what)
{
	for (size_t i = 0; i < world.n; i++)
		if (world.tasks[i]->state == TASK_WAITS && world.tasks[i]->waits_for == what)
			wake(world.tasks[i]);
}

void task_wake_one(const void *what)
{
	size_t n = 0;
	struct task *chosen = NULL;
	for (size_t i = 0; i < world.n; i++)
		if (world.tasks[i]->state == TASK_WAITS && world.tasks[i]->waits_for == what &&
			chance_below(&world.chance, ++n) == 0)
			chosen = world.tasks[i];
	if (chosen)
		wake(chosen);
}

static void free_locks(struct task *task)
{
	extern char __data_start, _end; /* bounds of the program's static memory */
	for (size_t i = 0; i < task->n_locks; i++) {
		const char *at = (const char *)task->locks[i];
		if (at >= &__data_start && at < &_end) {
			*task->locks[i] = 0;
			task_wake_all(task->locks[i]);
		}
	}
	task->n_locks = 0;
}

void tasks_abandon(const struct machine_process *process)
{
	bool is_own = false;
	for (size_t i = 0; i < world.n; i++) {
		struct task *task = world.tasks[i];
		if (task->process != process || task->state == TASK_OVER)
			continue;
		free_locks(task);
		task->state = TASK_OVER;
		is_own = is_own || task == world.running;
	}
	if (is_own)
		switch_to_scheduler(world.running);
}

void tasks_stop(const struct machine_process *process)
{
	bool is_own = false;
	for (size_t i = 0; i < world.n; i++)
		if (world.tasks[i]->process == process) {
			world.tasks[i]->is_stopped = true;
			is_own = is_own || world.tasks[i] == world.running;
		}
	if (is_own)
		task_yield();
}

void tasks_continue(const struct machine_process *process, uint64_t hold_ns)
{
	for (size_t i = 0; i < world.n; i++) {
		struct task *task = world.tasks[i];
		if (task->process != process)
			continue;
		task->is_stopped = false;
		if (task->state == TASK_WAITS && task->until_ns != TASK_FOREVER)
			task->until_ns += hold_ns;
	}
}

void task_holds(uint32_t *lock)
{
	struct task *task = world.running;
	if (task && task->n_locks < LOCKS_MAX)
		task->locks[task->n_locks++] = lock;
}

void task_released(uint32_t *lock)
{
	struct task *task = world.running;
	for (size_t i = 0; task && i < task->n_locks; i++)
		if (task->locks[i] == lock) {
			task->locks[i] = task->locks[--task->n_locks];
			return;
		}
}

/* Returns a random task that can run now, or NULL if none can before *ret_next_ns. Buries tasks
 * that have ended. */
static struct task *choose(uint64_t *ret_next_ns)
{
	struct task *ready[TASKS_MAX];
	size_t n = 0, kept = 0;
	*ret_next_ns = TASK_FOREVER;
	for (size_t i = 0; i < world.n; i++) {
		struct task *task = world.tasks[i];
		if (task->state == TASK_OVER) {
			bury(task);
			continue;
		}
		world.tasks[kept++] = task;
		if (task->is_stopped)
			continue;
		if (task->state == TASK_WAITS && task->until_ns <= world.now_ns)
			task->state = TASK_READY;
		if (task->state == TASK_READY)
			ready[n++] = task;
		else if (task->until_ns < *ret_next_ns)
			*ret_next_ns = task->until_ns;
	}
	world.n = kept;
	return n ? ready[chance_below(&world.chance, n)] : NULL;
}

static void go_on(struct task *task)
{
	world.running = task;
	world.steps++;
	world.now_ns += 200 + chance_below(&world.chance, 2000);
	errno = task->error_number;
#ifdef HAS_ASAN
	__sanitizer_start_switch_fiber(&world.fake_stack, task->stack, STACK_BYTES);
#endif
	task_switch(&world.scheduler, task->at);
#ifdef HAS_ASAN
	__sanitizer_finish_switch_fiber(world.fake_stack, NULL, NULL);
#endif
	world.running = NULL;
}

enum tasks_end tasks_run(bool (*done)(void), uint64_t end_ns)
{
	while (!done()) {
		uint64_t next_ns;
		struct task *task = choose(&next_ns);
		if (task) {
			go_on(task);
			continue;
		}
		if (next_ns == TASK_FOREVER)
			return TASKS_DEADLOCK;
		if (next_ns > end_ns)
			return TASKS_OUT_OF_TIME;
		world.now_ns = next_ns > world.now_ns ? next_ns : world.now_ns;
	}
	return TASKS_DONE;
}
