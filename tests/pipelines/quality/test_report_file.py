"""The report of a check: on the disk by path and by URI, and on S3."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.errors import BridgeError
from bridge.pipelines.quality.report_file import write_report_file
from tests.object_store import BUCKET, ObjectStore


def test_a_path_and_a_uri_of_the_disk_are_files(spark: SparkSession, tmp_path: Path) -> None:
    write_report_file(spark, "<html>1", str(tmp_path / "reports" / "a.html"))
    write_report_file(spark, "<html>2", (tmp_path / "reports" / "b.html").as_uri())
    files = sorted((tmp_path / "reports").iterdir())
    assert [(file.name, file.read_text()) for file in files] == [("a.html", "<html>1"), ("b.html", "<html>2")]


def test_a_report_on_s3_is_an_object_that_the_next_one_replaces(
    spark: SparkSession, store: ObjectStore, unique: Callable[[str], str]
) -> None:
    folder = unique("reports")
    for text in ("<html>é", "<html>2"):
        write_report_file(spark, text, f"s3a://{BUCKET}/{folder}/orders.html")
        assert store.text(f"{folder}/orders.html") == text
    assert store.names(folder) == [f"{folder}/orders.html"]


def test_a_store_that_refuses_the_report_is_named(spark: SparkSession, store: ObjectStore) -> None:
    for name, value in store.settings("no-such-bucket").items():
        spark.conf.set(name, value)
    place = "s3a://no-such-bucket/orders.html"
    with pytest.raises(
        BridgeError, match=r"^s3a://no-such-bucket/orders\.html: the quality report cannot be"
    ):
        write_report_file(spark, "<html>", place)
