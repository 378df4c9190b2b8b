"""Faults are drawn, rules are shortened, and each difference between faults and alerts is named."""

from __future__ import annotations

import pytest

from benchmarks.soak_kills import ALERTS, RULES, Fault, drawn, scaled, unlike

FAULTS = [
    Fault(20.0, "down", "ingest"),
    Fault(140.0, "bad record", "ingest"),
    Fault(260.0, "kill", "publish"),
]
FIRED = {("BridgeDown", "ingest"), ("BridgeNotFresh", "ingest"), ("BridgeBadRecords", "ingest")}


def test_each_kind_is_there_in_ten_minutes() -> None:
    faults = drawn(7, 600.0)
    assert {(fault.kind, fault.verb) for fault in faults} == set(ALERTS) and len(faults) == 5
    assert faults == drawn(7, 600.0) != drawn(8, 600.0)
    times = [fault.after for fault in faults]
    assert times == sorted(times) and times[-1] + faults[-1].away_seconds < 600
    assert len(drawn(7, 180.0)) == 1


def test_times_of_rules_are_a_tenth_and_other_limits_stay() -> None:
    rules = scaled(RULES.read_text())
    assert "for: 30s" in rules and "for: 5m" not in rules and "[10m]" not in rules
    assert "time() - bridge_last_commit_timestamp_seconds > 60)" in rules
    assert "rate(bridge_freshness_seconds_bucket[60s]))) > 30\n" in rules
    assert "bridge_transaction_age_seconds > 30\n" in rules
    assert "bridge_pending_versions > 100\n" in rules and "[60s]) > 10000" in rules
    assert "bridge_log_commits > 1000\n" in rules


@pytest.mark.parametrize(
    ("fired", "resets", "words"),
    [
        (FIRED, {"ingest": 1, "publish": 1}, []),
        (FIRED - {("BridgeDown", "ingest")}, {}, ["BridgeDown of the ingest did not fire"]),
        (FIRED | {("BridgeDown", "publish")}, {}, ["BridgeDown of the publish fired without a fault"]),
        (FIRED, {"ingest": 2}, ["counters of the ingest went back 2 times, it was started 1 times"]),
    ],
)
def test_what_is_unlike(fired: set[tuple[str, str]], resets: dict[str, float], words: list[str]) -> None:
    assert unlike(FAULTS, fired, resets) == words
