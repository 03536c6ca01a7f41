/* Joins the files of the scan with the bucket's listing. Both are in the byte order of keys, except
 * that a file may have an object of its key with a suffix of compression: "a.zst" comes after
 * "a-b", although the file "a" comes before "a-b". So the wanted keys of some files are sorted
 * before they are looked up.
 *
 * feed.c calls this before it hands files to the queue. No object is judged here: look.c checks
 * each object found. */
#include "upload/bucket/listing.h"
#include "base/log.h"
#include "s3/object_stream.h"
#include "scan/key/key.h"
#include "scan/key/rotated_name.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A key that an object of a file may have: the file's key and a suffix of compression. */
struct wanted {
	struct candidate *file;
	unsigned suffix; /* as a bit of candidate.listed_suffixes */
};

struct listing {
	struct run *run;
	struct s3_conn *s3;
	struct text prefix;
	struct object_stream *stream; /* stream of the present page; NULL: no page was read */
	const struct s3_listed *next; /* the first object whose key is greater than `passed` */
	char passed[KEY_BYTES_MAX + 1];
	bool is_refused; /* the server refuses to list, or does not list in order */
	unsigned pages;  /* read for the files of one listing_look() */
};

struct listing *listing_new(struct run *run)
{
	struct listing *listing = calloc(1, sizeof *listing);
	if (!listing)
		return NULL;
	listing->run = run;
	listing->prefix = (struct text)TEXT(KEY_BYTES_MAX + 2);
	if (!run->options.as)
		key_add_base(&listing->prefix, run->options.prefix);
	if (!s3_conn_new(run->s3, &listing->s3))
		return listing;
	listing_free(listing);
	return NULL;
}

void listing_free(struct listing *listing)
{
	if (!listing)
		return;
	object_stream_free(listing->stream);
	s3_conn_free(listing->s3);
	text_clear(&listing->prefix);
	free(listing);
}

/* Compares the key of a wanted object with another key, as strcmp() does. */
static int compare_wanted_key(const struct wanted *wanted, const char *key)
{
	const size_t n = strlen(wanted->file->key);
	const int order = strncmp(wanted->file->key, key, n);
	return order ? order : strcmp(family_suffix(wanted->suffix), key + n);
}

static int compare_wanted(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;
	char key[KEY_BYTES_MAX + SUFFIX_MAX + 1];
	snprintf(key, sizeof key, "%s%s", y->file->key, family_suffix(y->suffix));
	return compare_wanted_key(x, key);
}

/* Writes a key that sorts shortly before the given one. The last character becomes the one before
 * it in ASCII, followed by '~': "ab/b~" for "ab/c". If the last character is '!' or less, DEL or
 * not ASCII, or the result would be too long, the last character is dropped instead. A listing that
 * begins after this key has the given key on its first page, unless very many keys are in
 * between. */
static void key_before(const char *key, char ret[static KEY_BYTES_MAX + 1])
{
	size_t n = strlen(key);
	const unsigned char last = n ? (unsigned char)key[--n] : 0; /* n excludes it now */
	const bool has_one_before = last > '!' && last < 0x7f;
	if (has_one_before && n + 2 <= KEY_BYTES_MAX) {
		snprintf(ret, KEY_BYTES_MAX + 1, "%.*s%c~", (int)n, key, last - 1);
		return;
	}
	while (n && ((unsigned char)key[n] & 0xc0) == 0x80) /* to the start of the character */
		n--;
	snprintf(ret, KEY_BYTES_MAX + 1, "%.*s", (int)n, key);
}

/* Reads the page of the listing on which the wanted key would be. */
static enum outcome read_page(
	struct listing *listing, const struct wanted *wanted, struct problem *ret_problem)
{
	const struct call_limits limits = run_limits(listing->run);
	char key[KEY_BYTES_MAX + SUFFIX_MAX + 1];
	snprintf(key, sizeof key, "%s%s", wanted->file->key, family_suffix(wanted->suffix));
	object_stream_free(listing->stream);
	listing->next = NULL;
	key_before(key, listing->passed);
	listing->stream = object_stream_new(
		listing->s3, text_string(&listing->prefix), listing->passed, &limits);
	if (!listing->stream)
		return outcome_no_memory(ret_problem);
	listing->pages++;
	return object_stream_next(listing->stream, &listing->next, ret_problem);
}

