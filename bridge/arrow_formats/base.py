"""The Protocol of a decoder that turns payloads into Arrow columns.

    decoder = arrow_decoder(topic.value)
    table = decoder.decode(pa.array([b'{"id": 1}'], pa.binary()))

Decoders are sent to Python workers, so they are plain values, and their modules import little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = [
    "ArrowChanges",
    "ArrowDecoder",
    "ChangeArrowDecoder",
    "NeedsFullDecode",
    "Places",
    "SchemaArrowDecoder",
]

_Self = TypeVar("_Self")
Places: TypeAlias = npt.NDArray[np.signedinteger[Any]]


class NeedsFullDecode(Exception):
    """A payload that Spark's path may read otherwise, or refuse; the message says which kind, and has no payload."""


class ArrowDecoder(Protocol):
    """Turns the payloads of one format into rows of a fixed shape."""

    def decode(self, payloads: pa.BinaryArray) -> pa.Table:
        """Return one row for each payload, in their order, in the Arrow types that Spark gives for the row's fields.

        `payloads` has no null. Raises NeedsFullDecode unless Spark's path (`formats.base.Decoder`) gives one row of the
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

        Raises NeedsFullDecode unless Spark's path gives the same changes, and no error, for each payload. Unavailable
        values are left to it, too.
        """
        ...


@runtime_checkable
class SchemaArrowDecoder(Protocol):
    """A decoder of documents that name their writer's schema by its id in a schema registry, which it does not ask."""

    def with_schemas(self: _Self, schemas: Mapping[int, str]) -> _Self:
        """Return a decoder of documents of these schemas (texts by id) only; others raise NeedsFullDecode."""
        ...
