/* Computes CRCs with the fastest means available: isa-l, zlib, the processor's carry-less
 * multiplication, or portable C. Also computes the CRC of two pieces together from the CRC of each.
 * checksum.c calls it. */
#include "base/checksum.h"
#include <endian.h>
#include <string.h>
#include <uv.h>
#include <zlib.h>
#ifdef HAVE_ISAL
#include <isa-l/crc.h>
#endif

/* CRC-64/NVME by carry-less multiplication, where the processor has it. */
#if defined __x86_64__
#include <immintrin.h>
#define HAVE_CRC64_FOLD 1
#define CRC64_FOLD_MIN  64 /* in bytes: four registers */

/* The exponents n of the constants x^n by which the folding multiplies, modulo the polynomial and
 * reflected. The first two constants move a register on by four registers (512 bits), the last two
 * by one register (128 bits). The first of each pair is for the half of a register that has the
 * higher powers, and so moves 64 bits further. Each exponent is one less than these distances,
 * since the product of two reflected halves is one bit short. */
static const uint64_t crc64_powers[4] = {512 + 63, 512 - 1, 128 + 63, 128 - 1};

/* Shifts the register x by the distance of the constants `by`, and adds `next`, the 16 bytes at
 * that place. The constant for the low half of x has the higher power, since bits and bytes are
 * reflected. */
__attribute__((target("pclmul,sse2"))) static inline __m128i fold(
	__m128i x, __m128i by, __m128i next)
{
	const __m128i low = _mm_clmulepi64_si128(x, by, 0x00);
	const __m128i high = _mm_clmulepi64_si128(x, by, 0x11);
	return _mm_xor_si128(next, _mm_xor_si128(low, high));
}

/* Folds n bytes, a multiple of 16 and at least CRC64_FOLD_MIN, into the 16 bytes of ret. A raw CRC
 * is one that is not inverted at its beginning and its end. `crc` is the raw CRC of the bytes
 * before. The raw CRC of ret, begun with 0, is the raw CRC of everything so far.
 *
 * The method is from Gopal and others, "Fast CRC Computation for Generic Polynomials Using
 * PCLMULQDQ Instruction" (Intel, 2009). It uses four registers, so that four multiplications are
 * under way at once. */
__attribute__((target("pclmul,sse2"))) static void crc64_fold(const uint64_t by[static 4],
	uint64_t crc, const void *bytes, size_t n, unsigned char ret[static 16])
{
	const __m128i *s = bytes;
	const __m128i by_4 = _mm_loadu_si128((const void *)by);
	const __m128i by_1 = _mm_loadu_si128((const void *)(by + 2));
	__m128i a = _mm_loadu_si128(s), b = _mm_loadu_si128(s + 1);
	__m128i c = _mm_loadu_si128(s + 2), d = _mm_loadu_si128(s + 3);
	a = _mm_xor_si128(a, _mm_set_epi64x(0, (long long)crc));
	for (n -= 64, s += 4; n >= 64; n -= 64, s += 4) {
		a = fold(a, by_4, _mm_loadu_si128(s));
		b = fold(b, by_4, _mm_loadu_si128(s + 1));
		c = fold(c, by_4, _mm_loadu_si128(s + 2));
		d = fold(d, by_4, _mm_loadu_si128(s + 3));
	}
	a = fold(fold(fold(a, by_1, b), by_1, c), by_1, d);
	for (; n; n -= 16)
		a = fold(a, by_1, _mm_loadu_si128(s++));
	_mm_storeu_si128((__m128i *)(void *)ret, a);
}
#endif

/* The polynomials, reflected: the highest bit is x^0. So `one`, which has this bit alone, is the
 * polynomial 1. */
static const struct {
	uint64_t one, polynomial;
} crcs[CHECKSUM_CRCS] = {
	[CHECKSUM_CRC32C] = {.one = 1ULL << 31, .polynomial = 0x82F63B78},
	[CHECKSUM_CRC32] = {.one = 1ULL << 31, .polynomial = 0xEDB88320},
	[CHECKSUM_CRC64NVME] = {.one = 1ULL << 63, .polynomial = 0x9A6C9329AC4BC9B5},
};

static struct {
	/* byte[kind][k][b] is the raw CRC of the byte b with k zero bytes after it. */
	uint64_t byte[CHECKSUM_CRCS][8][256];
#ifdef HAVE_CRC64_FOLD
	uint64_t fold[4]; /* x^n for each n of crc64_powers */
	bool can_fold;
#endif
} tables;
static uv_once_t tables_once = UV_ONCE_INIT;

/* The polynomial a, multiplied by x, modulo ours. The lowest bit of a is its highest power. */
static uint64_t times_x(enum checksum kind, uint64_t a)
{
	return (a >> 1) ^ ((a & 1) ? crcs[kind].polynomial : 0);
}

/* The product of two polynomials modulo ours. `bit` goes through the powers of a from x^0 up, and b
 * is multiplied by x at each step. */
static uint64_t multiply(enum checksum kind, uint64_t a, uint64_t b)
{
	uint64_t product = 0;
	for (uint64_t bit = crcs[kind].one; bit; bit >>= 1) {
		product ^= (a & bit) ? b : 0;
		b = times_x(kind, b);
	}
	return product;
}

