/* A screen of lines that is drawn anew as a whole, on a terminal at standard output. */
#pragma once
#include "base/text.h"

/* Zero it to start. */
struct status_page {
	struct text lines; /* each with its newline */
	unsigned rows, columns;
	unsigned n, left_out; /* lines that are on it, and those that have no room */
};

/* Empties the page, and takes the size of the terminal. */
void status_page_begin(struct status_page *page);
/* Adds a line, cut to the width. Three rows stay free for status_page_last(). */
void status_page_add(struct status_page *page, const char *line);
/* One of the last lines, for which there is always room. */
void status_page_last(struct status_page *page, const char *line);
/* Draws it over what is on the screen. 0 or -errno. */
int status_page_draw(const struct status_page *page);
void status_page_clear(struct status_page *page);
