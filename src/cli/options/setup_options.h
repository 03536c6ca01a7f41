/* The options of the commands that look at the setup of a push: config and doctor. */
#pragma once
#include "cli/options/access.h"

struct setup_options {
	struct access access;
	int json;
};

/* A command with these options alone: fills the groups with the fields of *options. The caller adds
 * the name and the texts. */
enum { SETUP_GROUPS = 2 + ACCESS_GROUPS };
struct command setup_command(
	struct option_group groups[static SETUP_GROUPS], struct setup_options *options);
