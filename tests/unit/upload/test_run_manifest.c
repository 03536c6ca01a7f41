/* Whether the manifest of a run is stored: only if S3 shows that it holds the bytes that were sent,
 * by the reply or by a HEAD. The replies are made of what the request has announced. */
#include "base/clock.h"
#include "manifest/manifest_file.h"
#include "steps.h"
#include "upload/run_manifest.h"
#include <fcntl.h>
#include <sys/mman.h>

/* A reply to PUT or HEAD. */
enum shows {
	NO_REPLY,      /* no request is expected */
	THE_SUM,       /* with the checksum that was announced */
	OTHER_SUM,     /* with another checksum */
	NOTHING,       /* without a checksum, and with an opaque etag */
	OTHER_SIZE,    /* with the right checksum, and a size that is one too large */
	NOT_ENCRYPTED, /* the right checksum, without the encryption that was asked for */
	ENCRYPTED,
	EXISTS, /* 412 */
	DENIED,
	IS_ABSENT,
};

static const struct row {
	const char *name;
	enum shows put, head;
	bool is_stored;
	const char *said;
	bool is_dry, has_none, encrypts, is_stopped, is_limited, has_grace, no_progress;
} rows[] = {
	{"the reply proves it", THE_SUM, .is_stored = true},
	{"the reply proves nothing", NOTHING, THE_SUM, true},
	{"the reply was lost", EXISTS, THE_SUM, true},
	{"another sum, and then the right one", OTHER_SUM, THE_SUM, true},
	{"another sum", OTHER_SUM, OTHER_SUM, false, "S3 holds other bytes than were sent"},
	{"no reply proves it", NOTHING, NOTHING, false, "S3 holds other bytes than were sent"},
	{"another size", NOTHING, OTHER_SIZE, false, "S3 holds other bytes than were sent"},
	{"another object is there", EXISTS, OTHER_SUM, false,
		"S3 holds other bytes than were sent"},
	{"it is gone again", EXISTS, IS_ABSENT, false, "it was sent, but cannot be looked at"},
	{"it is not shown", NOTHING, DENIED, false, "it was sent, but cannot be looked at"},
	{"it is refused", DENIED, .said = "the manifest of the run cannot be stored as "},
	{"encrypted", ENCRYPTED, .is_stored = true, .encrypts = true},
	{"not encrypted", NOT_ENCRYPTED, .said = "does not confirm the encryption",
		.encrypts = true},
	{"not encrypted, as HEAD shows", EXISTS, NOT_ENCRYPTED,
		.said = "does not confirm the encryption", .encrypts = true},
	{"a dry run", .is_stored = true, .is_dry = true, .said = "a manifest of the run would be"},
	{"no manifest is wanted", .is_stored = true, .has_none = true},
	{"the grace is over", .is_stopped = true, .said = "cannot be stored as "},
	{"it is stopped, and has some grace", THE_SUM, .is_stored = true, .is_stopped = true,
		.has_grace = true},
	{"S3 takes nothing for too long", .no_progress = true, .said = "cannot be stored as "},
	{"a limit was reached, and its grace is over", THE_SUM, .is_stored = true,
		.is_limited = true},
	{"the same, and it is stopped, too", .is_limited = true, .is_stopped = true,
		.said = "cannot be stored as "},
};

static struct {
	struct script_server *server;
	enum shows shows[2];
	char texts[2][800];
	size_t n;
} script;

/* Writes the next reply, once its request has come. */
static void make_reply(void *arg)
{
	const size_t i = *(const size_t *)arg;
	const enum shows shows = script.shows[i];
	const struct script_request *put = &script.server->requests[0];
	const bool is_good = shows != EXISTS && shows != DENIED && shows != IS_ABSENT;
	static const char name[] = "\r\nx-amz-checksum-crc32c: ";
	const char *at = put->head ? strcasestr(put->head, name) : NULL;
	char sum[40] = "";
	CHECK(at != NULL); /* of a server that is not AWS, the sum is sent as a header */
	snprintf(sum, sizeof sum, "%.*s", 8, at ? at + strlen(name) : "");
	struct text t = TEXT(800);
	text_addf(&t, "HTTP/1.1 %s X\r\nx-amz-request-id: 1\r\nConnection: close\r\n",
		shows == EXISTS      ? "412"
		: shows == DENIED    ? "403"
		: shows == IS_ABSENT ? "404"
				     : "200");
	if (is_good)
		text_addf(&t, "ETag: \"opaque\"\r\nx-amz-version-id: v1\r\n");
	if (is_good && shows != NOTHING)
		text_addf(
			&t, "x-amz-checksum-crc32c: %s\r\n", shows == OTHER_SUM ? "AAAAAA==" : sum);
	if (shows == ENCRYPTED)
		text_addf(&t, "x-amz-server-side-encryption: AES256\r\n");
	text_addf(&t, "Content-Length: %zu\r\n\r\n",
		i && is_good ? put->body_bytes + (shows == OTHER_SIZE) : 0);
	snprintf(script.texts[i], sizeof script.texts[i], "%s", text_string(&t));
	text_clear(&t);
}

