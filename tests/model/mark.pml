/* One key, one file that may change, two uploaders that are paused, fenced or killed at any instant, then one recovery
 * run alone. A request is applied and answered, or its reply is lost, or it arrives late (or never), or twice.
 * There is no time: any session may be judged over at any moment (the worst case: its process is only paused), and a
 * fenced process does not know it. A kill is a process never scheduled again, or `frozen`, after which run 2 starts.
 * Without options this is protocol.md's "One file" with a single PutObject; -DMP is multipart. Options: README.md. */
#ifndef F
#define F 2            /* network faults: lost replies, late or duplicated requests */
#endif
#ifndef CH
#define CH 1           /* file changes */
#endif
#ifndef G
#define G 2            /* late requests in flight */
#endif
#ifndef NONCES
#define NONCES 15
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
/* Room for uploads: new ones are begun below UPLOADS_MOST, by each uploader and by one late request. */
#define UPLOADS_MOST 5
#ifdef THREE
#define NUP 9
#else
#define NUP 8
#endif
#define TORN 7
#define FOREIGN 8
/* mark states */
#define ABSENT 0
#define CLAIMED 1
#define DONE 2
#define FAILED 3
#define FORGOTTEN 4
/* replies */
#define OK 1
#define NO 2           /* condition failed / 412 */
#define LOST 3         /* no reply */
#define NSU 4          /* NoSuchUpload */
#define BADPART 5
mtype = { oCLAIM, oTAKE, oDONE, oFAIL, oPUT, oCREATE, oREC, oPART, oCOMP, oABORT };

byte fver = 1, chleft = CH, faults = F;
bool frozen = false;
#ifdef FORGET
bool was_deleted = false;          /* an earlier report that the object was there was true */
#define TRUE_THEN (was_deleted && id != 2)
#else
#define TRUE_THEN 0
#endif
#ifdef PREEXIST
byte obj = FOREIGN, otok = 0;
#else
byte obj = 0, otok = 0;            /* object content, token of the claim that wrote it */
#endif
byte wrote[3];                     /* accepted writes of each version */
/* the mark */
byte mst, mses, mid, mdv, mup, mupv;  /* state, session, claim id, version done, upload id, its version */
#ifdef MP
byte oup; byte ust[NUP], utok[NUP], up1[NUP], up2[NUP], nup;
#endif
byte sst[3];                       /* session rows: 0 absent 1 open 2 fenced */
byte nonce;                        /* last claim id given out */
chan late = [G] of { mtype, byte, byte, byte, byte, byte };

#define MINE(s,n) (mses == (s) && mid == (n))

/* ---- the stores: each atomic, r = reply; g* = image of the item on failure ---- */
inline image() { gst = mst; gses = mses; gid = mid; gdv = mdv; gup = mup; gupv = mupv }

inline aCLAIM(q_s, q_n, q_v, q_r) {
	if
	:: mst == ABSENT -> mst = CLAIMED; mses = q_s; mid = q_n; mdv = 0; mup = 0; mupv = 0; q_r = OK
	:: else -> q_r = NO
	fi }

/* take over / claim again, as seen: state os, session oss, id on */
inline aTAKE(q_s, q_n, q_v, q_oss, q_on, q_os, q_r) {
	if
#ifdef BUG_TAKEOVER_NO_STATE
	:: (mst != ABSENT && mses == q_oss && mid == q_on) ->
#else
	:: (mst == q_os && q_os != ABSENT && mses == q_oss && mid == q_on) ->
#endif
		/* P2: a done version is not claimed again to be sent */
#ifndef NOP2
		assert(!(mst == DONE && mdv == q_v));
#endif
		mst = CLAIMED; mses = q_s; mid = q_n; q_r = OK
	:: else -> q_r = NO
	fi }

inline aDONE(q_s, q_n, q_v, q_r) {
	if
#ifdef BUG_NO_FENCE
	:: (mst == CLAIMED) ->
#else
	:: (mst == CLAIMED && MINE(q_s,q_n)) ->
#endif
		mst = DONE; mup = 0;
		mdv = q_v;
		mupv = 0; q_r = OK;
		truth()
	:: else -> q_r = NO
	fi }

