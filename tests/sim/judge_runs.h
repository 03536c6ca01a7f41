/* What is promised of a run's options: that it ends when it is asked to, keeps to its limit of
 * bandwidth, gives each object the settings of its rule, and lists in its manifest what is there.
 * And of locks: that only the last holder acts. */
#pragma once
#include "machines.h"
#include "s3once/push.h"
#include "world_s3.h"

#define RULES_PATH "/home/up/rules"
extern const char rules_text[]; /* of the file of settings */

void runs_begin(void);
/* A process begins. If it is the only one of its machine, the limit counts from now on. */
void runs_started(const struct machine_process *process);
/* The body of a request leaves a machine. */
void runs_sent(const struct machine *machine, const struct wire_request *request);
/* Breaks a promise if an object is written after the grace of a run that was asked to end. */
void runs_stored(const struct wire_request *request, const struct s3_stored *now);
/* A run ends that may have been asked to. */
void runs_ended(const struct machine_process *process);
/* A run that began then and ends with these counts has stored this manifest. */
void runs_manifest(const char *key, const struct s3once_counts *counts, uint64_t began_ns);
/* Whether the program made this object for itself, and not for a file. */
bool runs_own(const char *key);
/* The holder of a lock does what others can see, under this token. The machine is that whose file
 * has the lock, or NULL. */
void runs_act(const struct machine *machine, uint64_t token);
