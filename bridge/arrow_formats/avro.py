"""Avro documents to Arrow: of the table's own schema without framing, or in Confluent's framing; and Debezium's events.

The framing is a zero byte, the id of the writer's schema in four bytes, the record. The driver asks the schema
registry, as on Spark's path; workers get plans, and neither its address nor credentials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa

from bridge.arrow_formats.arrow_types import arrow_schema
from bridge.arrow_formats.avro_cursor import Cursor
from bridge.arrow_formats.avro_plan import Plan, document_plan
from bridge.arrow_formats.avro_values import read
from bridge.arrow_formats.base import ArrowChanges, ArrowDecoder, ChangeArrowDecoder, UnknownSchemas
from bridge.arrow_formats.changes import before_after_changes, documents_of, no_changes
from bridge.definition import FormatSpec
from bridge.errors import DefinitionError
from bridge.format_rules.avro_given import derived_schema, envelope, event_schema, framed_schema
from bridge.format_rules.avro_schema import parse
from bridge.format_rules.change_documents import DEBEZIUM, before_image_type
from bridge.schema import RowType
from bridge.ways import NotThisWay


def decoder(spec: FormatSpec) -> ArrowDecoder:
    """Return the decoder of a format of plain Avro. Raises NotThisWay."""
    encoding = str(spec.options.get("encoding", "binary"))
    if encoding != "binary":
        raise NotThisWay(f"{spec.name}.encoding is {encoding}")
    own = derived_schema(spec.name, spec.row, spec.options)
    return AvroArrowDecoder(spec.row, document_plan(spec.row, own, own))


@dataclass(frozen=True)
class AvroArrowDecoder:
    """Decodes documents that are one record each, of one schema, with nothing behind it."""

    row: RowType
    plan: Plan

    def decode(self, payloads: pa.BinaryArray) -> pa.Table:
        """See ArrowDecoder.decode. A row without fields gives a table without columns that has rows."""
        if not len(payloads):
            return arrow_schema(self.row).empty_table()
        cursor = Cursor.of(payloads)
        made = as_table(read(self.plan, cursor), self.row, len(payloads))
        if not cursor.is_at_ends:
            raise NotThisWay("a document is longer than its schema says")
        return made


def as_table(records: pa.StructArray | None, row: RowType, count: int) -> pa.Table:
    """Return the rows as a table; `records` is None where the row has no fields."""
    if records is None:
        return pa.table({"": pa.nulls(count)}).select([])
    return pa.Table.from_arrays(records.flatten(), schema=arrow_schema(row))


_MAGIC, _HEADER = 1, 5
_MOST_PLANS = 256


def confluent_decoder(spec: FormatSpec) -> ArrowDecoder:
    """Return a decoder that knows no writer's schema yet (see SchemaArrowDecoder), or why there is none, as the end of
    a sentence: the table must be such that documents of its own schema can be read."""
    _, text = framed_schema(spec.name, spec.row, spec.options)
    return documents_decoder(spec.row, text)


def documents_decoder(row: RowType, own: str) -> AvroConfluentArrowDecoder:
    """Return the decoder of rows of which `own` is the table's schema, or why there is none, as `confluent_decoder`."""
    if isinstance(plan := _plan(row, own, own), str):
        raise NotThisWay(plan)
    return AvroConfluentArrowDecoder(row, own)


@dataclass(frozen=True)
class AvroConfluentArrowDecoder:
    """Decodes documents of the writers' schemas that it knows. Bytes behind a record are ignored, as by Confluent's."""

    row: RowType
    own: str
    """The table's own schema."""
    plans: tuple[tuple[int, Plan | str], ...] = ()
    """By the id of the writer's schema: how its documents are read, or why they are not."""

    def with_schemas(self, schemas: Mapping[int, str]) -> AvroConfluentArrowDecoder:
        """See SchemaArrowDecoder.with_schemas."""
        plans = tuple((id, _plan(self.row, self.own, text)) for id, text in sorted(schemas.items()))
        return replace(self, plans=plans)

    def decode(self, payloads: pa.BinaryArray) -> pa.Table:
        """See ArrowDecoder.decode. A row without fields gives a table without columns that has rows."""
        if not len(payloads):
            return arrow_schema(self.row).empty_table()
        cursor = Cursor.of(payloads)
        if cursor.data[cursor.skip(_MAGIC)].any():
            raise NotThisWay("a document is not in Confluent's framing")
        ids = cursor.fixed(">u4")
        first = int(ids[0])
        if (ids == first).all():
            (plan,) = self._plans_of([first])
            return as_table(read(plan, cursor), self.row, len(payloads))
        tables, order = [], []
        different = np.unique(ids).tolist()
        for id, plan in zip(different, self._plans_of(different), strict=True):
            rows = np.flatnonzero(ids == id)
            records = read(plan, cursor.of_rows(rows))
            tables.append(as_table(records, self.row, len(rows)))
            order.append(rows)
        if not self.row.fields:
            return as_table(None, self.row, len(payloads))
        back = np.argsort(np.concatenate(order))
        return pa.concat_tables(tables).take(pa.array(back)).combine_chunks()

    def _plans_of(self, ids: Sequence[int]) -> list[Plan]:
        known, found = dict(self.plans), list[Plan]()
        if unknown := tuple(id for id in ids if id not in known):
            raise UnknownSchemas(unknown)
        for id in ids:
            plan = known[id]
            if not isinstance(plan, Plan):
                raise NotThisWay(f"schema id {id}: {plan}")
            found.append(plan)
        return found


@lru_cache(_MOST_PLANS)
def _plan(row: RowType, own: str, writer: str) -> Plan | str:
    try:
        return document_plan(row, parse(own, "the table"), parse(writer, "it"))
    except NotThisWay as reason:
        return str(reason)
    except DefinitionError:
        return "the registry's text is no Avro schema"


def debezium_decoder(spec: FormatSpec, key: Sequence[str]) -> ChangeArrowDecoder:
    """Return a decoder that knows no writer's schema yet (see SchemaArrowDecoder), or why there is none, as the end of
    a sentence: the table must be such that events of its own schema can be read."""
    before = before_image_type(spec.row, key)
    _, text = event_schema(spec.name, spec.row, spec.options)
    events = documents_decoder(envelope(spec.row, before), text)
    return _DebeziumAvroArrowDecoder(events, spec.row, before)


@dataclass(frozen=True)
class _DebeziumAvroArrowDecoder:
    """Decodes events of the writers' schemas that it knows. Their other fields (`source`, `ts_ms`) are skipped."""

    events: AvroConfluentArrowDecoder
    row: RowType
    before: RowType
    """The key's fields."""

    def with_schemas(self, schemas: Mapping[int, str]) -> _DebeziumAvroArrowDecoder:
        """See SchemaArrowDecoder.with_schemas."""
        return replace(self, events=self.events.with_schemas(schemas))

    def decode(self, payloads: pa.BinaryArray) -> ArrowChanges:
        """See ChangeArrowDecoder.decode."""
        documents = documents_of(payloads)
        if not len(documents):
            return no_changes(self.row, self.before)
        before, after, op = (column.combine_chunks() for column in self.events.decode(documents).columns)
        return before_after_changes(before, after, op, DEBEZIUM, self.row, self.before)
