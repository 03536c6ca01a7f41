/* Uses libFuzzer's bytes as the choices of a world: first those of the scenario, and then, one by
 * one, which task continues, which request is lost, and what people do. `sim --bytes` tells the
 * story of such bytes. */
#include "story.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n);

/* Memory of killed processes is not freed, and is no leak. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

__attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(
	const unsigned char *bytes, size_t n)
{
	static bool is_set_up;
	struct scenario scenario;
	if (!is_set_up)
		vfs_set_up();
	is_set_up = true;
	chance_give(bytes, n);
	scenario_choose(0, true, &scenario);
	story_begin(STORY_UNHEARD);
	const char *broken = world_play(0, &scenario);
	chance_give(NULL, 0);
	if (!broken)
		return 0;
	fprintf(stderr, "%s\n", broken);
	abort();
}
