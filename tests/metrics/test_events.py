"""Events are JSON lines in a file or on standard output; what cannot be written is a warning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridge.errors import AmbiguousKeyError, BadRecordError, TableError
from bridge.metrics import BatchReport, RunName
from bridge.metrics.events import SCHEMA
from bridge.metrics.monitoring import Monitoring, monitored

RUN = RunName("orders", "ingest", "t")
REPORT = BatchReport("orders", "ingest", 3, topic="t", records_in=7)


def played(target: str, error: Exception | None = None) -> list[BatchReport]:
    heard: list[BatchReport] = []
    with monitored(Monitoring(events=target), heard.append, RUN) as listen:
        listen(REPORT)
        if error is not None:
            raise error
    return heard


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_run_that_ends(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    assert played(str(file)) == [REPORT]
    started, batch, ended = lines(file.read_text())
    assert [started["event"], batch["event"], ended["event"]] == ["started", "batch", "ended"]
    assert {line["schema"] for line in (started, batch, ended)} == {SCHEMA}
    assert (batch["pipeline"], batch["topic"], batch["records_in"], batch["batch"]) == ("orders", "t", 7, 3)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (TableError("the table is gone"), "the table is gone"),
        (ValueError("row: secret"), None),
        (AmbiguousKeyError("such as (id: secret)"), None),
        (BadRecordError("row (id: secret)"), None),
    ],
)
def test_a_run_that_fails(tmp_path: Path, error: Exception, shown: str | None) -> None:
    file = tmp_path / "events.jsonl"
    with pytest.raises(type(error)):
        played(str(file), error)
    last = lines(file.read_text())[-1]
    assert (last["event"], last["error"], last["message"]) == ("failed", type(error).__name__, shown)


def test_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    played("stdout")
    assert [line["event"] for line in lines(capsys.readouterr().out)] == ["started", "batch", "ended"]


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    (report,) = played(f"{tmp_path}/none/events.jsonl")
    assert str(report.warning).startswith(
        f"events are not written to {tmp_path}/none/events.jsonl: [Errno 2]"
    )
