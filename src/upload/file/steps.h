/* The steps of a file that are one function each. look.h, multipart.h and spool.h have the others.
 */
#pragma once
#include "upload/file/file.h"

/* Steps 2 and 3, CLAIM: judges the mark, and claims it or takes it over. Returns NEXT once it is
 * claimed, OPEN if another uploader has written the mark meanwhile, or the step to take instead. */
enum step claim_file(struct worker *worker, struct file *file);

/* Step 5, SEND: sends the file by its plan. A small file is sent here by one PutObject, and is
 * marked as done. A large file is passed to multipart.c, and PARTS is returned once its parts are
 * in the queue. Returns NEXT if the file is now to be sent from the beginning. A dry run ends the
 * turn here. */
enum step send_file(struct worker *worker, struct file *file);

/* With options.removes: removes or moves a file that is in S3, if it is due, no rule keeps it, and
 * it is proven again. Reports the result. */
void remove_file(struct worker *worker, struct file *file);
