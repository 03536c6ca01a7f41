/* Each way to a CRC equals the definition: bit by bit, as the standards write it. */
#include "../check.h"
#include "base/checksum.h"
#include <stdlib.h>

/* From the standards, not reflected. */
static const struct {
	unsigned width;
	uint64_t polynomial, check; /* of "123456789", as published */
} standards[CHECKSUM_CRCS] = {
	[CHECKSUM_CRC32C] = {32, 0x1EDC6F41, 0xE3069283},
	[CHECKSUM_CRC32] = {32, 0x04C11DB7, 0xCBF43926},
	[CHECKSUM_CRC64NVME] = {64, 0xAD93D23594C93659, 0xAE8B14860A799888},
};

static uint64_t reflected(uint64_t value, unsigned width)
{
	uint64_t result = 0;
	for (unsigned i = 0; i < width; i++)
		result |= (value >> i & 1) << (width - 1 - i);
	return result;
}

static uint64_t by_definition(enum checksum kind, const unsigned char *s, size_t n)
{
	const unsigned width = standards[kind].width;
	const uint64_t mask = ~0ULL >> (64 - width), top = 1ULL << (width - 1);
	uint64_t crc = mask;
	for (size_t i = 0; i < n; i++) {
		crc ^= reflected(s[i], 8) << (width - 8);
		for (int bit = 0; bit < 8; bit++)
			crc = (crc << 1 ^ (crc & top ? standards[kind].polynomial : 0)) & mask;
	}
	return reflected(crc ^ mask, width);
}

#define SIZE 1200
static unsigned char data[SIZE + 16];

/* At each size and alignment: what tells the ways through the code apart. */
static void test_sizes(enum checksum kind)
{
	CHECK_INT(crc_add(kind, 0, "123456789", 9), standards[kind].check);
	CHECK_INT(crc_add_portable(kind, 0, "123456789", 9), standards[kind].check);
	CHECK_INT(
		by_definition(kind, (const unsigned char *)"123456789", 9), standards[kind].check);
	for (size_t n = 0; n <= SIZE; n++) {
		const unsigned char *s = data + n % 17;
		const uint64_t want = by_definition(kind, s, n);
		CHECK_INT(crc_add(kind, 0, s, n), want);
		CHECK_INT(crc_add_portable(kind, 0, s, n), want);
	}
}

/* Every split of every size up to 300: added on, and combined. */
static void test_splits(enum checksum kind)
{
	for (size_t n = 0; n <= 300; n++) {
		const uint64_t want = by_definition(kind, data, n);
		for (size_t cut = 0; cut <= n; cut++) {
			uint64_t a = crc_add(kind, 0, data, cut);
			uint64_t b = crc_add_portable(kind, 0, data + cut, n - cut);
			CHECK_INT(crc_add(kind, a, data + cut, n - cut), want);
			CHECK_INT(crc_add_portable(kind, a, data + cut, n - cut), want);
			CHECK_INT(crc_combine(kind, a, b, n - cut), want);
		}
	}
}

int main(void)
{
	srandom(7);
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (unsigned char)(random() >> 7);
	for (int kind = 0; kind < CHECKSUM_CRCS; kind++) {
		test_sizes((enum checksum)kind);
		test_splits((enum checksum)kind);
	}
	return check_result();
}
