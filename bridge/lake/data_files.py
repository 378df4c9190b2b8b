"""Reads a table's data files with Arrow, in the types of its newest schema, and reads and writes deletion vectors.

Formats: "Deletion Vectors" in the Delta protocol (PROTOCOL.md). A vector has the positions of a data file's deleted
rows. It is a roaring bitmap of 64-bit positions; a descriptor in the file's `add` action says where it is. A file of
vectors is a byte with its version, then for each vector its size, its bytes and their CRC-32.
"""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

from bridge.lake.snapshot import Action, Snapshot
from bridge.lake.store import Source, Store
from bridge.ways import NotThisWay

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile
    from pyroaring import BitMap


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


_OLD_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


@dataclass(frozen=True)
class DataFile:
    """A data file that is open, and the rows in it that are deleted. One thread reads it at a time."""

    name: str
    """Its path in the log."""
    add: Action
    schema: pa.Schema = field(repr=False)
    """Of the table."""
    parquet: ParquetFile = field(repr=False)
    marked: BitMap = field(repr=False)
    source: Source = field(repr=False)
    opened: Callable[[], ParquetFile] = field(repr=False)
    """Opens it once more."""

    def for_another_thread(self) -> DataFile:
        """The same file, opened once more, footer included: nothing of a ParquetFile is for two threads at once.

        Each read of one replaces the ranges that another one waits for (github.com/apache/arrow/discussions/51369).
        `marked` is shared: CRoaring allows queries by several threads while nobody modifies a bitmap.
        """
        return replace(self, parquet=self.opened())

    @property
    def rows(self) -> int:
        """Deleted ones included."""
        return int(self.parquet.metadata.num_rows)

    def begin_of(self, group: int) -> int:
        """The position of the first row of a row group."""
        metadata = self.parquet.metadata
        return sum(int(metadata.row_group(n).num_rows) for n in range(group))

    def fetch(self, groups: Sequence[int], columns: Sequence[str]) -> None:
        """Bring these columns of row groups at once, if the file is far away, before they are read. Any thread may
        call it: the footer that it looks at is not changed."""
        if not self.source.is_remote:
            return
        footer, ranges = self.parquet.metadata, []
        for group in map(footer.row_group, groups):
            for chunk in map(group.column, range(group.num_columns)):
                if chunk.path_in_schema.split(".")[0] in columns:
                    begin = chunk.dictionary_page_offset or chunk.data_page_offset
                    ranges.append((begin, begin + chunk.total_compressed_size))
        self.source.fetch(ranges)

    def read(self, groups: Sequence[int], columns: Sequence[str], *, use_threads: bool = True) -> pa.Table:
        """Read columns of row groups, deleted rows included, in the types of the table's schema. A column that the
        table got after the file was written is null."""
        present = set(self.parquet.schema_arrow.names)
        self.fetch(groups, columns)
        found = self.parquet.read_row_groups(
            list(groups), columns=[name for name in columns if name in present], use_threads=use_threads
        )
        rows = sum(int(self.parquet.metadata.row_group(n).num_rows) for n in groups)
        fields = [self.schema.field(name) for name in columns]
        return pa.table(
            [
                found[f.name].cast(f.type)
                if f.name in present
                else pa.chunked_array([pa.nulls(rows, f.type)])
                for f in fields
            ],
            schema=pa.schema(fields),
        )


def open_file(snapshot: Snapshot, name: str, schema: pa.Schema) -> DataFile:
    """Open a data file of the snapshot as `open_added`."""
    return open_added(snapshot, snapshot.files[name], schema)


def open_added(
    snapshot: Snapshot, add: Action, schema: pa.Schema, dictionaries: Sequence[str] = ()
) -> DataFile:
    """Open the data file of an `add` action of that table and read its deletion vector. `dictionaries` are columns that
    are read as dictionaries, which they are in `schema`. Raises NotThisWay where only Spark reads it right."""
    source = snapshot.store.open(snapshot.path_of(add["path"]), int(add["size"]))

    def opened() -> ParquetFile:
        footer = pq.read_metadata(source.file())
        present = {footer.schema.column(n).path for n in range(footer.num_columns)}
        return pq.ParquetFile(
            source.file(),
            metadata=footer,
            pre_buffer=False,  # ranges read ahead are for files that are far away
            # Spark writes a TIMESTAMP as INT96 by default; nanoseconds would not cover all of its values.
            coerce_int96_timestamp_unit="us",
            read_dictionary=[name for name in dictionaries if name in present],
        )

    file = opened()
    if set(_OLD_CALENDAR) & set(file.metadata.metadata or {}):
        raise NotThisWay("files of the table have dates in the calendar of Spark 2")
    vector = read_vector(snapshot.store, add.get("deletionVector"))
    return DataFile(add["path"], add, schema, file, vector, source, opened)


def arrow_schema(metadata: Mapping[str, Any]) -> pa.Schema:
    """The columns of the table as Arrow's types, without comments."""
    from deltalake import Schema

    schema = pa.schema(Schema.from_json(metadata["schemaString"]).to_arrow())
    return pa.schema([pa.field(f.name, f.type) for f in schema])
