"""What a script would do, by its text alone."""

from __future__ import annotations

import pytest

from bridge.pipelines.scripts.explain import explain_script, used_paths
from tests.sql.scripts import SOURCES, load, sink


def explained(
    query: str, columns: str = "a STRING, b BIGINT", key: str = "a", connector: str = ""
) -> dict[str, str]:
    chosen = connector or ("upsert-kafka" if key else "kafka")
    return explain_script(load(f"{SOURCES}{sink(columns, key, chosen)}INSERT INTO s\n{query};\n"))


def test_sources_and_folders() -> None:
    join = "SELECT o.id, u.city FROM users AS u JOIN orders AS o ON u.id = o.id"
    script = load(f"{SOURCES}{sink('b BIGINT, a STRING', 'b')}INSERT INTO s {join};\n")
    rows, base = explain_script(script), script.base
    assert rows["state"] == f"{base}/bridge-state/t"
    assert (
        rows["source users"]
        == f"upsert-kafka users: kept in {base}/bridge-state/t/sources/users, by key (id); it grows with the number of "
        "keys, and shrinks with each delete"
    )
    assert rows["source orders"] == f"delta {base}/lake/orders: read as it is, by key (id)"
    assert used_paths(script) == [f"{base}/bridge-state/t", f"{base}/lake/orders"]


def test_the_state_of_a_table_without_a_key_that_is_joined() -> None:
    rows = explained(
        "SELECT u.city, COUNT(*) FROM views AS v JOIN users AS u ON v.user_id = u.id GROUP BY u.city"
    )
    assert rows["source views"].endswith(
        "sources/views, all rows; a join needs them, so it grows with each row"
    )
    assert rows["INSERT s: computes"] == (
        "the rows of each (a) to which a changed row belongs; reads all rows of views; of users the rows whose (city) "
        "changed"
    )
    assert explained("SELECT region, COUNT(*) FROM views GROUP BY region")["source views"].endswith(
        ", all rows; it grows with each row"
    )


@pytest.mark.parametrize(
    ("closed", "growth"),
    [
        (
            "keep",
            "grows with each row; SET 'bridge.state.closed-windows' = 'remove' removes rows of closed windows",
        ),
        ("remove", "has the rows of open windows, as those of closed ones are removed"),
    ],
)
def test_how_the_state_of_windows_grows(closed: str, growth: str) -> None:
    events = SOURCES.replace("ts TIMESTAMP(3)", "ts TIMESTAMP(3), WATERMARK FOR ts AS ts", 1)
    query = (
        "SELECT window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE views, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) "
        "GROUP BY window_start, window_end"
    )
    text = f"SET 'bridge.state.closed-windows' = '{closed}';\n{events}{sink('a TIMESTAMP(3), b BIGINT', 'a')}"
    rows = explain_script(load(f"{text}INSERT INTO s {query};\n"))
    assert rows["source views"].endswith(f"sources/views, all rows; it {growth}")
    assert rows["INSERT s"].endswith("; it has one row for each (a)")


@pytest.mark.parametrize(
    ("query", "key", "connector", "growth"),
    [
        ("SELECT city, COUNT(*) FROM users GROUP BY city", "a", "", "has one row for each (a)"),
        ("SELECT region, user_id FROM views", "", "", "grows with each row that is added"),
        ("VALUES ('x', 1)", "", "", "does not grow"),
        (
            "SELECT u.city, v.user_id FROM views AS v JOIN users AS u ON v.user_id = u.id",
            "",
            "print",
            "has one row for each row of the query",
        ),
    ],
)
def test_how_a_result_grows(query: str, key: str, connector: str, growth: str) -> None:
    assert explained(query, key=key, connector=connector)["INSERT s"].endswith(f"results/s; it {growth}")


@pytest.mark.parametrize(
    ("query", "more", "computes"),
    [
        ("VALUES ('x', 1)", {}, "its rows once"),
        ("SELECT region, user_id FROM views", {"key": ""}, "the rows that views got since the last batch"),
        (
            "SELECT region, user_id FROM views",
            {},
            "the rows that views got since the last batch; the last row of each (a) counts",
        ),
        (
            "SELECT city, COUNT(*) FROM users GROUP BY city",
            {},
            "the rows of each (a) to which a changed row belongs; reads of users the rows whose (city) changed",
        ),
        (
            "SELECT 'all', COUNT(*) FROM users",
            {},
            "all rows from all rows of users, in every batch; those that differ are written",
        ),
        (
            "SELECT v.region, w.user_id FROM views AS v JOIN views AS w ON v.user_id = w.user_id",
            {"key": ""},
            "the joined rows of the rows that views got since the last batch; reads all rows of the other tables",
        ),
    ],
)
def test_what_is_computed(query: str, more: dict[str, str], computes: str) -> None:
    assert explained(query, **more)["INSERT s: computes"] == computes


@pytest.mark.parametrize(
    ("connector", "sends"),
    [
        (
            "upsert-kafka",
            "a record for each changed row, a tombstone for each deleted one, to s (at-least-once)",
        ),
        ("delta", "nothing: the result is the sink"),
        ("print", "its changes to the terminal"),
        ("blackhole", "nothing"),
    ],
)
def test_what_is_sent(connector: str, sends: str) -> None:
    rows = explained("SELECT city, COUNT(*) FROM users GROUP BY city", connector=connector)
    assert rows["INSERT s: sends"] == sends


def test_inserts_that_write_columns_of_one_table() -> None:
    table = sink("a STRING, b BIGINT, c INT", "a")
    one = "INSERT INTO s (a, b) SELECT city, COUNT(*) FROM users GROUP BY city;\n"
    script = load(f"{SOURCES}{table}{one}INSERT INTO s (a, c) SELECT region, page FROM views;\n")
    rows, folder = explain_script(script), f"{script.base}/bridge-state/t/results/s"
    assert (
        rows["INSERT s"]
        == f"line 5: aggregate, result in {folder}, its columns (b); it has one row for each (a)"
    )
    assert (
        rows["INSERT s-2"]
        == f"line 6: projection, result in {folder}, its columns (c); it has one row for each (a)"
    )
    assert rows["INSERT s: sends"] == "nothing: its rows are sent with those of the later INSERT into s"
    assert rows["INSERT s-2: sends"].startswith(
        "a record for each changed row, a tombstone for each deleted one, to s"
    )


def test_what_is_sent_in_a_format_of_changes() -> None:
    rows = explained("SELECT city, COUNT(*) FROM users GROUP BY city", key="", connector="debezium")
    assert rows["INSERT s: sends"] == "each change as debezium-json, to s (at-least-once)"
    rows = explained("SELECT region, user_id FROM views", key="")
    assert rows["INSERT s: sends"] == "each new row, to s (at-least-once)"
