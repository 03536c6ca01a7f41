/* The settings of a mark store: made once by `init` (DynamoDB) or on first use (SQLite), read by
 * every run. */
#pragma once
#include "lease/machine.h"
#include "store/dynamodb.h"

#define SHARDS_OF_TABLE 16 /* so that DynamoDB's partitions share the load */
#define SHARDS_OF_FILE  1  /* so that SQLite has marks of neighbouring files in one page */
#define SHARDS_MAX      1024
#define LAYOUT_VERSION  1
#define EARLIER_BYTES   (16 * 33 + 1) /* size of 16 ids, each followed by a blank */

struct store_settings {
	int layout;
	char table_id[33]; /* random id of the store in the metadata of objects */
	unsigned shards;   /* fixed for the life of the store */
	/* the result of try_batches (store.h), "": not tried yet */
	char batches[STORE_BATCHES_MAX];
	/* For a file, whose marks are about one machine. A table has none of these. */
	struct known_machine machine; /* the machine that used the file last */
	/* ids that the file had on other machines, the last one first */
	char earlier[EARLIER_BYTES];
	char copied_from[256]; /* the host name of the previous machine; "": there was none */
	int64_t copied_s;      /* time at which this machine first used the file */
};

/* Reads the settings item. Another layout version is refused. OUTCOME_ABSENT: the store was never
 * set up. limits may be NULL. */
enum outcome settings_load(struct store_conn *conn, const struct call_limits *limits,
	struct store_settings *ret, struct problem *ret_problem);
/* Generates the settings of a new store, with a random id. Nothing is written, so that a dry run
 * can use them. */
void settings_generate(unsigned shards, struct store_settings *ret);
/* As settings_load(). If the item is absent, it is written first, with `shards`. */
enum outcome settings_load_or_make(struct store_conn *conn, unsigned shards,
	const struct call_limits *limits, struct store_settings *ret, struct problem *ret_problem);

/* Notes in a file of marks the machine that uses it. If that is another machine than before
 * (machine_differs()), the file gets a new id: this machine's objects are no longer taken for those
 * of the other one, which may still run. *ret_is_copied: it was copied. With `dry`, nothing is
 * written. limits may be NULL. */
enum outcome settings_note_machine(struct store_conn *conn, bool dry,
	const struct call_limits *limits, struct store_settings *settings, bool *ret_is_copied,
	struct problem *ret_problem);
/* Whether these marks have or had this id: on this machine, or on the one that they are a copy of.
 */
bool settings_had_id(const struct store_settings *settings, const char *id);

/* Turns batches of marks on if the server is known to honour their conditions. If no run has found
 * that out yet, this one does. If it cannot, each mark is written by itself, and a line at level
 * note (denied) or info gives the reason. limits may be NULL. */
void settings_use_batches(
	struct store_conn *conn, const struct call_limits *limits, struct store_settings *settings);
/* Finds out again whether marks can be written in batches, with two items in the partition pk
 * (try_batches of store.h), and keeps the answer in the settings for later runs. OK:
 * settings->batches has the answer, too. DENIED: the permissions dynamodb:PartiQLInsert and
 * dynamodb:PartiQLUpdate are missing. */
enum outcome settings_learn_batches(struct store_conn *conn, const char *pk,
	const struct call_limits *limits, struct store_settings *settings,
	struct problem *ret_problem);

/* Makes a table for marks, for `s3once init`: creates it, waits at most timeout_ms until it is
 * ACTIVE, turns time to live on for "expires", and writes the settings. It may be run again, and by
 * several at once. It refuses a table of another shape. *ret_made is set as by table_make(). */
struct table_setup {
	const char *table;
	unsigned shards;
	uint64_t timeout_ms;
};
enum outcome table_create(const struct aws_settings *aws, struct http_shared *http,
	const struct table_setup *setup, struct store_settings *ret, struct table_made *ret_made,
	struct problem *ret_problem);
