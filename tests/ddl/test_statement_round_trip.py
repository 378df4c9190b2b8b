"""A schema that is written as Flink DDL and parsed is the same schema."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.ddl import Ddl, parse
from bridge.schema import (
    ArrayType,
    DataType,
    MapType,
    MetadataColumn,
    PhysicalColumn,
    RowField,
    RowType,
    ScalarType,
    TableSchema,
    quote,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
nullable = st.booleans()


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


@st.composite
def scalars(draw: st.DrawFn) -> ScalarType:
    name = draw(
        st.sampled_from(
            [
                *(
                    "CHAR",
                    "VARCHAR",
                    "STRING",
                    "BOOLEAN",
                    "BINARY",
                    "VARBINARY",
                    "BYTES",
                    "DECIMAL",
                    "TINYINT",
                ),
                *("SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ"),
            ]
        )
    )
    parameters: tuple[int, ...] = ()
    if name == "DECIMAL":
        precision = draw(st.integers(1, 38))
        parameters = (precision, draw(st.integers(0, precision)))
    elif name.startswith("TIMESTAMP"):
        parameters = (draw(st.integers(0, 6)),)
    elif name in ("CHAR", "VARCHAR", "BINARY", "VARBINARY"):
        parameters = (draw(st.integers(1, 2_147_483_646)),)
    return ScalarType(name, parameters, nullable=draw(nullable))


def distinct(items: st.SearchStrategy[str], most: int) -> st.SearchStrategy[list[str]]:
    return st.lists(items, min_size=1, max_size=most, unique_by=str.casefold)


def rows(types: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    fields = distinct(names, 4).flatmap(
        lambda ns: st.tuples(*(st.builds(RowField, st.just(n), types) for n in ns))
    )
    return st.builds(RowType, fields, nullable=nullable)


types: st.SearchStrategy[DataType] = st.recursive(
    scalars(),
    lambda inner: (
        st.builds(ArrayType, inner, nullable=nullable)
        | st.builds(MapType, inner, inner, nullable=nullable)
        | rows(inner)
    ),
    max_leaves=6,
)


@st.composite
def schemas(draw: st.DrawFn) -> TableSchema:
    columns: list[PhysicalColumn | MetadataColumn] = []
    for name in draw(distinct(names, 6)):
        if draw(st.booleans()):
            columns.append(PhysicalColumn(name, draw(types), draw(st.none() | texts)))
        else:
            columns.append(
                MetadataColumn(name, draw(types), draw(texts), draw(st.booleans()), draw(st.none() | texts))
            )
    physical = [c.name for c in columns if isinstance(c, PhysicalColumn)]
    key = draw(st.lists(st.sampled_from(physical), unique=True)) if physical else []
    return TableSchema(tuple(columns), tuple(key))


def render(ddl: Ddl) -> str:
    elements = []
    for column in ddl.schema:
        assert isinstance(column, (PhysicalColumn, MetadataColumn))
        parts = [quote(column.name), column.type.flink()]
        if isinstance(column, MetadataColumn):
            parts += ["METADATA FROM", text(column.key), "VIRTUAL" if column.virtual else ""]
        if column.comment is not None:
            parts += ["COMMENT", text(column.comment)]
        elements.append(" ".join(parts))
    if ddl.schema.primary_key:
        elements.append(f"PRIMARY KEY ({', '.join(map(quote, ddl.schema.primary_key))}) NOT ENFORCED")
    comment = f"COMMENT {text(ddl.comment)}" if ddl.comment is not None else ""
    options = ", ".join(f"{text(k)} = {text(v)}" for k, v in ddl.options.items())
    return f"CREATE TABLE {quote(ddl.name)} ({', '.join(elements)}) {comment} WITH ({options})"


# No deadline: other work on the machine must not fail this test.
@settings(deadline=None)
@given(st.builds(Ddl, names, schemas(), st.dictionaries(texts, texts, max_size=4), st.none() | texts))
def test_parse_undoes_render(ddl: Ddl) -> None:
    assert parse(render(ddl)) == ddl
