"""CRC-32C by isa-l (the library, not our code), and what S3 makes of it."""

import base64
import ctypes
import ctypes.util
import hashlib
import zlib

_isal = ctypes.CDLL(ctypes.util.find_library("isal") or "libisal.so.2")
_isal.crc32_iscsi.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_uint]
_isal.crc32_iscsi.restype = ctypes.c_uint


def crc32c(data, crc=0):
    """CRC-32C of data, continued from crc."""
    return _isal.crc32_iscsi(bytes(data), len(data), crc ^ 0xFFFFFFFF) ^ 0xFFFFFFFF


def base64_of(crc):
    return base64.b64encode(crc.to_bytes(4, "big")).decode()


class BodyDigests:
    """What the x-amz-checksum-*, Content-MD5 and signed payload headers of a request promise, computed as the body passes."""

    def __init__(self, request):
        headers = request.headers
        self.promised = {}
        for name, value in headers.items():
            if name.startswith("x-amz-checksum-") and request.method == "PUT":  # Complete's is the object's
                self.promised[name.removeprefix("x-amz-checksum-")] = value
        self.md5 = headers.get("content-md5")
        payload = headers.get("x-amz-content-sha256", "")
        self.payload = payload if len(payload) == 64 else None
        self.bytes = self.crc32c = self.crc32 = 0
        wanted = {"sha1": "sha1", "sha256": "sha256"}
        self.hashes = {kind: hashlib.new(name) for kind, name in wanted.items() if kind in self.promised}
        if self.payload:
            self.hashes.setdefault("sha256", hashlib.sha256())
        if self.md5:
            self.hashes["md5"] = hashlib.md5()

    def update(self, piece):
        self.bytes += len(piece)
        self.crc32c = crc32c(piece, self.crc32c)
        if "crc32" in self.promised:
            self.crc32 = zlib.crc32(piece, self.crc32)
        for digest in self.hashes.values():
            digest.update(piece)

    def wrong(self):
        """The S3 error code of what does not match, or None."""
        found = {"crc32c": base64_of(self.crc32c), "crc32": base64_of(self.crc32)}
        found |= {kind: base64.b64encode(digest.digest()).decode() for kind, digest in self.hashes.items()}
        if any(kind in found and found[kind] != value for kind, value in self.promised.items()):
            return "BadDigest"
        if self.md5 and found["md5"] != self.md5:
            return "BadDigest"
        if self.payload and self.hashes["sha256"].hexdigest() != self.payload:
            return "XAmzContentSHA256Mismatch"
        return None
