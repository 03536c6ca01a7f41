/* Prints a log: selects its objects in the bucket's listing, plans them window by window, and
 * prints each, decompressed and verified. */
#include "cat/log_cat.h"
#include "base/clock.h"
#include "cat/log_plan.h"
#include "cat/unpack.h"
#include "s3/object_stream.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number of objects planned at once; more if they have the same second. */
#define WINDOW 256
/* The number of objects before the first printed one that are examined, to know its place in the
 * log. */
#define BEFORE KNOWN_LOGS_MAX

struct printing {
	struct log_cat *cat;
	struct read_ahead *ahead;
	struct known_logs known;
	struct log_object *objects; /* the objects of the window */
	size_t n, room;
	/* State of the object that is being printed: */
	uint64_t skip;         /* bytes that are still to be skipped */
	struct digest content; /* digest of all bytes, if digests_content */
	bool digests_content;
	unsigned char *held; /* the last bytes, which are printed once the object is verified */
	size_t n_held, held_room;
	bool is_cut; /* the last printed bytes do not end a line */
	/* 0, or the error of writing, or -ENOMEM. An error ends the printing, whatever the
	 * outcome. */
	int error;
};

/* Reports a sentence about an object. */
static void report_object(
	const struct log_cat *cat, enum log_report kind, const char *key, const char *sentence)
{
	struct text t = TEXT(4096);
	text_addf(&t, "s3://%s/%s: %s", cat->bucket, quote(key).text, sentence);
	cat->report(cat->arg, kind, text_string(&t));
	text_clear(&t);
}

static void report_missing(struct log_cat *cat, const char *key, const char *sentence)
{
	cat->missing++;
	report_object(cat, LOG_REPORT_ERROR, key, sentence);
}

/* Whether the object has to be restored from an archive before it can be read. */
static bool is_archived(const struct problem *problem)
{
	return strcmp(problem->code, "InvalidObjectState") == 0;
}

/* Reports an object that cannot be read, with a sentence of its own where that of S3 would not say
 * enough. */
static void report_unreadable(
	struct log_cat *cat, const char *key, enum outcome outcome, struct problem *problem)
{
	if (outcome == OUTCOME_ABSENT)
		problem_set(problem, "it was removed after it was listed");
	else if (is_archived(problem))
		problem_set(problem,
			"it is archived, and has to be restored before it can be read: aws s3api "
			"restore-object --bucket %s --key '%s' --restore-request Days=7; after "
			"some hours, print it again",
			cat->bucket, quote(key).text);
	report_missing(cat, key, problem->text);
}

/* Writes n bytes, however long their reader takes. Returns 0 or -errno. */
static int write_patiently(int fd, const char *bytes, size_t n)
{
	while (n) {
		const ssize_t written = write(fd, bytes, n);
		const int error = written < 0 ? -errno : 0;
		if (error == -EAGAIN) /* another process may have made it nonblocking */
			poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
		else if (error && error != -EINTR)
			return error;
		bytes += error ? 0 : written;
		n -= error ? 0 : (size_t)written;
	}
	return 0;
}

/* Writes bytes, and notes whether they end a line. Returns 0 or -errno. */
static int print_bytes(struct printing *p, const void *bytes, size_t n)
{
	if (!n)
		return 0;
	p->is_cut = ((const char *)bytes)[n - 1] != '\n';
	return write_patiently(p->cat->fd, bytes, n);
}

/* Prints the bytes that were held, and holds these. Returns 0 or -errno. */
static int print_held_and_hold(struct printing *p, const unsigned char *bytes, size_t n)
{
	const int error = print_bytes(p, p->held, p->n_held);
	if (error)
		return error;
	if (n > p->held_room) {
		free(p->held);
		p->held = malloc(n);
		p->held_room = p->held ? n : 0;
		p->n_held = 0;
		if (!p->held)
			return -ENOMEM;
	}
	memcpy(p->held, bytes, n);
	p->n_held = n;
	return 0;
}

/* Takes bytes of the content, and prints those before them. It is the `take` of unpack(). Returns
 * p->error. */
