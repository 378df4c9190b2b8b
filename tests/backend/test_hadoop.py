"""Paths, names and settings as Hadoop sees them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.backend import backend_of

pytestmark = pytest.mark.versions


def test_paths_of_a_local_disk(spark: SparkSession, tmp_path: Path) -> None:
    files, place = backend_of(spark).files, tmp_path / "a b%"
    assert files.qualified(str(place)) == f"file:{place}"
    assert files.local_path(str(place)) == place
    assert files.names(str(place)) == []
    place.mkdir()
    (place / "2").touch()
    (place / "1").mkdir()
    assert files.names(str(place)) == ["1", "2"]


def test_settings_of_stores(spark: SparkSession) -> None:
    spark.conf.set("fs.s3a.bucket.x.endpoint", "http://here")
    setting = backend_of(spark).files.settings()
    assert (setting("fs.s3a.bucket.x.endpoint"), setting("fs.s3a.no.such")) == ("http://here", None)
