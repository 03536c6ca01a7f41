/* Gives way to everybody else who uses the disk. */
#pragma once

/* The calling thread, and those that it starts from now on, read and write only when the disk is
 * idle (ioprio_set(2); the schedulers bfq and mq-deadline heed it). Returns what io_idle_end()
 * takes, or -errno. */
int io_idle_begin(void);
/* As it was before. A negative `before` changes nothing. */
void io_idle_end(int before);
