/* s3once uploads files to S3 exactly once.
 *
 * A struct s3once_push is one run: s3once_push_new() configures it, s3once_push_run() runs it once,
 * its results are read, and s3once_push_free() frees it. Strings are NUL-terminated. They are
 * UTF-8, or the raw bytes of file names.
 *
 * A function may be called from any thread unless it says otherwise. Make calls with the same
 * object one at a time. Warnings that belong to no file, such as about a service that does not
 * answer or credentials that cannot be renewed, go to standard error or where s3once_set_log() says
 * (log.h).
 *
 * A run affects the whole process. While it lasts, it reads environment variables, so no thread may
 * change them. It ignores SIGPIPE unless the program handles it. The kernel sends SIGURG, which is
 * ignored unless the program handles it, if another process opens a file for writing while the run
 * examines it. Credentials may come from a child process (credential_process). If the program
 * ignores SIGCHLD, or waits for any child, the exit status of that child is lost and counts as
 * success.
 *
 * A program goes on working with later versions of the library of the same soname. They add members
 * at the end of the structs that they pass to the program, and values to the enums, so ignore
 * events of unknown types. New options take the place of `reserved` members. */
#ifndef S3ONCE_PUSH_H
#define S3ONCE_PUSH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define S3ONCE_PUBLIC __attribute__((visibility("default")))

/* The caller's statement about the bucket. */
enum s3once_bucket_is {
	/* It is the bucket of these marks. They are trusted only once S3 has shown one of their
	 * objects. */
	S3ONCE_BUCKET_KNOWN = 0,
	/* It may be a new one: the run begins without marks if this is not the bucket of the marks,
	 * or if S3 denies access to the objects that identify the bucket. Each file is then
	 * compared with the content of the bucket, and uploaded if it is missing there. The earlier
	 * marks are set aside, not deleted. */
	S3ONCE_BUCKET_NEW,
	/* It is certainly the bucket of these marks, even if none of the objects that identify it
	 * are left. This requires bucket_id_object, which identifies the bucket from then on. */
	S3ONCE_BUCKET_SAME,
};

/* The policy for a file that has changed since it was uploaded. */
enum s3once_if_changed {
	/* It is reported, and the run ends with S3ONCE_EXIT_FILES. */
	S3ONCE_CHANGED_FAIL = 0,
	/* It replaces a version that was uploaded with these marks. A version that another client
	 * had uploaded, and that was adopted since it had the file's content, stays: it is
	 * reported, and the run ends with S3ONCE_EXIT_FILES. */
	S3ONCE_CHANGED_REPLACE,
	/* The uploaded version stays, and the file is counted as outdated. */
	S3ONCE_CHANGED_SKIP,
	/* It replaces the version in the marks, even if another client has uploaded it. */
	S3ONCE_CHANGED_REPLACE_ANY,
};

/* Kinds of files that are removed only if `remove_even` names them. */
enum s3once_remove_even {
	/* Files with several names (hard links). */
	S3ONCE_REMOVE_LINKED = 1,
	/* Files that are open for writing. */
	S3ONCE_REMOVE_OPEN = 2,
	/* Files whose owner is neither that of their directory nor that of their source. */
	S3ONCE_REMOVE_FOREIGN = 4,
};

/* The result of a run. The values are the exit statuses of the command line. */
enum s3once_exit {
	/* Every file is in S3, and S3 has proven its content. */
	S3ONCE_EXIT_OK = 0,
	/* Some files failed, changed or were refused. The others are done. */
	S3ONCE_EXIT_FILES = 1,
	/* The options are invalid. */
	S3ONCE_EXIT_USAGE = 2,
	/* The credentials, the configuration, the bucket, the table or the service failed. */
	S3ONCE_EXIT_SETUP = 3,
	/* Other uploaders still hold files. This happens only with no_wait or dry_run. */
	S3ONCE_EXIT_HELD = 4,
	/* This run lost its lease to another uploader, and stopped. */
	S3ONCE_EXIT_FENCED = 5,
	/* max_duration_ms or max_transfer_bytes ended the run. The next run continues from
	 * there. */
	S3ONCE_EXIT_LIMIT = 6,
	/* s3once_push_stop() was called. The command line adds the number of the signal. */
	S3ONCE_EXIT_STOPPED = 128,
};

