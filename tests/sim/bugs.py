"""Bugs that are put into a copy of the source on purpose (find-bugs): what stands in exactly one place of src, and what stands
there instead."""

BUGS = {
    # Claims and marks
    "done-without-claim": (  # the fence of a done mark is the session alone
        "row_expect(&write, &mark_table, GROUP_STATE | GROUP_OWNER, &own);\n\tenum outcome o = write_mark(ref, &write, ret_seen, ret_problem);",
        "row_expect(&write, &mark_table, GROUP_STATE | GROUP_OWNER, &own);\n\twrite.n_conditions--;\n"
        "\tenum outcome o = write_mark(ref, &write, ret_seen, ret_problem);",
    ),
    "done-without-fence": (
        "row_expect(&write, &mark_table, GROUP_STATE | GROUP_OWNER, &own);\n\tenum outcome o = write_mark(ref, &write, ret_seen, ret_problem);",
        "enum outcome o = write_mark(ref, &write, ret_seen, ret_problem);",
    ),
    "take-over-without-state": (
        "row_expect(write, &mark_table, GROUP_STATE | GROUP_OWNER | GROUP_UPLOAD_ID, seen);",
        "row_expect(write, &mark_table, GROUP_OWNER | GROUP_UPLOAD_ID, seen);",
    ),
    "take-over-keeps-the-claim": (  # a take-over draws no id of its own
        "mark->tries = seen->tries + 1;",
        "if (*seen->claim)\n\t\tmemcpy(claim->id, seen->claim, sizeof claim->id);\n\tmemcpy(mark->claim, claim->id, sizeof mark->claim);\n"
        "\tmark->tries = seen->tries + 1;",
    ),
    "take-over-at-once": (  # a claim counts as stale whatever its session does
        "if (over) return STEP_NEXT; const bool waits",
        "over = true;\n\tif (over)\n\t\treturn STEP_NEXT;\n\tconst bool waits",
    ),
    "lost-is-done": (  # no answer to the done mark is taken for yes
        "enum outcome o = mark_done(&ref, &file->claim, version, source, &seen, &problem);",
        "enum outcome o = mark_done(&ref, &file->claim, version, source, &seen, &problem);\n"
        "\tif (o == OUTCOME_LOST || o == OUTCOME_TRANSIENT || o == OUTCOME_THROTTLED)\n\t\to = OUTCOME_OK;",
    ),
    "done-is-done": (  # another version that is done counts as this one
        "if (file->seen_mark.state == MARK_DONE && !bucket_ensure_trusted(worker->run, worker->marks))\n\t\treturn STEP_OVER;",
        "if (file->seen_mark.state == MARK_DONE && !bucket_ensure_trusted(worker->run, worker->marks))\n\t\treturn STEP_OVER;\n"
        "\tif (file->seen_mark.state == MARK_DONE)\n\t\treturn handle_done(worker, file);",
    ),
    "taken-over-is-not-looked-for": (  # the condition refuses what is there, once all of it was sent again
        "if (was_begun)\n\t\treturn STEP_LOOK;",
        "",
    ),
    "fails-without-claim": (
        "row_set(&write, &mark_table, GROUP_STATE | GROUP_ERROR | GROUP_AT, &mark); row_expect(&write, &mark_table, GROUP_STATE | GROUP_OWNER, &own);",
        "row_set(&write, &mark_table, GROUP_STATE | GROUP_ERROR | GROUP_AT, &mark);",
    ),
    "forgotten-by-another-key": (  # of a compressed object
        'snprintf(object, sizeof object, "%s%s", subject->ref.key, subject->suffix);',
        'snprintf(object, sizeof object, "%s", subject->ref.key);',
    ),
    "mark-has-the-suffix-of-its-claim": (  # and not that of what was opened since
        "const struct mark mark = {.state = MARK_DONE, .done = *version, .source = (char *)(uintptr_t)source, .at_s = now_s(ref)};",
        "struct mark mark = {.state = MARK_DONE, .done = *version, .source = (char *)(uintptr_t)source, .at_s = now_s(ref)};\n"
        "\tmemcpy(mark.done.suffix, claim->suffix, sizeof mark.done.suffix);",
    ),
    # What is in S3
    "put-lost-is-done": (
        "if (o != OUTCOME_OK) return look_after_failed_write(worker, file, &put.condition,",
        "if (o == OUTCOME_LOST)\n\t\treturn file_finish(worker, file, &reply, S3ONCE_EVENT_UPLOADED);\n"
        "\tif (o != OUTCOME_OK)\n\t\treturn look_after_failed_write(worker, file, &put.condition,",
    ),
    "a-cache-may-answer": (  # for the server
        "if (!error && !call->is_write) ret->headers[",
        "if (error && !call->is_write)\n\t\tret->headers[",
    ),
    "no-condition": (  # nothing keeps a PUT from replacing what is there
        "return (struct s3_condition){.if_none_match = true};",
        "return (struct s3_condition){.if_none_match = false};",
    ),
    "no-if-match": (
        "{.if_match = file->replaced_etag}",
        "{.if_match = NULL}",
    ),
    "412-is-ours": (  # whatever is there is taken for the file
        "if (o != OUTCOME_OK) return look_after_failed_write(worker, file, &put.condition,",
        "if (o == OUTCOME_REFUSED)\n\t\treturn file_finish(worker, file, &reply, S3ONCE_EVENT_ADOPTED);\n"
        "\tif (o != OUTCOME_OK)\n\t\treturn look_after_failed_write(worker, file, &put.condition,",
    ),
    "size-is-enough": (  # an object of the same size counts as the file
        "*ret = proof_whole(encoding ? &file->object_sums : &file->content_sums, object, SIZE_KNOWN);",
        "*ret = PROOF_YES;",
    ),
    "earlier-is-foreign": (  # an earlier version that was sent and not marked is a conflict
        "case JUDGED_EARLIER:\n\t\treturn mark_earlier_version(worker, file, evidence->object);",
        "case JUDGED_EARLIER:\n\t\treturn handle_conflict(worker, file, evidence);",
    ),
    "foreign-is-replaced": (
        "case JUDGED_FOREIGN:\n\t\tbreak;\n\t}\n\treturn handle_conflict(",
        "case JUDGED_FOREIGN:\n\t\treturn replace_damaged(worker, file, evidence->object);\n\t}\n\treturn handle_conflict(",
    ),
    "other-suffixes-are-not-looked-at": (
        "file->fd < 0 : *c->content_id != '\\0';",
        "file->fd < 0 : file->fd < 0 && *c->content_id;",
    ),
    "no-look-before-a-write": (  # where conditions may be ignored
        "if (!file_needs_look(worker, file, S3_PUT_CONDITION))\n\t\treturn STEP_NEXT;\n\treturn file->encoding ? look_before_write",
        "if (!file->encoding || !file_needs_look(worker, file, S3_PUT_CONDITION))\n\t\treturn STEP_NEXT;\n\treturn file->encoding ? look_before_write",
    ),
    "another-suffix-is-told": (  # of what was found under one
        "file->version ? file->version->suffix : c->suffix",
        "c->suffix",
    ),
    "manifest-after-the-grace": (
        "{.abandon = was_stopped, .abandon_arg = run,",
        "{.abandon = was_stopped == NULL ? was_stopped : NULL,\n\t\t\t.abandon_arg = run,",
    ),
    "the-same-id-for-another-bucket": (  # of the object that identifies the bucket, from who has lost its row
        "random_id(id);\n\t\tconst enum outcome o =\n\t\t\tput_id(",
        "memcpy(id, run->space.settings.table_id, ID_CHARS + 1);\n\t\tconst enum outcome o =\n\t\t\tput_id(",
    ),
    "bodies-in-memory-are-sent-again-at-once": (  # without waiting for --bwlimit
        "ret->http.memory ? take_bandwidth : NULL",
        "NULL",
    ),
    # Parts
    "upload-is-not-recorded": (  # no run finds the parts of one that was killed
        "o = mark_record_upload(&ref, &file->claim, &upload, &problem);",
        "o = file->fd < 0 ? mark_record_upload(&ref, &file->claim, &upload, &problem)"
        " : (open_upload_move(&file->claim.upload, &upload), OUTCOME_OK);",
    ),
    "found-although-not-aborted": (  # the file is tried again, by whoever has it then
        "if (step != STEP_NEXT) /* the abort is tried again in the next turn of the file */ return step; file->candidate->was_sent = is_sent;",
        "file->candidate->was_sent = is_sent;\n\tif (step != STEP_NEXT)\n\t\treturn step;",
    ),
    # Files
    "changes-while-read": (  # the file is not compared with what was opened
        "int body_check_unchanged(int fd, const struct file_state *state)\n{",
        "int body_check_unchanged(int fd, const struct file_state *state)\n{\n\tif (fd >= 0)\n\t\treturn 0;",
    ),
    "listed-once": (  # a log that is renamed while its folder is listed is missed
        "if (is_same && n_read == 0)\n\t\t\treturn 0;",
        "if (n_read >= 0)\n\t\t\treturn 0;",
    ),
    "piece-is-not-compared": (  # what is copied of a log that grows may be another log's
        "strcmp(id, found->content_id)",
        "strcmp(id, id)",
    ),
    "an-equal-log-is-a-copy": (  # of one that was uploaded on another day
        "if (is_same_second(file->state.mtime_ns, row->file_mtime_ns) || (has_same_moment && family_moment_is_unique(file->moment)))"
        " return true;",
        "if (row)\n\t\treturn true;",
    ),
    "days-of-the-clock": (  # a clock that is wrong by years makes logs that nobody has seen for long
        "day = day + 1, clock = %lld WHERE clock IS NOT %lld;",
        "day = %lld, clock = %lld;",
    ),
    "a-copy-of-what-waits-is-another-log": (  # of a log that was emptied, and whose file could not be read
        "const bool is_free = row->end && row->state != LOG_TAKEN;",
        "const bool is_free = row->end && row->state != LOG_TAKEN && row->state != LOG_WAITS;",
    ),
    "removed-without-proof": (
        "done = check_object(worker, file, &mark.done, ret, ret_problem);",
        "done = file->fd < 0 ? check_object(worker, file, &mark.done, ret, ret_problem) : PROOF_YES;",
    ),
    "removed-after-a-rename-of-another": (  # what is taken aside is not looked at again
        "is_same = is_still_the_file(removal, folder_fd, lease);",
        "is_same = removal->fd >= 0 || is_still_the_file(removal, folder_fd, lease);",
    ),
    "removed-while-it-is-opened": (  # nobody asks whether the lease was asked back
        "return lease != LEASE_HELD || fcntl(removal->fd, F_GETLEASE) == F_RDLCK;",
        "return true;",
    ),
    # Sessions
    "heartbeat-without-version": (
        "conn, session->id, try->version, &write,",
        "conn, session->id, NULL, &write,",
    ),
    "lease-from-the-reply": (
        "note_renewal(lease, sent_ns);",
        "note_renewal(lease, clock_boot_ns());",
    ),
    "lease-is-never-over": (  # who lost the lease goes on
        "return run_poll_is_over(run) || clock_boot_ns() >= session_lease_ends_ns(run->session);",
        "return run_grace_is_over(run);",
    ),
    "observed-from-any-time": (  # a version that was just seen counts as seen for ever
        "return now_ns > o->since_ns ? now_ns - o->since_ns : 0;",
        "return now_ns > o->since_ns ? now_ns - o->since_ns + 600000000000U : 600000000000U;",
    ),
    "observed-before-the-reply": (
        "enum outcome o = get_row(conn, seen->row, NULL, &session->limits, &row, ret_problem); "
        "const uint64_t now_ns = clock_boot_ns();",
        "const uint64_t now_ns = clock_boot_ns();\n"
        "\tenum outcome o = get_row(conn, seen->row, NULL, &session->limits, &row, ret_problem);",
    ),
    "same-host-is-same-machine": (  # a process that is not here is gone, wherever it ran
        "if (!process_is_local(self, other) || other->pid <= 0)\n\t\treturn false;",
        "if (other->pid <= 0)\n\t\treturn false;",
    ),
    "a-clone-is-the-same-machine": (
        "are_known_same(self->boot, other->boot) && are_known_same(self->machine, other->machine) && !is_other_board;",
        "are_known_same(self->boot, other->boot) && !is_other_board;",
    ),
    "unreadable-is-not-there": (  # of what tells clones apart
        "return errno == ENOENT || errno == EACCES || errno == EPERM ? 0 : -1; const ssize_t n = read(fd, ret, VALUE_MAX);"
        " close(fd); return n;",
        "return 0;\n\tconst ssize_t n = read(fd, ret, VALUE_MAX);\n\tclose(fd);\n\treturn n > 0 ? n : 0;",
    ),
    "lock-from-the-reply": (
        "complete_lock(a, lock, version, sent_ns, ret_item)",
        "complete_lock(a, lock, version, clock_boot_ns(), ret_item)",
    ),
    "lease-by-the-wall-clock": (
        "observer_note(seen, row->version, now_ns) >=",
        "observer_note(seen, row->version, (uint64_t)clock_wall_ns()) >=",
    ),
    # Writers whose names no run is told of
    "a-name-that-rests-is-live": (  # for ever
        " AND size AND mtime < :at_rest_before AND form <> 0",
        " AND size AND mtime < :at_rest_before - :at_rest_before AND form <> 0",
    ),
    "the-newest-one-is-finished": (  # where each file has its last name from the first line on
        '" OR (form = 1 AND NOT EXISTS (" PEERS',
        '" OR (form = 1 AND source < 0 AND NOT EXISTS (" PEERS',
    ),
    "what-is-live-is-not-named": (  # as one that waits
        '[ALL] = ENTRIES " ORDER BY',
        '[ALL] = ENTRIES " AND NOT (live AND kind = 3) ORDER BY',
    ),
    "what-waits-has-every-log": (  # of a file that was emptied
        "if (is_packed || known[i].is_there)",
        "if (emptied[i])",
    ),
    "a-ring-has-a-live-log": (  # the one that has the family's name
        "const bool begin_alike = memcmp(own.first_bytes, next.first_bytes, n) == 0;",
        "const bool begin_alike = memcmp(own.first_bytes, next.first_bytes, n) != 0;",
    ),
    "an-open-file-is-finished": (  # of a ring
        "if (options->rotated && !options->takes_open_logs && file_is_being_written(fd))",
        "if (options->rotated && !options->takes_open_logs && file_is_being_written(fd) && fd < 0)",
    ),
    "a-new-time-is-a-new-log": (  # of a compressor that does not keep it
        "return is_newly_packed && file->has_own_time && has_same_moment;",
        "return found->bytes != row->end;",
    ),
    # Copies of marks
    "a-copy-is-the-machine-of-its-marks": (
        "settings->machine = *here; random_id(settings->table_id);",
        "settings->machine = *here;",
    ),
    # Silent servers
    "no-end-where-nothing-moves": (
        "progress_set_limit(&run->progress, o->give_up_after_ms, o->request_timeout_ms);",
        "progress_set_limit(&run->progress, UINT32_MAX, o->request_timeout_ms);",
    ),
    "an-end-without-a-reason": (  # and not with 3
        "why.text, (unsigned long long)(still_ns / NS_PER_S)); run_fail(run, &explained);",
        "why.text, (unsigned long long)(still_ns / NS_PER_S));",
    ),
    "nothing-is-said-while-nothing-moves": (
        "if (clock->locked.has_warned || clock->locked.still_ns < PROGRESS_SAY_NS ||",
        "if (clock->locked.has_warned || clock->locked.still_ns < 30 * PROGRESS_SAY_NS ||",
    ),
    # Several writers, whose options differ
    "a-live-claim-is-forgotten": (  # by gc, which waits only before it aborts an upload
        "if (chore != CHORE_NONE && mark->state == MARK_CLAIMED)",
        "if (chore == CHORE_ABORT && mark->state == MARK_CLAIMED)",
    ),
    "lock-by-ones-own-lease": (  # and not by that of the holder
        "const uint64_t lease_ns = ret_row->lease_ms * NS_PER_MS;",
        "const uint64_t lease_ns = a->lease_ns;",
    ),
    "session-by-ones-own-lease": (
        "observer_note(seen, row->version, now_ns) >= row->lease_ns",
        "observer_note(seen, row->version, now_ns) >= session->options.lease_ns",
    ),
    "refused-is-over": (  # a session whose heartbeat came before its end was written
        "*ret_over = o == OUTCOME_OK || (o == OUTCOME_REFUSED &&",
        "*ret_over = o == OUTCOME_OK || o == OUTCOME_REFUSED || (o == OUTCOME_REFUSED &&",
    ),
    "a-replacement-is-resumed-by-fail": (  # and by skip
        "return replaces_versions(worker) && has_done_key(file) &&",
        "return has_done_key(file) &&",
    ),
    "a-replacement-under-another-suffix": (  # is resumed with the etag of what is under this one
        "return replaces_versions(worker) && has_done_key(file) &&",
        "return replaces_versions(worker) &&",
    ),
    "age-of-the-version-before": (  # for --delete-after=AGE
        "is_proven ? store_time_s(run->store) : file->seen_mark.at_s;",
        "is_proven && file->fd < 0 ? store_time_s(run->store) : file->seen_mark.at_s;",
    ),
    "the-last-part-is-not-noted": (  # of those that S3 has
        "part->part_number >= 1 && part->part_number <= listed->n",
        "part->part_number >= 1 && part->part_number < listed->n",
    ),
    "as-many-parts-are-progress": (
        "if (n_done <= c->parts_done)",
        "if (n_done < c->parts_done)",
    ),
    "given-up-stays-open": (  # until no large file is begun any more
        "if (upload_ended)\n\t\tqueue->locked.turns.uploads_open--;",
        "if (upload_ended && result == PART_STORED)\n\t\tqueue->locked.turns.uploads_open--;",
    ),
    "each-commit-begins-the-second": (  # after which all is synced
        "if (!rc && !store->unsynced_since_ns)",
        "if (!rc)",
    ),
    "a-piece-of-half-a-line": (
        "if (r == 0 && grown_file_may_end_in_line(file) && content.size > first_prefix_bytes)",
        "if (r == 0 && grown_file_may_end_in_line(file) && content.size > first_prefix_bytes && content.fd < 0)",
    ),
    "kept-output-goes-at-a-limit": (  # before it is in S3
        "if (exit == S3ONCE_EXIT_OK && !run->dry) spool_forget(run);",
        "if (!run->dry)\n\t\tspool_forget(run);",
    ),
    "the-id-object-is-made-again": (  # by who has not been told that it is the same bucket
        "else if (run->options.bucket_is != S3ONCE_BUCKET_SAME)",
        "else if (run->options.bucket_is != S3ONCE_BUCKET_SAME && !id_object)",
    ),
    # Stores
    "statement-200-is-ok": (
        "const enum outcome outcome = classify(&attempt).outcome;",
        "const enum outcome outcome = classify(&attempt).outcome == OUTCOME_REFUSED ? OUTCOME_REFUSED : OUTCOME_OK;",
    ),
    "last-marks-are-not-synced": (
        "if (!rc && !may_sync_later)",
        "if (!rc && !may_sync_later && store->failed_rc)",
    ),
    "every-write-may-wait": (
        "may_sync_later &= write && write->may_sync_later;",
        "may_sync_later |= write != NULL;",
    ),
    "sync-waits-like-a-mark": (  # so that a file is removed before its mark is on the disk
        "may_sync_later &= write && write->may_sync_later;",
        "may_sync_later &= !write || write->may_sync_later;",
    ),
    "replacing-claim-may-wait": (  # the failure of power may undo it, and the change of the file
        "ref.may_sync_later = file->seen_mark.state != MARK_DONE;",
        "ref.may_sync_later = true;",
    ),
    # The bucket
    "gone-is-shown": (  # marks are believed although their objects are not there
        "return WITNESS_GONE;",
        "return WITNESS_SHOWN;",
    ),
    "any-answer-shows": (  # a page of HTML shows an object
        "if (o == OUTCOME_OK && is_wanted(asking, wanted, ret))",
        "if (o == OUTCOME_OK)",
    ),
    "shown-by-the-next-generation": (  # who has begun anew meanwhile shows the earlier marks
        "if (now.generation == asking->space->generation)",
        "if (now.generation >= asking->space->generation)",
    ),
    "marks-of-before-count": (  # --bucket new does not begin with other marks
        "check->run->space.generation = next.generation;",
        "check->run->space.generation = next.generation - 1;",
    ),
}