/* The manifest that was sent has the files of the run. */
static bool check_lines(const struct script_request *put)
{
	struct manifest_reader *reader = NULL;
	struct manifest_entry entry;
	struct problem problem;
	const int fd = memfd_create("manifest", MFD_CLOEXEC);
	bool good = CHECK_INT(write(fd, put->body, put->body_bytes), (int64_t)put->body_bytes);
	CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
	if (!CHECK_INT(manifest_reader_new(fd, &reader, &problem), 0))
		return false;
	good &= CHECK_INT(manifest_reader_next(reader, &entry, &problem), 1);
	good &= CHECK_STRING(entry.event, "uploaded");
	good &= CHECK_STRING(entry.bucket, "b");
	good &= CHECK_STRING(entry.key, "k.zst"); /* as the version has it */
	good &= CHECK_INT(entry.size, 4);
	good &= CHECK_STRING(entry.etag, "e");
	good &= CHECK_STRING(entry.sums[CHECKSUM_CRC32C], "4waSgw==");
	good &= CHECK_INT(manifest_reader_next(reader, &entry, &problem), 1);
	good &= CHECK_STRING(entry.event, "skipped");
	good &= CHECK_STRING(entry.key, "k");
	good &= CHECK_INT(manifest_reader_next(reader, &entry, &problem), 0);
	manifest_reader_free(reader);
	close(fd);
	return good;
}

static void add_files(struct steps *steps)
{
	const struct version sent = {.size = 9, .object_bytes = 4, .etag = "e", .suffix = ".zst"},
			     done = {.size = 9, .etag = "e"};
	struct sums sums = {0};
	CHECK_INT(digest_bytes(DIGEST_OF(CHECKSUM_CRC32C), "123456789", 9, &sums), 0);
	run_report_in_s3(steps->run,
		&(struct in_s3){.file = steps->file->candidate,
			.version = &sent,
			.sums = &sums,
			.event = S3ONCE_EVENT_UPLOADED},
		9);
	run_report_in_s3(steps->run,
		&(struct in_s3){.file = steps->file->candidate,
			.version = &done,
			.event = S3ONCE_EVENT_SKIPPED},
		9);
}

static void test_row(const struct row *row)
{
	static const struct s3once_setting sse[] = {{"sse", "AES256"}};
	static const size_t indices[] = {0, 1};
	struct steps steps;
	if (!steps_make(&steps, "123456789", 9))
		return;
	steps.options.report_skipped = 1;
	steps.options.manifest = !row->has_none;
	steps.options.dry_run = row->is_dry;
	steps.options.settings = sse;
	steps.options.n_settings = row->encrypts ? 1 : 0;
	steps.options.checksum = "crc32c";
	if (!steps_begin(&steps, NULL, 0))
		return;
	struct run *run = steps.run;
	script.server = &steps.server;
	script.shows[0] = row->put;
	script.shows[1] = row->head;
	const size_t n = row->head != NO_REPLY ? 2 : row->put != NO_REPLY ? 1 : 0;
	for (size_t i = 0; i < n; i++)
		steps.server.steps[i] = (struct script_step){.reply = script.texts[i],
			.close = true,
			.meanwhile = make_reply,
			.arg = (void *)(uintptr_t)&indices[i]};
	add_files(&steps);
	if (row->is_stopped)
		atomic_store(&run->end.was_asked_to_stop, true);
	if (row->is_limited)
		atomic_store(&run->end.limit, "limit");
	if (row->is_stopped || row->is_limited)
		atomic_store(&run->end.grace_ends_ns,
			clock_monotonic_ns() + (row->has_grace ? 20 * NS_PER_S : 0));
	atomic_store(&run->progress.is_over, row->no_progress);
	CHECK_INT(steps.events[S3ONCE_EVENT_UPLOADED], 1);
	CHECK_INT(steps.events[S3ONCE_EVENT_SKIPPED], 1);
	const bool has_one = !row->has_none && !row->is_dry;
	bool good = CHECK_INT(run_manifest_put(run), row->is_stored);
	good &= CHECK_INT(steps.events[S3ONCE_EVENT_MANIFEST], row->is_stored && has_one);
	good &= CHECK_INT(steps.events[S3ONCE_EVENT_MANIFEST_FAILED], !row->is_stored);
	good &= CHECK_INT(strstr(s3once_push_manifest(steps.push), "_s3once/runs/dt=") != NULL,
		row->is_stored && has_one);
	if (row->said)
		good &= steps_say(&steps, row->said);
	script_stop(&steps.server);
	good &= CHECK_INT(steps.server.n_requests, (int64_t)n);
	if (n) {
		const struct script_request *put = &steps.server.requests[0];
		good &= CHECK(strncmp(put->head, "PUT /b/_s3once/runs/dt%3D", 25) == 0);
		good &= CHECK(strcasestr(put->head, "\r\nif-none-match: *\r\n") != NULL);
		good &= CHECK(strcasestr(put->head, "\r\ncontent-type: application/gzip\r\n"));
		good &= check_lines(put);
	}
	if (n == 2)
		good &= CHECK(strncmp(steps.server.requests[1].head, "HEAD /b/_s3once", 15) == 0);
	if (!good)
		fprintf(stderr, "\t%s: %s\n", row->name, steps.said);
	steps_end(&steps);
}

int main(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		test_row(&rows[i]);
	return check_result();
}
