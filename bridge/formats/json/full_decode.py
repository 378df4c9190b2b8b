"""Decodes any JSON document by Flink's own conversions, token by token (flink-json, JsonParserToRowDataConverters).

Spark gives values, not tokens, and reformats numbers that it reads as STRING. So the text is *marked* first: every
string gets \u0001 in front, null becomes the string \u0002, and a bare number becomes a string of its own digits. A
marked document is read with scalars of STRING only, and the first character of each distinguishes the tokens:

    \u0001...  a string     \u0002  null     -0123...  a number as written     true false     { [  a container

The unmarked text is read, too: there Spark's compact form of a container is Flink's text for STRING. `Scalar` is null
for a token that Flink refuses.

A document that has none of the fields it is read for is bad (docs/adr/060): its values would all be NULL, and such keys
would all be one row. A value of this kind may be what Kafka Connect's JsonConverter writes with `schemas.enable=true`:
`{"schema": …, "payload": …}`, with the row in `payload`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from bridge.format_rules.json_options import CONNECT_ENVELOPE, JsonOptions, Numbers
from bridge.formats.json.fast_path import FROM_JSON, corrupt_name, is_temporal, temporal_value
from bridge.formats.sql import Names, ascii_digits, first, let, literal, member, null, struct
from bridge.schema import ArrayType, DataType, MapType, RowField, RowType, ScalarType, quote

STRING, NULL = "'\\u0001'", "'\\u0002'"
"""SQL literals of the marks: the first character of a string, and the token of null."""

_BOUNDS = {"INT": (-(2**31), 2**31 - 1), "BIGINT": (-(2**63), 2**63 - 1)}
_INTEGER = "^[+-]?[0-9]+$"
# Java's grammar without its hexadecimal form; a trailing d or f is part of it.
_FLOATING = "^[+-]?(NaN|Infinity|([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)$"
# Longer numbers and exponents would take BigDecimal minutes.
_DECIMAL = "^(?=.{1,1000}$)[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})?$"
_EDGES = r"^[\x00-\x20]+|[\x00-\x20]+$"
_SPACES = r"[\x00-\x20]"
# White space may be between groups of four characters, not in one.
_GROUPS = r"^(?:[\x00-\x20]*[^\x00-\x20]{4})*[\x00-\x20]*$"
_CONTAINER = r"^[{\[]"
_EMPTY_LIST = r"^\[\s*\]$"
_FRACTION = "^-?[0-9]+[.eE]|^-0$"
_BASE64 = "^[A-Za-z0-9+/]*={0,2}$"


class Scalar:
    """SQL of one scalar. `marked` is a variable with a token other than null."""

    def __init__(self, options: JsonOptions, names: Names) -> None:
        self.options, self.names = options, names
        self._of_tree = options.numbers is Numbers.TREES

    def value(self, marked: str, plain: str, type: ScalarType) -> str:
        """Return the value of `type`, or null where the token cannot be read as one."""
        number = self._number(marked)
        if is_temporal(type) or type.is_binary or type.name == "BOOLEAN" or number == marked:
            return self._value(marked, plain, type)
        return let(self.names, number, lambda m: self._value(m, plain, type))

    def _number(self, marked: str) -> str:
        if self._of_tree:
            return f"IF({marked} RLIKE {literal(_FRACTION)}, {_stripped(marked, self.names)}, {marked})"
        return f"IF({marked} = '-0', '0', {marked})" if self.options.numbers is Numbers.VALUES else marked

    def _value(self, marked: str, plain: str, type: ScalarType) -> str:
        if type.is_string:
            return f"IF({marked} RLIKE {literal(_CONTAINER)}, {plain}, {_text(marked)})"
        if type.name == "BOOLEAN":
            is_true = f"lower({_trimmed(_text(marked))}) = 'true'"
            # After an empty list Flink's parser loses its place in the document, and fails.
            lost = f"{marked} RLIKE {literal(_EMPTY_LIST)}"
            return is_true if self._of_tree else f"IF({lost}, NULL, {is_true})"
        if is_temporal(type):
            return let(self.names, _text(marked), lambda t: temporal_value(t, type, self.options))
        if type.is_binary:
            return f"IF({_is_string(marked)}, {let(self.names, _spaceless(_text(marked)), _binary)}, NULL)"
        if type.name in ("FLOAT", "DOUBLE"):
            return self._matching(marked, _FLOATING, lambda t: f"regexp_replace({t}, '[fFdD]$', '')", type)
        if type.name == "DECIMAL":
            return self._matching(marked, _DECIMAL, lambda t: t, type, trims=not self._of_tree)
        number = f"TRY_CAST({marked} AS {type.spark()})"
        if type.name in ("INT", "BIGINT"):
            number = f"IF({marked} RLIKE '[.eE]', {self._truncated(marked, type)}, {number})"
        else:  # Flink reads a number as TINYINT or SMALLINT with parseByte, parseShort: no fraction
            number = f"IF({marked} RLIKE '[.eE]', NULL, {number})"
        text = self._matching(marked, _INTEGER, lambda t: t, type)
        return f"CASE WHEN {_is_string(marked)} THEN {text} WHEN {marked} RLIKE '^-?[0-9]' THEN {number} END"

    def _truncated(self, marked: str, type: ScalarType) -> str:
        low, high = _BOUNDS[type.name]
        return let(
            self.names,
            f"CAST({marked} AS DOUBLE)",
            lambda d: f"IF({d} BETWEEN {low:.1f}D AND {high:.1f}D, TRY_CAST({d} AS {type.spark()}), NULL)",
        )

    def _matching(
        self, marked: str, pattern: str, number: Callable[[str], str], type: ScalarType, *, trims: bool = True
    ) -> str:
        def read(t: str) -> str:
            return f"IF({t} RLIKE {literal(pattern)}, TRY_CAST({number(t)} AS {type.spark()}), NULL)"

        text = _trimmed(_text(marked)) if trims else _text(marked)
        if type.name in ("FLOAT", "DOUBLE"):
            return let(self.names, text, read)
        return let(self.names, text, lambda t: let(self.names, ascii_digits(t), read))


def _stripped(number: str, names: Names) -> str:
    """Return a bare number as BigDecimal.stripTrailingZeros().toString() has it; null for an exponent beyond its."""

    def parts(of: str) -> str:
        return struct(
            all=f"trim(LEADING '0' FROM concat(regexp_extract({number}, '^-?([0-9]+)', 1), {of}.fraction))",
            scale=f"length({of}.fraction) - {of}.exponent",
        )

    def shown(of: str) -> str:
        digits = f"trim(TRAILING '0' FROM {of}.all)"
        scale = f"{of}.scale - length({of}.all) + length({digits})"
        return let(names, struct(d=digits, s=f"({scale})", n=f"length({digits})"), sign_and_text)

    def sign_and_text(of: str) -> str:
        exponent = f"{of}.n - 1 - {of}.s"
        point = f"concat(left({of}.d, INT({of}.n - {of}.s)), '.', right({of}.d, INT({of}.s)))"
        small = f"concat('0.', lpad({of}.d, INT({of}.s), '0'))"
        plain = f"CASE WHEN {of}.s = 0 THEN {of}.d WHEN {of}.n > {of}.s THEN {point} ELSE {small} END"
        first = f"IF({of}.n = 1, {of}.d, concat(left({of}.d, 1), '.', substr({of}.d, 2)))"
        scientific = f"concat({first}, 'E', IF({exponent} > 0, '+', ''), {exponent})"
        is_plain = f"{of}.s >= 0 AND {exponent} >= -6"
        return (
            f"IF({of}.n = 0, '0', concat(IF(startswith({number}, '-'), '-', ''), "
            f"IF({is_plain}, {plain}, {scientific})))"
        )

    exponent = f"TRY_CAST(regexp_extract({number}, '[eE](.+)', 1) AS INT)"
    read = struct(
        fraction=f"regexp_extract({number}, '[.]([0-9]+)', 1)",
        exponent=f"CAST(IF({number} RLIKE '[eE]', {exponent}, 0) AS BIGINT)",
    )
    text = let(names, read, lambda of: let(names, parts(of), shown))
    # Beyond DOUBLE, Jackson makes one of it all the same.
    infinite = f"abs(CAST({number} AS DOUBLE)) = DOUBLE('Infinity')"
    return f"IF({infinite}, IF(startswith({number}, '-'), '-Infinity', 'Infinity'), {text})"


def _is_string(marked: str) -> str:
    return f"startswith({marked}, {STRING})"


def _text(marked: str) -> str:
    """Return a scalar token's text, as Jackson's getText does."""
    return f"IF({_is_string(marked)}, substr({marked}, 2), {marked})"


def _trimmed(text: str) -> str:
    """Return `text` after Java's trim, which removes all characters up to the space."""
    return f"regexp_replace({text}, {literal(_EDGES)}, '')"


