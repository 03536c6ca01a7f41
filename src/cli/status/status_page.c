#include "cli/status/status_page.h"
#include "base/write_all.h"
#include "cli/output.h"
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES_MAX (1U << 20)
#define HOME           "\033[H"
#define ERASE_LINE     "\033[K"
#define ERASE_BELOW    "\033[J"

void status_page_begin(struct status_page *page)
{
	const struct terminal_size size = terminal_size(STDOUT_FILENO);
	page->rows = size.rows > 2 ? size.rows : 24;
	page->columns = size.columns;
	page->n = page->left_out = 0;
	page->lines.max = PAGE_BYTES_MAX;
	text_reset(&page->lines);
	text_add(&page->lines, HOME);
}

/* How many bytes of the line have room: UTF-8 is counted by its characters. */
static size_t fitting(const char *line, unsigned columns)
{
	size_t n = 0;
	for (unsigned used = 0; line[n]; n++) {
		const bool begins = ((unsigned char)line[n] & 0xc0) != 0x80;
		if (begins && used++ == columns)
			break;
	}
	return n;
}

static void put(struct status_page *page, const char *line)
{
	text_add_bytes(&page->lines, line, fitting(line, page->columns));
	text_add(&page->lines, ERASE_LINE "\n");
	page->n++;
}

/* The newline of the last line takes a row, too. */
void status_page_add(struct status_page *page, const char *line)
{
	if (page->n + 4 < page->rows)
		put(page, line);
	else
		page->left_out++;
}

void status_page_last(struct status_page *page, const char *line)
{
	put(page, line);
}

int status_page_draw(const struct status_page *page)
{
	const int error = write_all(STDOUT_FILENO, page->lines.data, page->lines.len);
	return error ? error : write_all(STDOUT_FILENO, ERASE_BELOW, strlen(ERASE_BELOW));
}

void status_page_clear(struct status_page *page)
{
	text_clear(&page->lines);
}
