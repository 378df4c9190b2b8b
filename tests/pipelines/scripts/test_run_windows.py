"""Scripts with windows run from topics to topics: watermarks of partitions, idle ones, late rows, and kills."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.errors import DefinitionError, TableError
from bridge.pipelines.scripts.state import ScriptState
from tests.delta.tables import create_fed
from tests.pipelines.scripts.scripts import MakeScript, ScriptRun

COUNTED = """
CREATE TABLE views (user_id BIGINT, ts TIMESTAMP(3), region STRING, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
  WITH ({kafka}, 'topic' = '{prefix}-views', 'scan.watermark.idle-timeout' = '{idle}');
CREATE TABLE per_minute (window_start TIMESTAMP(3), window_end TIMESTAMP(3), region STRING, pv BIGINT)
  WITH ({kafka}, 'topic' = '{prefix}-minutes');
INSERT INTO per_minute SELECT window_start, window_end, region, COUNT(*)
  FROM TABLE(TUMBLE(TABLE views, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, region;
"""


def view(time: str | None, region: str = "a") -> tuple[None, dict[str, Any]]:
    return None, {"user_id": 1, "ts": time and f"2026-11-25 10:{time}", "region": region}


def minutes(script: ScriptRun) -> list[tuple[str, str, int]]:
    """What was sent: the minute, the region and the count."""
    return sorted(
        (row["window_start"][14:16], row["region"], row["pv"]) for _, row in script.received("minutes")
    )


def warnings(script: ScriptRun) -> list[str]:
    return [r.warning for r in script.reports if r.verb == "insert" and r.warning]


REMOVING = "SET 'bridge.state.closed-windows' = 'remove';"
TOTALS = """
CREATE TABLE totals (region STRING, n BIGINT, PRIMARY KEY (region) NOT ENFORCED) WITH ('connector' = 'blackhole');
INSERT INTO totals SELECT region, COUNT(*) FROM views GROUP BY region;
"""


@pytest.mark.parametrize("goes_on", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_windows_close_with_the_watermark_and_late_rows_are_dropped(
    script_of: MakeScript, arm: Callable[[str, str], Path], spark: SparkSession, goes_on: bool
) -> None:
    """It goes on with a bounded run, another kill and what is left in the state, where windows close and drop, too."""
    script = script_of(REMOVING + COUNTED.replace("{idle}", "0 ms"))
    script.create("views", partitions=1)
    script.create("minutes")
    script.send("views", [view("00:10"), view("00:59.999"), view("01:04.998", "b")])
    script.run()
    assert minutes(script) == [] and warnings(script) == []
    script.send("views", [view("00:30"), view("01:04.999")])
    script.run()
    assert minutes(script) == [("00", "a", 3)], "10:01:04.999 minus 5 s is the last millisecond of the window"
    assert [r.watermark_ms for r in script.reports if r.verb == "insert"] == [1795600859999]

    script.send("views", [view("00:20"), view("01:20"), view("02:10")])
    fired = arm("script.after-commit", "raise")
    with pytest.raises(Exception, match="failpoint"):
        script.run()
    assert fired.exists()
    script.run()
    assert minutes(script) == [("01", "a", 2), ("01", "b", 1)], (
        "sent once, though the first run died after its commit"
    )
    assert script.run().rounds == 1 and not script.reports

    if not goes_on:
        script.send("views", [view("01:30"), view("03:10", "b")])
        script.run()
        assert minutes(script) == [("02", "a", 1)]
        assert warnings(script) == ["1 late rows dropped: their windows were closed"]
        return
    unbounded = script.text
    script.text = unbounded.replace("'0 ms'", "'0 ms', 'scan.bounded.mode' = 'latest-offset'")
    assert script.text != unbounded
    script.send("views", [view("01:30"), view("02:20", "b")])
    fired = arm("script.before-commit", "raise")
    with pytest.raises(Exception, match="failpoint"):
        script.run()
    assert fired.exists() and minutes(script) == []
    assert script.run(every_seconds=600).rounds == 2, "all sources have ended, so the run ends, too"
    assert minutes(script) == [("02", "a", 1), ("02", "b", 1)]
    assert warnings(script) == ["1 late rows dropped: their windows were closed"]
    assert script.run().rounds == 1 and not script.reports

    script.text = unbounded
    script.send("views", [view("02:59.999"), view("03:01"), view("04:06")])
    script.run()
    assert minutes(script) == [("03", "a", 1)], "02 is closed, later windows are not"
    assert warnings(script) == ["1 late rows dropped: their windows were closed"]

    state = ScriptState(script.script())
    kept = spark.read.format("delta").load(str(state.source_target(state.tables["views"])))
    assert sorted(f"{row['ts']:%M:%S}" for row in kept.collect()) == [
        *("00:20", "01:20", "01:30", "02:10", "02:20", "02:59", "03:01", "04:06")
    ], "the first two batches had rows of closed windows only"
    script.text += TOTALS
    with pytest.raises(TableError, match="rows of closed windows were removed from the state of `views`"):
        script.run()
    script.text = unbounded.replace("COUNT(*)", "COUNT(user_id)")
    with pytest.raises(
        DefinitionError, match="another query cannot be computed, as rows of closed windows were"
    ):
        script.run(rebuild=True)


def test_a_partition_without_rows_holds_windows_back_until_it_is_idle(script_of: MakeScript) -> None:
    script = script_of(COUNTED.replace("{idle}", "0 ms"))
    script.create("views", partitions=2)
    script.create("minutes")
    producer = [view("00:10"), view("05:00")]
    script.send_to("views", 0, producer)
    script.run()
    assert minutes(script) == []
    assert warnings(script) == [
        f"no window can close yet: {script.topic('views')}-1 had no row; set 'scan.watermark.idle-timeout' if it may "
        "stay so"
    ]
    script.text = script.text.replace("'0 ms'", "'1 ms'")
    script.send_to("views", 0, [view("05:01")])
    script.run()
    assert minutes(script) == [("00", "a", 1)]


def test_rows_without_a_time_are_refused(script_of: MakeScript) -> None:
    script = script_of(COUNTED.replace("{idle}", "0 ms"))
    script.create("views", partitions=1)
    script.create("minutes")
    script.send("views", [view("00:10"), view(None)])
    with pytest.raises(TableError) as error:
        script.run()
    assert str(error.value) == (
        "INSERT per_minute: 1 changed rows of `views` have NULL in ts, the column of its WATERMARK, so they belong to "
        "no window; nothing was written. Leave such rows out in a view: CREATE VIEW ... AS SELECT * FROM views WHERE "
        "ts IS NOT NULL"
    )
    script.text = script.text.replace(
        "INSERT INTO", "CREATE VIEW timed AS SELECT * FROM views WHERE ts IS NOT NULL;\nINSERT INTO"
    )
    script.text = script.text.replace("TABLE views, DESC", "TABLE timed, DESC")
    script.send("views", [view("09:00")])
    script.run()
    assert minutes(script) == [("00", "a", 1)]


HOPS = """
CREATE TABLE t (id INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('connector' = 'delta', 'path' = 't');
CREATE TABLE s (id INT, we TIMESTAMP(3), PRIMARY KEY (id, we) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 's');
INSERT INTO s SELECT id, window_end FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '2' MINUTES);
"""


def test_rows_with_their_windows_follow_updates(
    script_of: MakeScript, spark: SparkSession, lake: Path
) -> None:
    """Without GROUP BY no window closes: each row of the source is there with each of its windows."""
    create_fed(spark, f"{lake}/t", "id INT, ts TIMESTAMP_NTZ")
    first = "(1, TIMESTAMP_NTZ '2026-11-25 10:00:30'), (2, TIMESTAMP_NTZ '2026-11-25 10:05:00')"
    spark.sql(f"INSERT INTO delta.`{lake}/t` VALUES {first}")
    script = script_of(HOPS)

    def found() -> list[tuple[int, str]]:
        rows = spark.read.format("delta").load(f"{lake}/s").collect()
        return sorted((row["id"], f"{row['we']:%H:%M}") for row in rows)

    script.run()
    assert found() == [(1, "10:01"), (1, "10:02"), (2, "10:06"), (2, "10:07")]
    spark.sql(f"UPDATE delta.`{lake}/t` SET ts = TIMESTAMP_NTZ '2026-11-25 10:01:00' WHERE id = 1")
    spark.sql(f"DELETE FROM delta.`{lake}/t` WHERE id = 2")
    script.run()
    assert found() == [(1, "10:02"), (1, "10:03")]
    spark.sql(f"INSERT INTO delta.`{lake}/t` VALUES (3, NULL)")
    with pytest.raises(TableError) as error:
        script.run()
    assert str(error.value) == (
        "INSERT script.s: column ts of t is NULL, and a row without a time belongs to no window; leave such rows out "
        "with WHERE ... IS NOT NULL in a view"
    )


JOINED = """
CREATE TABLE views (id BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED)
  WITH ({upsert}, 'topic' = '{prefix}-views');
CREATE TABLE clicks (id BIGINT, ts TIMESTAMP_LTZ(3), view BIGINT, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED)
  WITH ({upsert}, 'topic' = '{prefix}-clicks');
CREATE TABLE seen (we TIMESTAMP(3), view BIGINT, click BIGINT, PRIMARY KEY (we, view, click) NOT ENFORCED)
  WITH ({upsert}, 'topic' = '{prefix}-seen');
CREATE TABLE totals (we TIMESTAMP(3), n BIGINT, PRIMARY KEY (we) NOT ENFORCED)
  WITH ('connector' = 'delta', 'path' = 'totals');
CREATE TABLE days (day STRING, n BIGINT, PRIMARY KEY (day) NOT ENFORCED) WITH ({upsert}, 'topic' = '{prefix}-days');
INSERT INTO seen SELECT v.window_end, v.id, c.id
  FROM TABLE(TUMBLE(TABLE views, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) AS v
  JOIN TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) AS c
  ON v.window_start = c.window_start AND v.window_end = c.window_end AND v.id = c.view;
INSERT INTO totals SELECT window_end, COUNT(*)
  FROM TABLE(TUMBLE(TABLE views, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
INSERT INTO days SELECT DATE_FORMAT(we, 'yyyy-MM-dd'), SUM(n) FROM totals GROUP BY DATE_FORMAT(we, 'yyyy-MM-dd');
"""


def test_windows_are_joined_and_read_by_another_insert(script_of: MakeScript) -> None:
    script = script_of(JOINED)
    script.create("views", "clicks", partitions=1)

    def click(id: int, time: str, view: int) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"id": id}, {"id": id, "ts": f"2026-11-25 10:{time}Z", "view": view}

    views = [({"id": n}, {"id": n, "ts": f"2026-11-25 10:0{n}:30"}) for n in range(1, 4)]
    script.send("views", views)
    script.send("clicks", [click(7, "01:50", 1), click(8, "02:10", 1), click(9, "02:20", 2)])
    script.run()
    found = sorted((k["we"][14:16], k["view"], k["click"]) for k, _ in script.received("seen"))
    assert found == [("02", 1, 7)], "views are at 10:03:30, clicks at 10:02:20"
    assert sorted((k["day"], r["n"]) for k, r in script.received("days")) == [("2026-11-25", 2)]
    script.send("clicks", [click(9, "02:25", 3), click(10, "09:00", 1)])
    script.run()
    assert sorted((k["we"][14:16], k["view"], k["click"]) for k, _ in script.received("seen")) == [], (
        "click 9 was moved to a view of another minute before its window closed"
    )
    script.received("days")
    script.send("clicks", [click(11, "03:40", 3)])
    script.text = script.text.replace("-views')", "-views', 'scan.bounded.mode' = 'latest-offset')")
    script.run()
    assert sorted((k["we"][14:16], k["view"], k["click"]) for k, _ in script.received("seen")) == [
        ("04", 3, 11)
    ], "the views have ended at 10:03:30, the clicks are at 10:09"
    assert [r["n"] for _, r in script.received("days")] == [3], "this one reads views only"


FIRST = """
CREATE TABLE views (user_id BIGINT, ts TIMESTAMP(3), region STRING, WATERMARK FOR ts AS ts)
  WITH ({kafka}, 'topic' = '{prefix}-views');
CREATE TABLE firsts (ended TIMESTAMP(3), region STRING, place BIGINT) WITH ({kafka}, 'topic' = '{prefix}-firsts');
INSERT INTO firsts SELECT window_end, region, place FROM (SELECT *, ROW_NUMBER() OVER (
  PARTITION BY window_start, window_end ORDER BY n DESC, region) AS place FROM (
  SELECT window_start, window_end, region, COUNT(*) AS n
  FROM TABLE(TUMBLE(TABLE views, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, region))
WHERE place <= 2;
"""


def test_places_of_a_window_go_to_a_sink_that_only_takes_rows(script_of: MakeScript) -> None:
    """ROW_NUMBER is INT in Spark and BIGINT in Flink."""
    script = script_of(FIRST)
    script.create("views", partitions=1)
    script.create("firsts")
    script.send(
        "views", [view("00:10"), view("00:20", "b"), view("00:30", "b"), view("00:40", "c"), view("01:00")]
    )
    script.run()
    assert sorted((row["place"], row["region"]) for _, row in script.received("firsts")) == [
        (1, "b"),
        (2, "a"),
    ]
