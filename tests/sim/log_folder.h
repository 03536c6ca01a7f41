/* The folder with the logs of a machine. Programs and logrotate change logs only by these
 * functions, which also notify the judge. */
#pragma once
#include "chance.h"
#include "disk.h"
#include "machines.h"

/* The logs that one program writes, one after the other. */
struct log_family {
	struct machine *machine;
	const char *name;
};

/* Returns the file of this name, or NULL. */
struct node *log_find(const struct log_family *family, const char *name);
/* Makes an empty file for this log, or for a new one if `log` is 0. Returns NULL if the name is
 * taken. */
struct node *log_make(const struct log_family *family, const char *name, unsigned log);
/* Begins a new log in a file that was emptied. */
void log_begin(const struct log_family *family, const char *name, struct node *node);
void log_rename(const struct log_family *family, const char *from, const char *to);
void log_remove(const struct log_family *family, const char *name);
/* Notes a change among the logs of this family: a run may leave unfinished ones to the next run. */
void log_moves(const struct log_family *family);
/* Appends up to 59 unique lines, or with repeats=1 the lines that all logs have. */
void log_append(const struct log_family *family, struct chance *chance, struct node *node);
/* Compresses a file with one of the tools (compressors.h). They keep its time, unlike some programs
 * that compress their own logs. */
void log_compress(const struct log_family *family, struct chance *chance, const char *name,
	unsigned tool, bool keeps_time);
/* Writes in pieces, like a program that has the file open. */
void log_write_slowly(
	struct chance *chance, struct node *node, const unsigned char *bytes, size_t n);
/* Waits for a moment, unless the world has not begun. */
void log_pause(struct chance *chance, uint64_t most_ms);
/* Whether logs of this machine can change: it is running, or a file server has its logs. */
bool log_can_act(const struct machine *machine);
