"""Two drivers of Spark and a delta-rs writer commit to one table on S3 behind 20 ms a request."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from tests.log_store.writer import Job
from tests.lossy_proxy import LossyProxy
from tests.object_store import BUCKET, ObjectStore

COMMITS = 100


def _write(
    folder: Path,
    server: ObjectStore,
    name: str,
    *,
    drivers: int,
    delta_rs: bool,
    log_store: str | None = None,
) -> tuple[set[int], set[int]]:
    """The ids that the writers were told are committed, and those in the table."""
    import pyarrow as pa

    table, go = f"s3a://{BUCKET}/{name}", folder / f"{name}.go"
    own = server.delta_rs_options() | {"aws_conditional_put": "etag"}
    write_deltalake(
        f"s3://{BUCKET}/{name}", pa.table({"id": pa.array([-1], pa.int64())}), storage_options=own
    )
    with LossyProxy("127.0.0.1", server.port, delay=0.02) as slow:
        jobs = [
            Job(
                table,
                first=1000 * n,
                commits=COMMITS,
                ready=str(folder / f"{name}.{n}"),
                go=str(go),
                spark=n < drivers,
                settings=server.settings(url=slow.url) if n < drivers else own | {"aws_endpoint": slow.url},
                log_store=log_store,
            )
            for n in range(drivers + delta_rs)
        ]
        env = os.environ | {"SPARK_DRIVER_MEMORY": "700m", "BRIDGE_LOG": str(folder / "bridge.log")}
        running = [subprocess.Popen(job.arguments(), env=env, stdin=subprocess.DEVNULL) for job in jobs]
        deadline = time.monotonic() + 900
        while not all(Path(job.ready).exists() for job in jobs):
            assert time.monotonic() < deadline and all(one.poll() in (None, 0) for one in running)
            time.sleep(0.1)
        go.touch()
        assert [one.wait(timeout=1700) for one in running] == [0] * len(jobs)
    told = {number for job in jobs for number in range(job.first, job.first + job.commits)}
    rows = DeltaTable(f"s3://{BUCKET}/{name}", storage_options=own).to_pyarrow_table()
    return told, set(rows["id"].to_pylist()) - {-1}


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_no_commit_is_lost(tmp_path: Path, object_store: ObjectStore) -> None:
    told, found = _write(tmp_path, object_store, "ours", drivers=2, delta_rs=True)
    assert len(told) == 3 * COMMITS
    assert found == told


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_with_deltas_own_store_commits_are_lost(tmp_path: Path, object_store: ObjectStore) -> None:
    """The control: the test above can fail."""
    single = "io.delta.storage.S3SingleDriverLogStore"
    told, found = _write(tmp_path, object_store, "control", drivers=2, delta_rs=False, log_store=single)
    assert found < told