/* The limit that kept a run from sending more requests at once. */
enum s3once_limited_by {
	/* None: there were too few files to need more. */
	S3ONCE_LIMITED_BY_FILES = 0,
	/* `concurrency` allows no more, which is 1,024 at most. */
	S3ONCE_LIMITED_BY_CEILING,
	/* With more requests, each reply of the services or the marks took longer. */
	S3ONCE_LIMITED_BY_LATENCY,
	/* A service asked for fewer. */
	S3ONCE_LIMITED_BY_THROTTLING,
	/* Twice as many requests would need more CPU time than this host has. */
	S3ONCE_LIMITED_BY_CPU,
	/* The workers waited for the disk. */
	S3ONCE_LIMITED_BY_DISK,
	/* More requests would need more memory than memory_bytes. */
	S3ONCE_LIMITED_BY_MEMORY,
	/* More requests would need more descriptors than RLIMIT_NOFILE. */
	S3ONCE_LIMITED_BY_DESCRIPTORS,
	/* No more threads could be started. */
	S3ONCE_LIMITED_BY_THREADS,
	/* `rates` limits the bandwidth. */
	S3ONCE_LIMITED_BY_BANDWIDTH,
};

/* Why a file waits for a later run. */
enum s3once_wait {
	S3ONCE_WAIT_NONE = 0, /* it does not wait */
	/* It was modified less than min_age_ms ago. */
	S3ONCE_WAIT_YOUNG,
	/* A live log: its writer may add lines, and `live` is not set. */
	S3ONCE_WAIT_LIVE,
	/* With `live`: the log is empty, or has no whole line yet. */
	S3ONCE_WAIT_NO_LINE,
	/* A compressed file that may be incomplete, beside its uncompressed log. */
	S3ONCE_WAIT_COMPRESSING,
	/* It may be a copy of a live log that is about to be emptied (copytruncate). */
	S3ONCE_WAIT_COPY,
	/* Its name is that of an unfinished file, or of one that was put aside. */
	S3ONCE_WAIT_UNFINISHED,
	/* It was renamed, removed or written to while the run examined it. */
	S3ONCE_WAIT_CHANGED,
	/* Another file of the same log waits or could not be read, and must be identified first. */
	S3ONCE_WAIT_FAMILY,
	S3ONCE_WAITS /* the number of reasons, with NONE */
};

/* The files that wait for one reason. */
struct s3once_waiting {
	uint64_t files;
	/* The earliest modification time among them, in ns since 1970. Empty files do not count,
	 * since they have no data: INT64_MAX if all are empty. */
	int64_t oldest_ns;
	/* The path of that file, or of any of them if all are empty. */
	const char *path;
	/* The reason in a few words, such as "may still be written to". */
	const char *text;
};
/* A file that has waited longer than this is worth reporting even if only errors are reported. */
#define S3ONCE_WAITS_LONG_S 86400

/* One --exclude, --include or --exclude-from. Rules are in order, and the last one that matches
 * decides. If the first rule is an include, files that no rule matches are excluded. */
struct s3once_rule {
	enum s3once_rule_kind {
		S3ONCE_RULE_EXCLUDE = 0,
		S3ONCE_RULE_INCLUDE,
		/* `pattern` is the path of a file with a pattern of excluded files in each line.
		 * Empty lines, and lines that begin with # or ;, are ignored. */
		S3ONCE_RULE_EXCLUDE_FROM,
	} kind;
	const char *pattern;
};

/* A bandwidth limit from a time of day on. */
struct s3once_rate {
	/* The minute of the day, 0 to 1439. */
	unsigned minute;
	/* At least S3ONCE_RATE_MIN, or 0 for no limit. */
	uint64_t bytes_per_second;
};
#define S3ONCE_RATE_MIN 8192

/* A setting for the storage of objects. Its name is that of the command-line option without the
 * dashes, such as "storage-class", "metadata" or "sse-c-key-file" (s3once-push(1), OBJECTS). The
 * setting "header" has a value such as "Cache-Control: max-age=3600". */
struct s3once_setting {
	const char *name, *value;
};

/* Types of events. In brackets are the members of struct s3once_event that each type sets; all
 * others are "", 0 or NULL. */
