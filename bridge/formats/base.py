"""What a format is: bytes to rows and rows to bytes, as columns.

A format knows one document (a key or a value) and nothing of Kafka, Delta or policies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import Column

from bridge.schema import RowType

__all__ = ["DOUBTFUL", "Decoded", "Decoder", "Encoder", "Format"]

DOUBTFUL = "__doubtful"
"""The error of a document that wants a closer look than `glance` allows."""


@dataclass(frozen=True)
class Decoded:
    """The fields of the struct column that a decoder makes; use these names to take it apart.

    struct<rows: array<struct<kind: string, row: struct<...>>>, error: string>

    - A good document: `error` is null, `rows` holds its rows in document order (insert-only formats
      give one row, kind '+I'; a JSON array gives several).
    - A document without a row (null payload, or one the format skips): `error` null, `rows` null or empty.
    - A bad document: `error` is a short reason that names the field and never holds payload; `rows` null.
    """

    rows: str = "rows"
    error: str = "error"
    kind: str = "kind"
    row: str = "row"


class Decoder(Protocol):
    """Turns payload bytes into rows of a fixed shape."""

    skips_errors: bool
    """True under `ignore-parse-errors`: a bad document is dropped and counted, not handed to bad-records."""

    def decode(self, payload: Column, *, glance: bool = False) -> Column:
        """A column of the struct described in `Decoded`. Must not raise for any bytes; order is the document's.

        With `glance` a decoder may leave out its rarer paths, whose expressions cost Spark more to plan than most
        batches cost to run: a document that needs one gets the error DOUBTFUL, and the caller decodes the
        batch again without."""
        ...


class Encoder(Protocol):
    """Turns a row into payload bytes."""

    def encode(self, row: Column) -> Column:
        """A binary column; null exactly where `row` is null. Raises in Spark (raise_error) for a row that the
        format cannot write, naming the field and the option that decides."""
        ...


class Format(Protocol):
    """A member of the registry."""

    name: str
    insert_only: bool
    """False for CDC formats, whose documents carry the row kind."""

    def decoder(self, row: RowType, options: Mapping[str, Any]) -> Decoder:
        """A decoder for documents of shape `row`. `options` as in FormatSpec.options.

        Raises DefinitionError when the format cannot represent a type of `row`."""
        ...

    def encoder(self, row: RowType, options: Mapping[str, Any]) -> Encoder:
        """An encoder for rows of shape `row`; raises as `decoder` does."""
        ...
