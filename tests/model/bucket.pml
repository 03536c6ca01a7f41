/* The bucket of the marks. Three runs at once, each routed to bucket 1, to bucket 2 of the same name, or to a
 * portal that is not S3. Each works on two files. A run may stop anywhere: it is not scheduled again. Another client may
 * delete any object. A done mark records its bucket here. The program cannot see that, and must not
 * get it wrong. Options and seeded bugs: README.md. */
#define PORTAL 3
#define GENS 3
#ifndef FILES
#define FILES 2
#endif
/* reply to HEAD; NONE: there is no object to check for */
mtype = { NONE, SHOWN, GONE, SILENT };

bool obj[3 * FILES];         /* [FILES * bucket + file]: bucket 1 or 2 holds the file's object */
byte done[GENS * FILES];     /* [FILES * generation + file]: the bucket that the done mark is about; 0: it is not done */
byte gen, wit, witin, ver;   /* the row: generation, witness (file + 1; 0: none), which bucket that is in, version */
bool deleted;

#define DONE(f) done[FILES * g + (f)]
#define HOLDS(f) (route != PORTAL && obj[FILES * route + (f)])

/* the witness is in the row before the first mark says done */
#ifdef OLD
#define WITNESSED(g) true
#else
#define WITNESSED(g) (gen != (g) || wit != 0)
#endif

/* Steps of the row: each is one request, conditional on the version that was read. Then the steps that send a file and mark it done. */
inline aWITNESS(q_v, q_f, q_b) { ver == q_v; ver++; wit = q_f + 1; witin = q_b }
inline aANEW(q_v) { ver == q_v && gen < GENS - 1; gen++; wit = 0; witin = 0; ver++ }
inline aSEND(q_f, q_b) { obj[FILES * q_b + q_f] = true }
inline aDONE(q_g, q_f, q_b) { done[FILES * q_g + q_f] == 0; assert(WITNESSED(q_g)); done[FILES * q_g + q_f] = q_b }

/* HEAD of file q_f's object, which the marks know in bucket q_b */
inline look(q_f, q_b, q_r) {
	if
#ifdef BUG_ANY_ANSWER
	:: route == PORTAL -> q_r = SHOWN
#endif
#ifdef BUG_ANY_404
	:: route == PORTAL -> q_r = GONE
#endif
	:: route == PORTAL -> q_r = SILENT
#ifdef SAME_OBJECT
	:: route != PORTAL && HOLDS(q_f) -> q_r = SHOWN
	:: route != PORTAL && !HOLDS(q_f) -> q_r = GONE
#else
	:: route != PORTAL && HOLDS(q_f) && q_b == route -> q_r = SHOWN
	:: route != PORTAL && !(HOLDS(q_f) && q_b == route) -> q_r = GONE
#endif
	fi }

/* Reads the row, then its witness, then the done marks, each by a request of its own. */
inline ask() {
	atomic { v = ver; w = wit; b = witin; r = NONE; if :: first -> g = gen :: else fi; moved = (gen != g) };
	if :: moved -> goto over :: else fi;
	if :: w != 0 -> atomic { look(w - 1, b, r) } :: else fi;
#ifndef BUG_NO_SAMPLES
	if
	:: atomic { (r == NONE || r == GONE) && DONE(0) != 0 -> look(0, DONE(0), r) }
	:: else
	fi;
	if
	:: atomic { (r == NONE || r == GONE) && DONE(1) != 0 -> look(1, DONE(1), r) }
	:: else
	fi;
#endif
	atomic { w = 0; b = 0 } }

proctype Run(byte id, route) {
	byte g, f, n, v, w, b;
	mtype r, state;
	bool first = true, moved, changed;
start:	ask();
	if
	:: r == SILENT -> goto over
	:: r == GONE ->
		atomic { printf("run %d at %d: another bucket\n", id, route);
			/* only S3 can show this, and never for the right bucket while its objects exist */
			assert(route != PORTAL);
			assert(deleted || !(DONE(0) == route || DONE(1) == route)) };
#ifdef ANEW
		atomic { if
			:: aANEW(v); v = ver; g = gen; r = NONE
			:: ver != v -> skip
			:: else -> goto over
			fi };
		if :: r == NONE -> state = NONE :: else -> goto start fi
#else
#ifdef BUG_UNSHOWN_WRITES
		state = GONE
#else
		goto over
#endif
#endif
	:: else -> state = r
	fi;
	atomic { first = false; if :: f = 0 :: f = 1 fi };
file:	if
	:: DONE(f) != 0 ->
#ifdef BUG_NOTHING_IS_SHOWN
		if :: state == NONE -> state = SHOWN :: else fi;
#endif
		if
		:: state == NONE -> ask(); if :: r == SHOWN -> state = SHOWN :: else -> goto over fi
		:: else
		fi;
		if
		:: state == SHOWN -> atomic { printf("run %d at %d skips %d, done in %d\n", id, route, f, DONE(f)); assert(DONE(f) == route) }
		:: else
		fi
	:: DONE(f) == 0 ->
		if :: route == PORTAL -> goto over :: else fi;
		atomic { aSEND(f, route); changed = true };              /* sent and proven */
#ifdef BUG_WITNESS_LATE
		atomic { if :: aDONE(g, f, route) :: else fi };
#endif
witness:	if
		:: state == NONE ->
			atomic { if
				:: aWITNESS(v, f, route); v = ver; state = SHOWN
				:: else
				fi };
#ifdef BUG_LOST_RACE_IS_FINE
			state = SHOWN;
#endif
			if
			:: state == NONE ->
				ask();
				if
				:: r == SHOWN -> state = SHOWN
				:: r == NONE -> goto witness
				:: else -> goto over
				fi
			:: else
			fi
		:: else
		fi;
		/* the claim is its fence: of two runs that sent the file, one may mark it */
		atomic { if :: aDONE(g, f, route); printf("run %d: %d is done in %d\n", id, f, route) :: else fi }
	fi;
	atomic { n++; if :: n < 2 -> f = 1 - f; goto file :: else fi };
	/* the end: the last object becomes the witness; refused if the row is another one */
	atomic { if
		:: (state == SHOWN || state == GONE) && changed && gen == g && ver == v -> aWITNESS(v, f, route)
		:: else
		fi };
over:	skip
}

init {
	atomic {
#ifdef OLD
		/* marks of an earlier version of the program, without a witness */
		done[0] = 1; obj[2] = true;
#endif
		/* All runs are alike, and so are the buckets: the other choices are one of these. */
		if
		:: run Run(0, 1); run Run(1, 1); run Run(2, 1)
		:: run Run(0, 1); run Run(1, 1); run Run(2, 2)
		:: run Run(0, 1); run Run(1, 1); run Run(2, PORTAL)
		:: run Run(0, 1); run Run(1, 2); run Run(2, PORTAL)
#ifdef OLD
		:: run Run(0, 2); run Run(1, 2); run Run(2, 1)
		:: run Run(0, 2); run Run(1, 2); run Run(2, 2)
		:: run Run(0, 2); run Run(1, 2); run Run(2, PORTAL)
#endif
		fi;
#ifdef DELETES
		deleted = true
#endif
	};
#ifdef DELETES
	do
	:: obj[2] = false
	:: obj[3] = false
	:: obj[4] = false
	:: obj[5] = false
	:: break
	od
#endif
}