enum s3once_event_type {
	/* The run begins. [key: the prefix; text: the name of the marks] */
	S3ONCE_EVENT_START,
	/* Information, for example about a pattern that matches nothing. [text] */
	S3ONCE_EVENT_NOTE,
	/* A problem without a loss. [text] */
	S3ONCE_EVENT_WARNING,
	/* This run has sent the file, S3 has proven it, and it is marked done. [path, key, bytes]
	 */
	S3ONCE_EVENT_UPLOADED,
	/* S3 already had exactly this content, which is now marked done. [path, key, bytes] */
	S3ONCE_EVENT_ADOPTED,
	/* The file has a new modification time, but the content that is marked done. The mark was
	 * updated. [path, key] */
	S3ONCE_EVENT_REFRESHED,
	/* The file was done before. Reported only with report_skipped. [path, key] */
	S3ONCE_EVENT_SKIPPED,
	/* The file has changed since its upload, and the object was kept (S3ONCE_CHANGED_SKIP).
	 * [path, key, text] */
	S3ONCE_EVENT_OUTDATED,
	/* The file would be uploaded (dry_run). [path, key, bytes] */
	S3ONCE_EVENT_PLANNED,
	/* A symbolic link was not followed. Reported only with report_skipped. [path] */
	S3ONCE_EVENT_LINK,
	/* The file waits for a later run. Reported only with report_skipped. [path, text, wait,
	 * mtime_ns] */
	S3ONCE_EVENT_WAITING,
	/* The file is larger than max_bytes and was skipped. Reported only with report_skipped.
	 * [path, bytes] */
	S3ONCE_EVENT_OVERSIZED,
	/* The file is smaller than min_bytes and was skipped. Reported only with report_skipped.
	 * [path, bytes] */
	S3ONCE_EVENT_UNDERSIZED,
	/* A socket, a named pipe or a device in a directory was skipped. Reported only with
	 * report_skipped. [path, text] */
	S3ONCE_EVENT_SPECIAL,
	/* `rules` exclude the file, or a folder with everything in it, whose path then ends in '/'.
	 * Reported only with report_skipped. [path] */
	S3ONCE_EVENT_EXCLUDED,
	/* The file has changed since its upload, and its object was not replaced. With `read`: the
	 * object was made by another producer (producer_id). [path, key, text] */
	S3ONCE_EVENT_CHANGED,
	/* Another uploader holds the file. This run waits for it; with no_wait or dry_run, it gives
	 * up the file. [path, key, text] */
	S3ONCE_EVENT_HELD,
	/* The file was not uploaded. [path, key or "", text, code, request_id] */
	S3ONCE_EVENT_FAILED,
	/* With `final`: the run ended before the file was in S3. The next one continues it. [path,
	 * key, bytes] */
	S3ONCE_EVENT_LEFT,
	/* The file is started again, since it changed while it was read, or will be retried, since
	 * the server failed. [path, key, text, code, request_id] */
	S3ONCE_EVENT_RETRY,

	/* With `removes`, after the event that reports the file in S3: */

	/* It was proven again, and removed from this host. [path, key, bytes, version_id, etag,
	 * checksum] */
	S3ONCE_EVENT_REMOVED,
	/* It was proven again, and moved below move_to. [as REMOVED] */
	S3ONCE_EVENT_MOVED,
	/* It is due for removal, but stays for now: remove_even does not include its kind, or it
	 * has changed. [path, key, text] */
	S3ONCE_EVENT_KEPT,
	/* It is due for removal, but could not be proven again, or could not be removed. The run
	 * ends with S3ONCE_EXIT_FILES. [path, key, text, code, request_id] */
	S3ONCE_EVENT_NOT_REMOVED,
	/* It would be removed or moved (dry_run). [as REMOVED] */
	S3ONCE_EVENT_REMOVABLE,

	/* Events of s3once_push_prove(), which also reports FAILED and FATAL: */

	/* The file is done, and S3 shows its object.
	 * [path, key, bytes, version_id, etag, checksum] */
	S3ONCE_EVENT_PROVEN,
	/* The file is not done, or S3 does not show its object. [path, key, text] */
	S3ONCE_EVENT_UNPROVEN,
	/* With `manifest`, at the end of a run: */

	/* The manifest was stored. [key, bytes, version_id, etag] */
	S3ONCE_EVENT_MANIFEST,
	/* The manifest could not be stored, and the run ends with S3ONCE_EXIT_FILES.
	 * [key, text, code, request_id] */
	S3ONCE_EVENT_MANIFEST_FAILED,

