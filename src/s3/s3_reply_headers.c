#include "s3/s3_reply_headers.h"
#include "s3/s3_reply.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_encrypted(const struct http_reply *reply)
{
	const char *sse = http_reply_header(reply, "x-amz-server-side-encryption");
	return (sse && strncmp(sse, "aws:kms", 7) == 0) ||
	       http_reply_header(reply, "x-amz-server-side-encryption-customer-algorithm");
}

bool s3_reply_etag_is_opaque(const struct s3 *s3, const struct http_reply *reply)
{
	return s3_knows(s3, S3_ETAG_IS_MD5) == S3_NO || is_encrypted(reply);
}

bool s3_reply_lacks_encryption(const struct s3_target *target, const struct http_reply *reply)
{
	return !s3_headers_encryption_is(target->headers,
		http_reply_header(reply, "x-amz-server-side-encryption"),
		http_reply_header(reply, "x-amz-server-side-encryption-customer-key-md5"));
}

void s3_learn_etag(struct s3 *s3, const struct sums *sums, const struct http_reply *reply,
	const struct s3_sum *sum)
{
	char etag[S3_ETAG_MAX + 1], md5[33], base64[CHECKSUM_BASE64_MAX + 1];
	const char *told = http_reply_header(reply, "etag");
	s3_strip_etag(told ? told : "", etag);
	if (!(sums->kinds & DIGEST_MD5) || is_encrypted(reply) || strlen(etag) != 32)
		return;
	hex_encode(sums->md5, sizeof sums->md5, md5);
	if (strcasecmp(etag, md5) == 0) {
		s3_learn(s3, S3_ETAG_IS_MD5, true);
		return;
	}
	/* The etag differs. If the checksum shows that the content is the same, the etags of this
	 * server are not MD5s. */
	if (!sum->text[0] || !(sums->kinds & DIGEST_OF(sum->kind)) ||
		s3_knows(s3, S3_ETAG_IS_MD5) != S3_UNKNOWN)
		return;
	checksum_to_base64(sum->kind, sums_bytes(sums, sum->kind), base64);
	if (strcmp(sum->text, base64) == 0)
		s3_learn(s3, S3_ETAG_IS_MD5, false);
}

void s3_read_sum(const struct http_reply *reply, struct s3_sum *ret)
{
	*ret = (struct s3_sum){0};
	for (unsigned kind = 0; kind < CHECKSUMS && !ret->text[0]; kind++) {
		ret->kind = (enum checksum)kind;
		if (checksum_kinds[kind].header)
			s3_copy_header(
				reply, checksum_kinds[kind].header, ret->text, sizeof ret->text);
	}
}

void s3_copy_header(const struct http_reply *reply, const char *name, char *ret, size_t size)
{
	const char *value = http_reply_header(reply, name);
	if (!value || snprintf(ret, size, "%s", value) >= (int)size)
		ret[0] = '\0';
}
