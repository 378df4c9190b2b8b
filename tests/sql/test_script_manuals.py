"""The scripts of the manuals are loaded: as they are, but for placeholders, or with the error that they have.

The manuals are found beside the checkout, or in the folder that BRIDGE_SEEDS_DIR names.
"""

from __future__ import annotations

import pytest

from benchmarks.flink_scripts import manuals
from bridge.errors import DdlError
from bridge.sql import Script, load_script
from bridge.sql.plan import QueryKind


def statements(manual: str) -> list[str]:
    """The CREATE TABLEs and INSERTs of a manual."""
    folder = manuals.manuals()
    if folder is None:
        pytest.skip("the manuals are not beside the checkout; name their folder in BRIDGE_SEEDS_DIR")
    return manuals.statements(folder, manual)


def load(*texts: str) -> Script:
    return load_script("manual.sql", text="\n".join(texts), environ={})


def message(*texts: str) -> str:
    with pytest.raises(DdlError) as error:
        load(*texts)
    return str(error.value)


def test_000_names_a_column_that_is_not_there() -> None:
    assert message(*statements("000")) == (
        "manual.sql:27:3: there is no column `region`; did you mean `user_region`?"
    )


def test_000_with_the_name_of_its_column() -> None:
    sink, source, insert = statements("000")
    (plan,) = load(
        sink, source, insert.replace("region,", "user_region,").replace("BY region", "BY user_region")
    ).inserts
    assert (plan.kind, plan.key, plan.is_updating) == (QueryKind.AGGREGATE, ("region",), True)


def test_001() -> None:
    source, sink, insert, _ = statements("001")
    (plan,) = load(source, sink, insert).inserts
    assert (plan.name, plan.kind, plan.key) == ("pageviews_per_region", QueryKind.AGGREGATE, ("user_region",))
    assert plan.spark_sql == (
        "SELECT `pageviews`.`user_region` AS `user_region`, COUNT(*) AS `pv`, COUNT(DISTINCT `pageviews`.`user_id`) AS "
        "`uv` FROM `pageviews` AS `pageviews` GROUP BY `pageviews`.`user_region`"
    )


def test_003_reads_a_table_that_it_does_not_create() -> None:
    sink, insert = statements("003")[1:3]
    assert message(sink, insert) == (
        "manual.sql:14:6: there is no table or view `orders_source`; known names are `order_events_sink`"
    )


def test_003_with_the_table_that_it_reads() -> None:
    sink, insert = statements("003")[1:3]
    source = sink.replace("order_events_sink", "orders_source").replace("'order_events'", "'orders'")
    (plan,) = load(sink, source, insert).inserts
    assert (plan.kind, plan.key, plan.is_updating, plan.states) == (QueryKind.PROJECTION, (), False, ())
    assert plan.spark_sql.endswith(
        "FROM `orders_source` AS `orders_source` WHERE `orders_source`.`amount` > 0"
    )


@pytest.mark.parametrize(("manual", "count"), [("000", 2), ("001", 3), ("003", 5), ("004", 8)])
def test_every_create_table_is_accepted(manual: str, count: int) -> None:
    creates = [t for t in statements(manual) if t.startswith("CREATE")]
    assert len(creates) == count
    for text in creates:
        assert len(load(text).tables) == 1


def test_003_has_a_column_with_the_time_of_processing() -> None:
    (text,) = [t for t in statements("003") if "PROCTIME()" in t]
    script = load(text)
    assert "proctime" not in script.tables[0].ddl.schema.names
    assert script.warnings == (
        "table user_events: column 'proctime' AS PROCTIME() is left out: a row may be computed again, so it has no "
        "time of processing",
    )