	/* Reported every progress_interval_ms. If large files are under way, it names the largest
	 * one. [counts, path, bytes, bytes_done] */
	S3ONCE_EVENT_PROGRESS,
	/* The whole run ends because of this. [text, code, request_id] */
	S3ONCE_EVENT_FATAL,
	/* The last event of every run. [counts] */
	S3ONCE_EVENT_SUMMARY,
};

/* Files above this size are large. Large and small files take turns, and concurrent large bodies
 * have a separate limit. */
#define S3ONCE_SMALL_BYTES_MAX (1U << 20)

/* The counts of a run so far. If the run was not stopped early, `found` is at its end the sum of
 * uploaded, adopted, refreshed, skipped, outdated, changed, failed, held, waiting, oversized,
 * undersized, links and special, and in a dry run of planned. */
struct s3once_counts {
	/* All files that were found or expected, including links and special files. */
	uint64_t found;
	uint64_t uploaded, adopted, refreshed, skipped, changed, failed, held, waiting, links,
		special, outdated, oversized, undersized;
	uint64_t planned; /* in a dry run only */
	/* Files that `rules` exclude; a folder that is excluded as a whole counts as one. Not
	 * included in `found`. */
	uint64_t excluded;
	/* Set only with `final`: the files that this run found but did not finish, and their total
	 * size. */
	uint64_t left, bytes_left;

	/* Results for files in S3 that were due for removal. */
	uint64_t removed, moved, kept, not_removed;
	uint64_t unproven;  /* part of not_removed: files that could not be proven to be in S3 */
	uint64_t removable; /* in a dry run only */
	/* The content of the files that were removed or moved. */
	uint64_t bytes_removed;

	/* The content of uploaded files. */
	uint64_t bytes_uploaded;
	/* The bodies of objects and parts, as they leave this host. Bytes that are sent again count
	 * again. */
	uint64_t bytes_sent;
	/* The content that was sent in this run. Bytes that are sent again count once. */
	uint64_t bytes_moved;
	/* The content of all files found so far, except those that max_bytes or min_bytes
	 * excludes. */
	uint64_t bytes_found;
	/* The content of files that need no more work. */
	uint64_t bytes_settled;
	/* The content of unfinished files that this run has sent, or has compared with parts in
	 * S3. */
	uint64_t bytes_under_way;
	/* The content of unfinished files in parts that S3 keeps, from which a later run continues.
	 */
	uint64_t bytes_kept;
	/* The content of large files in parts that S3 already had, which were compared and not sent
	 * again. */
	uint64_t bytes_resumed;

	/* Files that are under way now. */
	unsigned in_flight;
	/* The same for large files alone: found, finished in this run, and the content that was
	 * sent. They are counted separately, since the time for large files depends on their bytes,
	 * and that for small ones on their number. Bytes that are sent again count once. */
	struct {
		uint64_t found, ended;
		uint64_t bytes_found, bytes_ended, bytes_moved;
		unsigned in_flight;
	} large;
	/* The highest limit of concurrent requests so far, and the reason why it was not higher. */
	unsigned concurrency;
	enum s3once_limited_by limited_by;
	/* Whether `found` and bytes_found are final. */
	int scan_complete;
	/* Whether nothing has moved for give_up_after_ms, or for a lease if that is longer,
	 * although files are under way or being searched for. A file system or a callback hangs
	 * then. */
	int is_stuck;
	/* The time since the run began. */
	double seconds;
	/* The time for which nothing has moved while the run waits for a service. */
	double still_seconds;
#define S3ONCE_STILL_S 5 /* once nothing has moved for this long, the remaining time is unknown */
	/* Bytes per second that left this host, over the last seconds. */
	double bytes_per_second;
	/* The estimated remaining time, by the number of small files and the bytes of large ones.
	 * Negative while it is unknown. */
	double seconds_left;
	/* The oldest_ns (struct s3once_waiting) of all waiting files, except those younger than
	 * min_age_ms, which wait on purpose. */
	int64_t oldest_waiting_ns;
	/* Claims in which another uploader was first. */
	uint64_t claims_refused;
	/* With `read`, if this run has read nothing, since an earlier run had uploaded the object:
	 * the time of that upload, in seconds since 1970, and its age. Otherwise 0. */
	int64_t repeats_s;
	uint64_t repeats_age_s;
/* From this age on, the run probably belongs to another night, whose output is not in S3. The limit
 * is well below a day, since the earlier output may have taken some hours. */
#define S3ONCE_REPEATS_LONG_S (12 * 3600)
	/* The modification time of the oldest file that should be in S3 but is not, since it
	 * failed, was refused, is held, waits, or was not reached. In ns since 1970, or INT64_MAX
	 * if there is no such file. Set once the run has ended. */
	int64_t oldest_unshipped_ns;
};

