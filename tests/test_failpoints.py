"""Failpoints: off in production; of many that meet an armed one, one fires, once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HITS = "import sys; from bridge import failpoints; [failpoints.hit('here') or print(n) for n in range(4)]"


def started(folder: Path | None, code: str = HITS) -> subprocess.Popen[str]:
    environ = {k: v for k, v in os.environ.items() if k != "BRIDGE_FAILPOINTS"}
    if folder is not None:
        environ["BRIDGE_FAILPOINTS"] = str(folder)
    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(folder: Path | None, code: str = HITS) -> tuple[int, list[str], str]:
    with started(folder, code) as process:
        out, error = process.communicate(timeout=20)
    return process.returncode, out.split(), error


def test_off_without_a_folder(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("kill")
    code = f"import os; os.chdir({str(tmp_path)!r}); {HITS}; assert failpoints.hit is failpoints.ignore"
    assert ended(None, code)[:2] == (0, ["0", "1", "2", "3"])


def test_an_unarmed_one_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("kill")
    assert ended(tmp_path)[:2] == (0, ["0", "1", "2", "3"])
    assert not (tmp_path / "elsewhere.hit").exists()


@pytest.mark.parametrize(("action", "printed"), [("kill", []), ("kill after 2\n", ["0", "1"])])
def test_kill(tmp_path: Path, action: str, printed: list[str]) -> None:
    (tmp_path / "here").write_text(action)
    code, out, _ = ended(tmp_path, HITS.replace("print(n)", "print(n, flush=True)"))
    assert (code, out) == (-signal.SIGKILL, printed)
    assert [file.name for file in tmp_path.iterdir()] == ["here.hit"]
    assert ended(tmp_path)[0] == 0  # it does not fire again


def test_raise(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("raise after 3")
    code, out, error = ended(tmp_path)
    assert (code, out) == (1, ["0", "1", "2"]) and "RuntimeError: failpoint here" in error


def test_each_arming_counts_its_own_hits(tmp_path: Path) -> None:
    """Of two armings in one process the second must not go on with what the first let pass."""
    code = (
        "import sys; from pathlib import Path; from bridge import failpoints\n"
        f"armed = Path({str(tmp_path / 'here')!r})\n"
        "for _ in range(2):\n"
        "    armed.write_text('raise after 2')\n"
        "    for n in range(4):\n"
        "        try: failpoints.hit('here')\n"
        "        except RuntimeError: print(n)\n"
    )
    assert ended(tmp_path, code)[:2] == (0, ["2", "2"])


def test_an_unknown_word(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("explode")
    assert "failpoint here: 'explode' is unknown; legal are kill, raise, pause, freeze" in ended(tmp_path)[2]


def test_one_of_many_pauses_until_it_is_released(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("pause")
    processes = [started(tmp_path) for _ in range(3)]
    try:
        deadline = time.monotonic() + 20
        while (
            sum(process.poll() is None for process in processes) > 1 or not (tmp_path / "here.hit").exists()
        ):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.1)
        paused = [process for process in processes if process.poll() is None]
        assert len(paused) == 1
        (tmp_path / "here.hit").unlink()
        assert paused[0].wait(10) == 0
    finally:
        for process in processes:
            process.kill()
            process.communicate()
