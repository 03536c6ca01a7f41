"""Listings as AWS has sent them: what this program reads, and whether Ceph RGW (behind the AWS-like server of the fault tests)
and the simulated S3 list in the same order and write keys in the same way. Lists of uploads and of parts, too."""

import copy
import json
import re
from urllib.parse import quote, unquote
from xml.sax.saxutils import escape

from tests.faults.checksums import sum_of
from tests.faults.proxy import Proxy
from tests.suites.suite import Suite, read_table
from tests.system.fakes_keys import Fake
from tests.system.test_aws_layer import Probe

ALL, _ = read_table("listings")
ROWS = [row for row in ALL if row["list"] == "objects"]
PAGES = [row for row in ALL if row["list"] != "objects"]
STATUS = {"InvalidArgument": 400, "NoSuchUpload": 404}
OUTCOMES = {"InvalidArgument": "invalid", "NoSuchUpload": "no such upload"}

BY_ID = "The uploads of one key are in the order of their ids, not of their beginnings."
# AWS's code, the code of Ceph RGW → why.
RGW = {
    ("InvalidArgument", ""): "A marker of an upload of another key is no error; s3once sends none.",
    ("NoSuchUpload", "NoSuchKey"): "NoSuchKey is the code for an upload that is gone; s3once reads both.",
}


def wire_keys(row):
    """The keys as they are in the reply, and as they are."""
    keys = [one["Key"] for one in json.loads(row["told"])]
    return keys, [unquote(key) for key in keys] if row["encoded"] == "url" else keys


class Listing(Fake):
    """Answers everything with one listing."""

    def __init__(self):
        super().__init__(type("Clock", (), {"clock": 0}))

    def reply(self, method, path, headers, body):
        asked = "encoding-type=url" in path
        rows = ""
        for one, key in zip(json.loads(self.row["told"]), wire_keys(self.row)[1]):
            written = quote(key, safe="/-_.~*") if asked else escape(key)
            rows += f"<Contents><Key>{written}</Key><Size>{one['Size']}</Size><ETag>{escape(one['ETag'])}</ETag></Contents>"
        if asked and self.row["encoded"] == "url":  # as AWS has written it
            for key in wire_keys(self.row)[0]:
                assert f"<Key>{key}</Key>" in rows
        encoding = "<EncodingType>url</EncodingType>" if asked else ""
        return 200, f"<?xml version='1.0'?>\n<ListBucketResult>{encoding}<IsTruncated>false</IsTruncated>{rows}</ListBucketResult>"


class Page(Fake):
    """Answers with one page of uploads or of parts, and with an empty one from then on."""

    def __init__(self):
        super().__init__(type("Clock", (), {"clock": 0}))

    def begin(self, row):
        self.row, self.asked = row, []

    def reply(self, method, path, headers, body):
        row, inner = self.row, ""
        self.asked.append(path)
        if row["code"]:
            return STATUS[row["code"]], f"<?xml version='1.0'?>\n<Error><Code>{row['code']}</Code><Message>recorded</Message></Error>"
        told, next_ = (json.loads(row["told"]), row["next"]) if len(self.asked) == 1 else ([], "")
        inner += f"<IsTruncated>{'true' if next_ else 'false'}</IsTruncated>"
        if row["list"] == "parts":
            inner += f"<UploadId>u</UploadId><NextPartNumberMarker>{next_ or 0}</NextPartNumberMarker>"
            for part in told:
                inner += "<Part>" + "".join(f"<{name}>{escape(str(value))}</{name}>" for name, value in part.items()) + "</Part>"
            return 200, f"<?xml version='1.0'?>\n<ListPartsResult>{inner}</ListPartsResult>"
        keys = json.loads(row["keys"])
        for number in told:
            inner += f"<Upload><Key>{keys[number - 1]}</Key><UploadId>upload-{number}</UploadId><Initiated>2026-02-21T00:06:32.000Z</Initiated></Upload>"
        return 200, f"<?xml version='1.0'?>\n<ListMultipartUploadsResult>{inner}</ListMultipartUploadsResult>"

    def agrees(self, found):
        """Whether the program has read this page, and goes on where AWS says. Of uploads it reads one page."""
        row, told = self.row, json.loads(self.row["told"])
        if row["code"]:
            return (found["outcome"], found["problem"]["code"]) == (OUTCOMES[row["code"]], row["code"])
        if row["list"] == "parts":
            rows = [(part["number"], part["size"], part["etag"], part["crc32c"]) for part in found.get("parts", [])]
            wanted = [(part["PartNumber"], part["Size"], part["ETag"].strip('"'), "") for part in told]
            marker = f"part-number-marker={row['next']}&"
        else:
            keys = json.loads(row["keys"])
            rows = [(one["key"], one["upload_id"]) for one in found.get("uploads", [])]
            wanted = [(keys[number - 1], f"upload-{number}") for number in told]
        goes_on = len(self.asked) == 2 and marker in self.asked[1] if row["next"] and row["list"] == "parts" else len(self.asked) == 1
        return found["outcome"] == "ok" and rows == wanted and goes_on


