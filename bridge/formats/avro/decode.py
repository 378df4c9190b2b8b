"""Avro bytes to values: Spark's `from_avro`, so that a bad document differs from one of nulls.

In PERMISSIVE mode `from_avro` gives nulls for what it cannot read, and it ignores bytes that are left over. So eight
known bytes are appended to every document, and both are read as a record of the document and its end: the end is not
null exactly when the document was not read beyond its bytes, and it is the known one when all of them were read. The
end is read as a DOUBLE, which any eight bytes are, and which is cheaper than a `fixed` of eight bytes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from bridge.format_rules.avro_schema import Node
from bridge.formats.avro.conversion import converted_fast, converted_or_error
from bridge.formats.avro.schema_resolution import Reader
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.formats.sql import Names, let, literal, member
from bridge.schema import RowType

__all__ = ["bound_memory", "document", "record", "structure"]

_MALFORMED = "truncated, or not of the schema it should have"
_NOT_WHOLE = "truncated, longer than its schema says, or not of that schema"

_END = bytes.fromhex("ff00fec3b1d2a7f5")
_END_READ = f"{struct.unpack('<d', _END)[0]!r}D"
_FROM_AVRO = "from_avro({bytes}, {writer}, map('mode', 'PERMISSIVE', 'avroSchema', {reader}))"
_STRUCTURE = ("type", "name", "namespace", "fields", "symbols", "size", "items", "values")

_LIMITS = {"bytes": 2**26, "string": 2**26, "collectionItems": 10**7}


def bound_memory() -> None:
    """Make Avro refuse lengths that no Kafka record has, before it allocates the memory.

    Eight bad bytes can claim two gigabytes, and a task that runs out of memory ends its JVM. This sets limits in the
    driver (and so for all of a local Spark); conf/spark.conf sets them for executors. A limit that is set is kept.
    """
    jvm, gateway = SparkContext._jvm, SparkContext._gateway
    if jvm is None or gateway is None:
        return
    keys = {f"org.apache.avro.limits.{name}.maxLength": limit for name, limit in _LIMITS.items()}
    missing = [key for key in keys if jvm.java.lang.System.getProperty(key) is None]
    for key in missing:
        jvm.java.lang.System.setProperty(key, str(keys[key]))
    if not missing:
        return
    # Avro reads the properties once, and may have done so. Without this method it keeps the limits that it has read.
    with suppress(Py4JError, PySparkException):
        no_types = gateway.new_array(jvm.java.lang.Class, 0)
        reset = jvm.java.lang.Class.forName("org.apache.avro.SystemLimitException").getDeclaredMethod(
            "resetLimits", no_types
        )
        reset.setAccessible(True)
        reset.invoke(None, gateway.new_array(jvm.java.lang.Object, 0))


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
    """Return `good` of a document's value (a variable, in the table's types), or `bad` of the error (SQL).

    `payload` is SQL of bytes; the first `header` of them are skipped. Bytes behind the document are an error where
    `whole`. With `fast` the error of values that do not fit is NEEDS_FULL_DECODE.
    """
    frame = _FROM_AVRO.format(
        bytes=f"concat({payload}, X'{_END.hex()}')",
        writer=literal(_framed(structure(writer.raw), header)),
        reader=literal(_framed(reader.schema, 0)),
    )

    convert = converted_fast if fast else converted_or_error

    def outcome(read: str) -> str:
        complete = f"{read}.end = {_END_READ}" if whole else f"{read}.end IS NOT NULL"
        converted = let(names, f"{read}.value", lambda value: convert(value, reader, names, good, bad))
        return f"IF({complete}, {converted}, {bad(literal(_NOT_WHOLE if whole else _MALFORMED))})"

    return let(names, frame, outcome)


def record(
    payload: str,
    writer: Node,
    reader: Reader,
    names: Names,
    good: Callable[[str], str],
    bad: Callable[[str], str],
) -> str:
    """Return what `document` gives on the fast path for a record that bytes may follow.

    It does without the appended end, which costs as much as a short document. Since `from_avro` gives a row of nulls
    for what it cannot read, a row of nulls needs a full decode."""
    value = _FROM_AVRO.format(
        bytes=payload,
        writer=literal(json.dumps(structure(writer.raw), ensure_ascii=False)),
        reader=literal(json.dumps(reader.schema, ensure_ascii=False)),
    )
    assert isinstance(reader.type, RowType)
    fields = reader.type.fields

    def outcome(value: str) -> str:
        all_null = " AND ".join(f"{member(value, f.name)} IS NULL" for f in fields) or "TRUE"
        converted = converted_fast(value, reader, names, good, bad)
        return f"IF({all_null}, {bad(literal(NEEDS_FULL_DECODE))}, {converted})"

    return let(names, value, outcome)


def structure(raw: Any) -> Any:
    """Return a writer's schema without defaults, logical types and properties, which reading does not need.

    Registries have schemas whose defaults Avro's parser refuses.
    """
    if isinstance(raw, list):
        return [structure(part) for part in raw]
    if not isinstance(raw, dict):
        return raw
    made = {key: raw[key] for key in _STRUCTURE if key in raw}
    for key in ("type", "items", "values"):
        if key in made:
            made[key] = structure(made[key])
    if isinstance(made.get("fields"), list):
        made["fields"] = [{"name": f["name"], "type": structure(f["type"])} for f in made["fields"]]
    return made


def _framed(schema: Any, header: int) -> str:
    """Return the schema of the record of a header, a document and its end."""
    head = {"name": "header", "type": {"type": "fixed", "name": "bridge_header", "size": header}}
    fields = [
        *([head] if header else []),
        {"name": "value", "type": schema},
        {"name": "end", "type": "double"},
    ]
    return json.dumps({"type": "record", "name": "bridge_frame", "fields": fields}, ensure_ascii=False)
