/* Which machine this is. Boot id and process ids are copied with a running machine's memory; what
 * its hypervisor gives to each copy is not. */
#pragma once

#define MACHINE_CHARS 32

/* What every user may read: /etc/machine-id, the hypervisor's id and the hardware addresses of
 * network cards, as a hash in hexadecimal digits, since a machine id is confidential
 * (machine-id(5)). "" if it cannot be computed: then nothing is known to be this machine. */
void machine_id(char ret[static MACHINE_CHARS + 1]);
/* What only root may read: the ids of the board and of the machine's generation, likewise. "" if
 * there is none, or we may not. */
void machine_board(char ret[static MACHINE_CHARS + 1]);
