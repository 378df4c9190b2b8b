"""SET: which keys are known, and what the others raise."""

from __future__ import annotations

import pytest

from bridge.definition import BadRecords
from bridge.options.model import Support
from bridge.sql.parse import parse_script
from bridge.sql.settings import KEYS, Settings, settings
from tests.sql.scripts import load, script_refusal


def test_values() -> None:
    text = "SET 'bridge.state' = 'lake/state'; SET 'pipeline.name' = 'orders';"
    assert settings(parse_script(text, "t.sql")) == Settings("orders", "lake/state")


def test_nothing_is_set() -> None:
    assert settings(()) == Settings()


def test_the_bound_of_a_step() -> None:
    for value, seconds in (("2 h", 7200.0), ("0 s", 0.0)):
        script = load(f"SET 'bridge.step-timeout' = '{value}';")
        assert script.step_timeout_seconds == seconds
    assert load("").step_timeout_seconds == 600.0
    assert "text does not start with a number" in script_refusal("SET 'bridge.step-timeout' = 'long';")


def test_what_becomes_of_bad_records() -> None:
    assert load("").bad_records is BadRecords.FAIL
    assert load("SET 'bridge.bad-records' = 'skip';").bad_records is BadRecords.SKIP
    assert load("SET 'bridge.bad-records' = 'quarantine';").bad_records is BadRecords.QUARANTINE
    refused = script_refusal("SET 'bridge.bad-records' = 'drop';")
    assert "Supported values are [fail, quarantine, skip]" in refused


def test_a_key_without_effect_is_a_warning() -> None:
    found = settings(parse_script("SET 'parallelism.default' = '4'", "t.sql"))
    assert found.warnings == (
        "SET 'parallelism.default' has no effect: Spark decides it; pass --conf to the command",
    )


@pytest.mark.parametrize("key", [k.key for k in KEYS if k.support is Support.REFUSED])
def test_refused_keys(key: str) -> None:
    reason = next(k.reason for k in KEYS if k.key == key)
    assert script_refusal(f"SET '{key}' = '1 h';") == f"t.sql:1:5: SET '{key}' is refused: {reason}"


def test_state_that_is_never_forgotten() -> None:
    """Flink's default may be written out."""
    for value in ("0", "0 ms", "0 d"):
        assert load(f"SET 'table.exec.state.ttl' = '{value}';").warnings == ()
    assert "text does not start with a number" in script_refusal("SET 'table.exec.state.ttl' = 'never';")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "SET 'bridge.stat' = 'x';",
            "1:5: SET 'bridge.stat': this key is not known; did you mean 'bridge.state'?",
        ),
        (
            "SET 'xyz' = 'x';",
            f"1:5: SET 'xyz': this key is not known; known keys are {', '.join(sorted(k.key for k in KEYS))}",
        ),
        (
            "SET 'bridge.state' = ' ';",
            "1:5: SET 'bridge.state': the value is empty; set a value, or remove the statement",
        ),
        (
            "SET 'bridge.state' = 'a';\nSET 'bridge.state' = 'a';",
            "2:5: 'bridge.state' is set twice; remove one",
        ),
        (
            "SET 'execution.runtime-mode' = 'batch';",
            "1:5: SET 'execution.runtime-mode': Unsupported value 'batch'. Supported values are [streaming, "
            "STREAMING].",
        ),
        (
            "CREATE TABLE s (a INT) WITH ('connector' = 'print');\nINSERT INTO s VALUES (1);\nSET "
            "'bridge.state' = 'a';",
            "3:1: SET 'bridge.state' has no effect on the INSERTs before it; move it before the first INSERT",
        ),
        (
            "SET 'bridge.state' = '${file:state}';",
            "1:5: ${file:state} cannot be read: No such file or directory",
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert script_refusal(text) == f"t.sql:{message}"


def test_an_idle_timeout_of_all_sources_that_have_none() -> None:
    """As in Flink, `scan.watermark.idle-timeout` of a table goes before it."""
    table = (
        "CREATE TABLE {0} (id INT, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH ('connector' = 'kafka', "
        "'topic' = '{0}', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json', "
        "'scan.startup.mode' = 'earliest-offset'{1});\n"
    )
    options = "'connector' = 'delta', 'path' = 'd'"
    delta = f"CREATE TABLE d (id INT, at TIMESTAMP(6), WATERMARK FOR at AS at) WITH ({options});\n"
    inserts = "".join(
        f"CREATE TABLE s{n} (e TIMESTAMP(3), n BIGINT, PRIMARY KEY (e) NOT ENFORCED) WITH ('connector' = 'print');\n"
        f"INSERT INTO s{n} SELECT window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE {n}, DESCRIPTOR(at), "
        "INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;\n"
        for n in "abd"
    )
    tables = table.format("a", "") + table.format("b", ", 'scan.watermark.idle-timeout' = '1 s'") + delta
    found = {}
    for given in ("", "SET 'table.exec.source.idle-timeout' = '5 s';\n"):
        script = load(given + tables + inserts)
        windows = [plan.windows for plan in script.inserts]
        found[given] = [w.event_times[0].idle_timeout_ms for w in windows if w is not None]
    assert list(found.values()) == [[0, 1000, 0], [5000, 1000, 5000]]
    assert [t.topic.idle_timeout_ms for t in script.tables if t.topic is not None] == [5000, 1000]


def test_the_time_zone_in_which_scripts_compute() -> None:
    assert load("SET 'table.local-time-zone' = 'UTC';").warnings == ()
    assert "a script computes times in UTC" in script_refusal(
        "SET 'table.local-time-zone' = 'Europe/Berlin';"
    )
