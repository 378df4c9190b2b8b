"""The list of slow tests names tests that exist, once each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import SLOW

ROOT = Path(__file__).parents[1]


def test_every_line_names_tests() -> None:
    lines = [line for line in SLOW.read_text().splitlines() if line and not line.startswith("#")]
    assert len(set(lines)) == len(lines)
    files = sorted({line.partition("::")[0] for line in lines})
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-m",
        "slow",
        *(f"tests/{f}" for f in files),
    ]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    collected = {line.removeprefix("tests/") for line in done.stdout.splitlines() if "::" in line}
    known = collected | {line.partition("[")[0] for line in collected}
    assert [line for line in lines if line not in known] == []