def _spaceless(text: str) -> str:
    return f"IF({text} RLIKE {literal(_GROUPS)}, regexp_replace({text}, {literal(_SPACES)}, ''), NULL)"


def _binary(text: str) -> str:
    is_base64 = f"length({text}) % 4 = 0 AND {text} RLIKE {literal(_BASE64)}"
    return f"IF({is_base64}, TRY_TO_BINARY({text}, 'base64'), NULL)"


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
                errors.insert(0, _foreign_or_null(marked, text, row, self._key, nulls_left_out=left_out))
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


_EMPTY = r"^\s*\{\s*\}\s*$"
_IS_ENVELOPE = (
    'it looks like the envelope of Kafka Connect, {"schema": ..., "payload": ...}, whose row is in \'payload\': set '
    "'{converter}.schemas.enable' to false in the connector and write the topic anew"
)


def may_be_foreign(text: str, parsed: str, row: RowType, key: Sequence[str]) -> str:
    """Return SQL that is true where `_foreign_or_null` may be an error: `parsed` is the struct that Spark reads."""
    names = tuple(key) or row.names
    if not names:
        return "FALSE"
    missing = " AND ".join(f"{member(parsed, name)} IS NULL" for name in names)
    return f"({missing})" if key else f"({missing} AND {text} RLIKE {literal(CONNECT_ENVELOPE)})"


