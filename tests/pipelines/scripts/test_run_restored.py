"""Another writer restores a result while a script is at work."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.errors import TableError
from bridge.metrics import BatchReport
from bridge.pipelines.scripts.run import run_script
from tests.pipelines.scripts.scripts import ScriptRun

COUNTS = """
CREATE TABLE views (region STRING) WITH ({kafka}, 'topic' = '{prefix}-views');
CREATE TABLE regions (region STRING, views BIGINT, PRIMARY KEY (region) NOT ENFORCED)
  WITH ({upsert}, 'topic' = '{prefix}-regions');
INSERT INTO regions SELECT region, COUNT(*) FROM views GROUP BY region;
"""


def test_a_result_that_is_restored_during_a_run_is_refreshed_again(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> None:
    """The restored rows are known to be those of older sources; the next round computes what is new since then."""
    script = ScriptRun(spark, broker, lake, unique("s"), COUNTS)
    script.create("views", "regions", partitions=1)
    script.send("views", [(None, {"region": "a"})])
    stop, inserts = threading.Event(), list[BatchReport]()

    def listener(report: BatchReport) -> None:
        if report.verb != "insert":
            return
        inserts.append(report)
        if len(inserts) == 1:
            script.send("views", [(None, {"region": "a"}), (None, {"region": "b"})])
        elif len(inserts) == 2:
            (table,) = lake.glob("**/results/*")
            DeltaTable(str(table)).restore(inserts[0].version or 0, protocol_downgrade_allowed=True)
        else:
            stop.set()

    run_script(spark, script.script(), listener=listener, every_seconds=0.1, stop=stop)
    script.run()
    last = {key["region"]: row and row["views"] for key, row in script.received("regions")}
    assert last == {"a": 2, "b": 1}
    (table,) = lake.glob("**/results/*")
    assert {tuple(row)[:2] for row in spark.read.format("delta").load(str(table)).collect()} == {
        ("a", 2),
        ("b", 1),
    }


BY_PARTS = COUNTS.replace("GROUP BY region", "GROUP BY region HAVING COUNT(*) > 0")
"""Which computes the changed groups from all of their rows."""


@pytest.mark.parametrize("text", [COUNTS, BY_PARTS])
def test_a_state_that_is_restored_is_not_counted_twice(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str], text: str
) -> None:
    """Its rows come again from the topic: an INSERT that adds what is new to its result must not add them."""
    script = ScriptRun(spark, broker, lake, unique("s"), text)
    script.create("views", "regions", partitions=1)
    script.send("views", [(None, {"region": "a"})])
    script.run()
    script.send("views", [(None, {"region": "a"}), (None, {"region": "b"})])
    script.run()
    (table,) = lake.glob("**/sources/*")
    state = DeltaTable(str(table))
    state.restore(state.version() - 1, protocol_downgrade_allowed=True)
    if text == COUNTS:
        with pytest.raises(
            TableError, match=r"a writer other than this script did it, such as RESTORE.*--rebuild"
        ):
            script.run()
    script.run(rebuild=text == COUNTS)
    script.send("views", [(None, {"region": "b"})])
    script.run()
    assert {key["region"]: row and row["views"] for key, row in script.received("regions")} == {
        "a": 2,
        "b": 2,
    }