/* An event. All strings are valid only during the callback, and are never NULL. `path` and `key`
 * are raw bytes, which have to be escaped before they reach a terminal. `text`, `code` and
 * `request_id` are safe to print. */
struct s3once_event {
	enum s3once_event_type type;
	/* The path of the local file, for messages. */
	const char *path;
	/* The key of its object. */
	const char *key;
	/* The size of the file. */
	uint64_t bytes;
	/* For PROGRESS: bytes of that file that were sent, or that did not have to be sent. */
	uint64_t bytes_done;
	/* The reason for waiting, and the modification time in ns since 1970. */
	enum s3once_wait wait;
	int64_t mtime_ns;
	/* A sentence without a full stop: the event's cause, and its remedy if there is one. */
	const char *text;
	/* Of the object; "" if the service returns none. The etag has no quotes, and the checksum
	 * has the form NAME:BASE64. */
	const char *version_id, *etag, *checksum;
	/* The error code and the request id of the service, or "". */
	const char *code, *request_id;
	/* Set for PROGRESS and SUMMARY; otherwise NULL. */
	const struct s3once_counts *counts;
};

/* Called from threads of the run, one call at a time. It must not block for long, and must not call
 * s3once_push_free(). */
typedef void s3once_callback(void *arg, const struct s3once_event *event);

/* Reads up to n bytes of a producer's output into the buffer. One thread makes all calls. The first
 * call comes only once the run knows that the object is not in S3 yet.
 *
 * Returns the number of bytes read, 0 at the end of a complete output, -EAGAIN if no data came
 * within a second, or another -errno. In the last case, it also writes a sentence without a full
 * stop to ret_text, with its NUL at most `size` bytes; `size` is at least 1,000. After 0 or such an
 * error, it is not called again.
 *
 * If the run stops reading before the end of the output, it makes one last call with n = 0 and a
 * `size` of 1, and ignores the result. */
typedef long s3once_read(void *arg, void *buffer, size_t n, char *ret_text, size_t size);

/* Options of a run. Zero the struct, and set the members that differ from the default: zero is the
 * default of each member. All pointers are borrowed until s3once_push_free(). Times have no limits
 * other than those given here: UINT64_MAX means forever. */
struct s3once_options {
	/* Sources and target. */

