"""docs/reliability.md is written and read back, and is what the ledger sums up to."""

from __future__ import annotations

import json
import math
import subprocess
from collections import Counter
from itertools import islice
from pathlib import Path

import grimp
import pytest

from tests.faults.lane import APPENDS, CHOICES, draw_lanes
from tests.faults.plays import (
    CLUSTER,
    FOUND,
    LOCAL,
    NOT_PLAYED,
    Play,
    append_play,
    code_version,
    read_plays,
    sum_of_newest_code,
    sum_of_tree,
)
from tests.faults.report import parse_tables, percentile, render, write

DOCUMENT = Path(__file__).parents[2] / "docs" / "reliability.md"
ROOT = DOCUMENT.parents[1]
LEDGER = DOCUMENT.with_suffix(".jsonl")
MAY_LACK = ("deletion vectors",)
"""It is drawn only with Spark's engine, so a play of few lanes may have none; the table shows the number."""


def played(tree: str, seed: int, **more: object) -> Play:
    play = Play(["c0ffee"], tree, ["2026-11-23"], [seed], ["2 cores"], seconds=60.0, **more)  # type: ignore[arg-type]
    for lane in islice(draw_lanes(seed), 4):
        play.lane(lane, Counter({"kill all": 2, "failpoint: raise at shard.sent": 1}))
    return play


def test_percentiles_are_values_that_were_there() -> None:
    assert percentile([3.0, 1.0, 2.0], 50) == 2.0
    assert percentile(list(range(1, 201)), 99) == 198
    assert percentile([5.0], 99) == 5.0
    assert math.isnan(percentile([], 50))


def test_plays_of_one_code_add_up_and_no_others(tmp_path: Path) -> None:
    ledger = tmp_path / "reliability.jsonl"
    for tree, seed in (("a", 1), ("b", 2), ("a", 3)):
        append_play(played(tree, seed, records_in=10, recoveries={"ingest": [5.04]}, stall=seed), ledger)
    append_play(played("a", 3, broken=["ingest makes progress"]), ledger)
    whole = sum_of_tree(read_plays(ledger), "a")
    assert whole.broken == ["ingest makes progress"]
    assert (whole.count, whole.seeds, whole.records_in, whole.stall) == (36, [1, 3, 3], 20, 3)
    assert whole.recoveries == {"ingest": [5.0, 5.0]} and whole.commits == ["c0ffee"] and whole.clean
    assert sum_of_newest_code([*read_plays(ledger), Play(["c"], "c", [], [], [], broken=["x"])]).seeds == [
        1,
        3,
        3,
    ]
    assert whole.by("kind") == {"kill all": 24, "failpoint: raise": 12}
    assert sum(whole.by("engine").values()) == sum(whole.by("key").values()) == 36


def test_what_was_judged_again_is_shown(tmp_path: Path) -> None:
    ledger = tmp_path / "reliability.jsonl"
    for text in ("seed 1: a file of Delta", "seed 2: another one"):
        append_play(played("a", 1, judged_again=[text]), ledger)
    text = render(sum_of_newest_code(read_plays(ledger)))
    assert (
        "Judged again, as the judge was wrong:\n\n- seed 1: a file of Delta\n- seed 2: another one\n" in text
    )
    assert "Judged again" not in render(played("a", 1))


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    play = played("a", 7, records_in=12_345, users=["OPTIMIZE", "UPDATE lost: X"])
    play.found["lost"] = 2
    assert not play.clean
    file = tmp_path / "reliability.md"
    for _ in range(2):
        write(play, file)
    assert [p.name for p in tmp_path.iterdir()] == ["reliability.md"]
    found = parse_tables(file.read_text(encoding="utf-8"))
    assert found[""]["commit"] == "c0ffee" and found[""]["records written"] == "12,345"
    assert found["What was found"]["lost"] == "2" and found["What was found"]["reordered"] == "0"
    assert found["Rounds by fault"]["kill all"] == "8"
    assert set(CHOICES["key"]) < set(found["Rounds by key"])
    assert max(map(len, render(play).splitlines())) <= 130
    on_cluster = render(played("a", 7, where=CLUSTER))
    assert "standalone cluster" in on_cluster and "standalone cluster" not in render(play)


