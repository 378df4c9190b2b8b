"""Converts Avro's values to the table's types, or gives the reason why they do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bridge.formats.avro.schema_resolution import Reader
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.formats.sql import Names, let, literal, member, null
from bridge.schema import ArrayType, MapType, RowType

__all__ = ["converted_fast", "converted_or_error"]

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
