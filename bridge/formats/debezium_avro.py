"""Flink's debezium-avro-confluent format: Debezium's change events in Confluent's framing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column

from bridge.format_rules.avro_given import envelope, event_schema
from bridge.format_rules.avro_schema import Node
from bridge.format_rules.change_documents import DEBEZIUM, before_image_type
from bridge.formats.avro.framing import FramedDecoder, FramedEncoder, Subject
from bridge.formats.avro.registry_client import WriterSchema
from bridge.formats.base import NOTHING, Options
from bridge.formats.cdc.common import as_row, unknown_operation
from bridge.formats.sql import Names, SqlChangeEncoder, let, literal, null, struct
from bridge.schema import RowType

_REPLICA_IDENTITY = (
    'The "before" field of {} message is null, if you are using Debezium Postgres Connector, please check the '
    "Postgres table has been set REPLICA IDENTITY to FULL level."
)
_NO_AFTER = 'The "after" field of {} message is null'
_NULL = "the envelope is null"


class DebeziumAvroFormat:
    """Reads and writes envelopes of `before`, `after` and `op`; other fields of Debezium's are ignored."""

    name = "debezium-avro-confluent"

    def decoder(
        self, row: RowType, options: Options, *, metadata: RowType = NOTHING, key: Sequence[str] = ()
    ) -> _ChangeDecoder:
        """See Format.decoder."""
        own, _ = event_schema(self.name, row, options)
        return _ChangeDecoder(
            row, before_image_type(row, key), own, Subject(self.name, options), keyed=bool(key)
        )

    def encoder(self, row: RowType, options: Options) -> _ChangeEncoder:
        """See Format.encoder. Raises OptionError without a subject."""
        return _ChangeEncoder(
            envelope(row, row), *event_schema(self.name, row, options), Subject(self.name, options)
        )


class _ChangeDecoder(FramedDecoder):
    def __init__(
        self,
        row: RowType,
        before_type: RowType,
        own: Node,
        subject: Subject,
        writers: Mapping[int, WriterSchema] | None = None,
        *,
        keyed: bool,
    ) -> None:
        super().__init__(row, envelope(row, before_type), own, subject, writers)
        self.before_type, self.keyed = before_type, keyed

    def with_schemas(self, writers: Mapping[int, WriterSchema]) -> _ChangeDecoder:
        return _ChangeDecoder(self.row, self.before_type, self.own, self.subject, writers, keyed=self.keyed)

    def skipped(self, payload: str) -> str:
        """Return the condition for null, which Debezium sends after each delete, and for zero bytes, as in Flink."""
        return f"{payload} IS NULL OR length({payload}) = 0"

    def good(self, value: str, names: Names) -> str:
        """See SqlDecoder.good, and Flink's DebeziumAvroDeserializationSchema; ADR 028, rule 5, for an update without
        `before`."""
        op, before, after = f"{value}.op", f"{value}.before", f"{value}.after"
        old = struct(kind=f"IF({op} = 'u', '-U', '-D')", row=as_row(self.row, self.before_type, before))
        new = struct(kind=f"IF({op} = 'u', '+U', '+I')", row=after)
        # A slice of one array takes a third of the code of three arrays.
        first = f"IF({before} IS NULL OR {op} IN ('c', 'r'), 2, 1)"
        rows = f"slice(array({old}, {new}), {first}, IF({op} = 'u' AND {before} IS NOT NULL, 2, 1))"
        good = struct(rows=rows, error=null("STRING"))
        return let(names, self._error(value), lambda e: f"IF({e} IS NULL, {good}, {self.bad(e)})")

    def _error(self, value: str) -> str:
        op, before, after = f"{value}.op", f"{value}.before", f"{value}.after"
        branches = [
            (f"{value} IS NULL", _NULL),
            (f"{after} IS NULL AND {op} IN ('c', 'r')", _NO_AFTER.format("INSERT")),
            (f"{after} IS NULL AND {op} = 'u'", _NO_AFTER.format("UPDATE")),
            (f"{before} IS NULL AND {op} = 'd'", _REPLICA_IDENTITY.format("DELETE")),
        ]
        if not self.keyed:
            branches.append((f"{before} IS NULL AND {op} = 'u'", _REPLICA_IDENTITY.format("UPDATE")))
        cases = " ".join(f"WHEN {condition} THEN {literal(words)}" for condition, words in branches)
        known = ", ".join(map(literal, DEBEZIUM.known))
        unknown = unknown_operation(DEBEZIUM, DEBEZIUM.field, op)
        return f"CASE {cases} WHEN coalesce({op}, '') NOT IN ({known}) THEN {unknown} END"


class _ChangeEncoder(FramedEncoder, SqlChangeEncoder):
    def typed(self, row: Column) -> Column:
        return row.cast(self.type.fields[0].type.spark())

    def change(self, before: str, after: str, names: Names) -> str:
        op = f"CASE WHEN {before} IS NULL THEN 'c' WHEN {after} IS NULL THEN 'd' ELSE 'u' END"
        event = struct(before=before, after=after, op=op)
        nothing = f"{before} IS NULL AND {after} IS NULL"
        return let(names, f"IF({nothing}, NULL, {event})", lambda e: self.framed(e, names))