/* x^n modulo our polynomial, by repeated squaring. */
static uint64_t power_of_x(enum checksum kind, uint64_t n)
{
	uint64_t power = crcs[kind].one, square = times_x(kind, power);
	for (; n; n >>= 1) {
		if (n & 1)
			power = multiply(kind, power, square);
		square = multiply(kind, square, square);
	}
	return power;
}

/* Fills the tables, before the first CRC that needs them. */
static void fill_tables(void)
{
	for (int kind = 0; kind < CHECKSUM_CRCS; kind++) {
		uint64_t(*byte)[256] = tables.byte[kind];
		for (uint64_t i = 0; i < 256; i++) {
			byte[0][i] = i;
			for (int bit = 0; bit < 8; bit++)
				byte[0][i] = times_x((enum checksum)kind, byte[0][i]);
		}
		/* Each row is made of the one before: one more zero byte follows. */
		for (int i = 256; i < 8 * 256; i++) {
			const uint64_t before = byte[i / 256 - 1][i % 256];
			byte[i / 256][i % 256] = (before >> 8) ^ byte[0][before & 0xFF];
		}
	}
#ifdef HAVE_CRC64_FOLD
	for (size_t i = 0; i < 4; i++)
		tables.fold[i] = power_of_x(CHECKSUM_CRC64NVME, crc64_powers[i]);
	tables.can_fold = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse2");
#endif
}

/* Adds n bytes to a raw state, which is inverted neither before nor after. Eight bytes are taken at
 * a time (slicing by 8): each needs one table look-up, and the eight are independent. */
static uint64_t add_raw(enum checksum kind, uint64_t crc, const unsigned char *s, size_t n)
{
	const uint64_t(*byte)[256] = (const uint64_t(*)[256])tables.byte[kind];
	for (; n >= 8; n -= 8, s += 8) {
		uint64_t eight;
		memcpy(&eight, s, sizeof eight);
		eight = le64toh(eight) ^ crc;
		crc = byte[7][eight & 0xFF] ^ byte[6][eight >> 8 & 0xFF] ^
		      byte[5][eight >> 16 & 0xFF] ^ byte[4][eight >> 24 & 0xFF] ^
		      byte[3][eight >> 32 & 0xFF] ^ byte[2][eight >> 40 & 0xFF] ^
		      byte[1][eight >> 48 & 0xFF] ^ byte[0][eight >> 56];
	}
	for (; n; n--, s++)
		crc = (crc >> 8) ^ byte[0][(crc ^ *s) & 0xFF];
	return crc;
}

uint64_t crc_add_portable(enum checksum kind, uint64_t crc, const void *bytes, size_t n)
{
	uv_once(&tables_once, fill_tables);
	/* All bits of the CRC. For 64 bits, 2 * one overflows to 0, and 0 - 1 has all bits. */
	const uint64_t ones = 2 * crcs[kind].one - 1;
	return add_raw(kind, crc ^ ones, bytes, n) ^ ones;
}

#ifdef HAVE_ISAL
/* Adds n bytes with crc32_iscsi() of isa-l, which never inverts the CRC, and takes the length as an
 * int and the bytes without const. */
static uint64_t add_iscsi(uint64_t crc, const void *bytes, size_t n)
{
	unsigned char *s = (unsigned char *)(uintptr_t)bytes;
	unsigned raw = ~(unsigned)crc;
	while (n) {
		const int chunk = n < 1 << 30 ? (int)n : 1 << 30;
		raw = crc32_iscsi(s, chunk, raw);
		s += chunk;
		n -= (size_t)chunk;
	}
	return (uint32_t)~raw;
}
#endif

uint64_t crc_add(enum checksum kind, uint64_t crc, const void *bytes, size_t n)
{
	if (!n) /* with `bytes` NULL, crc32_z() would return 0 instead of `crc` */
		return crc;
#ifdef HAVE_ISAL
	if (kind == CHECKSUM_CRC32C)
		return add_iscsi(crc, bytes, n);
	if (kind == CHECKSUM_CRC32) /* this one inverts the CRC before and after, as zlib's does */
		return crc32_gzip_refl((uint32_t)crc, bytes, n);
#else
	if (kind == CHECKSUM_CRC32)
		return crc32_z((uLong)crc, bytes, n);
#endif
#ifdef HAVE_CRC64_FOLD
	uv_once(&tables_once, fill_tables);
	if (kind == CHECKSUM_CRC64NVME && tables.can_fold && n >= CRC64_FOLD_MIN) {
		const unsigned char *s = bytes;
		const size_t folded = n & ~(size_t)15;
		unsigned char rest[16];
		/* Each ~ is an inversion: of the CRC so far, and of the one that is returned. */
		crc64_fold(tables.fold, ~crc, s, folded, rest);
		crc = add_raw(kind, 0, rest, sizeof rest);
		return ~add_raw(kind, crc, s + folded, n - folded);
	}
#endif
	return crc_add_portable(kind, crc, bytes, n);
}

/* The CRC of A followed by n zero bytes is that of A times x^(8n). The CRC of B is added to it. The
 * inversions of the three CRCs cancel out. */
uint64_t crc_combine(enum checksum kind, uint64_t crc_a, uint64_t crc_b, uint64_t bytes_b)
{
	return multiply(kind, power_of_x(kind, 8 * bytes_b), crc_a) ^ crc_b;
}
