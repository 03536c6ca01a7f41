"""Rows of an SQLite store, for tests: the packed form of src/store/item_pack.c from and to DynamoDB's JSON.

connect() gives SQL two functions: unpacked(doc) is the JSON of a doc, and packed(json) the doc. So a test changes an
attribute by `UPDATE items SET doc = packed(json_set(unpacked(doc), '$.state.S', 'done'))`.
"""

import base64
import json
import re
import sqlite3
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "store" / "item_pack.c"
NAMES = re.findall(r'"(\w+)"', re.search(r"names\[\] = \{(.*?)\};", SOURCE.read_text(), re.DOTALL)[1])
FORM = 1
STRING, NUMBER, BYTES, OTHER, HEX, INTEGER = range(6)


def varint(number):
    some = bytearray()
    while number > 0x7F:
        some.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*some, number])


def pack_value(value):
    ((kind, inner),) = value.items()
    if kind == "S" and re.fullmatch(r"([0-9a-f]{2}){4,}", inner):
        shape, some = HEX, bytes.fromhex(inner)
    elif kind == "N" and re.fullmatch(r"-?[1-9]\d*|0", inner) and -(1 << 63) <= int(inner) < 1 << 63:
        zigzag = int(inner) << 1 if int(inner) >= 0 else ~(int(inner) << 1)
        shape, some = INTEGER, zigzag.to_bytes((zigzag.bit_length() + 7) // 8, "little")
    elif kind in ("S", "N"):
        shape, some = STRING if kind == "S" else NUMBER, inner.encode()
    else:
        shape, some = (BYTES, base64.b64decode(inner)) if kind == "B" else (OTHER, json.dumps(value).encode())
    return varint(len(some) << 3 | shape) + some


def pack(attributes):
    """attributes: name → {"S": text} and so on."""
    doc = bytes([FORM]) + varint(len(attributes))
    for name, value in attributes.items():
        doc += (bytes([NAMES.index(name) + 1]) if name in NAMES else b"\0" + name.encode() + b"\0") + pack_value(value)
    return doc


def take_varint(doc, at):
    number = shift = 0
    while True:
        number |= (doc[at] & 0x7F) << shift
        shift += 7
        at += 1
        if doc[at - 1] < 0x80:
            return number, at


def unpack_value(shape, some):
    if shape == HEX:
        return {"S": some.hex()}
    if shape == INTEGER:
        zigzag = int.from_bytes(some, "little")
        return {"N": str(zigzag >> 1 ^ -(zigzag & 1))}
    if shape == OTHER:
        return json.loads(some)
    return {"B": base64.b64encode(some).decode()} if shape == BYTES else {"SN"[shape]: some.decode()}


def unpack(doc):
    assert doc[0] == FORM, doc
    count, at = take_varint(doc, 1)
    attributes = {}
    for _ in range(count):
        number, at = doc[at], at + 1
        if number:
            name = NAMES[number - 1]
        else:
            name, at = doc[at : doc.index(0, at)].decode(), doc.index(0, at) + 1
        head, at = take_varint(doc, at)
        attributes[name] = unpack_value(head & 7, doc[at : at + (head >> 3)])
        at += head >> 3
    assert at == len(doc), doc
    return attributes


def connect(path, only_read=False, **options):
    database = sqlite3.connect(f"file:{path}?mode={'ro' if only_read else 'rw'}", uri=True, **{"timeout": 30, **options})
    database.create_function("unpacked", 1, lambda doc: json.dumps(unpack(doc)), deterministic=True)
    database.create_function("packed", 1, lambda text: pack(json.loads(text)), deterministic=True)
    return database
