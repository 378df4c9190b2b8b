"""The scripts of the manuals run on a real broker, as they are but for places. They start at the latest offset."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from tests.pipelines.scripts.scripts import ScriptRun
from tests.sql.test_script_manuals import statements

pytestmark = pytest.mark.slow  # test_run has such scripts with json


@pytest.fixture
def make(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> Callable[..., ScriptRun]:
    def made(*texts: str) -> ScriptRun:
        text = re.sub(r"'(?:broker|localhost):9092'", f"'{broker.bootstrap}'", "\n".join(texts))
        text = re.sub(r"('topic' +)= '(\w+)'", r"\1= '{prefix}-\2'", text)
        return ScriptRun(spark, broker, lake, unique("m"), text)

    return made


def renamed(text: str, name: str) -> str:
    return re.sub(r"('topic' +)= '\w+'", rf"\1= '{name}'", text)


@pytest.mark.parametrize("manual", ["000", "001"])
def test_page_views_by_region(make: Callable[..., ScriptRun], manual: str) -> None:
    """The sink's records in Avro are read back by another INSERT."""
    first, second, insert = statements(manual)[:3]
    source, sink = (second, first) if manual == "000" else (first, second)
    if manual == "000":  # it selects a column that it does not have
        insert = insert.replace("region,", "user_region,").replace("BY region", "BY user_region")
    region = "region" if manual == "000" else "user_region"
    shown = (
        f"CREATE TABLE shown ({region} STRING, pv BIGINT, uv BIGINT) WITH ('connector' = 'print');\n"
        "INSERT INTO shown SELECT * FROM pageviews_per_region;"
    )
    script = make(renamed(source, "views"), renamed(sink, "regions"), insert, shown)
    script.create("views")
    script.run()

    def view(user: int, place: str) -> tuple[None, dict[str, object]]:
        return None, {"user_id": user, "page_id": 1, "viewtime": "2026-11-25 10:00:00", "user_region": place}

    script.send("views", [view(1, "a"), view(1, "a"), view(2, "b")])
    script.run()
    assert sorted(script.printed) == ["+I[a, 2, 1]", "+I[b, 1, 1]"]
    script.send("views", [view(3, "a")])
    script.run()
    assert script.printed == ["-U[a, 2, 1]", "+U[a, 3, 2]"]


def test_orders_above_zero(make: Callable[..., ScriptRun]) -> None:
    sink, insert = statements("003")[1:3]
    source = sink.replace("order_events_sink", "orders_source").replace("'order_events'", "'orders'")
    script = make(sink, source, insert)
    script.create("orders")
    script.run()
    order = {"product": "tea", "created_at": "2026-11-25 10:00:00"}
    script.send("orders", [(None, {"order_id": n, "amount": n - 1.5, **order}) for n in (1, 2)])
    script.run()
    assert [(row["order_id"], row["amount"]) for _, row in script.received("order_events")] == [(2, 0.5)]