def test_listing_is_read_like_aws_listing(tmp_path):
    suite = Suite("Listings, read")
    with Listing() as server:
        program = Probe(tmp_path)
        for server.row in ROWS:
            found = program("s3", "b", "objects", "", "", env={"AWS_ENDPOINT_URL": server.endpoint})
            told = json.loads(server.row["told"])
            wanted = [(key, one["Size"], one["ETag"].strip('"')) for key, one in zip(wire_keys(server.row)[1], told)]
            rows = [(one["key"], one["size"], one["etag"]) for one in found["objects"]]
            suite.count(rows == wanted and not found["more"], "", (server.row, found))
        program.kill_all()
    with Page() as server:
        program, env = Probe(tmp_path), {"AWS_ENDPOINT_URL": server.endpoint, "AWS_MAX_ATTEMPTS": "1"}
        for row in PAGES:
            server.begin(row)
            found = program("s3", "b", *(["parts", "k", "u"] if row["list"] == "parts" else ["uploads"]), env=env)
            suite.count(server.agrees(found), "", (row, found, server.asked))
        program.kill_all()
    suite.compare_with_page()


def first(name, text):
    found = re.search(rf"<{name}>([^<]*)</{name}>", text)
    return found[1].replace("&quot;", '"') if found else ""


def ask_parts(service, bucket, row, begin, by_id):
    """(status, what is told, where the next page begins, code) of one upload with the parts of a row."""
    contents, path = json.loads(row["keys"]), f"/{bucket}/list-of-parts"
    upload, numbers, etag = begin(path), [], ""
    for number, content in enumerate(["data"] if contents is None else contents, 1):
        headers = {"x-amz-checksum-crc32c": sum_of("crc32c", content.encode())}
        status, told, _ = service.request("PUT", f"{path}?partNumber={number}&uploadId={upload}", headers, content.encode())
        assert status == 200
        etag = told["etag"]
    if contents is None:
        body = f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part></CompleteMultipartUpload>"
        assert service.request("POST", f"{path}?uploadId={upload}", {}, body.encode())[0] == 200
    query = {"max-parts": row["max"], "part-number-marker": row["after"], "uploadId": upload}
    status, _, answer = service.request("GET", f"{path}?" + "&".join(f"{name}={value}" for name, value in query.items() if value))
    answer = answer.decode()
    for part in re.findall(r"<Part>(.*?)</Part>", answer, re.S):
        told = {"ETag": first("ETag", part), "PartNumber": int(first("PartNumber", part)), "Size": int(first("Size", part))}
        numbers.append(told | ({"Checksum": part} if "<Checksum" in part else {}))
    is_last = first("IsTruncated", answer) != "true"
    return status, numbers, "" if is_last else first("NextPartNumberMarker", answer), first("Code", answer)


