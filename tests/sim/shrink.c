/* The smallest world that still breaks a promise under this seed: each number of the scenario is
 * lowered as far as it goes, again and again, until none can be lowered any more. */
#include "shrink.h"
#include "story.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a child of its own, since killed processes leave things behind. A crash counts, too. */
static bool breaks(uint64_t seed, const struct scenario *scenario)
{
	int status;
	fflush(stdout);
	const pid_t child = fork();
	if (child < 0) {
		perror("sim: fork");
		exit(2);
	}
	if (!child) {
		story_begin(false);
		setitimer(ITIMER_PROF, &(struct itimerval){.it_value = {.tv_sec = 60}}, NULL);
		_exit(world_play(seed, scenario) ? 1 : 0);
	}
	waitpid(child, &status, 0);
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static bool lower(uint64_t seed, struct scenario *scenario, size_t i)
{
	unsigned *field = scenario_field(scenario, i);
	const unsigned now = *field;
	const unsigned tries[] = {0, 1, now / 4, now / 2, now - 1};
	for (size_t t = 0; t < sizeof tries / sizeof *tries; t++) {
		if (tries[t] >= now)
			continue;
		*field = tries[t];
		if (breaks(seed, scenario))
			return true;
	}
	*field = now;
	return false;
}

bool shrink(uint64_t seed, struct scenario *scenario)
{
	if (!breaks(seed, scenario))
		return false;
	bool any = true;
	while (any) {
		any = false;
		for (size_t i = 0; i < scenario_fields(); i++)
			any = lower(seed, scenario, i) || any;
	}
	return true;
}
