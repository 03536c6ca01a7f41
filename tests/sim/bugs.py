"""Bugs that are put into a copy of the source on purpose (find-bugs). `settings` narrow the worlds where only few are about
the bug."""

BUGS = {
    "done-without-claim": {  # the fence of a done mark is the session alone
        "file": "src/marks/mark.c",
        "old": 'mark_equals("session", ref->session), mark_equals("claim", claim->id)};\n'
        "\tenum outcome o = update(ref, &c, fence, 3, ret_seen, ret_problem);",
        "new": 'mark_equals("session", ref->session)};\n\tenum outcome o = update(ref, &c, fence, 2, ret_seen, ret_problem);',
    },
    "done-without-fence": {
        "file": "src/marks/mark.c",
        "old": "enum outcome o = update(ref, &c, fence, 3, ret_seen, ret_problem);\n\tif (o == OUTCOME_REFUSED && ret_seen",
        "new": "enum outcome o = update(ref, &c, fence, 0, ret_seen, ret_problem);\n\tif (o == OUTCOME_REFUSED && ret_seen",
    },
    "take-over-without-state": {
        "file": "src/marks/mark.c",
        "old": "enum outcome o = update(ref, &c, as_seen, 4, ret_seen, ret_problem);",
        "new": "enum outcome o = update(ref, &c, as_seen + 1, 3, ret_seen, ret_problem);",
    },
    "take-over-at-once": {  # a claim counts as stale whatever its session does
        "file": "src/upload/file/claim.c",
        "old": "return over ? STEP_NEXT : held(worker, file, again_ns);",
        "new": "over = true;\n\treturn over ? STEP_NEXT : held(worker, file, again_ns);",
    },
    "lost-is-done": {  # no answer to the done mark is taken for yes
        "file": "src/upload/file/file_done.c",
        "old": "if (o == OUTCOME_OK)\n\t\treturn STEP_NEXT;\n\tif (o != OUTCOME_REFUSED)",
        "new": "if (o == OUTCOME_OK || o == OUTCOME_LOST || o == OUTCOME_TRANSIENT)\n\t\treturn STEP_NEXT;\n\tif (o != OUTCOME_REFUSED)",
    },
    "put-lost-is-done": {
        "file": "src/upload/file/whole.c",
        "old": "switch (o) {\n\tcase OUTCOME_OK:\n\t\treturn prove_whole(worker, file, reply);",
        "new": "switch (o) {\n\tcase OUTCOME_LOST:\n\tcase OUTCOME_OK:\n\t\treturn file_done(worker, file, reply, S3ONCE_EVENT_UPLOADED);",
    },
    "no-look-after-take-over": {
        "file": "src/upload/file/claim.c",
        "old": "file->claim.taken_over && (before->state != MARK_DONE || run->options.reupload);",
        "new": "file->claim.taken_over && before->state == MARK_DONE && run->options.reupload;",
    },
    "changes-while-read": {  # the file is not compared with what was opened
        "file": "src/upload/body/body.c",
        "old": "int body_unchanged(int fd, const struct file_state *state)\n{",
        "new": "int body_unchanged(int fd, const struct file_state *state)\n{\n\tif (fd >= 0)\n\t\treturn 0;",
    },
    "no-condition": {  # nothing keeps a PUT from replacing what is there
        "file": "src/s3/s3_request.c",
        "old": "if (condition->if_none_match) {",
        "new": "if (condition->if_none_match && !request) {",
    },
    "heartbeat-without-version": {
        "file": "src/marks/session.c",
        "old": ".changes = changes, .n_changes = 3, .conditions = ours, .n_conditions = 2},",
        "new": ".changes = changes, .n_changes = 3, .conditions = ours, .n_conditions = 0},",
    },
    "lease-from-the-reply": {
        "file": "src/lease/lease_beat.c",
        "old": "renewed(lease, sent_ns);",
        "new": "renewed(lease, clock_boot_ns());",
    },
    "lease-is-never-over": {  # who lost the lease goes on
        "file": "src/upload/run.c",
        "old": "return run_is_over(run) || clock_boot_ns() >= session_lease_ends_ns(run->session);",
        "new": "return atomic_load(&run->stop) > 1;",
    },
    "observed-from-any-time": {  # a version that was just seen counts as seen for ever
        "file": "src/lease/observer.c",
        "old": "return now_ns > o->since_ns ? now_ns - o->since_ns : 0;",
        "new": "return now_ns > o->since_ns ? now_ns - o->since_ns + 600000000000U : 600000000000U;",
    },
    "same-host-is-same-machine": {  # a process that is not here is gone, wherever it ran
        "file": "src/lease/process.c",
        "old": "if (!process_is_near(self, other) || other->pid <= 0)\n\t\treturn false;",
        "new": "if (other->pid <= 0)\n\t\treturn false;",
    },
    "statement-200-is-ok": {
        "file": "src/store/dynamodb_statement.c",
        "old": "const enum outcome outcome = classify(&attempt).outcome;",
        "new": "const enum outcome outcome = classify(&attempt).outcome == OUTCOME_REFUSED ? OUTCOME_REFUSED : OUTCOME_OK;",
    },
    "one-item-twice-in-a-batch": {
        "file": "src/store/dynamodb_batch.c",
        "old": "if (!has_key(batch, &ticket->write->key) &&",
        "new": "if ((!has_key(batch, &ticket->write->key) || batch) &&",
    },
    "last-marks-are-not-synced": {
        "file": "src/store/sqlite_queue.c",
        "old": "return may_wait ? SQLITE_OK : sync_file(queue);",
        "new": "return may_wait || list ? SQLITE_OK : sync_file(queue);",
    },
    "one-that-may-wait-delays-all": {
        "file": "src/store/sqlite_queue.c",
        "old": "bool may_wait = true;\n\n\tfor (struct ticket *t = list->first; t; t = t->next)\n\t\tmay_wait &=",
        "new": "bool may_wait = false;\n\n\tfor (struct ticket *t = list->first; t; t = t->next)\n\t\tmay_wait |=",
    },
    "412-is-ours": {  # whatever is there is taken for the file
        "file": "src/upload/file/whole.c",
        "old": "return look_after_refusal(worker, file, &put->condition);\n\tcase OUTCOME_ABSENT:",
        "new": "return file_done(worker, file, reply, S3ONCE_EVENT_ADOPTED);\n\tcase OUTCOME_ABSENT:",
    },
    "size-is-enough": {  # an object of the same size counts as the file
        "file": "src/marks/judge.c",
        "old": "return both(by_sum(sums, &object->sum), by_md5(sums, object->etag, object->etag_is_opaque));",
        "new": "return object->size ? PROOF_YES : both(by_sum(sums, &object->sum), by_md5(sums, object->etag, object->etag_is_opaque));",
    },
}