	/* Files or directories; at least one. */
	const char *const *sources;
	size_t n_sources;
	/* Required. */
	const char *bucket;
	/* "" or NULL: none. */
	const char *prefix;
	/* The whole key of the one source, which is a file. NULL: PREFIX/basename. */
	const char *as;
	/* A function that supplies the content of the object `as`, instead of a file. Nothing of
	 * the object is visible before the output is complete. If its mark is done, nothing is
	 * read. The only source is the name of the input in messages, not a file. Options about the
	 * names, sizes, times and removal of files cannot be combined with it. NULL: files are
	 * uploaded.
	 */
	s3once_read *read;
	void *read_arg;
	/* With `read`: the id of the producer, such as a hash of a command line, of at most 64
	 * bytes. If the object was made by a producer with another id, it is reported as CHANGED,
	 * and nothing is read. NULL: the producer is not compared. */
	const char *producer_id;
	/* With `read`: a directory for the whole output until its mark is done. A run that finds
	 * the output there reads nothing. NULL: the output is in a file without a name in
	 * SQLITE_TMPDIR, TMPDIR or /var/tmp. */
	const char *spool;
	/* A template for keys below the prefix, made of properties of each file, such as
	 * "{family}/{mtime:%Y/%m/%d}/{host}-{name}" (s3once-push(1), KEY TEMPLATES). NULL: the keys
	 * are the paths relative to the source. */
	const char *key_template;
	/* The time zone of {mtime:…} and of `rates`, as a name from the tz database. NULL: UTC. */
	const char *time_zone;
	/* The sources contain rotating logs. A rotated file is identified by family, modification
	 * time and content, even if it is renumbered or compressed. The file that is still being
	 * written waits. Without a key_template, the template is
	 * "{dir}{stem}-{mtime:%Y%m%dT%H%M%SZ}-{id:8}{ext}", where stem and ext are those of the
	 * family. */
	int rotated;
	/* With `rotated`: the live file of each family is uploaded up to the end of its last line,
	 * and later runs upload new lines as separate objects. It needs marks in a file of this
	 * host, and directories as sources. It cannot be combined with `removes`, `min_bytes` and
	 * `max_bytes`. Without it, a rotated log that has grown is uploaded as a whole, under
	 * another key. */
	int live;
	/* "zstd" or "gzip", with or without ":LEVEL". Files that are not compressed yet are
	 * compressed during their upload, and their keys get the suffix .zst or .gz. With a header
	 * Content-Encoding of the same name, objects get that header instead of the suffix. NULL:
	 * files are not compressed. */
	const char *compress;
	/* A file with a list of paths relative to the only source, one per line, or each with a NUL
	 * after it; "-" is stdin. NULL: none. */
	const char *files_from;
	/* Absolute paths without links. In sources that are directories, only these files, and the
	 * files directly in these folders, are scanned. Not with key_template, rotated, files_from
	 * or follow. NULL: everything is scanned. */
	const char *const *folders;
	size_t n_folders;
	const struct s3once_rule *rules;
	size_t n_rules;
	/* Follow symbolic links. */
	int follow;
	/* Skip directories below a source where another file system is mounted. They are reported
	 * as SPECIAL. */
	int one_file_system;
	/* Leave files that were modified less than this ago for the next run. */
	uint64_t min_age_ms;
	/* Skip larger files. 0: no file is too large. */
	uint64_t max_bytes;
	/* Skip smaller files. 0: no file is too small. */
	uint64_t min_bytes;

	/* Properties of objects. A change here does not cause another upload of a file. */

	/* Settings for all objects, which override those of rules_file. */
	const struct s3once_setting *settings;
	size_t n_settings;
	/* Settings for all keys and for patterns of keys (s3once-push(1), RULES). NULL: none. */
	const char *rules_file;
	/* The key of a small object that identifies the bucket, even against a later one of the
	 * same name. It is created if missing. NULL: none. */
	const char *bucket_id_object;
	enum s3once_bucket_is bucket_is;
	/* Check the objects of files that are done, and upload those that are missing. */
	int reupload;
	/* Read files that are done. A file counts as changed if its content differs from the
	 * uploaded one, even if its size and modification time do not. */
	int compare_content;

	/* Removal of files that are in S3. A file is removed only if its mark, read again, says
	 * that exactly this content is done, if a HEAD after that shows its object, and if it is
	 * still the file that was read. */

	/* Remove files, or move them if move_to is set. */
	int removes;
	/* Only files that were marked done at least this long ago. */
	uint64_t remove_after_s;
	/* A directory of the same file system, outside of all sources. In it, files keep their
	 * paths relative to their sources, and rotated files have the keys of their objects below
	 * the prefix. NULL: none. */
	const char *move_to;
	/* Also remove files of these kinds: a set of enum s3once_remove_even. */
	unsigned remove_even;

	/* The way the run works. */

