/* The logs that a run leaves to the next one since they are being renamed, compressed or written to
 * (docs/guarantees.md, promise 1). A run reports them by name, and here is noted which log had
 * which name at what time. */
#pragma once
#include "machines.h"

void waits_end(void);
/* Adds a log of this family below this prefix, and returns its number, from 1. The strings are
 * borrowed. */
unsigned waits_log(const char *prefix, const char *family);
/* Notes that the file of this name has this log from now on. 0: no file has this name. */
void waits_name(const char *prefix, const char *name, unsigned log);
/* Notes that a log of this family is renamed, compressed, emptied, or written to after its
 * rotation. */
void waits_move(const char *prefix, const char *family);
/* Notes that a line is written to this log. */
void waits_written(unsigned log);
/* Notes that this log may be one of many that are written at the same time. It waits until it has
 * rested for a day. */
void waits_rests(unsigned log);
/* Notes that a program has opened or closed the file of this log. */
void waits_open(unsigned log, bool is_open);
/* Notes that a run reports the file at this path as waiting. This counts for each log that has had
 * that name since the run began. */
void waits_told(const struct machine_process *process, const char *path);
/* Whether this run may leave the log: the run has reported it, and the log is open or rests, or its
 * family has moved since the run began. */
bool waits_may(const struct machine_process *process, unsigned log);
/* Whether this run has reported a file that has had the log since the run began. */
bool waits_was_told(const struct machine_process *process, unsigned log);
/* Whether this name has had this log, as it is now, since before that time. */
bool waits_is_settled(const char *prefix, const char *name, unsigned log, uint64_t before_ns);
