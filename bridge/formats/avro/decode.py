"""Decodes Avro bytes to the table's types by Spark's `from_avro`, or gives the reason why values do not fit.

In PERMISSIVE mode `from_avro` gives nulls for what it cannot read, and it ignores bytes that are left over. To tell a
bad document from one of nulls, eight known bytes are appended to every document, and both are read as a record of the
document and its end: the end is not null exactly when the document was not read beyond its bytes, and it is the known
one when all of them were read. The end is read as a DOUBLE, which any eight bytes are, and which is cheaper than a
`fixed` of eight bytes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from bridge.format_rules.avro_schema import Node
from bridge.formats.avro.schema_resolution import Reader
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.formats.sql import Names, let, literal, member, null
from bridge.schema import ArrayType, MapType, RowType

NOT_UTF8 = "not valid UTF-8"
_NULL = "the document is null where a record is due"

_Made = Callable[[str], str]


def converted_or_error(value: str, reader: Reader, names: Names, good: _Made, bad: _Made) -> str:
    """Return `good` of a value (a variable) in the table's types, or `bad` of the reason (SQL) why it does not fit."""
    made = _converted(value, reader, names)

    def checked(made: str) -> str:
        texts = [
            (sql, literal(f"field '{path}': {NOT_UTF8}")) for sql, path, _ in _texts(value, reader, names, "")
        ]
        wrong = [(condition, literal(reason)) for condition, reason in _misfits(value, made, reader, names)]
        if texts:
            # All texts are checked at once, and one by one only where one is bad.
            which = _case([(_broken([sql]), reason) for sql, reason in texts])
            wrong.insert(0, (_broken([sql for sql, _ in texts]), which))
        if not wrong:
            return good(made)
        return let(names, _case(wrong), lambda error: f"IF({error} IS NULL, {good(made)}, {bad(error)})")

    return checked(value) if made == value else let(names, made, checked)


def converted_fast(value: str, reader: Reader, names: Names, good: _Made, bad: _Made) -> str:
    """Return what `converted_or_error` gives for a record that is not null, in less code than the JVM compiles at once.

    The error of whatever does not fit is NEEDS_FULL_DECODE. `good` gets SQL whose fields are cheap to read."""
    assert isinstance(reader.type, RowType)
    fields = list(zip(reader.type.fields, reader.parts, strict=True))

    def convert(made: list[str]) -> str:
        if len(made) == len(fields):
            return checked(made)
        field, part = fields[len(made)]
        plain = member(value, field.name)
        if not part.converts:
            return convert([*made, plain])
        return let(names, _converted(plain, part, names), lambda m: convert([*made, m]))

    def checked(made: list[str]) -> str:
        pairs = ", ".join(f"{literal(f.name)}, {m}" for (f, _), m in zip(fields, made, strict=True))
        row = f"named_struct({pairs})" if reader.converts else value
        misfits = [
            _broken([sql]) if listed else f"NOT is_valid_utf8({sql})"
            for sql, _, listed in _texts(value, reader, names, "")
        ]
        for (field, part), m in zip(fields, made, strict=True):
            plain = member(value, field.name)
            misfits += [f"{plain} IS NULL"] if part.may_lack else []
            misfits += [condition for condition, _, _ in _below(plain, m, part, names, "")]
        if not misfits:
            return good(row)
        return f"IF(coalesce({' OR '.join(misfits)}, FALSE), {bad(literal(NEEDS_FULL_DECODE))}, {good(row)})"

    return convert([])


def _case(branches: list[tuple[str, str]]) -> str:
    return f"CASE {' '.join(f'WHEN {condition} THEN {result}' for condition, result in branches)} END"


def _converted(value: str, reader: Reader, names: Names) -> str:
    """Return `value` in the table's types; `value` itself where Spark's are the table's."""
    if not reader.converts:
        return value
    if reader.convert is not None:
        return reader.convert(value)
    if isinstance(reader.type, RowType):
        pairs = [
            f"{literal(f.name)}, {_converted(member(value, f.name), part, names)}"
            for f, part in zip(reader.type.fields, reader.parts, strict=True)
        ]
        return f"IF({value} IS NULL, {null(reader.type.spark())}, named_struct({', '.join(pairs)}))"
    item = names.fresh()
    made = _converted(item, reader.parts[0], names)
    if isinstance(reader.type, ArrayType):
        return f"transform({value}, {item} -> {made})"
    return f"transform_values({value}, ({names.fresh()}, {item}) -> {made})"


def _misfits(value: str, made: str, reader: Reader, names: Names) -> Iterator[tuple[str, str]]:
    """Yield (SQL condition, reason) for every misfit of a `value` that was converted to `made`; null means false."""
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
        for condition, below, reason in _below(item, _converted(item, part, names), part, names, path):
            yield f"exists({items}, {item} -> coalesce({condition}, FALSE))", below, reason


def _texts(
    value: str, reader: Reader, names: Names, path: str, *, listed: bool = False
) -> Iterator[tuple[str, str, bool]]:
    """Yield (SQL, field, whether SQL is an array) for the texts of a value, or of a list of values if `listed`.

    Lambda functions, which Spark does not compile, occur only for lists in lists.
    """
    if reader.is_text:
        yield value, path, listed
    elif isinstance(reader.type, RowType):
        for f, part in zip(reader.type.fields, reader.parts, strict=True):
            below = f"{path}.{f.name}" if path else f.name
            yield from _texts(member(value, f.name), part, names, below, listed=listed)
    elif isinstance(reader.type, ArrayType):
        items = _flat(value, names, listed=listed)
        yield from _texts(items, reader.parts[0], names, path, listed=True)
    elif isinstance(reader.type, MapType):
        yield _flat(value, names, "map_keys", listed=listed), path, True
        items = _flat(value, names, "map_values", listed=listed)
        yield from _texts(items, reader.parts[0], names, path, listed=True)


def _flat(value: str, names: Names, of: str = "", *, listed: bool) -> str:
    """Return the function `of` applied to a value, or to all values of a list."""
    if not listed:
        return f"{of}({value})"
    item = names.fresh()
    return f"flatten(transform(filter({value}, {item} -> {item} IS NOT NULL), {item} -> {of}({item})))"


def _broken(texts: list[str]) -> str:
    """Return the condition that any of the texts and arrays of texts is not valid UTF-8."""
    # The separator is a byte that is in no sequence of several bytes.
    return f"NOT is_valid_utf8(concat_ws('\\u0001', {', '.join(texts)}))"


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
