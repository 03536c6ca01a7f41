/* Servers and connections that never answer: for a while, some requests are taken and nothing
 * comes back. And what is promised of a run then: that it says what it waits for, and ends. */
#pragma once
#include "machines.h"
#include "wire.h"

void silences_begin(void);
/* A silence of a kind that chance chooses, which lasts until it is over, or the world is calm. */
void silences_fall(struct chance *chance);
void silences_calm(void);

enum silence {
	SILENCE_NONE,
	SILENCE_STALLS,  /* nothing comes */
	SILENCE_TRICKLES /* headers come that never end */
};
/* Whether this request gets no answer. */
enum silence silence_of(const struct wire_request *request);
/* Whether it is applied all the same, a while later: a Complete that takes long. */
bool silence_applies(const struct wire_request *request);
/* A request of a process meets it, and is given up; or it has got a good answer. */
void silences_asked(struct machine_process *process, const struct wire_request *request);
void silences_left(struct machine_process *process);
void silences_answered(const struct wire_request *request);
/* It has finished a file, or said something. */
void silences_moved(struct machine_process *process);
void silences_said(struct machine_process *process);
/* A run of push ends with this. */
void silences_ended(const struct machine_process *process, int exit);
