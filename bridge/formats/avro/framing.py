"""Confluent's framing: a zero byte, the id of the writer's schema in four bytes, the document."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bridge.config.registry_settings import registry_settings
from bridge.errors import DefinitionError, OptionError
from bridge.format_rules.avro_given import difference
from bridge.format_rules.avro_schema import Node, parse
from bridge.formats.avro.decode import bound_memory, document, record
from bridge.formats.avro.encode import avro_bytes
from bridge.formats.avro.registry_client import RegistryClient, WriterSchema, registry_client
from bridge.formats.avro.schema_resolution import Incompatible, resolve
from bridge.formats.base import NEEDS_FULL_DECODE, PAYLOAD
from bridge.formats.sql import Names, SqlDecoder, literal, null
from bridge.schema import DataType, RowType

_HEADER = 5
# Avro numbers so many branches of a union in one byte.
_ONE_BYTE = 64
_SHORT = "shorter than Confluent's framing, which is 5 bytes and the document"
_MAGIC = "not in Confluent's framing: the first byte is not 0"
_UNKNOWN = ": the schema registry has none under this id (another registry's id, or 'url' is wrong, or it was deleted)"


@dataclass(frozen=True)
class Subject:
    """A format's subject in a schema registry, and the options by which the registry is reached."""

    format: str
    options: Mapping[str, Any]

    @property
    def name(self) -> str | None:
        """Return the subject's name; None with several topics, where each id is looked up on its own."""
        name = self.options.get("subject")
        return None if name is None else str(name)

    def connect(self) -> RegistryClient:
        """Return a client of the registry, not connected yet. Raises OptionError for options that it cannot follow."""
        return registry_client(registry_settings(self.options, f"{self.format}."))


class FramedDecoder(SqlDecoder):
    """Reads documents of any number of writers' schemas.

    A subclass gives the `type` of a document, and makes rows of its value. `own` is the table's schema; `writers` are
    the schemas to expect by id, None for those that the registry has under the subject, which `decode` and
    `decode_fast` then look up: they raise KafkaError when the registry cannot be reached. An unknown id is an error of
    its documents. On the fast path these, and values that do not fit, need a full decode.
    """

    def __init__(
        self,
        row: RowType,
        type: DataType,
        own: Node,
        subject: Subject,
        writers: Mapping[int, WriterSchema] | None = None,
        key: Sequence[str] = (),
    ) -> None:
        self.row, self.type, self.own, self.subject, self.writers = row, type, own, subject, writers
        self.key = tuple(key)
        """Fields of which a writer's schema must have one: without, all documents would have one key."""

    @abstractmethod
    def with_schemas(self, writers: Mapping[int, WriterSchema]) -> FramedDecoder:
        """Return the same decoder for documents of these schemas only."""

    def skipped(self, payload: str) -> str:
        """Return the SQL condition for a payload that is no document."""
        return f"{payload} IS NULL"

    def document(self, payload: str, names: Names, *, fast: bool) -> str:
        bound_memory()
        writers = self.writers
        if writers is None:
            writers = self.subject.connect().schemas_of_subject(self.subject.name)
        head = f"conv(hex(substr({payload}, 2, 4)), 16, 10)"
        unknown = f"concat('unknown schema id ', {head}, {literal(_UNKNOWN)})"
        known = [
            f"WHEN {_is_of(payload, id)} THEN {self._one(id, writer, payload, names, fast=fast)}"
            for id, writer in sorted(writers.items())
        ]
        return (
            f"CASE WHEN {self.skipped(payload)} THEN {self.bad(null('STRING'))} {' '.join(known)} "
            f"WHEN length({payload}) < {_HEADER} THEN {self.bad(literal(_SHORT))} "
            f"WHEN NOT startswith({payload}, X'00') THEN {self.bad(literal(_MAGIC))} "
            f"ELSE {self.bad(literal(NEEDS_FULL_DECODE) if fast else unknown)} END"
        )

    def for_payloads(self, payloads: DataFrame) -> FramedDecoder:
        """See Decoder.for_payloads: only ids reach the driver, and each is looked up once in a process."""
        payload = F.col(PAYLOAD)
        framed = payload.startswith(F.lit(b"\x00")) & (F.length(payload) >= _HEADER)
        ids = payloads.where(framed).select(F.substring(payload, 2, 4).alias("id")).distinct().collect()
        numbers = [int.from_bytes(row["id"], "big") for row in ids]
        return self.with_schemas(self.subject.connect().schemas_by_id(numbers, self.subject.name))

    def _one(self, id: int, writer: WriterSchema, payload: str, names: Names, *, fast: bool) -> str:
        """Return the decoded column for documents of one schema."""
        problem = writer.problem
        if not problem:
            try:
                schema = parse(writer.text, "it")

                def good(value: str) -> str:
                    return self.good(value, names)

                self._check_key(schema)
                reader = resolve(self.type, self.own, schema)
                plain = _record(id, schema) if fast else None
                if plain is not None:
                    start, only = plain
                    own = f"IF(startswith({payload}, X'{start.hex()}'), substr({payload}, {len(start) + 1}), NULL)"
                    reader = resolve(self.type.required(), self.own, only)
                    return record(own, only, reader, names, good, self.bad)
                # Bytes behind a document whose schema is known by its id are ignored, as by Confluent's reader.
                own = f"IF({_is_of(payload, id)}, {payload}, NULL)"
                return document(own, schema, reader, names, good, self.bad, header=_HEADER, whole=False)
            except (DefinitionError, Incompatible) as error:
                problem = f"does not fit the table: {error}"
        return self.bad(literal(f"schema id {id} {problem}"))

    def _check_key(self, writer: Node) -> None:
        records = [branch for branch in writer.branches if branch.kind == "record"]
        if self.key and records and not {f.name for r in records for f in r.fields} & set(self.key):
            listed = ", ".join(f"'{name}'" for name in self.key)
            raise Incompatible(
                f"it has none of the key's fields {listed} (fields are matched by their exact names)"
            )


