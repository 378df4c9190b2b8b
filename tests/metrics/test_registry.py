"""Each metric of the manual is there, by Flink's name."""

from __future__ import annotations

import re

import pytest

from bridge.metrics.registry import METRICS, Kind

FLINKS = (
    *(
        "numRecordsIn",
        "numRecordsInPerSecond",
        "numBytesIn",
        "numBytesInPerSecond",
        "currentFetchEventTimeLag",
    ),
    *(
        "currentEmitEventTimeLag",
        "sourceIdleTime",
        "pendingRecords",
        "numRecordsOut",
        "numRecordsOutPerSecond",
    ),
    *("numBytesOut", "numBytesOutPerSecond", "currentSendTime"),
)
"""The metrics of the upsert-kafka manual."""


def test_the_metrics_of_the_manual() -> None:
    assert set(FLINKS) | {"watermarkLag"} == {metric.name for metric in METRICS if metric.is_flinks}


def test_the_manual_lists_no_other_metric(request: pytest.FixtureRequest) -> None:
    manuals = [p for p in (request.config.rootpath / "../shared/seeds").glob("001_*.txt") if p.is_file()]
    if not manuals:
        pytest.skip("the manuals are not on this machine")
    section = manuals[0].read_text().partition("Monitoring metrics")[2].partition("What's next")[0]
    assert set(re.findall(r"^([a-z]+[A-Z]\w+) ", section, re.MULTILINE)) == set(FLINKS)


def test_names_are_those_of_openmetrics() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert re.fullmatch(r"[a-zA-Z_]+", metric.name) and not metric.name.endswith("_total")
        assert metric.exposed.endswith("_total") == (metric.kind is Kind.COUNTER)
