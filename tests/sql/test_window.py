"""Rows of windows: which operations keep them, which keys they have, and what is refused.

The last window of a time, compared with all windows around it.
"""

from __future__ import annotations

import pytest

from bridge.errors import DefinitionError
from bridge.sql import InsertPlan
from bridge.sql.window import WindowSpan
from tests.sql.scripts import CONNECTORS, KAFKA, UPSERT, load, sink

TABLES = (
    "CREATE TABLE views (user_id BIGINT, ts TIMESTAMP(3), region STRING, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) "
    f"WITH ('connector' = 'kafka', 'topic' = 'views', {KAFKA}, 'format' = 'json');\n"
    "CREATE TABLE clicks (id BIGINT, at TIMESTAMP_LTZ(3), region STRING, WATERMARK FOR at AS at, "
    f"PRIMARY KEY (id) NOT ENFORCED) WITH ({UPSERT}, 'topic' = 'clicks', 'scan.watermark.idle-timeout' = '1 min');\n"
    f"CREATE TABLE users (id BIGINT, city STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ({UPSERT}, 'topic' = 'users');\n"
    "CREATE VIEW some AS SELECT * FROM views WHERE user_id > 0;\n"
)
TUMBLE = "TABLE(TUMBLE(TABLE views, DESCRIPTOR(ts), INTERVAL '10' MINUTES))"
HOP = "TABLE(HOP(TABLE views, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES))"
CUMULATE = "TABLE(CUMULATE(TABLE views, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES))"
CLICKS = "TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(at), INTERVAL '10' MINUTES))"
COLUMNS = "ws TIMESTAMP(3), we TIMESTAMP(3), region STRING, n BIGINT"
COUNTED = (
    "SELECT window_start, window_end, region, COUNT(*) AS n FROM {} GROUP BY window_start, window_end, region"
)


def plan(query: str, columns: str = COLUMNS, key: str = "", lateness: str = "") -> InsertPlan:
    """The plan of an INSERT that begins in line 7 (8 with a lateness)."""
    head = f"SET 'table.exec.emit.allow-lateness' = '{lateness}';\n" if lateness else ""
    target = sink(columns, key, "upsert-kafka" if key else "kafka")
    return load(f"{head}{TABLES}{target}INSERT INTO s\n{query};").inserts[0]


def refusal(query: str, columns: str = COLUMNS, key: str = "", lateness: str = "") -> str:
    with pytest.raises(DefinitionError) as error:
        plan(query, columns, key, lateness)
    return str(error.value)


@pytest.mark.parametrize("table", [TUMBLE, HOP, CUMULATE])
def test_a_window_aggregate_only_adds_rows(table: str) -> None:
    found = plan(COUNTED.format(table))
    assert not found.is_updating and found.key == () and not found.parts
    assert found.windows is not None and found.windows.lateness_ms == 0
    (time,) = found.windows.event_times
    assert (time.source, time.column, time.delay_ms, time.idle_timeout_ms) == ("views", "ts", 5000, 0)
    assert "windows_after" in found.spark_sql and "CLOSED_WINDOWS" not in found.spark_sql


def test_a_source_with_updates_gives_rows_that_are_only_added() -> None:
    found = plan(COUNTED.format(CLICKS))
    assert not found.is_updating and found.windows is not None
    assert found.windows.event_times[0].idle_timeout_ms == 60_000


@pytest.mark.parametrize(
    ("table", "key"),
    [
        (TUMBLE, "ws, we, region"),
        (TUMBLE, "ws, region"),
        (TUMBLE, "we, region"),
        (HOP, "we, region"),
        (CUMULATE, "we, region"),
    ],
)
def test_keys(table: str, key: str) -> None:
    found = plan(COUNTED.format(table), key=key)
    assert found.key == tuple(key.split(", ")) and not found.is_updating and not found.keeps_last


