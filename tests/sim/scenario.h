/* What a world is like, as numbers that a seed chooses, and that may be set by hand: `./sim SEED
 * hosts=1 kills=0`. A smaller number is a simpler world, which is how a story is shrunk. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* name, least, and how it is chosen (scenario.c) */
#define SCENARIO_FIELDS(X)                                                                         \
	X(hosts)        /* machines */                                                             \
	X(clones)       /* 1: copies of one machine, which only the hypervisor tells apart */      \
	X(runs)         /* runs of push on each */                                                 \
	X(overlap)      /* of 1,000 runs, how many begin while another one of the host goes on */  \
	X(finals)       /* of 1,000 runs, how many are with --final and a --max-duration */        \
	X(files)        /* there from the beginning */                                             \
	X(large)        /* of these, how many have several parts */                                \
	X(dynamodb)     /* 1: hosts share marks and files; 0: an SQLite file each */               \
	X(aws)          /* 1: AWS's endpoint, 0: another service's */                              \
	X(ignores)      /* 1: conditions are ignored, 2: looked at before others have written */   \
	X(drops_sums)   /* 1: the service keeps no checksums */                                    \
	X(versions)     /* 1: the bucket keeps versions */                                         \
	X(stale)        /* 1: reads that are not consistent may show what was before */            \
	X(small_pages)  /* 1: listings have two entries a page */                                  \
	X(batches)      /* 0: by AWS's statements, 1: lists, 2: none */                            \
	X(no_old)       /* 1: a refusal does not bring the item */                                 \
	X(rotated)      /* 1: the files are logs that rotate, 2: those of the last host */         \
	X(live)         /* 1: and are uploaded while they grow */                                  \
	X(compress)     /* 1: zstd, 2: gzip */                                                     \
	X(removes)      /* 1: files that are in S3 are removed */                                  \
	X(if_changed)   /* 0: replace, 1: fail, 2: skip */                                         \
	X(varies)       /* 1: each run but the last has other options */                           \
	X(concurrency)  /* workers of a run */                                                     \
	X(lease_s)      /* of a run */                                                             \
	X(give_up_s)    /* of a run; 0: the default */                                             \
	X(attempts)     /* at each request; 0: the default */                                      \
	X(edits)        /* things that people and logrotate do */                                  \
	X(slow_files)   /* 1: a call about files takes up to 3 ms, as over a network */            \
	X(bad_reads)    /* of 1,000 reads of files */                                              \
	X(deletes)      /* of objects, by people */                                                \
	X(hot)          /* 1: they only change the files that are there */                         \
	X(kills)        /* of processes */                                                         \
	X(stops)        /* of processes, which go on later */                                      \
	X(suspends)     /* of machines */                                                          \
	X(power_cuts)   /* of machines, which boot again */                                        \
	X(net_cuts)     /* of a machine's network, for a while */                                  \
	X(clock_jumps)  /* of a machine's wall clock */                                            \
	X(clock_days)   /* by so many days at most, and a day beside; 0: by a day */               \
	X(locks)        /* files that nobody may read for a while */                               \
	X(anew)         /* times that the bucket is deleted and made again between runs */         \
	X(backups)      /* of an SQLite file of marks, restored later, between runs */             \
	X(foreign)      /* objects that somebody else puts where ours belong */                    \
	X(lost)         /* of 1,000 requests: lost before they are applied */                      \
	X(lost_after)   /* applied, and the answer is lost */                                      \
	X(hangs)        /* no answer */                                                            \
	X(lags)         /* applied at once, and the answer comes seconds later */                  \
	X(twice)        /* applied twice at once */                                                \
	X(again)        /* a copy comes later */                                                   \
	X(late_s)       /* at most so much later */                                                \
	X(errors)       /* 500 */                                                                  \
	X(errors_after) /* applied, and 500 all the same */                                        \
	X(throttled)    /* */                                                                      \
	X(html)         /* 200 and a page of HTML */                                               \
	X(partial)      /* of 1,000 statements and keys of batches: throttled or failed */         \
	X(slow)         /* 1: requests take seconds, 0: milliseconds */                            \
	X(audits)       /* runs of verify, gc and forget between */                                \
	X(night_h)      /* so many hours of logrotate; 0: some minutes */                          \
	X(asked)        /* runs that are asked to end, as by SIGTERM */                            \
	X(reboots)      /* of machines, which ask their runs to end first */                       \
	X(grace_s)      /* of a run that is asked to end; 0: the default */                        \
	X(rate_kib)     /* a second, of all runs of a host; 0: no limit */                         \
	X(rules)        /* 1: objects have settings by rules */                                    \
	X(manifest)     /* 1: runs store manifests */                                              \
	X(id_object)    /* 1: the bucket is known by an object */                                  \
	X(lifecycle_h)  /* after which the bucket drops objects and uploads; 0: never */           \
	X(lockers)      /* processes that take a lock, and work only while they hold it */         \
	X(s3_locks)     /* 1: the lock is in a bucket */                                           \
	X(limit_s)      /* after which runs begin nothing new; 0: none */                          \
	X(threads)      /* that a process may have; 0: any number */                               \
	X(pipes)        /* runs that upload what another program writes */                         \
	X(spools)       /* 1: which is kept until it is uploaded */                                \
	X(once)         /* 1: one last run of each host, if no file fails in it */                 \
	X(keep_marks_s) /* of gc; 0: for ever */                                                   \
	X(leases)       /* 1: each process has a lease of its own length */                        \
	X(if_mixed)     /* 1: each run has an --if-changed of its own */                           \
	X(recompress)   /* 1: and a --compress */                                                  \
	X(age_s)        /* after which files in S3 are removed */                                  \
	X(transfer_kib) /* after which runs begin nothing new; 0: no limit */                      \
	X(open_lines)   /* 1: the last line of a log may have no newline yet */                    \
	X(id_gone)      /* times that the object by which the bucket is known is deleted */        \
	X(bad_part)     /* 1: the server never takes the first part of a file */                   \
	X(meets)        /* of 1,000 writes to another's row, how many wait for that one's */       \
	X(proxy)        /* 1: a proxy keeps the answers of S3 */                                   \
	X(zoo)          /* 1: names of logs as many programs give them */                          \
	X(rings)        /* 1: one log of a host is a ring of files */                              \
	X(timeless)     /* 1: who compresses a log does not keep its time */                       \
	X(images)       /* 1: a disk with its marks is copied, and wakes as another machine */     \
	X(silences)     /* times that servers or connections never answer, for a while */          \
	X(denials)      /* times that a policy denies writes to S3, for a while */                 \
	X(repeats)      /* 1: logs that grow are all equal; only by hand */                        \
	X(portal)       /* 1: pages of HTML have an ETag; only by hand */                          \
	X(at_lease)     /* 1: processes are stopped for about a lease; only by hand */

struct scenario {
#define FIELD(name) unsigned name;
	SCENARIO_FIELDS(FIELD)
#undef FIELD
};

/* A night or more of two to four hosts: three to twelve runs in sum, and ten faults or more. All of
 * them have logs that rotate, or the last one has, and people change the files of the others. One
 * seed of 200 is larger in one respect or another. Without nights, it is some minutes. */
void scenario_choose(uint64_t seed, bool may_be_night, struct scenario *ret);
size_t scenario_fields(void);
const char *scenario_name(size_t i);
unsigned *scenario_field(struct scenario *scenario, size_t i);
/* "name=value". False: there is no such name. */
bool scenario_set(struct scenario *scenario, const char *setting);
/* All that are not 0, on one line. */
void scenario_print(const struct scenario *scenario, FILE *to);
