/* s3once: upload files to S3 exactly once.
 *
 * One run is one struct s3once_push: configure, run, read the summary, free. Strings are UTF-8 or
 * raw file names, NUL-terminated. Unless said otherwise a function may be called from any thread,
 * one at a time per object. */
#ifndef S3ONCE_PUSH_H
#define S3ONCE_PUSH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define S3ONCE_PUBLIC __attribute__((visibility("default")))

/* What to do with a file that was uploaded before and has changed since. */
enum s3once_if_changed {
	S3ONCE_CHANGED_FAIL = 0, /* report it; the run ends with S3ONCE_EXIT_FILES */
	S3ONCE_CHANGED_REPLACE,  /* upload it, replacing the version that this program uploaded */
	S3ONCE_CHANGED_SKIP,     /* leave the uploaded version; count it as outdated */
};

/* How a run ended; the values are the exit codes of the command line. */
enum s3once_exit {
	S3ONCE_EXIT_OK = 0,    /* every file is in S3, proven */
	S3ONCE_EXIT_FILES = 1, /* some files failed, changed or were refused; the others are done */
	S3ONCE_EXIT_USAGE = 2, /* the options make no sense */
	S3ONCE_EXIT_SETUP = 3, /* credentials, configuration, bucket, table or service */
	S3ONCE_EXIT_HELD = 4,  /* other uploaders still hold files (only with no_wait or dry_run) */
	S3ONCE_EXIT_FENCED = 5, /* this run lost its lease to another uploader and stopped */
	S3ONCE_EXIT_LIMIT = 6,  /* max_duration_ms or max_transfer_bytes ended the run; the next one
				   goes on */
	S3ONCE_EXIT_STOPPED =
		128, /* s3once_push_stop() was called; the command line adds the signal */
};

/* What kept a run from sending more requests at once. */
enum s3once_limited_by {
	S3ONCE_LIMITED_BY_FILES = 0, /* nothing yet: there were too few files to need more */
	S3ONCE_LIMITED_BY_CEILING,   /* `concurrency`, or the most that is ever tried */
	S3ONCE_LIMITED_BY_LATENCY, /* with more at once the services and the marks answered later */
	S3ONCE_LIMITED_BY_THROTTLING,  /* a service asked for fewer */
	S3ONCE_LIMITED_BY_CPU,         /* the workers waited for this host's CPUs */
	S3ONCE_LIMITED_BY_DISK,        /* the workers waited for the files to be read */
	S3ONCE_LIMITED_BY_MEMORY,      /* more would need more memory than memory_bytes allows */
	S3ONCE_LIMITED_BY_DESCRIPTORS, /* more would need more than RLIMIT_NOFILE allows */
	S3ONCE_LIMITED_BY_THREADS,     /* no more threads could be started */
	S3ONCE_LIMITED_BY_BANDWIDTH,   /* `rates` */
};

/* One --exclude or --include, in order. */
struct s3once_rule {
	int include; /* 0: exclude */
	const char *pattern;
};

/* A limit of bandwidth from a time of day on. */
struct s3once_rate {
	unsigned minute;           /* of the day, 0 to 1439 */
	uint64_t bytes_per_second; /* at least S3ONCE_RATE_LEAST; 0: no limit */
};
#define S3ONCE_RATE_LEAST 8192

/* One setting of how objects are stored, by the name of the option of the command line without its
 * dashes ("storage-class", "metadata", "sse-c-key-file", …; s3once-push(1), OBJECTS), and its
 * value.
 */
struct s3once_setting {
	const char *name, *value;
};