inline aFAIL(q_s, q_n, q_r) {
	if
	:: (mst == CLAIMED && MINE(q_s,q_n)) -> mst = FAILED; q_r = OK
	:: else -> q_r = NO
	fi }

inline aREC(q_s, q_n, q_u, q_uv, q_old, q_r) {
	if
	:: (mst == CLAIMED && MINE(q_s,q_n) && mup == q_old) -> mup = q_u; mupv = q_uv; q_r = OK
	:: (mst == CLAIMED && MINE(q_s,q_n) && mup == q_u) -> q_r = OK   /* our lost reply */
	:: else -> q_r = NO
	fi }

/* P1/P3: what a done mark says is what S3 holds (or a newer version of the same file) */
#ifdef FLIP
#define HOLDS (obj == mdv)
#else
#define HOLDS (obj == mdv || (mdv == 1 && obj == 2))
#endif
inline truth() {
#ifndef NOTRUTH
	assert(mst != DONE || HOLDS)
#else
	skip
#endif
}

#ifdef FLIP
#define NOBACK 1
#else
#define NOBACK 0
#endif
inline store(q_c, q_tok) {
	assert(obj != FOREIGN);           /* inv. 5 */
	assert(!(obj == 2 && q_c == 1) || NOBACK); /* P3: never back to an older version */
	obj = q_c; otok = q_tok;
	if
	:: q_c <= 2 -> wrote[q_c] = wrote[q_c] + 1;
#ifndef NODUP
		assert(wrote[q_c] <= 1)
#endif
	:: else -> assert(q_c != TORN)      /* P4 */
	fi;
	truth() }

/* PUT of content c; m = 0: If-None-Match, else If-Match m */
inline aPUT(q_c, q_tok, q_m, q_r) {
	if
#ifndef NOCOND
	:: (q_m == 0 && obj != 0) -> q_r = NO
	:: (q_m != 0 && obj != q_m) -> q_r = NO
#endif
	:: else -> store(q_c, q_tok); q_r = OK
	fi }

#ifdef MP
inline aCREATE(q_tok, q_r, q_u) {
	nup = nup + 1; q_u = nup; ust[nup] = 1; utok[nup] = q_tok; q_r = OK }
#define ELSEWHERE(i) (i != q_u && ust[i] == 1 && ((q_p == 1 && up1[i] == q_c) || (q_p == 2 && up2[i] == q_c)))
inline aPART(q_u, q_p, q_c, q_r) {
	if
#ifdef SWIFT
	:: ust[q_u] == 2 -> q_r = OK; assert(!(oup == q_u && q_c != obj))  /* a part after Complete breaks the object */
	:: ust[q_u] == 3 || ust[q_u] == 0 -> q_r = NSU
#else
	:: ust[q_u] != 1 -> q_r = NSU
#endif
	:: else ->
#ifndef NODUP
		/* P2: what an open upload holds is not sent again into another one */
		assert(!(ELSEWHERE(1) || ELSEWHERE(2) || ELSEWHERE(3) || ELSEWHERE(4) || ELSEWHERE(5) || ELSEWHERE(6) || ELSEWHERE(7)));
#endif
		if :: q_p == 1 -> up1[q_u] = q_c :: else -> up2[q_u] = q_c fi; q_r = OK
	fi }
inline aABORT(q_u, q_r) {
	if
	:: ust[q_u] == 1 -> ust[q_u] = 3; up1[q_u] = 0; up2[q_u] = 0; q_r = OK
	:: else -> q_r = NSU
	fi }
inline aCOMP(q_u, q_c1, q_c2, q_m, q_r) {
	if
	:: ust[q_u] != 1 -> q_r = NSU
	:: ust[q_u] == 1 && (up1[q_u] != q_c1 || up2[q_u] != q_c2) -> q_r = BADPART
#ifndef NOCOND
	:: ust[q_u] == 1 && up1[q_u] == q_c1 && up2[q_u] == q_c2 && q_m == 0 && obj != 0 -> q_r = NO
	:: ust[q_u] == 1 && up1[q_u] == q_c1 && up2[q_u] == q_c2 && q_m != 0 && obj != q_m -> q_r = NO
#endif
	:: else ->
		ust[q_u] = 2; oup = q_u;
		if :: q_c1 == q_c2 -> store(q_c1, utok[q_u]) :: else -> store(TORN, utok[q_u]) fi;
		up1[q_u] = 0; up2[q_u] = 0; q_r = OK
	fi }
