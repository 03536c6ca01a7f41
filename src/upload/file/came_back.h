/* Files that were put back into the queue, since another uploader holds them or something
 * failed. */
#pragma once
#include "base/clock.h"
#include "upload/queue/queue.h"

struct worker;

/* Files that another uploader holds wait at least that long. */
#define CAME_BACK_AGAIN_NS NS_PER_S

/* Reads the marks of the files in these blocks, since other uploaders may have taken them
 * meanwhile. Gives the files back to the queue, except those that are done. Frees the blocks. */
void came_back_check(struct worker *worker, struct block *blocks);