static int print_content(void *arg, const unsigned char *bytes, size_t n)
{
	struct printing *p = arg;
	const size_t skipped = p->skip < n ? (size_t)p->skip : n;
	if (p->digests_content)
		digest_update(&p->content, bytes, n);
	p->skip -= skipped;
	if (n > skipped)
		p->error = print_held_and_hold(p, bytes + skipped, n - skipped);
	return p->error;
}

/* The value that an object is verified by, and the kind of checksum that it is. */
enum verified_by {
	BY_NOTHING,
	BY_META_SUM,   /* a checksum in the metadata, of the bytes that s3once has sent */
	BY_S3_SUM,     /* the object's checksum according to S3 */
	BY_CONTENT_ID, /* the SHA-256 of the decompressed content, in the metadata */
	BY_ETAG,       /* the etag, which is an MD5 */
};
struct verification {
	enum verified_by by;
	enum checksum kind;
};

static struct verification choose_verification(const struct s3_object *head)
{
	const struct sums *sums = &head->meta.sums;
	for (unsigned kind = 0; kind < CHECKSUMS; kind++)
		if (sums->kinds & DIGEST_OF(kind))
			return (struct verification){BY_META_SUM, (enum checksum)kind};
	/* "…-N" is made of the checksums of N parts, whose sizes may be unknown. */
	if (*head->sum.text && !strchr(head->sum.text, '-'))
		return (struct verification){BY_S3_SUM, head->sum.kind};
	if (*head->meta.content_id)
		return (struct verification){BY_CONTENT_ID, CHECKSUM_SHA256};
	if (!head->etag_is_opaque && strlen(head->etag) == 32)
		return (struct verification){BY_ETAG, CHECKSUM_MD5};
	return (struct verification){BY_NOTHING, CHECKSUM_SHA256};
}

/* The checksums of an object's bytes, and of its decompressed content. */
struct object_sums {
	struct sums bytes, content;
};

/* Whether the checksums are those of the object. */
static bool is_verified(const struct s3_object *head, struct verification verification,
	const struct object_sums *sums)
{
	char base64[CHECKSUM_BASE64_MAX + 1], hex[65];
	switch (verification.by) {
	case BY_S3_SUM:
		checksum_to_base64(
			verification.kind, sums_bytes(&sums->bytes, verification.kind), base64);
		return strcmp(base64, head->sum.text) == 0;
	case BY_META_SUM:
		return sums_equal(&sums->bytes, &head->meta.sums, verification.kind);
	case BY_CONTENT_ID:
		hex_encode(sums->content.sha256, sizeof sums->content.sha256, hex);
		return strcmp(hex, head->meta.content_id) == 0;
	case BY_ETAG:
		hex_encode(sums->bytes.md5, sizeof sums->bytes.md5, hex);
		return strcmp(hex, head->etag) == 0;
	case BY_NOTHING:
		break;
	}
	return true;
}

/* Whether the id of the content is the same in the metadata and in the name. Otherwise the content
 * itself is compared with the name: another client may have written this object, and its checksums
 * would only show that it is whole. */
static bool metadata_match_name(const struct log_object *object)
{
	return strncmp(object->head.meta.content_id, object->by_name.id, LOG_ID_CHARS) == 0;
}

/* Whether the name has the id of this content. */
static bool content_matches_name(const struct log_object *object, const struct sums *content)
{
	char hex[65];
	hex_encode(content->sha256, sizeof content->sha256, hex);
	return strncmp(hex, object->by_name.id, LOG_ID_CHARS) == 0;
}

static void print_held(struct printing *p)
{
	p->error = print_bytes(p, p->held, p->n_held);
	p->n_held = 0;
}

/* Drops the held bytes, and ends the line before them. */
static void drop_held(struct printing *p)
{
	p->n_held = 0;
	if (p->is_cut)
		p->error = print_bytes(p, "\n", 1);
}

/* Reads the object to its end, and prints its content, but holds back the last bytes in p->held:
 * print_held() prints them once the object is verified. Computes these kinds of checksums of its
 * bytes. ret_sums->content is the SHA-256 of its content only if p->digests_content. Content that
 * is damaged, or that takes too much memory to decompress, is REFUSED. May set p->error; otherwise
 * an outcome other than OK has a sentence. */
