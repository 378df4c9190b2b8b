"""A server of Spark Connect in a process of its own, as pyspark ships it, with Delta and the Kafka source.

`python -m tests.backend.connect_server COMMAND ...` runs a command as a client of one.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bridge import jars
from bridge.embedded.processes import HOST, free_port
from bridge.session import SESSION_SETTINGS
from tests.conftest import JAVA_OPTIONS

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_START_SECONDS = 120.0


class ConnectServer:
    """Runs inside a `with` block. `remote` is its address, for SPARK_REMOTE. The Python of its tasks looks for modules
    in `task_path` first."""

    def __init__(self, folder: Path, task_path: Path | None = None) -> None:
        self._folder, self._port, self._task_path = folder, free_port(), task_path
        self.remote = f"sc://{HOST}:{self._port}"
        self.log = folder / "server.log"

    def __enter__(self) -> ConnectServer:
        fetched = jars.fetch("spark", jars.spark_coordinates(), beside_spark=True)
        settings = {
            **SESSION_SETTINGS,
            "spark.jars": ",".join(map(str, fetched)),
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.driver.bindAddress": HOST,
            "spark.driver.host": HOST,
            "spark.driver.extraJavaOptions": JAVA_OPTIONS,
            "spark.ui.enabled": "false",
            "spark.databricks.delta.snapshotPartitions": "2",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.sql.warehouse.dir": str(self._folder / "warehouse"),
        }
        spark = jars.pyspark_jars().parent
        command = [str(spark / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "2g"]
        command += ["--class", _CLASS]
        command += [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
        environ = {
            **os.environ,
            "SPARK_HOME": str(spark),
            "SPARK_LOCAL_IP": HOST,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(map(str, [*filter(None, [self._task_path]), *sys.path])),
        }
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                [*command, "spark-internal"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environ,
                cwd=self._folder,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                socket.create_connection((HOST, self._port), 1).close()
                return self
            except OSError:
                assert self._process.poll() is None and time.monotonic() < deadline, self.log.read_text()
                time.sleep(0.2)

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def main(command: list[str]) -> int:
    """Run a command with SPARK_REMOTE, and return its exit code."""
    with tempfile.TemporaryDirectory() as folder, ConnectServer(Path(folder)) as server:
        print(f"Spark Connect server at {server.remote}", flush=True)
        return subprocess.run(
            command, env={**os.environ, "SPARK_REMOTE": server.remote}, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
