"""The Protocols of decoders that turn payloads into Arrow columns, and of encoders that turn columns into payloads.

    decoder = arrow_decoder(topic.value)
    table = decoder.decode(pa.array([b'{"id": 1}'], pa.binary()))

    encoder = arrow_encoder(topic.value)
    payloads = encoder.encode(RowColumns({"id": pa.array([1])}, rows=1))

Both are sent to Python workers, so they are plain values, and their modules import little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.ways import NotThisWay

_Self = TypeVar("_Self")
Places: TypeAlias = npt.NDArray[np.signedinteger[Any]]


def check_keys(keys: Mapping[str, pa.Array]) -> None:
    """Raise NotThisWay where all columns of a decoded key are null, as of a document that has none of them."""
    if not keys or not all(column.null_count for column in keys.values()):
        return
    missing = reduce(pc.and_, [pc.is_null(column) for column in keys.values()])
    if pc.any(missing).as_py():
        raise NotThisWay("a key has no value in any of its columns")


class ArrowDecoder(Protocol):
    """Turns the payloads of one format into rows of a fixed shape."""

    def decode(self, payloads: pa.BinaryArray) -> pa.Table:
        """Return one row for each payload, in their order, in the Arrow types that Spark gives for the row's fields.

        `payloads` has no null. Raises NotThisWay unless Spark's path (`formats.base.Decoder`) gives one row of the
        same values for each payload.
        """
        ...


@dataclass(frozen=True)
class ArrowChanges:
    """The changes of documents. Their order is that of their places, which are not negative and differ."""

    additions: pa.Table
    """The rows of +I and +U."""
    addition_places: Places
    """For each addition its place; ascending."""
    retractions: pa.Table
    """The key's fields of -U and -D, in the row's order."""
    retraction_places: Places
    """For each retraction its place; ascending."""
    is_delete: npt.NDArray[np.bool_]
    """For each retraction whether it is -D; else it is -U."""


class ChangeArrowDecoder(Protocol):
    """Turns the documents of a CDC format into changes of a table with a key."""

    def decode(self, payloads: pa.BinaryArray) -> ArrowChanges:
        """Return the changes of the documents, in their order. Null and zero bytes have none.

        Raises NotThisWay unless Spark's path gives the same changes, and no error, for each payload. Unavailable
        values are left to it, too.
        """
        ...


class UnknownSchemas(NotThisWay):
    """Documents have these ids of schemas, which the decoder does not know yet."""

    def __init__(self, ids: tuple[int, ...]) -> None:
        super().__init__(ids)
        self.ids = ids

    def __str__(self) -> str:
        return f"schema id {self.ids[0]}: it is not known yet"


@runtime_checkable
class SchemaArrowDecoder(Protocol):
    """A decoder of documents that name their writer's schema by its id in a schema registry, which it does not ask."""

    def with_schemas(self: _Self, schemas: Mapping[int, str]) -> _Self:
        """Return a decoder of documents of these schemas (texts by id) only; others raise UnknownSchemas."""
        ...


@dataclass(frozen=True)
class RowColumns:
    """The rows that become documents, by column of the table, in the Arrow types that Spark gives; see also
    `ArrowEncoder.as_texts`."""

    columns: Mapping[str, pa.Array]
    rows: int
    wide: bool = False
    """Whether the documents may take more than 2 GiB, so that all texts must have Arrow's large types."""
    texts: dict[Any, pa.Array] = field(default_factory=dict)
    """What encoders of the same rows have made of columns so far; the keys are their own."""


class ArrowEncoder(Protocol):
    """Turns rows of a fixed shape into documents of one format."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that it takes."""
        ...

    @property
    def as_texts(self) -> frozenset[str]:
        """Those of them that Spark casts to STRING first, since the texts of their values are Java's own."""
        ...

    def encode(self, given: RowColumns) -> pa.Array:
        """Return one document for each row, in their order, none of them null: the bytes that Spark's path
        (`formats.base.Encoder`) gives for the row. The type is binary or large_binary. Raises UnwritableRowError,
        with the column, for a text that is not valid UTF-8."""
        ...