def ask_uploads(service, bucket, row, begin, by_id):
    """Likewise, of uploads of the keys of a row. Ceph RGW's are numbered as it lists those of one key."""
    keys = json.loads(row["keys"])
    uploads = [begin(f"/{bucket}/{key}") for key in keys]
    if by_id:
        ids = {key: iter(sorted(upload for upload, other in zip(uploads, keys) if other == key)) for key in keys}
        uploads = [next(ids[key]) for key in keys]
    query = {"max-uploads": row["max"]}
    if row["after"]:
        key, number = row["after"].split()
        query |= {"key-marker": key, "upload-id-marker": uploads[int(number) - 1]}
    words = [f"{name}={quote(value, safe='')}" for name, value in sorted(query.items()) if value]
    status, _, answer = service.request("GET", f"/{bucket}?" + "&".join([*words, "uploads="]))
    answer = answer.decode()
    found = [uploads.index(upload) + 1 for upload in re.findall(r"<UploadId>([^<]*)</UploadId>", answer)]
    if first("IsTruncated", answer) != "true":
        return status, found, "", first("Code", answer)
    number = uploads.index(first("NextUploadIdMarker", answer)) + 1
    assert first("NextKeyMarker", answer) == json.loads(row["keys"])[number - 1]
    return status, found, str(number), ""


def is_about_a_repeated_key(row):
    if row["list"] == "parts":
        return False
    keys = json.loads(row["keys"])
    named = [keys[number - 1] for number in json.loads(row["told"])] + row["after"].split()[:1]
    return not row["code"] and any(keys.count(key) > 1 for key in named)


def compare_pages(suite, service, reasons, by_id=False):
    """`reasons` are those of answers with another code than AWS's; `by_id` is said of each page that has several uploads of a key."""
    bucket = "suites-pages"
    assert service.request("PUT", f"/{bucket}")[0] == 200
    for row in PAGES:
        begun = []

        def begin(path):
            upload = first("UploadId", service.request("POST", f"{path}?uploads=")[2].decode())
            begun.append(f"{path}?uploadId={upload}")
            return upload

        found = (ask_parts if row["list"] == "parts" else ask_uploads)(service, bucket, row, begin, by_id)
        wanted = (STATUS.get(row["code"], 200), json.loads(row["told"]), row["next"], row["code"])
        if by_id and is_about_a_repeated_key(row):
            suite.count(False, BY_ID if found == wanted else "", (row, found))
        else:
            suite.count(found == wanted, reasons.get((row["code"], found[3]), ""), (row, found))
        for path in begun:
            service.request("DELETE", path)
    service.remove_bucket(bucket)


def compare(suite, service, reason_of):
    bucket = "suites-listings"
    assert service.request("PUT", f"/{bucket}")[0] == 200
    there = []
    for row in ROWS:
        keys = json.loads(row["keys"])
        if keys != there:
            for key in there:
                service.request("DELETE", f"/{bucket}/{quote(key)}")
            for key in keys:
                content = b"content 123" if key.startswith("test/") else b""
                assert service.request("PUT", f"/{bucket}/{quote(key)}", {}, content)[0] == 200
            there = keys
        query = f"list-type=2&prefix={quote(row['prefix'], safe='')}&start-after={quote(row['after'], safe='')}"
        status, _, answer = service.request("GET", f"/{bucket}?{query}" + ("&encoding-type=url" if row["encoded"] else ""))
        found = re.findall(r"<Key>([^<]*)</Key>", answer.decode())
        found = [unquote(key) for key in found] if row["encoded"] == "decoded" else found
        told = wire_keys(row)[0]
        found = found[: len(told)]
        suite.count(status == 200 and found == told, reason_of(row, found), (row, found))
    service.remove_bucket(bucket)
    suite.compare_with_page()


def test_rgw(rgw):
    encodes = "The slash is encoded, too, and decodes to the same key."
    suite = Suite("Listings, Ceph RGW")
    compare_pages(suite, rgw, RGW, by_id=True)
    compare(suite, rgw, lambda row, found: encodes if unquote("\n".join(found)) == "\n".join(wire_keys(row)[1]) else "")


def test_aws_like_server(rgw):
    suite = Suite("Listings, AWS-like server")
    with Proxy(rgw, "s3", behaves="aws") as proxy:
        client = copy.copy(rgw)
        client.endpoint = proxy.endpoint
        compare_pages(suite, client, RGW, by_id=True)
        assert not proxy.failures
    suite.compare_with_page()


def test_simulated_s3(simulated):
    suite = Suite("Listings, simulated S3")
    compare_pages(suite, simulated, {})
    compare(suite, simulated, lambda row, found: "")