/* Moves on within the page to the first object that is not less than the wanted one, and returns
 * whether the page shows if there is the wanted object. It does not if it ends before that object,
 * or begins after it. If the whole listing ends before it, there is none. */
static bool advance_in_page(struct listing *listing, const struct wanted *wanted)
{
	struct problem problem = {0};
	if (!listing->stream || compare_wanted_key(wanted, listing->passed) <= 0)
		return false;
	while (listing->next && compare_wanted_key(wanted, listing->next->key) > 0) {
		snprintf(listing->passed, sizeof listing->passed, "%s", listing->next->key);
		if (object_stream_needs_page(listing->stream)) {
			listing->next = NULL;
			object_stream_free(listing->stream);
			listing->stream = NULL;
			return false;
		}
		if (object_stream_next(listing->stream, &listing->next, &problem) != OUTCOME_OK)
			return false; /* cannot happen: no request is sent within a page */
	}
	return true;
}

/* Finds out whether the listing has the wanted object, and notes it in the candidate. `settled` is
 * the number of files that the pages have answered for so far. Returns false if the answer is
 * unknown for this and all later objects: another page is not worth its cost, or the server refuses
 * it. */
static bool find_listed(struct listing *listing, const struct wanted *wanted, size_t settled)
{
	struct problem problem = {0};
	if (listing->is_refused) /* its page shows nothing */
		return false;
	if (!advance_in_page(listing, wanted)) {
		/* A further page is read once each page before it has settled LISTING_WORTH files.
		 */
		if (listing->pages > settled / LISTING_WORTH)
			return false;
		const enum outcome o = read_page(listing, wanted, &problem);
		listing->is_refused = o != OUTCOME_OK;
		if (o != OUTCOME_OK)
			log_info("the bucket is not listed, and files are looked for one by one: "
				 "%s",
				problem.text);
		/* The key is on the page, unless more than a page of keys lies before it. */
		if (o != OUTCOME_OK || !advance_in_page(listing, wanted))
			return false;
	}
	if (listing->next && compare_wanted_key(wanted, listing->next->key) == 0)
		wanted->file->listed_suffixes |= (unsigned char)(1U << wanted->suffix);
	return true;
}

void listing_look(struct listing *listing, struct candidate *const *files, size_t n)
{
	const size_t max_wanted = n * (1 + FAMILY_SUFFIXES);
	struct wanted *wanted = malloc((max_wanted + 1) * sizeof *wanted);
	size_t n_wanted = 0, n_settled = 0, n_known = 0;
	bool has_suffixes = false;
	listing->pages = 0;
	for (size_t file = 0; file < n; file++) {
		/* Only a log that is known by its content, and a file that this run compresses,
		 * have objects with a suffix. */
		struct candidate *c = files[file];
		const bool may_have_suffix = *c->content_id || *listing->run->bodies.encoding.name;
		const unsigned suffixes = may_have_suffix ? 1 + FAMILY_SUFFIXES : 1;
		has_suffixes |= may_have_suffix;
		c->in_bucket = BUCKET_UNLISTED;
		for (unsigned suffix = 0; wanted && suffix < suffixes; suffix++)
			wanted[n_wanted++] = (struct wanted){c, suffix};
	}
	/* Without suffixes, the wanted keys rise already, as those of the files do. */
	if (n_wanted && has_suffixes)
		qsort(wanted, n_wanted, sizeof *wanted, compare_wanted);
	while (n_known < n_wanted && find_listed(listing, &wanted[n_known], n_settled)) {
		wanted[n_known].file->in_bucket = BUCKET_LISTED;
		n_settled += !wanted[n_known].suffix; /* each file has one key without a suffix */
		n_known++;
	}
	/* The answer is unknown for the rest of the keys, and so for each file that has one. */
	for (size_t i = n_known; i < n_wanted; i++)
		wanted[i].file->in_bucket = BUCKET_UNLISTED;
	free(wanted);
}
