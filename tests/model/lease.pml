/* One lease: a holder that heartbeats, an observer that takes over. Discrete time; requests take any number of ticks each
 * way. Property: when the take-over is applied, the holder, by its own clock, no longer believes that it holds.
 * Seeded bugs: -DOBS_FROM_SEND, the observer counts from before its read was sent; -DHOLD_FROM_REPLY, the holder counts
 * from the reply. */
#ifndef L
#define L 4
#endif
#ifndef T
#define T 12
#endif
byte now;
byte ver = 1;              /* the row */
bool fenced;
byte seq = 1;              /* versions given out (unique) */
/* holder */
byte base;                 /* holder's lease runs to base + L */
byte hsent, hver; bool hpend, happlied;
byte mine = 1;             /* version the holder knows */
/* observer */
byte osent, oseen, ofrom; bool opend, oread; byte okver; bool have;
active proctype Sys() {
	do
	:: now < T -> now++                                         /* time passes */
	:: !hpend && now < base + L && seq < 4 ->
		atomic { hpend = 1; happlied = 0; hsent = now; seq++; hver = seq; printf("%d: holder sends heartbeat %d\n", now, hver) }
	:: hpend && !happlied -> atomic {
		if :: (!fenced && ver == mine) -> ver = hver; printf("%d: heartbeat %d applied\n", now, hver) :: else fi;
		happlied = 1 }
	:: hpend && happlied && ver == hver ->                      /* reply (or ALL_OLD shows our version) */
		atomic { mine = hver; hpend = 0;
#ifdef HOLD_FROM_REPLY
		base = now;
#else
		base = hsent;
#endif
		printf("%d: holder has the reply, holds to %d\n", now, base + L) }
	:: !opend -> atomic { opend = 1; oread = 0; osent = now; printf("%d: observer asks\n", now) }
	:: opend && !oread -> atomic { oread = 1; oseen = ver; printf("%d: version %d read\n", now, ver) }
	:: opend && oread -> atomic { opend = 0;
		if
		:: have && okver == oseen -> skip                   /* unchanged: the first sight counts */
		:: else -> have = 1; okver = oseen;
#ifdef OBS_FROM_SEND
			ofrom = osent;
#else
			ofrom = now;
#endif
			printf("%d: observer has seen version %d, counts from %d\n", now, okver, ofrom)
		fi; oseen = 0 }
	:: have && now >= ofrom + L && !fenced ->                   /* take over, conditional on the version seen */
		atomic {
		if
		:: ver == okver -> fenced = 1; printf("%d: TAKE-OVER; holder holds to %d\n", now, base + L); assert(!(now < base + L))
		:: else -> have = 0
		fi }
	od
}
