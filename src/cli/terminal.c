#include "cli/terminal.h"
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool terminal_can_draw(int fd)
{
	const char *terminal = getenv("TERM");
	return isatty(fd) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

struct terminal_size terminal_size(int fd)
{
	struct winsize size = {0};
	const bool is_known = ioctl(fd, TIOCGWINSZ, &size) == 0;
	return (struct terminal_size){.rows = is_known && size.ws_row ? size.ws_row : 24,
		.columns = is_known && size.ws_col ? size.ws_col : 80};
}
