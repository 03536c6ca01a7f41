/* What the marks say, for `s3once status`: a walk over all marks below a prefix that counts them,
 * and a sentence of what the next run will do about one. It reads, and writes nothing.
 * The command of src/cli/status prints what is told here. */
#include "upload/marks_status.h"
#include "scan/key/key.h"
#include "scan/scan.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One pass over all marks below a prefix. */
struct walk {
	const char *prefix;
	const struct status_visitor *visitor;
	struct status_summary *summary;
	char last[KEY_BYTES_MAX + 1]; /* the last key that was seen in this shard */
	int stopped;                  /* what ended the walk: nonzero of each, or -errno */
};

static void count_session(struct status_summary *summary, const char *id)
{
	for (size_t i = 0; i < summary->n_sessions; i++)
		if (strcmp(summary->sessions[i].id, id) == 0) {
			summary->sessions[i].claims++;
			return;
		}
	if (summary->n_sessions == STATUS_SESSIONS_MAX)
		return;
	struct status_session *session = &summary->sessions[summary->n_sessions++];
	*session = (struct status_session){.claims = 1};
	snprintf(session->id, sizeof session->id, "%s", id);
}

static void count_mark(struct status_summary *summary, const struct mark *mark)
{
	struct status_counts *counts = &summary->counts;
	switch (mark->state) {
	case MARK_DONE:
		counts->done++;
		counts->changed += mark->has_newer;
		counts->bytes_done += mark->done.size;
		break;
	case MARK_CLAIMED:
		counts->claimed++;
		count_session(summary, mark->session);
		break;
	case MARK_FAILED:
		counts->failed++;
		break;
	case MARK_FORGOTTEN:
		break;
	case MARK_UNREADABLE:
	case MARK_ABSENT:
		counts->unreadable++;
	}
}

static int visit_mark_row(void *arg, const char *pk, const char *sk, const struct item *item)
{
	struct walk *walk = arg;
	struct mark mark = {0};
	snprintf(walk->last, sizeof walk->last, "%s", sk);
	walk->stopped = mark_from_item(item, &mark);
	if (walk->stopped == 0) {
		count_mark(walk->summary, &mark);
		if (walk->visitor->each && mark.state != MARK_FORGOTTEN &&
			(mark.state != MARK_DONE || mark.has_newer))
			walk->stopped = walk->visitor->each(walk->visitor->arg, sk, &mark);
	}
	mark_clear(&mark);
	return walk->stopped;
}

static enum outcome walk_shard(struct walk *walk, struct store_conn *conn, const char *partition,
	struct problem *ret_problem)
{
	const struct call_limits limits = {0};
	char to[KEY_BYTES_MAX + 1];
	bool more = key_last_below(walk->prefix, to);
	struct store_range range = {
		.pk = partition, .from = *walk->prefix ? walk->prefix : NULL, .to = to};
	while (more) {
		enum outcome o = conn->store->ops->query(
			conn, &range, &limits, visit_mark_row, walk, &more, ret_problem);
		if (o != OUTCOME_OK)
			return o;
		range.from = walk->last;
		range.after = true;
	}
	return OUTCOME_OK;
}

static enum outcome describe_sessions(
	struct status_summary *summary, struct store_conn *conn, struct problem *ret_problem)
{
	for (size_t i = 0; i < summary->n_sessions; i++) {
		struct status_session *session = &summary->sessions[i];
		enum outcome o = session_describe(conn, session->id, &session->info, ret_problem);
		session->known = o == OUTCOME_OK;
		if (o != OUTCOME_OK && o != OUTCOME_ABSENT)
			return o;
	}
	return OUTCOME_OK;
}

enum outcome status_of_prefix(struct store_conn *conn, const struct mark_space *space,
	const char *prefix, const struct status_visitor *visitor, struct status_summary *ret,
	struct problem *ret_problem)
{
	struct walk walk = {.prefix = prefix, .visitor = visitor, .summary = ret};
	enum outcome o = OUTCOME_OK;
	ret->counts = (struct status_counts){0};
	ret->n_sessions = 0;
	for (unsigned shard = 0; shard < space->settings.shards && o == OUTCOME_OK; shard++) {
		char partition[PARTITION_MAX];
		mark_partition(space, shard, partition);
		o = walk_shard(&walk, conn, partition, ret_problem);
	}
	if (walk.stopped < 0)
		problem_set(ret_problem, "the marks cannot be read: %s", strerror(-walk.stopped));
	return o == OUTCOME_OK ? describe_sessions(ret, conn, ret_problem) : o;
}

static const char *outlook_of_claim(const struct session_info *session)
{
	if (!session || !session->is_open)
		return "its uploader has ended, so the next run takes it over at once";
	if (session->is_gone)
		return "its uploader's process on this host is gone, so the next run on this host "
		       "takes it over at once";
	return "the next run waits until its uploader is done, or takes it over when "
	       "that uploader has sent no heartbeat for a whole lease (at once if it "
	       "ran on the same host and has ended)";
}

void status_outlook(
	const struct mark *mark, const struct session_info *session, char *ret, size_t size)
{
	const char *outlook = "";
	switch (mark->state) {
	case MARK_ABSENT:
	case MARK_FORGOTTEN:
		outlook = "the next run uploads it if it finds a file for it, unless S3 "
			  "holds the same content already";
		break;
	case MARK_DONE:
		outlook = mark->has_newer
				  ? "the file has changed since, and --if-changed says what the "
				    "next run does"
				  : "the next run skips it, unless the file has changed by then";
		break;
	case MARK_FAILED:
		outlook = mark->upload.id
				  ? "the next run retries it, and sends only the parts that "
				    "the server does not list if the file is the same"
				  : "the next run retries it";
		break;
	case MARK_CLAIMED:
		outlook = outlook_of_claim(session);
		break;
	case MARK_UNREADABLE:
		outlook = "it is damaged, or was written by a later version of s3once: the next "
			  "run of this version does not change it, and reports the file";
	}
	snprintf(ret, size, "%s", outlook);
}