#endif

/* one request: applied and answered / reply lost / late (or never) / applied and a copy late */
#define NET(APPLY, op,a,b,c,d,e) \
	atomic { if \
	:: id != 2 && frozen -> goto dead \
	:: (id == 2 || !frozen) -> APPLY; printf("run %d: %e r=%d\n", id, op, r) \
	:: id != 2 && !frozen && faults > 0 -> faults--; APPLY; printf("run %d: %e r=%d, REPLY LOST\n", id, op, r); r = LOST \
	:: id != 2 && !frozen && faults > 0 && nfull(late) -> faults--; late!!op,a,b,c,d,e; printf("run %d: %e DELAYED\n", id, op); r = LOST \
	:: id != 2 && !frozen && faults > 0 && nfull(late) -> faults--; late!!op,a,b,c,d,e; APPLY; printf("run %d: %e r=%d and a DUPLICATE under way\n", id, op, r) \
	fi }

#ifdef BUG_ADOPT_BY_TOKEN
#define TOK(id,n) ((id)*16+(n))
#else
#define TOK(id,n) 0
#endif

inline newid() {
#ifdef BUG_COUNTER
	skip
#else
	atomic { nonce < NONCES -> nonce = nonce + 1; n = nonce }
#endif
}

#ifdef BUG_COUNTER
#define OURS (gses == id && gst == CLAIMED)
#else
#define OURS (gses == id && gid == n && gst == CLAIMED)
#endif

/* Judges the object that HEAD shows (h != 0) for the file (v), by those rows of the table in docs/protocol.md
 * that are possible if content is a number. tests/shape/one-table-of-judgements compares them with the table of src/marks/judge_object.c. */
#define ROW_1 (h == v)
#define ROW_7 (h != v && h != FOREIGN)
#define ROW_9 (h == FOREIGN)

#ifdef DELMARK
#define IS_DELETABLE true
#else
#define IS_DELETABLE false
#endif

inline wipe() { gst=0;gses=0;gid=0;gdv=0;gup=0;gupv=0;c1=0;c2=0;m=0;u=0;k1=0;k2=0;r=0;h=0;ht=0;mu=0 }

