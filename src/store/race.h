/* A race of several writers, which shows whether a server honours conditions. */
#pragma once
#include "s3/s3.h"
#include "store/store.h"

/* A race: several writers try the same conditional write at the same time. If the server first
 * tests and then writes, more than one of them may win. One round may have a single winner by
 * chance, so there are several. */
#define RACE_WRITERS 8
#define RACE_ROUNDS  5
struct racer {
	unsigned number; /* index of the writer */
	struct s3_conn *s3;
	struct store_conn *store;
	struct contest *contest;
	/* State in the current round: */
	bool is_ready;
	enum outcome outcome;
	struct problem problem;
};
struct race {
	struct s3 *s3;       /* each writer gets a connection to it; NULL: none */
	struct store *store; /* likewise; NULL: none */
	/* Prepares a round, in the thread of the caller. */
	enum outcome (*prepare)(void *arg, unsigned round, struct problem *ret_problem);
	/* Performs the write of one writer, in a thread of its own. It calls racer_await_start()
	 * right before. OK: it has won. REFUSED: another writer has. */
	enum outcome (*write)(void *arg, struct racer *racer, struct problem *ret_problem);
	void *arg;
};
/* Reports that this writer is ready, and waits until all writers of the round are. */
void racer_await_start(struct racer *racer);
/* Runs the rounds, and stops after a round that does not have exactly one winner. Returns the
 * number of winners of the last round: 1 is right. 0 with a sentence means that the race was
 * inconclusive: a round could not be prepared, or no writer won, or one won and another got no
 * answer. */
unsigned race_run(const struct race *race, struct problem *ret_problem);