	enum s3once_if_changed if_changed;
	/* Do not wait for files that other uploaders hold. */
	int no_wait;
	/* This may be the last run of this host. min_age_ms is ignored, no file waits for the end
	 * of a rotation, the live files of `rotated` are uploaded as they are, and nothing is
	 * removed. Of the files found so far, those of up to 1 MiB are sent first, the oldest ones
	 * first, and then the larger ones, the smallest ones first. */
	int final;
	/* Change nothing: neither S3, nor the marks, nor this host's directories. */
	int dry_run;
	/* Limit of concurrent requests. A run begins with fewer, and adds more as long as that
	 * makes it faster. 0: 1,024, which is also the maximum. */
	unsigned concurrency;
	/* Memory for buffers and bodies. `compress` takes up to twice as much in addition. 0: 24
	 * MiB. */
	uint64_t memory_bytes;
	/* The size of a part, and of the largest file that is sent whole, at least 5 MiB. It grows
	 * for huge files. 0: 16 MiB. */
	uint64_t part_bytes;
	/* Attempts at each request, including the first one. A throttled attempt does not count as
	 * long as the service still accepts some requests. 0: AWS_MAX_ATTEMPTS, or the value of the
	 * profile, or 9. */
	unsigned attempts;
	/* The time without progress, counted from the first failure of a request, after which a run
	 * ends with S3ONCE_EXIT_SETUP. Progress means that a file was finished, or that S3 has
	 * received new bytes. While the replies to requests are errors, the time is
	 * request_timeout_ms longer.
	 *
	 * This is also the time for which a file is retried if its requests fail while other files
	 * succeed. Before each retry, the files that were found meanwhile are sent. The time counts
	 * from the file's first failure. It includes the pauses between retries, but not the time
	 * in which the file waits for other files. It begins again each time that S3 has more parts
	 * of the file than ever before. 0: 5 min. */
	uint64_t give_up_after_ms;
	/* Time limit for the reply to a request, counted from the end of its body. A body may take
	 * any time as long as it moves: it fails when the connection has been silent for this time,
	 * or for 30 s if that is longer. 0: 60 s. */
	uint64_t request_timeout_ms;
	/* The time that files under way have to finish after a stop or at a limit. 0: 10 s. */
	uint64_t grace_ms;
	/* Begin nothing new once the run has lasted this long. 0: no limit. */
	uint64_t max_duration_ms;
	/* Begin nothing new once this many bytes of bodies were sent or are being sent. 0: no
	 * limit. */
	uint64_t max_transfer_bytes;
	/* Limits of bandwidth for the bodies of objects and parts, in the order of their minutes.
	 * Each holds until the next one, and the last one until the first one of the next day.
	 * Minutes are those of time_zone. All runs of this user on this host with a limit share it.
	 * Without rates, there is no limit. */
	const struct s3once_rate *rates;
	size_t n_rates;

	/* The manifest. */

	/* At the end, store another object, which lists each file that is in S3, including those
	 * uploaded before. Its key is PREFIX/_s3once/runs/dt=YYYY-MM-DD/host=HOST/RUN.jsonl.gz, and
	 * each line is a JSON object (docs/json.md). A run that was stopped or could not do its
	 * work stores none. */
	int manifest;
	/* A file with a private Ed25519 key in PEM, without a passphrase. The run then stores a
	 * manifest, signs it with the key, and stores the signature as RUN.jsonl.gz.sig beside it.
	 * NULL: none. */
	const char *sign_key_file;

	/* Marks and lease. */

	/* "dynamodb:TABLE", "sqlite:PATH" or "local". NULL: "local". */
	const char *marks;
	/* The length of this run's lease. A heartbeat is sent every fifth of it. 0: 30 s. */
	uint64_t lease_ms;
	/* The name of the row with the result of the last run on this host. NULL: a name made from
	 * the sources and the target. */
	const char *job;

	/* Access. NULL leaves each to the environment and the profile. */

	const char *endpoint_url, *dynamodb_endpoint_url, *region, *profile, *ca_bundle;
	/* The checksum that S3 verifies and keeps: "crc32c", "crc32", "crc64nvme", "sha1",
	 * "sha256", "md5" or "auto". "md5" is Content-MD5 and the etag, which every server
	 * understands. "auto" is the fastest one, or "md5" where AWS_REQUEST_CHECKSUM_CALCULATION
	 * or the profile says when_required. NULL: S3ONCE_CHECKSUM, or "auto". */
	const char *checksum;

	/* Reports. */

	/* NULL: no events. */
	s3once_callback *callback;
	void *callback_arg;
	/* Also report the events SKIPPED, LINK, WAITING, OVERSIZED, UNDERSIZED, SPECIAL and
	 * EXCLUDED. */
	int report_skipped;
	/* The time from one PROGRESS event to the next. 0: no such events. */
	uint64_t progress_interval_ms;
	/* A file that the caller writes during the run, and may replace by a new one of the same
	 * name. The run skips it and does not count it. NULL: none. */
	const char *log_file;

	/* For options of later versions; all 0. A library that does not know an option returns
	 * -EINVAL. */
	uint64_t reserved[16];
};

