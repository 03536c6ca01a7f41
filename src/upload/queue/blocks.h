/* Candidates in blocks, and the blocks that wait to be begun, by the time at which each is due. The
 * scan's are due at once, in an order that is random for each process, so that many uploaders over
 * one tree do not fight for the same files. Not thread-safe: the queue's. */
#pragma once
#include "marks/mark.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BLOCK_FILES 50

/* A file above this counts as a large body, of which only so many go at once. */
#define SMALL_BYTES_MAX (1U << 20)

/* A file that may have to be sent. Owns its strings. */
struct candidate {
	struct candidate *next;
	char *key, *path, *relative; /* all in one allocation with the struct */
	char *object;  /* the object's key: key, perhaps with the suffix of compression */
	char *suffix;  /* what that has behind the key, with room for SUFFIX_MAX characters */
	char *content; /* the content's id, or "" */
	size_t source;
	uint64_t size;
	int64_t mtime_ns;
	dev_t dev;
	ino_t ino;
	uint64_t failing_ns;       /* for how long it was tried since, pauses included */
	uint64_t kept_bytes;       /* of it in an open upload: as counted in report.kept */
	uint64_t held_since_ns;    /* another uploader was first seen to hold it; 0: never */
	enum mark_state mark;      /* of its mark when that was read last */
	char holder[ID_CHARS + 1]; /* the session of that mark, or "" */
	unsigned block;            /* serial number of the block it came in */
	unsigned failures;         /* how often it could not be sent, for a reason that may pass */
	unsigned parts_done;       /* the most that its upload ever had; more is progress */
	bool leads;                /* the rest of its block waits for its claim */
	bool was_compressed;       /* the suffix is that of the file as it was found */
	bool is_rotated;           /* its name may be another by now */
	bool is_piece; /* a range of a log that grows, from offset on: see scan_open_piece */
	bool is_piped; /* what options.read gives, not a file: see piped.h */
	uint64_t offset;
	bool said_held; /* that it is held was told once */
	bool was_sent;  /* a request of this run has made it its object, or may have */
	bool said_done; /* a mark of this run has said that it is done, or may have */
};
/* Many are held for a moment where several uploaders share a tree: nobody is told before five
 * seconds. Notes the first time. */
bool candidate_was_just_seen_held(struct candidate *candidate);
/* Which file goes first where a host is about to end: the lower one. Small files come before large
 * ones, by age, and large ones by size. */
uint64_t candidate_rank(const struct candidate *candidate);

/* Some candidates, in any order. */
struct block {
	struct block *next; /* for whoever holds it */
	struct candidate *files[BLOCK_FILES];
	size_t n;
	uint64_t read_ns; /* when its marks were read */
	uint64_t due_ns;  /* the clock_boot_ns() from which it may be taken */
	uint64_t rank;    /* of those that are due alike, the lowest is the first */
	bool came_back;   /* another uploader was seen in it, or it failed */
};

/* A heap of those that wait. Zeroed: none. The owner frees `heap` in the end. */
struct blocks {
	struct block **heap;
	size_t n, cap;
};
/* Takes the block. 0, or -ENOMEM: nothing was taken. */
int blocks_add(struct blocks *blocks, struct block *block);
/* Whether one is due. */
bool blocks_have_due(const struct blocks *blocks, uint64_t now_ns);
/* The one that is due for the longest time. The caller's, to free. NULL if none is due. */
struct block *blocks_take(struct blocks *blocks, uint64_t now_ns);
