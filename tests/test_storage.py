"""Small files through Hadoop's FileSystem."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge import storage
from bridge.bridge_folders import OWNER_FILE

pytestmark = pytest.mark.versions


def test_files_are_listed_read_and_deleted(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    (folder / "2").write_text("zwei\n", encoding="utf-8")
    (folder / "1").write_text("größer", encoding="utf-8")
    assert storage.list_names(spark, str(folder)) == ["1", "2"]
    assert storage.read_text(spark, str(folder / "1")) == "größer"
    for _ in range(2):
        storage.delete_file(spark, str(folder / "1"))
    assert storage.list_names(spark, str(folder)) == ["2"]
    with pytest.raises(Exception, match="not empty"):
        storage.delete_file(spark, str(folder))
    with pytest.raises(FileNotFoundError):
        storage.read_text(spark, str(folder / "1"))


def test_a_file_s_age(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "a b.json"
    assert storage.modified_ms(spark, str(file)) is None
    file.touch()
    assert storage.modified_ms(spark, str(file)) == int(file.stat().st_mtime * 1000)


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
