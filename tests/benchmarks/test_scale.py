"""The sizes that the goals name."""

from __future__ import annotations

from benchmarks.scale import Scale


def test_a_normal_run_has_the_sizes_of_its_goals() -> None:
    scale = Scale.of(1_000_000, full=False)
    assert (scale.records, scale.batch, scale.backlog) == (1_000_000, 100_000, 5_000_000)
    assert (scale.stream_rate, scale.stream_seconds) == (5_000, 60)
    assert (scale.wide_batch, scale.wide_partitions) == (10_000, 1_000)
    assert (scale.published, scale.deep_backlog, scale.rounds) == (1_000_000, 0, 3)


def test_a_full_run_has_the_tables_of_the_goals_and_a_backlog_of_several_batches() -> None:
    scale = Scale.of(1_000_000, full=True)
    assert scale.tables == (1_000_000, 20_000_000, 100_000_000) and scale.random_tables[-1] == 20_000_000
    assert (scale.published, scale.deep_backlog) == (5_000_000, 20_000_000)
    assert (scale.stream_rate, scale.stream_seconds) == (5_000, 180)


def test_a_small_run_is_small_in_everything() -> None:
    scale = Scale.of(20_000, full=False, rounds=1)
    assert (scale.stream_rate, scale.stream_seconds, scale.wide_partitions) == (100, 10, 100)
    assert scale.rounds == 1
