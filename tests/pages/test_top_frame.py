"""The page of `bridge top` fits a narrow and a wide terminal, and says what lags, by partition."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from bridge.pages.pipeline_line import Line
from bridge.pages.top_frame import details, frame, overview

AT_MS = 1_795_800_000_000
ORDERS = Line(
    "conf/orders.yaml",
    "orders",
    "ingest",
    "running",
    records_per_second=1234.5,
    lag=70_000,
    lag_by_partition={"orders-0": 50_000, "orders-1": 20_000, "orders-2": 0},
    freshness_seconds=1.25,
    last_commit="2026-11-27T17:19:48+00:00",
    last_commit_seconds=12,
    version=7,
    engine="driver",
    reader="consumer",
)
SENT = Line("conf/out.yaml", "orders_publish", "publish", "stopped", lag=3, version=4)
BROKEN = Line(
    "conf/broken.yaml", "broken", reason="broken.yaml: unknown key 'topics'; legal are " + "x, " * 60
)


def text(lines: list[Line], width: int, height: int = 40, selected: int = 0) -> list[str]:
    return frame(lines, AT_MS, width, height, selected).plain.split("\n")


def test_a_narrow_terminal() -> None:
    found = text([ORDERS, SENT, BROKEN], 80)
    assert max(map(len, found)) == 80
    assert found[:5] == [
        "bridge top  2026-11-27 17:20:00 UTC  q ends, ↑ ↓ select",
        "pipeline        verb     state    records/s         lag  fresh  commit",
        "orders          ingest   running      1,234      70,000   1.2s     12s",
        "orders_publish  publish  stopped          –  3 versions      –       –",
        "broken          –        unknown          –           –      –       –",
    ]
    assert found[5].startswith("  broken.yaml: unknown key 'topics'; legal are x") and found[5].endswith("…")
    assert found[6:10] == [
        "",
        "orders ingest  conf/orders.yaml",
        "last commit 2026-11-27T17:19:48+00:00, version 7",
        "by driver, read by consumer",
    ]
    bars = found[10:]
    assert [bar.split("█")[0] for bar in bars] == ["  orders-0 50,000 ", "  orders-1 20,000 "]
    assert [bar.count("█") for bar in bars] == [62, 25]


def test_a_wide_terminal_has_the_way() -> None:
    head, first = text([ORDERS, SENT], 140)[1:3]
    assert head.endswith("commit  way")
    assert first.endswith("12s  by driver, read by consumer")


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("selected", [0, 29, 59])
def test_it_fits_and_has_the_selected_one(width: int, selected: int) -> None:
    lines = [replace(ORDERS, pipeline=f"p{number}") for number in range(30)]
    lines += [replace(BROKEN, pipeline=f"p{number}") for number in range(30, 60)]
    found = text(lines, width, 24, selected)
    assert len(found) <= 24
    assert max(map(len, found)) <= width
    assert any(line.startswith(f"p{selected} ") for line in found)


def test_what_is_cut_is_whole_for_the_selected_one() -> None:
    found = " ".join(text([BROKEN], 80))
    assert found.count("x, x") > 10


def test_an_error_goes_before_a_reason() -> None:
    line = replace(SENT, error="KafkaError: no answer", reason="no\nbroker")
    assert overview([line], 100)[2].plain == "  failed: KafkaError: no answer; no broker"


def test_many_partitions() -> None:
    lags = {f"a-topic-with-a-long-name-of-its-own-{n}": 100 - n for n in range(20)}
    found = [line.plain for line in details(replace(ORDERS, lag_by_partition=lags), 60)]
    assert found[-1] == "  and 12 more partitions that lag"
    bars = found[-9:-1]
    assert [bar.split()[1] for bar in bars] == [f"{100 - n}" for n in range(8)]
    assert all(bar.split()[0].endswith(f"-own-{n}") for n, bar in enumerate(bars))
    assert max(map(len, found)) <= 60


def test_nothing_that_others_wrote_reaches_the_terminal_as_a_command() -> None:
    clear = "\x1b[2J\x9b31m\x07"
    odd = replace(
        ORDERS, file=clear, pipeline=f"a{clear}", engine=clear, reader=clear, error=clear, reason=clear,
        lag_by_partition={f"t{clear}-0": 5},
    )  # fmt: skip
    for shown in (text([odd], 140), [line.plain for line in (*overview([odd], 90), *details(odd, 90))]):
        assert [part for part in shown if not part.isprintable()] == []
        assert any("a�[2J" in part for part in shown)


def test_wide_letters_do_not_shift_columns() -> None:
    wide = replace(ORDERS, pipeline="注文", lag_by_partition={"注文-0": 9, "orders-0": 8})
    long = replace(ORDERS, pipeline="注文" * 40, error="注文 " * 60)
    rows = [row.plain for row in overview([ORDERS, wide, long], 80)][1:4]
    assert {cell_len(row[: row.index("running")]) for row in rows} == {
        cell_len(rows[0][: rows[0].index("running")])
    }
    bars = [row.plain for row in details(wide, 80)][-2:]
    assert len({cell_len(bar.split("█")[0]) for bar in bars}) == 1
    found = text([long], 80)
    assert max(map(cell_len, found)) <= 80
    assert " ".join(found).count("注文 注文") > 20


def test_no_pipelines() -> None:
    assert text([], 80)[1].startswith("pipeline")
