"""Small files on a local disk and through Hadoop's FileSystem: whole, and of several writers one wins."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.small_files import SmallFiles, TextFile

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


def write_once(spark: SparkSession, path: str, text: str) -> bool:
    folder, _, name = path.rpartition("/")
    return SmallFiles(spark, folder).put_if_absent(name, text)


def test_files_are_listed_read_replaced_and_deleted(spark: SparkSession, path_of: PathOf, lake: Path) -> None:
    files = SmallFiles(spark, path_of("a b"))
    assert files.names() == []
    files.replace("2", "zwei\n")
    files.replace("1", "größer")
    assert [name for name in files.names() if not name.endswith(".crc")] == ["1", "2"]
    assert files.read("1") == "größer" == TextFile(spark, path_of("a b/1")).read()
    TextFile(spark, path_of("a b/1")).write("1")
    assert files.read("1") == "1"
    at = int((lake / "a b/1").stat().st_mtime * 1000)
    assert abs((files.modified_ms("1") or 0) - at) < 1000 and files.modified_ms("3") is None
    for _ in range(2):
        files.delete("1")
    assert [name for name in files.names() if not name.endswith(".crc")] == ["2"]
    with pytest.raises(FileNotFoundError):
        files.read("1")
    assert TextFile(spark, path_of("a b/1")).read() is None


def test_the_file_appears_whole(spark: SparkSession, path_of: PathOf, lake: Path) -> None:
    assert write_once(spark, path_of("a/b/1.json"), "größer\n")
    assert (lake / "a/b/1.json").read_bytes() == "größer\n".encode()
    assert TextFile(spark, path_of("a/b/1.json")).read() == "größer\n"


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
