"""What a format is: bytes to rows and rows to bytes, as columns.

A format knows one document (a key or a value) and nothing of Kafka, Delta or policies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pyspark.sql import Column, DataFrame

from bridge.schema import RowType

__all__ = [
    "NEEDS_FULL_DECODE",
    "NOTHING",
    "PAYLOAD",
    "ChangeEncoder",
    "DecodedColumn",
    "Decoder",
    "Encoder",
    "FastPathDecoder",
    "Format",
    "FrameChangeEncoder",
    "FrameEncoder",
]

NOTHING = RowType(())
"""No metadata."""

PAYLOAD = "payload"
"""The one column of the frame that `Decoder.closer` looks at."""

NEEDS_FULL_DECODE = "__needs_full_decode"
"""The error of a document that wants a closer look than `fast` allows."""


@dataclass(frozen=True)
class DecodedColumn:
    """The fields of the struct column that a decoder makes; use these names to take it apart.

    struct<rows: array<struct<kind: string, row: struct<...>, metadata: struct<...>, kept: array<string>>>,
           error: string>

    `metadata` is there when the decoder was asked for some: the fields asked for, in their order and types.
    `kept` is there when the decoder's `keeps` is True: names of fields of `row` that the document does not tell and
    whose present value is to be kept (Debezium's unavailable-value placeholder); null or empty when there are none,
    and such fields are null in `row`.

    - A good document: `error` is null, `rows` holds its rows in document order (insert-only formats
      give one row, kind '+I'; a JSON array gives several; a CDC document gives what it says happened, an update as
      -U, when the document has the row's former state, and +U).
    - A document without a row (null payload, or one the format skips): `error` null, `rows` null or empty. To the
      format raw alone null is a row, that of a null.
    - A bad document: `error` is a short reason that names the field and never holds payload; `rows` null.
    """

    rows: str = "rows"
    error: str = "error"
    kind: str = "kind"
    row: str = "row"
    metadata: str = "metadata"
    unavailable: str = "unavailable"


class Decoder(Protocol):
    """Turns payload bytes into rows of a fixed shape."""

    skips_errors: bool
    """True under `ignore-parse-errors`: a bad document is dropped and counted, not handed to bad-records."""

    has_unavailable: bool
    """True when rows carry `kept`."""

    def decode(self, payload: Column, *, fast: bool = False) -> Column:
        """A column of the struct described in `Decoded`. Must not raise for any bytes; order is the document's.

        With `fast` a decoder may leave out its rarer paths, whose expressions cost Spark more to plan than most
        batches cost to run: a document that needs one gets the error DOUBTFUL, and the caller decodes the
        batch again without."""
        ...

    def for_payloads(self, payloads: DataFrame) -> Decoder:
        """A decoder for just these payloads (column `payload`), to be used without `fast`.

        A format whose documents name a schema finds out here which ones there are (one Spark job over the frame,
        no payload reaches the driver); all others give themselves. Raises what reaching the registry raises."""
        ...


@runtime_checkable
class FastPathDecoder(Protocol):
    """What some decoders can do besides: fast in steps, which Spark compiles, where one expression is interpreted."""

    def decode_fast(self, frame: DataFrame, payload: Column, name: str) -> DataFrame:
        """`frame` with the column `name`, as `decode(payload, fast=True)` makes it."""
        ...


class Encoder(Protocol):
    """Turns a row into payload bytes."""

    def encode(self, row: Column) -> Column:
        """A binary column; null exactly where `row` is null. Raises in Spark (raise_error) for a row that the
        format cannot write, naming the field and the option that decides."""
        ...


class ChangeEncoder(Encoder, Protocol):
    """What the encoder of a CDC format can do besides: `encode(row)` writes an insert."""

    def encode_change(self, before: Column, after: Column) -> Column:
        """A binary column: `before` null is an insert, `after` null a delete, neither null one true update
        message with both; null where both are."""
        ...


@runtime_checkable
class FrameEncoder(Protocol):
    """What some encoders can do besides: write in steps, which Spark compiles, where one expression is interpreted."""

    def encode_into(self, frame: DataFrame, row: Column, name: str) -> DataFrame:
        """`frame` with the column `name`, as `encode(row)` makes it."""
        ...


@runtime_checkable
class FrameChangeEncoder(FrameEncoder, Protocol):
    """The same of a ChangeEncoder."""

    def encode_change_into(self, frame: DataFrame, before: Column, after: Column, name: str) -> DataFrame:
        """`frame` with the column `name`, as `encode_change(before, after)` makes it."""
        ...


class Format(Protocol):
    """A member of the registry."""

    name: str
    insert_only: bool
    """False for CDC formats, whose documents carry the row kind."""

    def decoder(
        self,
        row: RowType,
        options: Mapping[str, Any],
        *,
        metadata: RowType = NOTHING,
        key: Sequence[str] = (),
    ) -> Decoder:
        """A decoder for documents of shape `row`. `options` as in FormatSpec.options.

        `metadata`: what rows are to carry besides, under the format's own metadata keys and types (see
        options.FORMATS); empty for insert-only formats. `key`: the fields of `row` that identify it, none for an
        unkeyed table; a CDC update without the row's former state is fine with a key and bad without. With a key
        retractions (-U, -D) may hold its fields alone, null in the others: see formats.former.

        Raises DefinitionError when the format cannot represent a type of `row`."""
        ...

    def encoder(self, row: RowType, options: Mapping[str, Any]) -> Encoder:
        """An encoder for rows of shape `row` (a ChangeEncoder unless insert_only); raises as `decoder` does."""
        ...
