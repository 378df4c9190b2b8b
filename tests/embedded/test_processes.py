"""Servers that end with the process that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


def gone(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            # A zombie (its new parent may be slow to reap it) is as good as gone.
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize(
    "server",
    [
        "broker import Broker",
        pytest.param("schema_registry import SchemaRegistryServer", marks=pytest.mark.slow),
    ],
)
def test_a_server_dies_with_its_parent(tmp_path: Path, server: str) -> None:
    """kill -9 of the process that started it leaves no server behind."""
    code = (
        f"import sys, time; from pathlib import Path; from bridge.embedded.{server} as Server;"
        "s = Server(Path(sys.argv[1])).start(); print(s.pid, flush=True); time.sleep(60)"
    )
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not gone(pid, 0.2)
        parent.send_signal(signal.SIGKILL)
    assert gone(pid, 15)
