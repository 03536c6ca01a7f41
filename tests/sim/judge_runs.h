/* Checks the promises of a run's options: it ends when asked to, keeps its bandwidth limit, gives
 * each object the settings of its rule, and lists stored objects in its manifest. Also checks
 * locks: only the last holder acts. */
#pragma once
#include "machines.h"
#include "s3once/push.h"
#include "world_s3.h"

#define RULES_PATH "/home/up/rules"
extern const char rules_text[]; /* the content of that file */

void runs_begin(void);
/* Notes that a process begins. If it is the only one of its machine, the bandwidth counts from now
 * on. */
void runs_started(const struct machine_process *process);
/* Notes that the body of a request leaves a machine. */
void runs_sent(const struct machine *machine, const struct wire_request *request);
/* Reports a broken promise if a run that was asked to end writes an object after its grace period.
 */
void runs_stored(const struct wire_request *request, const struct s3_stored *now);
/* Notes the end of a run, which may have been asked to end. */
void runs_ended(const struct machine_process *process);
/* Notes the manifest of a run that began at that time and ends with these counts. */
void runs_manifest(const char *key, const struct s3once_counts *counts, uint64_t began_ns);
/* Whether this object belongs to no file: manifests, the id object, and so on. */
bool runs_own(const char *key);
/* Notes that the holder of a lock acts, under this token. `machine` is the one whose file has the
 * lock, or NULL. */
void runs_act(const struct machine *machine, uint64_t token);