enum s3once_event_type {
	S3ONCE_EVENT_START, /* the run begins: key is the prefix, text names the marks */
	S3ONCE_EVENT_NOTE,  /* text: what is worth a look, such as a pattern that matches nothing */
	S3ONCE_EVENT_WARNING,  /* text; nothing was lost */
	S3ONCE_EVENT_UPLOADED, /* path, key, bytes: sent, proven and marked done by this run */
	S3ONCE_EVENT_ADOPTED, /* path, key, bytes: S3 already held exactly this content; marked done
			       */
	S3ONCE_EVENT_REFRESHED,  /* path, key: same content as marked, another mtime; the mark was
				    brought up to date */
	S3ONCE_EVENT_SKIPPED,    /* path, key: done before (only with `report_skipped`) */
	S3ONCE_EVENT_OUTDATED,   /* path, key, text: changed since it was uploaded, and the object
				left as it is (S3ONCE_CHANGED_SKIP) */
	S3ONCE_EVENT_PLANNED,    /* path, key, bytes: would be uploaded (dry run) */
	S3ONCE_EVENT_LINK,       /* path: a symlink, not followed (only with `report_skipped`) */
	S3ONCE_EVENT_YOUNG,      /* path: younger than min_age, or not closed yet by what `rotated`
				    knows; left for the next run (only with
				    `report_skipped`) */
	S3ONCE_EVENT_OVERSIZED,  /* path, bytes: larger than max_bytes, left out (only with
				    `report_skipped`) */
	S3ONCE_EVENT_UNDERSIZED, /* path, bytes: smaller than min_bytes, left out (only with
				   `report_skipped`) */
	S3ONCE_EVENT_SPECIAL,    /* path, text: a socket, named pipe or device in a tree, left out
				    (only with `report_skipped`) */
	S3ONCE_EVENT_CHANGED,    /* path, key, text: changed since it was uploaded; not replaced */
	S3ONCE_EVENT_HELD,       /* path, key, text: held by another uploader; waiting, or given up
				    with no_wait or dry_run */
	S3ONCE_EVENT_FAILED,     /* path, key (or ""), text, code, request_id: not uploaded */
	S3ONCE_EVENT_RETRY,      /* path, key, text, code, request_id: starting this file again (it
				       changed while it was read), or later (the server failed, …) */
	/* Of a file that is in S3, after the event that says so (with `removes`): */
	S3ONCE_EVENT_REMOVED, /* path, key, bytes, version_id, etag, checksum: proven once more, and
				 removed from this host */
	S3ONCE_EVENT_MOVED,   /* the same, moved below move_to */
	S3ONCE_EVENT_KEPT, /* path, key, text: due, and left for now: by one of the rules, or since
			      it has changed */
	S3ONCE_EVENT_NOT_REMOVED, /* path, key, text, code, request_id: due, but it could not be
				     proven once more, or not be removed; the run ends with
				     S3ONCE_EXIT_FILES */
	S3ONCE_EVENT_REMOVABLE,   /* as REMOVED: would be removed or moved (dry run) */
	/* Of s3once_push_prove(), beside FAILED and FATAL: */
	S3ONCE_EVENT_PROVEN, /* path, key, bytes, version_id, etag, checksum: done, and S3 shows it
			      */
	S3ONCE_EVENT_UNPROVEN, /* path, key, text: it is not */
	/* With `manifest`, at the end of a run: */
	S3ONCE_EVENT_MANIFEST,        /* key, bytes, version_id, etag: the manifest was stored */
	S3ONCE_EVENT_MANIFEST_FAILED, /* key, text, code, request_id: it was not; the run ends with
					 S3ONCE_EXIT_FILES */
	S3ONCE_EVENT_PROGRESS,        /* counts: every progress_interval_ms */
	S3ONCE_EVENT_FATAL,   /* text, code, request_id: the whole run ends because of this */
	S3ONCE_EVENT_SUMMARY, /* counts: the last event of every run */
};

/* Counters of a run, as far as it got. Files: found = uploaded + adopted + refreshed + skipped +
 * outdated + changed + failed + held + young + oversized + undersized + links + special (and
 * planned, in a dry run) once the run has ended by itself. */
