"""The pictures of docs/semantics.md: the same records with each semantics of `delta`."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping

import pytest
import yaml
from pyspark.sql import functions as F

from tests.docs.pages import DOCS
from tests.expressions.vectors import drawn_seed
from tests.pipelines.world import Make, World

PAGE = (DOCS / "semantics.md").read_text()
COLUMNS = " ".join(re.findall(r"^CREATE TABLE orders \((.+?)^\) WITH", PAGE, re.M | re.S)[0].split())
SECTIONS = dict(re.findall(r"^## (.+?)\n(.+?)(?=^## |\Z)", PAGE, re.M | re.S))
RECORDS = re.split(r"\s{2,}", re.findall(r"^record\s+(.+)$", PAGE, re.M)[0])

Rows = dict[str, list[str]]
"""Of each key the rows, by their values with spaces between them."""


def block(section: str, language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.+?)^```", SECTIONS[section], re.M | re.S)
    return str(found)


def send(world: World, record: str) -> None:
    key, *values, at = record.split()
    id, document = {"order_id": int(key)}, None
    if values != ["deleted"]:
        customer, amount = values
        document = json.dumps({**id, "customer": customer, "amount": None if amount == "-" else int(amount)})
    world.send([(json.dumps(id), document)], timestamp=int(at.removeprefix("@")))


def rows(world: World, *more: str) -> Rows:
    """The rows of the table: customer, amount and the columns `more`, of times the milliseconds."""
    table = world.table()
    times = {f.name for f in table.schema if f.dataType.typeName() == "timestamp"}
    shown = [F.unix_millis(name) if name in times else F.col(name) for name in ("customer", "amount", *more)]
    found: Rows = {}
    for id, *values in table.select("order_id", *shown).orderBy("order_id", *more).collect():
        text = " ".join("-" if value is None else str(value) for value in values)
        found.setdefault(f"key {id}", []).append(text)
    return found


def lines(picture: str) -> Mapping[str, list[str]]:
    """The cells of each line, by its first cell."""
    cells = (re.split(r"\s{2,}", line.strip()) for line in picture.splitlines())
    return {first: others for first, *others in cells}


def intervals(picture: str) -> Rows:
    """A bar begins a row where the time above it is; the next bar ends it, three dots do not."""
    head, *keys = picture.splitlines()
    times = {match.start(): match[0] for match in re.finditer(r"\d+", head)}
    found: Rows = {}
    for line in keys:
        bars = [match.start() for match in re.finditer(r"\|", line)]
        texts = [part.strip() for part in line.split("|")]
        ends = [*(times[bar] for bar in bars[1:]), "-"]
        found[texts[0]] = [
            f"{text.removesuffix(' ...')} {times[bar]} {end}"
            for bar, end, text in zip(bars, ends, texts[1:], strict=True)
            if text
        ]
    return found


def check(make: Make, section: str, *, one_by_one: bool) -> None:
    """One by one: each record is applied by a run of its own, else all by one run."""
    delta = dict(yaml.safe_load(block(section, "yaml"))["delta"], path="table")
    world = make(columns=COLUMNS, partitions=1, cleanup="delete", delta=json.dumps(delta)[1:-1])
    picture = block(section, "text")
    drawn = lines(picture)
    if "record" in drawn:
        assert drawn["record"] == RECORDS
        more = [delta["soft-delete"]] if "soft-delete" in delta else []
        for place, record in enumerate(RECORDS):
            send(world, record)
            if not one_by_one and record != RECORDS[-1]:
                continue
            world.batches()
            expected = {key: [cells[place]] for key, cells in drawn.items() if key != "record"}
            assert rows(world, *more) == {key: row for key, row in expected.items() if row != ["."]}, record
        return
    for record in RECORDS:
        send(world, record)
    world.batches()
    if delta["history"] == "scd2":
        assert rows(world, "__valid_from", "__valid_to") == intervals(picture)
    else:
        added = ("__change_kind", "__change_offset", "__change_row")
        assert {
            key: sorted(of_key, key=lambda row: row.split()[-2])
            for key, of_key in rows(world, *added).items()
        } == drawn


PLAYED = [section for section in SECTIONS if "```text" in SECTIONS[section]]


def test_the_page_plays_what_it_lists() -> None:
    listed = set(re.findall(r"^\| .+? \| .*?`([a-z-]+): (?:\w|\{)", PAGE, re.M))
    played = {key for section in PLAYED for key in yaml.safe_load(block(section, "yaml"))["delta"]}
    assert listed - played == {"merge-columns"} and len(PLAYED) == 8


def test_a_picture_is_what_the_table_has(make: Make) -> None:
    """One that is drawn; all are played by the slow test."""
    check(make, random.Random(drawn_seed()).choice(PLAYED), one_by_one=False)


@pytest.mark.slow
@pytest.mark.parametrize("section", PLAYED)
def test_each_picture_is_what_the_table_has(make: Make, section: str) -> None:
    check(make, section, one_by_one=True)
