/* A closer look at one object and its mark. */
#pragma once
#include "audit/verify.h"
#include "base/checksum.h"

/* What it takes, and what it cost. Borrows all; clear `piece` at the end. */
struct inspection {
	const struct verify *verify;
	struct audit_place place;      /* inspect_place() of it */
	const struct audit_hand *hand; /* of this thread; without marks only objects are read */
	struct http_reply piece;       /* of a download */
	uint64_t bytes_read;           /* downloaded so far */
};
/* The marks and the objects that are compared, with limits that the visitor ends. */
struct audit_place inspect_place(const struct verify *verify);

/* Whether the listing alone shows the object of a done mark. If not, a closer look decides. Pure.
 */
bool inspect_listed(const struct mark *mark, uint64_t size, const char *etag);
/* What a mark that is not done says by itself: UNFINISHED, NOTHING, or ERROR with a sentence. */
enum finding inspect_state(enum mark_state state, struct problem *ret_problem);
/* The mark with this key as it is now, consistently. It is the caller's to free. */
enum outcome inspect_read(struct inspection *look, const char *key, struct packed_mark **ret,
	struct problem *ret_problem);
/* The mark whose object this is, or may be by the time that the mark is done. It is the caller's to
 * free; NULL: there is none. */
enum outcome inspect_find(struct inspection *look, const char *object_key, struct packed_mark **ret,
	struct problem *ret_problem);
/* Looks at the object of a mark that was read some time ago. Takes row. OK sets *ret, with a
 * sentence for DIFFERS and ERROR. Other outcomes say why nothing can be said. */
enum outcome inspect_mark(struct inspection *look, struct packed_mark *row, enum finding *ret,
	struct problem *ret_problem);
/* Looks at the object of the mark with this key. The key need not have a mark. */
enum outcome inspect_key(
	struct inspection *look, const char *key, enum finding *ret, struct problem *ret_problem);
/* Looks at an object of the listing for which the marks that were read have no entry. */
enum outcome inspect_object(
	struct inspection *look, const char *key, enum finding *ret, struct problem *ret_problem);
