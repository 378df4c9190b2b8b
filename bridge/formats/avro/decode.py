"""Avro bytes to values: Spark's `from_avro`, made to tell a bad document from an empty one.

In PERMISSIVE mode `from_avro` gives nulls for what it cannot read, and it does not mind bytes that are left over. So
every document is read with eight known bytes behind it, as a record of the document and its end: there are bytes
for the end exactly when the document was not read beyond its own, and they are the known ones when it was read whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from pyspark import SparkContext

from bridge.formats.avro.resolve import Reader
from bridge.formats.avro.schema import Node
from bridge.formats.sql import Names, let, literal, member, null
from bridge.schema import ArrayType, MapType, RowType

__all__ = ["NOT_UTF8", "bare", "bound_memory", "document"]

_MALFORMED = "truncated, or not of the schema it should have"
_NOT_WHOLE = "truncated, longer than its schema says, or not of that schema"
NOT_UTF8 = "not valid UTF-8"
_NULL = "the document is null where a record is due"

_END = bytes.fromhex("ff00fec3b1d2a7f5")
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
) -> str:
    """`good` of a document's value (a variable, in the table's types), or `bad` of the reason (SQL) there is none.

    `payload` is SQL of bytes that are not null; the first `header` of them are passed over. Bytes behind the
    document are an error where it is to be read `whole`.
    """
    frame = _FROM_AVRO.format(
        bytes=f"concat({payload}, {_hex(_END)})",
        writer=literal(_framed(bare(writer.raw), header)),
        reader=literal(_framed(reader.schema, 0)),
    )

    def judged(found: str) -> str:
        fine = f"{found}.end = {_hex(_END)}" if whole else f"{found}.end IS NOT NULL"
        reason = literal(_NOT_WHOLE if whole else _MALFORMED)
        return f"IF({fine}, {let(names, f'{found}.value', valued)}, {bad(reason)})"

    def valued(value: str) -> str:
        made = converted(value, reader, names)
        fine = good(value) if made == value else let(names, made, good)
        wrong = [(condition, literal(reason)) for condition, reason in misfits(value, reader, names)]
        texts = list(_texts(value, reader, ""))
        if texts:
            # One look at all of them; between them is a byte that no longer sequence can begin or end with.
            joined = f"concat_ws('\\u0001', {', '.join(text for text, _ in texts)})"
            each = [(f"NOT is_valid_utf8({text})", literal(reason)) for text, reason in texts]
            wrong.insert(0, (f"NOT is_valid_utf8({joined})", _case(each)))
        if not wrong:
            return fine
        return let(names, _case(wrong), lambda error: f"IF({error} IS NULL, {fine}, {bad(error)})")

    return let(names, frame, judged)


def _case(branches: list[tuple[str, str]]) -> str:
    return f"CASE {' '.join(f'WHEN {condition} THEN {result}' for condition, result in branches)} END"


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
    end = {"name": "end", "type": {"type": "fixed", "name": "bridge_end", "size": len(_END)}}
    fields = [*([head] if header else []), {"name": "value", "type": schema}, end]
    return json.dumps({"type": "record", "name": "bridge_frame", "fields": fields}, ensure_ascii=False)


def _hex(data: bytes) -> str:
    return f"X'{data.hex()}'"


def converted(value: str, reader: Reader, names: Names) -> str:
    """`value` in the table's types; `value` itself where Spark's are the table's."""
    if not reader.converts:
        return value
    if reader.convert is not None:
        return reader.convert(value)
    if isinstance(reader.type, RowType):
        pairs = [
            f"{literal(f.name)}, {converted(member(value, f.name), part, names)}"
            for f, part in zip(reader.type.fields, reader.parts, strict=True)
        ]
        return f"IF({value} IS NULL, {null(reader.type.spark())}, named_struct({', '.join(pairs)}))"
    item = names.fresh()
    made = converted(item, reader.parts[0], names)
    if isinstance(reader.type, ArrayType):
        return f"transform({value}, {item} -> {made})"
    return f"transform_values({value}, ({names.fresh()}, {item}) -> {made})"


def _texts(value: str, reader: Reader, path: str) -> Iterator[tuple[str, str]]:
    """(SQL, reason) for the strings that `value` has, those in arrays and maps left to `misfits`."""
    if reader.is_text:
        yield value, f"field '{path}': {NOT_UTF8}"
    if isinstance(reader.type, RowType):
        for f, part in zip(reader.type.fields, reader.parts, strict=True):
            yield from _texts(member(value, f.name), part, f"{path}.{f.name}" if path else f.name)


def misfits(value: str, reader: Reader, names: Names) -> Iterator[tuple[str, str]]:
    """(SQL condition, reason) for what else can be wrong with a value; a null condition is false."""
    if reader.may_lack:
        yield f"{value} IS NULL", _NULL
    for condition, path, reason in _below(value, reader, names, ""):
        yield condition, f"field '{path}': {reason}"


def _below(
    value: str, reader: Reader, names: Names, path: str, *, inside: bool = False
) -> Iterator[tuple[str, str, str]]:
    if reader.misfit is not None:
        yield reader.misfit(value), path, reader.reason
    if isinstance(reader.type, RowType):
        for f, part in zip(reader.type.fields, reader.parts, strict=True):
            inner, below = member(value, f.name), f"{path}.{f.name}" if path else f.name
            if part.may_lack:
                yield f"({value} IS NOT NULL AND {inner} IS NULL)", below, "null, though it is NOT NULL"
            if inside and part.is_text:
                yield f"NOT is_valid_utf8({inner})", below, NOT_UTF8
            yield from _below(inner, part, names, below, inside=inside)
    elif isinstance(reader.type, ArrayType | MapType):
        item, part = names.fresh(), reader.parts[0]
        items = value if isinstance(reader.type, ArrayType) else f"map_values({value})"
        if isinstance(reader.type, MapType):
            key = names.fresh()
            yield f"exists(map_keys({value}), {key} -> NOT is_valid_utf8({key}))", path, NOT_UTF8
        if part.may_lack:
            yield f"exists({items}, {item} -> {item} IS NULL)", path, "an element is null, though NOT NULL"
        if part.is_text:
            yield f"exists({items}, {item} -> NOT is_valid_utf8({item}))", path, NOT_UTF8
        for condition, below, reason in _below(item, part, names, path, inside=True):
            yield f"exists({items}, {item} -> coalesce({condition}, FALSE))", below, reason
