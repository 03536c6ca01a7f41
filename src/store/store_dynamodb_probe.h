/* Whether a server keeps to the conditions of statements. That it answers is not enough: there are
 * servers that overwrite with INSERT, and ignore what WHERE says beyond the key. */
#pragma once
#include "dynamodb/dynamodb_statement.h"
#include "store/store.h"

/* Tries it on two new items in this partition, as try_batches of store.h says. OK: *ret_how is a
 * word for dynamodb_batches_dialect, STORE_BATCHES_NONE if a condition was ignored or the server
 * knows no statements. DENIED: it needs dynamodb:PartiQLInsert and dynamodb:PartiQLUpdate. Any
 * other outcome: nothing was learnt. limits may be NULL. */
enum outcome dynamodb_batches_probe(struct dynamodb_conn *conn, const struct table *table,
	const char *pk, const struct call_limits *limits, char ret_how[static STORE_BATCHES_MAX],
	struct problem *ret_problem);
/* The dialect that the word stands for; false if there are to be no batches. */
bool dynamodb_batches_dialect(const char *how, enum dynamodb_dialect *ret);