def _foreign_or_null(
    marked: str, plain: str, row: RowType, key: Sequence[str], *, nulls_left_out: bool
) -> str:
    """Return SQL of the error of an object that has none of the fields `key`, or none of `row`'s and is an envelope.

    `marked` are the object's fields (see full_decode), null where there is none; `plain` is its text. An explicit null
    is a value. Where nulls are left out of what is written, {} is the object of nulls.
    """
    names = tuple(key) or row.names
    if not names:
        return null("STRING")
    missing = " AND ".join(f"{member(marked, chr(1) + name)} IS NULL" for name in names)
    envelope = f"{plain} RLIKE {literal(CONNECT_ENVELOPE)}"
    listed = ", ".join(f"'{name}'" for name in names)
    converter = "key.converter" if key else "value.converter"
    hint = _IS_ENVELOPE.replace("{converter}", converter)
    as_envelope = f"WHEN {envelope} THEN {literal(f'the document has none of the fields {listed}: {hint}')}"
    if not key:
        return f"CASE WHEN {missing} THEN CASE {as_envelope} END END"
    reason = literal(
        f"the document has none of the key's fields {listed} (fields are matched by their exact names, as in Flink)"
    )
    left_out = f"WHEN {plain} RLIKE {literal(_EMPTY)} THEN NULL " if nulls_left_out else ""
    return f"CASE WHEN {missing} THEN CASE {left_out}{as_envelope} ELSE {reason} END END"
