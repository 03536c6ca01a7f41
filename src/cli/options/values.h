/* Strict parsers of option values and of URLs. Each returns 0, or -EINVAL with a sentence that
 * quotes the value. All are pure, except for those that examine a file or directory. */
#pragma once
#include "base/problem.h"
#include "base/text.h"
#include "s3once/push.h"
#include "scan/key/key.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Decimal digits and nothing else. */
int value_number(const char *s, uint64_t *ret, struct problem *ret_problem);
/* A duration such as "30s", "5min" or "1h30m", in milliseconds. It has whole numbers with the units
 * d, h, m (or min), s (or sec) and ms, each once and the largest first. "0" needs no unit. */
int value_duration(const char *s, uint64_t *ret_ms, struct problem *ret_problem);
/* A whole number of bytes, or one with K, M, G or T, in either case. "24M", "24MB", "24Mi" and
 * "24MiB" are the same. Units are always powers of 1,024, as in the AWS CLI and rclone. */
int value_size(const char *s, uint64_t *ret_bytes, struct problem *ret_problem);

/* These add a value in the largest unit that leaves a whole number, such as "30s" and "64MiB". */
void value_show_duration(struct text *t, uint64_t ms);
void value_show_size(struct text *t, uint64_t bytes);

#define BANDWIDTH_RATES_MAX 48 /* one for each half hour of a day */

/* Reads the value of --bwlimit: one rate ("20M"), or rates by time of day ("08:00,2M 19:00,off") in
 * any order. ret_rates is in the order of the times. Returns 0, or -EINVAL with a sentence that
 * begins with the option's name. */
int bandwidth_value(const char *value, struct s3once_rate ret_rates[static BANDWIDTH_RATES_MAX],
	size_t *ret_n, struct problem *ret_problem);

/* The value of --metrics-listen: where a server of this host listens. */
struct listen_address {
	struct sockaddr_storage address;
	socklen_t length;
};

/* Reads "PORT", which is on 127.0.0.1, "ADDRESS:PORT", or "[ADDRESS]:PORT" of IPv6. Names are not
 * looked up. Returns 0, or -EINVAL with a sentence that begins with the option's name. */
int listen_address_parse(
	const char *value, struct listen_address *ret, struct problem *ret_problem);

/* Checks that the path is a directory in which this user may create files. Returns 0, or -errno
 * with a sentence. */
int directory_option_check(const char *name, const char *path, struct problem *ret_problem);
enum made_file { METRICS_FILE, LOG_FILE };
/* Checks that the path does not name something that a run must neither replace nor, for --log-file,
 * append to, such as a directory. A missing folder or permission is no error here, since it must
 * not keep a run from uploading: the run reports it when it writes the file. Returns 0, or -EINVAL
 * with a sentence. */
int output_file_check(enum made_file made, const char *path, struct problem *ret_problem);

/* s3://BUCKET[/KEY], where BUCKET may be the ARN of an access point. The limits below are those of
 * "General purpose bucket naming rules", "Naming Amazon S3 objects" and "Referencing access points"
 * (Amazon S3 User Guide). */
#define BUCKET_MAX 63
#define ARN_MAX    255

struct s3_url {
	char bucket[ARN_MAX + 1];
	/* What follows the '/', byte for byte, or "". It is borrowed from the argument. */
	const char *key;
};

/* Whether s begins with s3:, valid or not. */
bool url_is_s3(const char *s);
/* 0, or -EINVAL with a sentence that quotes s. */
int url_parse(const char *s, struct s3_url *ret, struct problem *ret_problem);
/* Likewise for the URL of a job's target, which stands in a file. Also refuses what a shell, a
 * template or strftime(3) would fill in, such as $HOST, {host} or %Y, since nothing does here: all
 * hosts would upload to one such prefix. */
int url_parse_target(const char *s, struct s3_url *ret, struct problem *ret_problem);
/* Refuses a field such as {host} in the key of a URL that was typed. A $ or a % is deliberate
 * there, since the shell fills in its own. Returns 0, or -EINVAL with a sentence. */
int url_refuse_fields(const char *key, struct problem *ret_problem);
/* Returns the prefix that push makes of the key of a URL: "logs" stands for "logs/". */
struct url_prefix {
	char text[KEY_BYTES_MAX + 2];
};
struct url_prefix url_prefix(const char *key);
