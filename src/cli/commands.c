/* The frame of all commands (commands.h). Each command calls it first and last; it knows nothing of
 * what a command does in between. It is the only place that opens marks for a command that only
 * looks at them or removes them, and the only one that turns output that was lost into an exit
 * code. A push opens its marks by the library, and does not come by here. */
#include "cli/commands.h"
#include "base/log.h"
#include "cli/job/job_asked.h"
#include <errno.h>

bool frame_begin(struct command_frame *frame, int argc, char **argv)
{
	frame->code = S3ONCE_EXIT_USAGE;
	frame->operands = argv;
	frame->n = options_parse(frame->command, argc, argv, &frame->problem);
	if (frame->n == -ECANCELED) {
		options_help(frame->command, stdout);
		frame->code = S3ONCE_EXIT_OK;
	}
	frame->speaks_itself |= frame->n < 0;
	if (!frame->speaks_itself)
		output_init(&frame->output);
	if (frame->n >= 0 && frame->job)
		frame->n =
			job_asked_open(frame->job, frame->access, frame->n, argv, &frame->problem);
	return frame->n >= 0;
}

bool frame_choose_marks(struct command_frame *frame, bool only_read)
{
	const int code =
		marks_place_chosen(frame->access, only_read, &frame->place, &frame->problem);
	if (code)
		frame->code = code;
	return !code;
}

bool frame_open_marks(struct command_frame *frame, struct store_settings *ret)
{
	struct problem *problem = &frame->problem;
	frame->marks_name = TEXT(8192);
	marks_place_name(&frame->place, &frame->marks_name);
	frame->code = S3ONCE_EXIT_SETUP;
	return marks_are_there(&frame->place, problem) &&
	       services_open(frame->access, &frame->services, problem) == 0 &&
	       marks_open(&frame->place, &frame->services, &frame->marks, problem) == 0 &&
	       marks_load_settings(&frame->marks, text_string(&frame->marks_name), ret, problem);
}

int frame_end(struct command_frame *frame)
{
	const bool is_told = frame->speaks_itself || output_finish(&frame->output) == 0;
	int code = frame->code;
	if (!is_told && (code == S3ONCE_EXIT_OK || code == S3ONCE_EXIT_FILES))
		code = frame->unprinted_code ? frame->unprinted_code : S3ONCE_EXIT_FILES;
	if (*frame->problem.text && frame->code != S3ONCE_EXIT_OK)
		command_fail(frame->command->name, code, &frame->problem);
	marks_close(&frame->marks);
	services_close(&frame->services);
	text_clear(&frame->marks_name);
	marks_place_clear(&frame->place);
	if (frame->job)
		job_asked_close(frame->job);
	return code;
}

int command_fail(const char *name, int code, const struct problem *problem)
{
	char sentence[PROBLEM_SENTENCE_MAX];
	problem_format(problem, sentence, sizeof sentence);
	log_error("%s: %s", name, sentence);
	return code;
}
