"""Charts: shapes are at the positions of their numbers."""

from __future__ import annotations

import pytest

from bridge.quality.charts import charts, short_number
from tests.quality.verdicts import NOW, RUNS, run


def test_a_line_breaks_where_a_run_has_no_number() -> None:
    _, lag, _, _ = charts((*RUNS, NOW))
    assert len(lag.lines) == 2 and len(lag.dots) == 5
    assert (lag.now, lag.note) == ("3", "records of the topic that the table lacks")
    assert [tick.label for tick in lag.ticks] == ["0", "5", "10", "15"]
    assert lag.dots[0] == (8.33, 100.0) and lag.dots[-1] == (91.67, 80.0)


def test_rows_that_hardly_change_fill_the_chart_and_have_no_area() -> None:
    rows = charts([run(n, rows=19_000 + 10 * n) for n in range(1, 6)])[0]
    assert rows.ticks[0].label != "0"
    assert rows.areas == () and rows.note == "+10 since the previous run"
    assert all(0 <= y <= 100 for _, y in rows.dots)


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 100, 99_999, 5_000_000])
def test_the_same_number_always_has_a_scale(rows: int) -> None:
    chart = charts([run(n, rows=rows) for n in range(1, 4)])[0]
    assert 2 <= len(chart.ticks) <= 6
    assert len({tick.label for tick in chart.ticks}) == len(chart.ticks)
    assert all(0 <= y <= 100 for _, y in chart.dots)


def test_bars_stand_on_each_other_and_end_at_their_sum() -> None:
    mix = charts((*RUNS, NOW))[3]
    last = mix.bars[-3:]
    assert [bar.series for bar in last] == ["inserted", "updated", "deleted"]
    assert last[0].y + last[0].height == pytest.approx(100)
    assert last[1].y + last[1].height == pytest.approx(last[0].y)
    assert mix.legend == (
        ("inserted", "inserted", "40"),
        ("updated", "updated", "50"),
        ("deleted", "deleted", "60"),
    )
    assert mix.now == "150" and mix.zeros == ()


def test_runs_without_failures_leave_a_mark() -> None:
    failures = charts((*RUNS, NOW))[2]
    assert len(failures.zeros) == 4 and [bar.series for bar in failures.bars] == [
        "critical",
        "critical",
        "warning",
    ]
    assert failures.summary.startswith("Expectations not met, by severity: some in 2 of 6 runs")


def test_a_number_that_no_run_has_is_not_known() -> None:
    _, lag, _, mix = charts([run(1, lag=None, changes=None)])
    assert not lag.known and not mix.known
    assert mix.note == "available from the next run on"


def test_axes_are_short() -> None:
    shown = {0: "0", 950: "950", 150_000: "150,000", 1_250_000: "1.25M", 1_250_500: "1.2505M", 3e9: "3B"}
    assert {number: short_number(number) for number in shown} == shown