# Where a bug is looked for if the worlds as they are do not show it soon: numbers of scenario.h.
EVENING = "night_h=0 large=0 "  # people's files, and no logs beside them
SHARED = EVENING + "rotated=0 live=0 dynamodb=1 "
ALONE = EVENING + "rotated=0 live=0 dynamodb=0 hosts=1 "
LOGS = EVENING + "rotated=1 dynamodb=0 hosts=1 removes=0 "
PARTS = "night_h=0 rotated=0 live=0 dynamodb=1 files=2 large=2 "
NIGHT = "night_h=10 hosts=2 live=0 removes=0 rotated=1 dynamodb=0 timeless=0 "
ZOO = NIGHT + "zoo=1 rings=0"
LIVE = "night_h=10 rotated=1 live=1 dynamodb=0 removes=0"
RINGS = NIGHT + "zoo=0 rings=1 clock_jumps=0 clock_days=0 bad_reads=0"
IMAGES = (
    "images=1 night_h=9 rotated=2 hosts=3 dynamodb=0 clones=0 ignores=0 removes=0 deletes=0 anew=0 backups=0 foreign=0 pipes=0 manifest=0 lifecycle_h=0 "
    "batches=0 no_old=0 partial=0 bad_part=0 age_s=0 spools=0 id_gone=0 transfer_kib=0 recompress=0 bad_reads=0 if_changed=0 hot=1 edits=20 runs=5"
)
SILENCES = "silences=3 slow=0 net_cuts=0 lost=0 lost_after=0 hangs=0 errors=0 errors_after=0 throttled=0 html=0 partial=0"
KINDS = {  # the most numbers first
    "shared": SHARED,
    "alone": ALONE,
    "logs": LOGS,
    "parts": PARTS,
    "zoo": ZOO,
    "rings": RINGS,
    "images": IMAGES,
    "silences": SILENCES,
    "evening": EVENING,
}
WORLDS = {
    "done-without-claim": SHARED + "hosts=1 hot=1 aws=0 batches=2 edits=20 runs=12 concurrency=8 again=200 late_s=60 files=3 attempts=1 if_changed=0",
    "done-without-fence": SHARED + "hosts=1 hot=1 aws=0 batches=2 edits=20 runs=12 concurrency=8 again=200 late_s=60 files=3 attempts=1 if_changed=0",
    "no-if-match": SHARED + "hosts=2 aws=0 ignores=0 hot=1 edits=20 runs=12 files=3 again=200 late_s=60 if_changed=0 kills=3",
    "removed-without-proof": EVENING + "rotated=1 live=0 dynamodb=0 hosts=1 removes=1 deletes=3 files=3 edits=20 runs=8 anew=0 backups=0",
    "lost-is-done": SHARED + "hosts=1 hot=1 edits=20 runs=12 files=5 lost=100 errors=100",
    "fails-without-claim": SHARED + "hosts=2 aws=0 batches=2 hot=1 edits=20 runs=12 bad_reads=50 again=200 late_s=60 files=3 attempts=1",
    "take-over-without-state": SHARED + "hosts=2 aws=0 batches=2 hot=1 edits=20 runs=12 kills=5 again=200 late_s=60 lease_s=5 slow=0 files=5",
    "taken-over-is-not-looked-for": SHARED + "hosts=2 aws=1 ignores=0 varies=0 runs=8 kills=8 lease_s=5 slow=0 files=8",
    "forgotten-by-another-key": SHARED + "hosts=2 compress=1 runs=3 audits=7",
    "mark-has-the-suffix-of-its-claim": SHARED + "hosts=2 runs=1 pipes=8 compress=1 spools=1",
    "another-suffix-is-told": LOGS + "live=0 varies=1 runs=8 files=3 edits=10 power_cuts=8",
    "manifest-after-the-grace": SHARED + "hosts=2 runs=8 manifest=1 asked=8 grace_s=1 hangs=50 slow=1 lease_s=30",
    "bodies-in-memory-are-sent-again-at-once": ALONE + "runs=5 files=8 edits=20 rate_kib=8 lost_after=100 errors=200 concurrency=8",
    "found-although-not-aborted": PARTS + "hosts=2 runs=8 kills=5 lost_after=100 errors=100 partial=300 attempts=1",
    "upload-is-not-recorded": PARTS + "hosts=1 anew=0 foreign=0 deletes=0 if_changed=0 runs=3 kills=5 lease_s=5 slow=0",
    "no-look-before-a-write": ALONE + "aws=0 ignores=1 foreign=0 varies=0 removes=0 anew=0 compress=0 hot=0 runs=8 files=5 power_cuts=8 backups=2",
    "changes-while-read": SHARED + "hosts=1 hot=1 edits=20 runs=12 files=3 slow=0 lags=300 concurrency=2",
    "listed-once": LOGS + "live=0 slow_files=1 files=3 edits=20 runs=3",
    "piece-is-not-compared": LOGS + "live=1 slow=1 lease_s=30 files=3 edits=20 runs=8 concurrency=1",
    "an-equal-log-is-a-copy": "night_h=10 rotated=1 live=1 repeats=1 dynamodb=0 removes=0 hosts=1 files=1 runs=5 backups=0 anew=0 deletes=0",
    "days-of-the-clock": "night_h=10 rotated=1 live=1 dynamodb=0 removes=0 clock_jumps=4 clock_days=1000",
    "the-same-id-for-another-bucket": "night_h=10 hosts=4 rotated=1 live=1 dynamodb=0 removes=0 aws=1 anew=2 id_object=1 errors_after=200 kills=8",
    "a-copy-of-what-waits-is-another-log": "hosts=3 runs=4 files=2 rotated=1 live=1 dynamodb=0 removes=0 bad_reads=46 night_h=4 varies=0 backups=0",
    "removed-after-a-rename-of-another": ALONE + "removes=1 slow_files=1 files=8 hot=1 edits=20 runs=5 deletes=0 anew=0 backups=0",
    "removed-while-it-is-opened": ALONE + "removes=1 slow_files=1 files=8 hot=1 edits=100 runs=30 overlap=0 deletes=0 anew=0 backups=0",
    "unreadable-is-not-there": SHARED + "hosts=3 clones=1 bad_reads=50 runs=5 overlap=500 files=8 slow=1 lease_s=30",
    "lease-from-the-reply": SHARED + "hosts=3 runs=12 overlap=1000 files=8 hot=1 edits=100 lease_s=30 slow=0 stops=30 at_lease=1 kills=0 lags=400 concurrency=4",
    "lease-is-never-over": SHARED + "hosts=2 runs=5 overlap=500 files=8 lease_s=5 slow=0 stops=10 lags=300 concurrency=4",
    "lock-from-the-reply": SHARED + "hosts=3 runs=1 lockers=16 lease_s=5 slow=0 stops=12 lags=300",
    "observed-before-the-reply": SHARED + "hosts=3 runs=5 overlap=500 files=8 lease_s=30 slow=1 stops=10 net_cuts=3",
    "lease-by-the-wall-clock": SHARED + "hosts=3 runs=5 overlap=500 files=8 lease_s=30 slow=1 clock_jumps=12",
    "replacing-claim-may-wait": ALONE + "removes=0 hot=1 edits=20 runs=12 power_cuts=10 files=3 if_changed=0 varies=0 backups=0 anew=0",
    "any-answer-shows": ALONE + "portal=1 anew=2 html=150 runs=8 removes=0 edits=3",
    "shown-by-the-next-generation": SHARED + "hosts=3 runs=5 overlap=500 files=8 anew=3 removes=0 lags=100",
    "a-name-that-rests-is-live": ZOO,
    "the-newest-one-is-finished": ZOO,
    "what-is-live-is-not-named": ZOO,
    "what-waits-has-every-log": LIVE + " rings=1",
    "a-ring-has-a-live-log": RINGS,
    "an-open-file-is-finished": RINGS,
    "a-new-time-is-a-new-log": LIVE + " timeless=1 zoo=0 rings=0",
    "a-copy-is-the-machine-of-its-marks": IMAGES + " large=0",
    "no-end-where-nothing-moves": SILENCES,
    "an-end-without-a-reason": SILENCES,
    "nothing-is-said-while-nothing-moves": SILENCES,
    "a-cache-may-answer": ALONE + "aws=0 proxy=1 runs=8 edits=20 hot=1 files=3 removes=0 if_changed=0",
    "a-live-claim-is-forgotten": SHARED + "hosts=3 runs=5 audits=12 keep_marks_s=1 slow=1 lease_s=30 files=8 concurrency=1",
    "lock-by-ones-own-lease": SHARED + "hosts=3 runs=1 lockers=16 leases=1 slow=0 stops=6",
    "session-by-ones-own-lease": SHARED + "hosts=3 runs=5 overlap=500 files=8 leases=1 slow=0 stops=10",
    "refused-is-over": SHARED + "hosts=3 runs=12 overlap=1000 files=8 hot=1 edits=100 lease_s=5 slow=0 stops=30 at_lease=1 kills=0 meets=500",
    "a-replacement-is-resumed-by-fail": PARTS + "hosts=2 runs=12 kills=8 if_mixed=1 hot=1 edits=20 lease_s=5 slow=0 recompress=0",
    "a-replacement-under-another-suffix": PARTS + "hosts=2 runs=12 kills=8 if_changed=0 recompress=1 hot=1 edits=20 lease_s=5 slow=0",
    "age-of-the-version-before": ALONE + "removes=1 age_s=60 edits=20 hot=1 runs=12 clock_jumps=0 backups=0 ignores=0 varies=0",
    "the-last-part-is-not-noted": PARTS + "hosts=1 runs=8 kills=8 lease_s=5 slow=0",
    "as-many-parts-are-progress": PARTS + "hosts=1 runs=3 bad_part=1 give_up_s=60 attempts=1 kills=0 stops=0 suspends=0 power_cuts=0 net_cuts=0 transfer_kib=0 edits=0 finals=0",
    "given-up-stays-open": PARTS + "bad_part=1",
    "each-commit-begins-the-second": ALONE + "slow=1 files=30 concurrency=8 runs=3 lease_s=30",
    "a-piece-of-half-a-line": "night_h=10 rotated=1 live=1 open_lines=1 dynamodb=0 removes=0 finals=0",
    "kept-output-goes-at-a-limit": SHARED + "hosts=2 runs=1 pipes=16 spools=1 transfer_kib=1 errors=300 attempts=1 give_up_s=5 slow=0",
    "the-id-object-is-made-again": SHARED + "hosts=2 runs=8 id_object=1 id_gone=2 anew=0 ignores=0 backups=0",
}
