/* Looks up the objects of files in the bucket's listing, of which one request returns up to a
 * thousand. The scan's thread uses it for files without marks, such as those of a tree that another
 * program has uploaded. The result is only a hint, since the listing may be out of date when a
 * file's turn comes: it decides which files get a HEAD before they are sent. */
#pragma once
#include "upload/run.h"

/* A listing costs as much as a dozen HEADs, so a page has to answer for this many files. */
#define LISTING_WORTH 12

struct listing;
/* NULL: out of memory or descriptors. */
struct listing *listing_new(struct run *run);
void listing_free(struct listing *listing); /* NULL is fine */

/* Sets in_bucket and listed_suffixes of n files whose keys rise. Files without an answer become
 * BUCKET_UNLISTED: those for which it would cost more than a HEAD each, and all files once the
 * server has refused a listing. Memory: one page of the listing. */
void listing_look(struct listing *listing, struct candidate *const *files, size_t n);
