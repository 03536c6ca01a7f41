/* Which signals stop a run, and how: each sequence in a process of its own, whose run is a fake. */
#include "../check.h"
#include "cli/signals.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* How often the run was asked to stop and to change its limit of bandwidth. */
static unsigned stops, toggles;
static unsigned char fake;

void s3once_push_stop(struct s3once_push *push)
{
	stops += (void *)push == (void *)&fake;
}

void s3once_push_toggle_bandwidth(struct s3once_push *push)
{
	toggles += (void *)push == (void *)&fake;
}

/* In place of libc's: the seconds until SIGALRM, or 0. */
static unsigned alarm_s;
#define ALARM_BEFORE_S 60

unsigned alarm(unsigned seconds)
{
	const unsigned before = alarm_s;
	alarm_s = seconds;
	return before;
}

/* A sequence of steps, a letter each:
 *   c  only count   s  serve   b  a run begins   e  it ends   d  begin to drain   r  restore
 *   I T H U A       SIGINT SIGTERM SIGHUP SIGUSR2 SIGALRM
 *   i h             SIGINT, SIGHUP are ignored from now on
 *   a               the program that started this one has set an alarm
 * and what holds at its end. */
static const struct {
	const char *steps;
	unsigned stops, toggles, came;
	int first;
	bool reloads, drains;
	int ends; /* the exit status, or -signal, with which it ended before; 0: it did not */
	unsigned alarm_s; /* until the process ends, whatever hangs in it */
} rows[] = {
	{"b", 0, 0, 0, 0, false, false, 0},
	{"bT", 1, 0, 1, SIGTERM, false, false, 0},
	{"bI", 1, 0, 1, SIGINT, false, false, 0},
	{"bH", 1, 0, 1, SIGHUP, false, false, 0},
	{"bTI", 2, 0, 2, SIGTERM, false, false, 0, 3},
	{"bTIe", 2, 0, 2, SIGTERM, false, false, 0},
	{"bTIH", 0, 0, 0, 0, false, false, 128 + SIGTERM},
	{"bITT", 0, 0, 0, 0, false, false, 128 + SIGINT},
	{"bTIA", 0, 0, 0, 0, false, false, 128 + SIGTERM},
	/* Before a second signal, SIGALRM is the alarm of whoever started us, and ends the process
	 * as any other would be. */
	{"bA", 0, 0, 0, 0, false, false, -SIGALRM},
	{"bTA", 0, 0, 0, 0, false, false, -SIGALRM},
	{"cA", 0, 0, 0, 0, false, false, -SIGALRM},
	{"abe", 0, 0, 0, 0, false, false, 0, ALARM_BEFORE_S},
	{"abTe", 1, 0, 1, SIGTERM, false, false, 0, ALARM_BEFORE_S},
	{"bTIeA", 0, 0, 0, 0, false, false, -SIGALRM},
	{"bTe", 1, 0, 1, SIGTERM, false, false, 0},
	{"beT", 0, 0, 1, SIGTERM, false, false, 0},
	{"beTTT", 0, 0, 3, SIGTERM, false, false, 0},
	/* A signal between two runs stops the next one. */
	{"beTb", 1, 0, 1, SIGTERM, false, false, 0},
	{"cTb", 1, 0, 1, SIGTERM, false, false, 0},
	{"cTI", 0, 0, 2, SIGTERM, false, false, 0},
	{"cTIIII", 0, 0, 5, SIGTERM, false, false, 0},
	{"cr", 0, 0, 0, 0, false, false, 0},
	{"crT", 0, 0, 0, 0, false, false, -SIGTERM},
	{"cIr", 0, 0, 1, SIGINT, false, false, 0},
	/* Ignored signals stay ignored. */
	{"ibI", 0, 0, 0, 0, false, false, 0},
	{"hbH", 0, 0, 0, 0, false, false, 0},
	{"hbT", 1, 0, 1, SIGTERM, false, false, 0},
	{"hsH", 0, 0, 0, 0, false, false, 0},
	/* The limit of bandwidth, also for runs that follow. */
	{"bU", 0, 1, 0, 0, false, false, 0},
	{"bUU", 0, 2, 0, 0, false, false, 0},
	{"bUeb", 0, 2, 0, 0, false, false, 0},
	{"bUUeb", 0, 2, 0, 0, false, false, 0},
	{"beUb", 0, 1, 0, 0, false, false, 0},
	{"sUb", 0, 1, 0, 0, false, false, 0},
	/* A service: SIGHUP is kept for it, and SIGTERM drains if nothing came before. */
	{"sH", 0, 0, 0, 0, true, false, 0},
	{"s", 0, 0, 0, 0, false, false, 0},
	{"sbH", 0, 0, 0, 0, true, false, 0},
	{"sbHHHe", 0, 0, 0, 0, true, false, 0},
	{"sbTe", 1, 0, 1, SIGTERM, false, false, 0},
	{"sbTed", 1, 0, 1, SIGTERM, false, true, 0},
	{"sTd", 0, 0, 1, SIGTERM, false, true, 0},
	{"sId", 0, 0, 1, SIGINT, false, false, 0},
	{"sTId", 0, 0, 2, SIGTERM, false, false, 0},
	{"sITd", 0, 0, 2, SIGINT, false, false, 0},
	{"sd", 0, 0, 0, 0, false, false, 0},
	{"sTdb", 0, 0, 1, SIGTERM, false, true, 0},
	{"sIdb", 1, 0, 1, SIGINT, false, false, 0},
	/* One more signal ends the run that drains, without a grace. */
	{"sTdbT", 2, 0, 2, SIGTERM, false, true, 0, 3},
	{"sTdTb", 2, 0, 2, SIGTERM, false, true, 0},
	{"sTdbTI", 0, 0, 0, 0, false, false, 128 + SIGTERM},
	{"sTdbTeb", 4, 0, 2, SIGTERM, false, true, 0},
};