/* One run. */
struct s3once_push;

/* Checks the options and opens the sources. It sends nothing.
 *
 * Returns 0 and a new run in *ret (free it with s3once_push_free()), -EINVAL and a sentence in
 * ret_text, or -ENOMEM. A sentence is cut to `size` bytes with its NUL; 1,000 bytes are enough.
 * After 0 and -ENOMEM, ret_text is undefined. */
S3ONCE_PUBLIC int s3once_push_new(const struct s3once_options *options, struct s3once_push **ret,
	char *ret_text, size_t size);

/* Uploads the files, and returns the result at the end of the run. Call it once for each run.
 *
 * While it runs, no other thread of the process may fork, unless the child execs at once. */
S3ONCE_PUBLIC enum s3once_exit s3once_push_run(struct s3once_push *push);

/* Checks whether files are done, and uploads nothing. Call it instead of s3once_push_run(), with
 * dry_run set. `files` has the paths of n files or folders below the sources. An event for each
 * file reports whether its content is done. A folder stands for all files in it or, with
 * files_from, for the listed ones. Files that `rules` exclude are not checked. Symbolic links that
 * are not followed, sockets, named pipes and devices in a folder have no content. With
 * report_skipped they are reported (LINK, SPECIAL). The order of the events is undefined.
 *
 * The content of a file is done if its mark is done, its checksum equals that in the mark, and S3
 * has the object now. Modification times do not matter.
 *
 * Returns S3ONCE_EXIT_OK if all files are done, S3ONCE_EXIT_SETUP if a check failed or
 * s3once_push_stop() was called, and otherwise S3ONCE_EXIT_FILES. */
S3ONCE_PUBLIC enum s3once_exit s3once_push_prove(
	struct s3once_push *push, const char *const *files, size_t n);

/* Requests a run to end. Nothing new is begun. Files under way may finish within grace_ms, and are
 * abandoned after that. Upload ids are kept, and the session is released. A second call ends the
 * grace, and so does the first one after a limit has ended the run.
 *
 * It may be called from any thread and from a signal handler, also while s3once_push_run() runs. */
S3ONCE_PUBLIC void s3once_push_stop(struct s3once_push *push);

/* Lifts the limit of `rates` for this run, or restores it. It may be called from any thread and
 * from a signal handler, also while s3once_push_run() runs. */
S3ONCE_PUBLIC void s3once_push_toggle_bandwidth(struct s3once_push *push);

/* Counts the requests of the run by kind. Returns the name of kind i (from 0), such as "PutObject"
 * or "UpdateItem", and its count in *ret_count; NULL after the last kind. The string is static.
 * Call this after the run. */
S3ONCE_PUBLIC const char *s3once_push_requests(
	const struct s3once_push *push, size_t i, uint64_t *ret_count);

/* The limit that the run has reached, as the sentence of its S3ONCE_EVENT_NOTE, or "". It is valid
 * until s3once_push_free(). Call it after s3once_push_run(). */
S3ONCE_PUBLIC const char *s3once_push_limit(const struct s3once_push *push);
/* The key of the manifest that the run has stored, or "". It is valid until s3once_push_free().
 * Call this after the run. */
S3ONCE_PUBLIC const char *s3once_push_manifest(const struct s3once_push *push);

/* The final counts. They are valid until s3once_push_free(). Call this after the run. */
S3ONCE_PUBLIC const struct s3once_counts *s3once_push_counts(const struct s3once_push *push);

/* The files that wait for this reason. The result is valid until s3once_push_free(). Call this
 * after the run. */
S3ONCE_PUBLIC const struct s3once_waiting *s3once_push_waiting(
	const struct s3once_push *push, enum s3once_wait why);

/* Returns the number of files with a result of any kind. It equals `found` at the end of a run that
 * was not stopped early. The counts may also be those of an event. */
S3ONCE_PUBLIC uint64_t s3once_counts_settled(const struct s3once_counts *counts);

/* Frees a run that has ended or was never started. NULL is ignored. */
S3ONCE_PUBLIC void s3once_push_free(struct s3once_push *push);

/* The version of the library, such as "1.0.0". The string is static. */
S3ONCE_PUBLIC const char *s3once_version(void);

#ifdef __cplusplus
}
#endif
#endif