proctype Run(byte id) {
	byte ct, mu, n, v, r, c1, c2, m, u, k1, k2, h; bool ht;
	byte gst, gses, gid, gdv, gup, gupv;
	byte round = 1;
	byte bad = 0;
	sst[id] = 1;
opened:	atomic { v = fver; ct = chleft; wipe();  printf("run %d opens, version %d\n", id, v) }
claim:	newid();
#ifdef BUG_COUNTER
	n = 1;
#endif
put:	NET(aCLAIM(id,n,v,r); image(), oCLAIM,id,n,v,0,0);
	if
	:: r == LOST -> goto put
	:: r == OK -> m = 0; gup = 0; gdv = 0; goto have
	:: else
	fi;
#ifdef BUG_NO_ALL_OLD
	/* "held by another" is true only if the cause of the refusal is not our own first write */
	atomic { printf("run %d HELD BY ANOTHER: mark ses %d id %d\n", id, mses, mid); assert(!(mst == CLAIMED && MINE(id,n))) };
	goto fin;
#endif
	/* the item as it is: ours, done, stale, or held */
look:	if
	:: OURS -> m = 0; goto haveimg
	:: !OURS && gst == ABSENT -> goto put
	:: !OURS && gst == DONE ->
#ifdef BUG_DONE_IS_DONE
		goto good
#else
		if
		:: gdv == v -> goto good
		:: else -> m = gdv                          /* changed: --if-changed=upload, If-Match the done etag */
		fi
#endif
	:: !OURS && gst == FAILED -> m = gdv
#ifdef FORGET
	:: !OURS && gst == FORGOTTEN -> m = 0; gup = 0             /* as if there were no mark, but by a take-over */
#endif
	:: !OURS && gst == CLAIMED ->
		if
		:: gses == id -> m = gdv                    /* a ghost of ours that no worker holds */
		:: gses != id && sst[gses] != 1 -> m = gdv
		:: gses != id && sst[gses] == 1 ->
			if
			:: atomic { (id == 2 || !frozen) -> sst[gses] = 2; printf("run %d fences session %d\n", id, gses) }; m = gdv           /* lease over (perhaps it is only paused): fence the session */
			:: (mst != gst || mid != gid || mses != gses) -> goto put /* after waiting: the mark has changed */
			fi
		fi
	fi;
#ifdef BUG_COUNTER
#ifdef BUG_SAME_CLAIM
	n = (gst == DONE -> gid : gid + 1);
#else
	n = gid + 1;
#endif
#endif
#ifndef BUG_ONE_ID
	newid();                                            /* the state seen now must never recur */
#endif
	atomic { k1 = gst; k2 = gses; c1 = gid };
take:	NET(aTAKE(id,n,v,k2,c1,k1,r); image(), oTAKE,id,n,v,k2*16+c1,k1);
	if
	:: r == LOST -> goto take                           /* the identical request again */
	:: r == OK -> goto have
	:: else -> k1 = 0; k2 = 0; c1 = 0;
		if :: (gses == id && gid == n && gst == CLAIMED) -> goto have :: else -> goto look fi
	fi;
haveimg: m = gdv;
#ifdef BUG_COUNTER
	n = gid;
#endif

have:	atomic { u = gup; mu = gup; k1 = 0; k2 = 0; c1 = 0; c2 = 0 }
#ifdef PREHEAD
	/* HEAD before sending: an existing object is adopted, or is a conflict, before a byte is sent */
	if :: u == 0 && obj == v -> goto mark :: obj == FOREIGN -> goto conflict :: else fi;
#endif
	goto send;

#ifndef MP
send:
#ifndef BUG_RESEND_SAME
	if :: m != 0 && m == v -> goto head :: else fi;     /* S3 may hold the file's present version: HEAD */
#endif
	c1 = fver;                                          /* first half read */
	c2 = fver;                                          /* second half read */
	c1 = (c1 == c2 -> c1 : TORN);
#ifndef BUG_FSTAT_LATE
	if :: chleft != ct -> goto changed :: else fi;         /* fstat after the last byte, before the first is sent */
#endif
resend:
	NET(aPUT(c1,TOK(id,n),m,r), oPUT,c1,TOK(id,n),m,0,0);
	if
	:: r == LOST ->
#ifdef BUG_ADOPT_BY_TOKEN
		/* a retry reads the file again, under the same claim */
		v = fver; ct = chleft; goto send
#else
		goto resend
#endif
	:: r == OK ->
#ifdef BUG_FSTAT_LATE
		if :: chleft != ct -> goto changed :: else fi;
#endif
		goto mark
	:: r == NO -> goto head
	fi;
#else
send:	/* multipart */
	if
#ifndef BUG_RESEND_SAME
	:: m != 0 && m == v -> goto head
#endif
	:: !(m != 0 && m == v) && u == 0 -> k1 = 0; goto create
	:: !(m != 0 && m == v) && u != 0 && gupv != v -> goto abort
	:: !(m != 0 && m == v) && u != 0 && gupv == v ->
		/* ListParts: keep the parts that match the present file */
		atomic {
			if
			:: ust[u] != 1 -> k1 = 9
			:: else -> k1 = (up1[u] == v); k2 = (up2[u] == v)
			fi };
		if :: k1 == 9 -> k1 = 0; goto nosuch :: else -> goto parts fi
	fi;
abort:
#ifndef BUG_NO_ABORT
	NET(aABORT(u,r), oABORT,u,0,0,0,0);
	if :: r == LOST -> goto abort :: else fi;
#endif
	atomic { k1 = 0; u = 0; c1 = 0; c2 = 0; k2 = 0 };
#ifndef BUG_RESEND_SAME
	if :: m != 0 && m == v -> k1 = 0; goto head :: else fi;
#endif
create:
	if :: nup < UPLOADS_MOST -> skip fi;
	NET(aCREATE(TOK(id,n),r,u), oCREATE,TOK(id,n),0,0,0,0);
	if :: r == LOST -> u = 0; goto create :: else fi;  /* leaks an upload id */
#ifdef BUG_NO_RECORD
	goto recorded;
#endif
record:	NET(aREC(id,n,u,v,mu,r); image(), oREC,id,n,u,v,mu);
	if
	:: r == LOST -> goto record
	:: r == NO -> goto abandon
	:: else -> mu = u
	fi;
#ifdef BUG_NO_RECORD
recorded:
#endif
	k1 = 0; k2 = 0;
parts:	if :: k1 -> c1 = v :: else -> c1 = fver fi;
p1:	if
	:: k1
	:: else -> NET(aPART(u,1,c1,r), oPART,u,1,c1,0,0);
		if :: r == LOST -> goto p1 :: r == NSU -> goto nosuch :: else fi
	fi;
	if :: k2 -> c2 = v :: else -> c2 = fver fi;
p2:	if
	:: k2
	:: else -> NET(aPART(u,2,c2,r), oPART,u,2,c2,0,0);
		if :: r == LOST -> goto p2 :: r == NSU -> goto nosuch :: else fi
	fi;
	k1 = 0; k2 = 0;
#ifndef BUG_FSTAT_LATE
	if :: chleft != ct -> goto changed :: else fi;
#endif
comp:	NET(aCOMP(u,c1,c2,m,r), oCOMP,u,c1,c2,m,0);
	if
	:: r == LOST -> goto comp
	:: r == BADPART -> gupv = v; goto send
	:: r == NSU -> goto nosuch
	:: r == NO -> goto head
	:: r == OK -> 
#ifdef BUG_FSTAT_LATE
		if :: chleft != ct -> goto changed :: else fi;
#endif
		goto mark
	fi;
nosuch:	/* completed by another, aborted, or expired: HEAD shows which */
	if
	:: atomic { obj == v -> printf("run %d NoSuchUpload, HEAD: mine\n", id);  }; goto mark
	:: atomic { else -> printf("run %d NoSuchUpload, HEAD: %d\n", id, obj); c1 = 0; c2 = 0; k2 = 0; k1 = 0; u = 0 }; goto create
	fi;
#endif

head:	/* 412: one HEAD */
	atomic { h = obj; ht = (otok == TOK(id,n)); printf("run %d HEAD -> %d (my token %d)\n", id, h, ht) }
	if
#ifdef BUG_ADOPT_BY_TOKEN
	:: h != 0 && (ht || h == v) ->  goto mark
	:: h != 0 && !ht && h != v -> goto other
#else
#ifdef MP
	:: h != 0 && ROW_1 && u == 0 -> goto mark
	:: h != 0 && ROW_1 && u != 0 -> m = h; goto abort  /* the object is there, so our own upload is superfluous */
#else
	:: h != 0 && ROW_1 -> goto mark
#endif
	:: h != 0 && (ROW_7 || ROW_9) -> goto other
#endif
	:: h == 0 -> m = 0; goto send
	fi;
other:
	if
	:: ROW_9 -> goto conflict
	:: ROW_7 -> m = h
	fi;
	h = 0; ht = 0;
#ifdef BUG_OURS_IS_FOREIGN
	goto conflict;
#endif
#ifdef MP
	if :: u == 0 -> skip :: else ->
oabort:		NET(aABORT(u,r), oABORT,u,0,0,0,0);
		if :: r == LOST -> goto oabort :: else -> u = 0 fi
	fi;
#endif
old:	NET(aDONE(id,n,m,r); image(), oDONE,id,n,m,0,0);
	if
	:: r == LOST -> goto old
	:: r == OK -> atomic { gst = DONE; gses = id; gid = n; gdv = m; gup = 0; gupv = 0 }
	:: r == NO && gst == DONE && gdv == m -> skip
	:: r == NO && !(gst == DONE && gdv == m) -> goto abandon
	fi;
	m = 0; u = 0; mu = 0; newid(); goto look;

changed: /* the file changed while it was read: renew the claim for its present version */
	atomic { v = fver; ct = chleft; c1 = 0; c2 = 0; k1 = 0; k2 = 0 }
#ifdef MP
	gupv = 0;
	if :: u != 0 -> goto abort :: else -> goto send fi;
#else
	goto send;
#endif

mark:	
	NET(aDONE(id,n,v,r); image(), oDONE,id,n,v,0,0);
	if
	:: r == LOST -> goto mark
	:: r == OK -> goto good
	:: r == NO ->
		if
		:: gst == DONE && gdv == v -> goto good
		:: else -> goto abandon
		fi
	fi;

good:	printf("run %d EXIT 0 version %d: obj %d, mark st %d dv %d\n", id, v, obj, mst, mdv);
	/* exit 0 asserts: S3 holds this version of the file, or a newer one */
#ifndef FLIP
	assert(obj == v || (v == 1 && obj == 2) || TRUE_THEN);
#endif
	atomic { wipe(); n = 0;
	if
	:: round < ROUNDS && fver != v -> round++; goto opened
	:: else -> v = 0; ct = 0; goto fin
	fi };

conflict: printf("run %d CONFLICT\n", id); NET(aFAIL(id,n,r), oFAIL,id,n,0,0,0);
	if :: r == LOST -> goto conflict :: else fi;
	bad = 1; goto fin;
abandon: /* fenced: stop. The mark is never the run's own, unless it was deleted by hand: then a late claim of
	 * the run itself may have recreated it. The run stops nevertheless, and others take the mark over. */
	atomic { bad = 2; printf("run %d fenced, stops\n", id); assert(mst == ABSENT || !MINE(id,n) || IS_DELETABLE) }
fin:	atomic { wipe(); n = 0; v = 0; ct = 0;  round = 0 }
#if !defined(PREEXIST) && !defined(THREE)
	/* P5: a run alone and without faults finishes the file */
	assert(id != 2 || bad == 0);
#endif
	atomic { if :: sst[id] == 1 -> sst[id] = 2 :: else fi }
dead:	atomic { wipe(); n = 0; v = 0; ct = 0;  round = 0; bad = 0 }
}

