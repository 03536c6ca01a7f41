/* Base64 and checksums lose nothing. */
#include "base/checksum.h"
#include "base/text.h"
#include "fuzz.h"
#include <errno.h>

static void encode(const uint8_t *data, size_t size)
{
	size_t chars = 4 * ((size + 2) / 3);
	char *base64 = malloc(chars + 1), *hex = malloc(2 * size + 1);
	unsigned char *back = malloc(3 * (chars / 4) + 1);
	ENSURE(base64 && hex && back);
	base64_encode(data, size, base64);
	hex_encode(data, size, hex);
	ENSURE(strlen(base64) == chars && strlen(hex) == 2 * size);
	ENSURE(base64_decode(base64, back) == (int)size);
	ENSURE(size == 0 || memcmp(back, data, size) == 0);
	free(base64);
	free(hex);
	free(back);
}

static void decode(const char *s)
{
	size_t n = strlen(s);
	unsigned char *bytes = malloc(3 * (n / 4));
	char *again = malloc(n + 1), crc_again[CRC32C_BASE64_CHARS + 1];
	ENSURE(again && (bytes || n < 4));
	int decoded = base64_decode(s, bytes);
	ENSURE(decoded >= 0 || decoded == -EINVAL);
	if (decoded >= 0) { /* there is one way only to write bytes */
		base64_encode(bytes, (size_t)decoded, again);
		ENSURE(strcmp(again, s) == 0);
	}
	uint32_t crc;
	bool is_crc = crc32c_from_base64(s, &crc) == 0;
	ENSURE(is_crc == (decoded == 4));
	if (is_crc) {
		crc32c_to_base64(crc, crc_again);
		ENSURE(strcmp(crc_again, s) == 0);
	}
	free(bytes);
	free(again);
}

static void sum(const uint8_t *data, size_t size)
{
	size_t cut = size ? data[0] % size : 0;
	uint32_t whole = crc32c(0, data, size), head = crc32c(0, data, cut);
	ENSURE(whole == crc32c_portable(0, data, size));
	ENSURE(whole == crc32c(head, data + cut, size - cut));
	ENSURE(whole == crc32c_combine(head, crc32c(0, data + cut, size - cut), size - cut));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *s = fuzz_string(data, size);
	encode(data, size);
	decode(s);
	sum(data, size);
	free(s);
	return 0;
}
