/* The threads of all simulated processes, as coroutines of one thread of the real operating system,
 * and the time that they live in.
 *
 * Exactly one task goes on at a time. It goes on until it waits for something or calls
 * task_yield(). Which one is next is decided by the world's chance. When no task can go on, time
 * moves to the next deadline. There is no other time: a wait of an hour takes as long as a wait of
 * a microsecond. */
#pragma once
#include "chance.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TASK_FOREVER UINT64_MAX

struct task;
struct machine_process; /* see machines.h; the tasks of the world itself have none */

/* Forgets all tasks, and begins a world at time 0. */
void tasks_begin(uint64_t seed);
/* Runs tasks until `done` says so, nobody can ever go on, or the time is `end_ns`. */
enum tasks_end { TASKS_DONE, TASKS_DEADLOCK, TASKS_OUT_OF_TIME };
enum tasks_end tasks_run(bool (*done)(void), uint64_t end_ns);

/* Makes a task that begins at some moment from now on. Its number is never used again. */
uint32_t task_start(struct machine_process *process, void (*run)(void *arg), void *arg);
/* The number of the running task; 0 outside of all. */
uint32_t task_self(void);
struct machine_process *task_process(void);
/* Waits until that task is over. */
void task_join(uint32_t number);

/* World time in ns, which no host ever shows as it is. */
uint64_t world_now_ns(void);
/* Uses some time, as a computation does. */
void world_spend(uint64_t ns);

/* Somebody else may go on first. */
void task_yield(void);
/* As task_yield(), but only so often as this seed has it. Is called where a thread may be
 * preempted. */
void task_point(void);
/* Waits until task_wake_one() or task_wake_all() is called with this address, or until the time.
 * False: it is the time. */
bool task_wait(const void *what, uint64_t until_ns);
void task_sleep_until(uint64_t ns);
/* Lets one waiter go on, which chance chooses, or all. */
void task_wake_one(const void *what);
void task_wake_all(const void *what);

/* The tasks of a process that has ended: none of them ever goes on. If the running task is one of
 * them, this does not return. */
void tasks_abandon(const struct machine_process *process);
/* While a process stands still, its tasks do not go on. With `holds_deadlines` their waits do not
 * run on either, as when the monotonic clock stands still. */
void tasks_stop(const struct machine_process *process);
void tasks_continue(const struct machine_process *process, uint64_t hold_ns);

/* Notes which locks a task holds, so that what a killed process held in static memory, which all
 * simulated processes share, is free again. */
void task_holds(uint32_t *lock);
void task_released(uint32_t *lock);

/* How many times a task has gone on. */
uint64_t tasks_steps(void);
