"""Parses and checks the table elements of CREATE TABLE: columns, the primary key and the watermark.

Once all columns are known, the key and the watermark are checked, and computed columns become Spark SQL:

    tokens -> text (Spark's type names, no comments) -> sqlglot's tree -> checked, adapted -> Spark SQL

A function that is neither Flink's nor Spark's is a user's, and left to Spark. The watermark is
`WATERMARK FOR column AS column [- INTERVAL 'n' UNIT]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from bridge.ddl.dialect import Tree, parse_tree, respell, translated
from bridge.ddl.intervals import parse_interval
from bridge.ddl.legal import check, resolve
from bridge.ddl.part import Part
from bridge.ddl.refused_parts import refuse_parts, refuse_stray_tokens
from bridge.ddl.tokens import Cursor, Source, Token, nearest
from bridge.ddl.types import parse_type
from bridge.expressions.failures import failure, note_text, without_failures
from bridge.expressions.functions import own_functions
from bridge.expressions.template import Refusal
from bridge.schema import (
    Column,
    ComputedColumn,
    DataType,
    MetadataColumn,
    PhysicalColumn,
    ScalarType,
    TableSchema,
    Watermark,
)


def check_key(c: Cursor, key: Iterable[Token], columns: Mapping[str, object]) -> None:
    """Raises DdlError unless the primary key consists of different physical columns."""
    seen = set()
    for token in key:
        column = columns.get(token.text)
        if column is None:
            c.fail(f"the primary key names {_unknown(token, columns)}", token)
        if not isinstance(column, PhysicalColumn):
            kind = "a metadata column" if isinstance(column, MetadataColumn) else "a computed column"
            c.fail(f"a primary key consists of physical columns; `{token.text}` is {kind}", token)
        if token.text in seen:
            c.fail(f"the primary key names `{token.text}` twice", token)
        seen.add(token.text)


def check_watermark(
    c: Cursor, token: Token, columns: Mapping[str, object], types: Mapping[str, DataType]
) -> None:
    """Raises DdlError if the watermark's column does not exist or is not a timestamp.

    All precisions are accepted, since Flink's manuals declare plain TIMESTAMP. Spark derives the types of computed
    columns, so they are not checked.
    """
    if token.text not in columns:
        c.fail(f"the watermark names {_unknown(token, columns)}", token)
    type = types.get(token.text)
    is_time = isinstance(type, ScalarType) and type.name in ("TIMESTAMP", "TIMESTAMP_LTZ")
    if type is not None and not is_time:
        c.fail(
            f"a watermark requires a column TIMESTAMP or TIMESTAMP_LTZ; `{token.text}` is {type.flink()}",
            token,
        )


def _unknown(token: Token, columns: Iterable[str]) -> str:
    return f"`{token.text}`, which is not a column; {nearest(token.text, columns)}"


def translate(c: Cursor, begin: int, end: int, column: str, types: Mapping[str, DataType]) -> exp.Expr:
    """Translates tokens `begin` to `end` to one Spark expression; `failures.failure` says for which rows it fails.

    `types` are the columns that the expression may use: the physical and metadata columns, as in Flink. Raises
    DdlError if the expression cannot be parsed, uses another column, is not deterministic, or would have another
    meaning in Spark.
    """
    stop = c.tokens[end - 1].end
    part = Part(c.source, (*c.tokens[begin:end], Token("end", "", stop, stop)), column)
    refuse_parts(part)
    refuse_stray_tokens(part)
    respelled = respell(c, begin, end, part.prefix)
    what = f"{part.prefix}this expression"
    root = parse_tree(c, respelled, exp.Condition, what)
    tree = Tree(root, part, respelled)
    for node in list(root.walk()):
        check(tree, node, aggregates=False, own_functions=True)
        if isinstance(node, exp.Column):
            try:
                node.meta["type"] = resolve(node, types)
            except Refusal as refusal:
                raise tree.error(str(refusal), refusal.node or node) from None
    note_text(root, qualified=False)
    root = translated(root, tree.adapted)
    try:
        spark_text(root)
    except SqlglotError as error:
        raise c.source.error(f"{what} has no counterpart in Spark", respelled.origin(0)) from error
    return root


def spark_text(root: exp.Expr) -> str:
    """Returns Spark SQL in which all column names are quoted. Raises SqlglotError for what it does not have."""
    return str(
        root.sql(
            "spark",
            identify=True,
            normalize_functions=False,
            comments=False,
            unsupported_level=ErrorLevel.RAISE,
        )
    )


_WAY_OUT = "write `column` or `column - INTERVAL 'n' UNIT`, from which the bridge computes the event-time lag"


def parse_watermark(c: Cursor) -> tuple[Token, Watermark]:
    """Parses the watermark after the keywords WATERMARK FOR; returns the token of its column and the watermark.

    Raises DdlError for a nested column and for all strategies except a bounded delay of the column.
    """
    column = c.name("the watermark's column")
    if c.at("."):
        c.fail(
            f"the watermark's column must be a column of the table; for a field of `{column.text}` "
            "declare a computed column and use that",
            column,
        )
    c.expect("AS", " and the watermark's expression")
    start = c.token
    is_name = start.kind in ("name", "word") and c.peek(1).keyword != "("
    if not is_name or start.text != column.text:
        c.fail(f"this watermark strategy is not supported; {_WAY_OUT}")
    c.next()
    delay = _delay(c) if c.take("-") else 0.0
    if c.token.keyword not in (",", ")") and c.token.kind != "end":
        c.fail(f"this watermark strategy is not supported; {_WAY_OUT}")
    text = c.source.text[start.start : c.tokens[c.index - 1].end]
    return column, Watermark(column.text, text, delay)


def _delay(c: Cursor) -> float:
    if not c.take("INTERVAL"):
        c.fail(f"this watermark strategy is not supported; {_WAY_OUT}")
    return float(parse_interval(c, "the delay")[0])


def parse_elements(c: Cursor) -> TableSchema:
    """Parses the schema from after the opening to after the closing parenthesis.

    Columns are in the order of the text, with the declared nullability (key columns are not made NOT NULL, since the
    bridge compares keys null-safe). Raises DdlError at the first element that is illegal or not supported.
    """
    elements = _Elements(c)
    c.comma_separated(elements.parse)
    if not elements.columns:
        c.fail("the table has no columns", c.tokens[c.index - 1])
    return elements.schema()


@dataclass(frozen=True)
class _Expression:
    """A computed column whose expression, tokens `begin` to `end`, is translated once all columns are known."""

    name: str
    begin: int
    end: int
    comment: str | None


class _Elements:
    def __init__(self, c: Cursor) -> None:
        self.c = c
        self.columns: dict[str, Column | _Expression] = {}
        self.key: list[Token] = []
        self.watermark: tuple[Token, Watermark] | None = None

    def parse(self) -> None:
        c = self.c
        if c.at("WATERMARK", "FOR"):
            self._parse_watermark()
        elif self._take_constraint_name() or c.at("PRIMARY", "KEY") or c.at("UNIQUE", "("):
            self._parse_constraint()
        else:
            self._parse_column()

    def schema(self) -> TableSchema:
        """Returns the schema after all elements have been parsed."""
        types = {
            c.name: c.type for c in self.columns.values() if isinstance(c, (PhysicalColumn, MetadataColumn))
        }
        check_key(self.c, self.key, self.columns)
        if self.watermark is not None:
            check_watermark(self.c, self.watermark[0], self.columns, types)
        end = self.c.index
        columns = tuple(self._resolved(column, types) for column in self.columns.values())
        self.c.index = end
        return TableSchema(columns, tuple(t.text for t in self.key), self.watermark and self.watermark[1])

    def _take_constraint_name(self) -> bool:
        """Consumes CONSTRAINT and its name; `constraint STRING` is a column instead."""
        is_constraint = self.c.at("CONSTRAINT") and self.c.peek(2).keyword in ("PRIMARY", "UNIQUE")
        self.c.index += 2 if is_constraint else 0
        return is_constraint

    def _parse_watermark(self) -> None:
        start = self.c.token
        self.c.index += 2
        if self.watermark is not None:
            self.c.fail("the table already has a watermark; Flink supports one per table", start)
        self.watermark = parse_watermark(self.c)

    def _parse_constraint(self, column: Token | None = None) -> None:
        c, start = self.c, self.c.token
        if c.take("UNIQUE"):
            c.fail("UNIQUE is not supported, as in Flink; declare the columns as PRIMARY KEY", start)
        c.expect("PRIMARY")
        c.expect("KEY", " after PRIMARY")
        if self.key:
            c.fail("the table already has a primary key; list all columns in one PRIMARY KEY (...)", start)
        if column is None:
            c.expect("(", " and the columns of the primary key")
            self.key = c.comma_separated(lambda: c.name("a column of the primary key"))
        else:
            self.key = [column]
        if not c.take("NOT", "ENFORCED"):
            place = c.token if c.at("ENFORCED") else start
            c.fail(
                "a primary key must be declared NOT ENFORCED, as in Flink, since it cannot be enforced on records that "
                "others write to Kafka; write PRIMARY KEY ... NOT ENFORCED",
                place,
            )

    def _parse_column(self) -> None:
        c = self.c
        token = c.name("a column, PRIMARY KEY or WATERMARK")
        self._refuse_duplicate(token)
        column: Column | _Expression
        if c.take("AS"):
            begin, end = _skip_expression(c)
            column = _Expression(token.text, begin, end, _comment(c))
        else:
            column = self._parse_typed_column(token)
        self.columns[token.text] = column
        if c.token.keyword not in (",", ")"):
            c.fail_expected(f"',' or ')' after column `{token.text}`")

    def _parse_typed_column(self, token: Token) -> PhysicalColumn | MetadataColumn:
        c = self.c
        type = parse_type(c, f"the type of column `{token.text}`, or AS")
        if c.take("METADATA"):
            key = c.string("the metadata key").text if c.take("FROM") else token.text
            virtual = c.take("VIRTUAL")
            return MetadataColumn(token.text, type, key, virtual, _comment(c))
        if self._take_constraint_name() or c.at("PRIMARY") or c.at("UNIQUE"):
            self._parse_constraint(token)
        return PhysicalColumn(token.text, type, _comment(c))

    def _refuse_duplicate(self, token: Token) -> None:
        twin = next((n for n in self.columns if n.casefold() == token.text.casefold()), None)
        if twin == token.text:
            self.c.fail(f"column `{twin}` is declared twice", token)
        if twin is not None:
            self.c.fail(
                f"column `{token.text}` differs from `{twin}` only in case, and column names in Spark and Delta are "
                "case-insensitive; rename one",
                token,
            )

    def _resolved(self, column: Column | _Expression, types: dict[str, DataType]) -> Column:
        if isinstance(column, Column):
            return column
        return _computed(self.c, column, types)


def condition(text: str, name: str, types: Mapping[str, DataType]) -> ComputedColumn:
    """Translates a text that is one BOOLEAN expression over the columns `types`, as a computed column `name` would be.

    Raises DdlError as `translate` does, with `name` as the file, and for an expression of another type.
    """
    c = Cursor(Source(text, name))
    if c.token.kind == "end":
        c.fail_expected("a condition")
    column = _Expression(name, *_skip_expression(c), None)
    if c.token.kind != "end":
        c.fail_expected("the end of the condition")
    type = translate(c, column.begin, column.end, name, types).meta.get("type")
    if not isinstance(type, ScalarType) or type.name != "BOOLEAN":
        c.fail("the condition is no BOOLEAN; write a comparison, such as op = 'd'", c.tokens[0])
    return _computed(c, column, types)


def _computed(c: Cursor, column: _Expression, types: Mapping[str, DataType]) -> ComputedColumn:
    text = c.source.text[c.tokens[column.begin].start : c.tokens[column.end - 1].end]
    root = translate(c, column.begin, column.end, column.name, types)
    fails = failure(root)
    spark = spark_text(without_failures(root))
    why = None if fails is None else spark_text(fails)
    reads = tuple(dict.fromkeys(node.parts[0].name for node in root.find_all(exp.Column)))
    return ComputedColumn(column.name, text, spark, column.comment, why, own_functions(root), reads)


def _comment(c: Cursor) -> str | None:
    return c.string("the comment").text if c.take("COMMENT") else None


def _skip_expression(c: Cursor) -> tuple[int, int]:
    """Skips an expression, up to a comma, parenthesis or COMMENT outside of its own parentheses."""
    begin, depth = c.index, 0
    while c.token.kind != "end":
        word = c.token.keyword
        comment = word == "COMMENT" and c.peek(1).kind == "string"
        if depth == 0 and (comment or word in (",", ")", "]")):
            break
        depth += (word in ("(", "[")) - (word in (")", "]"))
        c.next()
    if c.index == begin:
        c.fail_expected("an expression after AS")
    return begin, c.index
