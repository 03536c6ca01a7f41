/* The words that users of other tools type, such as --delete of aws, and their answers. */
#pragma once
#include "cli/options/options.h"

/* The options of other tools that push, proven and job files do not have. */
extern const struct option_elsewhere other_tools_options[];
