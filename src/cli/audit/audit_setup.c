#include "cli/audit/audit_setup.h"
#include "marks/bucket_row.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int read_space(
	const struct audit_wanted *wanted, struct audit_setup *setup, struct problem *ret_problem)
{
	struct mark_space *space = &setup->space;
	struct bucket_row row;
	if (!marks_load_settings(
		    &setup->marks, text_string(&setup->marks_name), &space->settings, ret_problem))
		return -EIO;
	snprintf(space->service, sizeof space->service, "%s",
		aws_settings_service(setup->services.aws));
	snprintf(space->bucket, sizeof space->bucket, "%s", wanted->bucket);
	if (bucket_row_read(setup->marks.conn, space, NULL, &row, ret_problem) != OUTCOME_OK)
		return -EIO;
	space->generation = row.generation;
	return 0;
}

int audit_setup_open(
	const struct audit_wanted *wanted, struct audit_setup *ret, struct problem *ret_problem)
{
	*ret = (struct audit_setup){.marks_name = TEXT(8192)};
	marks_place_name(wanted->marks, &ret->marks_name);
	if (!marks_are_there(wanted->marks, ret_problem))
		return -ENOENT;
	int r = services_open(wanted->access, &ret->services, ret_problem);
	if (!r)
		r = marks_open(wanted->marks, &ret->services, &ret->marks, ret_problem);
	if (!r)
		r = read_space(wanted, ret, ret_problem);
	if (!r && wanted->needs_s3)
		r = s3_open(ret->services.aws, ret->services.http, wanted->bucket, &ret->s3,
			ret_problem);
	ret->place = (struct audit_place){
		.store = ret->marks.store, .space = &ret->space, .s3 = ret->s3};
	return r;
}

void audit_setup_close(struct audit_setup *setup)
{
	marks_close(&setup->marks);
	s3_close(setup->s3);
	services_close(&setup->services);
	text_clear(&setup->marks_name);
}
