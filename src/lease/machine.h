/* The identity of this machine, by which a copy of it, or of its disk, is recognised. */
#pragma once
#include <stdbool.h>

#define MACHINE_CHARS 32
#define CARD_CHARS    16
#define CARDS_BYTES   (15 * (CARD_CHARS + 1) + 1)

/* A machine, to be compared with one that was seen at another time. Everything but the name is a
 * hash, in hexadecimal digits, since a machine id is confidential (machine-id(5)). A value that
 * does not exist, or that we may not read, is "". */
struct known_machine {
	char host[256];
	/* A hash of /etc/machine-id and the hypervisor's id. It is "" for a container without a
	 * machine id, and if reading any of these values failed: then nothing is known of the
	 * machine. */
	char id[MACHINE_CHARS + 1];
	char board[MACHINE_CHARS + 1]; /* as in struct process */
	char cards[CARDS_BYTES]; /* a hash of each network card's own address, each followed by a
				    blank */
};
void machine_self(struct known_machine *ret);
/* Makes a hash of /etc/machine-id alone, which every user may read and other hardware does not
 * change. "" if there is none, as in most containers, or if it cannot be read. */
void machine_id(char ret[static MACHINE_CHARS + 1]);
/* Whether these are surely two machines, or one that was renamed or got other hardware. Cards come
 * and go, so one card in common makes them the same. False if nothing is known of one of the two:
 * the name and the board of a container without a machine id change with each start. */
bool machine_differs(const struct known_machine *a, const struct known_machine *b);

/* Makes `machine` and `board` of struct process (process.h). `board` is "" if this user may not
 * read it. False if anything else cannot be read. */
bool machine_hashes(
	char ret_machine[static MACHINE_CHARS + 1], char ret_board[static MACHINE_CHARS + 1]);
