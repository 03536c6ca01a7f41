/* Comma-separated values, also of those who do not write them as RFC 4180 has it. */
#include "../check.h"
#include "base/csv.h"
#include "base/text.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The fields with '|' between them, and '\n' behind each record; at the end the error. */
static void check(const char *bytes, size_t n, const char *expected, const char *said)
{
	FILE *stream = tmpfile();
	CHECK(stream && fwrite(bytes, 1, n, stream) == n);
	rewind(stream);
	struct csv *csv = csv_new(stream, 3);
	struct csv_record record;
	struct problem problem = {0};
	struct text seen = TEXT(1000);
	int r;
	while ((r = csv_next(csv, &record, &problem)) > 0)
		for (size_t i = 0; i < record.n; i++)
			text_addf(&seen, "%s%s", record.fields[i], i + 1 < record.n ? "|" : "\n");
	CHECK_STRING(text_string(&seen), expected);
	CHECK_INT(r, said ? -EBADMSG : 0);
	CHECK(!said || strstr(problem.text, said));
	text_clear(&seen);
	csv_free(csv);
	fclose(stream);
}
#define CHECK_CSV(bytes, expected, said) check(bytes, sizeof(bytes) - 1, expected, said)

int main(void)
{
	CHECK_CSV("a,b,c\nd,,\r\n\n\r\n,e", "a|b|c\nd||\n|e\n", NULL);
	CHECK_CSV("\"a,\"\"b\"\"\n\",\"\"\n", "a,\"b\"\n|\n", NULL);
	CHECK_CSV("a,b,{\"x\":1,\"y\":2}\nc", "a|b|{\"x\":1,\"y\":2}\nc\n", NULL);
	CHECK_CSV("a,b,\"{\"\"x\"\":1,\"\"y\"\":2}\"\n", "a|b|{\"x\":1,\"y\":2}\n", NULL);
	CHECK_CSV("a\"b,c\rd\n", "a\"b|c\rd\n", NULL);
	CHECK_CSV(" \n", " \n", NULL);
	CHECK_CSV("a\nb,\"c", "a\n", "in line 2: a quotation mark is not closed");
	CHECK_CSV("\"a\"b\n", "", "in line 1: something follows a closing quotation mark");
	CHECK_CSV("a,b,\"c\",d\n", "", "too many fields");
	CHECK_CSV("a,\0\n", "", "in line 1: it has a NUL byte");
	char *large = malloc(2UL * CSV_RECORD_BYTES);
	memset(large, 'x', 2UL * CSV_RECORD_BYTES);
	check(large, 2UL * CSV_RECORD_BYTES, "", "in line 1: it is too long");
	free(large);
	return check_result();
}
