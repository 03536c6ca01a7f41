/* Growing logs (--live) are cut into pieces: each line is in exactly one object. */
#pragma once
#include "judge_content.h"
#include "machines.h"
#include "world_s3.h"

/* The lines that programs of these worlds write. Each has an id of its own. */
#define LINE_FORMAT "line %016llx of %s\n"

void lines_end(void);
/* Notes that a line was written to a log below this prefix, which is borrowed. */
void lines_written(const char *prefix, uint64_t id, unsigned log);
/* The same for a line that all logs have (repeats=1). */
void lines_repeated(const char *prefix, uint64_t id);
/* Notes that a log equal to all others was rotated, and that it was removed. There must be one
 * object for each of them. */
void lines_equal_log(const char *prefix, unsigned log);
void lines_equal_log_gone(unsigned log);
/* Notes that the log with these bytes, compressed or not, was removed. */
void lines_gone(const unsigned char *bytes, size_t n);
/* Notes that the mark of this key was forgotten. A run that uses another compression does not find
 * the object, and uploads the same piece under another suffix. */
void lines_forgotten(const char *key);
/* Notes that earlier marks were restored. Lines that were cut into pieces since are cut again. */
void lines_restored(void);
/* Notes that people delete the object of this key. */
void lines_deleted(const char *key);
/* Notes a power cut that undoes all writes to the marks since that time. Claims of requests that
 * were sent later count as forgotten. */
void lines_power_failed(const char *prefix, uint64_t unsynced_ns);
/* Notes that the bucket was recreated, so that all objects are gone. */
void lines_bucket_anew(void);
/* Reports a broken promise if one of the object's lines is in another object, or was never written.
 * docs/logs.md says when a line may be in two. The request was sent at this time. */
void lines_stored(const struct s3_stored *object, uint64_t sent_ns);
/* Reports a broken promise if a line that was written before this time is in no object, unless this
 * run (or NULL) has left its log to the next one. */
void lines_judge(const char *when, uint64_t before_ns, const char *prefix,
	const struct machine_process *process);
/* Whether each line of these bytes, compressed or not, is in an object, or no longer has to be. */
bool lines_are_stored(const unsigned char *bytes, size_t n);
