/* Which block of candidates is begun next, and how. Blocks wait in an order that is random for each
 * process. A block is read again before it is begun: what did other uploaders take meanwhile? At
 * the beginning of a run, and once other uploaders were seen, one small file of a block goes ahead.
 * The rest of the block is its opening: it waits until that file is claimed. Of several uploaders
 * that come to the same block in the same moment, only one goes on with it.
 * Not thread-safe: a part of the queue, under its mutex. */
#pragma once
#include "upload/queue/turns.h"

struct openings {
	struct turns *turns;   /* borrowed: where files go that may be begun */
	struct blocks waiting; /* not begun */
	size_t n_waiting;      /* files in these */
	struct blocks rests;   /* each waits for the claim of the file that went ahead of it */
	size_t n_rests;        /* files in these */
	unsigned checking;     /* blocks that are read again just now */
	unsigned begun;        /* blocks so far; it stops at those of the beginning of a run */
	unsigned serial;       /* of the last block that was added */
	bool has_company;      /* other uploaders were seen in these files */
};
void openings_init(struct openings *openings, struct turns *turns);
/* Frees all files in it. */
void openings_clear(struct openings *openings);

/* Adds a block of files, the rest as in *how, and takes the files. Without memory for it they may
 * be begun at once. */
void openings_add(struct openings *openings, struct candidate *const *files, size_t n,
	const struct block *how);
/* These files of one block may be begun: all of them, or one and the rest later. Takes them. */
void openings_begin(struct openings *openings, struct candidate *const *files, size_t n);
/* Whether fewer small files are ready, or will be, than the workers take until another block is
 * read and one of its files is claimed. */
bool openings_want_block(const struct openings *openings);
/* Begins blocks as long as that is so. True if *ret is now a task to read the next one again;
 * otherwise *ret_wait_ns is lowered to what the earliest still needs. */
bool openings_take(struct openings *openings, struct task *ret, uint64_t *ret_wait_ns);
/* The rest of the block with this serial number may be begun, if it waits. True if it did. */
bool openings_finish(struct openings *openings, unsigned serial);
/* Takes the files of a block that are not begun out of turns and rest, and adds them again as the
 * last to be begun. */
void openings_put_back(struct openings *openings, unsigned serial);

/* How many files it has. */
size_t openings_files(const struct openings *openings);
/* When the oldest of them was modified, INT64_MAX if there is none. */
int64_t openings_oldest_ns(const struct openings *openings);
