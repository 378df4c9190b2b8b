"""Appends rows to a table on S3, one a commit: `python -m tests.log_store.writer JOB`, a `Job` as JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from bridge.session import build_session


@dataclass(frozen=True)
class Job:
    """What one writer does."""

    table: str
    first: int
    """Its rows have the ids from here on, one a commit."""
    commits: int
    ready: str
    """A file that it makes when it could begin."""
    go: str
    """A file that lets it begin."""
    settings: dict[str, str]
    """Of Hadoop for a driver of Spark, of delta-rs otherwise."""
    spark: bool = True
    log_store: str | None = None
    """In place of the bridge's."""
    new: bool = False
    """Whether the first commit creates the table."""

    def arguments(self) -> list[str]:
        """The command that does it."""
        return [sys.executable, "-m", "tests.log_store.writer", json.dumps(asdict(self))]


def _spark_writer(job: Job) -> Callable[[int], None]:
    conf = {f"spark.hadoop.{name}": value for name, value in job.settings.items()}
    if job.log_store:
        conf["spark.delta.logStore.s3a.impl"] = job.log_store
    spark = build_session("writer", master="local[1]", conf=conf, stores=["s3a"])
    if not job.new:
        spark.read.format("delta").load(job.table).count()

    def write(number: int) -> None:
        rows = spark.range(number, number + 1, 1, 1)
        rows.write.format("delta").mode("append").save(job.table)

    return write


def _delta_rs_writer(job: Job) -> Callable[[int], None]:
    import pyarrow as pa
    from deltalake import write_deltalake

    def write(number: int) -> None:
        rows = pa.table({"id": pa.array([number], pa.int64())})
        write_deltalake(
            job.table.replace("s3a://", "s3://"), rows, mode="append", storage_options=job.settings
        )

    return write


def _main(job: Job) -> None:
    write = (_spark_writer if job.spark else _delta_rs_writer)(job)
    Path(job.ready).touch()
    while not Path(job.go).exists():
        time.sleep(0.02)
    for number in range(job.first, job.first + job.commits):
        write(number)


if __name__ == "__main__":
    _main(Job(**json.loads(sys.argv[1])))
