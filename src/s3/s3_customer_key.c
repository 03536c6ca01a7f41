#include "s3/s3_customer_key.h"
#include "base/checksum.h"
#include "base/named_file.h"
#include "base/quote.h"
#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>
#include <unistd.h>

#define KEY_BYTES 32

/* Reads the file, at most size bytes. Returns the number of bytes, or -errno. */
static ssize_t read_file(const char *path, char *buf, size_t size)
{
	int fd = named_file_open(path);
	if (fd < 0)
		return fd;
	ssize_t n = 0, got = 1;
	while (got > 0 && (size_t)n < size) {
		got = read(fd, buf + n, size - (size_t)n);
		n = got < 0 ? -errno : n + got;
	}
	close(fd);
	return n;
}

/* A key in base64 is brought into its bytes. */
static bool decode_key(char *buf, size_t n, unsigned char ret[static KEY_BYTES])
{
	unsigned char bytes[KEY_BYTES + 1];
	if (n == KEY_BYTES) {
		memcpy(ret, buf, KEY_BYTES);
		return true;
	}
	while (n && strchr("\r\n \t", buf[n - 1]))
		n--;
	buf[n] = '\0';
	bool good = n == S3_CUSTOMER_KEY_BASE64 - 1 && base64_decode(buf, bytes) == KEY_BYTES;
	if (good)
		memcpy(ret, bytes, KEY_BYTES);
	OPENSSL_cleanse(bytes, sizeof bytes);
	return good;
}

int s3_customer_key_read(const char *path, struct text *ret, struct problem *ret_problem)
{
	char buf[64], base64[S3_CUSTOMER_KEY_BASE64];
	unsigned char key[KEY_BYTES];
	ssize_t n = read_file(path, buf, sizeof buf - 1);
	bool good = n >= 0 && decode_key(buf, (size_t)n, key);
	if (good) {
		base64_encode(key, sizeof key, base64);
		text_add(ret, base64);
	} else if (n < 0) {
		problem_set(ret_problem, "%s cannot be read: %s", quote(path).text,
			named_file_error((int)n));
	} else {
		problem_set(ret_problem,
			"%s holds no key: 32 bytes, or their base64; make one with: openssl rand 32",
			quote(path).text);
	}
	OPENSSL_cleanse(buf, sizeof buf);
	OPENSSL_cleanse(key, sizeof key);
	OPENSSL_cleanse(base64, sizeof base64);
	return good ? 0 : -EINVAL;
}

int s3_customer_key_md5(const char *base64, char ret[static 25])
{
	unsigned char key[KEY_BYTES + 1];
	struct digest digest;
	struct sums sums;
	int error = base64_decode(base64, key) == KEY_BYTES ? digest_init(&digest, DIGEST_MD5)
							    : -EINVAL;
	if (!error) {
		digest_update(&digest, key, KEY_BYTES);
		digest_finish(&digest, &sums);
		digest_clear(&digest);
		base64_encode(sums.md5, sizeof sums.md5, ret);
	}
	OPENSSL_cleanse(key, sizeof key);
	return error;
}
