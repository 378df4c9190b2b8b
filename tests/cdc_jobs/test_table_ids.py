"""Expressions select tables as Flink CDC's `Selectors` do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.cdc_jobs.table_ids import TableSelector
from bridge.errors import DefinitionError

NAMES = st.from_regex(r"[a-z][a-z0-9_ -]{0,8}[a-z0-9]", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "table", "is_selected"),
    [
        ("shop.orders", "shop.orders", True),
        ("shop.orders", "shop.orders2", False),
        ("SHOP.Orders", "shop.orders", True),
        ("shop.\\.*", "shop.orders", True),
        ("shop.\\.*", "shop2.orders", False),
        ("\\.*.\\.*", "shop.orders", True),
        ("bdb.user_table_[0-9]+", "bdb.user_table_17", True),
        ("[app|web].order_\\.*", "a.order_1", True),
        ("app_db.orders, app_db.items", "app_db.items", True),
        ("db.[a-z]{1\\,3}", "db.abc", True),
        ("db.[a-z]{1\\,3}", "db.abcd", False),
        ("orders", "shop.orders", True),
        ("orders", "orders", True),
        ("shop.orders", "orders", False),
        ("pg.public.t\\.*", "pg.public.t1", True),
        ("public.t1", "pg.public.t1", True),
        ("public.t1", "pg.other.t1", False),
    ],
)
def test_what_an_expression_selects(text: str, table: str, is_selected: bool) -> None:
    assert TableSelector.parse(text).matches(tuple(table.split("."))) is is_selected


@given(ids=st.lists(st.lists(NAMES, min_size=1, max_size=3).map(tuple), min_size=1, max_size=4))
def test_names_that_are_written_out_select_themselves(ids: list[tuple[str, ...]]) -> None:
    selector = TableSelector.parse(", ".join(".".join(id) for id in ids))
    assert selector.names == tuple(ids)
    assert all(selector.matches(id) for id in ids)
    assert not selector.matches(("another", "one", "X"))


def test_groups_are_counted_through_the_parts() -> None:
    selector = TableSelector.parse("(shop|app)_\\.*.order_([0-9]+)")
    assert selector.groups(("app_7", "order_12")) == ("app", "12")
    assert selector.names is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" , ", "it names no table; write table, schema.table or namespace.schema.table"),
        ("a.b.c.d", "'a.b.c.d' has 4 parts; legal are table, schema.table and namespace.schema.table"),
        ("shop.[a", "'[a' is not a regular expression: unterminated character set"),
        ("shop.*", "'*' is not a regular expression: nothing to repeat"),
    ],
)
def test_what_is_no_expression(text: str, message: str) -> None:
    with pytest.raises(DefinitionError) as error:
        TableSelector.parse(text)
    assert message in str(error.value)
