/* The messages of the library that are no events of a run or of a lock: for example, that
 * credentials cannot be renewed, or that a service does not answer. */
#ifndef S3ONCE_LOG_H
#define S3ONCE_LOG_H

#ifdef __cplusplus
extern "C" {
#endif

#ifndef S3ONCE_PUBLIC
#define S3ONCE_PUBLIC __attribute__((visibility("default")))
#endif

/* Takes one message: a line without its newline, escaped for a terminal. `priority` is one of
 * syslog(3): 3 for an error, 4 for a warning, 5 for a note, 6 for information, 7 for debugging. Any
 * thread of the library may call it, one call at a time. It must not call the library. */
typedef void s3once_log(void *arg, int priority, const char *message);

/* Hands the messages of up to this priority to `log`, for all runs and clients of the process.
 * NULL: they are written to standard error. That is where errors and warnings go before the first
 * call. It may be called from any thread. After it has returned, the former function is not called
 * any more. */
S3ONCE_PUBLIC void s3once_set_log(s3once_log *log, void *arg, int priority);

#ifdef __cplusplus
}
#endif
#endif