/* Exits with 0 if all holds. */
static void go_through(size_t row)
{
	bool drains = false;
	int first = 0;
	uint64_t since_ns = 0;
	for (const char *at = rows[row].steps; *at; at++) {
		switch (*at) {
		case 'c':
			signals_count("");
			break;
		case 's':
			signals_serve();
			break;
		case 'b':
			signals_stop_run((struct s3once_push *)(void *)&fake, "");
			break;
		case 'e':
			first = signals_end_run();
			break;
		case 'd':
			drains = signals_begin_drain(&since_ns);
			break;
		case 'r':
			first = signals_restore();
			break;
		case 'I':
			raise(SIGINT);
			break;
		case 'T':
			raise(SIGTERM);
			break;
		case 'H':
			raise(SIGHUP);
			break;
		case 'U':
			raise(SIGUSR2);
			break;
		case 'A':
			raise(SIGALRM);
			break;
		case 'a':
			alarm(ALARM_BEFORE_S);
			break;
		case 'i':
			signal(SIGINT, SIG_IGN);
			break;
		case 'h':
			signal(SIGHUP, SIG_IGN);
			break;
		default:
			CHECK(false);
		}
	}
	if (!CHECK_INT(rows[row].ends, 0)) /* it should have ended before */
		return;
	if (strpbrk(rows[row].steps, "er") && !strpbrk(strpbrk(rows[row].steps, "er"), "ITHb"))
		CHECK_INT(first, rows[row].first);
	CHECK_INT(stops, rows[row].stops);
	CHECK_INT(toggles, rows[row].toggles);
	CHECK_INT(signals_came(), rows[row].came);
	CHECK_INT(signals_abandon(NULL), rows[row].came > 0);
	CHECK_INT(drains, rows[row].drains);
	CHECK(!drains || since_ns > 0);
	CHECK_INT(signals_take_reload(), rows[row].reloads);
	CHECK(!signals_take_reload());
	CHECK_INT(alarm_s, rows[row].alarm_s);
	CHECK_INT(signals_end_run(), rows[row].first);
}

int main(void)
{
	/* Whatever started this test may ignore them, as a shell does for what runs beside it. */
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR2, SIGALRM};
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		signal(signals[i], SIG_DFL);
	for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
		int status = 0;
		const pid_t child = fork();
		if (child == 0) {
			check_done = check_failed = 0;
			go_through(row);
			_exit(check_failed ? 1 : 0);
		}
		CHECK_INT(waitpid(child, &status, 0), child);
		const int ended = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
		if (!CHECK_INT(ended, rows[row].ends))
			fprintf(stderr, "\trow %zu: %s\n", row, rows[row].steps);
	}
	return check_result();
}
