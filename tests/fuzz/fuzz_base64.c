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
	char *again = malloc(n + 1), sum_again[CHECKSUM_BASE64_MAX + 1];
	unsigned char sum[CHECKSUM_BYTES_MAX];
	ENSURE(again && (bytes || n < 4));
	int decoded = base64_decode(s, bytes);
	ENSURE(decoded >= 0 || decoded == -EINVAL);
	if (decoded >= 0) { /* there is one way only to write bytes */
		base64_encode(bytes, (size_t)decoded, again);
		ENSURE(strcmp(again, s) == 0);
	}
	for (unsigned kind = 0; kind < CHECKSUMS; kind++) {
		bool is_one = checksum_from_base64((enum checksum)kind, s, n, sum) == 0;
		ENSURE(is_one == (decoded == (int)checksum_kinds[kind].bytes));
		if (!is_one)
			continue;
		checksum_to_base64((enum checksum)kind, sum, sum_again);
		ENSURE(strcmp(sum_again, s) == 0);
	}
	free(bytes);
	free(again);
}

static void sum(const uint8_t *data, size_t size)
{
	size_t cut = size ? data[0] % size : 0;
	for (unsigned i = 0; i < CHECKSUM_CRCS; i++) {
		const enum checksum kind = (enum checksum)i;
		uint64_t whole = crc_add(kind, 0, data, size), head = crc_add(kind, 0, data, cut);
		uint64_t tail = crc_add_portable(kind, 0, data + cut, size - cut);
		ENSURE(whole == crc_add_portable(kind, 0, data, size));
		ENSURE(whole == crc_add(kind, head, data + cut, size - cut));
		ENSURE(whole == crc_combine(kind, head, tail, size - cut));
	}
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
