"""Routes: from tables of the source to topics."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cdc_jobs.jobs import DELTA, SINK, load, refusal


def route(*rules: str) -> str:
    return DELTA + SINK + "route:\n" + "".join(f"  - {{{rule}}}\n" for rule in rules)


@pytest.mark.parametrize(
    ("rules", "topics"),
    [
        ([], {"shop.items": "shop.items", "shop.orders": "shop.orders"}),
        (
            ["source-table: 'shop.\\.*', sink-table: ods.<>, replace-symbol: <>, description: all"],
            {"shop.items": "ods.items", "shop.orders": "ods.orders"},
        ),
        (
            ["source-table: 'shop.(\\.*)', sink-table: ods_$1"],
            {"shop.items": "ods_items", "shop.orders": "ods_orders"},
        ),
        (["source-table: shop.orders, sink-table: o"], {"shop.items": "shop.items", "shop.orders": "o"}),
        (
            ["source-table: 'shop.\\.*', sink-table: <>, replace-symbol: <>"],
            {"shop.items": "items", "shop.orders": "orders"},
        ),
    ],
)
def test_where_tables_go(shop: Path, rules: list[str], topics: dict[str, str]) -> None:
    job = load(shop, route(*rules) if rules else DELTA + SINK)
    assert {table.source: table.topic for table in job.tables} == topics
    assert {d.topic.names for d in job.publishes} == {(topic,) for topic in topics.values()}


def test_a_table_goes_to_all_its_routes(shop: Path) -> None:
    rules = route(
        "source-table: shop.orders, sink-table: a.orders",
        "source-table: shop.orders, sink-table: b.orders",
        "source-table: 'shop.[o]\\.*', sink-table: a.orders",
        "source-table: other.t, sink-table: x",
    )
    job = load(shop, rules)
    assert [(t.source, t.sink) for t in job.tables] == [
        ("shop.items", "shop.items"),
        ("shop.orders", "a.orders"),
        ("shop.orders", "b.orders"),
    ]
    assert len({d.run.checkpoint for d in job.publishes}) == 3
    assert job.warnings == ("route.3: no table of the source matches 'other.t'",)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            "source-table: 'shop.\\.*', sink-table: ods.all",
            "job.yaml:10: route.0.sink-table: shop.items and shop.orders both go to ods.all, where each would "
            "overwrite rows of the other; give each a topic of its own",
        ),
        (
            "source-table: 'shop.(\\.*)', sink-table: ods.$2",
            "route.0.sink-table: $2 is no group of 'shop.(\\.*)', which has 1",
        ),
        (
            "source-table: 'shop.\\.*', sink-table: a.b.c.<>, replace-symbol: <>",
            "route.0.sink-table: 'a.b.c.items' is not the id of a table; legal are table, schema.table",
        ),
        (
            "source-table: 'shop.*', sink-table: a",
            "job.yaml:10: route.0.source-table: '*' is not a regular expression",
        ),
        (
            "source-table: a, sink-table: b, replace-symbol: ''",
            "route.0.replace-symbol: '': it is empty; set a value",
        ),
        (
            "source-table: a, sink-tabel: b",
            "route.0.sink-tabel is not a legal key; did you mean 'sink-table'?",
        ),
        ("source-table: a", "route.0.sink-table is missing; it is required"),
    ],
)
def test_what_is_refused(shop: Path, rule: str, message: str) -> None:
    assert message in refusal(shop, route(rule))


def test_a_list_is_expected(shop: Path) -> None:
    text = DELTA + SINK + "route:\n  source-table: a\n  sink-table: b\n"
    assert "job.yaml:10: route: a list (- key: value) is expected" in refusal(shop, text)
