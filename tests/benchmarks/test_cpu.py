"""CPU seconds of processes that have ended are still counted."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from benchmarks.cpu import Cpu, Others, busy, sessions

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/stat"), reason="needs /proc")
SPIN = "import time; until = time.process_time() + 0.4\nwhile time.process_time() < until: pass\ninput()"


def test_a_session_is_counted_with_its_children_and_after_its_end() -> None:
    before, cpu = busy(), Cpu()
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SPIN!r}])"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, start_new_session=True)
    try:
        deadline = time.monotonic() + 30
        while cpu.seconds < 0.4 and time.monotonic() < deadline:
            assert process.pid in sessions([process.pid])
            cpu.sample(sessions([process.pid]))
            time.sleep(0.02)
    finally:
        process.communicate(b"\n")
    cpu.sample(sessions([process.pid]))
    assert 0.4 <= cpu.seconds <= busy() - before


def test_what_serves_a_job_is_not_foreign() -> None:
    unknown, known = Others([]), Others([os.getsid(0)])
    until = time.process_time() + 0.5
    while time.process_time() < until:
        pass
    assert known.served >= 0.4
    assert known.seconds() <= unknown.seconds() - 0.4
    assert unknown.seconds(1e6) == 0.0
