"""Parses the table elements of CREATE TABLE: columns, the primary key and the watermark."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.ddl.checks import check_key, check_watermark
from bridge.ddl.cursor import Cursor
from bridge.ddl.expressions import spark_text, translate
from bridge.ddl.tokens import Token
from bridge.ddl.types import parse_type
from bridge.ddl.watermark import parse_watermark
from bridge.expressions.failures import failure, without_failures
from bridge.expressions.functions import own_functions
from bridge.schema import (
    Column,
    ComputedColumn,
    DataType,
    MetadataColumn,
    PhysicalColumn,
    TableSchema,
    Watermark,
)

__all__ = ["parse_elements"]


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
        tokens = self.c.tokens
        text = self.c.source.text[tokens[column.begin].start : tokens[column.end - 1].end]
        root = translate(self.c, column.begin, column.end, column.name, types)
        fails = failure(root)
        spark = spark_text(without_failures(root))
        why = None if fails is None else spark_text(fails)
        return ComputedColumn(column.name, text, spark, column.comment, why, own_functions(root))


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