struct s3once_counts {
	uint64_t found; /* directory entries that are or should be a file */
	uint64_t uploaded, adopted, refreshed, skipped, changed, failed, held, young, links,
		special, outdated, oversized, undersized;
	uint64_t planned;                           /* dry run only */
	uint64_t removed, moved, kept, not_removed; /* of the files that are in S3 */
	uint64_t removable;                         /* dry run only */
	uint64_t bytes_removed;   /* content of those that were removed or moved */
	uint64_t bytes_uploaded;  /* content of uploaded files */
	uint64_t bytes_sent;      /* of bodies of objects and parts, as they leave this host; what
				     is sent again counts again */
	uint64_t bytes_found;     /* content of all files found so far, but for those
				    that are too large */
	uint64_t bytes_settled;   /* content of the files that need nothing more */
	uint64_t bytes_under_way; /* content of unfinished files that has moved, or that S3 holds
				     and this run has compared */
	uint64_t bytes_kept;      /* content of unfinished files in parts that S3 keeps: a later run
				     goes on from there */
	unsigned in_flight;       /* files under way now */
	unsigned concurrency;     /* the most requests that were allowed at once so far */
	enum s3once_limited_by limited_by; /* why it was not more */
	int scan_complete;                 /* whether found and bytes_found are final */
	int is_stuck;   /* files are under way, and nothing has moved for give_up_after_ms, or for a
			   lease if that is longer: a file system or a callback stands still */
	double seconds; /* since the run began */
	uint64_t claims_refused;     /* claims that another uploader had made first */
	int64_t oldest_unshipped_ns; /* when the oldest file was modified (ns since 1970) that was
					found and is to be in S3 but is not: failed, refused, held,
					young, or not reached; INT64_MAX: there is none. Of a run
					that has ended */
};

/* One thing that happened. All strings are valid only during the callback and never NULL; path and
 * key are raw bytes (escape them before they reach a terminal), text, code and request_id are
 * already safe to print. */
struct s3once_event {
	enum s3once_event_type type;
	const char *path;       /* the local file, as a person would name it */
	const char *key;        /* the S3 key */
	uint64_t bytes;         /* size of the file */
	const char *text;       /* a sentence without full stop: what happened and what to do */
	const char *version_id; /* of the object, where the service gives one, or "" */
	const char *etag;       /* of the object, without quotes, or "" */
	const char *checksum;   /* of the object, as NAME:BASE64, or "" */
	const char *code;       /* the service's error code, or "" */
	const char *request_id; /* the service's request id, or "" */
	const struct s3once_counts *counts; /* of PROGRESS and SUMMARY; else NULL */
};

/* Called from threads of the run, one call at a time. It must not block for long and must not call
 * s3once_push_free(). */
typedef void s3once_callback(void *arg, const struct s3once_event *event);

/* Everything a run needs. Zero it, set what you need; zero means the default. All pointers are
 * borrowed until s3once_push_free(). */
struct s3once_options {
	/* What and where to. */
	const char *const *sources; /* files or directories; at least one */
	size_t n_sources;
	const char *bucket; /* required */
	const char *prefix; /* "" or NULL: none */
	const char *as;     /* whole key for exactly one source file; NULL: PREFIX/basename */
	/* Keys made of properties of each file, below the prefix, such as
	 * "{family}/{mtime:%Y/%m/%d}/{host}-{name}" (s3once-push(1), KEY TEMPLATES); NULL: keys are
	 * the paths relative to the source. time_zone is that of {mtime:…} and of `rates`, as the
	 * tz database names it; NULL: UTC. */
	const char *key_template, *time_zone;
	/* Logs that rotate: their files are known by family, modification time and content,
	 * whatever their number and compression are, and the live file of each family is left for
	 * later. rotated_pattern is a POSIX extended regular expression: what it matches in a base
	 * name (without its suffix of compression) is what rotation adds to it. NULL: the usual
	 * ways. Without a key_template the keys of rotated files are made by
	 * "{dir}{stem}-{mtime:%Y%m%dT%H%M%SZ}-{id:8}{ext}", where stem and ext are the family's. */
	int rotated;
	const char *rotated_pattern;
	/* "zstd" or "gzip", perhaps with ":LEVEL": files that are not compressed yet are, on their
	 * way, and their keys get a suffix, .zst or .gz; or, with a setting content-encoding of the
	 * same name, that header. NULL: all are sent as they are. */
	const char *compress;
	const char
		*files_from; /* list of paths relative to the one source; "-": stdin; NULL: none */
	int nul_separated;   /* files_from is separated by NUL, not by newline */
	const char *const *folders; /* of SOURCE directories only the files directly in these are
				       looked at, absolute paths without links; not with keys of a
				       template, rotated, files_from or follow; NULL: everything */
	size_t n_folders;
	const struct s3once_rule *rules;
	size_t n_rules;
	int follow;         /* follow symlinks */
	uint64_t min_age_s; /* leave younger files for the next run */
	uint64_t max_bytes; /* leave larger files out; 0: none is too large */
	uint64_t min_bytes; /* leave smaller files out */

