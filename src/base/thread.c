#include "base/thread.h"
#include <signal.h>

int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(ret, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -error;
}
