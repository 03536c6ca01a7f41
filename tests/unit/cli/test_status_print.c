#include "../check.h"
#include "cli/status/status_print.h"

static void check_outlook(
	const struct mark *mark, const struct session_info *session, const char *says)
{
	const char *outlook = status_outlook(mark, session);
	if (!CHECK(strstr(outlook, says)))
		fprintf(stderr, "\t%s\n", outlook);
}

int main(void)
{
	const struct session_info open = {.is_open = true}, ended = {.is_open = false},
				  gone = {.is_open = true, .is_gone = true};
	check_outlook(&(struct mark){.state = MARK_ABSENT}, NULL, "uploads it");
	check_outlook(&(struct mark){.state = MARK_DONE}, NULL, "skips it");
	check_outlook(&(struct mark){.state = MARK_FAILED}, NULL, "retries it");
	check_outlook(&(struct mark){.state = MARK_FAILED, .upload.id = (char[]){"u"}}, NULL,
		"sends only the parts");
	check_outlook(&(struct mark){.state = MARK_CLAIMED}, NULL, "at once");
	check_outlook(&(struct mark){.state = MARK_CLAIMED}, &ended, "takes it over at once");
	check_outlook(&(struct mark){.state = MARK_CLAIMED}, &open, "waits");
	check_outlook(&(struct mark){.state = MARK_CLAIMED}, &gone, "takes it over at once");
	check_outlook(&(struct mark){.state = MARK_UNREADABLE}, NULL, "does not change it");
	return check_result();
}
