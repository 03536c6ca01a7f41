/* The row of one mark: claiming it, setting it to done or failed, forgetting and reading it. This
 * implements the rules of docs/protocol.md ("One file") for the mark. */
#pragma once
#include "marks/packed_mark.h"

/* One key of one store through one connection, for the calls below. Borrowed. */
struct mark_ref {
	struct store_conn *conn;
	const struct mark_space *space;
	const char *key;
	const char *session; /* our session */
	const char *source;  /* "host:directory" of our claims */
	const char *suffix;  /* suffix of the object of a claim */
	int64_t at_s;        /* time of the last change, for mark_claim() and mark_fail(); 0: now */
	bool may_sync_later; /* as in store.h; set for mark_claim() and mark_done() only */
	struct call_limits limits;
};

/* A claim of ours, which fences every later write. Owns its members. */
struct claim {
	char id[ID_CHARS + 1];
	char suffix[SUFFIX_MAX + 1]; /* as written by the claim */
	/* The mark existed, and `before` is its former state, without its upload. The row keeps the
	 * last done version. */
	bool taken_over;
	struct mark before;
	struct open_upload upload; /* the mark's open upload: found at the take-over, or recorded
				      under this claim */
};
void claim_clear(struct claim *claim);

/* If a reply is lost, each write below is sent again, with the same bytes. If the first one was
 * applied, the second is refused; this is recognised, and counts as OK. The steps are those of
 * docs/protocol.md. */

/* Step 3: claims a mark under a new claim id. An absent mark is put if absent. Any other is taken
 * over by an update if state, session, claim and upload id are exactly as in *seen. OK: the mark is
 * ours, and *seen was moved into ret->before and ret->upload. REFUSED: *ret_seen, which must be
 * another struct than *seen, is the present mark. */
enum outcome mark_claim(const struct mark_ref *ref, struct mark *seen, struct claim *ret,
	struct mark *ret_seen, struct problem *ret_problem);
/* The two halves of mark_claim() for an absent mark: the second one waits for the outcome. The
 * struct must not be moved between them, and borrows what `ref` points to. */
struct mark_claiming {
	struct mark_ref ref;
	struct claim claim;
	struct mark mark;
	char partition[PARTITION_MAX];
	struct row_write write;
	struct row_request request;
};
void mark_begin_claim(const struct mark_ref *ref, struct mark_claiming *ret);
enum outcome mark_end_claim(struct mark_claiming *claiming, struct claim *ret,
	struct mark *ret_seen, struct problem *ret_problem);
/* As mark_claim() for a dry run: changes *seen and *ret, but writes nothing. */
void mark_pretend_claim(struct mark *seen, struct claim *ret);
/* Step 5: records an upload in place of claim->upload. OK moves *upload into claim->upload;
 * otherwise the caller keeps it. REFUSED: we are fenced. */
enum outcome mark_record_upload(const struct mark_ref *ref, struct claim *claim,
	struct open_upload *upload, struct problem *ret_problem);
/* Step 6: sets the mark to done. `source` is the source of the version, which differs from
 * ref->source if the object turns out to be an earlier version; NULL: unknown. Also OK if another
 * uploader has set it to done with this very version. REFUSED: we are fenced, and *ret_seen is the
 * mark. */
enum outcome mark_done(const struct mark_ref *ref, const struct claim *claim,
	const struct version *version, const char *source, struct mark *ret_seen,
	struct problem *ret_problem);
/* Restores the state of a done mark that --reupload has claimed. Also OK if the mark is no longer
 * ours. */
enum outcome mark_give_back(
	const struct mark_ref *ref, const struct claim *claim, struct problem *ret_problem);
/* Whether a failed mark keeps the record of its open upload. DROP: the upload is gone. */
enum upload_record { KEEP_UPLOAD, DROP_UPLOAD };
/* Step 7: sets the mark to failed. Also OK if the mark is no longer ours, since its new owner takes
 * care of the file. */
enum outcome mark_fail(const struct mark_ref *ref, const struct claim *claim, const char *error,
	enum upload_record record, struct problem *ret_problem);
/* Step 2: sets the file's present mtime in a done mark that is still exactly as in *seen. The
 * fields about a newer version, or about other content with the same mtime, are removed. REFUSED:
 * the mark has changed. */
enum outcome mark_refresh(const struct mark_ref *ref, const struct mark *seen, int64_t mtime_ns,
	struct problem *ret_problem);
/* Notes in a done mark that is still exactly as in *seen that the file has changed and was not
 * uploaded. REFUSED: the mark has changed. */
enum outcome mark_note_newer(const struct mark_ref *ref, const struct mark *seen, uint64_t size,
	int64_t mtime_ns, struct problem *ret_problem);
/* Forgets a mark that is still exactly as in *seen, and is not MARK_ABSENT. The row is removed. In
 * a store where writes may arrive late, it is replaced for MARK_FORGOTTEN_KEEP_S by a row with only
 * the state "forgotten"; a mark that was forgotten longer ago is removed.
 *
 * If the mark is claimed, its session must be over. Also OK if the row is already gone. REFUSED:
 * the mark has changed. */
enum outcome mark_forget(
	const struct mark_ref *ref, const struct mark *seen, struct problem *ret_problem);
#define MARK_FORGOTTEN_KEEP_S (7 * 24 * 3600)
/* Reads one mark consistently. If it is absent, the outcome is OK, and its state is MARK_ABSENT. */
enum outcome mark_get(const struct mark_ref *ref, struct mark *ret, struct problem *ret_problem);
/* Likewise. The caller frees the mark with free(). */
enum outcome mark_get_packed(
	const struct mark_ref *ref, struct packed_mark **ret, struct problem *ret_problem);
