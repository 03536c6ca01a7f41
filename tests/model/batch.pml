/* Marks in batches: two uploaders, two keys. An uploader's pending writes leave together or one by one. Any subset of a batch
 * is applied, interleaved with the other uploader's steps in any order, and any subset is answered: a statement may be throttled, fail
 * before or after it took effect, or arrive again at any later time; the whole reply may be lost, or lack a statement's reply.
 * There is no take-over here: to the server a statement is a request of its own, and mark.pml has all of those. */
#ifndef F
#define F 2            /* faults */
#endif
#define K 2
/* marks */
#define ABSENT 0
#define CLAIMED 1
#define DONE 2
/* replies to statements; NONE: missing */
#define OK 1
#define REFUSED 2
#define ERROR 3
#define NONE 4
/* a file of an uploader */
#define CLAIMS 0
#define SENDS 1
#define MARKS 2
#define ENDED 3
mtype = { oCLAIM, oDONE };

byte faults = F;
byte state[K], owner[K];           /* the marks; owner: the uploader whose claim it is, from 1 */
byte sent[K];                      /* number of times the file was sent */
chan late = [2] of { mtype, byte, byte };

inline apply(q_op, q_k, q_u, q_r) {
	if
#ifdef BUG_INSERT_OVERWRITES
	:: q_op == oCLAIM -> state[q_k] = CLAIMED; owner[q_k] = q_u; q_r = OK
#else
	:: q_op == oCLAIM && state[q_k] == ABSENT -> state[q_k] = CLAIMED; owner[q_k] = q_u; q_r = OK
#endif
	:: q_op == oDONE && state[q_k] == CLAIMED && owner[q_k] == q_u -> state[q_k] = DONE; q_r = OK
	:: else -> q_r = REFUSED
	fi }

#define PENDING(i) (at[i] == CLAIMS || at[i] == MARKS)
#define OP(i) (at[i] == CLAIMS -> oCLAIM : oDONE)

/* One statement of a batch at the server. */
#define STATEMENT(i) \
	if \
	:: !in[i] \
	:: in[i] -> atomic { if \
		:: apply(OP(i), i, u, r[i]) \
		:: faults > 0 -> faults--; r[i] = ERROR; printf("uploader %d: statement %d not applied\n", u, i) \
		:: faults > 0 -> faults--; apply(OP(i), i, u, r[i]); r[i] = ERROR; printf("uploader %d: statement %d failed after it was applied\n", u, i) \
		:: faults > 0 && nfull(late) -> faults--; late!!OP(i), i, u; apply(OP(i), i, u, r[i]); printf("uploader %d: statement %d comes again\n", u, i) \
		:: faults > 0 && nfull(late) -> faults--; late!!OP(i), i, u; r[i] = ERROR; printf("uploader %d: statement %d is late\n", u, i) \
		fi } \
	fi

proctype Uploader(byte u) {
	byte at[K], r[K];
	bool in[K];
	byte i;

next:	atomic { in[0] = false; in[1] = false; r[0] = 0; r[1] = 0; i = 0 }
	if
	:: PENDING(0) -> in[0] = true
	:: PENDING(1) -> in[1] = true
	:: PENDING(0) && PENDING(1) -> atomic { in[0] = true; in[1] = true }
	:: at[0] == SENDS -> atomic { sent[0]++; assert(sent[0] == 1); at[0] = MARKS }; goto next
	:: at[1] == SENDS -> atomic { sent[1]++; assert(sent[1] == 1); at[1] = MARKS }; goto next
	:: at[0] == ENDED && at[1] == ENDED -> goto good
	fi;
	/* DynamoDB promises no order among the statements. */
	if
	:: STATEMENT(0); STATEMENT(1)
	:: in[0] && in[1] -> STATEMENT(1); STATEMENT(0)
	fi;
	/* The reply. */
	if
	:: skip
	:: atomic { faults > 0 -> faults--; printf("uploader %d: the reply is lost\n", u);
#ifdef BUG_LOST_IS_OK
		r[0] = OK; r[1] = OK
#else
		r[0] = NONE; r[1] = NONE
#endif
	   }
	:: atomic { faults > 0 && in[0] && in[1] -> faults--; printf("uploader %d: the first answer is missing\n", u);
#ifdef BUG_SHORT_IS_IN_ORDER
		r[0] = r[1]; r[1] = NONE      /* the single reply is assigned to the first statement */
#else
		r[0] = NONE; r[1] = NONE      /* its statement is unknown */
#endif
	   }
	fi;
#ifdef BUG_200_IS_OK
	if :: r[0] == REFUSED || r[0] == ERROR -> r[0] = OK :: else fi;
	if :: r[1] == REFUSED || r[1] == ERROR -> r[1] = OK :: else fi;
#endif
	/* Each caller acts on its own reply. */
	do
	:: i < K && in[i] && r[i] == OK -> atomic { at[i] = at[i] + 1; i++ }
	:: i < K && in[i] && r[i] == REFUSED ->
#ifdef BUG_NO_READ
		/* reports "held by another" or "fenced" */
		atomic { assert(at[i] == CLAIMS && owner[i] != u); i++ }
#else
		/* read consistently, judged by the claim */
		atomic { if
		:: at[i] == CLAIMS && state[i] == CLAIMED && owner[i] == u -> at[i] = SENDS
		:: at[i] == CLAIMS && state[i] == CLAIMED && owner[i] != u      /* held: later */
		:: at[i] == CLAIMS && state[i] == DONE -> at[i] = ENDED
		:: at[i] == MARKS -> assert(state[i] == DONE); at[i] = ENDED
		fi; i++ }
#endif
	:: i < K && (!in[i] || r[i] == ERROR || r[i] == NONE) -> i++   /* that statement again */
	:: i == K -> break
	od;
	goto next;
good:	assert(state[0] == DONE && state[1] == DONE && sent[0] == 1 && sent[1] == 1)
}

proctype Net() {
	mtype op; byte k, u, r;
end:	do
	:: atomic { late??op, k, u -> apply(op, k, u, r);
		printf("        late %e of key %d by %d arrives r=%d: %d %d\n", op, k, u, r, state[k], owner[k]); op = 0; k = 0; u = 0; r = 0 }
	od
}

init { atomic { run Net(); run Uploader(1); run Uploader(2) } }
