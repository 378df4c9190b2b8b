"""A script is run once at a time: a second run is refused, and names the first one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.bridge_folders import lease_file
from bridge.delta.file_state import FileState
from bridge.embedded.broker import Broker
from bridge.errors import ConcurrentRunError
from bridge.pipelines.runtime.lease import LeaseTiming, acquire_lease_in
from bridge.pipelines.scripts.state import ScriptState
from tests.pipelines.processes import Process
from tests.pipelines.scripts.scripts import MakeScript, ScriptRun
from tests.pipelines.scripts.test_run import PAGEVIEWS, view

CONSTANTS = (
    "CREATE TABLE t (id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED) "
    "WITH ('connector' = 'delta', 'path' = 't');\n"
    "INSERT INTO t VALUES (1, 'a');"
)


def test_a_second_run_reads_and_writes_nothing(spark: SparkSession, broker: Broker, lake: Path) -> None:
    script = ScriptRun(spark, broker, lake, "s", CONSTANTS)
    folder = ScriptState(script.script()).folder
    timing = LeaseTiming(heartbeat_seconds=0.1)
    with acquire_lease_in(
        FileState(spark, folder, "bridge.state"), "script", name="script", verb="run", timing=timing
    ) as first:
        with pytest.raises(ConcurrentRunError) as error:
            script.run()
        first.check()
    assert not (lake / "t").exists()
    message = str(error.value)
    file = lease_file(folder, "script")
    assert message.startswith(f"bridge.state: {file}: another run is at work, `run` of 'script' in process ")
    assert f"process {os.getpid()} on " in message
    script.run()
    assert spark.read.format("delta").load(f"{lake}/t").count() == 1


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_processes_at_once(script_of: MakeScript, lake: Path, tmp_path: Path) -> None:
    """The second comes while the first is between two commits; the first goes on, and its process may be killed."""
    script = script_of(PAGEVIEWS)
    script.create("views", "regions")
    script.send("views", [view(1, "a"), view(2, "b")])
    script.script()
    with Process("run", lake / "script.sql", tmp_path / "first") as first:
        first.until(first.arm("script.before-commit", "pause"))
        with Process("run", lake / "script.sql", tmp_path / "second") as second:
            assert second.ended(120) == ConcurrentRunError.exit_code, second.output
            assert f"`run` of 'script' in process {first.pid}" in second.output
    script.run()
    assert sorted((row["user_region"], row["pv"]) for _, row in script.received("regions")) == [
        ("a", 1),
        ("b", 1),
    ]
