"""Every thread and pool of the code says what its threads share, and has a test in which they meet.

No object of Arrow, delta-rs, librdkafka or fastavro is used by two threads unless its documentation allows it:
pyarrow's ParquetFile does not, and two threads that read one hung and crashed an ingest (docs/adr/049).
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAKERS = {"ThreadPoolExecutor", "Thread", "foreachBatch", "ProcessPoolExecutor", "Timer", "fork"}
SAYS = "# Shared by threads"
MADE = {
    "lake/store.py": "lake/test_store.py",
    "delta/deletion_vectors/matches.py": "delta/deletion_vectors/test_matches.py::test_threads_read_one_file",
    "demo/pageviews.py": "pipelines/scripts/test_run.py",
    "demo/run.py": "demo/test_run.py",
    "kafka/stall_detector.py": "kafka/test_stall_detector.py",
    "pipelines/ingest/read_ahead.py": "delta/test_append_files.py::test_threads_may_share_it",
    "pipelines/ingest/stream_batches.py": "pipelines/ingest/test_run.py",
    "pipelines/ingest/worker_warm_up.py": "pipelines/ingest/test_worker_warm_up.py",
    "pipelines/runtime/lease.py": "pipelines/runtime/test_lease_takeover.py",
    "pipelines/runtime/rounds.py": "pipelines/runtime/test_rounds.py",
}
"""The modules of bridge/ that make threads, or are called by threads of others, and where theirs meet."""


def makers(path: Path) -> list[ast.Call]:
    text = path.read_text(encoding="utf-8")
    if not any(maker in text for maker in MAKERS):
        return []
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return [call for call in calls if ast.unparse(call.func).rpartition(".")[2] in MAKERS]


def test_every_module_that_makes_threads_is_listed() -> None:
    bridge = ROOT / "bridge"
    found = {str(path.relative_to(bridge)) for path in bridge.rglob("*.py") if makers(path)}
    assert found == set(MADE)


def test_each_says_what_is_shared_where_they_are_made() -> None:
    for name in MADE:
        lines = (ROOT / "bridge" / name).read_text(encoding="utf-8").splitlines()
        for call in makers(ROOT / "bridge" / name):
            above = lines[max(0, call.lineno - 12) : call.lineno]
            assert any(SAYS in line for line in above), (
                f"bridge/{name}:{call.lineno}: no comment {SAYS!r} above"
            )


def test_each_has_a_test() -> None:
    for module, test in MADE.items():
        file, _, name = test.partition("::")
        path = ROOT / "tests" / file
        assert path.exists() and f"def {name}" in path.read_text(encoding="utf-8"), (module, test)
