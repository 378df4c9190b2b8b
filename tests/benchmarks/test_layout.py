"""Each layout of a table is compared with the rows unordered; the jobs are made up."""

from __future__ import annotations

from benchmarks import layout
from benchmarks.base_tables import Laid
from benchmarks.found import Found
from benchmarks.plots import svg
from benchmarks.scale import Scale
from tests.benchmarks.made_up import Ground


def test_each_layout_has_its_row_and_its_line() -> None:
    ground, found = Ground(), Found()
    layout.play(ground, Scale.of(10_000, full=False), found)  # type: ignore[arg-type]
    assert [(o.name, o.goal, o.ratio) for o in found.outcomes] == [
        (
            "10 adjacent keys into 20,000 rows clustered by key; baseline: unordered",
            0.0,
            1.0,
        ),
        ("10 adjacent keys into 20,000 rows sorted by key; baseline: unordered", 0.0, 1.0),
    ]
    assert [options["laid"] for _, _, options in ground.jobs] == list(Laid)
    assert svg(found.plots["layout"]).count("<polyline") == len(Laid)


def test_the_full_form_lays_out_tables_of_two_sizes() -> None:
    ground = Ground()
    layout.play(ground, Scale.of(10_000, full=True), Found())  # type: ignore[arg-type]
    assert {options["rows"] for _, _, options in ground.jobs} == {10_000, 200_000}