proctype Net() {
	mtype op; byte a, b, c, d, e, r, u;
	byte x, y;
end:	do
	:: atomic { late??op,a,b,c,d,e ->
		if
		:: op == oCLAIM -> aCLAIM(a,b,c,r)
		:: op == oTAKE -> x = d/16; y = d%16; aTAKE(a,b,c,x,y,e,r)
		:: op == oDONE -> aDONE(a,b,c,r)
		:: op == oFAIL -> aFAIL(a,b,r)
		:: op == oREC -> aREC(a,b,c,d,e,r)
#ifndef MP
		:: op == oPUT -> aPUT(a,b,c,r)
#else
		:: op == oCREATE -> if :: nup < NUP-1 -> aCREATE(a,r,u) :: else fi
		:: op == oPART -> aPART(a,b,c,r)
		:: op == oCOMP -> aCOMP(a,b,c,d,r)
		:: op == oABORT -> aABORT(a,r)
#endif
		fi;
		printf("        late %e(%d,%d,%d,%d,%d) arrives r=%d: obj %d, mark st %d ses %d id %d dv %d\n", op,a,b,c,d,e,r, obj, mst, mses, mid, mdv); op = 0; a = 0; b = 0; c = 0; d = 0; e = 0; r = 0; u = 0; x = 0; y = 0 }
	od
}

