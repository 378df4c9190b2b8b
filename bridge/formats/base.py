"""The Protocols of a format: payload bytes to rows and rows to payload bytes, as Spark columns.

A format knows one document (a key or a value) and nothing of Kafka, Delta or policies. It needs a `Format`, a `Decoder`
and an `Encoder`; the other Protocols are optional. `tests/formats/made_up.py` is a small format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from pyspark.sql import Column, DataFrame

from bridge.schema import RowType

NOTHING = RowType(())
"""No metadata."""

Options: TypeAlias = Mapping[str, Any]
"""The options of a format by their keys, as in FormatSpec.options."""

PAYLOAD = "payload"
"""The only column of the frame that `Decoder.for_payloads` takes."""

NEEDS_FULL_DECODE = "__needs_full_decode"
"""The error of a document that the fast path does not cover."""

TRUNCATES = "__truncates"
"""The error of a document that has no row, as it deletes all of them."""


@dataclass(frozen=True)
class DecodedColumn:
    """Names of the fields of the struct column that a decoder returns.

    struct<rows: array<struct<kind: string, row: struct<...>, metadata: struct<...>, unavailable: array<string>>>,
           error: string>

    `metadata` is present when metadata was requested from `Format.decoder`: the requested fields, in their order and
    types. `unavailable` is present when the decoder's `has_unavailable` is True: the names of fields of `row` whose
    values the database left out of the change, so that the table's row keeps its values; null or empty for none. Such
    fields are null in `row`.

    - A good document: `error` is null, `rows` holds its rows in document order. Insert-only formats give one row of
      kind '+I' (a JSON array gives several); a CDC document gives its change, an update as -U, where the document has
      the before image, and +U.
    - A document without a row (null payload, or one that the format skips): `error` is null, `rows` null or empty.
      Only the raw format reads null as a row, whose field is null.
    - A bad document: `error` is a short reason that names the field and never holds payload; `rows` is null.
    """

    rows: str = "rows"
    error: str = "error"
    kind: str = "kind"
    row: str = "row"
    metadata: str = "metadata"
    unavailable: str = "unavailable"


class Decoder(Protocol):
    """Turns payload bytes into rows of a fixed shape.

    frame.withColumn("decoded", decoder.for_payloads(payloads).decode(col("value")))
    """

    skips_errors: bool
    """True under `ignore-parse-errors`: a bad document is dropped and counted, whatever `ingest.bad-records` is."""

    has_unavailable: bool
    """True when rows have the field `unavailable`."""

    def decode(self, payload: Column) -> Column:
        """Return a column of the struct that `DecodedColumn` describes. Its evaluation raises for no bytes at all."""
        ...

    def for_payloads(self, payloads: DataFrame) -> Decoder:
        """Return a decoder of the documents in these payloads (column `payload`).

        A format whose documents name a schema looks up here which schemas they name (one Spark job over the frame; no
        payload reaches the driver); others return themselves. Raises KafkaError where the registry cannot be reached.
        """
        ...


@runtime_checkable
class FastPathDecoder(Protocol):
    """A decoder that also has a fast path: columns that Spark compiles, where `decode` is one interpreted expression.

    frame = decoder.decode_fast(frame, col("value"), "decoded")
    """

    def decode_fast(self, frame: DataFrame, payload: Column, name: str) -> DataFrame:
        """Return `frame` with the column `name`: what `decode` gives, or NEEDS_FULL_DECODE as the error.

        The caller decodes the whole batch with `decode` where any document has this error. The fast path leaves out
        what Spark takes longer to plan than most batches take to run."""
        ...


class Encoder(Protocol):
    """Turns rows of an insert-only format into payload bytes.

    frame = encoder.encode(frame, col("row"), "value")
    """

    def encode(self, frame: DataFrame, row: Column, name: str) -> DataFrame:
        """Return `frame` with the binary column `name`, null exactly where `row` is null.

        Its evaluation fails (raise_error) for a row that the format cannot write, naming the field and the option that
        decides."""
        ...


class ChangeEncoder(Protocol):
    """Turns changes into payload bytes of a CDC format.

    frame = encoder.encode_change(frame, col("before"), col("after"), "value")
    """

    def encode_change(self, frame: DataFrame, before: Column, after: Column, name: str) -> DataFrame:
        """Return `frame` with the binary column `name`: an insert where `before` is null, a delete where `after` is
        null, one update message with both where neither is; null where both are. Fails as `Encoder.encode` does."""
        ...


class Format(Protocol):
    """The class that a declaration in `options.formats` refers to; made without arguments.

    catalog.get("json").decoder(row, {"ignore-parse-errors": True})
    """

    name: str

    def decoder(
        self, row: RowType, options: Options, *, metadata: RowType = NOTHING, key: Sequence[str] = ()
    ) -> Decoder:
        """Return a decoder for documents of shape `row`. `options` as in FormatSpec.options.

        `metadata`: the fields that rows carry besides, under the format's own metadata keys and types (see
        DeclaredFormat.metadata); empty for insert-only formats. `key`: the fields of `row` that identify it, none for a
        table without a key. A document of an insert-only format that has none of them is bad (docs/adr/060); a CDC
        update without a before image is good with a key and bad without. With a key, the rows of -U and -D may have
        only the key's fields, null in the others: see formats.cdc.common.

        Raises DefinitionError when the format cannot represent a type of `row`."""
        ...

    def encoder(self, row: RowType, options: Options) -> Encoder | ChangeEncoder:
        """Return an encoder for rows of shape `row`, a ChangeEncoder unless insert-only; raises as `decoder` does."""
        ...
