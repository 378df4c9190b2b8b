"""The suite of a check on S3: read, proposed, and not overwritten."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.errors import BridgeError, DefinitionError
from bridge.pipelines.quality.suite_file import load_suite, refuse_existing, write_suite_file
from tests.object_store import BUCKET, ObjectStore

SUITE = """\
{"name": "s", "expectations": [{"type": "expect_key_to_be_unique", "kwargs": {"column_list": ["id"]}}]}"""


def test_a_suite_on_s3_is_written_once_and_read(
    spark: SparkSession, store: ObjectStore, unique: Callable[[str], str]
) -> None:
    uri = f"s3a://{BUCKET}/{unique('suites')}/orders.json"
    with pytest.raises(
        DefinitionError, match=re.escape(f"{uri}: the quality suite cannot be read: there is")
    ):
        load_suite(spark, uri)
    refuse_existing(spark, uri, overwrite=False)
    write_suite_file(spark, SUITE, uri)
    found = load_suite(spark, uri)
    assert (found.name, found.file, len(found)) == ("s", uri, 1)
    with pytest.raises(DefinitionError, match="exists and was not changed: replace it with `--overwrite`"):
        refuse_existing(spark, uri, overwrite=False)
    refuse_existing(spark, uri, overwrite=True)


def test_a_store_that_refuses_is_named(spark: SparkSession, store: ObjectStore) -> None:
    for name, value in store.settings("no-such-bucket").items():
        spark.conf.set(name, value)
    uri = "s3a://no-such-bucket/orders.json"
    with pytest.raises(DefinitionError, match=re.escape(uri)):
        load_suite(spark, uri)
    with pytest.raises(BridgeError, match=re.escape(f"{uri}: the suite cannot be written")):
        write_suite_file(spark, SUITE, uri)


def test_a_suite_on_the_disk(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "expectations" / "orders.json"
    write_suite_file(spark, SUITE, str(file))
    assert len(load_suite(spark, str(file))) == len(load_suite(spark, file.as_uri())) == 1
    for place in (str(file), file.as_uri()):
        with pytest.raises(DefinitionError, match="exists and was not changed"):
            refuse_existing(spark, place, overwrite=False)
