/* The properties of a world, as numbers that a seed chooses, and that may be set by hand: `./sim
 * SEED hosts=1 kills=0`. A smaller number is a simpler world, which is how a story is shrunk. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* scenario.c chooses the numbers. */
#define SCENARIO_FIELDS(X)                                                                         \
	X(hosts)        /* machines */                                                             \
	X(clones)       /* 1: copies of one machine, which only the hypervisor tells apart */      \
	X(runs)         /* runs of push on each */                                                 \
	X(overlap)      /* of 1,000 runs, so many begin during another one of the host */          \
	X(finals)       /* of 1,000 runs, so many have --final and --max-duration */               \
	X(files)        /* at the beginning */                                                     \
	X(large)        /* those of them that have several parts */                                \
	X(dynamodb)     /* 1: hosts share marks and files; 0: an SQLite file each */               \
	X(aws)          /* 1: AWS's endpoint, 0: another service's */                              \
	X(ignores)      /* 1: conditions are ignored, 2: evaluated before concurrent writes */     \
	X(drops_sums)   /* 1: the service keeps no checksums */                                    \
	X(versions)     /* 1: the bucket keeps versions */                                         \
	X(stale)        /* 1: reads that are not consistent may return earlier items */            \
	X(small_pages)  /* 1: listings have two entries a page */                                  \
	X(batches)      /* PartiQL: 0: that of AWS, 1: with lists, 2: none */                      \
	X(no_old)       /* 1: a refusal does not return the item */                                \
	X(rotated)      /* 1: the files are rotated logs, 2: those of the last host are */         \
	X(live)         /* 1: logs are uploaded while they grow */                                 \
	X(compress)     /* 1: zstd, 2: gzip */                                                     \
	X(removes)      /* 1: files are removed once they are in S3 */                             \
	X(if_changed)   /* 0: replace, 1: fail, 2: skip */                                         \
	X(varies)       /* 1: each run but the last has other options */                           \
	X(concurrency)  /* workers of a run */                                                     \
	X(lease_s)      /* of a run */                                                             \
	X(give_up_s)    /* of a run; 0: the default */                                             \
	X(attempts)     /* at each request; 0: the default */                                      \
	X(edits)        /* actions of people and logrotate */                                      \
	X(slow_files)   /* 1: a file system call takes up to 3 ms, as over a network */            \
	X(bad_reads)    /* of 1,000 reads of files, so many fail */                                \
	X(deletes)      /* of objects, by people */                                                \
	X(hot)          /* 1: people only change existing files */                                 \
	X(kills)        /* of processes */                                                         \
	X(stops)        /* of processes, which continue later */                                   \
	X(suspends)     /* of machines */                                                          \
	X(power_cuts)   /* of machines, which boot again */                                        \
	X(net_cuts)     /* of a machine's network, for a while */                                  \
	X(clock_jumps)  /* of a machine's wall clock */                                            \
	X(clock_days)   /* the clock jumps by at most so many days and one more */                 \
	X(locks)        /* files that nobody may read for a while */                               \
	X(anew)         /* times that the bucket is deleted and recreated between runs */          \
	X(backups)      /* of an SQLite file of marks, restored later, between runs */             \
	X(foreign)      /* objects that another client puts at our keys */                         \
	X(lost)         /* of 1,000 requests, so many are lost before they are applied */          \
	X(lost_after)   /* applied, and the reply is lost */                                       \
	X(hangs)        /* no reply */                                                             \
	X(lags)         /* applied at once, and the reply comes seconds later */                   \
	X(twice)        /* applied twice at once */                                                \
	X(again)        /* a copy arrives later */                                                 \
	X(late_s)       /* the longest delay of that copy */                                       \
	X(errors)       /* 500 */                                                                  \
	X(errors_after) /* applied, and yet 500 */                                                 \
	X(throttled)    /* SlowDown and its like */                                                \
	X(html)         /* status 200 and a page of HTML */                                        \
	X(partial)      /* of 1,000 statements and keys of batches, so many fail */                \
	X(slow)         /* 1: requests take seconds, 0: milliseconds */                            \
	X(audits)       /* runs of verify, gc and forget among the others */                       \
	X(night_h)      /* length in hours; 0: some minutes */                                     \
	X(asked)        /* runs that are asked to end, as by SIGTERM */                            \
	X(reboots)      /* of machines, which ask their runs to end first */                       \
	X(grace_s)      /* grace period of a run that is asked to end; 0: the default */           \
	X(rate_kib)     /* bandwidth of a host, in KiB/s; 0: no limit */                           \
	X(rules)        /* 1: objects have settings by rules */                                    \
	X(manifest)     /* 1: runs store manifests */                                              \
	X(id_object)    /* 1: an object identifies the bucket */                                   \
	X(lifecycle_h)  /* age at which the bucket deletes objects and uploads; 0: never */        \
	X(lockers)      /* processes that acquire a lock, and act only while they hold it */       \
	X(s3_locks)     /* 1: the lock is in a bucket */                                           \
	X(limit_s)      /* time after which runs begin no file; 0: none */                         \
	X(threads)      /* limit for a process; 0: none */                                         \
	X(pipes)        /* runs that upload the output of a program */                             \
	X(spools)       /* 1: with --spool */                                                      \
	X(once)         /* 1: one last run of each host, if no file fails in it */                 \
	X(keep_marks_s) /* --keep-marks of gc; 0: for ever */                                      \
	X(leases)       /* 1: each process has its own length of lease */                          \
	X(if_mixed)     /* 1: each run has its own --if-changed */                                 \
	X(recompress)   /* 1: each run has its own --compress */                                   \
	X(age_s)        /* --delete-after */                                                       \
	X(transfer_kib) /* bytes after which runs begin no file; 0: no limit */                    \
	X(open_lines)   /* 1: the last line of a log may lack its newline */                       \
	X(id_gone)      /* times that the id object is deleted */                                  \
	X(bad_part)     /* 1: the server never accepts the first part of a file */                 \
	X(meets)        /* of 1,000 writes to a shared row, so many are held (rivals.h) */         \
	X(proxy)        /* 1: a proxy caches the replies of S3 */                                  \
	X(zoo)          /* 1: logs have the names that many programs give them */                  \
	X(rings)        /* 1: one log of a host is a ring of files */                              \
	X(timeless)     /* 1: compressors do not keep the time of a log */                         \
	X(images)       /* 1: a disk is copied, and boots as another machine */                    \
	X(silences)     /* times that servers or connections fall silent for a while */            \
	X(denials)      /* times that a policy denies writes to S3, for a while */                 \
	X(repeats)      /* 1: growing logs are all equal; only by hand */                          \
	X(portal)       /* 1: pages of HTML have an ETag; only by hand */                          \
	X(at_lease)     /* 1: processes are stopped for about a lease; only by hand */

struct scenario {
#define FIELD(name) unsigned name;
	SCENARIO_FIELDS(FIELD)
#undef FIELD
};

/* Chooses the scenario of a seed: a night or more with two to four hosts, three to twelve runs, and
 * ten faults or more. All hosts have rotated logs, or only the last one has, and people change the
 * files of the others. One seed in 200 is larger in some respect. Without `may_be_night`, it lasts
 * some minutes. */
void scenario_choose(uint64_t seed, bool may_be_night, struct scenario *ret);
size_t scenario_fields(void);
const char *scenario_name(size_t i);
unsigned *scenario_field(struct scenario *scenario, size_t i);
/* Sets "name=value". Returns false if there is no such name. */
bool scenario_set(struct scenario *scenario, const char *setting);
/* Prints all numbers but 0 on one line. */
void scenario_print(const struct scenario *scenario, FILE *to);
