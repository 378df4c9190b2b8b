"""Creates the AppCDS archive: runs an ingest and a publish once, and archives the classes that the JVM has loaded.

    python -m bridge.demo.rehearsal     # called by `make setup`; does nothing when the archive exists

See `bridge.appcds`. Needs the pipeline files in conf/, and starts a broker of its own for about half a minute.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from bridge import appcds
from bridge.definition import Engine
from bridge.demo import orders
from bridge.demo.run import pipelines
from bridge.embedded.broker import Broker
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.session import build_session

_CHANGES = 300
_SHUTDOWN_SECONDS = 300
_TIMEOUT_SECONDS = 900


def rehearse(spark: SparkSession, folder: Path) -> None:
    """Ingests a batch with each of the two merge engines, and publishes both."""
    with Broker(folder / "broker") as broker:
        incoming, outgoing = pipelines(folder, broker.bootstrap)
        topic = incoming.topic.names[0]
        for name in (topic, *outgoing.topic.names):
            broker.create_topic(name)
        once = replace(incoming.run, trigger_seconds=None)
        for seed, engine in enumerate((Engine.SPARK, Engine.AUTO)):
            changes = orders.changes(seed, keys=_CHANGES // 2, count=_CHANGES)
            orders.write(broker.bootstrap, topic, changes)
            ingest(spark, replace(incoming, run=once, merge=replace(incoming.merge, engine=engine)))
        publish(spark, replace(outgoing, run=replace(outgoing.run, trigger_seconds=None)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Creates the archive unless it exists. Returns 0 also on failure: without the archive Spark only starts slower."""
    given = sys.argv[1:] if arguments is None else arguments
    if given:
        _write_archive(Path(given[0]))
        return 0
    file = appcds.archive()
    if file.is_file():
        return 0
    file.parent.mkdir(parents=True, exist_ok=True)
    print("creating a class archive (AppCDS) for faster starts of Spark", flush=True)
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".rehearsal-") as folder:
        archive = Path(folder) / file.name
        # In a process and JVM of its own: this Java may not support it, or the disk may be full.
        environ = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_GATEWAY")}
        command = [sys.executable, "-m", "bridge.demo.rehearsal", str(archive)]
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(command, check=False, env=environ, timeout=_TIMEOUT_SECONDS)
        if archive.is_file():
            os.replace(archive, file)
            print(f"  in {file}", flush=True)
        else:
            print("  not created; without it Spark needs a few seconds more to start", flush=True)
    return 0


def _write_archive(file: Path) -> None:
    options = appcds.java_options_to_create(file)
    if not options:
        return
    spark = build_session("bridge rehearsal", conf={"spark.driver.extraJavaOptions": options})
    with tempfile.TemporaryDirectory(prefix="bridge-rehearsal-") as folder:
        rehearse(spark, Path(folder))
    gateway = SparkContext._gateway
    spark.sparkContext.stop()
    if gateway is not None:
        process = gateway.proc
        gateway.shutdown()
        process.stdin.close()
        process.wait(_SHUTDOWN_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