class FramedEncoder:
    """Writes documents of `type` under the subject's schema, and registers the schema before the first one."""

    def __init__(self, type: RowType, own: Node, text: str, subject: Subject) -> None:
        self.type, self.own, self.text, self.subject = type, own, text, subject
        if subject.name is None:
            raise OptionError(
                f"Option '{subject.format}.subject' is required for serialization (with one topic it is the "
                "topic with -key or -value)"
            )

    def framed(self, value: str, names: Names) -> str:
        """Return the bytes of `value`, a column or variable; null for null. Raises what Registry.register raises."""
        client, own = self.subject.connect(), self.own
        id = client.register(str(self.subject.name), self.text)
        if client.settings.use_latest:
            own = self._latest(client, id)
        return (
            f"concat(X'{_head(id).hex()}', {avro_bytes(value, self.type, own, names, self.subject.format)})"
        )

    def _latest(self, client: RegistryClient, id: int) -> Node:
        writer = client.schemas_by_id([id], self.subject.name)[id]
        problem = writer.problem
        if not problem:
            node = parse(writer.text, f"schema id {id}")
            mismatch = difference(self.type, node, "")
            if mismatch is None:
                return node
            problem = f"does not match the table schema: {mismatch}"
        raise OptionError(f"'properties.use.latest.version': the schema of id {id} {problem}")


def _record(id: int, schema: Node) -> tuple[bytes, Node] | None:
    """Return the only record of a schema and the bytes before it; None where the schema has several or none."""
    records = [(at, branch) for at, branch in enumerate(schema.branches) if branch.kind == "record"]
    if len(records) != 1 or records[0][0] >= _ONE_BYTE:
        return None
    at, only = records[0]
    return _head(id) + (bytes([2 * at]) if schema.kind == "union" else b""), only


def _is_of(payload: str, id: int) -> str:
    """Return the SQL condition for a payload with this id in its framing."""
    return f"startswith({payload}, X'{_head(id).hex()}')"


def _head(id: int) -> bytes:
    return b"\0" + id.to_bytes(4, "big")
