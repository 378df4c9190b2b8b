"""Avro bytes to values: Spark's `from_avro`, made to tell a bad document from an empty one.

In PERMISSIVE mode `from_avro` gives nulls for what it cannot read, and it does not mind bytes that are left over. So
every document is read with eight known bytes behind it, as a record of the document and its end: there are bytes
for the end exactly when the document was not read beyond its own, and they are the known ones when it was read whole.
The end is read as a DOUBLE, which any eight bytes are, and which costs less than eight bytes do.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

from pyspark import SparkContext

from bridge.format_rules.avro_schema import Node
from bridge.formats.avro.conversion import converted_fast, converted_or_error
from bridge.formats.avro.schema_resolution import Reader
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.formats.sql import Names, let, literal, member
from bridge.schema import RowType

__all__ = ["bare", "bound_memory", "document", "record"]

_MALFORMED = "truncated, or not of the schema it should have"
_NOT_WHOLE = "truncated, longer than its schema says, or not of that schema"

_END = bytes.fromhex("ff00fec3b1d2a7f5")
_END_READ = f"{struct.unpack('<d', _END)[0]!r}D"
_FROM_AVRO = "from_avro({bytes}, {writer}, map('mode', 'PERMISSIVE', 'avroSchema', {reader}))"
_KEPT = ("type", "name", "namespace", "fields", "symbols", "size", "items", "values")

_LIMITS = {"bytes": 2**26, "string": 2**26, "collectionItems": 10**7}


def bound_memory() -> None:
    """Have Avro refuse lengths that no Kafka record has, before it asks the JVM for the memory.

    Eight bad bytes can claim two gigabytes, and a task that runs out of memory ends its JVM. This reaches the
    driver (and so all of a local Spark); conf/spark.conf does it for executors. A limit that is set already stays.
    """
    jvm, gateway = SparkContext._jvm, SparkContext._gateway
    if jvm is None or gateway is None:
        return
    keys = {f"org.apache.avro.limits.{name}.maxLength": limit for name, limit in _LIMITS.items()}
    missing = [key for key in keys if jvm.java.lang.System.getProperty(key) is None]
    for key in missing:
        jvm.java.lang.System.setProperty(key, str(keys[key]))
    if missing:  # the properties are read once, maybe already
        nothing = gateway.new_array(jvm.java.lang.Class, 0)
        again = jvm.java.lang.Class.forName("org.apache.avro.SystemLimitException").getDeclaredMethod(
            "resetLimits", nothing
        )
        again.setAccessible(True)
        again.invoke(None, gateway.new_array(jvm.java.lang.Object, 0))


def document(
    payload: str,
    writer: Node,
    reader: Reader,
    names: Names,
    good: Callable[[str], str],
    bad: Callable[[str], str],
    *,
    header: int = 0,
    whole: bool = True,
    fast: bool = False,
) -> str:
    """`good` of a document's value (a variable, in the table's types), or `bad` of the reason (SQL) there is none.

    `payload` is SQL of bytes; the first `header` of them are passed over. Bytes behind the document are an error where
    it is to be read `whole`. To a `fast` the reason is DOUBTFUL for values that do not fit.
    """
    frame = _FROM_AVRO.format(
        bytes=f"concat({payload}, X'{_END.hex()}')",
        writer=literal(_framed(bare(writer.raw), header)),
        reader=literal(_framed(reader.schema, 0)),
    )

    judge = converted_fast if fast else converted_or_error

    def read(found: str) -> str:
        fine = f"{found}.end = {_END_READ}" if whole else f"{found}.end IS NOT NULL"
        outcome = let(names, f"{found}.value", lambda value: judge(value, reader, names, good, bad))
        return f"IF({fine}, {outcome}, {bad(literal(_NOT_WHOLE if whole else _MALFORMED))})"

    return let(names, frame, read)


def record(
    payload: str,
    writer: Node,
    reader: Reader,
    names: Names,
    good: Callable[[str], str],
    bad: Callable[[str], str],
) -> str:
    """As `document` at a glance, of a record that bytes may follow, without the end that costs as much as a short
    document. What cannot be read is a row of nulls to `from_avro`, so a row of nulls is DOUBTFUL."""
    value = _FROM_AVRO.format(
        bytes=payload,
        writer=literal(json.dumps(bare(writer.raw), ensure_ascii=False)),
        reader=literal(json.dumps(reader.schema, ensure_ascii=False)),
    )
    assert isinstance(reader.type, RowType)
    fields = reader.type.fields

    def read(value: str) -> str:
        nothing = " AND ".join(f"{member(value, f.name)} IS NULL" for f in fields) or "TRUE"
        return f"IF({nothing}, {bad(literal(NEEDS_FULL_DECODE))}, {converted_fast(value, reader, names, good, bad)})"

    return let(names, value, read)


def bare(raw: Any) -> Any:
    """A writer's schema without what its documents can be read without: defaults, logical types, properties.

    Registries hold schemas whose defaults Avro's parser refuses; none of that matters to their documents.
    """
    if isinstance(raw, list):
        return [bare(part) for part in raw]
    if not isinstance(raw, dict):
        return raw
    made = {key: raw[key] for key in _KEPT if key in raw}
    for key in ("type", "items", "values"):
        if key in made:
            made[key] = bare(made[key])
    if isinstance(made.get("fields"), list):
        made["fields"] = [{"name": f["name"], "type": bare(f["type"])} for f in made["fields"]]
    return made


def _framed(schema: Any, header: int) -> str:
    """The schema of the record that a document and its end make."""
    head = {"name": "header", "type": {"type": "fixed", "name": "bridge_header", "size": header}}
    fields = [
        *([head] if header else []),
        {"name": "value", "type": schema},
        {"name": "end", "type": "double"},
    ]
    return json.dumps({"type": "record", "name": "bridge_frame", "fields": fields}, ensure_ascii=False)
