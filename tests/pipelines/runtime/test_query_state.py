"""Spark's working state lives as long as its run."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge import storage
from bridge.bridge_folders import OWNER_FILE
from bridge.definition import Definition
from bridge.errors import BridgeError
from bridge.offsets import Offsets
from bridge.pipelines.runtime import query_state
from bridge.spark_versions import checkpoint_file_manager
from tests.config.files import WHOLE, loaded

pytestmark = pytest.mark.versions


def pipeline(folder: Path, name: str = "orders") -> Definition:
    text = WHOLE.replace("name: orders", f"name: {name}").replace("work/orders", "work")
    return loaded(folder, text)


def test_a_run_gets_an_empty_folder_and_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    work, definition = tmp_path / "work", pipeline(tmp_path)
    storage.create_owned_folder(spark, str(work / "ingest" / "crashed"), "orders")
    (work / "ingest" / "crashed" / "state" / "offsets").mkdir(parents=True)
    (work / "publish").mkdir()
    with query_state.query_state_folder(spark, definition, "ingest", "run1") as place:
        assert not (work / "ingest" / "crashed").exists()
        Path(place).mkdir(parents=True)
        (Path(place) / "metadata").write_text("x")
    assert list((work / "ingest").iterdir()) == [] and (work / "publish").exists()


@pytest.mark.parametrize("others", [False, True])
def test_what_a_query_writes_after_another_run_took_over_goes(
    spark: SparkSession, tmp_path: Path, others: bool
) -> None:
    """The other run deletes the folder, and the query makes it again without a mark (`make faults`, SEED=78). `others`:
    something else has come into the folder, and stays."""
    definition, runs = pipeline(tmp_path), tmp_path / "work" / "ingest"
    with query_state.query_state_folder(spark, definition, "ingest", "run1") as place:
        with query_state.query_state_folder(spark, definition, "ingest", "run2"):
            assert not (runs / "run1").exists()
        (Path(place) / "offsets").mkdir(parents=True)
        (Path(place) / "offsets" / "7").write_text("v1")
        if others:
            (runs / "run1" / "theirs").touch()
    assert [path.name for path in runs.rglob("*")] == (["run1", "theirs"] if others else [])


@pytest.mark.parametrize("inside", [[], [f".{OWNER_FILE}.{'0' * 32}.tmp"], [OWNER_FILE]])
def test_what_a_run_left_that_was_killed_before_its_mark_was_there_goes(
    spark: SparkSession, tmp_path: Path, inside: list[str]
) -> None:
    """Or when its mark was gone already: make faults found an empty folder (SEED=2411252 ROUNDS=240)."""
    killed = tmp_path / "work" / "ingest" / "64492110d411"
    killed.mkdir(parents=True)
    for name in inside:
        (killed / name).write_text('{"pipel')
    with query_state.query_state_folder(spark, pipeline(tmp_path), "ingest", "run1"):
        assert not killed.exists()


def test_what_the_pipeline_did_not_make_stays(spark: SparkSession, tmp_path: Path) -> None:
    """A table in the checkpoint, another pipeline's run, and what an older bridge left behind without a mark."""
    work = tmp_path / "work"
    spark.range(3).write.format("delta").save(str(work / "ingest"))
    (work / "ingest" / "0123456789ab" / "offsets").mkdir(parents=True)
    (work / "ingest" / "empty").mkdir()
    (work / "ingest" / "aaaaaaaaaaaa").touch()
    (work / "ingest" / "bbbbbbbbbbbb").mkdir()
    (work / "ingest" / "bbbbbbbbbbbb" / OWNER_FILE).write_text('{"pipeline": "invoices"}')
    before = sorted(work.rglob("*"))
    with query_state.query_state_folder(spark, pipeline(tmp_path, "payments"), "ingest", "run1"):
        with query_state.query_state_folder(spark, pipeline(tmp_path), "ingest", "run2"):
            pass
        assert (work / "ingest" / "run1").is_dir()
    assert sorted(work.rglob("*")) == before
    assert spark.read.format("delta").load(str(work / "ingest")).count() == 3


def test_a_folder_that_cannot_be_made_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "ingest").touch()
    with pytest.raises(BridgeError, match=r"run.checkpoint: .*work/ingest/run1 cannot be written: "):
        query_state.query_state_folder(spark, pipeline(tmp_path), "ingest", "run1").__enter__()


@pytest.mark.parametrize("given", ["", "org.example.Mine"])
def test_a_query_on_a_local_disk_starts_no_processes_to_look_at_links(
    spark: SparkSession, tmp_path: Path, given: str
) -> None:
    """Unless the setting is given."""
    own = spark.newSession()
    if given:
        own.conf.set("spark.sql.streaming.checkpointFileManagerClass", given)
    with query_state.query_state_folder(own, pipeline(tmp_path), "ingest", "run1") as place:
        rows = own.readStream.format("rate").load().limit(1)
        write = rows.writeStream.format("noop").trigger(availableNow=True).option("checkpointLocation", place)
        if given:
            with pytest.raises(Exception, match=given):
                write.start()
        else:
            write.start().awaitTermination()
            assert (Path(place) / "offsets" / "0").exists()
    used = own.conf.get("spark.sql.streaming.checkpointFileManagerClass") or ""
    assert used == (given or checkpoint_file_manager(spark._jvm)) and used.rpartition(".")[2] in (
        "Mine",
        "FileSystemBasedCheckpointFileManager",
    )


def test_the_folder_goes_when_the_run_fails(spark: SparkSession, tmp_path: Path) -> None:
    def fail() -> None:
        with query_state.query_state_folder(spark, pipeline(tmp_path), "ingest", "run1") as place:
            Path(place).mkdir(parents=True)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not (tmp_path / "work" / "ingest" / "run1").exists()


def test_the_end_of_a_batch_is_read_from_sparks_offset_log(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "3").write_text('v1\n{"batchWatermarkMs":0}\n{"t":{"0":7,"10":0}}')
    assert query_state.batch_end(spark, str(tmp_path), 3) == Offsets.of([("t", 0, 7), ("t", 10, 0)])


def test_another_log_format_is_not_guessed_at(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text("v2\n{}\n{}")
    with pytest.raises(ValueError, match="version 'v2'; the bridge reads v1"):
        query_state.batch_end(spark, str(tmp_path), 0)
