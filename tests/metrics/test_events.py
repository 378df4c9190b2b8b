"""Events are JSON lines in a file or on standard output; what cannot be written is a warning."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.errors import AmbiguousKeyError, BadRecordError, TableError
from bridge.metrics import BatchReport, RunName
from bridge.metrics.events import SCHEMA, append
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


def test_a_pipe_that_nobody_reads_stops_nothing(tmp_path: Path) -> None:
    pipe, heard = tmp_path / "pipe", list[BatchReport]()
    os.mkfifo(pipe)
    run = threading.Thread(target=lambda: heard.extend(played(str(pipe))), daemon=True)
    run.start()
    run.join(5)
    assert [report.warning for report in heard] == [
        f"events are not written to {pipe}: [Errno 6] No such device or address: '{pipe}'"
    ]


def test_a_pipe_that_is_full_stops_nothing(tmp_path: Path) -> None:
    pipe, heard = tmp_path / "pipe", list[BatchReport]()
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def write() -> None:
        with monitored(Monitoring(events=str(pipe)), heard.append, RUN) as listen:
            for _ in range(200):
                listen(REPORT)
            listen(replace(REPORT, engine="x" * 100_000))

    run = threading.Thread(target=write, daemon=True)
    run.start()
    run.join(5)
    text = os.read(reader, 1 << 20).decode()
    os.close(reader)
    assert len(heard) == 201 and "[Errno 11]" in str(heard[-1].warning)
    assert {line["event"] for line in lines(text)} >= {"started", "batch"}, "each line is whole"


def test_a_line_that_a_pipe_takes_in_part_is_a_warning(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(BlockingIOError, match="only a part"):
        append(str(pipe), "x" * 100_000)
    os.close(reader)


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    (report,) = played(f"{tmp_path}/none/events.jsonl")
    assert str(report.warning).startswith(
        f"events are not written to {tmp_path}/none/events.jsonl: [Errno 2]"
    )
