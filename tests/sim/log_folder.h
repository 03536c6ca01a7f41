/* The folder with the logs of a machine: what programs and logrotate do to a log there, so that the
 * judge knows of it. */
#pragma once
#include "chance.h"
#include "disk.h"
#include "machines.h"

/* Logs that a program writes one after the other. */
struct log_family {
	struct machine *machine;
	const char *name;
};

/* The file of this name, or NULL. */
struct node *log_find(const struct log_family *family, const char *name);
/* An empty file of this log; 0: of a new one. NULL if the name is taken. */
struct node *log_make(const struct log_family *family, const char *name, unsigned log);
/* From now on a file that was emptied has a new log. */
void log_begin(const struct log_family *family, const char *name, struct node *node);
void log_rename(const struct log_family *family, const char *from, const char *to);
void log_remove(const struct log_family *family, const char *name);
/* Something happens to a log of this family: what a run finds half done waits. */
void log_moves(const struct log_family *family);
/* Up to 59 lines that are nowhere else, or as many as all logs have (repeats=1), are appended. */
void log_append(const struct log_family *family, struct chance *chance, struct node *node);
/* Compresses a file by one of the tools. Its time is kept, as the tools do it, or not, as some
 * programs do it that compress for themselves. */
void log_compress(const struct log_family *family, struct chance *chance, const char *name,
	unsigned tool, bool keeps_time);
/* Writes in pieces, as a program that has the file open. */
void log_write_slowly(
	struct chance *chance, struct node *node, const unsigned char *bytes, size_t n);
/* Waits for a moment, unless the world has not begun. */
void log_pause(struct chance *chance, uint64_t most_ms);
/* Whether programs run on this machine, or a file server has its logs. */
bool log_can_act(const struct machine *machine);
