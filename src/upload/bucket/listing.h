/* Looks up the objects of files in the bucket's listing, of which one request returns up to a
 * thousand. The scan's thread uses it for files without marks, such as those of a tree that another
 * program has uploaded. The result is only a hint, since the listing may be out of date when a file
 * is sent: it decides which files get a HEAD first. */
#pragma once
#include "upload/run.h"

/* A listing costs as much as a dozen HEADs, so a page has to cover at least this many files. */
#define LISTING_WORTH 12

struct listing;
/* NULL: out of memory or descriptors. */
struct listing *listing_new(struct run *run);
void listing_free(struct listing *listing); /* NULL is fine */

/* Sets in_bucket and listed_suffixes of n files in ascending order of their keys. A file becomes
 * BUCKET_UNLISTED if a listing would cost more than a HEAD for each file, or once the server has
 * refused a listing. Memory: one page of the listing. */
void listing_look(struct listing *listing, struct candidate *const *files, size_t n);
