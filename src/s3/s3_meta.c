#include "s3/s3_meta.h"
#include "base/text.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS 1000000000

void s3_format_mtime(int64_t mtime_ns, char ret[static S3_MTIME_CHARS])
{
	uint64_t ns = mtime_ns < 0 ? 0 - (uint64_t)mtime_ns : (uint64_t)mtime_ns;
	int n = snprintf(ret, S3_MTIME_CHARS, "%s%" PRIu64 ".%09" PRIu64, mtime_ns < 0 ? "-" : "",
		ns / NS, ns % NS);
	while (ret[n - 1] == '0')
		n--;
	if (ret[n - 1] == '.')
		n--;
	ret[n] = '\0';
}

int64_t s3_parse_mtime(const char *s)
{
	int sign = *s == '-' ? -1 : 1;
	s += sign < 0;
	size_t whole = strspn(s, "0123456789");
	if (whole == 0 || whole > 10 || (s[whole] && s[whole] != '.'))
		return 0;
	int64_t ns = (int64_t)strtoull(s, NULL, 10);
	if (ns >= INT64_MAX / NS)
		return 0;
	const char *fraction = s[whole] ? s + whole + 1 : "";
	for (int i = 0; i < 9; i++) {
		if (*fraction && (*fraction < '0' || *fraction > '9'))
			return 0;
		ns = ns * 10 + (*fraction ? *fraction++ - '0' : 0);
	}
	return sign * ns;
}

int s3_key_hash(struct digest *digest, const char *bucket, const char *key,
	char ret[static S3_KEY_HASH_CHARS + 1])
{
	struct sums sums;
	char hex[2 * sizeof sums.sha256 + 1];
	if (digest_restart(digest, DIGEST_SHA256))
		return -ENOMEM;
	digest_update(digest, bucket, strlen(bucket));
	digest_update(digest, "/", 1);
	digest_update(digest, key, strlen(key));
	digest_finish(digest, &sums);
	hex_encode(sums.sha256, sizeof sums.sha256, hex);
	memcpy(ret, hex, S3_KEY_HASH_CHARS);
	ret[S3_KEY_HASH_CHARS] = '\0';
	return 0;
}

static void format_sum(const struct sums *sums, enum checksum kind, char ret[static S3_SUMS_CHARS])
{
	const size_t n = strlen(ret);
	char base64[CHECKSUM_BASE64_MAX + 1];
	if (!(sums->kinds & DIGEST_OF(kind)))
		return;
	checksum_to_base64(kind, sums_bytes(sums, kind), base64);
	snprintf(ret + n, S3_SUMS_CHARS - n, "%s%s:%s", n ? " " : "", checksum_kinds[kind].name,
		base64);
}

void s3_format_sums(const struct sums *sums, enum checksum checksum, char ret[static S3_SUMS_CHARS])
{
	ret[0] = '\0';
	format_sum(sums, checksum, ret);
	if (checksum != CHECKSUM_MD5)
		format_sum(sums, CHECKSUM_MD5, ret);
}

void s3_parse_sums(const char *s, struct sums *ret)
{
	unsigned char bytes[CHECKSUM_BYTES_MAX];
	*ret = (struct sums){0};
	while (*s) {
		const size_t n = strcspn(s, " "), name = strcspn(s, ": ");
		const enum checksum kind = checksum_named(s, name);
		if (kind != CHECKSUMS && s[name] == ':' &&
			!checksum_from_base64(kind, s + name + 1, n - name - 1, bytes)) {
			memcpy((char *)ret + checksum_kinds[kind].at, bytes,
				checksum_kinds[kind].bytes);
			ret->kinds |= DIGEST_OF(kind);
		}
		s += n + (s[n] == ' ');
	}
}
