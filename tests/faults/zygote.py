"""Forks carriers from a Python process that has imported everything, which saves seconds of imports per start.

    python -m tests.faults.zygote

Reads a line of JSON for each child and answers with its process id. The child leads a process session of its own; after
its end its exit code is in `FOLDER/code`. Ends with its standard input. It starts no thread and no JVM.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

SLOT_ROWS = 40
"""The number of rows from which a version may be sent file by file; 200,000 in production (docs/adr/017)."""

_IMPORTED = (
    *("deltalake", "delta.tables", "pandas", "pyarrow.parquet", "pyspark.sql.streaming.query", "fastavro"),
    *("bridge.config", "bridge.pipelines.ingest.run", "bridge.pipelines.publish.run", "tests.faults.carrier"),
    *("bridge.sql", "bridge.cdc_jobs", "bridge.pipelines.scripts.run", "bridge.pipelines.cdc_jobs.run"),
)


class Zygote:
    """The client: a context manager that starts the zygote and requests children."""

    def __enter__(self) -> Zygote:
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK", "SPARK"))}
        # Failpoints are active only where this is set when bridge is imported.
        environ["BRIDGE_FAILPOINTS"] = os.devnull
        # Also read at import.
        environ["BRIDGE_FILE_SLOT_ROWS"] = str(SLOT_ROWS)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environ,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def child(self, **wanted: Any) -> int:
        """Starts a carrier and returns its process id; see `_become` for the arguments."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(wanted).encode() + b"\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def _become(wanted: Mapping[str, Any]) -> int:
    """Runs the carrier in the forked child."""
    from tests.faults.carrier import carry

    folder = Path(wanted["folder"])
    os.setsid()
    out = os.open(folder / "said.txt", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream, target in ((0, nothing), (1, out), (2, out)):
        os.dup2(target, stream)
    os.environ |= {
        **wanted["environ"],
        "BRIDGE_FAILPOINTS": str(folder / "failpoints"),
        "TMPDIR": str(folder / "tmp"),
    }
    tempfile.tempdir = None
    return carry(wanted["verb"], wanted["files"], folder, wanted["conf"], wanted["master"])


def main() -> None:
    for name in _IMPORTED:
        import_module(name)
    children: dict[int, Path] = {}
    pending = b""
    while True:
        ready, _, _ = select.select([0], [], [], 0.05)
        while children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            scratch = children[pid] / ".code"
            scratch.write_text(str(os.waitstatus_to_exitcode(status)))
            scratch.rename(children.pop(pid) / "code")
        if not ready:
            continue
        read = os.read(0, 65536)
        if not read:
            return
        *lines, pending = (pending + read).split(b"\n")
        for line in lines:
            wanted = json.loads(line)
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    code = _become(wanted)
                except BaseException:
                    traceback.print_exc()
                finally:
                    sys.stdout.flush()
                    sys.stderr.flush()
                    os._exit(code)  # its JVM follows, as its standard input ends
            children[pid] = Path(wanted["folder"])
            os.write(1, b"%d\n" % pid)


if __name__ == "__main__":
    main()