static enum outcome read_object(struct printing *p, const struct log_object *object, unsigned kinds,
	struct object_sums *ret_sums, struct problem *ret_problem)
{
	struct unpack u = {.take = print_content, .arg = p};
	struct digest bytes = {0};
	struct read_range range;
	enum outcome o = OUTCOME_OK;
	int r = digest_restart(&bytes, kinds);
	if (r == 0)
		r = digest_restart(&p->content, DIGEST_SHA256);
	do {
		if (r == 0)
			o = read_ahead_next(p->ahead, object, &range, ret_problem);
		if (r || o != OUTCOME_OK)
			break;
		digest_update(&bytes, range.bytes, range.n);
		r = unpack(&u, &range, ret_problem);
	} while (r == 0 && range.n);
	unpack_clear(&u);
	if (r == 0 && o == OUTCOME_OK) {
		digest_finish(&bytes, &ret_sums->bytes);
		digest_finish(&p->content, &ret_sums->content);
	}
	digest_clear(&bytes);
	/* If print_content() has set p->error, a write may have failed with the same number. */
	const bool is_unreadable = !p->error && (r == -EBADMSG || r == -EFBIG);
	if (is_unreadable)
		return OUTCOME_REFUSED; /* unpack() has set the sentence */
	p->error = r;
	return o;
}

/* Reads the object, verifies it and prints it. May set p->error; otherwise an outcome other than OK
 * has a sentence. */
static enum outcome read_and_print(
	struct printing *p, const struct log_object *object, struct problem *ret_problem)
{
	const struct verification verification = choose_verification(&object->head);
	/* The content has a digest of its own (p->content). */
	const bool needs_raw_bytes =
		verification.by != BY_CONTENT_ID && verification.by != BY_NOTHING;
	const unsigned kinds = needs_raw_bytes ? DIGEST_OF(verification.kind) : 0;
	struct object_sums sums = {0};
	p->skip = object->repeated_bytes;
	p->digests_content = verification.by == BY_CONTENT_ID || !metadata_match_name(object);
	enum outcome o = read_object(p, object, kinds, &sums, ret_problem);
	if (p->error)
		return o;
	if (o == OUTCOME_OK && !metadata_match_name(object) &&
		!content_matches_name(object, &sums.content))
		o = outcome_error(ret_problem, OUTCOME_REFUSED,
			"another client has replaced it: the SHA-256 in its name is not that of "
			"its content; its last lines are not printed");
	else if (o == OUTCOME_OK && !is_verified(&object->head, verification, &sums))
		o = outcome_error(ret_problem, OUTCOME_REFUSED,
			"it is damaged: its checksum is not that which it was uploaded with; its "
			"last lines are not printed");
	if (o == OUTCOME_OK)
		print_held(p);
	else
		drop_held(p);
	return o;
}

/* Reports the piece that is missing before the object. */
static void report_gap(struct log_cat *cat, const struct log_object *object)
{
	char name[32] = "";
	struct problem problem;
	if (object->gap_start)
		snprintf(name, sizeof name, "~%" PRIu64, object->gap_start);
	problem_set(&problem,
		"the bytes of the log from %" PRIu64 " to %" PRIu64
		" are missing before it: there is no object %s…%s%s",
		object->gap_start, object->range.start, quote(text_string(&cat->name->prefix)).text,
		cat->name->ext, name);
	report_missing(cat, object->key, problem.text);
}

/* Notes which bytes of the object are not printed, since objects before it have them. */
static void note_repeated(struct log_cat *cat, const struct log_object *object)
{
	struct problem problem;
	problem_set(&problem,
		object->repeated_bytes == REPEATS_ALL
			? "all of its lines are in objects before it, and are not repeated"
			: "its first %" PRIu64
			  " bytes are in objects before it, and are not repeated",
		object->repeated_bytes);
	report_object(cat, LOG_REPORT_NOTE, object->key, problem.text);
}

