/* What a terminal can do. */
#pragma once
#include <stdbool.h>

/* Whether the descriptor is of a terminal that can draw a line anew. */
bool terminal_can_draw(int fd);

/* 24 rows and 80 columns if the terminal does not tell. */
struct terminal_size {
	unsigned rows, columns;
};
struct terminal_size terminal_size(int fd);
