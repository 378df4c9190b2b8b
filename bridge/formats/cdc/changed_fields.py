"""Decodes documents with the after image in `data` and the fields that changed in `old`: Canal's and Maxwell's.

Flink: CanalJsonDeserializationSchema, MaxwellJsonDeserializationSchema. One difference: where a document has several
rows, Flink takes a field as present in all of them when it is in the `old` of any; here each row has its own `old`.
A field that is absent from `old` did not change, and one that is null there was null. `DocumentFilters` leaves out
documents by patterns of their fields, as Canal's `database.include` and `table.include` do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bridge.format_rules.change_documents import CdcOptions, null_is_not_absent
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.formats.cdc.common import ChangeDecoder, Changes, Types, envelope, padded
from bridge.formats.cdc.fast_path import FastPath
from bridge.formats.cdc.metadata import STRING, Metadata
from bridge.formats.json.fast_path import FROM_JSON, corrupt_name
from bridge.formats.json.full_decode import FullDecode
from bridge.formats.sql import Names, let, literal, member, null, struct
from bridge.schema import ArrayType, DataType, MapType, RowField, RowType, quote

CORRUPT = "__corrupt"
"""The field of `DocumentFilters.parse` that is not null for malformed JSON."""

_START, _END = r"\A", r"\z"


@dataclass(frozen=True)
class DocumentFilters:
    """`patterns` has fields of the document, each with the pattern that it must match for the document to be read."""

    patterns: Mapping[str, str]

    def parse(self, text: str) -> str:
        """Return the struct of the fields of a document, and CORRUPT."""
        fields = ", ".join(f"{quote(name)}: STRING" for name in self.patterns)
        schema = literal(f"STRUCT<{fields}, {CORRUPT}: STRING>")
        return f"from_json({text}, {schema}, {FROM_JSON.format(corrupt=literal(CORRUPT))})"

    def branches(self, field: Callable[[str], str], none: Callable[[str], str], whole: str = "TRUE") -> str:
        """Return branches of a CASE for the documents to leave out; '' without patterns.

        `field` makes SQL of a field, `none` the result without rows of SQL of an error. Other errors in such a document
        are ignored, as long as the condition `whole` is true.
        """
        branches = []
        for name, pattern in self.patterns.items():
            missing = literal(f"field '{name}' is null or missing, and '{name}.include' is a pattern for it")
            matches = f"{field(name)} RLIKE {literal(f'{_START}(?:{pattern}){_END}')}"
            branches.append(f"WHEN {whole} AND {field(name)} IS NULL THEN {none(missing)} ")
            branches.append(f"WHEN {whole} AND NOT {matches} THEN {none(null('STRING'))} ")
        return "".join(branches)


class OldField:
    """SQL for the fields `before_type` of before images; the other fields of the row are null in them.

    `old` is read as a map of texts, in which a null field differs from an absent one. Where both mean the same, it is
    read as a struct, which is cheaper.
    """

    def __init__(self, row: RowType, before_type: RowType) -> None:
        self.row, self.before_type = row, before_type
        self._is_map = null_is_not_absent(row, before_type)
        self.type = "MAP<STRING, STRING>" if self._is_map else FastPath.of(before_type)
        """The type that `from_json` reads `old` as."""

    def texts(self, old: str) -> str:
        """Return the struct of the texts in `old` (a variable); null for a null."""
        if not self._is_map:
            return old
        fields = ", ".join(f"{literal(n)}, {old}[{literal(n)}]" for n in self.before_type.names)
        return f"IF({old} IS NULL, {null(FastPath.of(self.before_type))}, named_struct({fields}))"

    def read(self, texts: str, old: str, data_texts: str, data: str, convert: FastPath) -> str:
        """Return the before image with these `texts`.

        A field is converted only where it is present and its text differs from that in `data_texts`, whose converted
        row is `data`."""
        fields = {}
        for f in self.before_type.fields:
            text, data_text = member(texts, f.name), member(data_texts, f.name)
            value = convert.value(text, f.type)
            same_text = f"{text} <=> {data_text}" if value != text else "FALSE"
            unchanged = f"IF({text} IS NULL, {self._is_absent(old, f.name)}, {same_text})"
            fields[f.name] = f"IF({unchanged}, {member(data, f.name)}, {value})"
        return f"IF({texts} IS NULL, {null(self.row.spark())}, {padded(self.row, fields)})"

    def completed(self, before: str, old: str, data: str) -> str:
        """Return the before image whose present fields are in `before`, absent ones as in `data`.

        All three are variables."""
        fields = {}
        for name in self.before_type.names:
            value = member(before, name)
            unchanged = f"IF({self._is_absent(old, name)}, {member(data, name)}, NULL)"
            fields[name] = f"IF({value} IS NULL, {unchanged}, {value})"
        return f"IF({before} IS NULL, {null(self.row.spark())}, {padded(self.row, fields)})"

    def repeats_a_field(self, old: str, texts: str) -> str:
        """Return whether `old`, whose texts are `texts`, has a field twice; never null."""
        if not self._is_map:
            return "FALSE"  # of two the last is read, as in Flink
        present = " + ".join(f"IF({member(texts, n)} IS NULL, 0, 1)" for n in self.before_type.names)
        # As many entries as fields that are not null: no key is repeated, and the dear comparison is not needed.
        return f"IF(size({old}) = {present}, FALSE, {same_keys(old)})"

    def repeats_a_key(self, old: str) -> str:
        """Return the same without its texts; null or false where no field is repeated."""
        return same_keys(old) if self._is_map else "FALSE"

    def _is_absent(self, old: str, name: str) -> str:
        return f"NOT map_contains_key({old}, {literal(name)})" if self._is_map else "TRUE"


def same_keys(map: str) -> str:
    """Return whether a map has a key twice; null or false where it has not."""
    keys = f"map_keys({map})"
    return f"IF(size({keys}) < 2, FALSE, size(array_distinct({keys})) != size({keys}))"


_DATA, _OLD, _TYPE = "data", "old", "type"
_NO_OLD = (
    "field 'old' of an update lacks the before image of a row: declare a PRIMARY KEY, and none is needed"
)


class ChangedFieldsDecoder(ChangeDecoder):
    """An update without a before image is +U alone with a key and bad without.

    The envelope's `v` has `type`, `rows` (structs of `after` and `before`), and the fields of `_others`.
    """

    types: Types
    several: bool
    """`data` and `old` are lists of rows."""

    def __init__(self, row: RowType, options: CdcOptions, metadata: Metadata, *, key: Sequence[str]) -> None:
        super().__init__(row, options, metadata, key=key)
        self.old = OldField(row, self.before_type)
        patterns = {"database": options.database_include, "table": options.table_include}
        self.filters = DocumentFilters({name: p for name, p in patterns.items() if p is not None})

    def fast_outcome(self, text: str, names: Names) -> str:
        """See ChangeDecoder.fast_outcome: documents of one row by columns, others by one expression."""
        parsed = let(names, self._parse(text), str)
        broken = f"{parsed} IS NULL OR {member(parsed, corrupt_name(self._document()))} IS NOT NULL"
        data, old = f"{parsed}.{_DATA}", f"{parsed}.{_OLD}"
        # A document whose type is this marker needs a full decode, too.
        parts = {
            "type": f"IF({broken}, {literal(NEEDS_FULL_DECODE)}, {parsed}.{_TYPE})",
            "data": data,
            "old": old,
        }
        if self.several:
            uneven = f"size({data}) != 1 OR size({old}) > 1"
            parts |= {
                x: f"IF(size({of}) = 1, get({of}, 0), NULL)" for x, of in (("data", data), ("old", old))
            }
            parts["several"] = f"IF({uneven}, {parsed}, NULL)"
        # In one column: Spark compiles columns separately only where each uses all of its inputs.
        single = let(names, struct(**parts), str)
        outcome = self._single(parsed, single, text, names)
        branches = self.filters.branches(lambda f: member(parsed, f), self.none)
        needs_full_decode = f"({single}.type <=> {literal(NEEDS_FULL_DECODE)})"
        if self.several:
            branches += f"WHEN {single}.several IS NOT NULL THEN NULL "
        outcome = f"CASE {branches}ELSE {outcome} END" if branches else outcome
        checked = self.checked(text, needs_full_decode, outcome)
        if not self.several:
            return checked
        # In a column of its own, the last one: Spark compiles none with a lambda function in it, and copying the inputs
        # of such a column is expensive, except for an outcome that it only passes on.
        made = let(names, checked, str)
        several = let(names, f"IF({made} IS NULL, {single}.several, NULL)", str)
        return f"IF({made} IS NOT NULL, {made}, {self._several(several, text, names.lambdas())})"

    def _several(self, parsed: str, text: str, names: Names) -> str:
        """Return the outcome of a parsed document with any number of rows."""

        def outcome(envelope: str) -> str:
            made = let(names, f"{envelope}.v", lambda v: self.outcome(v, text, names))
            return f"IF({envelope} IS NULL, {self.none(literal(NEEDS_FULL_DECODE))}, {made})"

        return let(names, self._fast_envelope(parsed, text, names), outcome)

    def _single(self, parsed: str, single: str, text: str, names: Names) -> str:
        """Return the outcome of a parsed document whose row is in `single`, without lambda functions."""
        data, old = f"{single}.data", f"{single}.old"
        fast = FastPath(self.options.json, names, text)
        after = let(names, fast.converted(data, self.row), str)
        old_texts = let(names, self.old.texts(old), str)
        before = let(names, self.old.read(old_texts, old, data, after, fast), str)
        reasons = [
            fast.needs_full_decode(data, after, self.row),
            fast.needs_full_decode(old_texts, before, self.before_type),
            self.old.repeats_a_field(old, old_texts),
        ]
        reasons += [same_keys(member(parsed, f.name)) for f in self._others() if isinstance(f.type, MapType)]
        # In a column of its own, since it is used twice.
        error = let(names, f"IF({' OR '.join(reasons)}, {literal(NEEDS_FULL_DECODE)}, NULL)", str)

        def made(metadata: str) -> str:
            return self.types.outcome(
                f"{single}.type", self._change(data, after, before, metadata), self.none
            )

        outcome = self._with_metadata(parsed, made, names)
        return f"IF({error} IS NULL, {outcome}, {self.none(error)})"

    def envelope(self, text: str, names: Names) -> str:
        """See ChangeDecoder.envelope."""

        def fast(parsed: str) -> str:
            corrupt = member(parsed, corrupt_name(self._document()))
            branches = self.filters.branches(lambda f: member(parsed, f), self._none)
            broken = f"{parsed} IS NULL OR {corrupt} IS NOT NULL"
            return (
                f"CASE WHEN {broken} THEN NULL {branches}ELSE {self._fast_envelope(parsed, text, names)} END"
            )

        # Not one inside the other: Spark's analyzer limits how many expressions may depend on each other.
        return f"coalesce({let(names, self._parse(text), fast)}, {self._full_envelope(text, names)})"

    def _parse(self, text: str) -> str:
        document = self._document()
        rows, old = FastPath.of(self.row), self.old.type
        if self.several:
            rows, old = f"ARRAY<{rows}>", f"ARRAY<{old}>"
        fields = [f"{_DATA}: {rows}", f"{_OLD}: {old}"]
        fields += [
            f"{quote(f.name)}: {f.type.spark()}" for f in document.fields if f.name not in (_DATA, _OLD)
        ]
        corrupt = corrupt_name(document)
        schema = f"STRUCT<{', '.join(fields)}, {quote(corrupt)}: STRING>"
        return f"from_json({text}, {literal(schema)}, {FROM_JSON.format(corrupt=literal(corrupt))})"

    def _document(self) -> RowType:
        def rows(of: DataType) -> DataType:
            return ArrayType(of) if self.several else of

        own = (
            RowField(_DATA, rows(self.row)),
            RowField(_OLD, rows(self.before_type)),
            RowField(_TYPE, STRING),
        )
        return RowType((*own, *self._others()))

    def _others(self) -> tuple[RowField, ...]:
        """Return the fields besides data, old and type."""
        needed = {f.name: f for f in self.metadata.fields()}
        for name in self.filters.patterns:
            needed.setdefault(name, RowField(name, STRING))
        return tuple(needed.values())

    def _spark(self) -> str:
        rows = f"ARRAY<STRUCT<after: {self.row.spark()}, before: {self.row.spark()}>>"
        others = "".join(f", {quote(f.name)}: {f.type.spark()}" for f in self._others())
        return f"STRUCT<type: STRING, rows: {rows}{others}>"

    def _none(self, error: str) -> str:
        return struct(v=null(self._spark()), e=error)

    def _envelope_of(self, document: str, rows: str) -> str:
        others = "".join(f", {literal(f.name)}, {member(document, f.name)}" for f in self._others())
        value = f"named_struct('type', {document}.{_TYPE}, 'rows', {rows}{others})"
        return struct(v=value, e=null("STRING"))

    def _list(self, rows: str) -> str:
        return rows if self.several else f"IF({rows} IS NULL, NULL, array({rows}))"

    def _fast_envelope(self, parsed: str, text: str, names: Names) -> str:
        """Return the envelope, or null where the document needs a full decode. In `pair`, `d` says whether it does."""
        fast = FastPath(self.options.json, names, text)
        data, old = self._list(f"{parsed}.{_DATA}"), self._list(f"{parsed}.{_OLD}")
        item, i = names.fresh(), names.fresh()

        def pair(after: str) -> str:
            def with_old(old_row: str) -> str:
                def both(before: str) -> str:
                    needs_full_decode = f"{after}.d OR {before}.d OR {self.old.repeats_a_key(old_row)}"
                    completed = self.old.completed(f"{before}.v", old_row, f"{after}.v")
                    return struct(after=f"{after}.v", before=completed, d=needs_full_decode)

                alone = struct(after=f"{after}.v", before=null(self.row.spark()), d=f"{after}.d")
                before = let(names, self.old.texts(old_row), lambda t: fast.node(t, self.before_type))
                return f"IF({old_row} IS NULL, {alone}, {let(names, before, both)})"

            return let(names, f"get({old}, {i})", with_old)

        def envelope_or_null(pairs: str) -> str:
            element, maps = names.fresh(), [f for f in self._others() if isinstance(f.type, MapType)]
            # An `old` without a row in `data` may be bad, too.
            reasons = [f"exists({pairs}, {element} -> {element}.d)", f"size({old}) > size({data})"]
            reasons += [same_keys(member(parsed, f.name)) for f in maps]
            both = struct(after=f"{element}.after", before=f"{element}.before")
            rows = f"transform({pairs}, {element} -> {both})"
            return f"IF(coalesce({' OR '.join(reasons)}, FALSE), NULL, {self._envelope_of(parsed, rows)})"

        return let(
            names,
            f"transform({data}, ({item}, {i}) -> {let(names, fast.node(item, self.row), pair)})",
            envelope_or_null,
        )

    def _full_envelope(self, text: str, names: Names) -> str:
        full = FullDecode(self._document(), self.options.json, names)
        old_type = (
            f"STRUCT<{_OLD}: ARRAY<{self.old.type}>>" if self.several else f"STRUCT<{_OLD}: {self.old.type}>"
        )

        # Read a second time, only for which of its fields are present.
        present = f"from_json({text}, {literal(old_type)}).{_OLD}"

        def completed(read: str) -> str:
            rows, old = self._list(f"{read}.e.v.{_DATA}"), self._list(f"{read}.e.v.{_OLD}")
            row, i = names.fresh(), names.fresh()
            before = self.old.completed(f"get({old}, {i})", f"get({self._list(f'{read}.present')}, {i})", row)
            pairs = f"transform({rows}, ({row}, {i}) -> {struct(after=row, before=before)})"
            good = self._envelope_of(f"{read}.e.v", pairs)
            return f"IF({read}.e.v IS NULL, {self._none(f'{read}.e.e')}, {good})"

        decoded = let(names, struct(e=envelope(full, text, names), present=present), completed)
        if not self.filters.patterns:
            return decoded

        def filtered(read: str) -> str:
            whole = f"{read} IS NOT NULL AND {read}.{CORRUPT} IS NULL"
            branches = self.filters.branches(lambda f: member(read, f), self._none, whole)
            return f"CASE {branches}ELSE {decoded} END"

        return let(names, self.filters.parse(text), filtered)

    def outcome(self, document: str, text: str, names: Names) -> str:
        """See ChangeDecoder.outcome: rows in the document's order, an update as -U and +U."""
        rows, type = f"{document}.rows", f"{document}.{_TYPE}"
        return self._with_metadata(
            document, lambda m: self.types.outcome(type, self._changes(rows, m, names), self.none), names
        )

    def _with_metadata(self, document: str, made: Callable[[str], str], names: Names) -> str:
        """Return what is `made` of the metadata of a document, or the error of metadata that cannot be read."""
        if not self.metadata.places:
            return made("")

        def checked(value: str) -> str:
            if self.options.json.ignore_parse_errors:
                return made(value)
            error = self.metadata.error(value, lambda f: member(document, f))
            return let(names, error, lambda e: f"IF({e} IS NULL, {made(value)}, {self.none(e)})")

        return let(names, self.metadata.value(lambda f: member(document, f)), checked)

    def _changes(self, rows: str, metadata: str, names: Names) -> Changes:
        row = names.fresh()
        after, before = f"{row}.after", f"{row}.before"

        def each(kind: str) -> str:
            return self.rows(f"transform({rows}, {row} -> {self.change(kind, after, metadata)})")

        updated_row = self.change("+U", after, metadata)
        both = f"array({self.change('-U', before, metadata)}, {updated_row})"
        pair = f"IF({before} IS NULL, array({updated_row}), {both})"
        updated = self.rows(f"flatten(transform({rows}, {row} -> {pair}))")
        if not self.keyed:
            updated = f"IF(exists({rows}, {row} -> {before} IS NULL), {self.failed(_NO_OLD)}, {updated})"
        missing = f"{rows} IS NULL OR exists({rows}, {row} -> {after} IS NULL)"
        return Changes(missing, each("+I"), updated, each("-D"))

    def _change(self, data: str, after: str, before: str, metadata: str) -> Changes:
        def only(kind: str) -> str:
            return self.rows(f"array({self.change(kind, after, metadata)})")

        both = self.rows(
            f"array({self.change('-U', before, metadata)}, {self.change('+U', after, metadata)})"
        )
        without_before = only("+U") if self.keyed else self.failed(_NO_OLD)
        updated = f"IF({before} IS NULL, {without_before}, {both})"
        return Changes(f"{data} IS NULL", only("+I"), updated, only("-D"))