def test_rows_without_a_key_do_not_replace_each_other() -> None:
    query = (
        "SELECT window_end, user_id FROM (SELECT window_end, user_id, ROW_NUMBER() OVER (PARTITION BY window_start, "
        f"window_end ORDER BY ts) AS rn FROM {TUMBLE}) AS r WHERE rn <= 2"
    )
    assert refusal(query, "we TIMESTAMP(3), user_id BIGINT", "we, user_id") == (
        "t.sql:6:13: `s` replaces rows by its PRIMARY KEY, but it selects no key by which a row replaces its former "
        "one; select the columns of the key of each source, or those of GROUP BY"
    )


def test_the_start_of_a_cumulate_window_is_no_key() -> None:
    assert refusal(COUNTED.format(CUMULATE), key="ws, region") == (
        "t.sql:6:13: the PRIMARY KEY of sink `s` is [ws, region], but the key of the query is [we, region] or "
        "[ws, we, region], so rows would overwrite each other or be left behind; declare the query's key as PRIMARY "
        "KEY, or keep one row of each: ROW_NUMBER() OVER (PARTITION BY ws, region ORDER BY ...) in a subquery, and "
        "WHERE it is 1"
    )


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        (f"SELECT region, COUNT(*) FROM {TUMBLE} GROUP BY region", "region STRING, n BIGINT"),
        (f"SELECT window_start, region, COUNT(*) FROM {TUMBLE} GROUP BY window_start, region",
         "ws TIMESTAMP(3), region STRING, n BIGINT"),
    ],
)  # fmt: skip
def test_groups_without_both_bounds_are_groups_like_others(query: str, columns: str) -> None:
    found = plan(query, columns, ", ".join(c.split()[0] for c in columns.split(", ")[:-1]))
    assert found.windows is None and found.is_updating and "windows_after" not in found.spark_sql


def test_rows_with_their_windows_are_rows_of_the_source() -> None:
    found = plan(
        f"SELECT window_start, window_time, user_id FROM {HOP}", "a TIMESTAMP(3), b TIMESTAMP(3), c BIGINT"
    )
    assert found.windows is None and not found.is_updating and "EXPLODE(SEQUENCE(" in found.spark_sql


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT window_start, window_end, region, n FROM ({COUNTED.format(TUMBLE)}) AS c WHERE n > 1",
        COUNTED.format(TUMBLE) + " HAVING COUNT(*) > 1",
        COUNTED.format(TUMBLE.replace("views", "some")),
        f"WITH c AS ({COUNTED.format(HOP)}) SELECT window_start, window_end, region, SUM(n) FROM c "
        "GROUP BY window_start, window_end, region",
        f"SELECT DISTINCT window_start, window_end, region, n FROM ({COUNTED.format(TUMBLE)}) AS c",
        f"SELECT window_start, window_end, region, rn FROM (SELECT window_start, window_end, region, ROW_NUMBER() OVER "
        f"(PARTITION BY window_start, window_end ORDER BY n DESC) AS rn FROM ({COUNTED.format(TUMBLE)}) AS c) AS r "
        "WHERE rn <= 3",
        f"SELECT window_start, window_end, region, rn FROM (SELECT window_start, window_end, region, ROW_NUMBER() OVER "
        f"(PARTITION BY window_start, window_end, region ORDER BY ts) AS rn FROM {TUMBLE}) AS r WHERE rn = 1",
        f"SELECT v.window_start, c.window_end, v.region, c.id FROM {TUMBLE} AS v JOIN {CLICKS} AS c "
        "ON v.window_start = c.window_start AND v.window_end = c.window_end AND v.region = c.region",
        f"SELECT COALESCE(v.window_start, c.window_start), COALESCE(v.window_end, c.window_end), v.region, c.n FROM "
        f"({COUNTED.format(TUMBLE)}) AS v FULL JOIN ({COUNTED.format(CLICKS)}) AS c ON v.window_start = c.window_start "
        "AND v.window_end = c.window_end AND v.region = c.region",
        f"{COUNTED.format(TUMBLE)} UNION ALL {COUNTED.format(HOP)}",
    ],
)  # fmt: skip
def test_what_keeps_windows(query: str) -> None:
    found = plan(query)
    assert found.windows is not None and not found.is_updating
    assert {t.source for t in found.windows.event_times} == {s.name for s in found.sources}


