/* sum_dump FILE SPLIT...: each checksum of a file, a line "NAME WAY HEX" for each way to it: whole,
 * portable (the CRCs without the processor's help), and in two parts split there, combined or,
 * where it does not combine, that of the parts' checksums. sum_dump --speed: what each does in a
 * second, from one buffer of 1 MiB. */
#include "base/checksum.h"
#include "base/text.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const unsigned all = (1U << CHECKSUMS) - 1;

static struct sums sum(const unsigned char *bytes, size_t n, unsigned kinds)
{
	struct digest digest;
	struct sums sums;
	if (digest_init(&digest, kinds))
		abort();
	digest_update(&digest, bytes, n);
	digest_finish(&digest, &sums);
	digest_clear(&digest);
	return sums;
}

static void show(enum checksum kind, const char *way, const unsigned char *bytes)
{
	char hex[2 * CHECKSUM_BYTES_MAX + 1];
	hex_encode(bytes, checksum_kinds[kind].bytes, hex);
	printf("%s %s %s\n", checksum_kinds[kind].name, way, hex);
}

static void show_portable(const unsigned char *bytes, size_t n)
{
	for (int kind = 0; kind < CHECKSUM_CRCS; kind++)
		printf("%s portable %0*" PRIx64 "\n", checksum_kinds[kind].name,
			(int)checksum_kinds[kind].bytes * 2,
			crc_add_portable((enum checksum)kind, 0, bytes, n));
}

static void show_split(const unsigned char *bytes, size_t n, size_t at)
{
	char way[32];
	struct sums parts[] = {sum(bytes, at, all), sum(bytes + at, n - at, all)};
	const struct sums whole = sums_combine(parts, 2);
	unsigned char composed[CHECKSUM_BYTES_MAX];
	snprintf(way, sizeof way, "%zu", at);
	for (unsigned i = 0; i < CHECKSUMS; i++) {
		const enum checksum kind = (enum checksum)i;
		if (sums_compose(parts, 2, kind, composed))
			abort();
		show(kind, way,
			checksum_kinds[kind].combines ? sums_bytes(&whole, kind) : composed);
	}
}

static int dump(const char *path, char **splits)
{
	FILE *file = fopen(path, "rb");
	const size_t most = 64 << 20;
	unsigned char *bytes = malloc(most + 1);
	if (!file || !bytes)
		return 1;
	const size_t n = fread(bytes, 1, most + 1, file);
	fclose(file);
	const struct sums sums = sum(bytes, n, all);
	for (unsigned kind = 0; kind < CHECKSUMS; kind++)
		show((enum checksum)kind, "whole", sums_bytes(&sums, (enum checksum)kind));
	show_portable(bytes, n);
	for (; *splits; splits++)
		show_split(bytes, n, strtoul(*splits, NULL, 10));
	free(bytes);
	return 0;
}

static uint64_t sink;

static void do_kind(unsigned kind, const unsigned char *bytes, size_t n)
{
	sink += sum(bytes, n, DIGEST_OF(kind)).bytes;
}

static void do_portable(unsigned kind, const unsigned char *bytes, size_t n)
{
	sink += crc_add_portable((enum checksum)kind, sink, bytes, n);
}

/* CPU time of this thread alone, since other processes may keep the processor busy. */
static double cpu_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void measure(const char *way, unsigned kind,
	void (*run)(unsigned kind, const unsigned char *bytes, size_t n),
	const unsigned char *bytes)
{
	const size_t n = 1 << 20;
	unsigned rounds = 0;
	const double begun = cpu_s();
	double taken;
	do {
		run(kind, bytes, n);
		rounds++;
		taken = cpu_s() - begun;
	} while (taken < 0.2);
	printf("%-10s %-9s %6.2f GB/s\n", checksum_kinds[kind].name, way,
		(double)rounds * (double)n / taken / 1e9);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "--speed"))
		return dump(argv[1], argv + 2);
	unsigned char *bytes = malloc(1 << 20);
	if (bytes) /* pages of its own */
		memset(bytes, 7, 1 << 20);
	for (unsigned kind = 0; bytes && kind < CHECKSUMS; kind++) {
		measure("", kind, do_kind, bytes);
		if (kind < CHECKSUM_CRCS)
			measure("portable", kind, do_portable, bytes);
	}
	free(bytes);
	return !bytes;
}