/* Prints one object. Returns OK even if something is missing and was reported. */
static enum outcome print_object(
	struct printing *p, struct log_object *object, struct problem *ret_problem)
{
	struct log_cat *cat = p->cat;
	enum outcome o = object->outcome;
	if (object->is_before)
		return OUTCOME_OK;
	if (object->gap_start < object->range.start)
		report_gap(cat, object);
	if (object->repeated_bytes)
		note_repeated(cat, object);
	if (o != OUTCOME_OK)
		*ret_problem = object->problem;
	else if (log_object_is_read(object))
		o = read_and_print(p, object, ret_problem);
	if (p->error == -EPIPE) {
		cat->is_closed = true;
		return OUTCOME_OK;
	}
	if (p->error == -ENOMEM)
		return outcome_no_memory(ret_problem);
	if (p->error)
		return outcome_error(ret_problem, OUTCOME_LOCAL,
			"cannot write to standard output: %s", strerror(-p->error));
	if (o == OUTCOME_OK)
		return o;
	/* The other objects can still be printed. */
	const bool concerns_this_one =
		o == OUTCOME_ABSENT || o == OUTCOME_REFUSED || is_archived(ret_problem);
	if (!concerns_this_one) {
		problem_prefix(ret_problem, "s3://%s/%s", cat->bucket, quote(object->key).text);
		return o;
	}
	report_unreadable(cat, object->key, o, ret_problem);
	return OUTCOME_OK;
}

/* Prints the objects of the window, and empties it. */
static enum outcome print_window(struct printing *p, struct problem *ret_problem)
{
	enum outcome o = OUTCOME_OK;
	read_ahead_heads(p->ahead, p->objects, p->n);
	if (log_plan(&p->known, p->ahead, p->objects, p->n, ret_problem))
		o = OUTCOME_LOCAL;
	else
		read_ahead_begin(p->ahead, p->objects, p->n);
	for (size_t i = 0; o == OUTCOME_OK && !p->cat->is_closed && i < p->n; i++)
		o = print_object(p, &p->objects[i], ret_problem);
	if (o != OUTCOME_OK || p->cat->is_closed)
		read_ahead_stop(p->ahead);
	read_ahead_end(p->ahead);
	while (p->n)
		free(p->objects[--p->n].key);
	return o;
}

/* An object that is selected, or that comes before the first of these. */
struct selected {
	const struct s3_listed *listed;
	struct log_key by_name;
	bool is_before;
};
typedef enum outcome select_each(
	void *arg, const struct selected *selected, struct problem *ret_problem);

/* The objects before the first one that is selected, the oldest at `first`. */
struct before {
	struct s3_listed listed[BEFORE]; /* the objects, with the keys below */
	char keys[BEFORE][KEY_BYTES_MAX + 1];
	size_t first, n;
};

/* Keeps one more object, in place of the oldest one if there are BEFORE of them. */
static void keep_before(struct before *before, const struct s3_listed *listed)
{
	const size_t i = (before->first + before->n) % BEFORE;
	const size_t n = strlen(listed->key);
	if (n > KEY_BYTES_MAX) /* S3 has no key of this length */
		return;
	if (before->n == BEFORE)
		before->first = (before->first + 1) % BEFORE;
	else
		before->n++;
	before->listed[i] = *listed;
	before->listed[i].key = memcpy(before->keys[i], listed->key, n + 1);
}

/* Hands out the objects before the first selected one, and forgets them. */
static enum outcome hand_out_before(struct log_cat *cat, struct before *before, select_each *each,
	void *arg, struct problem *ret_problem)
{
	enum outcome o = OUTCOME_OK;
	for (; o == OUTCOME_OK && before->n; before->n--) {
		struct selected selected = {
			.listed = &before->listed[before->first], .is_before = true};
		log_key_read(cat->name, selected.listed->key, &selected.by_name);
		o = each(arg, &selected, ret_problem);
		before->first = (before->first + 1) % BEFORE;
	}
	return o;
}

/* Hands out the objects that are selected, in the order of their names, until the reader has gone
 * away. Before the first of them come a few objects before it. */