WAY_OUT = (
    "these rows come when their window closes. Write them into a table with one INSERT, and read that table with "
    "another"
)


@pytest.mark.parametrize(
    ("query", "what"),
    [
        (f"SELECT region, SUM(n) FROM ({COUNTED.format(TUMBLE)}) AS c GROUP BY region",
         "GROUP BY without window_start and window_end over rows of windows"),
        (f"SELECT SUM(n) FROM ({COUNTED.format(TUMBLE)}) AS c",
         "GROUP BY without window_start and window_end over rows of windows"),
        (f"SELECT DISTINCT region FROM ({COUNTED.format(TUMBLE)}) AS c",
         "DISTINCT without window_start and window_end over rows of windows"),
        (f"SELECT region FROM (SELECT region, ROW_NUMBER() OVER (PARTITION BY region ORDER BY n) AS rn FROM "
         f"({COUNTED.format(TUMBLE)}) AS c) AS r WHERE rn = 1",
         "ROW_NUMBER without PARTITION BY window_start, window_end over rows of windows"),
        (f"SELECT c.region FROM ({COUNTED.format(TUMBLE)}) AS c JOIN users AS u ON c.n = u.id",
         "a join of rows of windows without window_start = window_start AND window_end = window_end"),
        (f"SELECT region FROM ({COUNTED.format(TUMBLE)}) AS c UNION ALL SELECT city FROM users",
         "UNION of rows of windows and other rows"),
        (f"SELECT region FROM ({COUNTED.format(TUMBLE)}) AS c UNION SELECT region FROM ({COUNTED.format(HOP)}) AS d",
         "DISTINCT without window_start and window_end over rows of windows"),
    ],
)  # fmt: skip
def test_what_is_refused(query: str, what: str) -> None:
    assert (
        refusal(query, "a STRING", "a").partition(": ")[2]
        == f"{what} is not supported in this version: {WAY_OUT}"
    )


def test_windows_of_windows_are_two_inserts() -> None:
    query = (
        f"WITH c AS (SELECT window_time AS ts, region FROM {TUMBLE}) "
        "SELECT window_start, window_end, region, COUNT(*) FROM TUMBLE(TABLE c, DESCRIPTOR(ts), INTERVAL '1' HOUR) "
        "GROUP BY window_start, window_end, region"
    )
    assert refusal(query).endswith(
        "The window function requires the timecol is a time attribute type, but `ts` is TIMESTAMP(3) NOT NULL without "
        "one; declare WATERMARK FOR ts AS ts in its table. Columns with a WATERMARK: none"
    )
    whole = f"WITH c AS (SELECT * FROM {TUMBLE}) SELECT user_id FROM TUMBLE(TABLE c, DESCRIPTOR(ts), INTERVAL '1' DAY)"
    assert refusal(whole, "a BIGINT").endswith(
        "a window over rows of windows (`c`) is not supported in this version: write the inner windows into a table "
        "with one INSERT, declare WATERMARK FOR window_time AS window_time in it, and read it with another INSERT"
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("TUMBLE(TABLE users, DESCRIPTOR(city), INTERVAL '1' DAY)",
         "t.sql:7:46: The window function requires the timecol is a time attribute type, but `city` is STRING without "
         "one; declare WATERMARK FOR city AS city in its table. Columns with a WATERMARK: none"),
        ("TUMBLE(TABLE views, DESCRIPTOR(at), INTERVAL '1' DAY)",
         "t.sql:7:46: `views` has no column `at`; its columns with a WATERMARK: `ts`"),
        ("TUMBLE(TABLE viewz, DESCRIPTOR(ts), INTERVAL '1' DAY)",
         "t.sql:7:28: there is no table or view `viewz`; did you mean `views`?"),
    ],
)  # fmt: skip
def test_bad_tables_and_columns(call: str, message: str) -> None:
    assert refusal(f"SELECT * FROM {call}") == message


