/* Servers and connections that fall silent for a while: they take some requests and send no reply.
 * Also checks what a run promises then: it reports what it is waiting for, and ends. */
#pragma once
#include "machines.h"
#include "wire.h"

void silences_begin(void);
/* Begins a silence of a random kind, and returns when it is over or the world is calm. */
void silences_fall(struct chance *chance);
void silences_calm(void);

enum silence {
	SILENCE_NONE,
	SILENCE_STALLS,  /* no reply */
	SILENCE_TRICKLES /* a reply whose headers never end */
};
/* Returns whether and how this request stays without a reply. */
enum silence silence_of(const struct wire_request *request);
/* Whether such a request is nevertheless applied a while later: a slow Complete. */
bool silence_applies(const struct wire_request *request);
/* Note that a request of a process meets the silence, that it is given up, or that a request got a
 * good reply. */
void silences_asked(struct machine_process *process, const struct wire_request *request);
void silences_left(struct machine_process *process);
void silences_answered(const struct wire_request *request);
/* Note that a process has finished a file, or has logged a line. */
void silences_moved(struct machine_process *process);
void silences_said(struct machine_process *process);
/* Notes the exit status of a run of push. */
void silences_ended(const struct machine_process *process, int exit);
