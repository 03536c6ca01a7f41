/* The threads of all simulated processes, as coroutines in one real thread, and their time.
 *
 * Exactly one task runs at a time, until it waits or calls task_yield(). Then a random one of the
 * others runs. When no task can run, time moves to the next deadline. Nothing else moves time: a
 * wait of an hour takes no longer than a wait of a microsecond. */
#pragma once
#include "chance.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TASK_FOREVER UINT64_MAX

struct task;
struct machine_process; /* machines.h; NULL for the tasks of the world itself */

/* Forgets all tasks, and begins a world at time 0. */
void tasks_begin(uint64_t seed);
/* Runs tasks until `done` returns true, no task can ever run again, or the time is `end_ns`. */
enum tasks_end { TASKS_DONE, TASKS_DEADLOCK, TASKS_OUT_OF_TIME };
enum tasks_end tasks_run(bool (*done)(void), uint64_t end_ns);

/* Starts a task, which first runs at some later moment. Returns its number, which is never reused.
 */
uint32_t task_start(struct machine_process *process, void (*run)(void *arg), void *arg);
/* Returns the number of the running task, or 0 outside of all tasks. */
uint32_t task_self(void);
struct machine_process *task_process(void);
/* Waits until that task has ended. */
void task_join(uint32_t number);

/* Returns the world time in ns. The clocks of machines are derived from it. */
uint64_t world_now_ns(void);
/* Lets time pass, as a computation does. */
void world_spend(uint64_t ns);

/* Lets other tasks run first. */
void task_yield(void);
/* As task_yield(), but only as often as this seed wants. Call it where a thread may be preempted.
 */
void task_point(void);
/* Waits until task_wake_one() or task_wake_all() is called with this address, or until that time.
 * Returns false at that time. */
bool task_wait(const void *what, uint64_t until_ns);
void task_sleep_until(uint64_t ns);
/* Wake one random waiter, or all of them. */
void task_wake_one(const void *what);
void task_wake_all(const void *what);

/* Abandons the tasks of a process that has ended: none of them runs again. If the running task is
 * one of them, this does not return. */
void tasks_abandon(const struct machine_process *process);
/* Stop and continue all tasks of a process. `hold_ns` postpones the deadlines of their waits, as if
 * the monotonic clock had stopped for that long. */
void tasks_stop(const struct machine_process *process);
void tasks_continue(const struct machine_process *process, uint64_t hold_ns);

/* Note the locks that a task holds. All simulated processes share static memory, so the locks that
 * a killed process held there are released. */
void task_holds(uint32_t *lock);
void task_released(uint32_t *lock);

/* Returns how many times a task was resumed. */
uint64_t tasks_steps(void);
