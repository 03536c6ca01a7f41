/* One run of `s3once push`, told as its options say. */
#pragma once
#include "cli/push_options.h"

/* Runs it and returns the exit code. One at a time in a process, since signals stop it. */
int push_run(struct push_options *options);
