#include "cli/push/alike.h"
#include "base/fnv.h"
#include <stdlib.h>
#include <string.h>

/* Of all but the digits. */
static uint64_t hash_of(const char *sentence)
{
	uint64_t hash = FNV_EMPTY;
	for (; *sentence; sentence++)
		if (*sentence < '0' || *sentence > '9')
			hash = fnv_add(hash, sentence, 1);
	return hash;
}

bool alike_add(struct alike *alike, const char *sentence)
{
	const uint64_t hash = hash_of(sentence);
	for (size_t i = 0; i < alike->n; i++)
		if (alike->kinds[i].hash == hash)
			return ++alike->kinds[i].count <= ALIKE_PRINTED;
	if (alike->n < ALIKE_KINDS)
		alike->kinds[alike->n++] = (struct alike_kind){hash, 1, strdup(sentence)};
	return true;
}

uint64_t alike_unprinted(const struct alike *alike, size_t i)
{
	const uint64_t count = alike->kinds[i].count;
	return count > ALIKE_PRINTED ? count - ALIKE_PRINTED : 0;
}

void alike_clear(struct alike *alike)
{
	for (size_t i = 0; i < alike->n; i++)
		free(alike->kinds[i].sentence);
	*alike = (struct alike){0};
}
