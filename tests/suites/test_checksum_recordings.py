"""AWS's replies to requests with checksums: how this program reads them, and whether the AWS-like server of the fault
tests and the simulated S3 answer in the same way."""

import copy
import json
import re

import pytest

from tests.faults.checksums import sum_of
from tests.faults.proxy import Proxy
from tests.suites.suite import Suite, read_table
from tests.system.fakes_keys import Fake
from tests.system.test_aws_layer import Probe

ROWS, _ = read_table("checksums")


class Client:
    """Sends the requests of the table, in their words."""

    def __init__(self, service, bucket):
        self.service, self.bucket, self.key, self.upload, self.parts = service, bucket, None, None, {}

    def send(self, method, query="", headers=None, body=b""):
        status, told, answer = self.service.request(method, f"/{self.bucket}/{self.key}{query}", headers, body)
        return status, told, answer.decode(errors="replace")

    def ask(self, test, request):
        """The answer to the last one of "REQUEST ; REQUEST"."""
        self.key = re.sub(r"\W+", "-", test)
        for words in (part.split() for part in request.split(";")):
            named = dict(word.split("=", 1) for word in words[1:] if re.match(r"(type|parts|whole|size)=", word))
            plain = [word for word in words[1:] if word.split("=", 1)[0] not in named]
            answer = getattr(self, f"do_{words[0]}")(*plain, **named)
        return answer

    @staticmethod
    def content(word):
        letter, star, n = word.partition("*")
        return (letter * int(n) if star else word.replace("_", " ")).encode()

    @staticmethod
    def checksum(word, data):
        """{header: value} of KIND, KIND=bad or KIND=no."""
        kind, _, how = word.lower().partition("=")
        value = {"": sum_of(kind, data), "bad": sum_of(kind, b"bad data"), "no": "no base64"}[how]
        return {f"x-amz-checksum-{kind}": value}

    def do_put(self, content, kind):
        data = self.content(content)
        return self.send("PUT", "", self.checksum(kind, data), data)

    def do_create(self, kind=None, type=None):
        headers = {"x-amz-checksum-algorithm": kind, "x-amz-checksum-type": type}
        answer = self.send("POST", "?uploads=", {name: value for name, value in headers.items() if value})
        found = re.search(r"<UploadId>([^<]*)<", answer[2])
        self.upload, self.parts = found and found[1], {}
        return answer

    def do_part(self, number, content, kind):
        data = self.content(content)
        headers = self.checksum(kind, data)
        answer = self.send("PUT", f"?partNumber={number}&uploadId={self.upload}", headers, data)
        ((header, sum_),) = headers.items()
        self.parts[number] = answer[1].get("etag"), f"Checksum{header[15:].upper()}", sum_, data
        return answer

    def do_complete(self, parts, whole=None, type=None, size=None):
        rows = ""
        for number, (etag, element, sum_, _) in sorted(self.parts.items()):
            value = {"own": sum_, "wrong": sum_of(element[8:].lower(), b"bbb"), "none": None}[parts]
            rows += f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag>"
            rows += f"<{element}>{value}</{element}></Part>" if value else "</Part>"
        data = b"".join(part[3] for _, part in sorted(self.parts.items()))
        headers = self.checksum(whole, data) if whole else {}
        headers |= {name: value for name, value in (("x-amz-checksum-type", type), ("x-amz-mp-object-size", size)) if value}
        body = f"<CompleteMultipartUpload>{rows}</CompleteMultipartUpload>".encode()
        return self.send("POST", f"?uploadId={self.upload}", headers, body)

    def do_parts(self):
        return self.send("GET", f"?uploadId={self.upload}")

    def do_head(self):
        return self.send("HEAD", "", {"x-amz-checksum-mode": "ENABLED"})


def element(body, name):
    found = re.search(rf"<{name}>([^<]*)</{name}>", body)
    return found and found[1].replace("&quot;", '"')


def told_by(headers, body, wanted):
    """The values in a reply for the names that AWS's reply has."""
    found = {}
    for name, value in wanted.items():
        header = {"ETag": "etag", "ContentLength": "content-length"}.get(name)
        header = header or "x-amz-checksum-" + name.removeprefix("Checksum").lower()
        if name == "Parts":
            rows = re.findall(r"<Part>(.*?)</Part>", body, re.S)
            found[name] = [told_by({}, row, part) for row, part in zip(rows, value)]
        else:
            got = element(body, name) or headers.get(header)
            found[name] = int(got) if isinstance(value, int) and got else got
    return found


def compare(suite, service, bucket, reason_of):
    """Plays the recordings of each test, and compares status, code and checksums with AWS's."""
    client = Client(service, bucket)
    for row in ROWS:
        status, headers, body = client.ask(row["test"], row["request"])
        wanted = json.loads(row["told"])
        told = told_by(headers, body, wanted)
        code = element(body, "Code") or ""
        agrees = (str(status), code, told) == (row["status"], row["code"], wanted)
        suite.count(agrees, reason_of(row), (row, status, code, told))
    suite.compare_with_page()


