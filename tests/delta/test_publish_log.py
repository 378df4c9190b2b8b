"""The publish log: numbered files, the newest readable one counts, a number is taken once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.bridge_folders import publish_log_file, scratch_name
from bridge.delta.file_state import FileState
from bridge.delta.publish_log import PublishLog
from bridge.errors import ConcurrentRunError, DefinitionError, GapError
from bridge.publish_progress import PublishProgress


def at(batch: int) -> PublishProgress:
    return PublishProgress("p", "table-id", version=batch * 2, batch=batch)


@pytest.fixture
def log(spark: SparkSession, lake: Path) -> PublishLog:
    return PublishLog(FileState(spark, f"{lake}/checkpoint/"), "p")


def files(lake: Path) -> list[Path]:
    return sorted((lake / "checkpoint" / "publish").iterdir())


def test_there_is_no_progress_before_the_first_batch(log: PublishLog, lake: Path) -> None:
    assert log.last() is None
    assert not (lake / "checkpoint").exists()


def test_the_newest_batch_counts(log: PublishLog, spark: SparkSession, lake: Path) -> None:
    for batch in (0, 1, 2):
        log.write(at(batch))
    assert log.last() == at(2)
    assert PublishLog(FileState(spark, f"{lake}/checkpoint"), "p").last() == at(2)


def test_numbers_are_compared_as_numbers_and_twenty_are_kept(log: PublishLog, lake: Path) -> None:
    for batch in range(90, 112):
        log.write(at(batch))
    assert log.last() == at(111)
    assert [int(f.stem) for f in files(lake)] == list(range(92, 112))


def test_a_run_deletes_what_killed_runs_left_of_a_batch(
    log: PublishLog, spark: SparkSession, lake: Path
) -> None:
    log.write(at(0))
    scratch = lake / "checkpoint" / "publish" / scratch_name(publish_log_file(1))
    scratch.write_text("{")
    PublishLog(FileState(spark, f"{lake}/checkpoint"), "p").write(at(1))
    assert [int(f.stem) for f in files(lake)] == [0, 1]


def test_two_runs_cannot_record_the_same_batch(log: PublishLog) -> None:
    log.write(at(0))
    with pytest.raises(
        ConcurrentRunError, match=r"batch 0 of pipeline 'p' is recorded in .*/publish by another run"
    ):
        log.write(replace(at(0), version=7))
    assert log.last() == at(0)


@pytest.mark.parametrize(
    "torn", ["", "{", '{"bridge": {"format": 1, "pipeline": "p"', "[]", '{"bridge": {"format": 1}}']
)
def test_a_torn_last_file_counts_as_not_written(log: PublishLog, lake: Path, torn: str) -> None:
    log.write(at(0))
    log.write(at(1))
    files(lake)[-1].write_text(torn)
    assert log.last() == at(0)
    log.write(at(1))
    assert log.last() == at(1)


def test_other_files_are_not_looked_at(log: PublishLog, lake: Path) -> None:
    log.write(at(0))
    (files(lake)[0].parent / "9.json.bak").write_text("{")
    assert log.last() == at(0)


def test_nothing_readable_is_a_gap(log: PublishLog, lake: Path) -> None:
    log.write(at(0))
    files(lake)[0].write_text("")
    with pytest.raises(
        GapError, match=r"none of the 1 files in .*/publish can be read.*run `bridge resync FILE`"
    ):
        log.last()


def test_another_pipelines_checkpoint_is_refused(spark: SparkSession, log: PublishLog, lake: Path) -> None:
    log.write(at(0))
    with pytest.raises(DefinitionError, match=r"run.checkpoint: .* belongs to pipeline 'p', not 'q'"):
        PublishLog(FileState(spark, f"{lake}/checkpoint"), "q").last()


def test_a_newer_bridges_files_are_refused(log: PublishLog, lake: Path) -> None:
    log.write(at(0))
    written = json.loads(files(lake)[0].read_text())
    written["bridge"]["format"] = 2
    files(lake)[0].write_text(json.dumps(written))
    with pytest.raises(DefinitionError, match="was written by a newer bridge"):
        log.last()
