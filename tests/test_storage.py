"""Folders through Hadoop's FileSystem."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge import storage
from bridge.bridge_folders import OWNER_FILE
from bridge.errors import BridgeError
from bridge.lake.local_store import LocalStore, make_folder
from bridge.small_files import TextFile

pytestmark = pytest.mark.versions


def test_only_a_folder_that_was_made_for_the_pipeline_is_deleted(spark: SparkSession, tmp_path: Path) -> None:
    made, others, torn = tmp_path / "made", tmp_path / "others", tmp_path / "torn"
    storage.create_owned_folder(spark, str(made), "orders")
    (made / "state" / "0").mkdir(parents=True)
    for folder, content in ((others, None), (torn, '{"pipel'), (tmp_path / "list", "[]")):
        folder.mkdir()
        if content:
            (folder / OWNER_FILE).write_text(content, encoding="utf-8")
        assert not storage.delete_owned_folder(spark, str(folder), "orders") and folder.is_dir()
    with pytest.raises(FileExistsError, match="torn holds files"):
        storage.create_owned_folder(spark, str(torn), "orders")
    assert not storage.delete_owned_folder(spark, str(made), "payments")
    assert storage.delete_owned_folder(spark, str(made), "orders") and not made.exists()
    assert not storage.delete_owned_folder(spark, str(made), "orders")


def test_a_folder_is_deleted_with_everything_in_it(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "state" / "offsets").mkdir(parents=True)
    (tmp_path / "state" / "offsets" / "0").touch()
    for _ in range(2):
        storage.delete_folder(spark, str(tmp_path / "state"))
        assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_named_with_the_way_out(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    in_the_way = tmp_path / "file" / "a b"
    message = (
        f"{in_the_way}: this folder cannot be made or written ({tmp_path / 'file'} is a file). Move the file away, or "
        "let the user of the bridge write there, or name another path in the pipeline file"
    )
    for make in (
        lambda: LocalStore(str(in_the_way)).put_if_absent("1.json", b"{}"),
        lambda: LocalStore(str(in_the_way)).create("1.json", b"{}"),
        lambda: TextFile(spark, str(in_the_way / "1.json")).write("{}"),
        lambda: storage.make_local_folder(spark, str(in_the_way)),
    ):
        with pytest.raises(BridgeError) as caught:
            make()
        assert str(caught.value) == message
    with pytest.raises(BridgeError, match=r"^/proc/1/a: this folder cannot be made or written \(/proc/1: "):
        make_folder(Path("/proc/1/a"))
