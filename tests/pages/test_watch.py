"""Many pipelines are looked at by a few threads: a slow one and a broken one keep nobody waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from bridge.errors import DefinitionError
from bridge.pages.pipeline_line import Watched
from bridge.pages.watch import File, Watch
from tests.pages.files import pipeline


def never_ran(folder: Path, name: str) -> File:
    definition = pipeline(folder, name)
    return File(f"{name}.yaml", lambda: [Watched(definition)])


def broken() -> Sequence[Watched]:
    raise DefinitionError("broken.yaml: unknown key 'topics'")


@pytest.fixture
def watching() -> Iterator[Callable[..., Watch]]:
    """What watches files as `Watch` does, and ends with the test."""
    with ExitStack() as stack:
        yield lambda *given, **named: stack.enter_context(closing(Watch(*given, **named)))


def unexpected() -> Sequence[Watched]:
    raise RuntimeError("a text that may have a password")


def test_a_slow_and_a_broken_file_beside_good_ones(tmp_path: Path, watching: Callable[..., Watch]) -> None:
    answered = threading.Event()

    def slow() -> Sequence[Watched]:
        answered.wait(30)
        return [Watched(pipeline(tmp_path, "slow"))]

    good = [never_ran(tmp_path, f"good-{n}") for n in range(20)]
    files = [File("slow.yaml", slow), File("broken.yaml", broken), File("odd.yaml", unexpected), *good]
    watch = watching(files, None)
    until(lambda: sum(line.state == "never ran" for line in watch.lines()) == 20)
    lines = {line.pipeline: line for line in watch.lines()}
    assert list(lines) == ["slow", "broken", "odd", *(f"good-{n}" for n in range(20))]
    assert (lines["slow"].state, lines["slow"].reason) == ("unknown", None)
    assert lines["broken"].reason == "broken.yaml: unknown key 'topics'"
    assert lines["odd"].reason == "RuntimeError"
    assert not watch.wait(0)
    answered.set()
    assert watch.wait(20)
    assert watch.lines()[0].state == "never ran"


def test_what_does_not_answer_for_long_is_said_so(tmp_path: Path, watching: Callable[..., Watch]) -> None:
    hold = threading.Event()
    calls: list[int] = []

    def slow() -> Sequence[Watched]:
        calls.append(1)
        if len(calls) > 1:
            hold.wait(30)
        raise DefinitionError("not now")

    watch = watching([File("slow.yaml", slow)], 0.01, patience_seconds=0.1)
    until(lambda: "no answer" in (watch.lines()[0].reason or ""))
    (line,) = watch.lines()
    assert line.reason == "no answer for 0 s; this was seen before; not now"
    hold.set()


def test_what_changes_is_seen_again(tmp_path: Path, watching: Callable[..., Watch]) -> None:
    """A file that is mended, too."""
    mended = threading.Event()

    def load() -> Sequence[Watched]:
        if not mended.is_set():
            raise DefinitionError("not yet")
        return [Watched(pipeline(tmp_path), ("ingest",))]

    watch = watching([File("orders.yaml", load)], 0.02)
    assert watch.wait(20)
    assert watch.lines()[0].reason == "not yet"
    mended.set()
    until(lambda: watch.lines()[0].state == "never ran")
    (tmp_path / "checkpoint-orders").mkdir()
    (tmp_path / "checkpoint-orders" / "ingest.lease.json").write_text("{}")
    until(lambda: watch.lines()[0].state == "stopped")


def test_after_the_end_nothing_is_looked_at(tmp_path: Path) -> None:
    calls: list[int] = []

    def load() -> Sequence[Watched]:
        calls.append(1)
        raise DefinitionError("no")

    with closing(Watch([File("orders.yaml", load)], 0.01)) as watch:
        assert watch.wait(20)
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "bridge-top"])
    assert calls


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)
