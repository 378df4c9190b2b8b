"""Reads and writes deletion vectors: the positions of a data file's rows that are deleted.

Formats: "Deletion Vectors" in the Delta protocol (PROTOCOL.md). A vector is a roaring bitmap of 64-bit positions; a
descriptor in the file's `add` action says where it is. A file of vectors is a byte with its version, then for each
vector its size, its bytes and their CRC-32.
"""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from pyroaring import BitMap

from bridge.lake.store import Store
from bridge.ways import NotThisWay

__all__ = ["Descriptor", "read_vector", "write_vectors"]

Descriptor = Mapping[str, Any]
"""`deletionVector` of an `add` action: storageType, pathOrInlineDv, offset, sizeInBytes, cardinality."""

_MAGIC = 1681511377
_FILE_VERSION = 1
_ENCODED_UUID = 20
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_TO_Z85, _FROM_Z85 = bytes.maketrans(_B85, _Z85), bytes.maketrans(_Z85, _B85)
"""Delta encodes bytes as Z85, which is Python's base 85 with another alphabet."""


def read_vector(store: Store, descriptor: Descriptor | None) -> BitMap:
    """Return the positions that the vector marks; none where a file has no vector.

    Raises NotThisWay for a vector that is not in the store, that is damaged, or that marks positions from
    2^32 on.
    """
    if descriptor is None:
        return BitMap()
    size = int(descriptor["sizeInBytes"])
    if descriptor["storageType"] == "i":
        return _parsed(_decoded(descriptor["pathOrInlineDv"])[:size])
    begin = int(descriptor.get("offset") or 0)
    data = store.range(_path(descriptor), begin, begin + size + 8)
    found = data[4:-4]
    if struct.unpack(">i", data[:4]) != (size,) or struct.unpack(">I", data[-4:]) != (zlib.crc32(found),):
        raise NotThisWay("a deletion vector of the table is damaged")
    return _parsed(found)


def write_vectors(store: Store, marked: Mapping[str, BitMap]) -> dict[str, Descriptor]:
    """Write all vectors into one new file of the table; return their descriptors by the same names."""
    if not marked:
        return {}
    id = uuid.uuid4()
    text = base64.b85encode(id.bytes).translate(_TO_Z85).decode()
    descriptors: dict[str, Descriptor] = {}
    content = bytearray([_FILE_VERSION])
    for name, bitmap in marked.items():
        data = _serialized(bitmap)
        descriptors[name] = {
            "storageType": "u",
            "pathOrInlineDv": text,
            "offset": len(content),
            "sizeInBytes": len(data),
            "cardinality": len(bitmap),
        }
        content += struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    store.create(_name(id), bytes(content))
    return descriptors


def _serialized(bitmap: BitMap) -> bytes:
    # One bitmap, of the positions whose upper 32 bits are 0.
    return struct.pack("<IQI", _MAGIC, 1, 0) + bytes(bitmap.serialize())


def _parsed(data: bytes) -> BitMap:
    magic, count = struct.unpack_from("<IQ", data)
    if magic != _MAGIC or count > 1 or (count and struct.unpack_from("<I", data, 12) != (0,)):
        raise NotThisWay("a deletion vector of the table has a form that only Spark reads")
    return BitMap.deserialize(data[16:]) if count else BitMap()


def _path(descriptor: Descriptor) -> str:
    """The path of the file of a vector. Raises NotThisWay where it is in another folder or store."""
    where = str(descriptor["pathOrInlineDv"])
    if descriptor["storageType"] == "u":
        prefix, encoded = where[:-_ENCODED_UUID], where[-_ENCODED_UUID:]
        return f"{prefix}/{_name(uuid.UUID(bytes=_decoded(encoded)))}".removeprefix("/")
    place = urlsplit(where)
    if descriptor["storageType"] != "p" or place.scheme not in ("", "file"):
        raise NotThisWay("a deletion vector of the table is not in its folder")
    return unquote(place.path)


def _name(id: uuid.UUID) -> str:
    return f"deletion_vector_{id}.bin"


def _decoded(text: str) -> bytes:
    return base64.b85decode(text.encode().translate(_FROM_Z85))
