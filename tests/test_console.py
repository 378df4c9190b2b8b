"""Output in a pipe and with --quiet."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from bridge.console import Screen, batch_line, duration, log_as, summary_rows
from bridge.metrics import BatchReport, Summary
from bridge.metrics.events import SCHEMA

INGEST = BatchReport(
    pipeline="orders",
    verb="ingest",
    batch=3,
    version=5,
    records_in=20_000,
    inserted=900,
    updated=80,
    deleted=7,
    unchanged=13,
    pending_records=1_234,
    bad_records=2,
    keys_in_two_partitions=1,
    seconds=2.04,
)
PUBLISH = BatchReport(
    pipeline="out",
    verb="publish",
    batch=0,
    version=9,
    records_out=6,
    tombstones=1,
    seconds=75,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (12.4, "12 s"),
        (200, "3 min 20 s"),
        (7260, "2 h 1 min"),
        (345_600, "4 d 0 h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_batch_is_one_line() -> None:
    assert batch_line(INGEST) == (
        "ingest orders  batch 3  version 5  20,000 records  +I 900  +U 80  -D 7  unchanged 13  "
        "1,234 records behind  2 bad records not applied  1 keys in two partitions  2.0 s"
    )
    assert batch_line(PUBLISH) == (
        "publish out  batch 0  version 9  6 records, 1 of them tombstones  1 min 15 s"
    )


def test_lost_records_are_reported() -> None:
    assert batch_line(replace(PUBLISH, lost=1_000)) == (
        "publish out  batch 0  version 9  6 records, 1 of them tombstones  1,000 records lost  1 min 15 s"
    )
    summary = Summary("out", "publish").plus(replace(PUBLISH, lost=1_000)).plus(replace(PUBLISH, lost=1))
    assert summary.lost == 1_001
    assert summary_rows(summary)["records lost"] == (
        "1,001 not acknowledged by the broker, which 'sink.delivery-guarantee' = 'none' allows"
    )
    assert "records lost" not in summary_rows(Summary("out", "publish").plus(PUBLISH))


def test_a_pipe_gets_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    with screen.busy("working [not markup]"):
        screen.batch(INGEST)
    screen.table("done", {"[a]": "x" * 150})
    out, err = capsys.readouterr()
    assert out.splitlines()[:2] == ["working [not markup]", batch_line(INGEST)]
    assert "[a]" in out and "\x1b" not in out and err == ""


def test_quiet_keeps_results_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(quiet=True)
    with screen.busy("working"):
        screen.batch(INGEST)
    screen.json({"a": 1})
    screen.error("failed", "topic 'x' does not exist")
    out, err = capsys.readouterr()
    assert json.loads(out) == {"a": 1}
    assert err == "failed: topic 'x' does not exist\n"


def test_a_result_is_a_table_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    screen.result("status", {"still_bad": 2, "version": None}, json=False)
    told = capsys.readouterr().out
    assert "still bad" in told and "2" in told and "version" not in told
    screen.result("status", {"still_bad": 2, "version": None}, json=True)
    assert json.loads(capsys.readouterr().out) == {"still_bad": 2, "version": None}
    screen.result("status", [1], rows={"one": "1"}, json=False)
    assert "one" in capsys.readouterr().out


def test_the_summary_adds_batches_up() -> None:
    both = Summary("orders", "ingest").plus(INGEST).plus(INGEST)
    assert (both.batches, both.records_in, both.updated, both.version) == (2, 40_000, 160, 5)
    rows = summary_rows(Summary("out", "publish").plus(PUBLISH))
    assert rows["records out"] == "6 (0/s), 1 of them tombstones" and "records in" not in rows


@pytest.fixture
def json_lines() -> Iterator[None]:
    log_as("json")
    yield
    log_as("text")


@pytest.mark.usefixtures("json_lines")
def test_each_line_is_a_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    screen.info("warning: [red] is no markup")
    screen.batch(INGEST)
    screen.batch(replace(PUBLISH, warning="a lag"))
    screen.table("done", {"batches": "2"})
    screen.grid("quality", ("result", "expectation", "observed"), [(("met", "green"), "unique", "3")])
    screen.conclusion("all met")
    screen.error("failed", "no broker")
    with screen.busy("starting Spark"):
        pass
    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]
    assert all(line.pop("at").endswith("+00:00") for line in lines)
    warned, ingest, publish, *rest = lines
    assert warned == {"level": "warning", "message": "warning: [red] is no markup"}
    assert (ingest["schema"], ingest["event"], ingest["level"]) == (SCHEMA, "batch", "info")
    assert (ingest["pipeline"], ingest["records_in"], ingest["version"]) == ("orders", 20_000, 5)
    assert (publish["level"], publish["warning"]) == ("warning", "a lag")
    assert rest == [
        {"level": "info", "message": "done", "batches": "2"},
        {"level": "info", "message": "quality", "result": "met", "expectation": "unique", "observed": "3"},
        {"level": "info", "message": "all met"},
        {"level": "info", "message": "starting Spark"},
    ]
    told = json.loads(err)
    assert (told["level"], told["title"], told["message"]) == ("error", "failed", "no broker")


@pytest.mark.usefixtures("json_lines")
def test_quiet_writes_no_batches_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(quiet=True)
    screen.info("x")
    screen.batch(INGEST)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("format", ["text", "json"])
def test_what_is_logged_for_users_is_printed_once(format: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        for _ in range(2):
            log_as(format)
        logging.getLogger("bridge.metrics").warning("an alert is lost")
    finally:
        log_as("text")
    out, err = capsys.readouterr()
    told = err.strip() if format == "text" else json.loads(err)["message"]
    assert told == "warning: an alert is lost" and not out


def test_nothing_that_others_wrote_reaches_the_terminal_as_a_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Names, warnings and errors may hold control characters; lines stay lines."""
    clear, screen = "\x1b[2J\x9b31m", Screen()
    screen.batch(replace(INGEST, pipeline=clear, warning=f"a\n{clear}"))
    screen.info(clear)
    screen.conclusion(clear)
    screen.table(clear, {clear: clear})
    screen.grid(clear, ("", "what", "found"), [((clear, "red"), clear, clear)])
    screen.error(clear, clear)
    shown = "".join(capsys.readouterr())
    assert [line for line in shown.split("\n") if not line.isprintable()] == []
    assert shown.count("�[2J�31m") == 13
