/* What a program writes into the pipe of a push, while push reads it. See world.h. */
#pragma once
#include "machines.h"
#include "s3once/push.h"

#define PIPES_KEYS 2 /* different ones, which all machines write to */
/* Whether this key, of whichever prefix, is one of them. */
bool pipe_makes(const char *key);

struct producer;
/* The one of the next run, with the options of that run, which borrow it. */
struct producer *producer_new(const struct machine *machine, struct s3once_options *options);
/* The run has ended so. Frees it. */
void producer_end(struct producer *producer, const struct machine_process *process, int exit);