	/* How objects are stored: by settings for all of them, by a file that has settings for
	 * patterns too (man page, RULES; the settings here replace those of the file), and by their
	 * type. A file that was uploaded before is not uploaded again because of them. */
	const struct s3once_setting *settings;
	size_t n_settings;
	const char *rules_file;       /* NULL: none */
	const char *media_types;      /* a file like /etc/mime.types: content types by extension */
	const char *bucket_id_object; /* the key of a small object by which the bucket is told from
					 another one; made if it is missing; NULL: none */
	int new_bucket; /* where the bucket is not the one that the marks are about, or the service
			   does not tell: begin with no marks */
	int reupload;   /* look at the objects of files that are done too, and upload those that are
			   not there */
	int compare_content; /* read files that are done too: one whose content is not what was
				uploaded has changed, whatever its size and time say */
	const char *expected_bucket_owner; /* the account's 12 digits; NULL: any */
	int requester_pays;                /* we pay for requests to another's bucket */

	/* What becomes of files that are in S3. One is removed only if its mark, read at that
	 * moment, says that this very content is done, a HEAD right after that shows its object,
	 * and it is still the file that was read. */
	int removes;             /* files are removed, or moved if move_to says where to */
	uint64_t remove_after_s; /* once their marks have been done for so long */
	const char *move_to; /* a directory of the same file system, outside of all sources, that
				keeps the paths relative to them, and for rotated files the keys
				of their objects below the prefix; NULL: none */
	int remove_linked;   /* also files with several names (hard links) */
	int remove_open;     /* also files that are open for writing */
	int remove_foreign;  /* also files of another user than their folder's and their source's */

	/* How. */
	enum s3once_if_changed if_changed;
	int no_wait;           /* do not wait for files that other uploaders hold */
	int dry_run;           /* change nothing, neither in S3 nor in the marks nor in this host's
				  folders */
	unsigned concurrency;  /* at most so many requests at once; 0: 1,024, which is the most. A
				  run begins with fewer and finds out how many are worth while */
	uint64_t memory_bytes; /* for buffers and bodies; twice as much besides for `compress`; 0:
				  24 MiB */
	uint64_t part_bytes;   /* size of a part, and of the largest file sent whole; 0: 16 MiB; at
				  least 5 MiB; grows for huge files */
	unsigned attempts;     /* at each request, the first one counted; 0: as
				  AWS_MAX_ATTEMPTS or the profile says, else 9. Throttling is no
				  attempt as long as the service accepts anything */
	uint64_t give_up_after_ms;   /* how long a file whose requests were throttled, lost or
					answered with server errors is tried again, at the end of
					the run, after it failed first; and how long nothing but
					throttling is waited out, and a lease that ran out and
					cannot be renewed; 0: 5 min */
	uint64_t request_timeout_ms; /* for the answer to a request, once its body was sent; a
					body may take any time as long as it moves. Also the
					longest silence, but that is at least 30 s. 0: 60 s */
	uint64_t grace_ms;           /* to finish what is under way after a stop or at a limit; 0:
					10 s */
	uint64_t max_duration_ms;    /* begin nothing new after so long; 0: no limit */
	uint64_t max_transfer_bytes; /* begin nothing new once so many bytes of bodies were sent, or
					are on their way; 0: no limit */
	/* What bodies of objects and parts may take of the line, in order of their times; the last
	 * one holds until the first one's time. It is shared with all runs of this user on this
	 * host that have a limit. The times are of time_zone. */
	const struct s3once_rate *rates;
	size_t n_rates;       /* 0: no limit */
	int trust_conditions; /* the server is known to honour If-None-Match: no HEAD before each
				 upload (always so for AWS) */

	/* At the end, one more object lists each file that is in S3, also those that were there
	 * before: PREFIX/_s3once/runs/dt=YYYY-MM-DD/host=HOST/RUN.jsonl.gz, a JSON object a line
	 * (docs/json.md). A run that was stopped or could not do its work stores none. */
	int manifest;
	/* A private Ed25519 key in PEM, without a passphrase: the manifest gets a signature beside
	 * it, RUN.jsonl.gz.sig. NULL: none. */
	const char *sign_key_file;