def test_allowed_lateness_makes_rows_that_are_updated() -> None:
    found = plan(COUNTED.format(TUMBLE), key="ws, region", lateness="1 h")
    assert found.is_updating and found.windows is not None
    assert (found.windows.lateness_ms, found.windows.column, found.windows.ends_after_ms) == (
        3_600_000,
        "ws",
        600_000,
    )
    assert refusal(COUNTED.format(TUMBLE), lateness="1 h") == (
        "t.sql:7:13: Table sink 'default_catalog.default_database.s' doesn't support consuming update and delete "
        "changes which is produced by node WindowAggregate (SET 'table.exec.emit.allow-lateness'); write to an "
        "'upsert-kafka' table with PRIMARY KEY (we, region), or use a format with updates, such as 'debezium-json'"
    )


def test_a_lateness_without_windows_has_no_effect() -> None:
    text = "SET 'table.exec.emit.allow-lateness' = '1 h';\n" + TABLES + sink("a BIGINT", "", "kafka")
    script = load(f"{text}INSERT INTO s SELECT user_id FROM views;")
    assert script.warnings[0] == (
        "SET 'table.exec.emit.allow-lateness' has no effect: no INSERT has rows that come when their window closes"
    )


def test_which_rows_of_closed_windows_are_removed() -> None:
    text = f"SET 'bridge.state.closed-windows' = 'remove';{TABLES}{sink(COLUMNS, '', 'kafka')}"
    windows = f"INSERT INTO s {COUNTED.format(TUMBLE)};"
    script = load(text + windows)
    assert script.removes_closed and script.warnings == ()
    assert not load(text.replace("'remove'", "'keep'") + windows).removes_closed
    ((plan, time),) = script.windowed_reads("views")
    assert (plan.name, time.source, time.longest_ms) == ("s", "views", 600_000)
    other = load(f"{text}{windows}INSERT INTO s SELECT ts, ts, region, user_id FROM views;")
    assert other.windowed_reads("views") == ()
    assert other.warnings == (
        "SET 'bridge.state.closed-windows' removes no rows of `views`: INSERT s-2 needs them again",
    )


def test_a_bound_is_no_part_of_the_fingerprint() -> None:
    """It may be removed later, and the script goes on."""
    text = f"{TABLES}{sink(COLUMNS, '', 'kafka')}INSERT INTO s {COUNTED.format(TUMBLE)};"
    bounded = text.replace("'topic' = 'views'", "'topic' = 'views', 'scan.bounded.mode' = 'latest-offset'")
    assert bounded != text and load(bounded).warnings == ()
    assert load(bounded).inserts[0].fingerprint == load(text).inserts[0].fingerprint


def test_the_watermark_is_part_of_the_fingerprint() -> None:
    text = f"{TABLES}{sink(COLUMNS, '', 'kafka')}INSERT INTO s {COUNTED.format(TUMBLE)};"
    one, other = (load(t).inserts[0].fingerprint for t in (text, text.replace("'5' SECOND", "'6' SECOND")))
    assert one != other and "delta" in CONNECTORS


@pytest.mark.parametrize(
    ("size", "step", "offset"), [(30, 30, 0), (30, 30, -7), (45, 15, 0), (45, 15, 4), (10, 10, 95)]
)
def test_the_end_of_the_last_window(size: int, step: int, offset: int) -> None:
    span = WindowSpan(size, step, offset)
    for time in range(-100, 100):
        starts = (s for s in range(-300, 300) if (s - offset) % step == 0 and s <= time < s + size)
        assert span.last_end_ms(time) == max(starts) + size
