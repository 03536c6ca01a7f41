/* Programs whose output `push -- COMMAND` uploads. */
#pragma once
#include "machines.h"
#include "s3once/push.h"

#define PIPES_KEYS 2 /* number of keys, which all machines write to */
/* Whether this key, with any prefix, is one of them. */
bool pipe_makes(const char *key);

struct producer;
/* Makes the producer of the next run, and sets the options of that run, which borrow it. */
struct producer *producer_new(const struct machine *machine, struct s3once_options *options);
/* Notes that the run has ended with this exit status, and frees the producer. */
void producer_end(struct producer *producer, const struct machine_process *process, int exit);