def fake_reason(row):
    """Why AWS's answer is not given on purpose."""
    if "=bad type" in row["request"]:
        return "A checksum of the whole object that is wrong fails the test at once."
    return ""


def test_aws_like_server(rgw):
    with Proxy(rgw, "s3", behaves="aws") as proxy:
        client = copy.copy(rgw)
        client.endpoint = proxy.endpoint
        bucket = "suites-checksums"
        assert client.request("PUT", f"/{bucket}")[0] == 200
        compare(Suite("Checksums, AWS-like server"), client, bucket, fake_reason)
    rgw.remove_bucket(bucket)


def test_simulated_s3(simulated):
    bucket = "suites-checksums"
    assert simulated.request("PUT", f"/{bucket}")[0] == 200
    compare(Suite("Checksums, simulated S3"), simulated, bucket, fake_reason)
    simulated.remove_bucket(bucket)


def test_etags_of_parts_in_any_quotes(simulated):
    """S3 takes them as clients of all kinds write them."""
    bucket = "suites-etags"
    assert simulated.request("PUT", f"/{bucket}")[0] == 200
    client = Client(simulated, bucket)
    for form, code in ((""" "{}" """, 200), (" &quot;{}&quot; ", 200), (" {} ", 200), (" {}0 ", 400)):
        client.ask("etags", "create ; part 1 abc CRC32C")
        etag, *rest = client.parts["1"]
        client.parts["1"] = form.strip().format(etag.strip('"')), *rest
        assert client.do_complete("none")[0] == code, form
    simulated.remove_bucket(bucket)


class Recorded(Fake):
    """Answers everything with one recording, as S3 writes it."""

    def __init__(self):
        super().__init__(type("Clock", (), {"clock": 0}))
        self.row = None

    def reply(self, method, path, headers, body):
        told = json.loads(self.row["told"])
        parts = told.pop("Parts", [])
        sums = {f"x-amz-checksum-{name[8:].lower()}": value for name, value in told.items() if name.startswith("Checksum")}
        sums |= {"etag": told["ETag"]} if "ETag" in told else {}
        if method in ("PUT", "HEAD"):
            return 200, b"\0" * told.get("ContentLength", 0) if method == "HEAD" else b"", sums
        inner = "".join(f"<{name}>{value}</{name}>" for name, value in told.items())
        inner += "<UploadId>u</UploadId>" if path.endswith("uploads=") or path.endswith("uploads") else ""
        for part in parts:
            inner += "<Part>" + "".join(f"<{name}>{value}</{name}>" for name, value in part.items()) + "</Part>"
        name = {"create": "InitiateMultipartUploadResult", "complete": "CompleteMultipartUploadResult"}
        root = name.get(self.row["request"].split()[0], "ListPartsResult")
        return 200, f"<?xml version='1.0' encoding='UTF-8'?>\n<{root}>{inner}</{root}>"


def sum_in(told):
    """(its value) of what names a checksum, "" if nothing does."""
    return next((value for name, value in told.items() if re.match(r"Checksum(CRC|SHA)", name)), "")


def test_recorded_checksums_are_read(tmp_path):
    """Etag and checksum of each answer of AWS that is not an error."""
    suite = Suite("Checksums, read")
    (tmp_path / "file").write_bytes(b"x")
    words = {"put": ["put", "k", tmp_path / "file"], "head": ["head", "k"], "create": ["create", "k"]}
    words |= {"part": ["part", "k", "u", "1", tmp_path / "file"], "parts": ["parts", "k", "u"]}
    words |= {"complete": ["complete", "k", "u", tmp_path / "file", "1:x"]}
    with Recorded() as recorded:
        program = Probe(tmp_path)
        env = {"AWS_ENDPOINT_URL": recorded.endpoint, "AWS_MAX_ATTEMPTS": "1"}
        for row in (row for row in ROWS if row["status"] == "200"):
            recorded.row = row
            told = json.loads(row["told"])
            request = row["request"].split(" ; ")[-1].split()[0]
            found = program("s3", "b", *words[request], env=env)
            if request == "create":
                agrees = found["upload_id"] == "u"
            elif request == "parts":
                rows = [(part["number"], part["size"], part["etag"], part["crc32c"]) for part in found["parts"]]
                wanted = [(part["PartNumber"], part["Size"], part["ETag"].strip('"'), sum_in(part)) for part in told["Parts"]]
                agrees = rows == wanted
            else:
                place = found.get("part", found)
                agrees = (place.get("etag"), place.get("crc32c")) == (told["ETag"].strip('"'), sum_in(told))
            suite.count(agrees, "", (row, found))
        program.kill_all()
    suite.compare_with_page()
