"""The watermark of an INSERT: the smallest of its sources, never decreasing, and the same after a restart."""

from __future__ import annotations

from bridge.pipelines.scripts.closing import EventTimeProgress, EventTimes
from bridge.sql.plan import EventTime, WindowPlan
from bridge.sql.window import WindowSpan

A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)


def plan(*, idle_ms: int = 0) -> WindowPlan:
    spans = WindowSpan(100, 100), WindowSpan(60, 30, 5)
    times = (EventTime("one", "ts", 10, idle_ms, "", spans), EventTime("two", "at", 0, 0, "", spans[1:]))
    return WindowPlan(times, 0, "", 0)


def test_the_slowest_partition_of_the_slowest_source_counts() -> None:
    times = EventTimes(plan(), EventTimeProgress())
    times.advance("one", [A0, A1], {A0: 1000}, 1)
    times.advance("two", [B0], {B0: 700}, 1)
    assert times.progress(1).watermark_ms is None
    assert times.waits_for(1) == ["a-1"]
    times.advance("one", [A0, A1], {A1: 500}, 2)
    assert times.progress(2).watermark_ms == 490
    assert times.waits_for(2) == []
    times.advance("one", [A0, A1], {A1: 2000}, 3)
    assert times.progress(3).watermark_ms == 700
    times.advance("two", [B0], {B0: 600}, 4)
    assert times.progress(4).watermark_ms == 700, "an older row does not turn it back"


def test_an_idle_partition_does_not_count_also_after_a_restart() -> None:
    times = EventTimes(plan(idle_ms=100), EventTimeProgress())
    times.advance("one", [A0, A1], {A0: 1000}, 50)
    times.advance("two", [B0], {B0: 900}, 50)
    assert times.progress(149).watermark_ms is None
    kept = EventTimeProgress.from_json(times.progress(149).to_json())
    assert kept == times.progress(149)
    again = EventTimes(plan(idle_ms=100), kept)
    again.advance("one", [A0, A1], {A0: 1001}, 151)
    assert again.progress(151).watermark_ms == 900
    assert EventTimeProgress.from_json(again.progress(151).to_json()).watermark_ms == 900


def test_the_watermark_of_before_stays_until_all_sources_have_one() -> None:
    times = EventTimes(plan(), EventTimeProgress(watermark_ms=300))
    times.advance("one", [A0], {A0: 1000}, 1)
    times.advance("two", [B0], {}, 1)
    assert times.progress(1).watermark_ms == 300


def test_a_source_that_has_ended_does_not_hold_the_others_back() -> None:
    times = EventTimes(plan(), EventTimeProgress())
    times.advance("one", [A0, A1], {A0: 1000}, 1)
    times.advance("two", [B0], {B0: 1700}, 1)
    assert times.waits_for(1, {"one"}) == [] and times.waits_for(1, {"two"}) == ["a-1"]
    assert times.progress(1, {"two"}).watermark_ms is None
    assert times.progress(1, {"one"}).watermark_ms == 1700


def test_the_end_of_all_sources_passes_the_last_window_with_a_row() -> None:
    times = EventTimes(plan(), EventTimeProgress())
    ended = {"one", "two"}
    assert times.progress(1, ended).watermark_ms is None and times.waits_for(1, ended) == []
    times.advance("one", [A0, A1], {A0: 1000}, 1)
    assert times.progress(1, ended).watermark_ms == 1099, "the other source may have no row at all"
    times.advance("two", [B0], {B0: 1094}, 1)
    assert times.progress(1, ended).watermark_ms == 1144, "1085 to 1145"
    assert times.progress(1).watermark_ms == 1144, "it stays without the bound"
