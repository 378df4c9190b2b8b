"""What a commit of Spark on a local disk names is on the disk before it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.log_store.writer import Job

COMMITS = 2
CALL = re.compile(r'\b(?:fsync\(\d+<(?P<synced>[^>]+)>\)|link\("[^"]+", "(?P<linked>[^"]+)"\))')


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace, which shows what is synced, and when")
def test_files_are_synced_before_the_commit_that_names_them(tmp_path: Path) -> None:
    table, calls, go = tmp_path / "table", tmp_path / "calls", tmp_path / "go"
    go.touch()
    job = Job(
        str(table), first=0, commits=COMMITS, ready=str(tmp_path / "ready"), go=str(go), settings={}, new=True
    )
    traced = ["strace", "-f", "-qq", "-y", "-e", "trace=fsync,link", "-o", str(calls)]
    env = os.environ | {"SPARK_DRIVER_MEMORY": "700m", "BRIDGE_LOG": str(tmp_path / "bridge.log")}
    subprocess.run([*traced, *job.arguments()], env=env, stdin=subprocess.DEVNULL, check=True)
    synced: set[str] = set()
    commits = []
    for call in CALL.finditer(calls.read_text()):
        if call["synced"]:
            synced.add(call["synced"])
            continue
        commit = Path(call["linked"])
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        added = [str(table / action["add"]["path"]) for action in actions if "add" in action]
        assert added and {*added, str(table)} <= synced
        commits.append(commit.name)
        synced = set()
    assert commits == [f"{version:020}.json" for version in range(COMMITS)]
    assert str(table / "_delta_log") in synced, "the name of the last commit"