static enum outcome select_objects(
	struct log_cat *cat, select_each *each, void *arg, struct problem *ret_problem)
{
	struct object_stream *stream = object_stream_new(
		cat->place.conn, text_string(&cat->name->prefix), NULL, &cat->place.limits);
	struct before before = {.n = 0};
	struct selected selected = {.listed = NULL};
	int64_t end_s = INT64_MAX; /* the time of the last selected object, once it is known */
	enum outcome o = stream ? OUTCOME_OK : outcome_no_memory(ret_problem);
	cat->last_s = -1;
	while (o == OUTCOME_OK && !cat->is_closed) {
		o = object_stream_next(stream, &selected.listed, ret_problem);
		if (o == OUTCOME_DENIED)
			problem_prefix(ret_problem,
				"a log's objects are found by the bucket's listing, which is "
				"refused; allow s3:ListBucket of the bucket");
		if (o != OUTCOME_OK || !selected.listed)
			break;
		if (!log_key_read(cat->name, selected.listed->key, &selected.by_name))
			continue;
		const int64_t time_s = selected.by_name.time_s;
		cat->last_s = time_s;
		if (time_s > end_s) /* other objects of the same second are selected as well */
			break;
		if (time_s < cat->from_s) {
			keep_before(&before, selected.listed);
			continue;
		}
		if (time_s >= cat->to_s)
			end_s = time_s;
		o = hand_out_before(cat, &before, each, arg, ret_problem);
		cat->objects++;
		if (o == OUTCOME_OK)
			o = each(arg, &selected, ret_problem);
	}
	object_stream_free(stream);
	return o;
}

/* Adds an object to the window. A full window is printed once the next object has another second.
 */
static enum outcome add_object(
	void *arg, const struct selected *selected, struct problem *ret_problem)
{
	struct printing *p = arg;
	const struct log_object *last = p->n ? &p->objects[p->n - 1] : NULL;
	if (p->n >= WINDOW && last->by_name.time_s != selected->by_name.time_s) {
		const enum outcome o = print_window(p, ret_problem);
		if (o != OUTCOME_OK || p->cat->is_closed)
			return o;
	}
	if (p->n == p->room) {
		const size_t room = p->room ? 2 * p->room : WINDOW;
		struct log_object *objects = reallocarray(p->objects, room, sizeof *objects);
		if (!objects)
			return outcome_no_memory(ret_problem);
		p->objects = objects;
		p->room = room;
	}
	struct log_object *object = &p->objects[p->n];
	*object = (struct log_object){.key = strdup(selected->listed->key),
		.size = selected->listed->size,
		.is_before = selected->is_before};
	if (!object->key)
		return outcome_no_memory(ret_problem);
	log_key_read(p->cat->name, object->key, &object->by_name);
	p->n++;
	return OUTCOME_OK;
}

enum outcome log_cat_print(struct log_cat *cat, struct problem *ret_problem)
{
	struct printing p = {.cat = cat};
	if (read_ahead_new(&cat->place, &p.ahead, ret_problem))
		return OUTCOME_LOCAL;
	enum outcome o = select_objects(cat, add_object, &p, ret_problem);
	if (o == OUTCOME_OK && !cat->is_closed && p.n)
		o = print_window(&p, ret_problem);
	read_ahead_free(p.ahead);
	known_logs_clear(&p.known);
	while (p.n)
		free(p.objects[--p.n].key);
	free(p.objects);
	free(p.held);
	digest_clear(&p.content);
	return o;
}

/* Prints time, size and URL of an object. */
static enum outcome list_object(
	void *arg, const struct selected *selected, struct problem *ret_problem)
{
	struct log_cat *cat = arg;
	struct text line = TEXT(16 << 10);
	char time[21];
	if (selected->is_before)
		return OUTCOME_OK;
	clock_format_iso(selected->by_name.time_s, time);
	text_addf(&line, "%s %12" PRIu64 " s3://%s/", time, selected->listed->size, cat->bucket);
	text_add_escaped_string(&line, selected->listed->key);
	text_add_char(&line, '\n');
	const int error = line.error ? line.error : write_patiently(cat->fd, line.data, line.len);
	text_clear(&line);
	cat->is_closed = error == -EPIPE;
	if (!error || cat->is_closed)
		return OUTCOME_OK;
	return outcome_error(ret_problem, OUTCOME_LOCAL, "cannot write to standard output: %s",
		strerror(-error));
}

enum outcome log_cat_list(struct log_cat *cat, struct problem *ret_problem)
{
	return select_objects(cat, list_object, cat, ret_problem);
}