def test_tables_without_a_key_are_shown_where_there_were_any(tmp_path: Path) -> None:
    """The document of plays from before there were any stays as it is."""
    ledger = tmp_path / "reliability.jsonl"
    lanes = [*islice(draw_lanes(7), 12)]
    for tree, appends in (("old", False), ("new", True), ("new", True)):
        play = Play(["c0ffee"], tree, ["2026-11-23"], [7], ["2 cores"])
        for lane in (lane for lane in lanes if appends or not lane.appends):
            play.lane(lane, Counter({"kill all": 2}))
        if appends:
            play.rows_appended, play.append_batches = 600, 5
            play.appended_by_consumers, play.orphaned_appends = 4, 1
        append_play(play, ledger)
    before = ledger.read_text(encoding="utf-8").splitlines()
    given = json.loads(before[0])
    for name in ("rows_appended", "append_batches", "appended_by_consumers", "orphaned_appends"):
        del given[name]  # as earlier code wrote it
    ledger.write_text("\n".join([json.dumps(given), *before[1:]]), encoding="utf-8")
    old, new = (render(sum_of_tree(read_plays(ledger), tree)) for tree in ("old", "new"))
    assert "without a key" not in old
    found = parse_tables(new)
    assert found["Rounds by with"][APPENDS] == f"{4 * sum(lane.appends for lane in lanes)}"
    assert found[""]["rows appended to tables without a key"] == "1,200"
    assert found[""]["batches of these"] == "10, 8 of them by consumers"
    assert found[""]["data files of these without a commit, deleted by VACUUM"] == "2"
    assert "appends the rows of the same topic" in new and max(map(len, new.splitlines())) <= 130


def test_a_play_knows_its_code() -> None:
    found = code_version()
    assert len(found.tree) == 40 and found.commit


def test_what_is_played_imports_nothing_that_is_left_out_of_the_digest() -> None:
    graph = grimp.build_graph("bridge")
    played = {
        module
        for run in (
            "bridge.pipelines.ingest.run",
            "bridge.pipelines.publish.run",
            "bridge.pipelines.scripts.run",
            "bridge.pipelines.cdc_jobs.run",
            "bridge.session",
            "bridge.config",
            "bridge.sql",
            "bridge.cdc_jobs",
        )
        for module in (run, *graph.find_upstream_modules(run))
    }
    assert len(played) > 100
    for folder in NOT_PLAYED:
        package = f"bridge.{folder.replace('/', '.')}"
        assert not {m for m in played if m == package or m.startswith(f"{package}.")}, folder


def drawn_at(commit: str) -> str:
    """The files from which the lanes of a commit were drawn."""
    files = [f"{commit}:tests/faults/{name}.py" for name in ("lane", "documents")]
    return subprocess.run(
        ["git", "show", *files], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no repository: these files were unpacked")
def test_the_document_has_every_configuration_and_nothing_but_zeros() -> None:
    """Every one that there was when its code was played: the table shows that later ones have no round yet."""
    found = parse_tables(DOCUMENT.read_text(encoding="utf-8"))
    drawn = drawn_at(found[""]["commit"].rpartition(", ")[2])
    assert '"exactly-once by file"' in drawn and '"BINARY, TIMESTAMP"' in drawn
    counts = found["What was found"]
    del counts["fault"]
    assert counts == dict.fromkeys(FOUND, "0")
    for dimension, choices in CHOICES.items():
        told = found[f"Rounds by {dimension}"]
        lacking = {name for name in choices if told.get(name, "0") == "0" and f'"{name}"' in drawn}
        assert lacking <= set(MAY_LACK), f"no round by {dimension}"
    assert found[""]["ranges sent file by file, in the current logs"] != "0"
    assert found[""]["commit"] and {"ingest", "publish"} <= set(found["Recovery"])


@pytest.mark.parametrize(
    "ledger", sorted(LEDGER.parent.glob("reliability*.jsonl")), ids=lambda file: file.stem
)
def test_the_document_is_what_the_ledger_adds_up_to(ledger: Path) -> None:
    plays = read_plays(ledger)
    assert ledger.with_suffix(".md").read_text(encoding="utf-8") == render(sum_of_newest_code(plays))
    assert {play.where for play in plays} == {CLUSTER if ledger.stem.endswith("-cluster") else LOCAL}
    assert all(set(json.loads(play.json())["found"]) >= set(FOUND) for play in plays)