	/* Marks and lease. */
	const char *marks;     /* "dynamodb:TABLE", "sqlite:PATH", "local"; NULL: "local" */
	uint64_t lease_ms;     /* 0: 30 s */
	uint64_t heartbeat_ms; /* 0: a fifth of the lease */
	const char *job; /* by which the marks keep how the last run of this host ended; NULL: by
			    its sources and its target */

	/* Access: NULL leaves it to the environment and the profile. */
	const char *endpoint_url, *dynamodb_endpoint_url, *region, *profile, *ca_bundle;
	/* The checksum that S3 verifies and keeps: "crc32c", "crc32", "crc64nvme", "sha1",
	 * "sha256", "md5" (Content-MD5 and the etag; also what servers understand that know no
	 * other) or "auto": the fastest, or "md5" where AWS_REQUEST_CHECKSUM_CALCULATION or the
	 * profile says when_required. NULL: as S3ONCE_CHECKSUM says, else "auto". */
	const char *checksum;

	/* Being told. */
	s3once_callback *callback; /* NULL: nobody listens */
	void *callback_arg;
	int report_skipped; /* also SKIPPED, LINK, YOUNG, OVERSIZED, UNDERSIZED and SPECIAL
			       events */
	uint64_t progress_interval_ms; /* 0: no PROGRESS events */
	const char *log_file; /* a file that the caller writes meanwhile, and may replace by a new
				 one of its name: it is left out, and not counted; NULL: none */
};

struct s3once_push;

/* Checks the options and opens the sources. Returns 0 and a new run; -EINVAL with a sentence in
 * ret_text (size bytes, always terminated); -ENOMEM. Nothing is sent. */
S3ONCE_PUBLIC int s3once_push_new(const struct s3once_options *options, struct s3once_push **ret,
	char *ret_text, size_t size);

/* Uploads. Returns when the run has ended, with how; once per object. It ignores SIGPIPE for the
 * process. No other thread of the process may
 * fork while it runs, unless it execs at once. */
S3ONCE_PUBLIC enum s3once_exit s3once_push_run(struct s3once_push *push);

/* In place of s3once_push_run(), with options that set dry_run: uploads nothing, and tells of each
 * of n files below the sources, named by their paths, whether its content is done: its mark says
 * so, its checksum is that of the mark, and S3 shows the object at this moment. Modification times
 * do not matter. Returns S3ONCE_EXIT_OK if all are; S3ONCE_EXIT_SETUP if it cannot be known of one;
 * else S3ONCE_EXIT_FILES. Once per object. */
S3ONCE_PUBLIC enum s3once_exit s3once_push_prove(
	struct s3once_push *push, const char *const *files, size_t n);

/* Asks a run to end: nothing new is begun, what is under way may finish within the grace, then it
 * is abandoned; upload ids are kept and the session is released. Callable from any thread and from
 * a signal handler; a second call ends the grace. */
S3ONCE_PUBLIC void s3once_push_stop(struct s3once_push *push);

/* Lifts the limit of `rates` for this run, or brings it back. Callable from any thread and from a
 * signal handler. */
S3ONCE_PUBLIC void s3once_push_toggle_bandwidth(struct s3once_push *push);

/* Requests by kind, as sent: the name of kind i ("PutObject", "UpdateItem", …) and its count; NULL
 * past the last. Static string. After run. */
S3ONCE_PUBLIC const char *s3once_push_requests(
	const struct s3once_push *push, size_t i, uint64_t *ret_count);

/* The key of the manifest that the run has stored, or "". Valid until free. After run. */
S3ONCE_PUBLIC const char *s3once_push_manifest(const struct s3once_push *push);

/* The final counts; valid until free. After run. */
S3ONCE_PUBLIC const struct s3once_counts *s3once_push_counts(const struct s3once_push *push);

/* After run has returned, or instead of it. NULL is fine. */
S3ONCE_PUBLIC void s3once_push_free(struct s3once_push *push);

/* "0.1.0". Static. */
S3ONCE_PUBLIC const char *s3once_version(void);

#ifdef __cplusplus
}
#endif
#endif
