r"""json's full decode: Flink's own conversions, token by token (flink-json, JsonParserToRowDataConverters).

Spark gives values, not tokens, and reformats numbers that it reads as STRING. So the text is *marked* first: every
string gets \u0001 in front, null becomes the string \u0002, and a bare number becomes a string of its own digits. A
marked document is read with scalars of STRING only, and the first character of each distinguishes the tokens:

    \u0001...  a string     \u0002  null     -0123...  a number as written     true false     { [  a container

The unmarked text is read, too: there Spark's compact form of a container is Flink's text for STRING.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from bridge.format_rules.json_options import JsonOptions
from bridge.formats.json.fast_path import FROM_JSON, corrupt_name
from bridge.formats.json.foreign_documents import foreign_or_null
from bridge.formats.json.scalars import NULL, STRING, Scalar
from bridge.formats.sql import Names, first, let, literal, member, null, struct
from bridge.schema import ArrayType, DataType, MapType, RowField, RowType, ScalarType, quote

__all__ = ["EMPTY", "MALFORMED", "NOT_AN_OBJECT", "FullDecode"]

MALFORMED = "malformed JSON, or nested more than 1000 deep"
EMPTY = "empty document"
NOT_AN_OBJECT = "neither a JSON object nor an array of objects"

_TOP = "''"
_FIELD = "field '"
_NO_ERROR = null("STRING")
_BACKSLASH, _QUOTE = "\\", '"'
_CORRUPT = "'__corrupt'"
_NULL_STRING = "'\"\\u0002\"'"
_BLANK, _DOCUMENT, _OBJECT = r"^\s*$", r"^\s*[{\[]", r"^\s*\{"


class FullDecode:
    """SQL of documents of one shape. Every node is a struct of `v` (value) and `e` (error)."""

    def __init__(
        self, row: RowType, options: JsonOptions, names: Names, key: Sequence[str] | None = None
    ) -> None:
        self.row, self.options, self.names = row, options, names
        self._key = key
        """See foreign_documents; None where `row` is no document of its own."""
        self.scalar = Scalar(options, names)

    def rows(self, text: str) -> str:
        """Return struct<v: array<row>, e: string> of a document; `text` is not null and valid UTF-8."""

        def classify(t: str) -> str:
            return (
                f"CASE WHEN {t} RLIKE {literal(_BLANK)} THEN {self._failed(EMPTY)} "
                f"WHEN {t} RLIKE {literal(_DOCUMENT)} THEN {self._documents(t)} "
                f"ELSE {self._failed(NOT_AN_OBJECT)} END"
            )

        # Jackson skips a byte order mark in bytes, not in text.
        unmarked = f"IF(startswith({text}, '\\ufeff'), substr({text}, 2), {text})"
        return let(self.names, unmarked, classify)

    def _documents(self, text: str) -> str:
        def objects(of: str) -> str:
            items = f"from_json({of}, 'ARRAY<STRING>', {FROM_JSON.format(corrupt=_CORRUPT)})"
            return f"IF({text} RLIKE {literal(_OBJECT)}, array({of}), {items})"

        def each(marked: str, plain: str) -> str:
            item, i = self.names.fresh(), self.names.fresh()
            nodes = self._object(item, f"get({plain}, {i})", self.row, _TOP)
            is_object = f"{item} RLIKE {literal(_OBJECT)}"
            return (
                f"CASE WHEN {marked} IS NULL OR {plain} IS NULL THEN {self._failed(MALFORMED)} "
                f"WHEN exists({marked}, {item} -> NOT {is_object}) THEN {self._failed(NOT_AN_OBJECT)} "
                f"ELSE {self._all(f'transform({marked}, ({item}, {i}) -> {nodes})')} END"
            )

        def plain(m: str) -> str:
            return let(self.names, objects(text), lambda p: each(m, p))

        return let(self.names, _marked(text), lambda t: let(self.names, objects(t), plain))

    def _failed(self, reason: str) -> str:
        return struct(v=null(f"ARRAY<{self.row.spark()}>"), e=literal(reason))

    def _all(self, nodes: str) -> str:
        def gather(n: str) -> str:
            return let(
                self.names,
                first(f"transform({n}, node -> node.e)"),
                lambda e: struct(
                    v=f"IF({e} IS NULL, transform({n}, node -> node.v), NULL)",
                    e=e,
                ),
            )

        return let(self.names, nodes, gather)

    def _both(self, marked: str, plain: str, type: str, body: Callable[[str, str], str]) -> str:
        """Return `body` of the marked and the plain text, both read as `type`."""

        def read(text: str) -> str:
            return f"from_json({text}, {literal(type)}, {FROM_JSON.format(corrupt=_CORRUPT)})"

        return let(self.names, read(marked), lambda m: let(self.names, read(plain), lambda p: body(m, p)))

    def _object(self, marked: str, plain: str, row: RowType, path: str) -> str:
        """Return the node of a JSON object."""
        corrupt = corrupt_name(row)

        def read(text: str, mark: str) -> str:
            # A marked key never equals the name of the corrupt record.
            fields = [f"{quote(mark + n)}: STRING" for n in row.names] + [f"{quote(corrupt)}: STRING"]
            options = FROM_JSON.format(corrupt=literal(corrupt))
            return f"from_json({text}, {literal('STRUCT<' + ','.join(fields) + '>')}, {options})"

        def broken(parsed: str) -> str:
            return f"{parsed} IS NULL OR {member(parsed, corrupt)} IS NOT NULL"

        def body(m: str, p: str) -> str:
            failed = struct(v=null(row.spark()), e=literal(MALFORMED))
            fields = self._fields(m, p, row, path, plain)
            return f"IF({broken(m)} OR {broken(p)}, {failed}, {fields})"

        return let(
            self.names,
            read(marked, chr(1)),
            lambda m: let(self.names, read(plain, ""), lambda p: body(m, p)),
        )

    def _fields(self, marked: str, plain: str, row: RowType, path: str, text: str) -> str:
        """Return the node of a row, an object with this `text`.

        Fields of one type share an expression, so that planning many fields stays fast."""
        groups: dict[DataType, list[RowField]] = {}
        for f in row.fields:
            groups.setdefault(replace(f.type, nullable=True), []).append(f)
        places = {f.name: (g, i) for g, fields in enumerate(groups.values()) for i, f in enumerate(fields)}

        def nodes(fields: list[RowField]) -> str:
            tokens = [
                struct(m=member(marked, chr(1) + f.name), p=member(plain, f.name), at=literal(f.name))
                for f in fields
            ]
            item = self.names.fresh()
            at = f"concat({path}, {item}.at)"
            node = self._node(f"{item}.m", f"{item}.p", fields[0].type, at, field=True)
            return f"transform(array({', '.join(tokens)}), {item} -> {node})"

        def assemble(n: str) -> str:
            pairs = [f"{literal(f.name)}, {n}.g{g}[{i}].v" for f in row.fields for g, i in [places[f.name]]]
            errors = [first(f"transform({n}.g{g}, node -> node.e)") for g in range(len(groups))]
            if path == _TOP and self._key is not None:
                left_out = self.options.ignore_null_fields
                errors.insert(0, foreign_or_null(marked, text, row, self._key, nulls_left_out=left_out))
            return struct(
                v=f"named_struct({', '.join(pairs)})", e=f"coalesce({', '.join([*errors, _NO_ERROR])})"
            )

        return let(
            self.names,
            struct(**{f"g{g}": nodes(fields) for g, fields in enumerate(groups.values())}),
            assemble,
        )

    def _node(self, marked: str, plain: str, type: DataType, path: str, *, field: bool = False) -> str:
        """Return the node of any token. `marked` is null for a missing field."""
        missing = (
            self._error(path, "is missing") if self.options.fail_on_missing_field and field else _NO_ERROR
        )
        wrong = struct(v=null(type.spark()), e=self._wrong(type, path))

        def known(m: str) -> str:
            if isinstance(type, ScalarType):
                body = self._scalar(m, plain, type, path)
            elif isinstance(type, RowType):
                inner = self._object(m, plain, type, f"concat({path}, '.')")
                body = f"IF(startswith({m}, '{{'), {inner}, {wrong})"
            elif isinstance(type, ArrayType):
                body = f"IF(startswith({m}, '['), {self._array(m, plain, type, path)}, {wrong})"
            else:
                assert isinstance(type, MapType)
                body = f"IF(startswith({m}, '{{'), {self._map(m, plain, type, path)}, {wrong})"
            absent = struct(v=null(type.spark()), e=f"IF({m} IS NULL, {missing}, {_NO_ERROR})")
            return f"IF({m} IS NULL OR {m} = {NULL}, {absent}, {body})"

        return let(self.names, marked, known)

    def _error(self, path: str, problem: str) -> str:
        if self.options.ignore_parse_errors:
            return _NO_ERROR
        end = literal(f"' {problem}")
        return f"concat({literal(_FIELD)}, {path}, {end})"

    def _wrong(self, type: DataType, path: str) -> str:
        named = type.name if isinstance(type, ScalarType) else type.flink().partition("<")[0]
        return self._error(path, f"cannot be read as {named}")

    def _scalar(self, marked: str, plain: str, type: ScalarType, path: str) -> str:
        wrong = self._wrong(type, path)
        return let(
            self.names,
            self.scalar.value(marked, plain, type),
            lambda v: struct(v=v, e=f"IF({v} IS NULL, {wrong}, {_NO_ERROR})"),
        )

    def _array(self, marked: str, plain: str, type: ArrayType, path: str) -> str:
        item, i = self.names.fresh(), self.names.fresh()

        def each(m: str, p: str) -> str:
            nodes = self._node(item, f"get({p}, {i})", type.element, f"concat({path}, '[]')")
            return let(
                self.names,
                f"transform({m}, ({item}, {i}) -> {nodes})",
                lambda n: struct(
                    v=f"transform({n}, node -> node.v)", e=first(f"transform({n}, node -> node.e)")
                ),
            )

        return self._both(marked, plain, "ARRAY<STRING>", each)

    def _map(self, marked: str, plain: str, type: MapType, path: str) -> str:
        entry, i = self.names.fresh(), self.names.fresh()

        def each(m: str, p: str) -> str:
            node = self._node(
                f"{entry}.value", f"get(map_values({p}), {i})", type.value, f"concat({path}, '{{}}')"
            )
            pairs = struct(k=f"substr({entry}.key, 2)", n=node)
            return let(
                self.names,
                f"transform(map_entries({m}), ({entry}, {i}) -> {pairs})",
                lambda all: let(
                    self.names,
                    _last_per_key(all),
                    lambda last: struct(
                        v=f"map_from_arrays(transform({last}, x -> x.k), transform({last}, x -> x.n.v))",
                        e=first(f"transform({last}, x -> x.n.e)"),
                    ),
                ),
            )

        return self._both(marked, plain, "MAP<STRING,STRING>", each)


def _last_per_key(pairs: str) -> str:
    """Return the last pair of each key."""
    keys = f"transform({pairs}, x -> x.k)"
    repeated = f"exists(slice({pairs}, i + 2, size({pairs})), y -> y.k = x.k)"
    return (
        f"IF(size(array_distinct({keys})) = size({keys}), {pairs}, filter({pairs}, (x, i) -> NOT {repeated}))"
    )


def _marked(text: str) -> str:
    r"""Return `text`, a valid JSON document, marked. With \" replaced, every second part between quotes is a string."""
    halves = f"replace({text}, {literal(_BACKSLASH * 2)}, {literal(_BACKSLASH + 'u005c')})"
    quoteless = f"replace({halves}, {literal(_BACKSLASH + _QUOTE)}, {literal(_BACKSLASH + 'u0022')})"
    outside = f"regexp_replace(regexp_replace(s, 'null', {_NULL_STRING}), '-?[0-9][-+.0-9eE]*', '\"$0\"')"
    parts = f"transform(split({quoteless}, '\"'), (s, i) -> IF(i % 2 = 0, {outside}, concat({STRING}, s)))"
    return f"array_join({parts}, '\"')"
