"""In README.md of this folder each fault has a row, and the tests and files that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.faults.plan import KINDS, ON_CLUSTER
from tests.faults.rounds import Player

ROOT = Path(__file__).parents[2]
README = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| (\d+) \| .+? \| (.+) \|$", README, re.MULTILINE))


def test_all_faults_have_a_row() -> None:
    assert list(ROWS) == [str(n) for n in range(1, 32)]


@pytest.mark.parametrize("number", ROWS)
def test_what_injects_it_exists(number: str) -> None:
    named = re.findall(r"`([^`]+)`", ROWS[number])
    assert named
    for name in named:
        kind = name.removeprefix("make faults: ")
        if kind != name:
            assert kind in {*KINDS, *ON_CLUSTER}
            continue
        file, _, test = name.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^def {test or 'test_'}", text, re.MULTILINE), name


def test_each_kind_of_round_is_named_and_can_be_played() -> None:
    named = set(re.findall(r"`make faults: ([^`]+)`", "\n".join(ROWS.values())))
    assert named == {*KINDS, *ON_CLUSTER} == set(Player(None, print).kinds)  # type: ignore[arg-type]


def test_the_files_it_names_exist() -> None:
    files = re.findall(r"`(\w+\.py)`", README)
    assert files and all((Path(__file__).parent / file).exists() for file in files)
