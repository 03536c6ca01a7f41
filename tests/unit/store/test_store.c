#include "../check.h"
#include "store/store.h"
#include <errno.h>
#include <stdlib.h>

static void check_refused(const char *spec, const char *says)
{
	struct marks_place place;
	struct problem problem = {0};
	CHECK_INT(marks_place_parse(spec, &place, &problem), -EINVAL);
	if (!CHECK(strstr(problem.text, says) && strstr(problem.text, spec)))
		fprintf(stderr, "\t%s\n", problem.text);
	marks_place_clear(&place);
}

int main(void)
{
	struct marks_place place;
	struct problem problem = {0};
	CHECK_INT(marks_place_parse("dynamodb:my.table_1-x", &place, &problem), 0);
	CHECK(place.is_dynamodb);
	CHECK_STRING(place.table, "my.table_1-x");
	marks_place_clear(&place);
	CHECK_INT(marks_place_parse("sqlite:relative/marks.db", &place, &problem), 0);
	CHECK(!place.is_dynamodb);
	CHECK_STRING(place.path, "relative/marks.db");
	marks_place_clear(&place);
	check_refused("dynamodb:", "3 to 255");
	check_refused("dynamodb:ab", "3 to 255");
	check_refused("dynamodb:a/b", "letters, digits");
	check_refused("sqlite:", "dynamodb:TABLE, sqlite:PATH or local");
	check_refused("postgres:x", "dynamodb:TABLE, sqlite:PATH or local");
	check_refused("Local", "dynamodb:TABLE, sqlite:PATH or local");
	return check_result();
}
