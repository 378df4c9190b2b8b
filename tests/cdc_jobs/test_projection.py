"""Projections are taken apart as Flink CDC does."""

from __future__ import annotations

import pytest

from bridge.cdc_jobs.projection import Projected, expression_names, project, unescaped
from bridge.ddl.tokens import Source
from bridge.errors import DdlError

COLUMNS = ("id", "name", "price")


def projected(text: str, table: tuple[str, ...] = ("shop", "orders")) -> list[tuple[str, str]]:
    """The columns, each with its expression as it gets into the script."""
    source = unescaped(Source(text, "f"))
    return [(c.name, _text(source, c)) for c in project(Source(text, "f"), COLUMNS, table)]


def _text(source: Source, column: Projected) -> str:
    return "".join(p if isinstance(p, str) else source.text[slice(*p)] for p in column.expression)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("\\*", [("id", ""), ("name", ""), ("price", "")]),
        ("*", [("id", ""), ("name", ""), ("price", "")]),
        ("price, id", [("price", ""), ("id", "")]),
        (
            "\\*, UPPER(name) AS name, price * 2 as twice",
            [("id", ""), ("name", "UPPER(name)"), ("price", ""), ("twice", "price * 2")],
        ),
        (
            "UPPER(name) AS name, \\*",
            [("name", "UPPER(name)"), ("id", ""), ("price", "")],
        ),
        ("COALESCE(name, 'a, b') AS `a name`, id", [("a name", "COALESCE(name, 'a, b')"), ("id", "")]),
        (
            "\\*, price \\* 2 /* \\* */ AS twice, REPLACE(name, '\\*', ' *') AS `\\*`",
            [
                ("id", ""),
                ("name", ""),
                ("price", ""),
                ("twice", "price  * 2"),
                ("\\*", "REPLACE(name, '\\*', ' *')"),
            ],
        ),
        ("CAST(id AS STRING) AS id", [("id", "CAST(id AS STRING)")]),
        (
            "id, __namespace_name__ AS n, __schema_name__ || '.' || __table_name__ AS t",
            [("id", ""), ("n", "''"), ("t", "'shop' || '.' || 'orders'")],
        ),
    ],
)
def test_columns(text: str, columns: list[tuple[str, str]]) -> None:
    assert projected(text) == columns


def test_the_metadata_of_a_table_with_three_parts() -> None:
    assert projected("__namespace_name__ AS n", ("it's", "public", "t")) == [("n", "'it''s'")]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("id, nam", 5, "table shop.orders has no column `nam`; did you mean `name`?"),
        ("id, UPPER(name)", 5, "an expression needs a name: UPPER(name) AS upper_name"),
        ("__table_name__", 1, "an expression needs a name"),
        ("id,, name", 4, "a column is missing here; remove the comma, or name one"),
        ("id, name,", 10, "a column is missing here"),
        ("id, __data_event_type__ AS op", 5, "__data_event_type__ is not a part of a row"),
        ("id AS __id", 7, "column `__id`: names that start with two underscores are reserved for the bridge"),
        ("id AS 'x'", 1, "an expression needs a name"),
        ("'open", 1, "this string is not closed"),
    ],
)
def test_what_is_refused(text: str, column: int, message: str) -> None:
    with pytest.raises(DdlError) as error:
        projected(text)
    assert str(error.value).startswith(f"f:1:{column}: {message}")


def test_words_of_an_expression() -> None:
    assert expression_names(Source("new_name = 'SHANGHAI' AND `a b` > 1", "f")) == {"new_name", "AND", "a b"}
