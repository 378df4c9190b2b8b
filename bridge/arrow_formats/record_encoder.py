"""Keys and values of records from rows of the table, made in the tasks that send them (docs/adr/043)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from bridge.arrow_formats.base import ArrowEncoder, RowColumns
from bridge.arrow_formats.catalog import arrow_encoder
from bridge.definition import Topic
from bridge.errors import UnwritableRowError

RETRACTS = "__retracts"
"""The column that is true for a change whose record is a tombstone."""
MOST_BYTES = 128 << 20
"""Of more bytes than this the documents may take more than 2 GiB, the most that Arrow's usual types can have."""


@dataclass(frozen=True)
class RecordEncoder:
    """Makes the documents of records, as plain values that can be sent to executors."""

    key: ArrowEncoder | None
    value: ArrowEncoder

    @cached_property
    def sources(self) -> dict[str, str]:
        """The columns of the table that a batch must have, and what they are called there, as a table may have columns
        of the same names as a record."""
        used = dict.fromkeys((*(self.key.columns if self.key is not None else ()), *self.value.columns))
        return {column: f"__{n}" for n, column in enumerate(used)}

    @cached_property
    def as_texts(self) -> frozenset[str]:
        """Those of the table's columns that must be cast to STRING; see ArrowEncoder.as_texts."""
        return self.value.as_texts | (self.key.as_texts if self.key is not None else frozenset())

    def documents(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        """Return key and value of each row of a batch of what `bridge.encode.leave_to_tasks` gives: those that
        `bridge.encode.encode` gives for the same changes. Raises UnwritableRowError as the encoders do."""
        columns = {name: batch.column(source) for name, source in self.sources.items()}
        # A setting of Spark's (arrow.useLargeVarTypes) gives the large types for all batches.
        wide = batch.nbytes > MOST_BYTES or any(map(pa.types.is_large_string, batch.schema.types))
        given = RowColumns(columns, batch.num_rows, wide=wide)
        keys = pa.nulls(batch.num_rows, pa.binary()) if self.key is None else self.key.encode(given)
        retracts = batch.column(RETRACTS)
        if not pc.any(retracts).as_py():
            return keys, self.value.encode(given)
        try:
            values = self.value.encode(given)
        except UnwritableRowError:  # it may be of a row that is gone, whose values are not sent
            nulled = {n: pc.if_else(retracts, pa.scalar(None, c.type), c) for n, c in columns.items()}
            values = self.value.encode(RowColumns(nulled, batch.num_rows, wide=wide))
        return keys, pc.if_else(retracts, pa.scalar(None, values.type), values)


def record_encoder(topic: Topic) -> RecordEncoder:
    """Return the encoder of a topic's records. Raises NotThisWay."""
    key = None if topic.key is None else arrow_encoder(topic.key)
    return RecordEncoder(key, arrow_encoder(topic.value))
