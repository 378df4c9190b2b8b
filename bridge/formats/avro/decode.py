"""Avro bytes to values: Spark's `from_avro`, made to tell a bad document from an empty one.

In PERMISSIVE mode `from_avro` gives nulls for what it cannot read, and it does not mind bytes that are left over. So
every document is read with eight known bytes behind it, as a record of the document and its end: there are bytes
for the end exactly when the document was not read beyond its own, and they are the known ones when it was read whole.
The end is read as a DOUBLE, which any eight bytes are, and which costs less than eight bytes do.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from typing import Any

from pyspark import SparkContext

from bridge.formats.avro.resolve import Reader
from bridge.formats.avro.schema import Node
from bridge.formats.base import DOUBTFUL
from bridge.formats.sql import Names, let, literal, member, null
from bridge.schema import ArrayType, MapType, RowType

__all__ = ["NOT_UTF8", "bare", "bound_memory", "document"]

_MALFORMED = "truncated, or not of the schema it should have"
_NOT_WHOLE = "truncated, longer than its schema says, or not of that schema"
NOT_UTF8 = "not valid UTF-8"
_NULL = "the document is null where a record is due"

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
    glance: bool = False,
) -> str:
    """`good` of a document's value (a variable, in the table's types), or `bad` of the reason (SQL) there is none.

    `payload` is SQL of bytes; the first `header` of them are passed over. Bytes behind the document are an error where
    it is to be read `whole`. To a `glance` the reason is DOUBTFUL for values that do not fit: to tell which takes more
    code than the JVM compiles in one piece.
    """
    frame = _FROM_AVRO.format(
        bytes=f"concat({payload}, X'{_END.hex()}')",
        writer=literal(_framed(bare(writer.raw), header)),
        reader=literal(_framed(reader.schema, 0)),
    )

    def judged(found: str) -> str:
        fine = f"{found}.end = {_END_READ}" if whole else f"{found}.end IS NOT NULL"
        reason = literal(_NOT_WHOLE if whole else _MALFORMED)
        return f"IF({fine}, {let(names, f'{found}.value', valued)}, {bad(reason)})"

    def valued(value: str) -> str:
        made = converted(value, reader, names)
        return judge(value, value) if made == value else let(names, made, lambda m: judge(value, m))

    def judge(value: str, made: str) -> str:
        texts = [
            (sql, literal(f"field '{path}': {NOT_UTF8}")) for sql, path in _texts(value, reader, names, "")
        ]
        wrong = [(condition, literal(reason)) for condition, reason in misfits(value, made, reader, names)]
        if texts:
            # One look at all of them, and only then at each.
            which = _case([(_broken([sql]), reason) for sql, reason in texts])
            wrong.insert(0, (_broken([sql for sql, _ in texts]), which))
        if not wrong:
            return good(made)
        if glance:
            doubts = " OR ".join(condition for condition, _ in wrong)
            return f"IF(coalesce({doubts}, FALSE), {bad(literal(DOUBTFUL))}, {good(made)})"
        return let(names, _case(wrong), lambda error: f"IF({error} IS NULL, {good(made)}, {bad(error)})")

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
    fields = [
        *([head] if header else []),
        {"name": "value", "type": schema},
        {"name": "end", "type": "double"},
    ]
    return json.dumps({"type": "record", "name": "bridge_frame", "fields": fields}, ensure_ascii=False)


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


def misfits(value: str, made: str, reader: Reader, names: Names) -> Iterator[tuple[str, str]]:
    """(SQL condition, reason) for what can be wrong with a value and with what was `made` of it; null means false."""
    if reader.may_lack:
        yield f"{value} IS NULL", _NULL
    for condition, path, reason in _below(value, made, reader, names, ""):
        yield condition, f"field '{path}': {reason}"


def _below(value: str, made: str, reader: Reader, names: Names, path: str) -> Iterator[tuple[str, str, str]]:
    if reader.misfit is not None:
        yield reader.misfit(value, made), path, reader.reason
    if isinstance(reader.type, RowType):
        for f, part in zip(reader.type.fields, reader.parts, strict=True):
            inner, below = member(value, f.name), f"{path}.{f.name}" if path else f.name
            if part.may_lack:
                yield f"({value} IS NOT NULL AND {inner} IS NULL)", below, "null, though it is NOT NULL"
            yield from _below(inner, member(made, f.name), part, names, below)
    elif isinstance(reader.type, ArrayType | MapType):
        item, part = names.fresh(), reader.parts[0]
        items = value if isinstance(reader.type, ArrayType) else f"map_values({value})"
        if part.may_lack:
            yield f"exists({items}, {item} -> {item} IS NULL)", path, "an element is null, though NOT NULL"
        for condition, below, reason in _below(item, converted(item, part, names), part, names, path):
            yield f"exists({items}, {item} -> coalesce({condition}, FALSE))", below, reason


def _texts(
    value: str, reader: Reader, names: Names, path: str, *, listed: bool = False
) -> Iterator[tuple[str, str]]:
    """(SQL, field) for the texts of a value, or of the array of them when it is `listed`; SQL is a text or an array.

    Without lambda functions, which Spark does not compile, but for lists in lists.
    """
    if reader.is_text:
        yield value, path
    elif isinstance(reader.type, RowType):
        for f, part in zip(reader.type.fields, reader.parts, strict=True):
            below = f"{path}.{f.name}" if path else f.name
            yield from _texts(member(value, f.name), part, names, below, listed=listed)
    elif isinstance(reader.type, ArrayType):
        items = _flat(value, names, listed=listed)
        yield from _texts(items, reader.parts[0], names, path, listed=True)
    elif isinstance(reader.type, MapType):
        yield _flat(value, names, "map_keys", listed=listed), path
        items = _flat(value, names, "map_values", listed=listed)
        yield from _texts(items, reader.parts[0], names, path, listed=True)


def _flat(value: str, names: Names, of: str = "", *, listed: bool) -> str:
    """`of` a value, or of all the values in a list."""
    if not listed:
        return f"{of}({value})"
    item = names.fresh()
    return f"flatten(transform(filter({value}, {item} -> {item} IS NOT NULL), {item} -> {of}({item})))"


def _broken(texts: list[str]) -> str:
    """Whether any of texts and arrays of texts is not valid UTF-8."""
    # Between them is a byte that no longer sequence can begin or end with.
    return f"NOT is_valid_utf8(concat_ws('\\u0001', {', '.join(texts)}))"
