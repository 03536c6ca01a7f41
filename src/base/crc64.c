/* CRC-64/NVME by carry-less multiplication, where the processor has it. crc.c calls it for what
 * is long enough. */
#include "base/crc64.h"
#ifdef HAVE_CRC64_FOLD
#include <immintrin.h>

int crc64_fold_is_there(void)
{
	return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse2");
}

/* The register moved on by the distance of `by`, onto what stands there. The low half has the
 * higher powers, since bits and bytes are reflected. */
__attribute__((target("pclmul,sse2"))) static inline __m128i on(__m128i x, __m128i by, __m128i next)
{
	const __m128i low = _mm_clmulepi64_si128(x, by, 0x00);
	const __m128i high = _mm_clmulepi64_si128(x, by, 0x11);
	return _mm_xor_si128(next, _mm_xor_si128(low, high));
}

/* Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction"
 * (Intel, 2009). Four registers, so that four multiplications are under way at once. */
__attribute__((target("pclmul,sse2"))) void crc64_fold(const struct crc64_fold *by, uint64_t crc,
	const void *bytes, size_t n, unsigned char ret[static 16])
{
	const __m128i *s = bytes;
	const __m128i by_4 = _mm_set_epi64x((long long)by->by_4_high, (long long)by->by_4_low);
	const __m128i by_1 = _mm_set_epi64x((long long)by->by_1_high, (long long)by->by_1_low);
	__m128i a = _mm_loadu_si128(s), b = _mm_loadu_si128(s + 1);
	__m128i c = _mm_loadu_si128(s + 2), d = _mm_loadu_si128(s + 3);
	a = _mm_xor_si128(a, _mm_set_epi64x(0, (long long)crc));
	for (n -= 64, s += 4; n >= 64; n -= 64, s += 4) {
		a = on(a, by_4, _mm_loadu_si128(s));
		b = on(b, by_4, _mm_loadu_si128(s + 1));
		c = on(c, by_4, _mm_loadu_si128(s + 2));
		d = on(d, by_4, _mm_loadu_si128(s + 3));
	}
	a = on(on(on(a, by_1, b), by_1, c), by_1, d);
	for (; n; n -= 16)
		a = on(a, by_1, _mm_loadu_si128(s++));
	_mm_storeu_si128((__m128i *)(void *)ret, a);
}
#endif
