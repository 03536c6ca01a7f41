/* The words that users of other tools type, such as --delete of aws, and their answers. */
#pragma once
#include "cli/options/options.h"

/* The answer to a download. */
#define NO_DOWNLOADS "s3once does not download: read objects with aws s3 cp or rclone copy"

/* Options that the uploading commands, proven and job files do not have. A name of one character is
 * a letter. An option that exists is here as well if other tools mean something else by it: the
 * answer then ends the message about its value. */
extern const struct option_elsewhere other_tools_options[];

/* Prints an answer to a command of another tool, argv[0], with its operands. Returns false if no
 * tool has it. */
bool other_tools_command(int argc, char *const *argv);
