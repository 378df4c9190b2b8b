"""Change documents in JSON made by a random generator: usual ones of each format, odd ones, and damaged ones."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass

from bridge.definition import FormatSpec
from bridge.format_rules.change_documents import PLACEHOLDER
from bridge.schema import ArrayType, DataType, RowField, RowType, ScalarType
from tests.arrow_formats import drawn_json
from tests.arrow_formats.drawn_json import json_object

KEYS = ["flag", "int", "big", "text", "char", "money", "whole", "day", "at3", "ltz6", "ünï 名"]
"""Fields that may be in a key; of the last one, a row, the decoders know nothing that they would not know of others."""

_MEMBERS = {
    "debezium-json": ("before", "after", "op"),
    "ogg-json": ("before", "after", "op_type"),
    "canal-json": ("old", "data", "type"),
    "maxwell-json": ("old", "data", "type"),
}
_OPERATIONS = {
    "debezium-json": ("c", "r", "u", "d", "t", "m"),
    "ogg-json": ("I", "I", "U", "D", "T", "i"),
    "canal-json": ("INSERT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER"),
    "maxwell-json": ("insert", "insert", "update", "delete", "bootstrap-insert", "INSERT"),
}
"""Two inserts, update, delete, and others."""
_OTHERS = [
    (
        "source",
        '{"db":"d","ts_ms":1700000000000,"snapshot":"false","x":[{"y":NULL}]}'.replace("NULL", "null"),
    ),
    ("ts_ms", "1700000000000"),
    ("transaction", "null"),
    ("mysqlType", '{"id":"bigint(20)"}'),
    ("before", '{"zzz":1}'),
    ("database", '"d"'),
    ("isDdl", "false"),
]
_PLACEHOLDERS = [json.dumps(PLACEHOLDER), json.dumps(PLACEHOLDER).replace("_d", "\\u005fd")]
_BAD = ["null", "5", '"x"', "[]", "{}", "[null]", "[{}]", "true"]


def drawn_spec(
    rng: random.Random,
    format: str,
    *,
    fields: int,
    of: Sequence[str] = tuple(drawn_json.TYPES),
    options: dict[str, object] | None = None,
) -> tuple[FormatSpec, tuple[str, ...]]:
    """A format with some fields, and a key of one or two of them, which are NOT NULL where there are two."""
    key = rng.sample([n for n in KEYS if n in of], rng.choice([1, 1, 2]))
    others = [n for n in of if n not in key]
    names = key + rng.sample(others, fields)
    rng.shuffle(names)
    types = drawn_json.TYPES
    row = RowType(
        tuple(RowField(n, types[n].required() if n in key and len(key) > 1 else types[n]) for n in names)
    )
    return FormatSpec(format, options or {}, row, tuple(names)), tuple(n for n in names if n in key)


@dataclass
class Documents:
    """Draws the documents of a format."""

    rng: random.Random
    spec: FormatSpec
    key: Sequence[str]
    as_texts: bool = False
    """Whether scalars are written as texts, as Canal does."""

    def usual(self) -> bytes:
        """A document as the format's own writer writes it."""
        rng, names = self.rng, _MEMBERS[self.spec.name]
        operation = rng.randrange(4)
        old, new = self._image(self.spec.row), self._image(self.spec.row)
        if self.spec.name in ("canal-json", "maxwell-json"):
            fields = [f for f in self.spec.row.fields if rng.random() < 0.3]
            old = self._image(RowType(tuple(fields))) if operation == 2 else "null"
            if self.spec.name == "canal-json":
                more = rng.randrange(3)
                new = self._list([new] + [self._image(self.spec.row) for _ in range(more)])
                old = old if old == "null" else self._list([old, *["null", "{}"][:more]])
        elif operation < 2 or (operation == 2 and rng.random() < 0.3):
            old = "null"
        elif operation == 3:
            new = "null"
        members = [(names[0], old), (names[1], new), (names[2], self._operation(operation))]
        return self._document(members + rng.sample(_OTHERS[:4], 2), wrapped=True)

    def any(self) -> bytes:
        """A document that may be odd in one or more of its parts, or damaged."""
        rng, names = self.rng, _MEMBERS[self.spec.name]
        members = []
        for name in names[:2]:
            image = self._image(self.spec.row, odd=rng.random() < 0.15)
            if self.spec.name == "canal-json" and rng.random() < 0.95:
                image = self._list(
                    [image, *(rng.choice([image, "null", "{}"]) for _ in range(rng.randrange(3)))][
                        rng.choice([0, 0, 0, 1]) :
                    ]
                )
            members.append((name, rng.choice([image] * 10 + ["null", "null", rng.choice(_BAD)])))
        operation = self._operation(rng.choice([0, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 5][: rng.choice([10, 12])]))
        members.append((names[2], rng.choice([operation] * 80 + _BAD)))
        members = [m for m in members if rng.random() < 0.97]
        if rng.random() < 0.05:
            members.append(rng.choice([*members, *_OTHERS]))
        others = rng.sample(_OTHERS, rng.randrange(2))
        made = self._document(members + others, wrapped=rng.random() < 0.95)
        for _ in range(rng.choice([0, 0, 0, 0, 0, 0, 1, 2])):
            made = drawn_json.damaged(rng, made)
        return rng.choice([made] * 30 + [b"", b" ", b"null", b"[" + made + b"]", made + b"\n", made * 2])

    def _document(self, members: list[tuple[str, str]], *, wrapped: bool) -> bytes:
        rng = self.rng
        rng.shuffle(members)
        made = json_object(members, rng)
        if self.spec.options.get("schema-include") and wrapped:
            both = [("schema", '{"type":"struct"}'), ("payload", made)]
            made = json_object(both + ([("op", '"c"')] if rng.random() < 0.1 else []), rng)
        return made.encode("utf-8", "surrogatepass")

    def _operation(self, number: int) -> str:
        return json.dumps(_OPERATIONS[self.spec.name][number])

    def _list(self, items: list[str]) -> str:
        return f"[{','.join(items)}]"

    def _image(self, row: RowType, *, odd: bool = False) -> str:
        rng = self.rng
        iso = self.spec.options.get("timestamp-format.standard") == "ISO-8601"
        members = []
        for field in row.fields:
            if rng.random() < 0.9 or field.name in self.key:
                value = drawn_json.usual(rng, field.type, iso=iso)
                members.append((field.name, self._text(value, field.type)))
        if odd:
            field = rng.choice(row.fields)
            members.insert(rng.randint(0, len(members)), (field.name, drawn_json.odd(rng, field.type)))
            if rng.random() < 0.2 and (texts := [f for f in row.fields if _may_be_unavailable(f.type)]):
                placeholder = rng.choice(_PLACEHOLDERS)
                name, type = (field := rng.choice(texts)).name, field.type
                members = [m for m in members if m[0] != name]
                members.append((name, f"[{placeholder}]" if isinstance(type, ArrayType) else placeholder))
        return json_object(members, rng)

    def _text(self, value: str, type: DataType) -> str:
        if not self.as_texts or not isinstance(type, ScalarType) or value == "null" or value[0] == '"':
            return value
        return f'"{value}"'


def _may_be_unavailable(type: DataType) -> bool:
    scalar = type.element if isinstance(type, ArrayType) else type
    return isinstance(scalar, ScalarType) and scalar.is_string
