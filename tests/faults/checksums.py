"""Checksums by libraries that are not ours (isa-l itself, crcmod, zlib, hashlib), and what S3 makes of them."""

import base64
import ctypes
import ctypes.util
import hashlib
import zlib

import crcmod

_isal = ctypes.CDLL(ctypes.util.find_library("isal") or "libisal.so.2")
_isal.crc32_iscsi.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_uint]
_isal.crc32_iscsi.restype = ctypes.c_uint

NAMES = ["crc32c", "crc32", "crc64nvme", "sha1", "sha256", "md5"]
COMBINE = NAMES[:3]  # what an object sent in parts has of the whole; else it is that of the parts' checksums
HEADERS = {name: f"x-amz-checksum-{name}" for name in NAMES if name != "md5"}
ELEMENTS = {name: f"Checksum{name.upper()}" for name in HEADERS}

_crc64nvme = crcmod.mkCrcFun(0x1AD93D23594C93659, initCrc=0, xorOut=0xFFFFFFFFFFFFFFFF, rev=True)


def crc32c(data, crc=0):
    """CRC-32C of data, continued from crc."""
    return _isal.crc32_iscsi(bytes(data), len(data), crc ^ 0xFFFFFFFF) ^ 0xFFFFFFFF


class Crc:
    """A CRC with the interface of hashlib."""

    def __init__(self, add, size):
        self.add, self.size, self.crc = add, size, 0

    def update(self, data):
        self.crc = self.add(bytes(data), self.crc)

    def digest(self):
        return self.crc.to_bytes(self.size, "big")


CRCS = {"crc32c": (crc32c, 4), "crc32": (zlib.crc32, 4), "crc64nvme": (_crc64nvme, 8)}


def new(name):
    return Crc(*CRCS[name]) if name in CRCS else hashlib.new(name)


def digest_of(name, data):
    sum_ = new(name)
    sum_.update(data)
    return sum_.digest()


def sum_of(name, data):
    """The checksum in S3's notation."""
    return base64.b64encode(digest_of(name, data)).decode()


def composite_of(name, sums):
    """The composite checksum of an object with these parts, in S3's notation."""
    return sum_of(name, b"".join(base64.b64decode(one) for one in sums)) + f"-{len(sums)}"


def base64_of(crc):
    return base64.b64encode(crc.to_bytes(4, "big")).decode()


def promised_by(headers):
    """The checksums that a request's or reply's headers name: {name: base64}."""
    return {name: headers[header] for name, header in HEADERS.items() if headers.get(header)}


class BodyDigests:
    """The digests that a request promises (x-amz-checksum-*, Content-MD5, signed payload), computed while the body passes."""

    def __init__(self, request):
        self.bytes = self.crc32c = 0
        self.promised = promised_by(request.headers) if request.method == "PUT" else {}  # Complete's is the object's
        if request.headers.get("content-md5"):
            self.promised["md5"] = request.headers["content-md5"]
        payload = request.headers.get("x-amz-content-sha256", "")
        self.payload = payload if len(payload) == 64 else None
        self.sums = {name: new(name) for name in {*self.promised, *(["sha256"] if self.payload else [])}}

    def update(self, piece):
        self.bytes += len(piece)
        self.crc32c = crc32c(piece, self.crc32c)
        for sum_ in self.sums.values():
            sum_.update(piece)

    def wrong(self):
        """The S3 error code of what does not match, or None."""
        found = {name: sum_.digest() for name, sum_ in self.sums.items()}
        if any(name in HEADERS and len(value) != len(base64.b64encode(found[name])) for name, value in self.promised.items()):
            return "InvalidRequest"
        if any(base64.b64encode(found[name]).decode() != value for name, value in self.promised.items()):
            return "BadDigest"
        if self.payload and found["sha256"].hex() != self.payload:
            return "XAmzContentSHA256Mismatch"
        return None
