/* The session row: created, heartbeaten, fenced, swept. Late duplicates of any write of the owner.
 * Property: once fenced, no later heartbeat of the owner succeeds.
 * -DDEL: fencing deletes the row (absent = gone); default: fencing leaves an `ended` row.  -DSWEEP: the ended row is deleted later
 * (TTL, gc) while late requests may still be under way.  -DFIRSTBEAT: open only after one heartbeat.
 * -DCOUNTER -DCLONE: versions are a counter and two copies of the owner run (VM cloned). */
byte row;      /* 0 absent 1 open 2 ended */
byte ver;      /* version in the row */
bool fenced;
byte seq;      /* unique versions */
chan late = [2] of { byte, byte, byte };   /* op (1 create, 2 beat), expected version, new version */
byte faults = 2;
byte okA, okB;
inline create(q) { if :: row == 0 -> row = 1; ver = q; r = 1; printf("row created, version %d\n", q) :: else -> r = (row == 1 && ver == q -> 1 : 2) fi }
inline beat(o,q) { if :: row == 1 && ver == o -> ver = q; r = 1; printf("heartbeat %d to %d applied\n", o, q) :: else -> r = (row == 1 && ver == q -> 1 : 2) fi }
inline fence() {
#ifdef DEL
	row = 0;
#else
	row = 2;
#endif
	ver = 0; fenced = 1; printf("FENCED by another, row %d\n", row) }
proctype Owner(byte id) {
	byte v, w, r, k;
	if
	:: id == 0 ->
		atomic { seq++; v = seq; create(v) ; if :: faults > 0 -> faults--; late!1,0,v :: skip fi }
#ifdef CLONE
		run Clone(v);
#endif
	:: else fi;
	do
	:: k < 2 -> 
#ifdef COUNTER
		atomic { w = v + 1;
#else
		atomic { seq++; w = seq;
#endif
		beat(v,w); k++;
		if :: r == 1 -> 
#ifndef FIRSTBEAT
			assert(!fenced);
#else
			assert(!(fenced && k > 1));
#endif
			v = w; if :: faults > 0 -> faults--; late!2,v-1,v :: skip fi
		:: else -> break fi }
	:: k >= 2 -> break
	od
}
#ifdef CLONE
byte both;
proctype Clone(byte v) {
	byte w, r;
	atomic {
#ifdef COUNTER
	w = v + 1;
#else
	seq++; w = seq;
#endif
	/* each copy heartbeats once from the same state: only one may succeed */
	printf("a clone of the owner\n"); beat(v,w); if :: r == 1 -> both++ :: else fi }
	skip;
	atomic { 
#ifdef COUNTER
	w = v + 1;
#else
	seq++; w = seq;
#endif
	beat(v,w); if :: r == 1 -> both++ :: else fi; assert(both < 2) }
}
#endif
active proctype Other() {
	atomic { row == 1 -> fence() };
#ifdef SWEEP
	atomic { row == 2; row = 0; printf("row swept\n") }
#endif
}
active proctype Net() { byte op, a, b, r; end: do :: atomic { late?op,a,b -> if :: op == 1 -> create(b) :: else -> beat(a,b) fi } od }
init { run Owner(0) }
