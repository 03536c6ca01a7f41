"""Marks that wake on another machine, and objects that others uploaded: neither lets a run replace what is not its own."""

import shutil

import pytest

from tests.faults import faults
from tests.system.harness import MIB, content, make_tree
from tests.system.pushing import counts, marks_of, told

HOST = 'hostname "$0" && exec "$@"'
ID = 'mount --bind "$0" /etc/machine-id && exec "$@"'


@pytest.fixture
def web1(s3once, bucket, tmp_path):
    """A host that has uploaded one file, and the marks of which are copied to `copy`."""
    tree = make_tree(tmp_path / "tree", {"file": content("old", 1000)})
    run = s3once(*push(tree, bucket, tmp_path / "web1"), **on("web1"))
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    shutil.copytree(tmp_path / "web1", tmp_path / "copy")
    return tree


def push(tree, bucket, marks, *more):
    marks.mkdir(exist_ok=True)
    return ("push", tree, f"s3://{bucket}/p", "--marks", f"sqlite:{marks}/marks.db", "--json", *more)


def on(host):
    return {"wrap": ("unshare", "--uts", "sh", "-c", HOST, host)}


def on_another_machine(tmp_path):
    """The same host name: a disk that was copied, or that was put into another machine."""
    (tmp_path / "machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    script = f"hostname web1 && {ID}"
    return {"wrap": ("unshare", "--uts", "--mount", "sh", "-c", script, str(tmp_path / "machine-id"))}


def warnings(run):
    return [each["text"] for each in told(run, "warning") if "another machine" in each["text"]]


@pytest.mark.parametrize("how", ["name", "machine"])
def test_a_clone_replaces_nothing_of_the_machine_that_it_was_made_of(s3once, s3, bucket, tmp_path, web1, how):
    there = on("web2") if how == "name" else on_another_machine(tmp_path)
    make_tree(web1, {"file": content("new", 1001)})
    run = s3once(*push(web1, bucket, tmp_path / "copy", "--if-changed=replace"), **there)
    assert run.code == 1 and counts(run) == {"refused": 1}, run
    assert len(warnings(run)) == 1 and "web1" in warnings(run)[0] and "web1" in run.err, run
    assert "may be a copy of the one that uploaded it" in told(run, "refused")[0]["text"]
    assert s3.get(bucket, "p/file") == content("old", 1000)
    run = s3once(*push(web1, bucket, tmp_path / "copy", "--if-changed=replace"), **there)
    assert run.code == 1 and not warnings(run), run  # it knows its machine now
    # The machine that uploaded it still may.
    run = s3once(*push(web1, bucket, tmp_path / "web1", "--if-changed=replace"), **on("web1"))
    assert run.code == 0 and counts(run) == {"uploaded": 1} and not warnings(run), run


def test_a_clone_and_its_original_do_not_take_each_others_new_files(s3once, s3, bucket, tmp_path, web1):
    make_tree(web1, {"later": content("theirs", 500)})
    run = s3once(*push(web1, bucket, tmp_path / "copy", "--if-changed=replace"), **on("web2"))
    assert run.code == 0 and counts(run) == {"skipped": 1, "uploaded": 1}, run
    make_tree(web1, {"later": content("ours", 501)})
    run = s3once(*push(web1, bucket, tmp_path / "web1", "--if-changed=replace"), **on("web1"))
    assert run.code == 1 and counts(run) == {"skipped": 1, "failed": 1}, run
    assert "give each host its own prefix" in told(run, "failed")[0]["text"]
    assert s3.get(bucket, "p/later") == content("theirs", 500)
    # What the clone has uploaded is its own to replace.
    make_tree(web1, {"later": content("again", 502)})
    run = s3once(*push(web1, bucket, tmp_path / "copy", "--if-changed=replace"), **on("web2"))
    assert run.code == 0 and s3.get(bucket, "p/later") == content("again", 502), run


def test_a_host_that_was_moved_says_so_once(s3once, s3, bucket, tmp_path, web1):
    """All that it has uploaded stays done, and one word lets it replace its own."""
    run = s3once(*push(web1, bucket, tmp_path / "copy", "-n"), **on("web9"))
    assert run.code == 0 and len(warnings(run)) == 1 and counts(run) == {"skipped": 1}, run  # which notes nothing
    run = s3once(*push(web1, bucket, tmp_path / "copy"), **on("web9"))
    assert run.code == 0 and len(warnings(run)) == 1 and counts(run) == {"skipped": 1}, run
    make_tree(web1, {"file": content("new", 1001)})
    run = s3once(*push(web1, bucket, tmp_path / "copy", "--if-changed=replace-any"), **on("web9"))
    assert run.code == 0 and counts(run) == {"uploaded": 1} and not warnings(run), run
    make_tree(web1, {"file": content("newer", 1002)})
    run = s3once(*push(web1, bucket, tmp_path / "copy", "--if-changed=replace"), **on("web9"))
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    shown = s3once("status", f"s3://{bucket}/p", "--marks", f"sqlite:{tmp_path}/copy/marks.db")
    assert "used on web1 before" in shown.out, shown


def test_a_renamed_host_is_told_that_its_keys_have_changed(s3once, s3, bucket, tmp_path):
    """With {host} in --key, the files are sent again, unless the former name is written there."""
    tree = make_tree(tmp_path / "tree", {"file": content("old", 1000)})
    words = "if that name has changed, so have the keys"
    run = s3once(*push(tree, bucket, tmp_path / "marks", "--key", "{host}/{name}"), **on("web1"))
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    run = s3once(*push(tree, bucket, tmp_path / "marks", "--key", "{host}/{name}", "-n"), **on("web9"))
    assert run.code == 0 and counts(run) == {"planned": 1} and words in warnings(run)[0], run
    run = s3once(*push(tree, bucket, tmp_path / "marks", "--key", "web1/{name}"), **on("web9"))
    assert run.code == 0 and counts(run) == {"skipped": 1} and words not in warnings(run)[0], run


def test_a_container_without_a_machine_id_may_have_any_name(s3once, s3, bucket, tmp_path):
    """A pod gets a new name each time, and its volume is the same."""
    tree = make_tree(tmp_path / "tree", {"file": content("old", 1000)})
    (tmp_path / "none").write_text("")
    for turn, pod in enumerate(("pod-1", "pod-2")):
        make_tree(tree, {"file": content(pod, 1000 + turn)})
        script = f"hostname {pod} && {ID}"
        wrap = ("unshare", "--uts", "--mount", "sh", "-c", script, str(tmp_path / "none"))
        run = s3once(*push(tree, bucket, tmp_path / "volume", "--if-changed=replace"), wrap=wrap)
        assert run.code == 0 and counts(run) == {"uploaded": 1} and not warnings(run), run
    assert s3.get(bucket, "p/file") == content("pod-2", 1001)


IN_PARTS = ("--if-changed=replace", "--part-size=5MiB")


def copy_while_it_uploads(s3once, wire, bucket, tmp_path, tree):
    """web1 is killed before it completes an upload, and the marks are copied as they are then."""
    rule = wire.add(faults.kill_before, "CompleteMultipartUpload")
    s3once(*push(tree, bucket, tmp_path / "web1", *IN_PARTS), **on("web1"))
    assert rule.fired
    wire.clear()
    shutil.rmtree(tmp_path / "copy")
    shutil.copytree(tmp_path / "web1", tmp_path / "copy")


def test_an_upload_that_the_original_was_about_to_finish(s3once, s3, s3_wire, bucket, tmp_path, web1):
    """The disk was copied while an upload that replaces the object was under way."""
    make_tree(web1, {"file": content("new", 11 * MIB)})
    copy_while_it_uploads(s3once, s3_wire, bucket, tmp_path, web1)
    run = s3once(*push(web1, bucket, tmp_path / "copy", *IN_PARTS, "--lease=2s"), **on("web2"))
    assert run.code == 1 and counts(run) == {"refused": 1}, run
    assert s3.get(bucket, "p/file") == content("old", 1000)


def test_an_upload_that_the_original_began_is_not_resumed(s3once, s3, s3_wire, bucket, tmp_path, web1):
    """The disk was copied while a new file was uploaded: the object of the copy is not the original's to replace."""
    make_tree(web1, {"large": content("new", 11 * MIB)})
    copy_while_it_uploads(s3once, s3_wire, bucket, tmp_path, web1)
    run = s3once(*push(web1, bucket, tmp_path / "copy", *IN_PARTS, "--lease=2s"), **on("web2"))
    assert run.code == 0 and counts(run) == {"uploaded": 1, "skipped": 1}, run
    make_tree(web1, {"large": content("later", 11 * MIB)})
    run = s3once(*push(web1, bucket, tmp_path / "web1", *IN_PARTS, "--lease=2s"), **on("web1"))
    assert run.code == 1 and counts(run) == {"failed": 1, "skipped": 1}, run
    assert s3.get(bucket, "p/large") == content("new", 11 * MIB)


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
@pytest.mark.parametrize("size", [1001, 6 * MIB])
def test_adopted_object_is_not_replaced(s3once, s3, bucket, marks, tmp_path, size):
    """Another program has uploaded it. Its content was once that of the file, but that does not make it ours."""
    tree = make_tree(tmp_path / "tree", {"file": content("old", 1000)})
    s3.client.put_object(Bucket=bucket, Key="p/file", Body=content("old", 1000))
    command = ("push", tree, f"s3://{bucket}/p", "--json", "--part-size=5MiB")
    assert counts(s3once(*command)) == {"adopted": 1}
    make_tree(tree, {"file": content("new", size)})
    before = marks_of(marks)
    for _ in range(2):
        run = s3once(*command, "--if-changed=replace")
        assert run.code == 1 and counts(run) == {"refused": 1}, run
        assert "s3once did not upload it" in told(run, "refused")[0]["text"]
        assert "--if-changed=replace-any" in told(run, "refused")[0]["text"]
    assert s3.get(bucket, "p/file") == content("old", 1000)
    assert {key: {**mark, "newer_size": 0, "newer_mtime": 0} for key, mark in marks_of(marks).items()} == {
        key: {**mark, "newer_size": 0, "newer_mtime": 0} for key, mark in before.items()
    }
    run = s3once(*command, "--if-changed=replace-any")
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    assert s3.get(bucket, "p/file") == content("new", size)
    make_tree(tree, {"file": content("newer", size + 1)})
    run = s3once(*command, "--if-changed=replace")
    assert run.code == 0 and s3.get(bucket, "p/file") == content("newer", size + 1), run


def test_a_look_before_a_replacement_that_fails_is_tried_again_later(s3once, s3, s3_wire, bucket, tmp_path):
    """The file goes back to the queue meanwhile."""
    tree = make_tree(tmp_path / "tree", {"file": content("old", 1000)})
    command = push(tree, bucket, tmp_path / "marks")
    assert s3once(*command).code == 0
    make_tree(tree, {"file": content("new", 1001), "first": 1})
    rule = s3_wire.add(faults.answer(500, "InternalError"), "HeadObject", nth=2, times=3)
    run = s3once(*command, "--if-changed=replace", attempts=1)
    assert rule.fired and run.code == 0 and counts(run) == {"uploaded": 2}, run
    assert s3.get(bucket, "p/file") == content("new", 1001)


# --- two sources of one prefix


def test_another_folder_of_the_same_prefix_is_not_replaced(s3once, s3, bucket, marks, tmp_path):
    """The object may be the only copy of the other folder's file."""
    first, second = (make_tree(tmp_path / name, {"x": content(name, 1000 + at)}) for at, name in enumerate(("q1", "q2")))
    assert s3once("push", "--delete-after", first, f"s3://{bucket}/q").code == 0 and not (first / "x").exists()
    run = s3once("push", second, f"s3://{bucket}/q", "--json")
    text = told(run, "refused")[0]["text"]
    assert run.code == 1 and text.startswith("two sources have this key, and the object stays: it was uploaded from "), run
    assert f":{first}, and this is " in text and text.endswith(f":{second}; give each source its own prefix"), text
    run = s3once("push", second, f"s3://{bucket}/q", "--if-changed=replace", "--json")
    text = told(run, "refused")[0]["text"]
    assert run.code == 1 and text.startswith("two sources have this key") and "--if-changed=replace-any" in text, run
    assert s3.get(bucket, "q/x") == content("q1", 1000)
    run = s3once("push", "-q", second, f"s3://{bucket}/q", "--if-changed=replace-any")
    assert run.code == 0 and "warning: " in run.err and "replaces another source's version" in run.err and str(first) in run.err, run
    assert s3.get(bucket, "q/x") == content("q2", 1001)
    make_tree(second, {"x": content("later", 1002)})
    run = s3once("push", second, f"s3://{bucket}/q", "--if-changed=replace")  # now it is this source's
    assert run.code == 0 and "another source" not in run.err, run


def test_folders_whose_names_differ_at_their_ends_are_two_sources(s3once, s3, bucket, marks, tmp_path):
    """However long their paths are. A part of such a folder is the same source, too."""
    deep = tmp_path / ("d" * 200) / ("e" * 200)
    first, second = (make_tree(deep / name, {"a/x": content(name, 1000 + at)}) for at, name in enumerate(("q1", "q2")))
    assert s3once("push", first, f"s3://{bucket}/q").code == 0
    run = s3once("push", second, f"s3://{bucket}/q", "--if-changed=replace", "--json")
    assert run.code == 1 and told(run, "refused")[0]["text"].startswith("two sources have this key"), run
    assert s3.get(bucket, "q/a/x") == content("q1", 1000)
    make_tree(first, {"a/x": content("later", 1002)})
    run = s3once("push", first / "a", f"s3://{bucket}/q/a", "--if-changed=replace", "--json")
    assert run.code == 0 and counts(run) == {"uploaded": 1} and not told(run, "warning"), run


def test_a_link_that_moves_is_another_source(s3once, s3, bucket, marks, tmp_path):
    """Each release takes the place of the earlier one only if the job says so."""
    current = tmp_path / "current"
    push = ("push", current, f"s3://{bucket}/site")

    def deploy(release, **files):
        folder = make_tree(tmp_path / "releases" / release, {"same": b"same", **files})
        current.unlink(missing_ok=True)
        current.symlink_to(f"releases/{release}")
        return folder

    first = deploy("17", x=b"first", only17=b"1")
    assert s3once(*push).code == 0
    second = deploy("18", x=b"second!")
    for options in ((), ("--if-changed=replace",)):
        run = s3once(*push, *options, "--json")
        assert run.code == 1 and s3.get(bucket, "site/x") == b"first", run
        assert f":{first}, and this is " in told(run, "refused")[0]["text"] and f":{second}; " in told(run, "refused")[0]["text"], run
    for release, content_of_x in (("18", b"second!"), ("19", b"the third")):
        deploy(release, x=content_of_x)
        run = s3once(*push, "--if-changed=replace-any")
        assert run.code == 0 and "replaces another source's version" in run.err and s3.get(bucket, "site/x") == content_of_x, run
    assert set(s3.objects(bucket)) == {"site/same", "site/x", "site/only17"}
    assert s3once("push", tmp_path / "releases", f"s3://{bucket}/releases").code == 0
    assert s3.get(bucket, "releases/18/x") == b"second!" and s3.get(bucket, "releases/17/x") == b"first"


def test_a_version_that_was_not_marked_yet_stays_the_other_folders(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """Neither who marks it done is its source, nor who claims it and is killed, too."""
    first, second = (make_tree(tmp_path / name, {"x": content(name, 1000 + at)}) for at, name in enumerate(("q1", "q2")))
    for source, kind in ((first, "PutObject"), (second, "HeadObject")):
        s3_wire.add(faults.kill_after, kind)
        assert s3once("push", source, f"s3://{bucket}/q", "--lease=2s").code == -9
        s3_wire.clear()
    for _ in range(2):
        run = s3once("push", second, f"s3://{bucket}/q", "--if-changed=replace", "--json", "--lease=2s")
        assert run.code == 1 and told(run, "refused")[0]["text"].startswith("two sources have this key"), run
    assert s3.get(bucket, "q/x") == content("q1", 1000)


@pytest.mark.parametrize("policy, code", [("replace", 1), ("replace-any", 0)])
def test_an_interrupted_replacement_stays_the_first_folders(s3once, s3, s3_wire, bucket, marks, tmp_path, policy, code):
    """The open upload was begun by a run that may replace the object. A run over another folder may do so only with replace-any."""
    first, second = (make_tree(tmp_path / name, {"x": content(name, 11 * MIB)}) for name in ("q1", "q2"))
    push = ("--part-size=5MiB", "--lease=2s", "--concurrency=1")
    assert s3once("push", first, f"s3://{bucket}/q", *push).code == 0
    make_tree(first, {"x": content("later", 11 * MIB)})
    s3_wire.add(faults.kill_after, "UploadPart")
    assert s3once("push", first, f"s3://{bucket}/q", "--if-changed=replace", *push).code == -9
    s3_wire.clear()
    run = s3once("push", second, f"s3://{bucket}/q", f"--if-changed={policy}", "--json", *push)
    assert run.code == code, run
    if code:
        assert told(run, "refused")[0]["text"].startswith("two sources have this key"), run
    else:
        assert "replaces another source's version" in told(run, "warning")[0]["text"], run
    assert s3.get(bucket, "q/x") == content("q1" if code else "q2", 11 * MIB)


def test_a_part_of_a_source_is_the_same_source(s3once, s3, bucket, marks, tmp_path):
    """A file, or the folder above it, may be given in place of the source."""
    tree = make_tree(tmp_path / "tree", {"a/b/x": 10})
    sources = ((tree, ""), (tree / "a", "/a"), (tree / "a/b/x", "/a/b/x"), (tree, ""))
    for turn, (source, below) in enumerate(sources):
        make_tree(tree, {"a/b/x": content(str(turn), 10 + turn)})
        run = s3once("push", source, f"s3://{bucket}/p{below}", "--if-changed=replace", "--json")
        assert run.code == 0 and counts(run) == {"uploaded": 1} and not told(run, "warning"), run


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
def test_hosts_that_share_a_folder_replace_each_others_versions(request, s3once, s3, bucket, marks, tmp_path):
    """With shared marks, that is a warning, since they may share the prefix by mistake. Marks in a file are one machine's."""
    tree = make_tree(tmp_path / "tree", {"x": content("web1", 1000), "y": 1})
    (tmp_path / "none").write_text("")

    def run_on(host, *more):
        wrap = ("unshare", "--uts", "--mount", "sh", "-c", f"hostname {host} && {ID}", str(tmp_path / "none"))
        return s3once("push", tree, f"s3://{bucket}/p", *more, wrap=wrap)

    assert run_on("web1").code == 0
    make_tree(tree, {"x": content("web2", 1001), "y": 2})
    is_shared = request.node.callspec.params["marks"] == "dynamodb"
    run = run_on("web2")
    assert run.code == 1 and ("unless both hosts share this file, give each its own prefix" in run.err) == is_shared, run
    run = run_on("web2", "--if-changed=replace", "-q")
    assert run.code == 0 and run.err.count("unless both hosts share these files") == is_shared, run
    assert s3.get(bucket, "p/x") == content("web2", 1001)


def test_a_rotated_log_without_its_option(s3once, s3, bucket, marks, tmp_path):
    """Its name is another log's after each rotation, so no replacement is offered."""
    tree = make_tree(tmp_path / "tree", {"app.log.1": content("monday", 1000)})
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    make_tree(tree, {"app.log.1": content("tuesday", 1001)})
    run = s3once("push", tree, f"s3://{bucket}/p", "--json")
    text = told(run, "refused")[0]["text"]
    assert run.code == 1 and "with --rotated each log is uploaded once" in text and "replace" not in text, run


# --- an object that another client has overwritten


@pytest.mark.parametrize("size", [1000, 11 * MIB])
@pytest.mark.parametrize("file", ["same", "changed", "never marked"])
def test_an_object_that_another_client_overwrote(s3once, s3, bucket, marks, tmp_path, size, file):
    """verify goes on reporting it, and one word replaces it."""
    tree = make_tree(tmp_path / "tree", {"file": size, "witness": 1})
    command = ("push", tree, f"s3://{bucket}/p", "--json", "--part-size=5MiB")
    if file == "never marked":
        command = (*command, "--reupload")
    else:
        assert s3once(*command).code == 0
    s3.client.put_object(Bucket=bucket, Key="p/file", Body=b"others")
    if file == "changed":
        make_tree(tree, {"file": content("later", size + 1)})
    more = ["--reupload"] if file == "same" else ["--if-changed=replace"]
    for _ in range(2):
        run = s3once(*command, *more)
        assert run.code == 1 and s3.get(bucket, "p/file") == b"others", run
        text = told(run, "failed")[0]["text"]
        assert "exists with other content" in text, run
        assert ("another client has overwritten what was uploaded" in text) == (file != "never marked"), run
    if file == "same":
        checked = s3once("verify", f"s3://{bucket}/p")
        assert checked.code == 1 and "p/file" in checked.out + checked.err and "not sent" not in checked.out + checked.err, checked
        assert marks_of(marks)["p/file"]["state"] == "done"
    run = s3once(*command, *more[:1], "--if-changed=replace-any")
    assert run.code == 0 and "replaces an object of other content" in run.err, run
    s3.assert_same(tree, bucket, "p")
    assert s3once("verify", f"s3://{bucket}/p").code == 0


@pytest.mark.parametrize("fault", [faults.drop_reply, faults.kill_before, faults.kill_after], ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("marks", ["dynamodb"], indirect=True)
def test_a_mark_is_given_back_once(s3once, s3, bucket, marks, dynamodb_wire, tmp_path, fault):
    """The reply to the write that gives it back is lost, or the run is killed around it. The object stays another client's, and said to be."""
    tree = make_tree(tmp_path / "tree", {"file": 1000, "witness": 1})
    command = ("push", tree, f"s3://{bucket}/p", "--json", "--lease=2s", "--concurrency=1")  # so that no batch has both marks
    assert s3once(*command).code == 0
    s3.client.put_object(Bucket=bucket, Key="p/file", Body=b"others")
    rule = dynamodb_wire.add(fault, "UpdateItem:done")
    run = s3once(*command, "--reupload")
    assert rule.fired == 1 and run.code == (1 if fault is faults.drop_reply else -9), run
    state = marks_of(marks)["p/file"]["state"]
    assert state == ("claimed" if fault is faults.kill_before else "done")
    for _ in range(2):
        run = s3once(*command, "--reupload")
        assert run.code == 1 and "another client has overwritten what was uploaded" in told(run, "failed")[0]["text"], run
        checked = s3once("verify", f"s3://{bucket}/p")
        assert checked.code == 1 and "p/file" in checked.out + checked.err, checked
    assert s3.get(bucket, "p/file") == b"others"
    run = s3once(*command, "--reupload", "--if-changed=replace-any")
    assert run.code == 0, run
    s3.assert_same(tree, bucket, "p")
