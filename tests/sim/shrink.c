/* Finds the smallest world that still breaks the same promise under this seed. It lowers each
 * number of the scenario as far as possible, again and again, until no number can be lowered. */
#include "shrink.h"
#include "story.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define SENTENCE_MAX 1024
static char *told; /* shared with the child, which writes the promise that it breaks */

/* Reduces a sentence to its promise: the words without names and numbers. */
static void promise_of(const char *sentence, char ret[static SENTENCE_MAX])
{
	size_t at = 0;
	for (const char *end; *sentence; sentence = end + strspn(end, " ")) {
		end = sentence + strcspn(sentence, " ");
		const size_t n = strcspn(sentence, "/0123456789") < (size_t)(end - sentence)
					 ? 0
					 : (size_t)(end - sentence);
		if (at + n + 1 >= SENTENCE_MAX)
			break;
		memcpy(ret + at, sentence, n);
		at += n;
	}
	ret[at] = 0;
}

/* Plays the world in a child process, since killed processes leave memory behind. `promise` is ""
 * for a crash, or NULL for any promise. */
static bool breaks(uint64_t seed, const struct scenario *scenario, const char *promise)
{
	int status;
	*told = 0;
	fflush(stdout);
	const pid_t child = fork();
	if (child < 0) {
		perror("sim: fork");
		exit(2);
	}
	if (!child) {
		story_begin(STORY_UNHEARD);
		setitimer(ITIMER_PROF, &(struct itimerval){.it_value = {.tv_sec = 60}}, NULL);
		const char *broken = world_play(seed, scenario);
		if (broken)
			promise_of(broken, told);
		_exit(broken ? 1 : 0);
	}
	waitpid(child, &status, 0);
	return (!WIFEXITED(status) || WEXITSTATUS(status) != 0) &&
	       (!promise || strcmp(promise, told) == 0);
}

static bool lower(uint64_t seed, struct scenario *scenario, size_t i, const char *promise)
{
	unsigned *field = scenario_field(scenario, i);
	const unsigned now = *field;
	const unsigned tries[] = {0, 1, now / 4, now / 2, now - 1};
	for (size_t t = 0; t < sizeof tries / sizeof *tries; t++) {
		if (tries[t] >= now)
			continue;
		*field = tries[t];
		if (breaks(seed, scenario, promise))
			return true;
	}
	*field = now;
	return false;
}

bool shrink(uint64_t seed, struct scenario *scenario)
{
	char promise[SENTENCE_MAX];
	told = mmap(NULL, SENTENCE_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (told == MAP_FAILED) {
		perror("sim: mmap");
		exit(2);
	}
	if (!breaks(seed, scenario, NULL))
		return false;
	memcpy(promise, told, sizeof promise);
	bool any = true;
	while (any) {
		any = false;
		for (size_t i = 0; i < scenario_fields(); i++)
			any = lower(seed, scenario, i, promise) || any;
	}
	return true;
}
