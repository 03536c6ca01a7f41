/* Logs that grow (--live) are cut into pieces: each line is in exactly one object. */
#pragma once
#include "judge_content.h"
#include "machines.h"
#include "world_s3.h"

/* As the programs of these worlds write them. Each has an id of its own. */
#define LINE_FORMAT "line %016llx of %s\n"

void lines_end(void);
/* A line is in a log below this prefix, which is borrowed. */
void lines_written(const char *prefix, uint64_t id, unsigned log);
/* The same of a line that all logs have (repeats=1). */
void lines_repeated(const char *prefix, uint64_t id);
/* A log is rotated that is equal to all others, and is removed: as many objects have to be there.
 */
void lines_equal_log(const char *prefix, unsigned log);
void lines_equal_log_gone(unsigned log);
/* The log that contained these, compressed or not, is removed. */
void lines_gone(const unsigned char *bytes, size_t n);
/* The mark of this key was forgotten: a run that compresses otherwise does not find its object, and
 * uploads the same piece under another suffix. */
void lines_forgotten(const char *key);
/* Earlier marks were restored: what was cut into pieces since is cut anew. */
void lines_restored(void);
/* Somebody deletes the object of this key. */
void lines_deleted(const char *key);
/* The power fails, and with it what was written to the marks since then: claims of requests that
 * were sent later are as if they were forgotten. */
void lines_power_failed(const char *prefix, uint64_t unsynced_ns);
/* No object is there any more. */
void lines_bucket_anew(void);
/* Breaks a promise if one of its lines is in another object, or was never written. docs/logs.md
 * says when a line may be in two. The request was sent at this time. */
void lines_stored(const struct s3_stored *object, uint64_t sent_ns);
/* Breaks a promise if a line that was written before is in no object, and this run (or NULL) has
 * not left its log to the next one. */
void lines_judge(const char *when, uint64_t before_ns, const char *prefix,
	const struct machine_process *process);
/* Whether each line of these bytes, compressed or not, is in an object, or need not be any more. */
bool lines_are_stored(const unsigned char *bytes, size_t n);