proctype Env() {
end:	do
#ifdef FLIP
	:: atomic { chleft > 0 && !frozen -> chleft--; fver = 3 - fver; printf("        FILE is version %d\n", fver) }
#else
	:: atomic { chleft > 0 && !frozen -> chleft--; fver++; printf("        FILE is version %d\n", fver) }
#endif
#ifdef DELMARK
	:: atomic { mst == DONE && !frozen -> printf("        MARK deleted\n"); mst = ABSENT; mses = 0; mid = 0; mdv = 0; break }
#endif
#ifdef FORGET
	/* the object is deleted, and forget notices: the mark is forgotten if it is still as it was read */
	:: atomic { mst == DONE && obj == mdv && !frozen && nonce < NONCES -> printf("        OBJECT deleted, MARK forgotten\n");
		obj = 0; otok = 0; wrote[1] = 0; wrote[2] = 0; was_deleted = true;
#ifdef BUG_FORGET_DELETES
		mst = ABSENT; mses = 0; mid = 0; mdv = 0
#else
		nonce = nonce + 1; mst = FORGOTTEN; mses = 3; mid = nonce; mdv = 0
#endif
		; break }
#endif
#ifndef THREE
	:: atomic { !frozen -> frozen = true; printf("        KILL both; run 2 starts\n"); run Run(2); break }
#endif
	od
}

init { atomic { run Net(); run Env(); run Run(0); run Run(1);
#ifdef THREE
	run Run(2)
#endif
} }
