"""Whole files, written once, on a local disk and through Hadoop's rename."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge import storage
from bridge.delta.write_once import write_once

pytestmark = pytest.mark.versions

PathOf = Callable[[str], str]


@pytest.fixture(params=["local disk", "another file system"])
def path_of(request: pytest.FixtureRequest, spark: SparkSession, lake: Path) -> PathOf:
    """Paths below `lake`: plain, and as seen through viewfs, which is no `file:` system to the bridge."""
    if request.param == "local disk":
        return lambda name: str(lake / name)
    spark.conf.set("fs.viewfs.impl.disable.cache", "true")
    spark.conf.set("fs.viewfs.mounttable.default.link./lake", lake.as_uri())
    return lambda name: f"viewfs:///lake/{name}"


def test_the_file_appears_whole(spark: SparkSession, path_of: PathOf, lake: Path) -> None:
    assert write_once(spark, path_of("a/b/1.json"), "größer\n")
    assert (lake / "a/b/1.json").read_bytes() == "größer\n".encode()
    assert storage.read_text(spark, path_of("a/b/1.json")) == "größer\n"


def test_an_existing_file_stays_as_it_is(spark: SparkSession, path_of: PathOf, lake: Path) -> None:
    assert write_once(spark, path_of("1.json"), "first")
    assert not write_once(spark, path_of("1.json"), "second")
    assert (lake / "1.json").read_text() == "first"


def test_nothing_else_is_left_in_the_folder(spark: SparkSession, path_of: PathOf, lake: Path) -> None:
    write_once(spark, path_of("1.json"), "first")
    write_once(spark, path_of("1.json"), "second")
    assert [p.name for p in lake.iterdir() if not p.name.endswith(".crc")] == ["1.json"]


def test_of_many_writers_one_wins(spark: SparkSession, lake: Path) -> None:
    for number in range(20):
        path = str(lake / f"{number}.json")
        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(lambda n, p=path: write_once(spark, p, str(n)), range(8)))
        assert won.count(True) == 1
        assert Path(path).read_text() == str(won.index(True))
