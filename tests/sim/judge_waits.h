/* What a run leaves to the next one: logs that are just being renamed, compressed or written to
 * (docs/guarantees.md, promise 1). It names them, and this knows which log had which name when. */
#pragma once
#include "machines.h"

void waits_end(void);
/* A new log of this family below this prefix. Its number, from 1. The strings are borrowed. */
unsigned waits_log(const char *prefix, const char *family);
/* From now on the file of this name has this log; 0: there is none. */
void waits_name(const char *prefix, const char *name, unsigned log);
/* A log of this family is renamed, compressed, emptied or written to after its rotation. */
void waits_move(const char *prefix, const char *family);
/* A line is written to this log. */
void waits_written(unsigned log);
/* This log may be one of many that are written beside each other: it waits until it has rested for
 * a day. */
void waits_rests(unsigned log);
/* A program has the file of this log open, or not any more. */
void waits_open(unsigned log, bool is_open);
/* A run says of the file at this path that it waits: of any that had its name since it began. */
void waits_told(const struct machine_process *process, const char *path);
/* Whether this run may leave the log: it has named it, and its family has moved since it began,
 * or it is open or rests. */
bool waits_may(const struct machine_process *process, unsigned log);
/* Whether this run has named a file that had the log since it began. */
bool waits_was_told(const struct machine_process *process, unsigned log);
/* Whether this name has had this log, as it is now, since before that time. */
bool waits_is_settled(const char *prefix, const char *name, unsigned log, uint64_t before_ns);
