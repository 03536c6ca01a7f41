/* S3's <Error> replies, also where a 200 must carry XML, and etags: what is handed out fits, and a
 * region can be part of a host name. */
#include "fuzz.h"
#include "s3/s3_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char code[2][64], message[2][256], region[2][64], etag[S3_ETAG_MAX + 1];
	struct http_reply reply = {.status = 200, .body = TEXT(size)};
	text_add_bytes(&reply.body, data, size);
	int plain = s3_reply_error(&reply, code[0], message[0], region[0]);
	int strict = s3_reply_error_or_xml(&reply, code[1], message[1], region[1]);
	ENSURE(plain == strict || (plain == 0 && strict < 0));
	for (int i = 0; i < 2; i++) {
		ENSURE(strnlen(code[i], 64) < 64 && strnlen(message[i], 256) < 256);
		ENSURE(strspn(region[i], "abcdefghijklmnopqrstuvwxyz0123456789-") ==
			strnlen(region[i], 64));
	}
	ENSURE(strcmp(code[0], code[1]) == 0 && strcmp(message[0], message[1]) == 0);
	s3_strip_etag(text_string(&reply.body), etag);
	ENSURE(strnlen(etag, sizeof etag) <= reply.body.len && memchr(etag, 0, sizeof etag));
	http_reply_clear(&reply);
	return 0;
}
