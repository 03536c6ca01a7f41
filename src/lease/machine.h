/* Which machine this is, so that a copy of it, or of its disk, is told from it. */
#pragma once
#include <stdbool.h>

#define MACHINE_CHARS 32
#define CARD_CHARS    16
#define CARDS_BYTES   (15 * (CARD_CHARS + 1) + 1)

/* A machine, as it may be compared with one of another time. Everything but the name is a hash, in
 * hexadecimal digits, since a machine id is confidential (machine-id(5)). "" is what is not there,
 * or what we may not read. */
struct known_machine {
	char host[256];
	/* Of /etc/machine-id and the hypervisor's id. "" of a container that has no machine id, and
	 * if anything else could not be read: then nothing is known of the machine. */
	char id[MACHINE_CHARS + 1];
	char board[MACHINE_CHARS + 1]; /* as in struct process */
	char cards[CARDS_BYTES];       /* of each network card's own address, with a blank behind */
};
void machine_self(struct known_machine *ret);
/* Whether these are surely two machines, or one that was renamed or got other hardware. Cards come
 * and go, so that one of them in common is enough. False if nothing is known of one of the two: the
 * name and the board of a container without a machine id change with each start. */
bool machine_differs(const struct known_machine *a, const struct known_machine *b);

/* Makes `machine` and `board` of struct process (process.h). False if anything cannot be read. */
bool machine_ids(
	char ret_machine[static MACHINE_CHARS + 1], char ret_board[static MACHINE_CHARS + 1]);
