"""Every thread and pool of the code says what its threads share, and has a test in which they meet.

No object of Arrow, delta-rs, librdkafka or fastavro is used by two threads unless its documentation allows it:
pyarrow's ParquetFile does not, and two threads that read one hung and crashed an ingest (docs/adr/049).
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAKERS = {
    "ThreadPoolExecutor",
    "Thread",
    "foreachBatch",
    "ProcessPoolExecutor",
    "Timer",
    "fork",
    "start_http_server",
}
SAYS = "# Shared by threads"
MADE = {
    "lake/store.py": "lake/test_store.py::test_threads_share_a_store_and_a_file",
    "delta/driver_merge/actions.py": "delta/driver_merge/test_actions.py::test_files_are_copied_at_once",
    "delta/driver_merge/matches.py": "delta/driver_merge/test_matches.py::test_threads_read_one_file",
    "demo/pageviews.py": "demo/test_run.py::test_its_threads_verify_what_they_wrote",
    "demo/run.py": "demo/test_run.py::test_its_threads_verify_what_they_wrote",
    "kafka/sink.py": "kafka/test_sink.py::test_threads_that_compute_are_no_stall",
    "metrics/alerts.py": "metrics/test_alerts.py::test_a_slow_webhook_does_not_slow_the_batches",
    "metrics/lineage.py": "metrics/test_lineage.py::test_a_run_that_goes_on_tells_its_sums_now_and_then",
    "metrics/prometheus.py": "metrics/test_prometheus.py::test_threads_report_while_others_scrape",
    "metrics/targets.py": "metrics/test_otlp.py::test_a_slow_collector_slows_no_batch",
    "pages/watch.py": "pages/test_watch.py::test_a_slow_and_a_broken_file_beside_good_ones",
    "pipelines/ingest/consumer_batches.py": "pipelines/runtime/test_rounds_threads.py::test_all_of_them_for_a_minute",
    "pipelines/ingest/stream_batches.py": "pipelines/runtime/test_rounds_threads.py::test_all_of_them_for_a_minute",
    "pipelines/ingest/run.py": "pipelines/ingest/test_run_worker_warm_up.py",
    "pipelines/runtime/lease.py": "pipelines/runtime/test_lease.py::test_of_many_that_start_at_once_one_works",
    "pipelines/runtime/rounds.py": "pipelines/runtime/test_rounds_threads.py::test_all_of_them_for_a_minute",
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


@pytest.mark.parametrize("module", MADE)
def test_each_has_a_test(module: str) -> None:
    """A file that names the module or makes threads itself, and where one is named the test."""
    file, _, name = MADE[module].partition("::")
    text = (ROOT / "tests" / file).read_text(encoding="utf-8")
    assert imports(text, module) or makers(ROOT / "tests" / file), f"{file} does not meet {module}"
    assert f"def {name or 'test_'}" in text, f"{file} has no test {name}"


def imports(text: str, module: str) -> bool:
    """Whether a test, or a program in a text of it, imports a module of bridge/, or from it."""
    package, _, name = ("bridge." + module.removesuffix(".py").replace("/", ".")).rpartition(".")
    return bool(re.search(rf"\b{re.escape(package)}(\.{name}\b| import (\w+, )*{name}\b)", text))


def test_a_file_without_threads_does_not_count() -> None:
    """As tests/pipelines/scripts/test_run.py, which was listed for a demo that it does not run."""
    text = (ROOT / "tests/pipelines/scripts/test_run.py").read_text(encoding="utf-8")
    assert not imports(text, "demo/pageviews.py")
    assert not makers(ROOT / "tests/pipelines/scripts/test_run.py")
