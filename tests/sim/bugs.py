"""Bugs that are put into a copy of the source on purpose (find-bugs): what stands in exactly one place of src, and what stands
there instead."""

BUGS = {
    # Claims and marks
    "done-without-claim": (  # the fence of a done mark is the session alone
        "row_expect(&write, &mark_table, STATE | OWNER, &own);\n\tenum outcome o = write_mark(ref, &write, ret_seen, ret_problem);",
        "row_expect(&write, &mark_table, STATE | OWNER, &own);\n\twrite.n_conditions--;\n"
        "\tenum outcome o = write_mark(ref, &write, ret_seen, ret_problem);",
    ),
    "done-without-fence": (
        "row_expect(&write, &mark_table, STATE | OWNER, &own);\n\tenum outcome o = write_mark(ref, &write, ret_seen, ret_problem);",
        "enum outcome o = write_mark(ref, &write, ret_seen, ret_problem);",
    ),
    "take-over-without-state": (
        "row_expect(&write, &mark_table, STATE | OWNER | UPLOAD_ID, old);",
        "row_expect(&write, &mark_table, OWNER | UPLOAD_ID, old);",
    ),
    "take-over-keeps-the-claim": (  # a take-over draws no id of its own
        "mark.tries = old->tries + 1;",
        "if (*old->claim)\n\t\tmemcpy(claim.id, old->claim, sizeof claim.id);\n\tmemcpy(mark.claim, claim.id, sizeof mark.claim);\n"
        "\tmark.tries = old->tries + 1;",
    ),
    "take-over-at-once": (  # a claim counts as stale whatever its session does
        "return over ? STEP_NEXT : held(worker, file, again_ns);",
        "over = true;\n\treturn over ? STEP_NEXT : held(worker, file, again_ns);",
    ),
    "lost-is-done": (  # no answer to the done mark is taken for yes
        "enum outcome o = mark_done(&ref, &file->claim, version, &seen, &problem);",
        "enum outcome o = mark_done(&ref, &file->claim, version, &seen, &problem);\n"
        "\tif (o == OUTCOME_LOST || o == OUTCOME_TRANSIENT || o == OUTCOME_THROTTLED)\n\t\to = OUTCOME_OK;",
    ),
    "done-is-done": (  # another version that is done counts as this one
        "if (file->seen.state == MARK_DONE && !bucket_is_believed(worker->run, worker->marks))\n\t\treturn STEP_OVER;",
        "if (file->seen.state == MARK_DONE && !bucket_is_believed(worker->run, worker->marks))\n\t\treturn STEP_OVER;\n"
        "\tif (file->seen.state == MARK_DONE)\n\t\treturn done_file(worker, file);",
    ),
    # What is in S3
    "put-lost-is-done": (
        "if (o == OUTCOME_OK)\n\t\treturn prove_whole(worker, file, &reply);",
        "if (o == OUTCOME_OK || o == OUTCOME_LOST)\n\t\treturn file_done(worker, file, &reply, S3ONCE_EVENT_UPLOADED);",
    ),
    "no-condition": (  # nothing keeps a PUT from replacing what is there
        ".if_none_match = !replaces, .if_match",
        ".if_none_match = false, .if_match",
    ),
    "no-if-match": (
        ".if_match = replaces ? file->replaces : NULL}",
        ".if_match = NULL}",
    ),
    "412-is-ours": (  # whatever is there is taken for the file
        "return look_after_refusal(worker, file, &put.condition);",
        "return file_done(worker, file, &reply, S3ONCE_EVENT_ADOPTED);",
    ),
    "size-is-enough": (  # an object of the same size counts as the file
        "*ret = proof_whole(encoding ? &file->stored : &file->sums, object, true);",
        "*ret = PROOF_YES;",
    ),
    "earlier-is-foreign": (  # an earlier version that was sent and not marked is a conflict
        "case JUDGED_EARLIER:\n\t\treturn mark_earlier(worker, file, object);",
        "case JUDGED_EARLIER:\n\t\treturn conflict(worker, file, object, proof);",
    ),
    "foreign-is-replaced": (
        "case JUDGED_FOREIGN:\n\t\tbreak;\n\t}\n\treturn conflict(",
        "case JUDGED_FOREIGN:\n\t\treturn object_damaged(worker, file, object);\n\t}\n\treturn conflict(",
    ),
    "other-suffixes-are-not-looked-at": (
        ": *c->content);",
        ": file->fd < 0 && *c->content);",
    ),
    "no-look-before-a-write": (  # where conditions may be ignored
        "if (!file_needs_look(worker, file, S3_PUT_CONDITION))\n\t\treturn STEP_NEXT;\n\treturn file->encoding",
        "if (!file->encoding || !file_needs_look(worker, file, S3_PUT_CONDITION))\n\t\treturn STEP_NEXT;\n\treturn file->encoding",
    ),
    # Parts
    "upload-is-not-recorded": (  # no run finds the parts of one that was killed
        "enum outcome o = mark_record_upload(&ref, &file->claim, upload, &problem);",
        "enum outcome o = file->fd < 0 ? mark_record_upload(&ref, &file->claim, upload, &problem)\n\t\t: (open_upload_move(&file->claim.upload, upload), OUTCOME_OK);",
    ),
    # Files
    "changes-while-read": (  # the file is not compared with what was opened
        "int body_unchanged(int fd, const struct file_state *state)\n{",
        "int body_unchanged(int fd, const struct file_state *state)\n{\n\tif (fd >= 0)\n\t\treturn 0;",
    ),
    "listed-once": (  # a log that is renamed while its folder is listed is missed
        "if (r > 0 && n == 0)\n\t\t\treturn 0;",
        "if (n >= 0)\n\t\t\treturn 0;",
    ),
    "renamed-log-is-not-compared": (  # a rotated log's name may be another file's by now
        "if (fd >= 0 && (ret->dev != found.dev || ret->ino != found.ino)) {",
        "if (fd >= 0 && ret->dev != found.dev) {",
    ),
    "piece-is-not-compared": (  # what is copied of a log that grows may be another log's
        "if (r == 0 && strcmp(id, found->content_id) != 0)",
        "if (r != 0 && strcmp(id, found->content_id) != 0)",
    ),
    "removed-without-proof": (
        "done = ask_s3(worker, file, mark.done.suffix, ret, ret_problem);\n\tif (done == DONE_YES)\n\t\tdone = check_object(",
        "done = DONE_YES;\n\tif (done == DONE_NO)\n\t\tdone = check_object(",
    ),
    "removed-although-changed": (
        "if (!file_state_equal(&now, &removal->state))\n\t\treturn kept_because(",
        "if (now.size != removal->state.size && removal->fd < 0)\n\t\treturn kept_because(",
    ),
    "removed-after-a-rename-of-another": (  # what is taken aside is not looked at again
        "if (!is_still_the_file(removal, folder_fd, lease))",
        "if (removal->fd < 0 && !is_still_the_file(removal, folder_fd, lease))",
    ),
    # Sessions
    "heartbeat-without-version": (
        "conn, session->id, try->version, &write,",
        "conn, session->id, NULL, &write,",
    ),
    "lease-from-the-reply": (
        "renewed(lease, sent_ns);",
        "renewed(lease, clock_boot_ns());",
    ),
    "lease-is-never-over": (  # who lost the lease goes on
        "return run_ask_is_over(run) || clock_boot_ns() >= session_lease_ends_ns(run->session);",
        "return run_grace_is_over(run);",
    ),
    "observed-from-any-time": (  # a version that was just seen counts as seen for ever
        "return now_ns > o->since_ns ? now_ns - o->since_ns : 0;",
        "return now_ns > o->since_ns ? now_ns - o->since_ns + 600000000000U : 600000000000U;",
    ),
    "observed-before-the-reply": (
        "const uint64_t now_ns = clock_boot_ns(); /* after the reply: invariant 6 */",
        "const uint64_t now_ns = clock_boot_ns() + 2 * NS_PER_S;",
    ),
    "same-host-is-same-machine": (  # a process that is not here is gone, wherever it ran
        "if (!process_is_near(self, other) || other->pid <= 0)\n\t\treturn false;",
        "if (other->pid <= 0)\n\t\treturn false;",
    ),
    "a-clone-is-the-same-machine": (
        "return is_same(self->boot, other->boot) && is_same(self->machine, other->machine) &&",
        "return is_same(self->boot, other->boot) &&",
    ),
    "lease-by-the-wall-clock": (
        "else if (observer_note(seen, row->version, now_ns) < (uint64_t)row->lease_ms * NS_PER_MS)",
        "else if (observer_note(seen, row->version, (uint64_t)clock_wall_ns()) < (uint64_t)row->lease_ms * NS_PER_MS)",
    ),
    # Stores
    "statement-200-is-ok": (
        "const enum outcome outcome = classify(&attempt).outcome;",
        "const enum outcome outcome = classify(&attempt).outcome == OUTCOME_REFUSED ? OUTCOME_REFUSED : OUTCOME_OK;",
    ),
    "last-marks-are-not-synced": (
        "return may_wait ? SQLITE_OK : sync_file(queue);",
        "return may_wait || list ? SQLITE_OK : sync_file(queue);",
    ),
    "every-write-may-wait": (
        "may_wait &= op_of(t)->write && op_of(t)->write->may_sync_later;",
        "may_wait |= op_of(t)->write != NULL;",
    ),
    "replacing-claim-may-wait": (  # the failure of power may undo it, and the change of the file
        "ref.may_sync_later = file->seen.state != MARK_DONE;",
        "ref.may_sync_later = true;",
    ),
    # The bucket
    "gone-is-shown": (  # marks are believed although their objects are not there
        "answer = tell_gone(asking, &missed, ret_problem);",
        "answer = BUCKET_SHOWN;",
    ),
    "any-answer-shows": (  # a page of HTML shows an object
        "if (o == OUTCOME_OK && is_wanted(asking, wanted, ret))",
        "if (o == OUTCOME_OK)",
    ),
    "shown-by-the-next-generation": (  # who has begun anew meanwhile shows the earlier marks
        "answer = still_shown(asking, ret_problem);",
        "answer = BUCKET_SHOWN;",
    ),
    "marks-of-before-count": (  # --new-bucket does not begin with other marks
        "check->run->space.generation = next.generation;",
        "check->run->space.generation = next.generation - 1;",
    ),
}
