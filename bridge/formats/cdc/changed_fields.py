"""Documents with the new state and what it was before in the fields that changed: Canal's and Maxwell's.

Flink: CanalJsonDeserializationSchema, MaxwellJsonDeserializationSchema. One difference: where a document holds several
rows, Flink takes a field as told when the former state of any of them has it; here each row speaks for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bridge.format_rules.cdc_options import CdcOptions
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.formats.cdc.common import ChangeDecoder, envelope
from bridge.formats.cdc.fast_path import FastPath
from bridge.formats.cdc.metadata import STRING, Metadata
from bridge.formats.cdc.old_field import OldField, same_keys
from bridge.formats.cdc.operation_types import Changes, Types
from bridge.formats.json.fast_path import FROM_JSON, corrupt_name
from bridge.formats.json.full_decode import FullDecode
from bridge.formats.sql import Names, let, literal, member, null, struct
from bridge.schema import ArrayType, DataType, MapType, RowField, RowType, quote

__all__ = ["ChangedFieldsDecoder"]

_DATA, _OLD, _TYPE = "data", "old", "type"
_START, _END = r"\A", r"\z"
_NO_OLD = (
    "field 'old' of an update does not tell every row's former state: declare a PRIMARY KEY to do without"
)


class ChangedFieldsDecoder(ChangeDecoder):
    """An update without the former state is +U alone for a keyed table and bad for another."""

    types: Types
    several: bool
    """`data` and `old` are lists of rows."""

    def __init__(self, row: RowType, options: CdcOptions, metadata: Metadata, *, key: Sequence[str]) -> None:
        super().__init__(row, options, metadata, key=key)
        self.old = OldField(row, self.told)

    def filters(self) -> dict[str, str]:
        """Fields of the document, each with the pattern that it has to match for the document to be read."""
        return {}

    def decoded_fast(self, text: str, names: Names) -> str:
        """See ChangeDecoder.glanced: documents of one row in steps, others as `decode` does."""
        parsed = let(names, self._parse(text), str)
        broken = f"{parsed} IS NULL OR {member(parsed, corrupt_name(self._document()))} IS NOT NULL"
        data, old = f"{parsed}.{_DATA}", f"{parsed}.{_OLD}"
        # One that says so itself gets a closer look, too.
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
        # In one column: Spark compiles steps apart only where each makes use of all that it is handed.
        single = let(names, struct(**parts), str)
        outcome = self._single(parsed, single, text, names)
        aside = self._aside(lambda f: member(parsed, f), self.none)
        doubt = f"({single}.type <=> {literal(NEEDS_FULL_DECODE)})"
        if self.several:
            aside += f"WHEN {single}.several IS NOT NULL THEN NULL "
        settled = self.decoded_fully(text, doubt, f"CASE {aside}ELSE {outcome} END" if aside else outcome)
        if not self.several:
            return settled
        # A step of its own, and the last: Spark compiles none with a lambda function in it, and to write out and read
        # back what such a step is handed is dear, but for an outcome that it only passes on.
        made = let(names, settled, str)
        apart = let(names, f"IF({made} IS NULL, {single}.several, NULL)", str)
        return f"IF({made} IS NOT NULL, {made}, {self._several(apart, text, names.lambdas())})"

    def _several(self, parsed: str, text: str, names: Names) -> str:
        """The outcome of a document with any number of rows, which has been parsed."""

        def judged(read: str) -> str:
            made = let(names, f"{read}.v", lambda v: self.outcome(v, text, names))
            return f"IF({read} IS NULL, {self.none(literal(NEEDS_FULL_DECODE))}, {made})"

        return let(names, self._quick(parsed, text, names), judged)

    def _single(self, parsed: str, single: str, text: str, names: Names) -> str:
        """The outcome of a document that has been parsed and is a `single` row, without lambda functions."""
        data, old = f"{single}.data", f"{single}.old"
        texts = FastPath(self.options.json, names, text)
        now = let(names, texts.converted(data, self.row), str)
        told = let(names, self.old.texts(old), str)
        was = let(names, self.old.read(told, old, data, now, texts), str)
        doubts = [
            texts.needs_full_decode(data, now, self.row),
            texts.needs_full_decode(told, was, self.told),
            self.old.repeated(old, told),
        ]
        doubts += [same_keys(member(parsed, f.name)) for f in self._others() if isinstance(f.type, MapType)]
        # A column that is used twice stays one.
        doubt = let(names, f"IF({' OR '.join(doubts)}, {literal(NEEDS_FULL_DECODE)}, NULL)", str)

        def made(metadata: str) -> str:
            return self.types.outcome(f"{single}.type", self._change(data, now, was, metadata), self.none)

        outcome = self._described(parsed, made, names)
        return f"IF({doubt} IS NULL, {outcome}, {self.none(doubt)})"

    def envelope(self, text: str, names: Names, *, fast: bool) -> str:
        """See ChangeDecoder.envelope. `v` is made of `type`, `rows` (`now` and `was`), and metadata."""
        closer = self._none(literal(NEEDS_FULL_DECODE)) if fast else self._slowly(text, names)

        def quickly(parsed: str) -> str:
            corrupt = member(parsed, corrupt_name(self._document()))
            aside = self._aside(lambda f: member(parsed, f), self._none)
            broken = f"{parsed} IS NULL OR {corrupt} IS NOT NULL"
            return f"CASE WHEN {broken} THEN NULL {aside}ELSE {self._quick(parsed, text, names)} END"

        # Not one inside the other: Spark's analyzer allows for so many expressions that need each other first.
        return f"coalesce({let(names, self._parse(text), quickly)}, {closer})"

    def _parse(self, text: str) -> str:
        document = self._document()
        rows, former = FastPath.of(self.row), self.old.type
        if self.several:
            rows, former = f"ARRAY<{rows}>", f"ARRAY<{former}>"
        fields = [f"{_DATA}: {rows}", f"{_OLD}: {former}"]
        fields += [
            f"{quote(f.name)}: {f.type.spark()}" for f in document.fields if f.name not in (_DATA, _OLD)
        ]
        corrupt = corrupt_name(document)
        schema = f"STRUCT<{', '.join(fields)}, {quote(corrupt)}: STRING>"
        return f"from_json({text}, {literal(schema)}, {FROM_JSON.format(corrupt=literal(corrupt))})"

    def _document(self) -> RowType:
        def states(of: DataType) -> DataType:
            return ArrayType(of) if self.several else of

        own = (RowField(_DATA, states(self.row)), RowField(_OLD, states(self.told)), RowField(_TYPE, STRING))
        return RowType((*own, *self._others()))

    def _others(self) -> tuple[RowField, ...]:
        """The fields besides data, old and type."""
        needed = {f.name: f for f in self.metadata.fields()}
        for name in self.filters():
            needed.setdefault(name, RowField(name, STRING))
        return tuple(needed.values())

    def _spark(self) -> str:
        rows = f"ARRAY<STRUCT<now: {self.row.spark()}, was: {self.row.spark()}>>"
        others = "".join(f", {quote(f.name)}: {f.type.spark()}" for f in self._others())
        return f"STRUCT<type: STRING, rows: {rows}{others}>"

    def _none(self, error: str) -> str:
        return struct(v=null(self._spark()), e=error)

    def _read(self, document: str, rows: str) -> str:
        others = "".join(f", {literal(f.name)}, {member(document, f.name)}" for f in self._others())
        value = f"named_struct('type', {document}.{_TYPE}, 'rows', {rows}{others})"
        return struct(v=value, e=null("STRING"))

    def _many(self, states: str) -> str:
        return states if self.several else f"IF({states} IS NULL, NULL, array({states}))"

    def _quick(self, parsed: str, text: str, names: Names) -> str:
        """The envelope, or null when in doubt."""
        texts = FastPath(self.options.json, names, text)
        data, old = self._many(f"{parsed}.{_DATA}"), self._many(f"{parsed}.{_OLD}")
        item, i = names.fresh(), names.fresh()

        def paired(now: str) -> str:
            def told(was_told: str) -> str:
                def whole(was: str) -> str:
                    doubt = f"{now}.d OR {was}.d OR {self.old.doubled(was_told)}"
                    completed = self.old.completed(f"{was}.v", was_told, f"{now}.v")
                    return struct(now=f"{now}.v", was=completed, d=doubt)

                alone = struct(now=f"{now}.v", was=null(self.row.spark()), d=f"{now}.d")
                read = let(names, self.old.texts(was_told), lambda t: texts.node(t, self.told))
                return f"IF({was_told} IS NULL, {alone}, {let(names, read, whole)})"

            return let(names, f"get({old}, {i})", told)

        def judged(rows: str) -> str:
            one, maps = names.fresh(), [f for f in self._others() if isinstance(f.type, MapType)]
            # Former states of no row are looked at all the same: they may be bad.
            doubts = [f"exists({rows}, {one} -> {one}.d)", f"size({old}) > size({data})"]
            doubts += [same_keys(member(parsed, f.name)) for f in maps]
            pairs = f"transform({rows}, {one} -> {struct(now=f'{one}.now', was=f'{one}.was')})"
            return f"IF(coalesce({' OR '.join(doubts)}, FALSE), NULL, {self._read(parsed, pairs)})"

        return let(
            names,
            f"transform({data}, ({item}, {i}) -> {let(names, texts.node(item, self.row), paired)})",
            judged,
        )

    def _slowly(self, text: str, names: Names) -> str:
        slow = FullDecode(self._document(), self.options.json, names)
        type = (
            f"STRUCT<{_OLD}: ARRAY<{self.old.type}>>" if self.several else f"STRUCT<{_OLD}: {self.old.type}>"
        )

        # Only which fields are there is of interest.
        told = f"from_json({text}, {literal(type)}).{_OLD}"

        def read(found: str) -> str:
            rows, former = self._many(f"{found}.e.v.{_DATA}"), self._many(f"{found}.e.v.{_OLD}")
            row, i = names.fresh(), names.fresh()
            was = self.old.completed(f"get({former}, {i})", f"get({self._many(f'{found}.k')}, {i})", row)
            pairs = f"transform({rows}, ({row}, {i}) -> {struct(now=row, was=was)})"
            good = self._read(f"{found}.e.v", pairs)
            return f"IF({found}.e.v IS NULL, {self._none(f'{found}.e.e')}, {good})"

        slowly = let(names, struct(e=envelope(slow, text, names), k=told), read)
        if not self.filters():
            return slowly
        fields, corrupt = ", ".join(f"{quote(name)}: STRING" for name in self.filters()), "__corrupt"
        schema = literal(f"STRUCT<{fields}, {corrupt}: STRING>")
        named = f"from_json({text}, {schema}, {FROM_JSON.format(corrupt=literal(corrupt))})"

        def filtered(read: str) -> str:
            whole = f"{read} IS NOT NULL AND {read}.{corrupt} IS NULL"
            return f"CASE {self._aside(lambda f: member(read, f), self._none, whole)}ELSE {slowly} END"

        return let(names, named, filtered)

    def _aside(self, field: Callable[[str], str], none: Callable[[str], str], whole: str = "TRUE") -> str:
        """Branches of a CASE for the documents that the filters leave out; '' when there are none.

        What else is wrong in such a document is of no concern, as long as it is `whole`.
        """
        branches = []
        for name, pattern in self.filters().items():
            missing = literal(f"field '{name}' is null or missing, and '{name}.include' looks at it")
            matches = f"{field(name)} RLIKE {literal(f'{_START}(?:{pattern}){_END}')}"
            branches.append(f"WHEN {whole} AND {field(name)} IS NULL THEN {none(missing)} ")
            branches.append(f"WHEN {whole} AND NOT {matches} THEN {none(null('STRING'))} ")
        return "".join(branches)

    def outcome(self, document: str, text: str, names: Names) -> str:
        """See ChangeDecoder.outcome: rows in the document's order, an update as -U and +U."""
        rows, type = f"{document}.rows", f"{document}.{_TYPE}"
        return self._described(
            document, lambda m: self.types.outcome(type, self._changes(rows, m, names), self.none), names
        )

    def _described(self, document: str, made: Callable[[str], str], names: Names) -> str:
        """What is `made` of the metadata of a document, where that can be read."""
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
        now, was = f"{row}.now", f"{row}.was"

        def each(kind: str) -> str:
            return self.rows(f"transform({rows}, {row} -> {self.change(kind, now, metadata)})")

        after = self.change("+U", now, metadata)
        pair = f"IF({was} IS NULL, array({after}), array({self.change('-U', was, metadata)}, {after}))"
        updated = self.rows(f"flatten(transform({rows}, {row} -> {pair}))")
        if not self.keyed:
            updated = f"IF(exists({rows}, {row} -> {was} IS NULL), {self.failed(_NO_OLD)}, {updated})"
        missing = f"{rows} IS NULL OR exists({rows}, {row} -> {now} IS NULL)"
        return Changes(missing, each("+I"), updated, each("-D"))

    def _change(self, data: str, now: str, was: str, metadata: str) -> Changes:
        def only(kind: str) -> str:
            return self.rows(f"array({self.change(kind, now, metadata)})")

        both = self.rows(f"array({self.change('-U', was, metadata)}, {self.change('+U', now, metadata)})")
        alone = only("+U") if self.keyed else self.failed(_NO_OLD)
        return Changes(f"{data} IS NULL", only("+I"), f"IF({was} IS NULL, {alone}, {both})", only("-D"))
