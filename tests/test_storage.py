"""Small files through Hadoop's FileSystem."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge import storage


def test_files_are_listed_read_and_deleted(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    (folder / "2").write_text("zwei\n", encoding="utf-8")
    (folder / "1").write_text("größer", encoding="utf-8")
    assert storage.list_names(spark, str(folder)) == ["1", "2"]
    assert storage.read_text(spark, str(folder / "1")) == "größer"
    storage.delete(spark, str(folder))
    storage.delete(spark, str(folder))
    assert storage.list_names(spark, str(folder)) == []
    with pytest.raises(FileNotFoundError):
        storage.read_text(spark, str(folder / "1"))


def test_a_file_s_age(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "a b.json"
    assert storage.modified_ms(spark, str(file)) is None
    file.touch()
    assert storage.modified_ms(spark, str(file)) == int(file.stat().st_mtime * 1000)
