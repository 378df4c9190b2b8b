"""The fingerprint of a plan changes with what changes its rows, and with nothing else."""

from __future__ import annotations

import pytest

from tests.sql.scripts import SOURCES, load, sink

QUERY = "SELECT region, COUNT(*) FROM v WHERE region <> 'x' GROUP BY region"
SCRIPT = (
    f"{SOURCES}{sink('a STRING, b BIGINT', 'a')}CREATE VIEW v AS SELECT region, ok FROM views WHERE ok;\n"
    f"INSERT INTO s {QUERY};\n"
)


def fingerprint(text: str) -> str:
    return load(text).inserts[0].fingerprint


def test_it_stays_the_same_in_all_versions() -> None:
    assert fingerprint(SCRIPT) == "05e6b9e0ba5cf31f"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("GROUP BY", "\n  group /* here */ BY -- and there\n"),
        ("SELECT region, COUNT(*)", "SELECT `region`, count(*)"),
        ("'properties.bootstrap.servers' = 'b:1'", "'properties.bootstrap.servers' = 'c:2'"),
        ("user_id BIGINT", "user_id INT"),
        ("CREATE VIEW v", "SET 'parallelism.default' = '1';\nCREATE VIEW v"),
    ],
)
def test_what_changes_no_row(old: str, new: str) -> None:
    assert old in SCRIPT
    assert fingerprint(SCRIPT.replace(old, new)) == fingerprint(SCRIPT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("'x'", "'X'"),
        ("'x'", "'${env:CITY:y}'"),
        ("COUNT(*)", "COUNT(region)"),
        ("WHERE ok", "WHERE NOT ok"),
        ("'topic' = 'views'", "'topic' = 'views2'"),
        ("region STRING", "region VARCHAR(5)"),
        ("b BIGINT", "b DECIMAL(20, 0)"),
    ],
)
def test_what_changes_rows(old: str, new: str) -> None:
    assert old in SCRIPT
    assert fingerprint(SCRIPT.replace(old, new)) != fingerprint(SCRIPT)
