"""Listings as AWS has sent them: what this program reads, and whether Ceph RGW (behind the AWS-like server of the fault tests)
and the simulated S3 list in the same order and write keys in the same way."""

import json
import re
from urllib.parse import quote, unquote
from xml.sax.saxutils import escape

from tests.suites.suite import Suite, read_table
from tests.system.fakes_keys import Fake
from tests.system.test_aws_layer import Probe

ROWS, _ = read_table("listings")


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


def test_what_is_read(tmp_path):
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
    suite.compare_with_page()


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
    compare(Suite("Listings, Ceph RGW"), rgw, lambda row, found: encodes if unquote("\n".join(found)) == "\n".join(wire_keys(row)[1]) else "")


def test_simulated_s3(simulated):
    compare(Suite("Listings, simulated S3"), simulated, lambda row, found: "")
