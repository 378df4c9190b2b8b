"""Flink's debezium-avro-confluent format: Debezium's change events in Confluent's framing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from bridge.formats.avro.client import Writer
from bridge.formats.avro.derive import check, derive
from bridge.formats.avro.framing import FramedDecoder, FramedEncoder, Subject
from bridge.formats.avro.given import given
from bridge.formats.avro.schema import Node, parse
from bridge.formats.base import NOTHING
from bridge.formats.sql import Names, apply, literal, null, struct
from bridge.schema import DataType, RowField, RowType, ScalarType

__all__ = ["DebeziumAvroFormat"]

_NAME = "debezium-avro-confluent"
_MISMATCH = (
    f"Schema provided for '{_NAME}' format must be a nullable record type with fields 'before', 'after', 'op' and "
    "schema of fields 'before' and 'after' must match the table schema"
)
_REPLICA_IDENTITY = (
    'The "before" field of {} message is null, if you are using Debezium Postgres Connector, please check the '
    "Postgres table has been set REPLICA IDENTITY to FULL level."
)
_NO_AFTER = 'The "after" field of {} message is null'
_UNKNOWN = 'Unknown "op" value; known are c, r, u, d'
_NULL = "the envelope is null"


class DebeziumAvroFormat:
    """An envelope of `before`, `after` and `op`; what else Debezium has in it is not looked at."""

    name = _NAME
    insert_only = False

    def decoder(
        self,
        row: RowType,
        options: Mapping[str, Any],
        *,
        metadata: RowType = NOTHING,
        key: Sequence[str] = (),
    ) -> _ChangeDecoder:
        """See Format.decoder."""
        own, _ = _own(row, options)
        return _ChangeDecoder(row, _envelope(row), own, Subject(_NAME, options), keyed=bool(key))

    def encoder(self, row: RowType, options: Mapping[str, Any]) -> _ChangeEncoder:
        """See Format.encoder. Raises OptionError without a subject."""
        return _ChangeEncoder(_envelope(row), *_own(row, options), Subject(_NAME, options))


class _ChangeDecoder(FramedDecoder):
    def __init__(
        self,
        row: RowType,
        type: DataType,
        own: Node,
        subject: Subject,
        writers: Mapping[int, Writer] | None = None,
        *,
        keyed: bool,
    ) -> None:
        super().__init__(row, type, own, subject, writers)
        self.keyed = keyed

    def again(self, writers: Mapping[int, Writer]) -> _ChangeDecoder:
        return _ChangeDecoder(self.row, self.type, self.own, self.subject, writers, keyed=self.keyed)

    def skipped(self, payload: str) -> str:
        """Debezium sends a null after each delete; Flink passes over zero bytes, too."""
        return f"{payload} IS NULL OR length({payload}) = 0"

    def good(self, value: str, names: Names) -> str:
        """What Flink's DebeziumAvroDeserializationSchema makes of it, and design.md 5.5 of an update without before."""
        op, before, after = f"{value}.op", f"{value}.before", f"{value}.after"
        full = self._rows(("-U", before), ("+U", after))
        alone = self._rows(("+U", after)) if self.keyed else self._failed(_REPLICA_IDENTITY, "UPDATE")
        return (
            f"CASE WHEN {value} IS NULL THEN {self.bad(literal(_NULL))} "
            f"WHEN {op} IN ('c', 'r', 'u') AND {after} IS NULL THEN {self.bad(self._without_after(op))} "
            f"WHEN {op} IN ('c', 'r') THEN {self._rows(('+I', after))} "
            f"WHEN {op} = 'u' THEN IF({before} IS NULL, {alone}, {full}) "
            f"WHEN {op} = 'd' THEN IF({before} IS NULL, {self._failed(_REPLICA_IDENTITY, 'DELETE')}, "
            f"{self._rows(('-D', before))}) "
            f"ELSE {self.bad(literal(_UNKNOWN))} END"
        )

    def _without_after(self, op: str) -> str:
        return f"IF({op} = 'u', {literal(_NO_AFTER.format('UPDATE'))}, {literal(_NO_AFTER.format('INSERT'))})"

    def _rows(self, *changes: tuple[str, str]) -> str:
        made = ", ".join(struct(kind=literal(kind), row=row) for kind, row in changes)
        return struct(rows=f"array({made})", error=null("STRING"))

    def _failed(self, words: str, kind: str) -> str:
        return self.bad(literal(words.format(kind)))


class _ChangeEncoder(FramedEncoder):
    def encode(self, row: Column) -> Column:
        """See Encoder.encode: an insert."""
        return self.encode_change(F.lit(None), row)

    def encode_change(self, before: Column, after: Column) -> Column:
        """See ChangeEncoder.encode_change."""
        row = self.type.fields[0].type.spark()
        pair = F.struct(before.cast(row).alias("before"), after.cast(row).alias("after"))
        names = Names()
        variable = names.fresh()
        op = f"CASE WHEN {variable}.before IS NULL THEN 'c' WHEN {variable}.after IS NULL THEN 'd' ELSE 'u' END"
        event = struct(before=f"{variable}.before", after=f"{variable}.after", op=op)
        framed = f"transform(array({event}), e -> {self.framed('e', names)})[0]"
        nothing = f"{variable}.before IS NULL AND {variable}.after IS NULL"
        return apply(pair, f"IF({nothing}, NULL, {framed})", variable)


def _envelope(row: RowType) -> RowType:
    return RowType((RowField("before", row), RowField("after", row), RowField("op", ScalarType("STRING"))))


def _own(row: RowType, options: Mapping[str, Any]) -> tuple[Node, str]:
    """The envelope's schema and its text: the one that is given, or the one that Flink derives, which is nullable."""
    check(_NAME, row)
    envelope, text = _envelope(row), options.get("schema")
    if text is not None:
        return given(str(text), envelope, f"{_NAME}.schema", _MISMATCH), str(text)
    derived = derive(envelope, legacy_timestamps=True, nullable=True)
    made = json.dumps(derived, ensure_ascii=False, separators=(",", ":"))
    return parse(made, "the table"), made
